"""The package as a whole: its public names, what importing costs, what docstrings promise."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import reliablenet as rn

NAMES = sorted(name for name in rn.__all__ if not name.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(rn, name))


@pytest.mark.parametrize(
    "name", [n for n in NAMES if callable(getattr(rn, n)) and not n.endswith(("Error", "Warning"))]
)
def test_docstrings_name_every_parameter(name: str) -> None:
    documented = inspect.getdoc(getattr(rn, name))
    for parameter in inspect.signature(getattr(rn, name)).parameters:
        if parameter not in ("args", "kwargs"):
            assert parameter in documented, parameter


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        rn.nonsense  # noqa: B018
    assert set(NAMES) <= set(dir(rn))


def test_importing_is_silent_and_light() -> None:
    code = (
        "import sys, reliablenet;"
        "assert not {'torch', 'numpy', 'sklearn', 'matplotlib'} & set(sys.modules);"
        "reliablenet.certify; assert 'torch' not in sys.modules;"
        "reliablenet.metrics; assert 'torch' not in sys.modules"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_room_that_0_1_had_names_the_new_ones() -> None:
    import reliablenet.data as old

    with pytest.warns(DeprecationWarning, match=r"reliablenet\.datasets\.SyntheticBand"):
        band = old.SyntheticBand
    assert band is rn.datasets.SyntheticBand
    with pytest.warns(DeprecationWarning, match=r"reliablenet\.tables\.cut_folds"):
        assert old.cut_folds is rn.tables.cut_folds
    with pytest.raises(AttributeError, match="nothing"):
        _ = old.nothing
