"""A graph that decides differently from the model is not written, and the rows are named."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import ExportError, InvalidDataError
from reliablenet.export.onnx.trial import Trial, feeds
from reliablenet.methods.decisions import Decisions


class Input:
    def __init__(self, name: str, kind: str) -> None:
        self.name, self.type = name, f"tensor({kind})"


class Session:
    """Answers as it was told to."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions

    def get_inputs(self) -> list[Input]:
        return [Input("age", "double"), Input("job", "string")]

    def get_modelmeta(self) -> SimpleNamespace:
        columns = json.dumps({"age": "number", "job": "category"})
        return SimpleNamespace(custom_metadata_map={"columns": columns})

    def run(self, names: object, given: dict[str, np.ndarray]) -> list[np.ndarray]:
        ours = self.decisions
        return [ours.label.astype(object), ours.confidence, ours.accepted]


ROWS = pd.DataFrame({"age": [30.0, np.nan, 50.0], "job": ["cook", None, "clerk"]})
OURS = Decisions(
    np.array(["no", "yes", "no"]), np.array([0.9, 0.6, 0.8]), np.array([True, False, True])
)


def test_rows_are_given_as_numbers_and_texts() -> None:
    given = feeds(Session(OURS), ROWS)
    assert given["job"].tolist() == [["cook"], [""], ["clerk"]]
    assert given["age"].shape == (3, 1)
    assert np.isnan(given["age"][1, 0])


def test_an_empty_text_in_a_row_is_not_taken_for_a_gap() -> None:
    with pytest.raises(InvalidDataError, match="'job' holds the empty text in row 2"):
        feeds(Session(OURS), ROWS.assign(job=["cook", None, ""]))


def test_what_agrees_passes_and_the_gap_is_kept() -> None:
    near = replace(OURS, confidence=OURS.confidence + np.array([0.0, 4e-6, 0.0]))
    trial = Trial(Session(near))
    trial.compare(ROWS, None, OURS, "rows")
    assert trial.gap == pytest.approx(4e-6)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            {"label": np.array(["no", "no", "no"])},
            "row 1 (yes, 0.6000000, deferred; in the graph no",
        ),
        ({"accepted": np.array([True, False, False])}, "row 2 (no, 0.8000000, accepted; in the"),
        ({"confidence": np.array([0.9001, 0.6, 0.8])}, "in the graph no, 0.9001000, accepted)"),
        ({"confidence": np.array([0.9, np.nan, 0.8])}, "decides 1 of 3 loans differently"),
    ],
)
def test_what_differs_is_refused_by_row(other, said) -> None:
    with pytest.raises(ExportError) as refused:
        Trial(Session(replace(OURS, **other))).compare(ROWS, None, OURS, "loans")
    assert said in str(refused.value)
