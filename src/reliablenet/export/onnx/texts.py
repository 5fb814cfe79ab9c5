"""Columns of free text inside a graph: the numbers of `TextFeatures`, to the bit.

Sums of 32 bits depend on their order. Here too the cells of a text are added one after the other, in ascending
order, whatever the number of threads; so trees meet the very numbers that they were grown on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from reliablenet._listing import listed
from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.characters import add_characters, count_up
from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.words import add_cells
from reliablenet.export.parts import TEXT
from reliablenet.tables.free_text import GROWTH, TextFeatures
from reliablenet.tables.ngrams import CELLS, WORD_CELLS
from reliablenet.tables.text_columns import TextColumns

TOGETHER = 64  # rows whose characters are looked at together, so that memory stays bounded
STRIDE = (
    1 << CELLS.bit_length()
)  # a text's cells are numbered from a multiple of this, and begin at 1
LEAST_SQUARE = 1e-300  # what is divided by its root is zero


def add_texts(graph: Graph, texts: TextColumns) -> tuple[list[str], str]:
    """Return the numbers of each column, and of which rows all texts can be read, of shape (n,)."""
    readers = [reader for reader in texts.readers if isinstance(reader, TextFeatures)]
    if len(readers) < len(texts.readers):
        raise InvalidParameterError(
            f"A graph cannot hold an embedding of your own, which is code; it reads {listed(texts.columns)}. "
            "Fit the model without `embedding`, drop these columns, or serve the model file."
        )
    given = graph.join([graph.text(column, TEXT) for column in texts.columns])
    rows = graph.add("Shape", given, start=0, end=1)
    most = graph.add("Max", graph.add("Min", rows, graph.whole([TOGETHER])), graph.whole([1]))
    lacking = graph.add("Mod", graph.add("Neg", rows), most)
    columns = graph.whole([len(readers)])
    nothing = graph.add(
        "Expand",
        graph.constant(np.array([""])),
        graph.add("Concat", lacking, columns, axis=0),
    )
    shape = graph.add("Concat", graph.whole([-1]), most, columns, axis=0)
    some = graph.add("Reshape", graph.add("Concat", given, nothing, axis=0), shape)
    *blocks, sound = (
        graph.add("Slice", _unstack(graph, value), graph.whole([0]), rows)
        for value in graph.scan(_part(graph, readers, texts.gaps), some)
    )
    return blocks, sound


def _unstack(graph: Graph, value: str) -> str:
    """Return rows of rows as rows."""
    rest = graph.add("Shape", value, start=2)
    return graph.add("Reshape", value, graph.add("Concat", graph.whole([-1]), rest, axis=0))


def _part(outer: Graph, readers: Sequence[TextFeatures], gaps: Sequence[bool]) -> Graph:
    """Return the part that reads some rows of texts, of shape (r, c)."""
    graph = outer.part()
    given = graph.enter(TensorProto.STRING)
    rows = graph.add("Shape", given, start=0, end=1)
    flat = graph.add("Reshape", graph.add("Transpose", given, perm=[1, 0]), graph.whole([-1]))
    read = add_characters(graph, flat)
    weighed = _weigh(graph, add_cells(graph, read), flat, rows, readers)
    by_column = graph.add("Concat", graph.whole([len(readers)]), rows, graph.whole([1]), axis=0)
    bounds = graph.cut(weighed.bounds, 0, -1), graph.cut(weighed.bounds, 1, 2**62)
    split = [
        graph.add("Reshape", value, by_column)
        for value in (*bounds, weighed.has_words, read.blank, read.strange)
    ]
    for place, (reader, gap) in enumerate(zip(readers, gaps, strict=True)):
        begin, end, has_words, blank, _ = (
            graph.add("Gather", value, graph.whole(place)) for value in split
        )
        block = graph.scan(_sum(graph, weighed, reader), begin, end)[0]
        block = graph.add("Sub", block, graph.constant(reader.middle))
        block = graph.add("Where", has_words, block, graph.constant(np.zeros(1, np.float32)))
        if gap:
            block = graph.join([block, graph.cast(blank, np.float32)])
        graph.leave(block, TensorProto.FLOAT)
    strange = graph.add(
        "ReduceMax", graph.cast(split[-1], np.int32), graph.whole([0, 2]), keepdims=0
    )
    graph.leave(
        graph.add("Equal", strange, graph.constant(np.array(0, np.int32))), TensorProto.BOOL
    )
    return graph


@dataclass(frozen=True)
class _Weighed:
    """Names of values: the different cells of all texts, text by text and ascending.

    Before those of a text stands an empty one, of value 0.
    """

    values: str  # of shape (u, 1)
    places: str  # of shape (u,): the row of each in the table of directions
    bounds: str  # of shape (R + 1,): where the empty ones stand, and the end
    has_words: str  # of shape (R, 1)


def _weigh(
    graph: Graph,
    cells: Sequence[tuple[str, str]],
    texts: str,
    rows: str,
    readers: Sequence[TextFeatures],
) -> _Weighed:
    """Count cells and weigh them, as `TextFeatures.weigh` does."""
    one = graph.whole([1])
    size = graph.add("Shape", texts)
    empty = count_up(graph, graph.add("Add", size, one))
    keys = [(empty, graph.whole(0))]
    keys += [(owner, graph.add("Add", cell, graph.whole(1))) for owner, cell in cells]
    joined = graph.add(
        "Concat",
        *(
            graph.add("Add", graph.add("Mul", owner, graph.whole(STRIDE)), cell)
            for owner, cell in keys
        ),
        axis=0,
    )
    size_all = graph.add("Shape", joined)
    ascending = graph.add_several("TopK", 2, joined, size_all, axis=0, largest=0, sorted=1)[0]
    before, after = graph.cut(ascending, 0, -1), graph.cut(ascending, 1, 2**62)
    new = graph.add("Not", graph.add("Equal", before, after))
    new = graph.add("Concat", graph.constant(np.array([True])), new, axis=0)
    begins = graph.add("Squeeze", graph.add("NonZero", new), graph.whole([0]))
    different = graph.add("Gather", ascending, begins)
    text = graph.add("Div", different, graph.whole(STRIDE))
    cell = graph.add("Sub", different, graph.add("Mul", text, graph.whole(STRIDE)))
    is_empty = graph.add("Equal", cell, graph.whole(0))
    bounds = graph.add("Squeeze", graph.add("NonZero", is_empty), graph.whole([0]))
    text, cell = graph.cut(text, 0, -1), graph.cut(cell, 0, -1)
    count = graph.add("Sub", graph.cut(begins, 1, 2**62), graph.cut(begins, 0, -1))
    count = graph.add("Min", count, graph.whole(len(GROWTH) - 1))
    column = graph.add("Div", text, rows)
    place = graph.add("Add", graph.add("Mul", column, graph.whole(STRIDE)), cell)
    weights, places = (np.concatenate(table) for table in zip(*map(_tables, readers), strict=True))
    weight = graph.add("Gather", graph.constant(weights), place)
    data = graph.add("Mul", graph.add("Gather", graph.constant(GROWTH), count), weight)
    is_piece = graph.cast(graph.add("Greater", cell, graph.whole(WORD_CELLS)), np.int64)
    half = graph.add("Add", graph.add("Mul", text, graph.whole(2)), is_piece)
    nothing = graph.add(
        "Expand", graph.constant(np.zeros(1)), graph.add("Mul", size, graph.whole([2]))
    )
    squares = graph.add(
        "ScatterElements", nothing, half, graph.add("Mul", data, data), reduction="add"
    )
    lengths = graph.add("Sqrt", graph.add("Max", squares, graph.constant(np.array(LEAST_SQUARE))))
    values = graph.add("Div", data, graph.add("Gather", lengths, half))
    total = graph.add("ReduceMax", graph.add("Reshape", squares, graph.whole([-1, 2])), one)
    return _Weighed(
        graph.add("Unsqueeze", graph.cast(values, np.float32), one),
        graph.add("Gather", graph.constant(places), place),
        bounds,
        graph.add("Greater", total, graph.constant(np.array(0.0))),
    )


def _tables(reader: TextFeatures) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return weights of cells, and their rows in the table of directions: the first for what is unknown."""
    weights, places = np.full(STRIDE, reader.rarest[0]), np.zeros(STRIDE, np.int32)
    weights[0] = 0.0
    weights[reader.cells + 1] = reader.weights
    places[reader.cells + 1] = np.arange(len(reader.cells)) + 1
    return weights, places


def _sum(outer: Graph, weighed: _Weighed, reader: TextFeatures) -> Graph:
    """Return the part that adds the directions of one text's cells, one after the other."""
    blank = np.zeros((1, reader.width), np.float16)
    directions = outer.constant(np.concatenate([blank, reader.directions]))
    directions = outer.cast(directions, np.float32)
    graph = outer.part()
    begin, end = graph.enter(TensorProto.INT64), graph.enter(TensorProto.INT64)
    values, places = (
        graph.add("Slice", value, begin, end) for value in (weighed.values, weighed.places)
    )
    each = graph.add("Mul", graph.add("Gather", directions, places), values)
    graph.leave(graph.add("ReduceSum", each, graph.whole([0]), keepdims=0), TensorProto.FLOAT)
    return graph
