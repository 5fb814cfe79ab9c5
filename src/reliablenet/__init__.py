"""ReliableNet: classifiers that know when to act and when to defer.

`__init__.pyi` lists the public names. Each is imported on first use, because torch alone takes seconds.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from reliablenet._version import __version__ as __version__
from reliablenet._warn import warn_user

# What version 0.1 had here, a room and names; both go in 0.3.
_OLD_ROOM = "data"
_MOVED = {
    "certificate": ("certification_power",),
    "datasets": ("Dataset",),
    "errors": (
        *("ColumnWarning", "ConstraintWarning", "DataFileError", "EmptyCertificateWarning"),
        *("FoldWarning", "InvalidDataError", "InvalidParameterError", "LabelWarning"),
        *("MissingExtraError", "ModelFileError", "NotCertifiedWarning", "ReliableNetError"),
        *("ReuseWarning", "TrainingDivergedError"),
    ),
    "methods": ("Comparison", "Decisions", "SelectiveClassifier", "default_methods"),
    "training": ("Schedule",),
}


def _read_names() -> dict[str, str]:
    """Return the public names with the module that each comes from, as the stub tells."""
    stub = ast.parse(Path(__file__).with_name("__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


_HOME = _read_names()
_ROOMS = {name for name, module in _HOME.items() if module == __name__}

__all__ = sorted(_HOME.keys() - _ROOMS)


def __getattr__(name: str) -> object:
    if name in _ROOMS or name == _OLD_ROOM:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    for room, names in _MOVED.items():
        if name in names:
            warn_user(
                f"reliablenet.{name} is now reliablenet.{room}.{name}; the short name will be removed in 0.3.",
                DeprecationWarning,
            )
            return getattr(import_module(f"{__name__}.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS]
