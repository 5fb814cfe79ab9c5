"""Ctrl-C and SIGTERM end a command, even if a library swallows the exception that they raise."""

from __future__ import annotations

import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERVAL = 0.2  # seconds between two looks whether the exception is still on its way
HAS_TIMER = hasattr(signal, "setitimer")  # Windows has none


# Classes of our own, since the built-in exceptions take no weak reference.
class Interrupted(KeyboardInterrupt):
    """Raised by Ctrl-C."""


class Terminated(SystemExit):
    """Raised by SIGTERM."""


@contextmanager
def signals_that_last() -> Iterator[None]:
    """Raise the exception of a signal anew if it is lost on its way out of the context.

    Compiled code may ask Python something and take any exception for a "no": NumPy does so of the
    type of an array, and now and then a Ctrl-C is lost there. An exception that was dropped is
    freed, so a timer looks whether it still lives. While files and workers are tidied up on the way
    out it does, and nothing disturbs that.

    Examples
    --------
    >>> from reliablenet.cli.signals import signals_that_last
    >>> import os, signal, time
    >>> from contextlib import suppress
    >>> with suppress(SystemExit), signals_that_last():
    ...     with suppress(BaseException):
    ...         os.kill(os.getpid(), signal.SIGTERM)
    ...     time.sleep(60)
    ...     print("never reached")
    """
    alive: weakref.ref[BaseException] | None = None
    last = signal.SIGINT

    def strike(number: int, _: FrameType | None) -> None:
        nonlocal alive, last
        if number == signal.SIGTERM and last != number:
            sys.stderr.write("Terminated.\n")
        last = signal.Signals(number)
        error = Interrupted() if number == signal.SIGINT else Terminated(128 + number)
        alive = weakref.ref(error)
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
        try:
            raise error
        finally:
            del error  # or this frame, which the traceback holds, would keep it alive

    def look(_: int, frame: FrameType | None) -> None:
        if alive is not None and alive() is None:
            strike(last, frame)

    handlers: dict[int, Callable[[int, FrameType | None], None]] = {signal.SIGTERM: strike}
    if HAS_TIMER:
        handlers[signal.SIGALRM] = look
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        handlers[signal.SIGINT] = strike
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
