"""Texts as characters inside a graph, brought to one form as `unicodedata.normalize` and `str.lower` do it.

ONNX has neither: a table says what each character becomes. Some become several, and an accent that stands
by itself joins the letter before it; that is done only where a text has such characters.
"""

from __future__ import annotations

import sys
import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from reliablenet.export.onnx.graph import ML, RUNTIME, Graph
from reliablenet.tables.ngrams import LONGEST

# What a character is known by: 0 if it is in no word, its number and 1 if it is, or else one of these.
END, BLANK = -2, -1
SPECIAL = 2**21  # and above: becomes several, joins another, or depends on its neighbours
NOT_JOINED, UNREADABLE = -1, -2  # of a letter and a mark
SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"  # small it has two forms, and its place in a word decides


@dataclass(frozen=True, eq=False)
class Characters:
    """What each character becomes.

    Attributes
    ----------
    codes : dict
        From a character to its code; of those that are not there it is 0.
    sequences : int array of shape (s, w)
        The codes that each special character becomes, and END behind them.
    marks, strange, joins : boolean arrays of shape (s,)
        Which special characters are marks on the one before; which cannot be read; and which marks may
        make one letter with the one before.
    joined : dict
        From ``2 * SPECIAL * letter + mark``, the codes of both, to that of the letter they make together.
    """

    codes: dict[str, int]
    sequences: NDArray[np.int64]
    marks: NDArray[np.bool_]
    strange: NDArray[np.bool_]
    joins: NDArray[np.bool_]
    joined: dict[int, int]


@dataclass(frozen=True)
class Read:
    """Names of values in a graph: the characters of R texts, one after the other.

    Attributes
    ----------
    values : str
        Of shape (t,), 64 bits without sign: the number of a letter or digit and 1, or 0. The first is 0,
        and one behind each text.
    owner : str
        Of shape (t,): the text of each.
    blank, strange : str
        Of shape (R,): which texts have nothing but space, and which cannot be read.
    """

    values: str
    owner: str
    blank: str
    strange: str


def add_characters(graph: Graph, texts: str) -> Read:
    """Return the characters of texts of shape (R,), as `count_ngrams` reads them.

    Space at the beginning does not count among the characters that are read.
    """
    each = graph.add(
        "Tokenizer", texts, domain=RUNTIME, mark=0, mincharnum=1, pad_value="", separators=[""]
    )
    table = characters().codes
    codes = graph.add(
        "LabelEncoder",
        each,
        domain=ML,
        keys_strings=["", *table],
        values_int64s=[END, *table.values()],
        default_int64=0,
    )
    rows = graph.add("Shape", texts)
    column = graph.add("Concat", rows, graph.whole([1]), axis=0)
    codes = graph.join([codes, graph.add("Expand", graph.whole(0), column)])
    last = graph.add("Sub", graph.add("Shape", codes, start=1, end=2), graph.whole(1))
    filled = graph.cast(graph.add("Greater", codes, graph.whole(BLANK)), np.int32)
    lead = graph.add("ArgMax", filled, axis=1, keepdims=1)
    place = count_up(graph, graph.add("Add", last, graph.whole(1)))
    within = graph.add("Less", place, graph.add("Add", lead, graph.whole(LONGEST)))
    kept = graph.add("Or", within, graph.add("Equal", place, last))
    kept = graph.add("And", kept, graph.add("Greater", codes, graph.whole(END)))
    number = graph.add("Unsqueeze", count_up(graph, rows), graph.whole([1]))
    owner = graph.add("Expand", number, graph.add("Shape", codes))
    codes, owner = (graph.add("Compress", value, kept) for value in (codes, owner))
    special = graph.add("ReduceMax", codes, keepdims=0)
    special = graph.add("GreaterOrEqual", special, graph.whole(SPECIAL))
    values, owner, strange = graph.choose(
        special, _read_special(graph, codes, owner, rows), _read_plain(graph, codes, owner, rows)
    )
    values = graph.add("Concat", graph.whole([0]), values, axis=0)
    owner = graph.add("Concat", graph.whole([0]), owner, axis=0)
    blank = graph.add("Equal", graph.add("Squeeze", lead, graph.whole([1])), last)
    return Read(values, owner, blank, strange)


def _read_plain(outer: Graph, codes: str, owner: str, rows: str) -> Graph:
    """Return the part for texts of which no character is special."""
    graph = outer.part()
    strange = graph.add("Expand", graph.constant(np.array(False)), rows)
    _leave(graph, graph.add("Max", codes, graph.whole(0)), owner, strange)
    return graph


def _read_special(outer: Graph, codes: str, owner: str, rows: str) -> Graph:
    """Return the part for texts with characters that become several, or join the one before."""
    graph, table = outer.part(), characters()
    itself = END - 1  # of a character that is not special there is one, which is itself
    width = table.sequences.shape[1]
    sequences = np.vstack([[itself] + [END] * (width - 1), table.sequences])
    kinds = {
        "mark": np.append(False, table.marks),
        "strange": np.append(False, table.strange),
        "joins": np.append(False, table.joins),
    }
    one = graph.whole([1])
    single = graph.add("Unsqueeze", codes, one)
    found = graph.add("Gather", graph.constant(sequences), _special_place(graph, codes))
    found = graph.add("Where", graph.add("Equal", found, graph.whole(itself)), single, found)
    owners = graph.add("Expand", graph.add("Unsqueeze", owner, one), graph.add("Shape", found))
    there = graph.add("Not", graph.add("Equal", found, graph.whole(END)))
    codes, owner = (graph.add("Compress", value, there) for value in (found, owners))
    place = _special_place(graph, codes)
    mark, strange, joins = (
        graph.add("Gather", graph.constant(kind), place) for kind in kinds.values()
    )
    before, marked_before = _shifted(graph, codes, 0), _shifted(graph, mark, False)
    strange = graph.add("Or", strange, graph.add("And", joins, marked_before))
    pair = graph.add("Add", graph.add("Mul", before, graph.whole(2 * SPECIAL)), codes)
    both = graph.add(
        "LabelEncoder",
        pair,
        domain=ML,
        keys_int64s=list(table.joined),
        values_int64s=list(table.joined.values()),
        default_int64=NOT_JOINED,
    )
    strange = graph.add("Or", strange, graph.add("Equal", both, graph.whole(UNREADABLE)))
    has_joined = graph.add("GreaterOrEqual", both, graph.whole(0))
    behind = graph.add("Slice", both, one, graph.whole([2**62]))
    behind = graph.add("Concat", behind, graph.whole([NOT_JOINED]), axis=0)
    plain = graph.add("Less", codes, graph.whole(SPECIAL))
    values = graph.add("Where", plain, graph.add("Max", codes, graph.whole(0)), graph.whole(0))
    values = graph.add("Where", graph.add("Less", behind, graph.whole(0)), values, behind)
    nobody = graph.add("Expand", graph.whole(0), rows)
    count = graph.add(
        "ScatterElements", nobody, owner, graph.cast(strange, np.int64), reduction="add"
    )
    kept = graph.add("Not", has_joined)
    values, owner = (graph.add("Compress", value, kept) for value in (values, owner))
    _leave(graph, values, owner, graph.add("Greater", count, graph.whole(0)))
    return graph


def _leave(graph: Graph, values: str, owner: str, strange: str) -> None:
    graph.leave(values, TensorProto.INT64)
    graph.leave(owner, TensorProto.INT64)
    graph.leave(strange, TensorProto.BOOL)


def _special_place(graph: Graph, codes: str) -> str:
    """Return the row of each character in a table of special ones, behind a first row for all others."""
    above = graph.add("Sub", codes, graph.whole(SPECIAL - 1))
    return graph.add("Max", above, graph.whole(0))


def _shifted(graph: Graph, values: str, first: int | bool) -> str:
    """Return of each value the one before it."""
    before = graph.cut(values, 0, -1)
    return graph.add("Concat", graph.constant(np.array([first])), before, axis=0)


def count_up(graph: Graph, size: str) -> str:
    """Return the whole numbers from 0 on that are less than a size."""
    end = graph.add("Squeeze", size)
    return graph.add("Range", graph.whole(0), end, graph.whole(1))


@cache
def characters() -> Characters:
    """Return what each character of Unicode becomes, as this Python knows it."""
    known = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    ]
    joined_by: dict[str, list[str]] = {}  # letters that a mark joins
    for both in known:
        parts = _parts(both)
        if len(parts) == 2 and unicodedata.normalize("NFC", both) == both:
            letter, mark = parts
            joined_by.setdefault(mark, []).append(letter)
    specials = ["mark", "strange", *joined_by]
    numbers = {name: SPECIAL + place for place, name in enumerate(specials)}
    codes: dict[str, int] = {}
    sequences = [[number] for number in numbers.values()]
    places: dict[tuple[int, ...], int] = {}
    for character in known:
        if character.isspace():
            codes[character] = BLANK
            continue
        sequence = _sequence(character, numbers)
        if len(sequence) == 1:
            codes[character] = sequence[0]
            continue
        place = places.setdefault(tuple(sequence), len(sequences))
        if place == len(sequences):
            sequences.append(sequence)
        codes[character] = SPECIAL + place
    width = max(map(len, sequences))
    marks = np.zeros(len(sequences), bool)
    marks[[0, *range(2, len(specials))]] = True
    joins = np.zeros(len(sequences), bool)
    joins[2 : len(specials)] = True
    return Characters(
        {character: code for character, code in codes.items() if code},
        np.array([own + [END] * (width - len(own)) for own in sequences]),
        marks,
        np.arange(len(sequences)) == 1,
        joins,
        _joined(known, joined_by, codes),
    )


def _sequence(character: str, numbers: dict[str, int]) -> list[int]:
    """Return the codes that a character becomes; of several in no word that follow each other, one."""
    plain = unicodedata.normalize("NFKC", character)
    if SIGMA in plain or 0x1160 <= ord(plain[0]) <= 0x11FF:
        return [numbers["strange"]]
    found: list[int] = []
    for one in plain.lower():
        if one in numbers:
            found.append(numbers[one])
        elif unicodedata.combining(one):
            found.append(numbers["mark"])
        elif one.isalnum():
            found.append(ord(one) + 1)
        elif not found or found[-1] != 0:
            found.append(0)
    return found


def _joined(
    known: list[str], joined_by: dict[str, list[str]], codes: dict[str, int]
) -> dict[int, int]:
    """Return what letters and marks are together."""
    found: dict[int, int] = {}
    composed = [one for one in known if 0 < codes.get(one, 0) < SPECIAL and len(_parts(one)) > 1]
    for mark, letters in joined_by.items():
        for letter in {*letters, *composed}:
            if not 0 < codes[letter] < SPECIAL:
                continue
            both = unicodedata.normalize("NFKC", letter + mark).lower()
            apart = unicodedata.normalize("NFKC", letter).lower() + mark
            if both == apart:
                continue
            key = 2 * SPECIAL * codes[letter] + codes[mark]
            one = codes.get(both, UNREADABLE) if len(both) == 1 else UNREADABLE
            result = one if 0 <= one < SPECIAL else UNREADABLE
            found[key] = result if found.get(key, result) == result else UNREADABLE
    return found


def _parts(character: str) -> list[str]:
    """Return letter and marks that a character is made of; none if it is of one piece."""
    parts = unicodedata.decomposition(character).split()
    if parts and parts[0].startswith("<"):  # another form of something, such as a ligature
        return []
    return [chr(int(part, 16)) for part in parts]
