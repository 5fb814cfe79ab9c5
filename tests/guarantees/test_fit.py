"""The promise of a whole fit: train, choose the weights, choose the threshold, certify.

In short: enough fits to see a threshold that was chosen on rows the network has learned, which is beyond its
budget in about half of them. The long form, 1,000 fits a setting, is `studies/guarantees/fits.py`.
"""

from __future__ import annotations

import math
import warnings

import reliablenet as rn
from reliablenet.datasets import SyntheticBand

ALPHA, RHO, FITS = 0.05, 0.05, 40
SHORT = rn.training.Schedule(warmup_epochs=5, epochs_per_stage=2, max_stages=3, tau=0.1)


def test_a_certified_fit_breaks_its_promise_in_at_most_rho_of_draws() -> None:
    """Each fit has rows and a boundary of its own; 20,000 fresh rows tell its true JCW."""
    certified = broken = 0
    for seed in range(FITS):
        band = SyntheticBand(seed)
        rows, fresh = band.sample(1500), band.sample(20_000)
        model = rn.ReliableClassifier(ALPHA, RHO, network="mlp", schedule=SHORT, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rn.errors.ConstraintWarning)
            model.fit(rows.X, rows.y)
        certified += model.certificate_.certified
        broken += model.evaluate(fresh.X, fresh.y).jcw > ALPHA
    assert certified > 0.9 * FITS
    assert broken / FITS <= RHO + 3 * math.sqrt(RHO * (1 - RHO) / FITS)
