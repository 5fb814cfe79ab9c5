"""Files of every kind, altered: read rightly, or refused with an error of ours."""

from __future__ import annotations

import pytest
from fuzz_files import FILES, run_file

CASES = 150  # of each; the study `fuzz` runs a hundred times as many


@pytest.mark.parametrize("name", FILES)
def test_a_right_answer_or_an_error_of_ours(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcomes = [run_file(name, FILES[name], seed, tmp_path) for seed in range(CASES)]
    assert set(outcomes) <= {"answer", "right answer", "our error"}
    assert outcomes.count("our error") < CASES  # the untouched files among them are read
    assert len(list(tmp_path.iterdir())) == 1  # nothing was written
