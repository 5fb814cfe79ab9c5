"""The encoder of a table as nodes of a graph: columns in, the matrix of `TabularEncoder.compact` out.

Numbers are computed in 64 bits by the same operations in the same order, so that the matrix has the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.dates import add_dates
from reliablenet.export.onnx.graph import ML, Graph
from reliablenet.export.onnx.texts import add_texts
from reliablenet.export.onnx.trees import add_search
from reliablenet.tables.piecewise import PiecewiseEncoder
from reliablenet.tables.tabular import TabularEncoder


def add_encoder(graph: Graph, encoder: TabularEncoder) -> tuple[str, str]:
    """Return the encoded rows, a matrix of 32 bits, and which rows can be read: others are never accepted."""
    if type(encoder) not in (TabularEncoder, PiecewiseEncoder):
        raise InvalidParameterError(
            f"A graph can hold a TabularEncoder or a PiecewiseEncoder; got {type(encoder).__name__}."
        )
    blocks, sound = _Blocks(graph), []
    given = [graph.number(column) for column in encoder.numbers_]
    parts = list(given)
    if encoder.dates_:
        dates, spans, readable = add_dates(graph, encoder.date_columns_)
        parts.append(dates)
        given += spans
        sound += [readable] if readable else []
    if given:
        sound.append(_all_finite(graph, graph.join(given)))
    if parts:
        numbers = graph.join(parts)
        missing = graph.add("IsNaN", numbers)
        filled = graph.add("Where", missing, graph.constant(_row(encoder.medians_)), numbers)
        if isinstance(encoder, PiecewiseEncoder):
            _add_pieces(blocks, encoder, numbers, filled, missing)
        else:
            places = range(len(encoder.medians_))
            plain = _standardised(graph, encoder, filled, places)
            sound.append(_all_finite(graph, blocks.add(plain, _keys(places, 0))))
    _add_categories(blocks, encoder)
    if encoder.texts_:
        texts, readable = add_texts(graph, encoder.text_columns_)
        first = len(encoder.medians_) + len(encoder.categories_)
        for place, (text, width) in enumerate(
            zip(texts, encoder.text_columns_.widths, strict=True), start=first
        ):
            blocks.add(text, [(place, number) for number in range(width)])
        sound.append(readable)
    return blocks.matrix(), _all_of(graph, sound)


class _Blocks:
    """Columns of the matrix as they come, and where each belongs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._parts: list[str] = []
        self._keys: list[tuple[int, int]] = []

    def add(self, value: str, keys: Sequence[tuple[int, int]]) -> str:
        """Add columns, each with the place of its source and its place among those of that source."""
        plain = self.graph.cast(value, np.float32)
        self._parts.append(plain)
        self._keys += keys
        return plain

    def matrix(self) -> str:
        """Return all columns in their order."""
        joined = self.graph.join(self._parts)
        order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
        if order == list(range(len(order))):
            return joined
        return self.graph.take(joined, order)


def _add_pieces(
    blocks: _Blocks, encoder: PiecewiseEncoder, numbers: str, filled: str, missing: str
) -> None:
    """Add where numbers lie among their bins, or themselves, and their marks."""
    graph = blocks.graph
    places = range(len(encoder.medians_))
    binned = [place for place in places if encoder.edges_[place]]
    plain = [place for place in places if not encoder.edges_[place]]
    if binned:
        edges = [encoder.edges_[place] for place in binned]
        blocks.add(_positions(graph, graph.take(filled, binned), edges), _keys(binned, 0))
    if plain:
        within = _clip(
            graph, graph.take(filled, plain), np.array([encoder.ranges_[i] for i in plain]).T
        )
        blocks.add(_standardised(graph, encoder, within, plain), _keys(plain, 0))
    marked = [place for place in places if encoder.dominant_[place] is not None]
    if marked:
        values = graph.constant(_row([encoder.dominant_[place] for place in marked]))
        # what is missing is NaN there, which equals nothing
        equal = graph.add("Equal", graph.take(numbers, marked), values)
        blocks.add(equal, _keys(marked, 1))
    gaps = [place for place in places if encoder.number_gaps_[place]]
    if gaps:
        blocks.add(graph.take(missing, gaps), _keys(gaps, 2))


def _positions(graph: Graph, numbers: str, edges: Sequence[Sequence[float]]) -> str:
    """Return where numbers lie among edges, as `numpy.interp` computes it."""
    ends = np.array([[own[0] for own in edges], [own[-1] for own in edges]])
    numbers = _clip(graph, numbers, ends)
    piece = add_search(graph, numbers, [own[1:] for own in edges])
    starts = np.concatenate(edges)
    slopes = np.concatenate([[*(1.0 / np.diff(own)), 0.0] for own in edges])
    counts = np.concatenate([np.arange(len(own), dtype=np.float64) for own in edges])
    start, slope, count = (
        graph.add("Gather", graph.constant(table), piece) for table in (starts, slopes, counts)
    )
    return graph.add("Add", graph.add("Mul", slope, graph.add("Sub", numbers, start)), count)


def _standardised(
    graph: Graph, encoder: TabularEncoder, numbers: str, places: Sequence[int]
) -> str:
    means, scales = (
        graph.constant(_row([values[place] for place in places]))
        for values in (encoder.means_, encoder.scales_)
    )
    return graph.add("Div", graph.add("Sub", numbers, means), scales)


def _add_categories(blocks: _Blocks, encoder: TabularEncoder) -> None:
    """Add a column for each level; for a text that has none, all of them are zero."""
    graph = blocks.graph
    pieces = encoder if isinstance(encoder, PiecewiseEncoder) else None
    for number, (column, levels) in enumerate(
        zip(encoder.categories_, encoder.levels_, strict=True)
    ):
        if "" in levels:
            raise InvalidParameterError(
                f"Column {column!r} has the empty text among its values, which in a graph means that a "
                "value is missing. Give it a name, such as 'none', and fit the model again."
            )
        if pieces is None:
            width = len(levels)
            missing, other = encoder.modes_[number], width
        else:
            gap, rare = pieces.category_gaps_[number], pieces.rare_[number]
            width = len(levels) + gap + rare
            missing = len(levels) if gap else width
            other = len(levels) + gap if rare else width
        place = graph.add(
            "LabelEncoder",
            graph.text(column),
            domain=ML,
            keys_strings=[*levels, ""],
            values_int64s=[*range(len(levels)), missing],
            default_int64=other,
        )
        flat = graph.add("Squeeze", place, graph.constant(np.array([1])))
        marks = graph.add(
            "OneHot",
            flat,
            graph.constant(np.array([width])),
            graph.constant(np.array([0.0, 1.0], np.float32)),
        )
        source = len(encoder.medians_) + number
        blocks.add(marks, [(source, level) for level in range(width)])


def _all_finite(graph: Graph, numbers: str) -> str:
    """Return for each row whether all numbers are finite or missing."""
    strange = graph.cast(graph.add("IsInf", numbers), np.float32)
    axis = graph.constant(np.array([1]))
    worst = graph.add("ReduceMax", strange, axis, keepdims=0)
    return graph.add("Less", worst, graph.constant(np.array(0.5, np.float32)))


def _all_of(graph: Graph, conditions: Sequence[str]) -> str:
    """Return for each row whether all conditions hold."""
    if not conditions:
        size = graph.add("Shape", next(iter(graph.inputs)), start=0, end=1)
        return graph.add("Expand", graph.constant(np.array([True])), size)
    found, *others = conditions
    for other in others:
        found = graph.add("And", found, other)
    return found


def _clip(graph: Graph, numbers: str, ends: Any) -> str:
    low, high = (graph.constant(_row(end)) for end in ends)
    return graph.add("Min", graph.add("Max", numbers, low), high)


def _row(values: Any) -> Any:
    return np.array(values, np.float64)[None]


def _keys(places: Sequence[int], part: int) -> list[tuple[int, int]]:
    return [(place, part) for place in places]
