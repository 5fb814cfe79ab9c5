"""Rows that a model has seen: they prove nothing about it, and are recognised when they come back.

Of each row 64 bits are kept. Where single rows recur by chance, the table as a whole is recognised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays

from reliablenet._warn import warn_user
from reliablenet.errors import InvalidDataError, ReuseWarning
from reliablenet.methods.layers import find_encoder, methods_inside
from reliablenet.tables.closeness import same_as_whole
from reliablenet.tables.copies import (
    chance_share,
    chance_share_among,
    hash_rows,
    more_than_chance,
)
from reliablenet.tables.folds import Fold, Folds
from reliablenet.tables.values import read_numbers

PARTS = "parts"  # in the file, how many rows each part has
NOTHING = "rows that trained, tuned or chose a model prove nothing about it."
TOLD = {  # who gave such rows: what they are, and what to do
    "certify": (
        "rows were given to `fit` already",
        "Certify on rows that it has not seen; leave these out if the others are fresh.",
    ),
    "fit": (
        "rows of `certification` are rows that this fit trains or chooses on",
        "Leave `certification` out, and `fit` cuts a fold of its own from X; or give rows that are "
        "neither in X nor in `selection`.",
    ),
}

Hashes = NDArray[np.uint64]
NONE: Hashes = np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of the rows given to `fit`, without their labels.

    Attributes
    ----------
    parts : tuple of arrays of uint64
        Rows that trained or tuned the model, ascending in each part: the training fold, the selection
        fold, and before them those of a fitted model inside. One part where that is not known.
    certified : array of uint64
        Rows of the certification fold, ascending.
    twins : int
        How many of all these rows agree with another one: in tables of few or coarse columns fresh
        rows do so too.
    beside : array of uint64
        Rows of certification groups beside the one that was drawn, ascending: they hang together with it.
    trained : array of uint64
        All rows of the parts, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.seen import SeenRows
    >>> from reliablenet.tables.copies import hash_rows
    >>> past = hash_rows(np.arange(100.0)[:, None])
    >>> seen = SeenRows.of([past[:80]], past[80:])
    >>> seen.check(hash_rows(np.arange(200.0, 300.0)[:, None]))
    >>> int(seen.recognise(hash_rows(np.arange(90.0, 190.0)[:, None])).sum())
    10
    """

    parts: tuple[Hashes, ...]
    certified: Hashes
    twins: int
    beside: Hashes = field(default_factory=lambda: NONE)
    trained: Hashes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        one = len(self.parts) == 1
        trained = self.parts[0] if one else np.sort(np.concatenate([NONE, *self.parts]))
        object.__setattr__(self, "trained", trained)

    @classmethod
    def of(
        cls, trained: Sequence[Hashes], certified: Hashes = NONE, beside: Hashes | None = None
    ) -> SeenRows:
        """Put the hashes of the rows of a fit together; those that trained come in one or more parts."""
        more = NONE if beside is None else beside
        every = np.concatenate([*trained, certified, more])
        _, place, counts = np.unique(every, return_inverse=True, return_counts=True)
        twins = int((counts[place] > 1).sum())
        parts = tuple(np.sort(part) for part in trained if len(part))
        return cls(parts, np.sort(certified), twins, np.sort(more))

    def around(self, inner: SeenRows) -> SeenRows:
        """Return these rows, of a rule, with those that trained the fitted model inside it.

        Rows that agree by chance may do so with either, so that the rates of twins add up.

        Examples
        --------
        >>> import numpy as np
        >>> from reliablenet.methods.seen import SeenRows
        >>> from reliablenet.tables.copies import hash_rows
        >>> past = hash_rows(np.arange(100.0)[:, None])
        >>> rule, model = SeenRows.of([], past[:20]), SeenRows.of([past[20:90]], past[90:])
        >>> int(rule.around(model).recognise(past).sum())
        90
        """
        rate = self.twins / max(len(self), 1) + inner.twins / max(len(inner), 1)
        n = len(self) + len(inner.trained)
        parts = (*inner.parts, *self.parts)
        return SeenRows(parts, self.certified, min(math.ceil(rate * n), n), self.beside)

    def __len__(self) -> int:
        return len(self.trained) + len(self.certified) + len(self.beside)

    def recognise(self, hashes: Hashes, *, trained_only: bool = False) -> NDArray[np.bool_]:
        """Tell which rows are among those seen."""
        known = _among(hashes, self.trained)
        if trained_only:
            return known
        return known | _among(hashes, self.certified) | _among(hashes, self.beside)

    def check(self, hashes: Hashes, *, trained_only: bool = False, to: str = "certify") -> None:
        """Raise if rows to certify on are rows that the model has seen, or the same as a whole.

        ``to`` says who is told: whoever called `certify`, or `fit` with a certification fold of his own.
        """
        known = self.recognise(hashes, trained_only=trained_only)
        if known.any():
            share = chance_share_among(hashes, len(self))
            refuse_seen(int(known.sum()), len(known), self, share, int(known.argmax()), to)
            parts = self.parts if trained_only else (*self.parts, self.certified, self.beside)
            refuse_whole(hashes, parts, int(known.sum()), len(known), to)

    def to_bytes(self) -> bytes:
        """Return the hashes as safetensors."""
        arrays = {"trained": np.concatenate([NONE, *self.parts]), "certified": self.certified}
        if len(self.beside):
            arrays["beside"] = self.beside
        sizes = {PARTS: json.dumps([len(part) for part in self.parts])}
        more = sizes if len(self.parts) > 1 else None  # earlier versions look past it
        return bytes(save_arrays(arrays | {"twins": np.array([self.twins], np.int64)}, more))

    @classmethod
    def from_bytes(cls, content: bytes) -> SeenRows:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(content)
        types = {name: (values.dtype, values.ndim) for name, values in arrays.items()}
        bits = (np.dtype(np.uint64), 1)
        wanted = {"trained": bits, "certified": bits, "twins": (np.dtype(np.int64), 1)}
        if types not in (wanted, wanted | {"beside": bits}):
            raise InvalidDataError(
                f"Rows seen must be two or three lists of hashes and a count; got {types}."
            )
        parts = _cut(arrays["trained"], content)
        certified, beside = np.sort(arrays["certified"]), np.sort(arrays.get("beside", NONE))
        seen = cls(parts, certified, int(arrays["twins"][0]), beside)
        if not 0 <= seen.twins <= len(seen):
            raise InvalidDataError(f"{seen.twins} of {len(seen)} rows seen cannot have twins.")
        return seen


def _cut(trained: Hashes, content: bytes) -> tuple[Hashes, ...]:
    """Return the parts of the rows that trained; files before 0.2 was out do not tell them apart."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    sizes = json.loads(header.get("__metadata__", {}).get(PARTS, f"[{len(trained)}]"))
    sound = isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
    if not sound or sum(sizes) != len(trained):
        raise InvalidDataError(f"{len(trained)} rows seen cannot have parts of {sizes} rows.")
    return tuple(np.sort(part) for part in np.split(trained, np.cumsum(sizes)[:-1]) if len(part))


def refuse_seen(
    matches: int, n: int, seen: SeenRows, among: float, first: int, to: str = "certify"
) -> None:
    """Raise if more of n rows were seen before than chance brings; ``first`` is one of them.

    By chance they agree at the rate of the rows seen, or ``among`` each other if that is known to be
    larger. A few that agree by chance in a table without twins are no reason to refuse; a `ReuseWarning`
    tells of them.
    """
    what, remedy = TOLD[to]
    text = f"{matches:,} of {n:,} {what}, row {first} among them: {NOTHING}"
    if more_than_chance(matches, n, max(chance_share(seen.twins, len(seen)), among)):
        raise InvalidDataError(f"{text} {remedy}")
    if seen.twins == 0 and among == 0.0:
        warn_user(f"{text} Leave them out, unless they agree by chance.", ReuseWarning)


def refuse_whole(hashes: Hashes, parts: Sequence[Hashes], matches: int, n: int, to: str) -> None:
    """Raise if n rows, of which so many may agree by chance, are as a whole the same as known ones."""
    if 2 * matches >= n and same_as_whole(hashes, parts):
        what, remedy = TOLD[to]
        raise InvalidDataError(
            f"{matches:,} of {n:,} {what}, as a whole: by chance single rows agree in a table as coarse as "
            "this, but each kind of row comes back as often as before, more closely than in one of a "
            f"million fresh tables. In short: {NOTHING} {remedy}"
        )


def check_fresh(estimator: Any, folds: Folds) -> None:
    """Raise if rows to choose or to certify on have trained a fitted method of ours inside."""
    for fold in (folds.selection, folds.certification):
        if len(fold):
            check_inside(estimator, fold.X)


def check_inside(estimator: Any, X: Any) -> None:
    """Raise if rows have trained a fitted method of ours inside an estimator, as they reach it."""
    for method, rows in methods_inside(estimator, X):
        hashes = model_hashes(method, rows)
        if hashes is not None:
            method.seen_.check(hashes, trained_only=True)


def check_given(learned: Sequence[Fold], certification: Fold, model: Any = None) -> None:
    """Raise if rows of a certification fold of the user's own train or choose in the same fit."""
    held = model_hashes(model, certification.X)
    parts = [model_hashes(model, fold.X) for fold in learned if len(fold)]
    known = [part for part in parts if part is not None]
    if held is not None and known:
        SeenRows.of(known).check(held, to="fit")


def check_trained(model: Any, learned: Sequence[Fold], folds: Folds) -> None:
    """Raise on what is known of such rows only when training is over.

    A model's encoder says which columns do not count, and steps that were trained here have to
    transform rows before a method behind them can recognise them. ``learned`` is empty where the
    certification fold was cut from the table.
    """
    if learned and find_encoder(model) is not None:
        check_given(learned, folds.certification, model)
    fitted = getattr(model, "estimator_", None)
    if not hasattr(type(fitted), "_target"):  # one of ours was looked at before
        check_fresh(fitted, folds)


def see_folds(model: Any, folds: Folds, beside: Any, inner: Any) -> SeenRows | None:
    """Return the rows of a fit and of the model that was fitted before it, if any.

    None if some of the rows of this fit cannot be compared. ``beside`` are rows of certification groups
    beside those drawn, None if there are none.
    """
    parts = [fold.X for fold in (folds.train, folds.selection) if len(fold)]
    held = [folds.certification.X, *([] if beside is None else [beside])]
    hashes = [model_hashes(model, X) for X in (*parts, *held)]
    known = [part for part in hashes if part is not None]
    if len(known) < len(hashes):
        return None
    own = SeenRows.of(known[: len(parts)], *known[len(parts) :])
    before: SeenRows | None = getattr(inner, "seen_", None)
    return own if before is None else own.around(before)


def model_hashes(model: Any, X: Any) -> Hashes | None:
    """Return the hashes of rows as a fitted model reads them: without columns that it leaves out.

    Numbers that are written as text, as a database or JSON may have them, count as numbers where the
    model's encoder reads them so.
    """
    encoder = find_encoder(model)
    if encoder is None or not isinstance(X, pd.DataFrame):
        return hash_rows(X)
    idle = [name for name in encoder.dropped_ if name in X.columns]
    X = encoder.date_columns_.with_days(X.drop(columns=idle))
    for name in encoder.numbers_:
        if name in X.columns and not pd.api.types.is_numeric_dtype(X[name].dtype):
            with suppress(InvalidDataError):  # what is no number the encoder complains of itself
                X = X.assign(**{name: read_numbers(X[name], name)})
    return hash_rows(X, texts={*encoder.categories_, *encoder.texts_})


def _among(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    if len(known) == 0:
        return np.zeros(len(hashes), bool)
    place = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    return np.asarray(known[place] == hashes)
