"""Characters in a graph become what `unicodedata.normalize` and `str.lower` make of them."""

# ruff: noqa: RUF001
from __future__ import annotations

import sys
import unicodedata

import numpy as np
from graphs import open_part
from onnx import TensorProto

from reliablenet.export.onnx.characters import add_characters
from reliablenet.export.onnx.graph import Graph

KNOWN = [
    chr(code)
    for code in range(1, sys.maxunicode + 1)
    if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
]


def letters_of(text: str) -> list[int]:
    """Letters and digits by number, and one zero for all that lies between."""
    plain = unicodedata.normalize("NFKC", text).lower()
    return collapsed([ord(one) + 1 if one.isalnum() else 0 for one in plain])


def collapsed(values: list[int]) -> list[int]:
    return [value for place, value in enumerate(values) if value or not place or values[place - 1]]


def read(texts: list[str]) -> tuple[list[list[int]], np.ndarray]:
    graph = Graph()
    found = add_characters(graph, graph.add("Reshape", graph.text("t"), graph.whole([-1])))
    given = {"t": np.array(texts, object)[:, None]}
    values, owner, strange = (
        open_part_of(graph, name, kind).run(None, given)[0]
        for name, kind in (
            (found.values, TensorProto.INT64),
            (found.owner, TensorProto.INT64),
            (found.strange, TensorProto.BOOL),
        )
    )
    each = np.split(values[1:], np.flatnonzero(np.diff(owner[1:])) + 1)
    return [one.tolist() for one in each], strange


def open_part_of(graph: Graph, name: str, kind: int):
    session = open_part(graph, name, kind)
    del graph.nodes[-1], graph.outputs[-1]
    return session


def compare(texts: list[str]) -> int:
    """Check all texts that can be read and return how many cannot."""
    found, strange = read(texts)
    for text, own, unreadable in zip(texts, found, strange, strict=True):
        assert unreadable or collapsed(own) == letters_of(text + " "), ascii(text)
    return int(strange.sum())


def test_every_character_is_read() -> None:
    assert compare([f"a{one}b" for one in KNOWN]) < 300


def test_a_letter_and_its_accent_become_one() -> None:
    apart = [unicodedata.normalize("NFD", one) for one in KNOWN if one < "\u3000" and one.isalpha()]
    two = [f"x{letter}y" for letter in apart if len(letter) == 2]
    assert len(two) > 500
    assert compare(two) == 0


def test_accents_on_any_letter_are_right_or_unreadable() -> None:
    letters = [
        *"aeiouncszAEIOUNCSZ",
        "é",
        "ệ",
        "ß",
        "ω",
        "Я",
        "ﬁ",
        "½",
        "カ",
        "ｶ",
        "क",
        "1",
        " ",
        "=",
    ]
    marks = [*"\u0301\u0308\u0323\u0327\u0307\u030a\u0338\u3099\u093c\u094d\u20dd", "ﾞ", "´"]
    pairs = [
        letter + mark + after
        for letter in letters
        for mark in marks
        for after in ("", "b", "\u0301")
    ]
    assert compare(pairs) < len(pairs) / 2
