"""A mutant without an import: the functions of a module that is imported get the mutant's code.

Whoever holds such a function, under whatever name, then runs the mutant. That works wherever a mutant differs inside of
functions; constants, decorators, defaults and fields are made while a module is imported, and are left to another way.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

Place = tuple[str, int]  # a function's qualified name and its first line
Swap = tuple[Place, CodeType]


def swaps(original: str, mutant: str, path: str) -> list[Swap] | None:
    """Return the functions whose code differs, and the code they get; None if more differs than functions."""
    old, new = (compile(text, path, "exec", dont_inherit=True) for text in (original, mutant))
    if _content(old, bodies=False) != _content(new, bodies=False):
        return None
    return [
        (place_of(before), after)
        for before, after in zip(_functions(old), _functions(new), strict=True)
        if _content(before) != _content(after)
    ]


def live_functions(path: str) -> dict[Place, list[FunctionType]]:
    """Return the functions of a file that exist in this process."""
    found: dict[Place, list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == path:
            found.setdefault(place_of(one.__code__), []).append(one)
    return found


def place_of(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the functions of a module and of its classes, without those inside of functions."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_flags & inspect.CO_OPTIMIZED:
                yield part
            else:  # the body of a class
                yield from _functions(part)


def _content(code: CodeType, *, bodies: bool = True) -> tuple[Any, ...]:
    """Return what a code object does, without its lines; without the bodies of functions if they are not wanted."""
    parts = []
    for part in code.co_consts:
        if not isinstance(part, CodeType):
            parts.append((type(part).__name__, repr(part)))
        elif bodies or not part.co_flags & inspect.CO_OPTIMIZED:
            parts.append(("code", *_content(part, bodies=bodies)))
        else:
            parts.append(("function", part.co_qualname))
    fields = (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)
    return (*fields, *counts, code.co_exceptiontable, tuple(parts))
