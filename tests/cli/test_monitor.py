"""`monitor`, `recertify` and `plan --monitor` as they are typed."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.cli.app import app
from reliablenet.monitor import Monitor
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog, Outcome


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def outcomes(n=600, jcw=0.02, seed=0):
    random = np.random.default_rng(seed)
    accepted = random.random(n) < 0.8
    return accepted, random.random(n) < jcw / 0.8


def test_a_table_is_judged_as_the_class_does(tmp_path):
    for jcw, code in ((0.02, 0), (0.2, 4)):
        accepted, wrong = outcomes(jcw=jcw)
        file = tmp_path / "outcomes.csv"
        pd.DataFrame({"accepted": accepted, "wrong": wrong}).to_csv(file, index=False)
        expected = Monitor(0.05)
        expected.update(accepted, wrong)
        found = run("monitor", file, "--json")
        assert found.exit_code == code, found.output
        assert json.loads(found.stdout) == json.loads(json.dumps(expected.to_dict()))
        shown = run("monitor", file)
        assert shown.exit_code == code
        assert str(expected) in shown.output
        assert ("recertify" in shown.output) == (code == 4)


def test_a_column_given_twice_is_refused(tmp_path):
    """What is compared with itself is never wrong."""
    file = tmp_path / "outcomes.csv"
    pd.DataFrame({"accepted": ["yes"] * 50, "y": ["a"] * 50}).to_csv(file, index=False)
    for words in (("--label", "y", "--truth", "y"), ("--wrong", "accepted")):
        refused = run("monitor", file, *words)
        assert refused.exit_code == 2
        assert "both name the column" in refused.output


def test_labels_audits_groups_and_empty_outcomes(tmp_path):
    accepted, wrong = outcomes(1000, 0.04)
    random = np.random.default_rng(1)
    audited, group = random.random(1000) < 0.5, random.choice(["A", "B"], 1000)
    truth = np.where(wrong, "no", "yes").astype(object)
    truth[~audited | (np.arange(1000) >= 990)] = None
    table = {"accepted": np.where(accepted, "yes", "no"), "label": "yes", "truth": truth}
    file = tmp_path / "outcomes.jsonl"
    frame = pd.DataFrame(table | {"audited": audited, "group": group})
    frame.to_json(file, orient="records", lines=True)
    words = ("monitor", file, "--label", "label", "--truth", "truth", "--group", "group")
    assert "--audit" in run(*words).output
    found = json.loads(run(*words, "--audit", 0.5, "--json").stdout)
    expected = Monitor({"A": 0.05, "B": 0.05}, audit=0.5)
    pending = np.arange(1000) >= 990
    expected.update(accepted, wrong, audited, by=group, pending=pending)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert found["pending"] == (accepted & audited & pending).sum()
    assert run("monitor", file, "--label", "label").exit_code == 2


def assert_alike(found, expected):
    """The log is read in pieces, so that sums may differ in their last digits."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert_alike(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_alike(*pair)
    else:
        same = pytest.approx(expected, rel=1e-9) if isinstance(expected, float) else expected
        assert found == same


def test_a_decision_log_is_read_whole_and_outcomes_count_where_they_belong(tmp_path):
    place = tmp_path / "decisions.db"
    certificate = rn.Certificate(0, 80, 100, alpha=0.04, rho=0.05, threshold=0.9)
    accepted, wrong = outcomes(400, 0.2)
    with DecisionLog(place, create=True) as log:
        old = log.put_in_force("loans", "0" * 64, certificate.to_json())
        log.append(old, AuditCoin(bytes(32), 0.5), ["yes"], [0.9], [True])
        rule = log.put_in_force("loans", "1" * 64, certificate.to_json())
        coin = AuditCoin(bytes(32), share=0.5)
        kept = log.append(rule, coin, ["yes"] * 400, [0.9] * 400, accepted.tolist())
        audited = np.array(kept.audit)
        told = [
            Outcome(name, truth="no" if bad else "yes")
            for place, (name, bad) in enumerate(zip(kept.ids, wrong, strict=True))
            if place % 10  # every tenth is still to come; those not picked do not count
        ]
        log.record(told[::-1])
    expected = Monitor(0.04, audit=0.5)
    expected.update(accepted, wrong, audited, pending=np.arange(400) % 10 == 0)
    found = run("monitor", place, "--json")
    assert found.exit_code == 4, found.output
    assert_alike(json.loads(found.stdout), json.loads(json.dumps(expected.to_dict())))
    assert run("monitor", place, "--audit", 0.5).exit_code == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("accepted,wrong\nmaybe,1\n", "yes and no, or 1 and 0; it holds 'maybe'"),
        ("accepted\n1\n", "wrong"),
        ("accepted,wrong\n", "no rows"),
        ("accepted,wrong\n,1\n", "must be known of every row"),
    ],
)
def test_bad_tables_are_named(tmp_path, content, expected):
    file = tmp_path / "outcomes.csv"
    file.write_text(content)
    found = run("monitor", file)
    assert found.exit_code == 2
    assert expected in found.output
    assert run("monitor", tmp_path / "none.csv").exit_code == 5


def table(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 3)), columns=["a", "b", "c"])
    chance = 1 / (1 + np.exp(-3 * frame["a"]))
    return frame, np.where(random.random(n) < chance, "yes", "no")


def test_recertify_writes_a_renewed_model_or_nothing(tmp_path):
    base = LogisticRegression().fit(*table(400, 9))
    model, out = tmp_path / "model.rnet", tmp_path / "new.rnet"
    rn.CertifiedThreshold(base, alpha=0.1, random_state=0).fit(*table(1200, 0)).save(model)
    for seed, name in ((0, "seen"), (1, "fresh"), (2, "march"), (3, "april")):
        frame, y = table(1200 if seed < 2 else 300, seed)
        frame.assign(y=y).to_csv(tmp_path / f"{name}.csv", index=False)
    few = pd.read_csv(tmp_path / "march.csv").head(15)
    few.to_csv(tmp_path / "few.csv", index=False)
    words = ("--target", "y", "--out", out)

    refused = run("recertify", model, tmp_path / "seen.csv", *words)
    assert refused.exit_code == 2
    assert "given to `fit` already" in refused.output
    refused = run("recertify", model, tmp_path / "few.csv", *words)
    assert refused.exit_code == 3
    assert "--sequential" in refused.output
    assert not out.exists()

    granted = run("recertify", model, tmp_path / "fresh.csv", *words, "--reason", "a new year")
    assert granted.exit_code == 0, granted.output
    assert "certificate 2 in its chain" in granted.output
    assert rn.load(out).chain_[1].reason == "a new year"
    assert "a new year" in run("inspect", out).output

    state = tmp_path / "state.json"
    again = tmp_path / "again.rnet"
    words = ("--target", "y", "--out", again, "--sequential", state)
    first = run("recertify", out, tmp_path / "few.csv", *words)
    assert first.exit_code == 3
    assert "look again at any time" in first.output
    for month in ("march", "april"):
        frame = pd.read_csv(tmp_path / f"{month}.csv")
        (frame.tail(285)).to_csv(tmp_path / f"{month}.csv", index=False)
        last = run("recertify", out, tmp_path / f"{month}.csv", *words, "--json")
    assert last.exit_code == 0, last.output
    assert json.loads(last.stdout)["kind"] == "anytime"
    assert json.loads(last.stdout)["n"] == 585
    assert len(rn.load(again).chain_) == 3


def test_delays_are_planned():
    found = json.loads(run("plan", "--monitor", "--json").stdout)
    assert {round(entry["jcw"], 3) for entry in found["delays"]} == {0.075, 0.1, 0.15, 0.25}
    assert next(e for e in found["delays"] if round(e["jcw"], 2) == 0.1)["median"] <= 140
    assert "alarm after" in run("plan", "--monitor", "--audit", 0.5).output


def test_a_model_that_counts_groups_is_certified_and_renewed_by_groups(tmp_path):
    base = LogisticRegression().fit(*table(400, 9))
    model, out, fresh = (tmp_path / name for name in ("model.rnet", "new.rnet", "fresh.csv"))
    frame, y = table(1500, 0)
    rule = rn.CertifiedThreshold(base, alpha=0.1, random_state=0)
    rule.fit(frame, y, groups=np.arange(1500) // 3).save(model)
    frame, y = table(1200, 1)
    frame.assign(y=y, who=np.arange(1200) // 2).to_csv(fresh, index=False)
    words = (model, fresh, "--target", "y")
    for command, more in (("certify", ()), ("recertify", ("--out", out))):
        refused = run(command, *words, *more)
        assert refused.exit_code == 2
        assert (
            "counts groups, one row of each. Say which column names them: --group COLUMN, or"
            in (" ".join(refused.output.split()))
        )
        both = run(command, *words, *more, "--group", "who", "--ungrouped")
        assert both.exit_code == 2
        assert "--group or --ungrouped, not both" in both.output
        rows = run(command, *words, *more, "--ungrouped")
        assert rows.exit_code in (0, 3), rows.output
        assert "rows are counted, where the model's own certificate counts groups" in rows.output
        named = run(command, *words, *more, "--group", "who")
        assert named.exit_code in (0, 3), named.output
        assert "600 groups (one row of each)" in named.output
        assert "where the model's own certificate" not in named.output
    shown = run("inspect", out).output
    assert "first certificate, counted groups" in shown
    state = tmp_path / "state.json"
    words = ("recertify", *words, "--out", out, "--sequential", state)
    granted = run(*words, "--group", "who", "--json")
    assert granted.exit_code == 0, granted.output
    told = json.loads(granted.stdout)
    assert (told["unit"], told["kind"], told["n"]) == ("group", "anytime", 600)
    other = run(*words, "--ungrouped")
    assert other.exit_code == 2
    assert "This renewal counts groups since it began" in other.output


def test_a_sequential_renewal_tells_of_copies(tmp_path):
    base = LogisticRegression().fit(*table(400, 9))
    model = tmp_path / "model.rnet"
    rn.CertifiedThreshold(base, alpha=0.1, random_state=0).fit(*table(1200, 0)).save(model)
    frame, y = table(150, 1)
    frame = pd.concat([frame.assign(y=y)] * 5)
    frame.to_csv(tmp_path / "fresh.csv", index=False)
    words = ("recertify", model, tmp_path / "fresh.csv", "--target", "y", "--out")
    for more in ((), ("--sequential", tmp_path / "state.json")):
        told = run(*words, tmp_path / "new.rnet", *more)
        assert "600 of 750 certification rows (80%) repeat another one" in told.output
        assert "600 rows repeat another row of the fold, and count again" in told.output
