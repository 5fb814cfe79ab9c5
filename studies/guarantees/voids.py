"""What voids a certificate: each fault and its remedy on the same rows, and how often each fails."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import Fold
from studies.runner import JOBS, Block, Study

Array = NDArray[Any]
ALPHA, RHO = 0.05, 0.05
DRAWS, FRESH = 500, 100_000
ROWS, RULES, LEAF = 1000, 20, 15
COPIED, PERSON_ROWS, JITTER = 3, 5, 0.1
NOISE_ROWS, NOISE_ALPHA = 300, 0.2

Outcome = tuple[bool, bool]  # certified, and in truth over the budget
Case = Callable[[int, int], Outcome]


@dataclass(frozen=True)
class Void:
    """A fault and its remedy; each gets a seed and a number of fresh rows."""

    name: str
    fault: str
    remedy: str
    with_fault: Case
    with_remedy: Case


def outcome(model: Any, certificate: rn.Certificate, new: Fold) -> Outcome:
    """Tell whether a rule is certified, and whether new rows show it over its budget."""
    if not certificate.certified:
        return False, False
    proba = model.predict_proba(new.X)
    wrong = model.classes_[proba.argmax(axis=1)] != new.y
    return True, float(((proba.max(axis=1) >= certificate.threshold) & wrong).mean()) > ALPHA


def tree(leaf: int) -> DecisionTreeClassifier:
    """Return a model that learns by heart what is in small leaves."""
    return DecisionTreeClassifier(min_samples_leaf=leaf, random_state=0)


def reused(seed: int, fresh: int, *, again: bool) -> Outcome:
    """Certify a tree on the rows that it was trained on, or on others."""
    band = SyntheticBand(seed)
    known, others = band.sample(ROWS), band.sample(ROWS)
    model = tree(LEAF).fit(known.X, known.y)
    rows = known if again else others
    found = rn.certified_threshold(model.predict_proba(rows.X), rows.y, ALPHA, RHO)
    return outcome(model, found, band.sample(fresh))


def best_of_many(seed: int, fresh: int, *, rho: float) -> Outcome:
    """Certify twenty rules on the same rows, each a tenth over the budget; keep one that passes."""
    random = np.random.default_rng(seed)
    y, passed = np.zeros(ROWS // 2, int), False
    for _ in range(RULES):
        wrong = (random.random(ROWS // 2) < 2.2 * ALPHA).astype(int)
        score = random.random(ROWS // 2)
        found = rn.certify(None, y, 0.5, ALPHA, rho, score=score, predicted=wrong)
        passed = passed or found.certified
    return passed, passed  # half of 2.2 alpha is over alpha, whichever it is


def copied(seed: int, fresh: int, *, apart: bool) -> Outcome:
    """Fit on a table that holds every record three times, with or without telling."""
    band = SyntheticBand(seed)
    known = band.sample(ROWS)
    record = np.random.default_rng(seed).permutation(np.repeat(np.arange(ROWS), COPIED))
    return _fitted(
        known.X[record], known.y[record], record if apart else None, band, fresh, LEAF * COPIED
    )


def repeated(seed: int, fresh: int, *, apart: bool) -> Outcome:
    """Certify on rows that are there five times each, with or without telling."""
    band = SyntheticBand(seed)
    known, rows = band.sample(ROWS), band.sample(ROWS // PERSON_ROWS)
    model = LogisticRegression().fit(known.X, known.y)
    record = np.repeat(np.arange(len(rows)), PERSON_ROWS)
    found = rn.certified_threshold(
        model.predict_proba(rows.X[record]),
        rows.y[record],
        ALPHA,
        RHO,
        groups=record if apart else None,
    )
    return outcome(model, found, band.sample(fresh))


def noise(seed: int, fresh: int, *, inside: bool) -> Outcome:
    """Choose the columns that go best with labels that nothing goes with: outside or inside the rule."""
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((NOISE_ROWS, 2000)), random.integers(0, 2, NOISE_ROWS)
    with warnings.catch_warnings():
        for category in (
            rn.errors.NotCertifiedWarning,
            rn.errors.EmptyCertificateWarning,
            rn.errors.ReuseWarning,
        ):
            warnings.simplefilter("ignore", category)  # that it warns is for the tests
        if inside:
            chosen = make_pipeline(SelectKBest(k=40), LogisticRegression())
            rule = rn.CertifiedThreshold(chosen, NOISE_ALPHA, RHO, random_state=seed).fit(X, y)
        else:
            rule = rn.CertifiedThreshold(LogisticRegression(), NOISE_ALPHA, RHO, random_state=seed)
            make_pipeline(SelectKBest(k=40), rule).fit(X, y)
    found = rule.certificate_
    if not found.certified:
        return False, False
    # Half of all labels are wrong whatever is said, so that JCW is half of the coverage.
    return True, found.coverage / 2 > NOISE_ALPHA


def until_granted(seed: int, fresh: int, *, tries: int) -> Outcome:
    """Fit with new seeds until a certificate is granted; the source is a tenth over the budget."""
    random = np.random.default_rng(seed)
    rows = 400
    score, wrong = np.full(rows, 0.9), random.random(rows) < 1.1 * ALPHA
    proba, y = np.column_stack([1 - score, score]), 1 - wrong
    for number in range(tries):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of copies, reuse and refusals
            rule = rn.CertifiedThreshold(Fixed(), ALPHA, RHO, random_state=number).fit(proba, y)
        if rule.certificate_.certified:
            return True, True
    return False, False


class Fixed(ClassifierMixin, BaseEstimator):
    """Rows are the probabilities; training teaches it nothing."""

    def fit(self, X: Array, y: Array) -> Fixed:
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: Array) -> Array:
        return X


def persons(seed: int, fresh: int, *, apart: bool) -> Outcome:
    """Fit on several rows of each person, which are near each other and share one label."""
    band = SyntheticBand(seed)
    known = band.sample(ROWS)
    person = np.repeat(np.arange(ROWS), PERSON_ROWS)
    random = np.random.default_rng(seed)
    X = known.X[person] + JITTER * random.standard_normal((len(person), known.X.shape[1]))
    groups = person if apart else None
    return _fitted(X, known.y[person], groups, band, fresh, LEAF * PERSON_ROWS, JITTER)


def shifted(seed: int, fresh: int, *, again: bool) -> Outcome:
    """Certify at home or away, and act away: the noisy band is wider there."""
    band = SyntheticBand(seed)
    known = band.sample(ROWS)
    model = LogisticRegression().fit(known.X, known.y)
    rows = band.sample(ROWS, gamma=0.7 if again else band.gamma)
    found = rn.certified_threshold(model.predict_proba(rows.X), rows.y, ALPHA, RHO)
    return outcome(model, found, band.sample(fresh, gamma=0.7))


def _fitted(
    X: Array,
    y: Array,
    groups: Array | None,
    band: SyntheticBand,
    fresh: int,
    leaf: int,
    jitter: float = 0.0,
) -> Outcome:
    with warnings.catch_warnings():
        for category in (
            rn.errors.NotCertifiedWarning,
            rn.errors.FoldWarning,
            rn.errors.ReuseWarning,
        ):
            warnings.simplefilter("ignore", category)  # that it warns is for the tests
        rule = rn.CertifiedThreshold(tree(leaf), ALPHA, RHO, random_state=0)
        rule.fit(X, y, groups=groups)
    new = band.sample(fresh)
    if jitter:
        random = np.random.default_rng(band.random_state + 1)
        new = Fold(new.X + jitter * random.standard_normal(new.X.shape), new.y)
    certificate: Any = rule.certificate_
    return outcome(rule.estimator_, certificate, new)


VOIDS = (
    Void(
        "rows used twice",
        "certified on the rows that trained it",
        "on rows that it has not seen",
        partial(reused, again=True),
        partial(reused, again=False),
    ),
    Void(
        "looking again",
        f"the one of {RULES} rules that passes",
        f"each certified at rho / {RULES}",
        partial(best_of_many, rho=RHO),
        partial(best_of_many, rho=RHO / RULES),
    ),
    Void(
        "copies across folds",
        f"every record {COPIED} times in the table",
        "`groups=` the number of the record",
        partial(copied, apart=False),
        partial(copied, apart=True),
    ),
    Void(
        "copies within the fold",
        f"every certification row {PERSON_ROWS} times",
        "`groups=` the number of the record",
        partial(repeated, apart=False),
        partial(repeated, apart=True),
    ),
    Void(
        "a step before the rule",
        "columns chosen on all rows, then certified: `make_pipeline(SelectKBest(), CertifiedThreshold(...))`",
        "the pipeline inside: `CertifiedThreshold(make_pipeline(SelectKBest(), ...))`",
        partial(noise, inside=False),
        partial(noise, inside=True),
    ),
    Void(
        "new seeds",
        f"fitted with up to {RULES} seeds until granted",
        "fitted once",
        partial(until_granted, tries=RULES),
        partial(until_granted, tries=1),
    ),
    Void(
        "rows that hang together",
        f"{PERSON_ROWS} rows a person, cut by row",
        "`groups=` the person",
        partial(persons, apart=False),
        partial(persons, apart=True),
    ),
    Void(
        "another source",
        "certified before the shift",
        "certified on rows from after it",
        partial(shifted, again=False),
        partial(shifted, again=True),
    ),
)


def count(case: Case, draws: int, fresh: int) -> dict[str, int]:
    """Count certificates and false ones of a case."""
    work = (delayed(case)(seed, fresh) for seed in range(draws))
    results = Parallel(n_jobs=JOBS, batch_size=20)(work)
    granted, failures = np.sum(results, axis=0).tolist()
    return {"granted": granted, "failures": failures}


def blocks(draws: int = DRAWS, fresh: int = FRESH) -> list[Block]:
    """Return every fault and every remedy."""
    return [
        Block.once(
            {"what": void.name, "case": name, "remedied": remedied}
            | {"alpha": ALPHA, "rho": RHO, "draws": draws},
            partial(count, case, draws, fresh),
        )
        for void in VOIDS
        for name, remedied, case in (
            (void.fault, False, void.with_fault),
            (void.remedy, True, void.with_remedy),
        )
    ]


STUDY = Study(
    "guarantees",
    "voids",
    about="What breaks the promise of a certificate, and what mends it?",
    cost="an hour",
    blocks=blocks,
)
