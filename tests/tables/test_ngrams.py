"""Counts of words and pieces of words are those of a plain loop, and a text has them in any company."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from reliablenet.tables import ngrams
from reliablenet.tables.ngrams import CELLS, LONGEST, WORD_CELLS, count_ngrams

TEXTS = [
    "I am still waiting on my card?",
    "the the the THE",
    "",
    "?!  ...",
    "übermäßig",
    "\uff26\uff35\uff2c\uff2c width",
    "好的 谢谢",
    "a",
    "\ud800 lone surrogate",
    "two\nlines\tand\x00 a zero",
]


def plain_ngrams(text: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return words and pairs, and pieces of words with a blank for each end, by a loop."""
    words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    pieces = [
        f" {word} "[place : place + n]
        for word in words
        for n in ngrams.PIECES
        for place in range(len(word) + 3 - n)
    ]
    return [*((w,) for w in words), *pairwise(words)], pieces


def test_counts_are_those_of_a_plain_loop() -> None:
    texts = ["my card, my CARD is late", "late?", "a b"]
    counts = count_ngrams(texts)
    for row, text in enumerate(texts):
        words, pieces = plain_ngrams(text)
        there = counts[[row]].tocoo()
        found = dict(zip(there.coords[1].tolist(), there.data.tolist(), strict=True))
        in_words = [count for cell, count in found.items() if cell < WORD_CELLS]
        in_pieces = [count for cell, count in found.items() if cell >= WORD_CELLS]
        assert sorted(in_words) == sorted(Counter(words).values())
        assert sorted(in_pieces) == sorted(Counter(pieces).values())


def test_a_text_has_the_same_counts_in_any_company(monkeypatch) -> None:
    whole = count_ngrams(TEXTS * 3)
    for row, text in enumerate(TEXTS):
        assert (count_ngrams([text]) != whole[[row + len(TEXTS)]]).nnz == 0, text
    monkeypatch.setattr(ngrams, "BLOCK", 16)
    assert (count_ngrams(TEXTS * 3) != whole).nnz == 0


def test_case_width_and_marks_do_not_matter_and_words_do() -> None:
    same = count_ngrams(["Full width", "\uff46\uff55\uff4c\uff4c, WIDTH!"])
    assert (same[[0]] != same[[1]]).nnz == 0
    other = count_ngrams(["card lost", "lost card"])
    assert (other[[0]] != other[[1]]).nnz == 2  # the pair alone


@pytest.mark.parametrize("texts", [[], [""], ["", "?"]])
def test_texts_without_a_word_have_no_count(texts) -> None:
    counts = count_ngrams(texts)
    assert counts.shape == (len(texts), CELLS)
    assert counts.nnz == 0


def test_of_a_huge_text_the_beginning_is_read() -> None:
    huge = "word " * LONGEST
    counts = count_ngrams([huge, huge[:LONGEST]])
    assert (counts[[0]] != counts[[1]]).nnz == 0
    assert counts.max() == LONGEST // 5


def test_cells_are_used_evenly() -> None:
    counts = count_ngrams([f"w{number}x" for number in range(20_000)])
    used = np.unique(counts.indices[counts.indices < WORD_CELLS])
    expected = WORD_CELLS * (1 - np.exp(-20_000 / WORD_CELLS))
    assert abs(len(used) - expected) < 300
