"""Keys, signatures and renewals on the command line."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("cryptography")


@pytest.fixture
def signed(trained, loans, tmp_path, call):
    shutil.copy(loans / "model.rnet", tmp_path / "m.rnet")
    assert call("keygen", tmp_path / "k").exit_code == 0
    done = call("sign", tmp_path / "m.rnet", "--key", tmp_path / "k")
    assert done.exit_code == 0, done.output
    assert "m.rnet is signed with the key" in done.stdout
    return tmp_path


def test_verify_and_predict_accept_what_is_signed_and_nothing_else(signed, loans, call) -> None:
    keys = ("--trusted-keys", signed / "k.pub")
    assert call("verify", signed / "m.rnet", *keys).exit_code == 0
    new, out = loans / "new.csv", signed / "d.csv"
    assert call("predict", signed / "m.rnet", new, "--out", out, *keys).exit_code == 0
    for command in (("verify",), ("predict", new, "--out", out)):
        refused = call(command[0], loans / "model.rnet", *command[1:], *keys)
        assert refused.exit_code == 2
        assert "model.rnet is not signed" in refused.stderr
    assert call("verify", signed / "none.rnet", *keys).exit_code == 5
    assert call("keygen", signed / "k").exit_code == 5


def test_a_renewal_keeps_the_signatures(signed, loans, call) -> None:
    arguments = ["recertify", signed / "m.rnet", loans / "fresh.csv", "--target", "default"]
    keys = ("--trusted-keys", signed / "k.pub")
    plain = call(*arguments, "--out", signed / "plain.rnet", *keys)
    assert plain.exit_code == 0, plain.output
    assert "the renewed one is not: sign it" in plain.stderr
    done = call(*arguments, "--out", signed / "renewed.rnet", *keys, "--key", signed / "k")
    assert done.exit_code == 0, done.output
    assert call("verify", signed / "renewed.rnet", *keys).exit_code == 0
    assert call("verify", signed / "plain.rnet", *keys).exit_code == 2
