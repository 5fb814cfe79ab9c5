"""Free text as numbers: hashed TF-IDF in few dimensions, or an embedding of the user's own.

Both are fitted on training rows alone, and give a text the same numbers alone and with others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from reliablenet.errors import InvalidDataError, ModelFileError
from reliablenet.tables.ngrams import CELLS, LONGEST, WORD_CELLS, count_ngrams

Embedding = Callable[[list[str]], Any]
Matrix = NDArray[np.float32]

DIMENSIONS = 256
ROWS_EACH = 8  # training texts for each dimension, at least
SMALLEST = 1e-4  # less than this all texts are alike
LEAST_ROWS = 2  # a cell that fewer training texts have tells nothing of others
FITTED_ROWS, FITTED_CHARACTERS = 20_000, 2**23  # from which cells and directions are learned
TOGETHER = 4096  # texts turned into numbers at once
PROBES = (
    "When will my order arrive?",
    "The invoice is wrong: 2 x 40.00 were charged.",
    "Vielen Dank, alles bestens",
    "a",
)
CLOSE = 1e-3  # how far an embedding of the same texts may be off, of its largest number

# The logarithm of a count is looked up, so that its bits depend on the count alone.
GROWTH = np.array([0.0, *(1.0 + math.log(count) for count in range(1, 1001))])


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """Words and pieces of words, weighed by how rare they are, in the directions in which training texts vary.

    Parameters
    ----------
    cells : int array of shape (k,)
        Hashed cells (`count_ngrams`) that at least two training texts have, ascending. No word can be
        read from them.
    weights : float array of shape (k,)
        Inverse document frequencies.
    rarest : float array of shape (1,)
        That of all other cells, as if one training text had each.
    directions : float16 array of shape (k, d)
    middle : float32 array of shape (d,)
        Mean over training texts, which is taken off.

    Examples
    --------
    >>> from reliablenet.tables.free_text import TextFeatures
    >>> texts = ["my card is late", "the card never came", "a refund please", "refund my money"]
    >>> features = TextFeatures.fit(texts, dimensions=2)
    >>> features.transform(["where is my refund", "", None]).shape
    (3, 2)
    """

    kind: ClassVar[str] = "tf-idf"

    cells: NDArray[np.int32]
    weights: NDArray[np.float64]
    rarest: NDArray[np.float64]
    directions: NDArray[np.float16]
    middle: Matrix

    def __post_init__(self) -> None:
        k, d = self.directions.shape if self.directions.ndim == 2 else (-1, -1)
        numbers = (self.weights, self.rarest, self.directions, self.middle)
        sound = (
            self.cells.shape == self.weights.shape == (k,)
            and self.cells.dtype == np.int32
            and bool((np.diff(self.cells) > 0).all())
            and (k == 0 or (self.cells[0] >= 0 and self.cells[-1] < CELLS))
            and self.rarest.shape == (1,)
            and self.middle.shape == (d,)
            and self.weights.dtype == self.rarest.dtype == np.float64
            and self.directions.dtype == np.float16
            and self.middle.dtype == np.float32
            and all(bool(np.isfinite(array).all()) for array in numbers)
            and bool((self.weights > 0.0).all() and (self.rarest > 0.0).all())
        )
        if not sound:
            raise InvalidDataError("The arrays of text features do not fit together.")

    @classmethod
    def fit(cls, texts: Sequence[str | None], dimensions: int = DIMENSIONS) -> Self | None:
        """Learn cells, weights and directions; None if texts have nothing in common.

        Of more than 20,000 texts, or of long ones, an even sample is taken.
        """
        counts = count_ngrams(_sample([text for text in texts if text]))
        rows = counts.shape[0]
        having = np.bincount(counts.indices, minlength=CELLS)
        cells = np.flatnonzero(having >= LEAST_ROWS).astype(np.int32)
        weights = np.log((1.0 + rows) / (1.0 + having[cells])) + 1.0
        rarest = np.array([math.log((1.0 + rows) / LEAST_ROWS) + 1.0])
        width = min(dimensions, len(cells) - 1, rows - 1, max(rows // ROWS_EACH, 2))
        if width < 1:
            return None
        blank = np.zeros((len(cells), 0), np.float16)
        plain = cls(cells, weights, rarest, blank, np.zeros(0, np.float32))
        matrix = plain.weigh(counts)
        directions = _directions(matrix, width)
        placed = matrix @ directions
        size = float(np.sqrt(np.mean((placed - placed.mean(0)) ** 2, dtype=np.float64)))
        if size < SMALLEST:
            return None
        short = (directions / np.float32(size)).astype(np.float16)  # half of a file
        middle = (matrix @ short.astype(np.float32)).mean(0, dtype=np.float64)
        return cls(cells, weights, rarest, short, middle.astype(np.float32))

    @property
    def width(self) -> int:
        """How many numbers a text gives."""
        return len(self.middle)

    def weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return TF-IDF weights of shape (n, k): those of words have length 1, and those of pieces.

        Cells that training lacked count in the length: a text of unknown words comes out short.
        """
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        halves = 2 * rows + (counts.indices >= WORD_CELLS)
        weight, place = self._lookup
        data = GROWTH[np.minimum(counts.data, len(GROWTH) - 1)] * weight[counts.indices]
        lengths = np.sqrt(np.bincount(halves, data * data, minlength=2 * counts.shape[0]))
        known = place[counts.indices] >= 0
        starts = np.concatenate([[0], np.cumsum(known)])[counts.indptr]
        values = (data / lengths[halves])[known].astype(np.float32)
        shape = (counts.shape[0], len(self.cells))
        return sparse.csr_array((values, place[counts.indices][known], starts), shape=shape)

    def transform(self, texts: Sequence[str | None]) -> Matrix:
        """Return numbers of shape (n, d); zeros, which is the middle, where a text has no word."""
        found = np.zeros((len(texts), self.width), np.float32)
        for start in range(0, len(texts), TOGETHER):
            counts = count_ngrams([text or "" for text in texts[start : start + TOGETHER]])
            there = np.diff(counts.indptr) > 0
            placed = self.weigh(counts) @ self._wide - self.middle
            found[start : start + TOGETHER][there] = placed[there]
        return found

    @cached_property
    def _wide(self) -> Matrix:
        return self.directions.astype(np.float32)

    @cached_property
    def _lookup(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Weight of each cell, and its place among those that are known, -1 for others."""
        weight, place = np.full(CELLS, self.rarest[0]), np.full(CELLS, -1, np.int32)
        weight[self.cells] = self.weights
        place[self.cells] = np.arange(len(self.cells))
        return weight, place

    def __getstate__(self) -> dict[str, Any]:
        return self.to_arrays()

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        names = ("cells", "weights", "rarest", "directions", "middle")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], embedding: Any = None) -> Self:
        """Return what `to_arrays` described; refuse what no `fit` can have made."""
        return cls(**arrays)


@dataclass(frozen=True, eq=False)
class EmbeddedText:
    """Texts as an embedding of the user's own gives them, on a common scale.

    Parameters
    ----------
    embedding : callable
        From a list of n texts to an array of shape (n, d).
    middle : float32 array of shape (d,)
        Mean over training texts, which is taken off.
    scale : float32 array of shape (1,)
        By which all numbers are divided.
    probes : float32 array of shape (4, d)
        The embedding of four fixed sentences, by which it is recognised.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.free_text import EmbeddedText
    >>> def lengths(texts):
    ...     return np.array([[len(text), text.count(" ")] for text in texts])
    >>> EmbeddedText.fit(["one two", "three", "four"], lengths).transform(["five", None]).shape
    (2, 2)
    """

    kind: ClassVar[str] = "embedding"

    embedding: Embedding
    middle: Matrix
    scale: Matrix
    probes: Matrix

    @classmethod
    def fit(cls, texts: Sequence[str | None], embedding: Embedding) -> Self:
        """Learn mean and scale; refuse an embedding whose numbers depend on the other texts."""
        there = [text for text in texts if text]
        placed = _embed(embedding, there)
        probes = _embed(embedding, list(PROBES))
        alone = np.concatenate([_embed(embedding, [text]) for text in PROBES])
        if not _alike(alone, probes):
            raise InvalidDataError(
                "`embedding` must give a text the same numbers alone and with other texts; it gave some "
                "sentences other numbers. Embed each text by itself."
            )
        middle = placed.mean(0, dtype=np.float64)
        size = float(np.sqrt(np.mean((placed - middle) ** 2)))
        return cls(
            embedding, middle.astype(np.float32), np.array([size or 1.0], np.float32), probes
        )

    @property
    def width(self) -> int:
        """How many numbers a text gives."""
        return len(self.middle)

    def transform(self, texts: Sequence[str | None]) -> Matrix:
        """Return numbers of shape (n, d); zeros, which is the middle, where there is no text."""
        found = np.zeros((len(texts), self.width), np.float32)
        there = np.array([bool(text and text.strip()) for text in texts], bool)
        wanted = [text for text, is_there in zip(texts, there, strict=True) if is_there and text]
        placed = [
            _embed(self.embedding, wanted[start : start + TOGETHER])
            for start in range(0, len(wanted), TOGETHER)
        ]
        if placed:
            numbers = np.concatenate(placed)
            if numbers.shape[1] != self.width:
                raise InvalidDataError(
                    f"`embedding` gave {self.width} numbers a text when the model was fitted; now it "
                    f"gives {numbers.shape[1]}."
                )
            found[there] = (numbers - self.middle) / self.scale
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name; the embedding itself is code, which a file cannot hold."""
        return {"middle": self.middle, "scale": self.scale, "probes": self.probes}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], embedding: Any = None) -> Self:
        """Return what `to_arrays` described, around the embedding, if that is the same one."""
        if embedding is None:
            raise ModelFileError(
                "This model reads text with an embedding of your own; a file cannot hold code. Pass it: "
                "load(path, embedding=...)."
            )
        found = cls(embedding, **arrays)
        shape = found.probes.shape
        if shape != (len(PROBES), found.width) or not found.scale.shape == (1,) or found.scale <= 0:
            raise InvalidDataError("The arrays of an embedding do not fit together.")
        now = _embed(embedding, list(PROBES))
        if now.shape != shape or not _alike(now, found.probes):
            raise ModelFileError(
                "`embedding` of load is not the one that the model was fitted with: fixed sentences get "
                "other numbers. Pass that one, in the same version."
            )
        return found


KINDS: dict[str, type[TextFeatures] | type[EmbeddedText]] = {
    TextFeatures.kind: TextFeatures,
    EmbeddedText.kind: EmbeddedText,
}


def _sample(texts: list[str]) -> list[str]:
    """Return texts, or an even sample of them that is small enough to learn from."""
    size = sum(min(len(text), LONGEST) for text in texts)
    step = max(1, -(-len(texts) // FITTED_ROWS), -(-size // FITTED_CHARACTERS))
    return texts[::step]


def _directions(matrix: sparse.csr_array, width: int) -> Matrix:
    """Return the right singular vectors, of shape (columns, width), on one thread for the same bits."""
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        found = randomized_svd(matrix, width, n_iter=2, random_state=0)[2]
    return np.ascontiguousarray(found.T, np.float32)


def _embed(embedding: Embedding, texts: list[str]) -> Matrix:
    found = embedding(texts)
    numbers = np.asarray(found.detach().cpu() if hasattr(found, "detach") else found)
    if (
        numbers.ndim != 2
        or len(numbers) != len(texts)
        or numbers.shape[1] == 0
        or numbers.dtype.kind not in "fiu"
        or not np.isfinite(numbers).all()
    ):
        raise InvalidDataError(
            f"`embedding` must return finite numbers of shape (n, d) for n texts; for {len(texts)} texts "
            f"it returned {numbers.dtype} of shape {numbers.shape}."
        )
    return numbers.astype(np.float32)


def _alike(one: Matrix, other: Matrix) -> bool:
    return bool(np.abs(one - other).max() <= CLOSE * max(float(np.abs(other).max()), 1e-30))
