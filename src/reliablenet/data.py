"""The room that version 0.1 had; its names have moved to `reliablenet.tables` and `reliablenet.datasets`."""

from __future__ import annotations

from importlib import import_module

from reliablenet._warn import warn_user


def __getattr__(name: str) -> object:
    for room in ("tables", "datasets"):
        module = import_module(f"reliablenet.{room}")
        if name in module.__all__:
            warn_user(
                f"reliablenet.data.{name} is now reliablenet.{room}.{name}; the old name will be removed in 0.3.",
                DeprecationWarning,
            )
            return getattr(module, name)
    raise AttributeError(f"module 'reliablenet.data' has no attribute {name!r}")
