"""A change of unit is looked for without dividing by nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reliablenet.tables.describing import describe
from reliablenet.tables.units import changed_factor


def test_a_column_of_which_most_is_zero_has_no_factor() -> None:
    column = describe(pd.Series(np.r_[np.zeros(450), np.ones(50)]), "gain")
    assert column.quartiles == (0.0, 0.0, 0.0)
    assert changed_factor(column, np.linspace(50.0, 60.0, 100)) == ""
