"""`reliablenet export --to record`: three files from a model file and from what people said."""

import json
from pathlib import Path

MODEL = Path(__file__).parents[1] / "methods" / "models_of_0_2_dev" / "reliable.rnet"


def test_a_record_is_written_and_says_what_was_not_given(call, tmp_path):
    out = tmp_path / "record"
    said = ("--purpose", "Small loans", "--owner", "Risk", "--alpha-reason", "20 fees")
    done = call("export", MODEL, "--to", "record", "--out", out, *said, "--audit", "20%")
    assert done.exit_code == 0, done.output
    assert "Not given: Whom or what are the rows about?" in done.output
    assert sorted(path.name for path in out.iterdir()) == [
        "model-card.md",
        "record.html",
        "record.json",
    ]
    told = json.loads((out / "record.json").read_text("utf-8"))
    assert told["purpose"]["purpose"] == "Small loans"
    assert told["monitoring"]["audit"] == 0.2
    again = call("export", MODEL, "--to", "record", "--out", out)
    assert (again.exit_code, "already" in again.output) == (2, True)


def test_answers_are_for_a_record_alone(call, tmp_path):
    done = call("export", MODEL, "--to", "onnx", "--out", tmp_path / "m.onnx", "--owner", "Risk")
    assert (done.exit_code, "--owner is for --to record" in done.output) == (2, True)
