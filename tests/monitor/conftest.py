"""A decision log in SQLite and in a real PostgreSQL, which is started for the tests."""

import pytest

from postgres import Postgres, why_not
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog


@pytest.fixture(scope="session")
def postgres():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "decisions.db"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def log(place):
    with DecisionLog(place, create=True, timeout=0.5) as opened:
        yield opened


@pytest.fixture
def coin():
    return AuditCoin(bytes(range(32)), share=0.5)
