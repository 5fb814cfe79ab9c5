"""Words and pieces of words inside a graph: the cells of `count_ngrams`, to the bit."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from reliablenet.export.onnx.characters import Read, count_up
from reliablenet.export.onnx.graph import Graph
from reliablenet.tables.ngrams import BASE, MIXERS, PIECE_CELLS, PIECES, SECOND, WORD_CELLS

STEP = 1024  # powers of the base are looked up in two tables of so many
ALL = 2**62  # behind the end of everything


def add_cells(graph: Graph, read: Read) -> list[tuple[str, str]]:
    """Return text and cell, in 64 bits, of each word, pair of words and piece of a word."""
    letters = graph.add("Greater", read.values, graph.whole(0))
    values = graph.cast(read.values, np.uint64)
    found = _add_words(graph, values, letters, read.owner)
    return found + [_add_pieces(graph, values, letters, read.owner, n) for n in PIECES]


def _add_words(graph: Graph, values: str, letters: str, owner: str) -> list[tuple[str, str]]:
    """Add words, whose hash is a polynomial in the base over their characters, and pairs of neighbours."""
    before = graph.cut(letters, 0, -1)
    begins = graph.add("And", graph.cut(letters, 1, ALL), graph.add("Not", before))
    begins = graph.add("Concat", graph.constant(np.array([False])), begins, axis=0)
    number = graph.add("CumSum", graph.cast(begins, np.int64), graph.whole(0))  # the first is 1
    first = graph.add("Squeeze", graph.add("NonZero", begins), graph.whole([0]))
    with_nothing = graph.add("Concat", graph.whole([0]), first, axis=0)
    place = count_up(graph, graph.add("Shape", values))
    place = graph.add("Sub", place, graph.add("Gather", with_nothing, number))
    place = graph.add("Mul", place, graph.cast(letters, np.int64))
    high = graph.add("Div", place, graph.whole(STEP))
    low = graph.add("Sub", place, graph.add("Mul", high, graph.whole(STEP)))
    power = graph.add("Mul", _powers(graph, high, STEP), _powers(graph, low, 1))
    empty = graph.add(
        "ConstantOfShape",
        graph.add("Shape", with_nothing),
        value=numpy_helper.from_array(np.zeros(1, np.uint64)),
    )
    words = graph.add(
        "ScatterElements", empty, number, graph.add("Mul", values, power), reduction="add"
    )
    words = graph.cut(words, 1, ALL)
    whose = graph.add("Gather", owner, first)
    left, right = (graph.cut(words, *ends) for ends in ((0, -1), (1, ALL)))
    left = graph.add("Mul", _mixed(graph, left), _unsigned(graph, BASE))
    pairs = graph.add("Add", left, graph.add("Mul", right, _unsigned(graph, SECOND)))
    theirs, others = (graph.cut(whose, *ends) for ends in ((0, -1), (1, ALL)))
    same = graph.add("Equal", theirs, others)
    theirs, pairs = (graph.add("Compress", value, same) for value in (theirs, pairs))
    return [
        (whose, _cells(graph, words, WORD_CELLS, 0)),
        (theirs, _cells(graph, pairs, WORD_CELLS, 0)),
    ]


def _add_pieces(graph: Graph, values: str, letters: str, owner: str, n: int) -> tuple[str, str]:
    """Add runs of n characters inside a word, or with one of its ends."""
    ends = [(place, place - n + 1 or ALL) for place in range(n)]
    inside = graph.cut(letters, *ends[1])
    for more in ends[2:-1]:
        inside = graph.add("And", inside, graph.cut(letters, *more))
    hashes = graph.cut(values, *ends[0])
    for more in ends[1:]:
        hashes = graph.add("Mul", hashes, _unsigned(graph, BASE))
        hashes = graph.add("Add", hashes, graph.cut(values, *more))
    whose = graph.cut(owner, *ends[1])
    hashes, whose = (graph.add("Compress", value, inside) for value in (hashes, whose))
    hashes = graph.add("Add", hashes, _unsigned(graph, n))
    return whose, _cells(graph, hashes, PIECE_CELLS, WORD_CELLS)


def _cells(graph: Graph, hashes: str, count: int, first: int) -> str:
    """Return a cell for each hash; their number is a power of two."""
    rest = graph.add("BitwiseAnd", _mixed(graph, hashes), _unsigned(graph, count - 1))
    return graph.add("Add", graph.cast(rest, np.int64), graph.whole(first))


def _mixed(graph: Graph, hashes: str) -> str:
    for shift, factor in MIXERS:
        shifted = graph.add("BitShift", hashes, _unsigned(graph, shift), direction="RIGHT")
        hashes = graph.add("BitwiseXor", hashes, shifted)
        if factor != 1:
            hashes = graph.add("Mul", hashes, _unsigned(graph, factor))
    return hashes


def _powers(graph: Graph, exponent: str, step: int) -> str:
    base = pow(int(BASE), step, 2**64)
    table = [pow(base, place, 2**64) for place in range(STEP)]
    return graph.add("Gather", graph.constant(np.array(table, np.uint64)), exponent)


def _unsigned(graph: Graph, number: int | np.uint64) -> str:
    return graph.constant(np.array(number, np.uint64))
