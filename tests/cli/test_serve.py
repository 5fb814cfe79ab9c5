"""`reliablenet serve` before it serves: what it was told is checked, in one line."""

import importlib.util

import pytest


@pytest.fixture
def serve(call, tmp_path):
    def start(*options, model="none.rnet", log="d.db"):
        return call("serve", tmp_path / model, "--log", tmp_path / log, *options)

    return start


def test_no_model(serve):
    result = serve()
    assert (result.exit_code, "There is no model file" in result.stderr) == (5, True)


def test_no_folder_for_the_log(serve):
    result = serve(log="none/d.db")
    assert (result.exit_code, "There is no folder" in result.stderr) == (5, True)


@pytest.mark.parametrize("share", ["-0.1", "1.5", "10"])
def test_a_share_outside_its_domain(serve, share):
    result = serve("--audit", share)
    assert (result.exit_code, "must lie in [0, 1]" in result.stderr) == (2, True)


def test_a_log_in_postgresql_needs_a_key(call, tmp_path):
    result = call("serve", tmp_path / "m.rnet", "--log", "postgresql://nobody@127.0.0.1:1/x")
    assert (result.exit_code, "needs --audit-key" in result.stderr) == (5, True)


def test_a_token_file_must_hold_one(serve, tmp_path):
    assert "There is no token file" in serve("--token-file", tmp_path / "none").stderr
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in serve("--token-file", tmp_path / "empty").stderr


def test_a_key_that_is_none(serve, monkeypatch):
    monkeypatch.setenv("RELIABLENET_AUDIT_KEY", "abc")
    assert "64 hexadecimal digits; got 3 characters" in serve().stderr


def test_an_absent_extra_gives_the_install_command(serve, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "reliablenet.cli.serve.find_spec", lambda name: None if name == "uvicorn" else found(name)
    )
    result = serve()
    assert result.exit_code == 2
    assert "A server needs uvicorn: pip install 'reliablenet[serve]'" in result.stderr
