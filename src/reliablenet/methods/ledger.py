"""A ledger of certificates: how often the same certification rows have been used in this process.

One certificate fails with probability rho. Whoever certifies many models on the same rows, or one model
under many budgets, and keeps what passes, has a larger risk, which no single certificate can show. So each is told how many there
have been. It is a help for the honest, no lock: another process has a ledger of its own.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.tables.copies import chance_share, more_than_chance

KEPT = 4096  # hashes kept of a fold, the smallest: those of the same rows are the smallest too
FOUND_BY = 1024  # of these, by which an entry is found
MOST = 300  # certificates remembered
SHARED = 0.05  # a smaller share of common rows is no second look

Hashes = NDArray[np.uint64]


class _Entry(NamedTuple):
    rows: Hashes
    model: str
    asked: str


_entries: dict[int, _Entry] = {}  # by number, the oldest first
_places: dict[int, set[int]] = {}  # in which entries a hash is
_numbers = itertools.count()
_lock = threading.Lock()
_closed: ContextVar[bool] = ContextVar("closed", default=False)


def asked_of(certificate: Certificate | RuleCertificate) -> str:
    """Return the budget by which a threshold was chosen, "" for one that was fixed beforehand.

    The bound of a fixed rule holds beside any budget. Thresholds that one model chooses on the same rows
    under several budgets are several rules.

    Examples
    --------
    >>> from reliablenet import Certificate
    >>> from reliablenet.methods.ledger import asked_of
    >>> chosen = Certificate(0, 9, 99, alpha=0.05, rho=0.1, threshold=0.9, kind="monotone")
    >>> asked_of(chosen), asked_of(Certificate(0, 9, 99, alpha=0.05, rho=0.1, threshold=0.9))
    ('0.05 at 0.1', '')
    """
    c = certificate
    parts = c.parts if isinstance(c, RuleCertificate) else (c,)
    if all(part.kind == "fixed" for part in parts):
        return ""
    budget = c.promise.to_dict() if isinstance(c, RuleCertificate) else c.alpha
    return f"{budget} at {c.rho}"


def count_uses(rows: Hashes | None, model: str, asked: str = "") -> int:
    """Write a certificate down, and return how many its rows have been used for, this one included.

    Parameters
    ----------
    rows : array of uint64 or None
        Hashes of the certification rows; None where they cannot be compared.
    model : str
        Fingerprint of what the model says of them. To fit the same model again is no second look.
    asked : str
        As `asked_of` returns it. To certify a model as it stands and to let it choose its threshold is
        one look: whatever it chooses lies above a threshold that failed.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.ledger import clear, count_uses
    >>> clear()
    >>> rows = np.arange(100, dtype=np.uint64)
    >>> [count_uses(rows, model) for model in ("a", "b", "b", "c")], count_uses(rows + 500, "a")
    ([1, 2, 2, 3], 1)
    """
    if rows is None or _closed.get():
        return 1
    own = np.sort(rows)[:KEPT]
    with _lock:
        near = set().union(*(_places.get(bits, ()) for bits in own[:FOUND_BY].tolist()))
        found = (_entries[number] for number in near)
        looks = {(entry.model, entry.asked) for entry in found if _overlap(own, entry.rows)}
        if (model, asked) not in looks:
            _write_down(_Entry(own, model, asked))
    looks.add((model, asked))
    chosen = {one for one, budget in looks if budget}
    return sum(bool(budget) or one not in chosen for one, budget in looks)


def _write_down(entry: _Entry) -> None:
    number = next(_numbers)
    _entries[number] = entry
    for bits in entry.rows[:FOUND_BY].tolist():
        _places.setdefault(bits, set()).add(number)
    if len(_entries) > MOST:
        oldest = next(iter(_entries))
        for bits in set(_entries.pop(oldest).rows[:FOUND_BY].tolist()):
            _places[bits].discard(oldest)
            if not _places[bits]:
                del _places[bits]


def clear() -> None:
    """Forget all certificates, as a new process would."""
    with _lock:
        _entries.clear()
        _places.clear()


@contextmanager
def closed() -> Iterator[None]:
    """Write nothing down meanwhile: a caller that looks at many methods at once allows for it itself."""
    token = _closed.set(True)
    try:
        yield
    finally:
        _closed.reset(token)


def _overlap(one: Hashes, other: Hashes) -> bool:
    """Tell whether two folds have rows in common, in the range of hashes that both have kept whole.

    In a coarse table fresh rows agree with old ones by chance, which is no second look; there the
    folds are known to be the same only if every row is.
    """
    if np.array_equal(one, other):
        return True
    cut = [part[-1] for part in (one, other) if len(part) == KEPT]
    limit = min(cut) if cut else np.uint64(2**64 - 1)
    few, many = sorted((part[part <= limit] for part in (one, other)), key=len)
    _, counts = np.unique(many, return_counts=True)
    twins = int(counts[counts > 1].sum())
    common = int(np.isin(few, many).sum())
    natural = chance_share(twins, len(many))
    beyond = common - natural * len(few) >= SHARED * (1.0 - natural) * len(few)
    return beyond and more_than_chance(common, len(few), natural)
