"""Docstrings and signatures say the same: both are parsed and compared."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import reliablenet

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$", re.M)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$")


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield every class, function and method of ours that has a name for others, once."""
    for found in pkgutil.walk_packages(reliablenet.__path__, "reliablenet."):
        if found.name.rpartition(".")[2] in ("__main__", "data"):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", "") != found.name:
                continue
            if inspect.isfunction(value):
                yield f"{found.name}.{name}", value
            if inspect.isclass(value):
                yield f"{found.name}.{name}", value
                for method, function in vars(value).items():
                    function = getattr(function, "__func__", function)
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{found.name}.{name}.{method}", function


def documented(text: str) -> list[str] | None:
    """Return the parameters that a docstring lists, in order; None if it has no such section."""
    parts = SECTION.split(inspect.cleandoc(text))
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if "Parameters" not in sections:
        return None
    joined = re.sub(r",\n(?=\S)", ", ", sections["Parameters"])
    entries = [ENTRY.match(line) for line in joined.splitlines()]
    return [name.lstrip("*") for entry in entries if entry for name in entry[1].split(", ")]


def accepted(value: Any) -> list[str]:
    """Return the parameters that a signature takes."""
    function = value.__init__ if inspect.isclass(value) else value
    taken: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if str(parameter.annotation).startswith("Unpack["):  # keywords by the fields of a record
            fields = vars(inspect.getmodule(inspect.unwrap(function)))[parameter.annotation[7:-1]]
            taken += fields.__annotations__
        elif name not in ("self", "cls"):
            taken.append(name)
    return taken


def own(value: Any) -> list[str]:
    """Return the parameters that a class adds to those of the class that it extends."""
    inherited = accepted(value.__base__) if inspect.isclass(value) else []
    return [name for name in accepted(value) if name not in inherited]


RECORDS = {"Certificate", "Promise", "Rule", "RuleCertificate"}  # they list attributes
DOCUMENTED = {
    name: value for name, value in public_objects() if documented(value.__doc__ or "") is not None
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_docstring_lists_the_parameters_of_the_signature(name: str) -> None:
    value = DOCUMENTED[name]
    assert sorted(documented(value.__doc__)) in (sorted(accepted(value)), sorted(own(value)))


@pytest.mark.parametrize("name", reliablenet.__all__)
def test_what_is_public_at_the_top_lists_its_parameters(name: str) -> None:
    value = getattr(reliablenet, name)
    if callable(value) and accepted(value) and name not in RECORDS:
        assert documented(value.__doc__) is not None


def test_a_forgotten_and_an_invented_parameter_are_noticed() -> None:
    def cut(rows: int, share: float) -> None:
        """Cut.

        Parameters
        ----------
        rows, shares : int
            Not what it takes.

        Returns
        -------
        None
        """

    assert documented(cut.__doc__) == ["rows", "shares"]
    assert accepted(cut) == ["rows", "share"]
