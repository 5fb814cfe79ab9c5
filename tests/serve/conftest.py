"""A small model, and one server that most tests ask."""

import pytest
from contract_helpers import fit_quietly, quick
from serving import LocalServer, make_rows

import reliablenet as rn
from postgres import Postgres, why_not


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """A network, trained for a moment: what it knows does not matter here."""
    model = fit_quietly(quick(rn.ReliableClassifier, alpha=0.1), *make_rows(1500, seed=0))
    return model.save(tmp_path_factory.mktemp("served") / "colours.rnet")


@pytest.fixture(scope="session")
def model(model_file):
    return rn.load(model_file)


@pytest.fixture(scope="session")
def server(model_file, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "decisions.db"
    settings = {"most_rows": 500, "most_bytes": 2**18, "keep_features": True, "group": "colour"}
    with LocalServer(model_file, log, audit=0.5, timeout=120.0, **settings) as running:
        running.log = log
        yield running


@pytest.fixture(scope="session")
def postgres():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Postgres() as started:
        yield started
