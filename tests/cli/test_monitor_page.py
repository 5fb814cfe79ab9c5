"""`reliablenet monitor --out`: the page of a decision log."""

import json

import numpy as np

from reliablenet import certified_threshold
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog, Outcome


def test_the_page_of_a_log_is_written_and_the_alarm_still_ends_with_4(call, tmp_path):
    scores = np.linspace(0.5, 1.0, 400)
    made = certified_threshold(None, None, 0.05, score=scores, correct=np.ones(400, bool))
    with DecisionLog(tmp_path / "d.db", create=True) as log:
        rule = log.put_in_force("loans", "0" * 64, made.to_json())
        logged = log.append(rule, AuditCoin(bytes(32), 1.0), ["a"] * 60, [0.9] * 60, [True] * 60)
        log.record([Outcome(name, wrong=False) for name in logged.ids[:40]])
        quiet = call("monitor", tmp_path / "d.db", "--out", tmp_path / "page.html")
        assert quiet.exit_code == 0, quiet.output
        assert "No alarm" in (tmp_path / "page.html").read_text()
        assert "page.html" in quiet.stdout.replace("\n", "")  # where it is
        machine = call("monitor", tmp_path / "d.db", "--out", tmp_path / "page.html", "--json")
        assert json.loads(machine.stdout)["page"] == str(tmp_path / "page.html")
        assert "page" not in json.loads(call("monitor", tmp_path / "d.db", "--json").stdout)
        log.record([Outcome(name, wrong=True) for name in logged.ids[40:]])
    lenient = call(
        "monitor", tmp_path / "d.db", "--out", tmp_path / "lenient.html", "--alpha", 0.99
    )
    assert lenient.exit_code == 0, lenient.output
    assert "the budget is 99" in (tmp_path / "lenient.html").read_text()
    loud = call("monitor", tmp_path / "d.db", "--out", tmp_path / "page.html")
    assert loud.exit_code == 4
    text = (tmp_path / "page.html").read_text()
    assert "Alarm at row" in text
    assert "<form" not in text


def test_a_table_has_no_page(call, tmp_path):
    (tmp_path / "t.csv").write_text("accepted,wrong\n1,0\n")
    result = call("monitor", tmp_path / "t.csv", "--out", tmp_path / "page.html")
    assert (result.exit_code, "--out needs a decision log" in result.stderr) == (2, True)
