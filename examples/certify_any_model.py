"""Certify a model that is already fitted: any classifier with `predict_proba` will do."""

from __future__ import annotations

from sklearn.ensemble import HistGradientBoostingClassifier

import reliablenet as rn
from reliablenet.datasets import SyntheticBand


def main() -> None:
    band = SyntheticBand(random_state=0)
    past, held_out = band.sample(5000), band.sample(3000)
    model = HistGradientBoostingClassifier(random_state=0).fit(past.X, past.y)

    # The held-out rows had no part in making the model, so they may choose its threshold.
    certificate = rn.certified_threshold(
        model.predict_proba(held_out.X), held_out.y, alpha=0.05, rho=0.05
    )
    print(certificate.to_json())

    print(
        "rows for a certificate, if the true JCW is 0.03:", rn.rows_needed(0.05, expected_jcw=0.03)
    )


if __name__ == "__main__":
    main()
