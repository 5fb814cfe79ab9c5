"""Every public function with good arguments and, where there is one, a slow reference."""

from __future__ import annotations

import math
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_case import Random, Target, pick
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import reliablenet as rn
from reliablenet import certificate, metrics, risk, tables, training
from reliablenet.datasets import SyntheticBand

Arguments = dict[str, Any]


def close(answer: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(answer, float), expected, tolerance, tolerance)


def finite(answer: Any) -> None:
    assert np.all(np.isfinite(np.asarray(answer, float))), "not finite"


def fraction(random: Random) -> float:
    return float(random.uniform(0.01, 0.5))


# --- risk: tensors in, tensors out


def logits_and_labels(random: Random) -> Arguments:
    n, k = random.randint(1, 8), random.randint(2, 5)
    return {
        "logits": torch.from_numpy(random.standard_normal((n, k)) * 3),
        "y": torch.from_numpy(random.randint(k, size=n)),
    }


def with_threshold(random: Random) -> Arguments:
    made = logits_and_labels(random)
    low = 1 / made["logits"].shape[-1]
    return made | {"threshold": float(random.uniform(low + 1e-6, 1.0))}


def softmax(logits: torch.Tensor) -> np.ndarray:
    rows = logits.numpy()
    return np.exp(rows) / np.exp(rows).sum(-1, keepdims=True)


def margins(given: Arguments) -> np.ndarray:
    rows, y = given["logits"].numpy(), given["y"].numpy()
    return np.array(
        [
            max(v for j, v in enumerate(row) if j != k) - row[k]
            for row, k in zip(rows, y, strict=True)
        ]
    )


def violations(given: Arguments) -> np.ndarray:
    return np.minimum(softmax(given["logits"]).max(-1) - given["threshold"], margins(given))


def values_and_tau(name: str, random: Random) -> Arguments:
    m1 = float(random.uniform(0.1, 0.9))
    return {
        name: torch.from_numpy(random.standard_normal(random.randint(1, 9))),
        "tau": float(random.uniform(0.01, 0.9)),
        "m1": m1,
        "m2": float(random.uniform(0.01, 0.9) * m1 / (1 + m1)),
    }


def ordered(answer: Any) -> None:
    assert not bool(answer.lower > answer.upper)  # NaN of NaN is honest


def real(answer: torch.Tensor) -> None:
    assert answer.dtype.is_floating_point


def smooth(s: np.ndarray, given: Arguments) -> np.ndarray:
    """The paper's formula as it is written."""
    tau, m1, m2 = given["tau"], given["m1"], given["m2"]
    with np.errstate(over="ignore"):
        return (1 + m1 * tau) / (1 + m2 * tau * np.exp(-s / tau))


def check_smooth(name: str, given: Arguments, answer: Any) -> None:
    s = given.get("s", given.get("g")).numpy()
    psi, phi = smooth(s, given).mean(), smooth(-s, given).mean()
    expected = {
        "zeta": smooth(s, given),
        "zeta_reflected": smooth(-s, given),
        "psi": psi,
        "phi": phi,
        "gap": psi + phi - 1,
        "bracket": [1 - psi, phi],
    }[name]
    found = [part.item() for part in answer] if name == "bracket" else answer.detach()
    close(found, expected)


RISK = {
    "risk.confidence": Target(
        risk.confidence,
        lambda r: {"logits": logits_and_labels(r)["logits"]},
        lambda given, answer: close(answer.detach(), softmax(given["logits"]).max(-1)),
        real,
    ),
    "risk.margin": Target(
        risk.margin,
        logits_and_labels,
        lambda given, answer: close(answer.detach(), margins(given)),
        real,
    ),
    "risk.violation": Target(
        risk.violation,
        with_threshold,
        lambda given, answer: close(answer.detach(), violations(given)),
        real,
    ),
    "risk.confident_wrong": Target(
        risk.confident_wrong,
        with_threshold,
        lambda given, answer: np.testing.assert_array_equal(
            answer, (softmax(given["logits"]).max(-1) >= given["threshold"]) & (margins(given) > 0)
        ),
    ),
    **{
        f"risk.{name}": Target(
            getattr(risk, name),
            partial(values_and_tau, "s" if name.startswith("zeta") else "g"),
            partial(check_smooth, name),
            ordered if name == "bracket" else real,
        )
        for name in ("zeta", "zeta_reflected", "psi", "phi", "gap", "bracket")
    },
}

# --- certificate: counts in, bounds out


def scored(random: Random) -> Arguments:
    n, k = random.randint(1, 40), random.randint(2, 5)
    proba = random.dirichlet(np.ones(k), n)
    if random.uniform() < 0.3:  # ties
        proba = np.full((n, k), 1 / k)
        proba[:, 0] += 0.5 - 0.5 / k
        proba[:, 1:] -= (0.5 - 0.5 / k) / (k - 1)
    return {
        "proba": proba,
        "y": random.randint(k, size=n),
        "alpha": fraction(random),
    }


def certifiable(random: Random) -> Arguments:
    return scored(random) | {"rho": fraction(random)}


def fixed_rule(random: Random) -> Arguments:
    return certifiable(random) | {"threshold": float(random.uniform(0, 1))}


def bare_scores(make: Any, random: Random) -> Arguments:
    """The same rows as scores and labels."""
    given = make(random)
    names = np.array(["a", "b", "c", "d"])
    proba, y = given.pop("proba"), given.pop("y")
    return given | {
        "proba": None,
        "y": names[y],
        "score": proba.max(axis=1),
        "predicted": names[proba.argmax(axis=1)],
    }


def rows_of(given: Arguments) -> tuple[np.ndarray, np.ndarray]:
    if given["proba"] is None:
        return given["score"], given["predicted"] != given["y"]
    return given["proba"].max(axis=1), given["proba"].argmax(axis=1) != given["y"]


def upper(k: int, n: int, rho: float) -> float:
    return 1.0 if k == n else float(stats.beta.ppf(1 - rho, k + 1, n - k))


def check_fixed(given: Arguments, answer: Any) -> None:
    score, wrong = rows_of(given)
    acted = score >= given["threshold"]
    k, n = int((acted & wrong).sum()), len(score)
    assert (answer.errors, answer.accepted, answer.n) == (k, int(acted.sum()), n)
    close(answer.upper_bound, upper(k, n, given["rho"]))
    assert answer.certified == (upper(k, n, given["rho"]) <= given["alpha"])


def check_monotone(given: Arguments, answer: Any) -> None:
    """No certifiable threshold accepts more rows."""
    score, wrong = rows_of(given)
    n, best = len(score), 0
    for t in np.unique(score):
        k = int((wrong & (score >= t)).sum())
        if upper(k, n, given["rho"]) <= given["alpha"]:
            best = max(best, int((score >= t).sum()))
    assert answer.accepted == best
    assert answer.certified == (best > 0)
    assert int((score >= answer.threshold).sum()) == best


def check_jcw_threshold(given: Arguments, answer: float) -> None:
    score, wrong = rows_of(given)
    allowed = [t for t in np.unique(score) if (wrong & (score >= t)).mean() <= given["alpha"]]
    expected = sum(score >= min(allowed)) if allowed else 0
    assert int((score >= answer).sum()) == expected


def check_conformal_threshold(given: Arguments, answer: float) -> None:
    score, wrong = rows_of(given)
    n = len(score)
    allowed = [
        e
        for e in [-math.inf, *score]
        if ((wrong & (score > e)).sum() + 1) / (n + 1) <= given["alpha"]
    ]
    expected = sum(score > min(allowed)) if allowed else 0
    assert int((score >= answer).sum()) == expected


def sound_certificate(answer: Any) -> None:
    assert 0 <= answer.errors <= answer.accepted <= answer.n
    assert 0 < answer.upper_bound <= 1
    assert not answer.certified or answer.upper_bound <= answer.alpha
    assert not math.isnan(answer.threshold)


def certificate_fields(random: Random) -> Arguments:
    n = int(random.randint(1, 2000))
    accepted = int(random.randint(n + 1))
    return {
        "errors": int(random.randint(accepted + 1)),
        "accepted": accepted,
        "n": n,
        "alpha": fraction(random),
        "rho": fraction(random),
        "threshold": float(random.uniform()),
        "kind": pick(random, ["fixed", "monotone"]),
    }


def counts(random: Random) -> Arguments:
    n = random.randint(1, 1000, size=random.randint(1, 5))
    return {"errors": random.randint(n + 1), "n": n, "rho": fraction(random)}


def check_counts(given: Arguments, answer: Any) -> None:
    pairs = zip(given["errors"], given["n"], strict=True)
    close(answer, [upper(k, n, given["rho"]) for k, n in pairs], 1e-8)


def in_unit(answer: Any) -> None:
    found = np.asarray(answer, float)
    assert np.all((found >= 0) & (found <= 1)), "not in [0, 1]"


def positive(answer: Any) -> None:
    assert np.all(np.asarray(answer, float) > 0), "not positive"


def powered(given: Arguments, answer: Any) -> None:
    alpha, rho, p = given["alpha"], given["rho"], given["expected_jcw"]
    for n, found in zip(given["n"], answer, strict=True):
        k = next((k for k in range(n, -1, -1) if upper(k, n, rho) <= alpha), -1)
        close(found, stats.binom.cdf(k, n, p) if k >= 0 else 0.0, 1e-8)


CERTIFICATE = {
    "certify": Target(rn.certify, fixed_rule, check_fixed, sound_certificate),
    "certify, scores": Target(
        rn.certify, partial(bare_scores, fixed_rule), check_fixed, sound_certificate
    ),
    "certified_threshold": Target(
        rn.certified_threshold, certifiable, check_monotone, sound_certificate
    ),
    "certified_threshold, scores": Target(
        rn.certified_threshold, partial(bare_scores, certifiable), check_monotone, sound_certificate
    ),
    "jcw_threshold": Target(rn.jcw_threshold, scored, check_jcw_threshold),
    "jcw_threshold, scores": Target(
        rn.jcw_threshold, partial(bare_scores, scored), check_jcw_threshold
    ),
    "conformal_threshold": Target(rn.conformal_threshold, scored, check_conformal_threshold),
    "conformal_threshold, scores": Target(
        rn.conformal_threshold, partial(bare_scores, scored), check_conformal_threshold
    ),
    "Certificate": Target(rn.Certificate, certificate_fields, None, sound_certificate),
    "clopper_pearson_upper": Target(rn.clopper_pearson_upper, counts, check_counts, in_unit),
    "hoeffding_upper": Target(
        rn.hoeffding_upper,
        lambda r: {
            "mean": r.uniform(size=3),
            "n": r.randint(1, 999, size=3),
            "rho": fraction(r),
            "bound": float(r.uniform(1, 2)),
        },
        lambda given, answer: close(
            answer,
            given["mean"] + given["bound"] * np.sqrt(np.log(1 / given["rho"]) / 2 / given["n"]),
        ),
        positive,
    ),
    "uniform_slack": Target(
        rn.uniform_slack,
        lambda r: {
            "n": r.randint(1, 9999, size=3),
            "rho": fraction(r),
            "tau": fraction(r),
            "n_parameters": int(r.randint(1, 99)),
            "lipschitz": float(r.uniform(0, 9)),
            "radius": float(r.uniform(0, 9)),
            "m1": fraction(r),
        },
        None,
        positive,
    ),
    "rows_needed": Target(
        rn.rows_needed,
        lambda r: {
            "alpha": (alpha := fraction(r)),
            "rho": fraction(r),
            "expected_jcw": alpha * float(r.uniform(0, 0.5)),
            "power": float(r.uniform(0.5, 0.95)),
        },
        lambda given, answer: close(
            rn.certificate.certification_power(
                answer, given["alpha"], given["rho"], given["expected_jcw"]
            )
            >= given["power"],
            1,
        ),
        positive,
    ),
    "certification_power": Target(
        rn.certificate.certification_power,
        lambda r: {
            "n": r.randint(1, 60, size=3),
            "alpha": fraction(r),
            "rho": fraction(r),
            "expected_jcw": fraction(r),
        },
        powered,
        in_unit,
    ),
    "rows_for_errors": Target(
        certificate.rows_for_errors,
        lambda r: {"errors": r.randint(0, 30, size=3), "alpha": fraction(r), "rho": fraction(r)},
        lambda given, answer: close(
            [
                upper(k, n, given["rho"]) <= given["alpha"] < upper(k, n - 1, given["rho"])
                for k, n in zip(given["errors"], answer, strict=True)
            ],
            1,
        ),
        positive,
    ),
    "certification_rows": Target(
        certificate.certification_rows,
        lambda r: {"n": int(r.randint(1, 500)), "alpha": fraction(r), "rho": fraction(r)},
        lambda given, answer: close(1 <= answer <= given["n"], True),
    ),
    "largest_certifiable_errors": Target(
        certificate.largest_certifiable_errors,
        lambda r: {"n": int(r.randint(1, 500)), "alpha": fraction(r), "rho": fraction(r)},
        lambda given, answer: close(
            answer,
            max(
                [
                    k
                    for k in range(given["n"])
                    if upper(k, given["n"], given["rho"]) <= given["alpha"]
                ]
                or [-1]
            ),
        ),
    ),
}

# --- metrics


def judged(random: Random) -> Arguments:
    n = random.randint(1, 40)
    score = random.uniform(size=n).round(random.randint(1, 9))
    return {"score": score, "wrong": random.randint(2, size=n).astype(bool)}


def area(score: np.ndarray, wrong: np.ndarray) -> float:
    """Row by row, each row of a tie with the tie's mean error."""
    total, errors, k = 0.0, 0.0, 0
    for t in sorted(set(score), reverse=True):
        tie = wrong[score == t]
        for _ in tie:
            k, errors = k + 1, errors + tie.mean()
            total += errors / k
    return total / k


def check_area(given: Arguments, answer: float) -> None:
    close(answer, area(given["score"], given["wrong"]))


def check_excess(given: Arguments, answer: float) -> None:
    best = area(~given["wrong"], given["wrong"])
    close(answer, area(given["score"], given["wrong"]) - best)


def calibrated(random: Random) -> Arguments:
    given = judged(random)
    return {
        "confidence": given["score"],
        "right": ~given["wrong"],
        "bins": int(random.randint(1, 20)),
    }


def check_calibration(given: Arguments, answer: float) -> None:
    confidence, right, bins = given["confidence"], given["right"], given["bins"]
    total = 0.0
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    for b in range(bins):
        chosen = place == b
        if chosen.any():
            total += chosen.mean() * abs(right[chosen].mean() - confidence[chosen].mean())
    close(answer, total, 1e-6)


def accepted_rows(random: Random) -> Arguments:
    given = scored(random)
    return given | {"accepted": random.randint(2, size=len(given["y"])).astype(bool)}


def check_evaluation(given: Arguments, answer: Any) -> None:
    _, wrong = rows_of(given)
    acted = given["accepted"]
    assert answer.errors == int((acted & wrong).sum())
    close(
        [answer.accuracy, answer.coverage, answer.jcw, answer.throughput],
        [(~wrong).mean(), acted.mean(), (acted & wrong).mean(), (acted & ~wrong).mean()],
    )


def check_curve(given: Arguments, answer: Any) -> None:
    score, wrong = rows_of(given)
    for t, k in zip(answer.threshold, answer.errors, strict=True):
        assert int((wrong & (score >= t)).sum()) == k


def shuffling(random: Random) -> Arguments:
    return {
        "decide": act_on_the_first,
        "X": random.standard_normal((random.randint(2, 40), random.randint(1, 4))),
        "unused": pick(random, [(), [0], {0}]),
        "repeats": int(random.randint(1, 4)),
        "most_rows": int(random.randint(2, 50)),
        "random_state": int(random.randint(99)),
    }


def act_on_the_first(X: Any, places: Any, shuffled: Any) -> metrics.RowAnswers:
    """Act where the first column is far from zero; values that are no numbers have no place."""
    first = np.asarray(X.iloc[:, 0] if hasattr(X, "iloc") else X[:, 0])
    size = np.array([abs(hash(str(value))) % 1000 for value in first]) / 1000
    return metrics.RowAnswers(size > 0.5, size, size > 0.2)


def check_importance(given: Arguments, found: Any) -> None:
    assert found.rows == min(len(given["X"]), given["most_rows"])
    assert found.repeats == given["repeats"]
    for name, values in found.changes.items():
        assert np.all(np.abs(values) <= 1), name
        if 0 in given["unused"]:
            assert not values[0].any(), name
        assert not values[1:].any(), name  # it looks at the first column alone


METRICS = {
    "permutation_importance": Target(
        metrics.permutation_importance, shuffling, check_importance, keep=("decide", "X")
    ),
    "evaluate": Target(metrics.evaluate, accepted_rows, check_evaluation),
    "risk_coverage_curve": Target(
        metrics.risk_coverage_curve,
        lambda r: {k: v for k, v in scored(r).items() if k != "alpha"},
        check_curve,
    ),
    "jcw_curve": Target(metrics.jcw_curve, scored, check_curve),
    "area_under_risk_coverage": Target(
        metrics.area_under_risk_coverage, judged, check_area, in_unit
    ),
    "excess_area_under_risk_coverage": Target(
        metrics.excess_area_under_risk_coverage, judged, check_excess, in_unit
    ),
    "expected_calibration_error": Target(
        metrics.expected_calibration_error, calibrated, check_calibration, in_unit
    ),
}

# --- data

SKLEARN = (ValueError, TypeError)
ROWS = r"X|float|Row|[Ss]eed|data|1 dimension|sample|feature|[Cc]olumn|label|array|class|dtype|[Ff]old|Found|input|[Ee]stimator|rows"


def labelled(random: Random, rows: int = 60) -> Arguments:
    n = random.randint(30, rows)
    X = random.standard_normal((n, 3))
    return {"X": X, "y": (X[:, 0] + 0.3 * random.standard_normal(n) > 0).astype(int)}


def covering(given: Arguments, folds: Any) -> None:
    assert sum(len(part) for part in vars(folds).values()) == len(given["y"])


def counted(given: Arguments, answer: Any) -> None:
    assert sum(answer) == given["n"]


def cut(given: Arguments, answer: Any) -> None:
    places = np.concatenate(answer)
    assert len(set(places.tolist())) == len(places)
    assert len(places) <= len(given["y"])


def cutting(random: Random) -> Arguments:
    given = labelled(random)
    n = len(given["y"])
    return {"y": given["y"], "counts": [n - 20, 10, 10], "random_state": int(random.randint(99))}


DATA = {
    "fold_counts": Target(
        tables.fold_counts,
        lambda r: {
            "n": int(r.randint(4, 5000)),
            "fold_sizes": pick(r, ["auto", (0.6, 0.2, 0.2)]),
            "alpha": fraction(r),
            "rho": fraction(r),
        },
        counted,
        also="n_samples",
    ),
    "cut_folds": Target(
        tables.cut_folds,
        lambda r: labelled(r) | {"alpha": fraction(r), "rho": fraction(r), "random_state": 0},
        covering,
        errors=SKLEARN,
        also=ROWS,
    ),
    "cut_paper_folds": Target(
        tables.cut_paper_folds,
        lambda r: labelled(r) | {"random_state": 0},
        covering,
        errors=SKLEARN,
        also=ROWS,
    ),
    "cut_rows": Target(tables.cut_rows, cutting, cut, errors=SKLEARN, also=ROWS),
    "cut_groups": Target(
        tables.cut_groups,
        lambda r: {
            "y": r.randint(2, size=60),
            "groups": np.repeat(np.arange(20), 3),
            "counts": [12, 4, 4],
            "random_state": 0,
        },
        cut,
        errors=SKLEARN,
        also=ROWS,
    ),
    "PiecewiseEncoder": Target(
        lambda X: tables.PiecewiseEncoder().fit(X).transform(X),
        lambda r: {"X": labelled(r)["X"]},
        None,
        finite,
        errors=SKLEARN,
        also=ROWS,
    ),
    "Fold": Target(tables.Fold, labelled, lambda given, fold: close(len(fold), len(given["y"]))),
    "SyntheticBand": Target(
        SyntheticBand,
        lambda r: {
            "random_state": int(r.randint(99)),
            "dimension": int(r.randint(1, 9)),
            "scale": float(r.uniform(0.1, 2)),
            "gamma": float(r.uniform(0, 2)),
        },
        None,
        lambda band: finite(band.direction),
    ),
    "load_dataset": Target(
        rn.load_dataset, lambda r: {"name": "synthetic_band", "random_state": int(r.randint(9))}
    ),
    "TabularEncoder": Target(
        lambda X: tables.TabularEncoder().fit_transform(X),
        lambda r: {"X": labelled(r)["X"]},
        None,
        finite,
        errors=SKLEARN,
        also=ROWS,
    ),
}

# --- training


def constrain(logits: Any, y: Any, **settings: Any) -> Any:
    constraint = rn.JCWConstraint(**settings)
    answer = constraint.penalty(logits, y)
    constraint.step()
    return answer


def constraint(random: Random) -> Arguments:
    return with_threshold(random) | {
        "alpha": fraction(random),
        "tau": float(random.uniform(0.1, 0.9)),
        "dual_rate": float(random.uniform(0.1, 2)),
        "ema": float(random.uniform(0, 0.9)),
        "multiplier_max": float(random.uniform(1, 99)),
    }


def schedule(random: Random) -> Arguments:
    return {
        "warmup_epochs": int(random.randint(0, 9)),
        "epochs_per_stage": int(random.randint(1, 9)),
        "max_stages": int(random.randint(1, 9)),
        "tau": float(random.uniform(0.1, 0.9)),
        "tau_min": 0.01,
        "tau_decay": float(random.uniform(0.1, 0.9)),
        "tolerance": 1e-4,
        "above_floor": bool(random.randint(2)),
        "threshold_quantile": fraction(random),
        "dual_rate": 1.0,
        "ema": 0.5,
        "multiplier_max": 9.0,
    }


def adaptive_schedule(random: Random) -> Arguments:
    more = {"warmup_epochs": int(random.randint(1, 9)), "patience": int(random.randint(1, 9))}
    return schedule(random) | more


def usable(schedule: Any) -> None:
    assert isinstance(schedule.epochs, int)
    assert schedule.epochs >= 0


def outputs(network: Any) -> None:
    assert isinstance(network, torch.nn.Module)


def train_briefly(X: Any, y: Any, **settings: Any) -> Any:
    rows = training.Rows(X, y)
    brief = rn.training.Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1)
    return training.train(training.mlp(3, 2, width=4), rows, rows, schedule=brief, **settings)


TRAINING = {
    "JCWConstraint": Target(constrain, constraint, None, real),
    "Schedule": Target(rn.training.Schedule, schedule, None, usable),
    "AdaptiveSchedule": Target(training.AdaptiveSchedule, adaptive_schedule, None, usable),
    "Optimisation": Target(
        training.Optimisation,
        lambda r: {
            "batch_size": int(r.randint(1, 99)),
            "learning_rate": 0.01,
            "weight_decay": 0.0,
            "clip_norm": 1.0,
        },
    ),
    "mlp": Target(
        training.mlp,
        lambda r: {"n_features": int(r.randint(1, 9)), "n_classes": 2, "width": 4, "depth": 2},
        None,
        outputs,
    ),
    "tabular": Target(
        training.tabular,
        lambda r: {
            "n_features": int(r.randint(1, 9)),
            "n_classes": 2,
            "width": 4,
            "depth": 2,
            "members": 2,
            "dropout": 0.1,
        },
        None,
        outputs,
    ),
    "cnn5": Target(
        training.cnn5, lambda r: {"shape": (3, 32, 32), "n_classes": 2, "width": 2}, None, outputs
    ),
    "resnet9": Target(
        training.resnet9,
        lambda r: {"shape": (3, 32, 32), "n_classes": 2, "width": 2},
        None,
        outputs,
    ),
    "resnet18": Target(
        training.resnet18,
        lambda r: {"shape": (3, 32, 32), "n_classes": 2, "width": 2},
        None,
        outputs,
    ),
    "train": Target(
        train_briefly,
        lambda r: {
            "X": torch.randn(20, 3, generator=torch.Generator().manual_seed(int(r.randint(99)))),
            "y": torch.arange(20) % 2,
            "alpha": 0.2,
            "threshold": 0.8,
            "random_state": 0,
        },
        errors=(RuntimeError,),  # what the network says of rows of another shape
        also="diverged|mat1|shape",
    ),
}

# --- methods

QUICK = rn.training.Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1)


def fit(kind: Any, X: Any, y: Any, **settings: Any) -> Any:
    return kind(**settings).fit(X, y).decide(np.zeros((2, 3)))


def wrap(kind: Any, X: Any, y: Any, **settings: Any) -> Any:
    return kind(GaussianNB(), **settings).fit(X, y).decide(np.zeros((2, 3)))


def decided(decisions: Any) -> None:
    assert np.all(np.isfinite(decisions.confidence))
    assert decisions.accepted.dtype == bool


def settings(random: Random, **more: Any) -> Arguments:
    return labelled(random) | {"alpha": fraction(random), "rho": fraction(random)} | more


def fitted() -> Any:
    band = SyntheticBand(random_state=0, dimension=3).sample(200)
    return rn.CertifiedThreshold(LogisticRegression(), alpha=0.4, random_state=0).fit(
        band.X, band.y
    )


@cache
def model_path() -> str:
    return str(fitted().save(Path(tempfile.mkdtemp()) / "model.rnet"))


class Fitted:
    """A method of a fitted classifier, fitted on first use."""

    model: Any = None

    def __init__(self, method: str) -> None:
        self.method = method

    def __call__(self, **given: Any) -> Any:
        Fitted.model = Fitted.model or fitted()
        return getattr(Fitted.model, self.method)(**given)


def compare_two(X: Any, y: Any, **given: Any) -> Any:
    methods = {
        "bayes": rn.CertifiedThreshold(GaussianNB()),
        "linear": rn.CertifiedThreshold(LogisticRegression()),
    }
    return rn.compare(X, y, methods=methods, verbose=False, **given)


METHODS = {
    **{
        kind.__name__: Target(
            partial(fit, kind),
            partial(settings, threshold="certified", batch_size=16, random_state=0, **short),
            None,
            decided,
            errors=SKLEARN,
            also=ROWS,
            keep=tuple(short),
        )
        for kind, short in [
            (rn.ReliableClassifier, {"schedule": QUICK}),
            (rn.ERMClassifier, {"epochs": 1}),
            (rn.SelectiveNetClassifier, {"epochs": 1}),
            (rn.DeepGamblersClassifier, {"epochs": 2, "warmup_epochs": 1}),
        ]
    },
    **{
        kind.__name__: Target(
            partial(wrap, kind),
            partial(settings, random_state=0, fold_sizes="auto"),
            None,
            decided,
            errors=SKLEARN,
            also=ROWS,
        )
        for kind in (
            rn.CertifiedThreshold,
            rn.ConfidenceThreshold,
            rn.ConformalRiskControl,
            rn.TemperatureScaling,
            rn.methods.TunedClassifier,
        )
    },
    **{
        f"fitted.{method}": Target(
            Fitted(method), lambda r: {"X": labelled(r)["X"]}, errors=SKLEARN, also=ROWS
        )
        for method in ("predict", "predict_proba", "acceptance_score", "accept", "decide")
    },
    **{
        f"fitted.{method}": Target(Fitted(method), labelled, errors=SKLEARN, also=ROWS)
        for method in ("certify", "evaluate")
    },
    "compare": Target(
        compare_two, partial(settings, resamples=20, random_state=0), errors=SKLEARN, also=ROWS
    ),
    "load": Target(
        rn.load,
        lambda r: {"path": model_path()},
        None,
        lambda model: model.threshold_,
        also="model file",
    ),
}

TARGETS = RISK | CERTIFICATE | METRICS | DATA | TRAINING | METHODS
SLOW = {"train", "compare", "cnn5", "resnet9", "resnet18", "TabularEncoder"} | {
    name for name in METHODS if name != "load" and not name.startswith("fitted.")
}
