"""`Outputs` and `Decisions`: what a method computes for rows, and what is to be done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.certificate.scored import ScoredRows, proba_rows, top_entries


@dataclass(frozen=True)
class Decisions:
    """What to do with each row: act on ``label`` where ``accepted``, else defer to a person.

    Attributes
    ----------
    label : array of shape (n,)
        Predicted class, also for deferred rows.
    confidence : array of shape (n,)
        The score that was compared with the threshold.
    accepted : boolean array of shape (n,)
    """

    label: NDArray[Any]
    confidence: NDArray[np.float64]
    accepted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.label)

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Return the decisions as a data frame, one row each."""
        return pd.DataFrame(
            {"label": self.label, "confidence": self.confidence, "accepted": self.accepted},
            index=index,
        )


class Outputs(NamedTuple):
    """Class probabilities of shape (n, K), and the acceptance score where it is not their top."""

    proba: NDArray[np.float64]
    score: NDArray[np.float64] | None = None

    def acceptance(self) -> NDArray[np.float64]:
        """Return the acceptance score of each row."""
        return top_entries(self.proba)[0] if self.score is None else self.score

    def scored(self, y: NDArray[np.intp]) -> ScoredRows:
        """Return scores and verdicts of rows whose labels are class indices, -1 where not known."""
        return proba_rows(self.proba, y, self.score)
