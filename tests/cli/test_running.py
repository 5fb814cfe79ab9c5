"""How commands end and start: exit codes, debugging, settings, pipes, interruption, what is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.cli.app import app
from reliablenet.cli.running import Commands, notes_on_stderr
from reliablenet.errors import LeakWarning

COMMAND = [sys.executable, "-m", "reliablenet"]


def run(*arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run a command with one thread, as the tests do: sums depend on it."""
    given = {"capture_output": True, "text": True, "timeout": 1200, "check": False}
    given["env"] = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run([*COMMAND, *map(str, arguments)], **(given | settings))


def failing(error: Exception) -> typer.Typer:
    broken = typer.Typer(cls=Commands, pretty_exceptions_enable=False)

    @broken.callback()
    def common(debug: bool = False) -> None:
        pass

    @broken.command()
    def fail() -> None:
        raise error

    return broken


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (rn.errors.InvalidDataError("the data"), 2),
        (rn.errors.InvalidParameterError("the setting"), 2),
        (rn.errors.ModelFileError("the model"), 2),
        (rn.errors.MissingExtraError("the extra"), 2),
        (rn.errors.DataFileError("the file"), 5),
        (FileNotFoundError(2, "No such file", "x.csv"), 5),
        (PermissionError(13, "Permission denied", "x.csv"), 2),
    ],
)
def test_a_users_mistake_is_one_line(error, code) -> None:
    result = CliRunner().invoke(failing(error), ["fail"])
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr == f"error: {error}\n"


def test_a_bug_of_ours_asks_to_be_reported() -> None:
    result = CliRunner().invoke(failing(RuntimeError("oops")), ["fail"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: RuntimeError: oops\nThis is a bug in reliablenet.")
    assert "reliablenet doctor" in result.stderr


@pytest.mark.parametrize("error", [RuntimeError("oops"), rn.errors.InvalidDataError("the data")])
def test_debug_shows_where_it_arose(error) -> None:
    result = CliRunner().invoke(failing(error), ["--debug", "fail"])
    assert result.exit_code == (2 if isinstance(error, rn.errors.InvalidDataError) else 1)
    assert "Traceback (most recent call last)" in result.stderr
    assert "raise error" in result.stderr


def test_every_command_has_an_example_in_its_help(call) -> None:
    commands = [info.callback.__name__ for info in app.registered_commands]
    nested = [
        (group.name, command.name or command.callback.__name__)
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    ]
    assert len(commands) == 17
    assert len(nested) == 8
    for path in [*((name,) for name in commands), *nested]:
        result = call(*path, "--help")
        assert result.exit_code == 0
        assert f"Example: reliablenet {' '.join(path)}" in " ".join(result.output.split())


def test_help_and_version_import_nothing_heavy() -> None:
    for arguments in (["--help"], ["--version"], ["train", "--help"], ["doctor"]):
        code = (
            "import sys; from reliablenet.cli.app import app;"
            f"app({arguments}, standalone_mode=False);"
            "heavy = {'torch', 'sklearn', 'scipy', 'pandas', 'numpy', 'pyarrow'} & set(sys.modules);"
            "sys.exit(f'imported {heavy}' if heavy else 0)"
        )
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, (arguments, result.stderr)


def test_certify_of_predictions_does_not_import_torch(tmp_path) -> None:
    pd.DataFrame({"y": [0, 1] * 50, "p": [0, 1] * 50, "s": 0.9}).to_csv(
        tmp_path / "p.csv", index=False
    )
    code = (
        "import sys; from reliablenet.cli.app import app;"
        "app(['certify', '--predictions', 'p.csv', '--label', 'y', '--predicted', 'p', '--score',"
        "'s'], standalone_mode=False); sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Certified: the rule acts on 100 % of rows")


def test_a_setting_is_that_of_the_flag_the_environment_the_file_the_default(
    loans, call, tmp_path
) -> None:
    pd.read_csv(loans / "loans.csv").head(90).to_csv(tmp_path / "few.csv", index=False)
    config = tmp_path / "settings.toml"
    config.write_text('target = "default"\nalpha = 0.02\nrho = 0.1\ndrop = ["note", "opened"]\n')

    def settings(*arguments: str, **environment: str) -> list[float]:
        out = tmp_path / "m.rnet"
        result = call(
            *("train", tmp_path / "few.csv", "--out", out, "--config", config, "--json"),
            *arguments,
            env=environment,
        )
        assert result.exit_code == 3, result.output
        assert "'note'" not in result.stderr
        found = json.loads(result.stdout)["certificate"]
        return [found["alpha"], found["rho"]]

    assert settings() == [0.02, 0.1]
    assert settings(RELIABLENET_ALPHA="0.03") == [0.03, 0.1]
    assert settings("--alpha", "0.04", RELIABLENET_ALPHA="0.03") == [0.04, 0.1]
    config.write_text('target = "default"\ndrop = "note"\n')
    assert settings() == [0.05, 0.05]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("alpah = 0.02", 2, "has unknown settings ['alpah']; known are ['alpha', "),
        ("alpha = ", 2, "is not a TOML file"),
        ("alpha = 7.0", 2, "must lie in (0, 1); got 7.0. Did you mean 7%?"),
        (None, 5, "error: There is no file"),
    ],
)
def test_a_bad_settings_file(call, loans, tmp_path, monkeypatch, text, code, message) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    config = tmp_path / "settings.toml"
    if text is not None:
        config.write_text(text)
    result = call(
        *("train", loans / "loans.csv", "--target", "default"),
        *("--out", tmp_path / "m.rnet", "--config", config),
    )
    assert result.exit_code == code
    assert message in result.stderr


def test_pipes_in_and_out(trained, loans, tmp_path) -> None:
    with (loans / "new.csv").open("rb") as rows:
        result = run("predict", loans / "model.rnet", "-", "--out", "-", stdin=rows)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "label,confidence,accepted"
    assert len(lines) == 301
    assert result.stderr.startswith("Acts on ")
    with (loans / "loans.csv").open("rb") as rows:
        result = run(
            *("train", "-", "--target", "default", "--alpha", "0.1", "--out", "m.rnet", "--json"),
            stdin=rows,
            cwd=tmp_path,
        )
    assert result.returncode == 0, result.stderr
    ours = rn.load(loans / "model.rnet").certificate_
    assert json.loads(result.stdout)["certificate"] == ours.to_dict()


def test_decisions_and_json_cannot_both_have_standard_output(trained, loans, call) -> None:
    model, rows = loans / "model.rnet", loans / "new.csv"
    result = call("predict", model, rows, "--out", "-", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--json needs standard output for itself" in result.stderr


def test_a_reader_that_leaves_is_no_error(trained, loans) -> None:
    writer = subprocess.Popen(
        [*COMMAND, "predict", str(loans / "model.rnet"), str(loans / "new.csv"), "--out", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    writer.stdout.close()
    assert "Traceback" not in writer.communicate(timeout=600)[1]


def test_an_existing_file_survives_a_failure(trained, loans, call, tmp_path) -> None:
    out = tmp_path / "d.csv"
    out.write_text("old")
    (tmp_path / "bad.csv").write_text((loans / "new.csv").read_text() + "1,2\n")
    result = call("predict", loans / "model.rnet", tmp_path / "bad.csv", "--out", out)
    assert result.exit_code == 2
    assert "bad.csv: line 302 has 2 fields where the header has 6" in result.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "d.csv"]


def test_a_column_that_gives_the_target_away_comes_with_the_option_that_leaves_it_out(
    capsys,
) -> None:
    with notes_on_stderr():
        warnings.warn(LeakWarning("Column 'paid' gives the target away.", "paid"), stacklevel=1)
    assert capsys.readouterr().err == ("note: Column 'paid' gives the target away. (--drop paid)\n")


@pytest.mark.parametrize("option", ["--keep", "--out"])
def test_an_option_that_takes_one_value_is_refused_twice(call, option) -> None:
    done = call("predict", "m.rnet", "new.csv", "--out", "d.csv", "--keep", "id", option, "note")
    assert done.exit_code == 2
    assert f"'{option}': given 2 times" in " ".join(done.output.replace("│", " ").split())


def test_an_option_that_collects_is_taken_twice(call) -> None:
    done = call(
        "train",
        "none.csv",
        "--target",
        "y",
        "--out",
        "m.rnet",
        "--budget",
        "a=1",
        "--budget",
        "b=1",
    )
    assert "given 2 times" not in done.output
