from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.stats import beta

import reliablenet as rn
from reliablenet.certificate import (
    certified_threshold,
    certify,
    clopper_pearson_upper,
    conformal_threshold,
    jcw_threshold,
)
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.scored import score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError, LabelWarning
from reliablenet.metrics import evaluate, jcw_curve, risk_coverage_curve

CHOOSERS = (certified_threshold, jcw_threshold, conformal_threshold)
PROBA = np.array([[0.9, 0.1]] * 60 + [[0.7, 0.3]] * 40)
LABELS = np.array([0] * 59 + [1] + [0] * 30 + [1] * 10)
SCORE = [0.1, 3.0, -2.0, 0.5]
RIGHT = [True, True, False, True]
LEVEL = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9])
# Integers from a small grid: nearly every row ties with others.
TIED_ROWS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=80).map(
    lambda rows: (
        np.array([score for score, _ in rows], float),
        np.array([luck == 0 for _, luck in rows]),
    )
)


def rule(score, wrong):
    """Return the arguments that describe rows by their score and verdict."""
    return {
        "proba": None,
        "y": np.zeros(len(score), int),
        "score": score,
        "predicted": np.asarray(wrong).astype(int),
    }


def calibrated(n, seed=0):
    """Return binary probabilities and labels that are wrong with probability 1 - confidence."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.5, 1.0, n)
    return np.column_stack([p, 1 - p]), (rng.random(n) > p).astype(int)


def smallest_valid_cut(score, wrong, keeps_budget):
    """Scan every observed score from above; return the last one up to which all keep the budget."""
    cut = math.inf
    for candidate in sorted(set(score), reverse=True):
        if not keeps_budget(np.count_nonzero(wrong & (score >= candidate))):
            break
        cut = candidate
    return cut


class TestCertified:
    @given(rows=TIED_ROWS, alpha=LEVEL, rho=LEVEL)
    def test_equals_a_scan_of_every_threshold(self, rows, alpha, rho):
        score, wrong = rows
        n = len(score)
        cut = smallest_valid_cut(
            score, wrong, lambda errors: clopper_pearson_upper(errors, n, rho) <= alpha
        )
        accepted = score >= cut
        certificate = certified_threshold(alpha=alpha, rho=rho, **rule(score, wrong))

        assert ((score >= certificate.threshold) == accepted).all()
        assert certificate.accepted == accepted.sum()
        assert certificate.coverage == accepted.mean()
        assert certificate.errors == (accepted & wrong).sum()
        assert certificate.certified == (cut < math.inf)
        assert (certificate.threshold == math.inf) == (cut == math.inf)
        assert certificate.kind == "monotone"

    @pytest.mark.parametrize("seed", range(5))
    def test_equals_a_scan_of_every_threshold_on_many_rows(self, seed):
        proba, y = calibrated(1500, seed)
        score, wrong = proba.max(axis=1), proba.argmax(axis=1) != y
        order = np.argsort(-score)
        bound = clopper_pearson_upper(np.cumsum(wrong[order]), len(y), 0.05)
        accepted = np.cumprod(bound <= 0.05).sum()
        certificate = certified_threshold(proba, y)
        assert 0 < certificate.accepted < len(y)
        assert certificate.accepted == accepted
        assert certificate.errors == wrong[order][:accepted].sum()

    def test_lies_midway_between_the_last_accepted_and_the_first_deferred_score(self):
        proba, y = calibrated(800)
        score = np.sort(proba.max(axis=1))
        threshold = certified_threshold(proba, y).threshold
        above, below = score[score > threshold].min(), score[score < threshold].max()
        assert below < threshold < above
        assert threshold == pytest.approx((above + below) / 2, abs=1e-15)

    def test_certify_at_the_threshold_counts_the_same_rows(self):
        proba, y = calibrated(800)
        chosen = certified_threshold(proba, y)
        again = certify(proba, y, chosen.threshold)
        assert (again.errors, again.accepted) == (chosen.errors, chosen.accepted)

    @given(rows=TIED_ROWS, rho=LEVEL)
    def test_a_larger_budget_never_accepts_fewer_rows(self, rows, rho):
        certificates = [
            certified_threshold(alpha=alpha, rho=rho, **rule(*rows))
            for alpha in (0.01, 0.05, 0.1, 0.3, 0.6, 0.9)
        ]
        thresholds = [certificate.threshold for certificate in certificates]
        assert thresholds == sorted(thresholds, reverse=True)
        accepted = [certificate.accepted for certificate in certificates]
        assert accepted == sorted(accepted)

    def test_too_few_rows_certify_nothing_and_the_reason_says_how_many_are_missing(self):
        certificate = certified_threshold(np.tile([0.9, 0.1], (40, 1)), np.zeros(40, int))
        assert certificate.threshold == math.inf
        assert not certificate.certified
        assert certificate.coverage == 0
        assert certificate.reason.endswith("alpha = 5 % needs at least 59 fresh rows")

    def test_errors_among_the_highest_scores_certify_nothing(self):
        score, wrong = np.arange(100.0), np.arange(100) >= 90
        certificate = certified_threshold(**rule(np.minimum(score, 90), wrong))
        assert certificate.threshold == math.inf
        assert certificate.accepted == 0
        assert "the rows with the best scores already hold too many mistakes" in certificate.reason

    def test_no_errors_accept_every_row(self):
        certificate = certified_threshold(np.tile([0.9, 0.1], (59, 1)), np.zeros(59, int))
        assert certificate.threshold == 0.0
        assert certificate.coverage == 1.0
        assert certificate.certified
        assert certified_threshold(**rule(np.arange(59), np.zeros(59, bool))).threshold == -math.inf

    @pytest.mark.parametrize("errors", [0, 1, 2, 100])
    def test_a_constant_score_accepts_all_rows_or_none(self, errors):
        """One error in 100 rows is affordable at alpha = rho = 0.05, two are not."""
        certificate = certified_threshold(**rule(np.full(100, 0.7), np.arange(100) < errors))
        assert certificate.accepted == (100 if errors <= 1 else 0)
        assert certificate.certified == (errors <= 1)

    def test_all_wrong_accepts_only_what_a_certificate_affords(self):
        """The best-scored row may be wrong: one error in 100 rows is affordable."""
        certificate = certified_threshold(**rule(np.arange(100), np.ones(100, bool)))
        assert (certificate.accepted, certificate.errors) == (1, 1)
        assert certificate.threshold == 98.5

    def test_reason_of_a_granted_certificate(self):
        certificate = certified_threshold(**rule(np.arange(100), np.ones(100, bool)))
        assert certificate.reason.startswith(
            "1 confident mistake in 100 rows: at most 4.66 % of all"
        )


class TestLabels:
    """Labels that look mistaken are spoken of before anybody believes the certificate."""

    RNG = np.random.default_rng(0)
    TOP = RNG.uniform(0.6, 1.0, 300)
    Y = RNG.integers(0, 2, 300)
    RIGHT = np.where(
        (Y == 1)[:, None], np.column_stack([1 - TOP, TOP]), np.column_stack([TOP, 1 - TOP])
    )

    @pytest.mark.parametrize("function", [certify, certified_threshold])
    def test_swapped_columns_are_warned_of(self, function):
        rule = {"threshold": 0.9} if function is certify else {}
        assert function(self.RIGHT, self.Y, **rule).errors == 0
        text = "Only 0 of 300 predictions are right, fewer than guessing among 2 labels would get"
        with pytest.warns(LabelWarning, match=text):
            function(self.RIGHT[:, ::-1], self.Y, **rule)
        with pytest.warns(LabelWarning, match="Are probability columns or labels swapped?"):
            function(self.RIGHT, self.Y, **rule, classes=[1, 0])

    def test_bad_luck_of_few_rows_is_no_reason_to_warn(self):
        wrong = self.RIGHT[:20, ::-1]
        assert certify(wrong, self.Y[:20], 0.5).errors == 20

    def test_one_label_alone_says_nothing_of_guessing(self):
        assert certify(np.tile([0.9, 0.1], (300, 1)), np.ones(300, int), 0.5).errors == 300

    def test_rows_of_an_unknown_class_are_wrong_and_counted(self):
        """AUDIT A6: with 5 % of such rows accepted, JCW is 0.05 more than a fold without them says."""
        names = np.array(["no", "yes"])[self.Y]
        names[:15] = "???"
        with pytest.warns(LabelWarning, match=r"15 of 300 rows .*\('\?\?\?'\)"):
            found = certify(self.RIGHT, names, 0.5, classes=["no", "yes"])
        assert (found.errors, found.unknown, found.n) == (15, 15, 300)
        assert not found.certified
        assert found.commonest == max((names == "no").sum(), (names == "yes").sum())

    def test_without_classes_a_label_that_is_no_column_is_refused(self):
        with pytest.raises(InvalidDataError, match=r"not among the 2 known classes: 2"):
            certify(self.RIGHT, np.where(np.arange(300) < 15, 2, self.Y), 0.5)

    def test_all_rows_that_are_accepted_wrongly_make_an_empty_certificate(self):
        """AUDIT: a rule that is always wrong was certified as soon as it acted seldom enough."""
        y = (np.arange(1000) < 15).astype(int)
        score = np.where(y == 1, 0.99, 0.6)
        with pytest.warns(LabelWarning, match="turn its sign"):
            found = certify(np.column_stack([score, 1 - score]), y, 0.9)
        assert (found.errors, found.accepted) == (15, 15)
        assert found.certified
        assert found.empty


class TestEmpirical:
    @given(rows=TIED_ROWS, alpha=LEVEL)
    def test_equals_a_scan_of_every_threshold(self, rows, alpha):
        score, wrong = rows
        cut = smallest_valid_cut(score, wrong, lambda errors: errors / len(score) <= alpha)
        threshold = jcw_threshold(alpha=alpha, **rule(score, wrong))
        assert ((score >= threshold) == (score >= cut)).all()
        assert (threshold == math.inf) == (cut == math.inf)

    def test_lies_between_two_observed_scores(self):
        proba, y = calibrated(500)
        threshold = jcw_threshold(proba, y, 0.03)
        score = proba.max(axis=1)
        assert score.min() < threshold < score.max()
        assert threshold not in score

    @pytest.mark.parametrize("alpha", [0.29, 0.07, 0.57, 0.1])
    def test_a_budget_of_whole_rows_is_spent_to_the_last(self, alpha):
        """0.29 * 100 is 28.999999999999996 in floats; 29 errors in 100 rows are within 0.29."""
        threshold = jcw_threshold(alpha=alpha, **rule(np.arange(100), np.ones(100, bool)))
        assert np.sum(np.arange(100) >= threshold) == round(100 * alpha)

    @pytest.mark.parametrize(
        ("alpha", "n"), [(0.6 / 3, 25), (0.3 / 3, 50), (math.nextafter(5 / 6, 0), 6)]
    )
    def test_a_budget_just_below_whole_rows_is_not_overspent(self, alpha, n):
        """0.6 / 3 is 0.19999999999999998; 5 errors in 25 rows are 0.2 and exceed it."""
        threshold = jcw_threshold(alpha=alpha, **rule(np.arange(n), np.ones(n, bool)))
        assert np.mean(np.arange(n) >= threshold) <= alpha


class TestConformal:
    @given(rows=TIED_ROWS, alpha=LEVEL)
    def test_is_the_smallest_threshold_of_its_definition(self, rows, alpha):
        """(K + 1) / (n + 1) <= alpha, K counting wrong rows strictly above the threshold."""
        score, wrong = rows
        candidates = [-math.inf, *sorted(set(score))]
        valid = [
            cut
            for cut in candidates
            if (np.count_nonzero(wrong & (score > cut)) + 1) / (len(score) + 1) <= alpha
        ]
        smallest = min(valid, default=math.inf)
        if math.isfinite(smallest):  # "at or above" the next number is "above" this one
            smallest = math.nextafter(smallest, math.inf)
        assert conformal_threshold(alpha=alpha, **rule(score, wrong)) == smallest

    @pytest.mark.parametrize(("n", "exists"), [(18, False), (19, True)])
    def test_exists_from_1_over_alpha_less_1_rows(self, n, exists):
        threshold = conformal_threshold(alpha=0.05, **rule(np.arange(n), np.ones(n, bool)))
        assert (threshold < math.inf) == exists

    def test_without_errors_accepts_every_row(self):
        proba = np.tile([0.9, 0.1], (50, 1))
        assert conformal_threshold(proba, np.zeros(50, int)) == 0.0

    def test_a_budget_just_below_whole_rows_is_not_overspent(self):
        """With 24 rows, K + 1 <= 25 * 0.19999999999999998 affords three errors, not four."""
        threshold = conformal_threshold(alpha=0.6 / 3, **rule(np.arange(24), np.ones(24, bool)))
        assert np.sum(np.arange(24) >= threshold) == 3


class TestNeighbouringScores:
    @given(low=st.floats(-1e300, 1e300))
    def test_adjacent_floats_are_told_apart(self, low):
        """No float lies between the two scores, so the threshold is the upper one."""
        high = math.nextafter(low, math.inf)
        score = np.array([low] * 10 + [high] * 100)
        certificate = certified_threshold(**rule(score, score == low))
        assert (certificate.accepted, certificate.errors) == (100, 0)
        assert certificate.threshold == high
        assert jcw_threshold(**rule(score, score == low)) == high

    @pytest.mark.parametrize("size", [1e-320, 1.0, 8e307, 1.7e308])
    def test_scores_of_any_size_are_told_apart(self, size):
        score = np.array([size] * 100 + [-size] * 10)
        certificate = certified_threshold(**rule(score, score < 0))
        assert certificate.accepted == 100
        assert certificate.certified


@pytest.mark.parametrize("choose", CHOOSERS)
class TestEveryChooser:
    def test_ignores_the_order_of_the_rows(self, choose):
        proba, y = calibrated(300)
        order = np.random.default_rng(1).permutation(300)
        assert choose(proba[order], y[order], 0.1) == choose(proba, y, 0.1)

    def test_takes_score_and_predicted_in_place_of_proba(self, choose):
        proba, y = calibrated(300)
        score, predicted = proba.max(axis=1), proba.argmax(axis=1)
        assert choose(None, y, 0.1, score=score, predicted=predicted) == choose(proba, y, 0.1)

    def test_takes_named_classes(self, choose):
        proba, y = calibrated(300)
        names = np.array(["yes", "no"])  # not in alphabetical order
        assert choose(proba, names[y], 0.1, classes=names) == choose(proba, y, 0.1)

    def test_takes_tensors_that_require_gradients(self, choose):
        proba, y = calibrated(300)
        tensor = torch.from_numpy(proba).requires_grad_()
        assert choose(tensor, torch.from_numpy(y), 0.1) == choose(proba, y, 0.1)

    def test_separates_the_rows_of_float32_probabilities(self, choose):
        proba, y = calibrated(300)
        tensor = torch.from_numpy(proba).float()
        assert choose(tensor, y, 0.1) == choose(tensor.numpy(), y, 0.1)

    def test_leaves_its_input_alone(self, choose):
        proba, y = calibrated(300)
        copies = proba.copy(), y.copy()
        choose(proba, y, 0.1)
        assert (proba == copies[0]).all()
        assert (y == copies[1]).all()

    def test_names_itself_in_errors(self, choose):
        name = choose.__name__
        proba, y = calibrated(10)
        text = rf"`alpha` of {name} must lie in \(0, 1\); got 5. Did you mean 0.05\?"
        with pytest.raises(InvalidParameterError, match=text):
            choose(proba, y, 5)
        with pytest.raises(InvalidDataError, match=f"`proba` of {name} must have shape"):
            choose(proba[:, 0], y)
        with pytest.raises(InvalidDataError, match=f"`y` of {name} holds labels"):
            choose(proba, y + 7)
        with pytest.raises(InvalidDataError, match=f"`y` of {name} must be a non-empty vector"):
            choose(np.empty((0, 2)), [])
        with pytest.raises(InvalidParameterError, match=f"{name} needs `proba`, or `score`"):
            choose(None, y)


@pytest.mark.parametrize("rho", [0, 1, -0.1, math.nan, None])
def test_certified_threshold_refuses_an_impossible_level(rho):
    proba, y = calibrated(10)
    with pytest.raises(InvalidParameterError, match=r"`rho` of certified_threshold must lie in"):
        certified_threshold(proba, y, rho=rho)


class TestCertify:
    @pytest.mark.parametrize(
        ("threshold", "accepted", "errors"),
        [
            (0.0, 100, 11),
            (0.7, 100, 11),
            (0.71, 60, 1),
            (0.9, 60, 1),
            (0.91, 0, 0),
            (math.inf, 0, 0),
        ],
    )
    def test_counts_rows_at_or_above_the_threshold(self, threshold, accepted, errors):
        certificate = certify(PROBA, LABELS, threshold)
        assert (certificate.accepted, certificate.errors) == (accepted, errors)
        assert certificate.n == 100
        assert certificate.kind == "fixed"
        assert certificate.threshold == threshold

    def test_derived_values_follow_from_the_counts(self):
        certificate = certify(PROBA, LABELS, 0.9, alpha=0.05, rho=0.1)
        assert certificate.upper_bound == pytest.approx(beta.ppf(0.9, 2, 99), abs=1e-12)
        assert certificate.certified
        assert certificate.coverage == 0.6
        assert certificate.jcw == 0.01
        assert certificate.throughput == 0.59

    def test_the_verdict_is_that_of_the_bound(self):
        bound = clopper_pearson_upper(1, 100, 0.05)
        assert certify(PROBA, LABELS, 0.9, alpha=bound).certified
        assert not certify(PROBA, LABELS, 0.9, alpha=math.nextafter(bound, 0)).certified

    def test_a_rule_that_never_acts_is_not_certified(self):
        assert not certify(PROBA, LABELS, math.inf, alpha=0.5).certified

    def test_score_and_predicted_give_the_certificate_of_proba(self):
        names = np.array(["no", "yes"])
        expected = certify(PROBA, LABELS, 0.8)
        score, predicted = PROBA.max(axis=1), PROBA.argmax(axis=1)
        assert certify(None, LABELS, 0.8, score=score, predicted=predicted) == expected
        assert certify(PROBA, names[LABELS], 0.8, classes=names) == expected
        assert (
            certify(None, names[LABELS], 0.8, score=score, predicted=names[predicted]) == expected
        )

    def test_tensors_are_taken(self):
        proba = torch.from_numpy(PROBA).requires_grad_()
        assert certify(proba, torch.from_numpy(LABELS), 0.8) == certify(PROBA, LABELS, 0.8)

    def test_a_threshold_on_another_score_may_be_any_number(self):
        certificate = certify(PROBA, LABELS, -3, score=np.arange(100) - 50)
        assert certificate.accepted == 53
        assert type(certificate.threshold) is float

    @pytest.mark.parametrize(
        ("threshold", "text"),
        [
            (math.nan, "`threshold` of certify must be a number; got nan"),
            ("0.9", "`threshold` of certify must be a number; got '0.9'"),
            (True, "`threshold` of certify must be a number; got True"),
            (90, r"must lie in \[0, 1\], as the score is a probability; got 90"),
            (-0.1, r"must lie in \[0, 1\], as the score is a probability; got -0.1"),
            (-math.inf, r"must lie in \[0, 1\], as the score is a probability; got -inf"),
        ],
    )
    def test_an_impossible_threshold_is_refused(self, threshold, text):
        with pytest.raises(InvalidParameterError, match=text):
            certify(PROBA, LABELS, threshold)

    @pytest.mark.parametrize(
        ("levels", "text"),
        [
            ({"alpha": 5}, r"`alpha` of certify must lie in \(0, 1\); got 5. Did you mean 0.05\?"),
            ({"alpha": 0}, r"`alpha` of certify must lie in \(0, 1\); got 0.$"),
            ({"alpha": math.nan}, "got nan"),
            ({"alpha": "5%"}, "got '5%'"),
            ({"rho": 95}, r"`rho` of certify must lie in \(0, 1\); got 95. Did you mean 0.95\?"),
            ({"rho": -0.05}, "got -0.05"),
        ],
    )
    def test_levels_outside_the_unit_interval_are_refused(self, levels, text):
        with pytest.raises(InvalidParameterError, match=text):
            certify(PROBA, LABELS, 0.9, **levels)


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_threshold_at_either_end_of_the_probabilities_is_taken(threshold):
    assert certify(PROBA, LABELS, threshold).threshold == threshold


def test_certify_names_itself_in_errors():
    text = "`threshold` of certify must lie in [0, 1], as the score is a probability; got 1.5."
    with pytest.raises(InvalidParameterError) as caught:
        certify(PROBA, LABELS, 1.5)
    assert str(caught.value) == text
    with pytest.raises(InvalidDataError, match="`proba` of certify must have shape"):
        certify(PROBA[:, 0], LABELS, 0.5)
    with pytest.raises(InvalidParameterError, match="`threshold` of certify must be a number; "):
        certify(PROBA, LABELS, None)


@pytest.fixture(scope="module")
def answers():
    """Scores with ties, whether each answer is right, and the same as labels."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=2000).round(2)
    right = rng.random(2000) < 1 / (1 + np.exp(-3 - score))
    predicted = rng.integers(5, size=2000)
    return score, right, predicted, np.where(right, predicted, 5)


def test_a_threshold_is_asked_for_where_the_rule_is_fixed() -> None:
    with pytest.raises(
        InvalidParameterError, match="`threshold` of certify must be a number; got None"
    ):
        rn.certify(score=SCORE, correct=RIGHT)


def test_verdicts_prove_what_labels_prove(answers) -> None:
    score, right, predicted, truth = answers
    by_label = {"proba": None, "y": truth, "score": score, "predicted": predicted}
    by_verdict = {"score": score, "correct": right}
    assert rn.jcw_threshold(**by_verdict) == rn.jcw_threshold(**by_label)
    assert rn.conformal_threshold(**by_verdict) == rn.conformal_threshold(**by_label)
    for call, more in ((rn.certify, {"threshold": 0.3}), (rn.certified_threshold, {})):
        one, other = call(**by_verdict, **more), call(**by_label, **more)
        for name in ("errors", "accepted", "n", "threshold", "upper_bound", "certified", "reason"):
            assert getattr(one, name) == getattr(other, name)
        assert one.certified
        assert one.commonest is None
        assert "commonest label" not in rn.certificate.wording.acted_on(one)
        assert one.to_dict()["guessing_error"] is None
        assert rn.Certificate.from_json(one.to_json()) == one
    assert jcw_curve(**by_verdict).to_frame().equals(jcw_curve(**by_label).to_frame())
    assert risk_coverage_curve(**by_verdict).aurc == risk_coverage_curve(**by_label).aurc
    found = evaluate(**by_verdict, accepted=score > 0)
    assert found.errors == int((~right[score > 0]).sum())
    assert math.isnan(found.ece)


def test_one_row_of_each_group_counts(answers) -> None:
    score, right, _, _ = answers
    certificate = rn.certified_threshold(
        score=score, correct=right, groups=np.arange(2000) // 4, alpha=0.1
    )
    assert (certificate.unit, certificate.n) == ("group", 500)


@pytest.mark.parametrize(("wrong", "coverage"), [(1, 1.0), (30, 0.0)])
def test_a_constant_score_accepts_all_or_nothing(wrong, coverage) -> None:
    right = np.arange(200) >= wrong
    certificate = rn.certified_threshold(score=np.full(200, 7.0), correct=right, alpha=0.05)
    assert certificate.coverage == coverage
    assert certificate.threshold == (-math.inf if coverage else math.inf)
    assert certificate.certified == bool(coverage)
    assert "best scores already hold too many mistakes" in certificate.reason or coverage


def test_answers_that_are_all_wrong_are_worth_nothing() -> None:
    score, right = np.arange(1000.0), np.arange(1000) < 990
    certificate = rn.certify(score=score, correct=right, threshold=995, alpha=0.05)
    assert certificate.certified
    assert certificate.empty
    assert str(certificate) == ("Certified, but worth nothing: of 5 rows acted on 5 were wrong.")
    with pytest.warns(LabelWarning, match="turn its sign"):
        assert not rn.certify(score=score, correct=right, threshold=985, alpha=0.05).empty


def test_scored_rows_without_labels_may_have_any_threshold() -> None:
    rows = score_rows(None, score=SCORE, correct=RIGHT, owner="certify")
    assert rn.certify(rows, threshold=-5.0).accepted == 4


class TestGroups:
    """One row of each group is drawn, and the certificate says so."""

    GROUPS = np.arange(100) // 2
    PROBA, Y = calibrated(100)

    @pytest.mark.parametrize("seed", [None, 0, 5])
    @pytest.mark.parametrize("threshold", [None, 0.8])
    def test_the_rows_drawn_are_judged_alone(self, seed, threshold):
        more = {} if seed is None else {"random_state": seed}
        if threshold is None:
            found = certified_threshold(self.PROBA, self.Y, 0.3, groups=self.GROUPS, **more)
        else:
            found = certify(self.PROBA, self.Y, threshold, 0.3, groups=self.GROUPS, **more)
        places = draw_places(self.GROUPS, 100, seed or 0)
        alone = judge(
            score_rows(self.PROBA[places], self.Y[places], owner="test"), 0.3, 0.05, threshold
        )
        assert (found.unit, alone.unit) == ("group", "row")
        assert found.n == alone.n == 50
        for name in ("errors", "accepted", "threshold", "upper_bound", "certified"):
            assert getattr(found, name) == getattr(alone, name)
        assert found.provenance == alone.provenance  # the very same rows

    def test_another_seed_draws_other_rows(self):
        first, other = (
            certify(self.PROBA, self.Y, 0.8, groups=self.GROUPS, random_state=seed)
            for seed in (0, 5)
        )
        assert first.provenance != other.provenance

    @pytest.mark.parametrize("call", [certify, certified_threshold])
    def test_a_seed_that_is_none_is_refused_by_name(self, call):
        more = {"threshold": 0.5} if call is certify else {}
        with pytest.raises(InvalidParameterError) as caught:
            call(self.PROBA, self.Y, **more, groups=self.GROUPS, random_state=-1)
        assert str(caught.value) == (
            f"`random_state` of {call.__name__} must be a whole number from 0 to 2**32 - 1; got -1."
        )


@pytest.mark.parametrize(("top", "expected"), [(1.0, math.inf), (0.9, math.nextafter(0.9, 1))])
def test_nothing_is_above_an_error_that_is_sure_of_itself(top, expected):
    """In one row no error is affordable at alpha = 0.5: the threshold is the next number above it."""
    assert conformal_threshold([[top, 1 - top]], [1], 0.5) == expected
    beyond = math.nextafter(top, 2)
    assert conformal_threshold(score=[top], correct=[False], alpha=0.5) == beyond


ROWS = 600
SCORES = np.random.default_rng(5).uniform(0.5, 1.0, ROWS)
TWO = np.column_stack([1.0 - SCORES, SCORES])
CORRECT = np.random.default_rng(6).random(ROWS) < SCORES**0.2
WORDS = np.where(CORRECT, "yes", "no")


@pytest.mark.parametrize("ask", [certify, certified_threshold])
def test_predictions_in_partitions_give_the_same_certificate(ask) -> None:
    """Words of classes, groups and a seed, or scores below 0 that are no probabilities."""
    da = pytest.importorskip("dask.array")

    def parts(values):
        return da.from_array(values, chunks=(250, *values.shape[1:]))

    more = {"alpha": 0.2, "rho": 0.1}
    fixed = ask is certify
    shared = {"classes": ["no", "yes"], "random_state": 7} | more
    whose = np.arange(ROWS) // 2
    at = {"threshold": 0.75} if fixed else {}
    expected = ask(TWO, WORDS, groups=whose, **at, **shared)
    found = ask(parts(TWO), parts(WORDS), groups=parts(whose), **at, **shared)
    assert (found.n, found.unit, found.kind) == (300, "group", "fixed" if fixed else "monotone")
    assert found.to_json() == expected.to_json()
    at = {"threshold": -0.25} if fixed else {}
    expected = ask(score=SCORES - 1.0, correct=CORRECT, **at, **more)
    found = ask(score=parts(SCORES - 1.0), correct=parts(CORRECT), **at, **more)
    assert found.to_json() == expected.to_json()
    with pytest.raises(InvalidDataError, match=f"of {ask.__name__}"):
        ask(parts(TWO), parts(np.full(ROWS, 7)), **({"threshold": 0.75} if fixed else {}), **more)


@pytest.mark.parametrize("threshold", [-0.25, 1.5, "high"])
def test_a_threshold_that_no_probability_reaches_is_refused_of_partitions(threshold) -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(InvalidParameterError, match="`threshold` of certify must"):
        certify(da.from_array(TWO), da.from_array(WORDS), threshold, 0.2, classes=["no", "yes"])
