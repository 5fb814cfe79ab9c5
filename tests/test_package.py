"""The package as a whole: its public names, what importing costs, what docstrings promise."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import reliablenet as rn

ROOT = Path(__file__).parents[1]
# What a strict user of other libraries sets: scikit-learn has no types, and torch has some without.
USER = """
[mypy]
strict = true
untyped_calls_exclude = torch
[mypy-sklearn.*]
ignore_missing_imports = true
"""
NAMES = sorted(name for name in rn.__all__ if not name.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(rn, name))


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


def test_rooms_are_attributes_of_a_fresh_import() -> None:
    code = (
        "import reliablenet as rn; rn.errors.ModelFileError; rn.tables.Fold; rn.report.model_page;"
        "rn.bench.Store; rn.training.Schedule; assert 'tables' in dir(rn)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_server_is_an_attribute_too_and_costs_nothing_until_it_is_used() -> None:
    code = (
        "import sys, reliablenet as rn; assert rn.serve.__doc__; assert 'serve' in dir(rn);"
        "assert not {'fastapi', 'uvicorn', 'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("name", [name for names in rn._MOVED.values() for name in names])
def test_names_that_0_1_had_at_the_top_tell_where_they_are(name: str) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"reliablenet\.\w+\.{name}; the short name will be removed"
    ):
        assert getattr(rn, name).__name__ == name
    assert name not in rn.__all__


def test_type_checkers_see_every_public_name_and_its_type(tmp_path) -> None:
    user = tmp_path / "user.py"
    lines = [
        f"import reliablenet as rn\n_{place} = rn.{name}\n" for place, name in enumerate(NAMES)
    ]
    user.write_text("".join(lines) + "reveal_type(rn.rows_needed(0.05, 0.05))\nrn.nonsense\n")
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(user)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert 'Revealed type is "int"' in said
    assert said.count("error:") == 1, said
    assert 'has no attribute "nonsense"' in said


def test_the_examples_pass_a_strict_type_checker_as_a_users_programs_would(tmp_path) -> None:
    examples = sorted((ROOT / "examples").glob("*.py"))
    for example in examples:  # in a folder of their own, so that no setting of ours is found
        (tmp_path / example.name).write_text(example.read_text())
    (tmp_path / "mypy.ini").write_text(USER)
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", ROOT / ".mypy_cache" / "examples", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert said == f"Success: no issues found in {len(examples)} source files\n"


def test_the_citation_is_of_this_version() -> None:
    said = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {rn.__version__}\n" in said


def test_the_room_that_0_1_had_names_the_new_ones() -> None:
    import reliablenet.data as old

    with pytest.warns(DeprecationWarning, match=r"reliablenet\.datasets\.SyntheticBand"):
        band = old.SyntheticBand
    assert band is rn.datasets.SyntheticBand
    with pytest.warns(DeprecationWarning, match=r"reliablenet\.tables\.cut_folds"):
        assert old.cut_folds is rn.tables.cut_folds
    with pytest.raises(AttributeError, match="nothing"):
        _ = old.nothing


def test_the_room_that_0_1_had_is_an_attribute_of_a_fresh_import_and_warns_of_its_names() -> None:
    """`rn.data` raised where `import reliablenet.data` did not."""
    code = "import reliablenet as rn; assert 'data' not in dir(rn); rn.data; rn.data.cut_folds"
    warned = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert warned.stderr.count("Warning") == 1
    assert (
        "DeprecationWarning: reliablenet.data.cut_folds is now reliablenet.tables" in warned.stderr
    )
