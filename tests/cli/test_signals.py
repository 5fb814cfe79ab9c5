"""Signals end a command for certain, and do not disturb it while it tidies up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from reliablenet.cli.signals import INTERVAL, signals_that_last


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def lose(blow: int) -> None:
    """Be struck at a moment at which NumPy takes any exception for a no."""

    class Struck(type):
        @property
        def __mro__(cls) -> None:
            os.kill(os.getpid(), blow)
            time.sleep(60)

    assert np.dtype(Struck("Name", (), {})) == object


@pytest.mark.parametrize(
    ("blow", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_swallowed_signal_is_raised_anew(blow, error, capsys) -> None:
    @signals_that_last()
    def work() -> None:
        lose(blow)
        time.sleep(60)

    began = time.monotonic()
    with pytest.raises(error) as raised:
        work()
    assert time.monotonic() - began < 30
    if blow == signal.SIGTERM:
        assert raised.value.code == 143
    assert capsys.readouterr().err == ("Terminated.\n" if blow == signal.SIGTERM else "")


def test_it_is_raised_as_often_as_it_is_swallowed() -> None:
    swallowed = []

    @signals_that_last()
    def work() -> None:
        for _ in range(3):
            try:
                if not swallowed:
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            except KeyboardInterrupt:
                swallowed.append(True)
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(swallowed) == 3


def test_nothing_disturbs_what_tidies_up() -> None:
    tidy = []

    @signals_that_last()
    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        finally:
            time.sleep(5 * INTERVAL)
            tidy.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert tidy == [True]


def test_handlers_are_as_before_and_the_timer_has_stopped() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    with suppress(KeyboardInterrupt), signals_that_last():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_ignored_interrupt_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with signals_that_last():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(2 * INTERVAL)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
