"""What MLflow loads: a model file as a Python function, from a data frame to decisions."""

from __future__ import annotations

from typing import Any

import pandas as pd

from reliablenet.methods import load
from reliablenet.methods.layers import find_encoder
from reliablenet.tables.columns import check_columns


class DecidingFunction:
    """A model as MLflow calls it.

    Parameters
    ----------
    model : estimator
        Fitted.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Any = None) -> pd.DataFrame:
        """Return label or value, confidence and accepted of rows.

        Parameters
        ----------
        model_input : data frame or array
            With the columns that the model uses, and the groups that its rule needs.
        params : object
            Not used; MLflow passes it.
        """
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            rows = model_input.to_numpy() if hasattr(model_input, "to_numpy") else model_input
            found: pd.DataFrame = self.model.decide(rows).to_frame()
            return found
        encoder = find_encoder(self.model)
        idle = set() if encoder is None else set(encoder.dropped_)
        grouping = self.model.promise.columns if self.model.rule_.columns else ()
        needed = [*(name for name in names if name not in idle), *grouping]
        check_columns(needed, list(model_input.columns), "The input")
        by = {name: model_input[name].to_numpy() for name in grouping} or None
        return pd.DataFrame(
            self.model.decide(model_input.reindex(columns=list(names)), by).to_frame()
        )


def _load_pyfunc(path: str) -> DecidingFunction:
    """Return the model in a file; MLflow calls it by this name."""
    return DecidingFunction(load(path))
