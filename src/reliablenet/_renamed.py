"""Names of version 0.1 that still work for one more version, with a warning that tells the new one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from reliablenet._warn import warn_user

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def renamed_parameter(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take a parameter by its old name too.

    Examples
    --------
    >>> from reliablenet._renamed import renamed_parameter
    >>> @renamed_parameter("seed", "random_state")
    ... def draw(random_state=0):
    ...     return random_state
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     draw(seed=7)
    7
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> R:
            if old in kwargs:
                warn_user(
                    f"`{old}` is now called `{new}`; the old name will be removed in 0.3.",
                    DeprecationWarning,
                )
                if new in kwargs:
                    raise TypeError(f"got both `{old}` and `{new}`, which mean the same")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def renamed_setting(old: str, new: str) -> Callable[[type[T]], type[T]]:
    """Let a class take a parameter by its old name too."""

    def decorate(cls: type[T]) -> type[T]:
        cls.__init__ = renamed_parameter(old, new)(cls.__init__)  # type: ignore[method-assign]
        return cls

    return decorate


def renamed_method(old: str, new: str) -> Callable[[Any], Any]:
    """Return a method for a class body that stands for another under its old name."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        warn_user(
            f"`{old}` is now called `{new}`; the old name will be removed in 0.3.",
            DeprecationWarning,
        )
        return getattr(self, new)(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"Do the same as `{new}`, its new name."
    return call
