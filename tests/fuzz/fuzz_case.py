"""One case: call a public function with what a user may give it, and say how that ended.

It may end in an answer, which is checked where a reference is at hand, or in an error of ours that names
what is wrong. Everything else is a fault: a bare IndexError, a numpy warning, a hang, a wrong answer.
"""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from fuzz_values import Random, dress, pick, spoil

import reliablenet as rn

OURS = (
    rn.errors.NotCertifiedWarning,
    rn.errors.EmptyCertificateWarning,
    rn.errors.ConstraintWarning,
    rn.errors.FoldWarning,
    rn.errors.ColumnWarning,
    rn.errors.LabelWarning,
    rn.errors.ReuseWarning,
    rn.errors.OddInputWarning,
)
SECONDS = 300  # no case needs one where nobody else computes; a hang does


class Fault(AssertionError):  # noqa: N818
    """What must not happen."""


class Hang(BaseException):
    """A case that does not end: no `except Exception` on the way may take it for an answer."""


@dataclass(frozen=True)
class Target:
    """A public function under test.

    Parameters
    ----------
    call : callable
        The function.
    make : callable
        From a random state to good arguments, by name.
    check : callable, optional
        Called with good arguments and the answer; raises if the answer is wrong.
    sound : callable, optional
        Called with the answer to whatever arguments; raises if no arguments could have it.
    errors : tuple of type
        Errors beyond ours that are documented, such as scikit-learn's ValueError.
    also : str
        A pattern that error messages may have in the place of a parameter's name.
    """

    call: Callable[..., Any]
    make: Callable[[Random], dict[str, Any]]
    check: Callable[[dict[str, Any], Any], None] | None = None
    sound: Callable[[Any], None] | None = None
    errors: tuple[type[Exception], ...] = ()
    also: str = "$^"
    keep: tuple[str, ...] = field(default=())


def run_case(name: str, target: Target, seed: int) -> str:
    """Run one case and return its outcome: answer, right answer, our error, documented error."""
    random = Random(crc32(f"{name} {seed}".encode()))
    plain = target.make(random)
    given, notes = dict(plain), []
    for key in plain.keys() - set(target.keep):
        if random.uniform() < 0.5:
            kind, given[key] = dress(random, plain[key])
            notes.append(f"{key}: {kind}")
    free = sorted(plain.keys() - set(target.keep))
    spoiled = random.uniform() < 0.7 and free
    if spoiled:
        for key in random.choice(free, size=random.choice([1, 1, 1, 2]), replace=True):
            kind, given[key] = spoil(random, plain[key])
            notes.append(f"{key}: {kind} {_shown(given[key])}")
    story = f"{name}, case {seed} ({'; '.join(notes)})"
    try:
        with limited(), only_our_warnings():
            # scikit-learn's own word on frames where there were arrays, and the other way round
            warnings.filterwarnings("ignore", ".*feature names|.*column-vector y", UserWarning)
            warnings.filterwarnings("ignore", category=RuntimeWarning, module="sklearn")
            answer = target.call(**given)
    except (rn.errors.ReliableNetError, *target.errors) as error:
        if not spoiled:
            raise Fault(f"{story}: good arguments are refused: {error!r}") from error
        names = "|".join(map(re.escape, [*plain, *given]))
        if not re.search(rf"\b({names})\b|{target.also}", str(error)):
            raise Fault(f"{story}: the message names no parameter: {error!r}") from error
        return "our error" if isinstance(error, rn.errors.ReliableNetError) else "documented error"
    except MemoryError:
        return "no memory"
    except (Exception, Hang) as error:
        raise Fault(f"{story}: {error!r}") from error
    try:
        if target.sound is not None:
            target.sound(answer)
        if not spoiled and target.check is not None:
            target.check(plain, answer)
            return "right answer"
    except AssertionError as error:
        raise Fault(f"{story}: wrong answer {_shown(answer)}: {error}") from error
    return "answer"


@contextmanager
def only_our_warnings() -> Iterator[None]:
    """Raise at any warning that is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in OURS:
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def limited() -> Iterator[None]:
    """Raise if a case does not end."""

    def stop(*_: object) -> None:
        raise Hang(f"no end after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _shown(value: Any) -> str:
    with np.printoptions(threshold=20):
        return re.sub(r"\s+", " ", f"{type(value).__name__} {value!r}")[:300]


__all__ = ["Fault", "Hang", "Random", "Target", "pick", "run_case"]
