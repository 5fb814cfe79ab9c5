"""Rows of a file as a model's rule sees them: groups are spelled as the rule spells them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from reliablenet.certificate import Promise, Rule
from reliablenet.certificate.rule import Thresholds
from reliablenet.cli.model_rows import rule_groups

ALONE = Thresholds(("ward",), {1.0: 0.5, 2.0: 0.5})
CROSSED = Thresholds(("ward", "old"), {"1.0, True": 0.5, "2.0, False": 0.5})
FRAMES = [
    pd.DataFrame({"ward": [1, 2, 3], "old": [True, False, True]}),
    pd.DataFrame({"ward": [1.0, 2.0, 3.0], "old": ["true", "FALSE", "True"]}),
    pd.DataFrame({"ward": ["1", " 2.0", "03"], "old": ["True ", "false", "true"]}),
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("tables", [[ALONE], [CROSSED], [ALONE, CROSSED], [CROSSED, ALONE]])
def test_groups_are_spelled_as_the_rule_spells_them(frame, tables) -> None:
    """Crossed groups were not: their rows were deferred as of a group that nobody knows."""
    names = list(dict.fromkeys(name for table in tables for name in table.key))
    rule = Rule(tuple(tables))
    model = SimpleNamespace(rule_=rule, promise=Promise.by_group(0.1, by=names))
    by = rule_groups(model, frame)
    assert rule.accept(score=np.ones(3), by=by).tolist() == [True, True, False]
