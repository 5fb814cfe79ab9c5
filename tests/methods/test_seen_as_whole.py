"""Coarse tables, where single rows recur by chance: what was given to `fit` is recognised as a whole."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.cli.app import app
from reliablenet.methods.renewal import renew
from reliablenet.methods.row_watch import RowWatch
from reliablenet.methods.seen import SeenRows, model_hashes
from reliablenet.tables.copies import hash_rows

WHOLE = "rows were given to `fit` already, as a whole"


def coarse(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three columns of three values: nearly every fresh row agrees with an old one."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 3)).astype(float)
    return X, (X.sum(axis=1) + rng.normal(size=n) > 3).astype(int)


X, Y = coarse(1000, 0)


@pytest.fixture(scope="module")
def fitted() -> rn.TemperatureScaling:
    return fit_quietly(rn.TemperatureScaling(LogisticRegression(), alpha=0.4, random_state=0), X, Y)


@pytest.fixture(scope="module", params=["in the process", "from a file"])
def model(request, fitted, tmp_path_factory) -> rn.TemperatureScaling:
    if request.param == "in the process":
        return fitted
    return rn.load(fitted.save(tmp_path_factory.mktemp("m") / "m.rnet"))


def order(rows: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).permutation(rows)


@pytest.mark.parametrize("kind", [np.asarray, np.float32, np.asfortranarray, pd.DataFrame])
def test_the_fit_table_is_refused_in_any_order_and_container(model, kind) -> None:
    for rows in (np.arange(1000), order(np.arange(1000))):
        with pytest.raises(rn.errors.InvalidDataError, match="1,000 of 1,000 " + WHOLE):
            model.certify(kind(X[rows]), Y[rows])


def test_so_is_each_fold_alone(model) -> None:
    held = model.evidence_.row
    trained, chosen = model.seen_.parts
    left = np.setdiff1d(np.arange(1000), held)
    assert (len(trained) + len(chosen), len(held)) == (len(left), len(model.seen_.certified))
    for rows in (held, left):
        rows = order(rows)
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            model.certify(X[rows], Y[rows])
    for part in (trained, chosen):
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            model.seen_.check(order(part))


def test_given_folds_are_recognised_one_by_one() -> None:
    parts = [coarse(n, seed) for seed, n in enumerate((600, 200, 300))]
    rule = rn.TemperatureScaling(LogisticRegression(), alpha=0.4, random_state=0)
    model = fit_quietly(rule, *parts[0], selection=parts[1], certification=parts[2])
    for rows, labels in parts:
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            model.certify(rows[::-1], labels[::-1])


def test_fresh_rows_are_certified(model) -> None:
    for seed in range(1, 21):
        with warnings.catch_warnings(action="ignore", category=rn.errors.ReuseWarning):
            assert model.certify(*coarse(1000, seed)).n == 1000


def test_with_groups_every_row_of_the_table_counts_for_it(tmp_path) -> None:
    person = np.arange(1000) // 2
    model = fit_quietly(
        rn.CertifiedThreshold(LogisticRegression(), alpha=0.4, random_state=0), X, Y, groups=person
    )
    for one in (model, rn.load(model.save(tmp_path / "m.rnet"))):
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            one.certify(X[::-1], Y[::-1], groups=person)


def test_the_rows_of_the_model_inside_a_rule_are_known_too(fitted) -> None:
    fresh, left = coarse(500, 5), np.setdiff1d(np.arange(1000), fitted.evidence_.row)[::-1]
    with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
        rn.CertifiedThreshold(fitted, alpha=0.4).fit(*fresh, certification=(X[left], Y[left]))
    rule = fit_quietly(rn.CertifiedThreshold(fitted, alpha=0.4, random_state=0), *fresh)
    for rows, labels in (fresh, (X[left], Y[left])):
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            rule.certify(rows[::-1], labels[::-1])


def test_after_a_renewal_old_and_new_rows_are_known() -> None:
    model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.4, random_state=0)
    model = fit_quietly(model, X, Y)
    new = coarse(600, 9)
    renewed, found = renew(model, model.score_rows(*new), model_hashes(model, new[0]))
    assert found.certified
    for rows, labels in ((X, Y), new):
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            renewed.certify(rows[::-1], labels[::-1])


@pytest.mark.parametrize("most", [1_000_000, 700])
def test_batches_are_recognised_as_the_whole_that_they_are(fitted, monkeypatch, most) -> None:
    """Of many rows those with the smallest hashes are compared."""
    monkeypatch.setattr("reliablenet.methods.row_watch.MOST_WATCHED", most)
    for rows, known in ((order(np.arange(1000)), True), (None, False)):
        watch = RowWatch(fitted.seen_)
        table = coarse(1000, 3)[0] if rows is None else X[rows]
        for start in range(0, 1000, 300):
            part = hash_rows(table[start : start + 300])
            watch.add(part, np.zeros(len(part), np.intp))
        if known:
            with pytest.raises(rn.errors.InvalidDataError, match="1,000 of 1,000 " + WHOLE):
                watch.refuse_seen()
        else:
            watch.refuse_seen()


def test_the_command_refuses_the_table_in_any_order(tmp_path) -> None:
    table = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(Y, "yes", "no"))
    table.to_csv(tmp_path / "t.csv", index=False)
    out = ("--out", str(tmp_path / "m.rnet"), "--alpha", "0.4")
    CliRunner().invoke(app, ["train", str(tmp_path / "t.csv"), "--target", "y", *out])
    table.iloc[order(np.arange(1000))].to_csv(tmp_path / "again.csv", index=False)
    fresh_X, fresh_y = coarse(1000, 1)
    fresh = pd.DataFrame(fresh_X, columns=list("abc")).assign(y=np.where(fresh_y, "yes", "no"))
    fresh.to_csv(tmp_path / "fresh.csv", index=False)
    names = ("again.csv", "fresh.csv")
    again, new = (
        CliRunner().invoke(
            app, ["certify", str(tmp_path / "m.rnet"), str(tmp_path / name), "--target", "y"]
        )
        for name in names
    )
    assert again.exit_code == 2
    assert WHOLE in " ".join(again.stderr.split())
    assert new.exit_code in (0, 3), new.output


def test_files_that_do_not_tell_the_parts_apart_still_know_the_whole() -> None:
    """Those of earlier versions: training and selection rows are one list."""
    hashes = hash_rows(X)
    seen = SeenRows.of([hashes[:850]], hashes[850:])
    content = seen.to_bytes()
    assert b"__metadata__" not in content
    loaded = SeenRows.from_bytes(content)
    for rows in (hashes, hashes[:850], hashes[850:]):
        with pytest.raises(rn.errors.InvalidDataError, match=WHOLE):
            loaded.check(order(rows))


def test_parts_are_in_the_file_and_earlier_versions_can_read_it() -> None:
    hashes = hash_rows(X)
    seen = SeenRows.of([hashes[:700], hashes[700:850]], hashes[850:])
    loaded = SeenRows.from_bytes(seen.to_bytes())
    assert [len(part) for part in loaded.parts] == [700, 150]
    for own, read in zip(seen.parts, loaded.parts, strict=True):
        np.testing.assert_array_equal(own, read)
    np.testing.assert_array_equal(loaded.trained, np.sort(hashes[:850]))
    assert loaded.twins == seen.twins


@pytest.mark.parametrize("sizes", [b"[700, 151]", b"[860, -10]", b"[850.0000]", b"850"])
def test_forged_parts_are_refused(sizes) -> None:
    hashes = hash_rows(X)
    content = SeenRows.of([hashes[:700], hashes[700:850]], hashes[850:]).to_bytes()
    good = b'"[700, 150]"'
    assert content.count(good) == 1
    forged = b'"' + sizes.ljust(10) + b'"'
    with pytest.raises(rn.errors.InvalidDataError, match="cannot have parts"):
        SeenRows.from_bytes(content.replace(good, forged))
