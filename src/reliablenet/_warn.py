"""Warnings that point at the user's line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

HERE = str(Path(__file__).parent)
_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence our warnings in this thread: what they say about some rows may not be true of all."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def warn_user(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn about the innermost line that is neither ours nor scikit-learn's."""
    if _silent.get():
        return
    # scikit-learn is between us and the caller where it calls our fit: `with_callbacks`, `GridSearchCV`,
    # which does so through joblib.
    between = (sys.modules.get(name) for name in ("sklearn", "joblib"))
    inside = (HERE, *(str(Path(str(m.__file__)).parent) for m in between if m is not None))
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
