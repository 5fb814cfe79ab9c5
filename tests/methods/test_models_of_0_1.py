"""Model files that version 0.1 wrote load for ever, and decide as they did.

They were written by `models_of_0_1/write.py` with the code of commit 5ea4732.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from models_on_file import HERE, NETWORK_TOLERANCE, TOLERANCE, check_decisions, read as on_file
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.cli.app import app
from reliablenet.datasets import SyntheticBand
from reliablenet.report import model_page

FOLDER = HERE / "models_of_0_1"
NAMES = ["network", "threshold", "temperature", "groups", "refused"]
every_file = pytest.mark.parametrize("name", NAMES)


def read(name: str) -> tuple[Any, dict[str, Any], Any]:
    return on_file(FOLDER, name)


@every_file
def test_it_decides_as_it_did(name) -> None:
    model, told, rows = read(name)
    check_decisions(model.decide(rows), told, NETWORK_TOLERANCE if name == "network" else TOLERANCE)


@every_file
def test_its_certificate_is_the_same(name) -> None:
    model, told, _ = read(name)
    made, then = model.certificate_, told["certificate"]
    for key in ("certified", "errors", "accepted", "n", "alpha", "rho", "threshold", "kind"):
        assert getattr(made, key) == then[key], key
    assert made.certified == (name != "refused")
    assert made.unit == ("group" if name == "groups" else "row")
    assert model.grouped_ == (name == "groups")
    assert (made.commonest, made.unknown, made.provenance) == (None, 0, None)
    assert not made.empty
    acts = then["certified"] or name == "refused"  # a rule with a promise of its own
    assert model.threshold_ == (then["threshold"] if acts else math.inf)
    assert model.fingerprint_ == told["fingerprint"]
    assert len(model.evidence_) == made.n


@every_file
def test_its_rows_are_not_known_so_that_none_is_refused(name) -> None:
    model, _, rows = read(name)
    assert model.seen_ is None
    y = np.resize(model.classes_, len(rows))
    unit = "rows" if model.grouped_ else None  # the file says no more of its groups
    assert model.certify(rows, y, groups=unit).n == len(rows)


@every_file
def test_it_is_saved_in_the_format_of_today(name, tmp_path) -> None:
    model, _, rows = read(name)
    again = rn.load(model.save(tmp_path / "m.rnet"))
    assert again.certificate_ == model.certificate_
    assert again.seen_ is None
    assert again.decide(rows).to_frame().equals(model.decide(rows).to_frame())


@every_file
def test_commands_and_the_page_take_it(name) -> None:
    model, _, _ = read(name)
    shown = CliRunner().invoke(app, ["inspect", str(FOLDER / f"{name}.rnet")])
    assert shown.exit_code == 0, shown.output
    assert ("Not certified" if name == "refused" else "Certified: the model acts") in shown.stdout
    assert ("of all rows" in shown.stdout) == (name != "groups")
    assert "reliablenet 0.1" in shown.stdout
    assert model_page(model).startswith("<!DOCTYPE html>")


def test_fresh_rows_certify_it_on_the_command_line(tmp_path) -> None:
    fresh = SyntheticBand(random_state=0).sample(2000)
    table = pd.DataFrame(fresh.X[1000:], columns=list("abcdefghij")).assign(y=fresh.y[1000:])
    table.to_csv(tmp_path / "fresh.csv", index=False)
    arguments = ["certify", str(FOLDER / "threshold.rnet"), str(tmp_path / "fresh.csv")]
    result = CliRunner().invoke(app, [*arguments, "--target", "y", "--json"])
    found, model = json.loads(result.stdout), read("threshold")[0]
    expected = model.certify(fresh.X[1000:], fresh.y[1000:])
    for beside in ("breakdown", "sensitivity"):  # which the command tells beside the certificate
        del found[beside]
    assert {**found, "provenance": None} == {**expected.to_dict(), "provenance": None}
    assert result.exit_code == (0 if expected.certified else 3)
