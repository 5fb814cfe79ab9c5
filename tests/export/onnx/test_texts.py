"""Free text in a graph gives the very numbers that it gives here."""

# ruff: noqa: RUF001
from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from graphs import open_part
from onnx import TensorProto

from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.texts import TOGETHER, add_texts
from reliablenet.export.onnx.trial import feeds
from reliablenet.tables.ngrams import LONGEST
from reliablenet.tables.text_columns import TextColumns

WORDS = [
    "my",
    "card",
    "is",
    "late",
    "and",
    "never",
    "came",
    "please",
    "send",
    "the",
    "money",
    "back",
    "to",
    "account",
    "number",
    "42",
]
FOREIGN = [
    "Straße",
    "ÉCOLE",
    "naïve",
    "ﬁnd",
    "№½",
    "Ａｂｃ１２",
    "日本語",
    "한국어",
    "क़लम",
    "e\u0301",
    "👍🏽",
    "3²",
]
DRAW = np.random.default_rng(0)


def draw_texts(n: int, foreign: float = 0.2) -> list[str]:
    def word() -> str:
        return str(DRAW.choice(FOREIGN if DRAW.random() < foreign else WORDS))

    ends = ["", "!", "...", " ", "\u00a0\n"]
    return [
        " ".join(word() for _ in range(DRAW.integers(1, 12))) + str(DRAW.choice(ends))
        for _ in range(n)
    ]


def fitted() -> TextColumns:
    texts = TextColumns()
    first = [*draw_texts(200), None, " "]
    assert texts.add(pd.Series(first, dtype=object), "request") == ""
    assert texts.add(pd.Series(draw_texts(202), dtype=object), "answer") == ""
    assert texts.gaps == [True, False]
    return texts


TEXTS = fitted()
AWKWARD = [
    *(
        "",
        None,
        " \t\u3000",
        "!!!",
        "a",
        "  card",
        "card  ",
        "I\u0307 İ",
        "ﷺ",
        "Ⅷ ⅒ ㎯",
        "ＣＡＲＤ",
        "x\x00y",
    ),
    *(
        "ｶﾞ",
        "cafe\u0301s",
        "A\u030aNGSTROM",
        "\u0301card",
        "card\u0301\u0301 ",
        "n\u0303a",
        "card" * 999,
    ),
    "ab " * (LONGEST // 3 + 9),
    "\u3000" * 9 + "card late " * (LONGEST // 10 + 9),
]


def table(request: list[str | None]) -> pd.DataFrame:
    return pd.DataFrame({"request": request, "answer": request[::-1]}, dtype=object)


def numbers(rows: pd.DataFrame, part: int) -> np.ndarray:
    graph = Graph()
    blocks, _ = add_texts(graph, TEXTS)
    session = open_part(graph, blocks[part], TensorProto.FLOAT)
    return session.run(None, feeds(session, rows))[0]


@pytest.mark.parametrize("part", [0, 1], ids=["with gaps", "without"])
@pytest.mark.parametrize("n", [1, TOGETHER - 1, TOGETHER, 3 * TOGETHER + 5])
def test_numbers_have_the_same_bits(part, n) -> None:
    rows = table(draw_texts(n))
    expected = list(TEXTS.blocks(rows))[part]
    assert np.array_equal(numbers(rows, part), expected)


@pytest.mark.parametrize("part", [0, 1])
def test_awkward_texts_are_read_as_they_are_here(part) -> None:
    rows = table(AWKWARD)
    graph = Graph()
    _, readable = add_texts(graph, TEXTS)
    session = open_part(graph, readable, TensorProto.BOOL)
    sound = session.run(None, feeds(session, rows))[0]
    found, expected = numbers(rows, part), list(TEXTS.blocks(rows))[part]
    assert np.array_equal(found[sound], expected[sound])
    unreadable = AWKWARD.index("card\u0301\u0301 ")  # two marks on one letter
    assert np.flatnonzero(~sound).tolist() == sorted([unreadable, len(AWKWARD) - 1 - unreadable])


def test_rows_that_cannot_be_read_are_told() -> None:
    rows = table(["my card", "ΟΔΟΣ", "my card \u1112\u1161\u11ab", "card"])
    graph = Graph()
    _, readable = add_texts(graph, TEXTS)
    session = open_part(graph, readable, TensorProto.BOOL)
    assert session.run(None, feeds(session, rows))[0].tolist() == [True, False, False, True]


def test_threads_do_not_change_the_bits() -> None:
    import onnxruntime

    rows = table(draw_texts(200))
    graph = Graph()
    blocks, _ = add_texts(graph, TEXTS)
    one = open_part(graph, blocks[1], TensorProto.FLOAT)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 4
    content = graph.finish({}, "0").SerializeToString()
    four = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    given = feeds(one, rows)
    for _ in range(5):
        assert np.array_equal(four.run(None, given)[0], one.run(None, given)[0])


def test_an_embedding_of_ones_own_is_refused() -> None:
    texts = TextColumns()
    texts.add(pd.Series(["a b", "c"]), "note", lambda texts: np.array([[len(t)] for t in texts]))
    with pytest.raises(
        InvalidParameterError, match=r"cannot hold an embedding of your own.*'note'"
    ):
        add_texts(Graph(), texts)
