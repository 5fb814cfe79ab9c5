from __future__ import annotations

import dataclasses
import json
import math
import re
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from reliablenet.certificate import Certificate, certify, clopper_pearson_upper
from reliablenet.certificate.record import _digest
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError, InvalidParameterError


def hashed(values: dict) -> str:
    """Write values as whoever alters a certificate with care would, with the hash that fits."""
    values = {name: value for name, value in values.items() if name != "sha256"}
    return json.dumps(values | {"sha256": _digest(values)})


PLAIN = {"errors": 1, "accepted": 80, "n": 100, "alpha": 0.05, "rho": 0.05, "threshold": 0.9}
PROBA = np.array([[0.9, 0.1]] * 60 + [[0.7, 0.3]] * 40)
LABELS = np.array([0] * 59 + [1] + [0] * 30 + [1] * 10)


@st.composite
def certificates(draw):
    n = draw(st.integers(1, 500))
    threshold = draw(st.floats(0.0, 1.0) | st.just(math.inf))
    accepted = 0 if threshold == math.inf else draw(st.integers(0, n))
    return Certificate(
        errors=draw(st.integers(0, accepted)),
        accepted=accepted,
        n=n,
        alpha=draw(st.sampled_from([0.01, 0.05, 0.1, 0.5])),
        rho=draw(st.sampled_from([0.01, 0.05, 0.2])),
        threshold=threshold,
        kind=draw(st.sampled_from(["fixed", "monotone"])),
    )


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


class TestRecord:
    def test_is_frozen(self):
        certificate = Certificate(**PLAIN)
        for name in ("errors", "threshold", "kind"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(certificate, name, 0)

    @pytest.mark.parametrize(
        ("changed", "text"),
        [
            ({"errors": 81}, "errors <= accepted <= n; got 81, 80, 100"),
            ({"accepted": 101}, "errors <= accepted <= n; got 1, 101, 100"),
            ({"threshold": math.inf}, "Threshold inf accepts no row; got accepted=80"),
            ({"threshold": -math.inf}, "Threshold -inf accepts every row; got accepted=80"),
        ],
    )
    def test_refuses_counts_that_contradict_each_other(self, changed, text):
        with pytest.raises(InvalidDataError, match=text):
            Certificate(**PLAIN | changed)

    @pytest.mark.parametrize(
        ("changed", "text"),
        [
            (
                {"errors": -1},
                "`errors` of Certificate must be a whole number of at least 0; got -1",
            ),
            ({"errors": 1.0}, "`errors` of Certificate must be a whole number"),
            ({"accepted": True}, "`accepted` of Certificate must be a whole number"),
            ({"n": 0, "accepted": 0}, "`n` of Certificate must be a whole number of at least 1"),
            ({"alpha": 5}, r"`alpha` of Certificate must lie in \(0, 1\).*Did you mean 0.05\?"),
            ({"rho": 0.0}, r"`rho` of Certificate must lie in \(0, 1\); got 0.0"),
            ({"threshold": math.nan}, "`threshold` of Certificate must be a number; got nan"),
            ({"threshold": None}, "`threshold` of Certificate must be a number; got None"),
            ({"kind": "lucky"}, "`kind` of Certificate must be one of .*; got 'lucky'"),
        ],
    )
    def test_refuses_values_outside_their_domain(self, changed, text):
        with pytest.raises(InvalidParameterError, match=text):
            Certificate(**PLAIN | changed)


class TestReason:
    @pytest.mark.parametrize(
        ("changed", "text"),
        [
            (
                {"errors": 0, "accepted": 9, "n": 40},
                "0 errors in 40 rows bound JCW by 0.0722; alpha 0.05 needs 59 rows",
            ),
            (
                {"errors": 0, "accepted": 0, "n": 40, "threshold": math.inf, "kind": "monotone"},
                "0 errors in 40 rows bound JCW by 0.0722; alpha 0.05 needs 59 rows",
            ),
            (
                {"errors": 2, "accepted": 9, "n": 40},
                "2 errors in 40 rows bound JCW by 0.15; alpha 0.05 needs 124 rows",
            ),
            (
                {"errors": 0, "alpha": 1e-17},
                "0 errors in 100 rows bound JCW by 0.0296; alpha 1e-17 needs too many rows",
            ),
            (
                {"errors": 50, "alpha": 1e-14},
                "50 errors in 100 rows bound JCW by 0.587; alpha 1e-14 needs too many rows",
            ),
            ({}, "1 error in 100 rows bound JCW by 0.0466, within alpha 0.05"),
            (
                {"errors": 3},
                "3 errors in 100 rows bound JCW by 0.0758; alpha 0.05 allows 1 error in 100 rows",
            ),
            (
                {"errors": 0, "accepted": 0, "threshold": math.inf, "kind": "monotone"},
                "the rows with the highest score already hold more errors than that: "
                "alpha 0.05 allows 1 error in 100 rows",
            ),
            (
                {"errors": 0, "accepted": 0, "threshold": math.inf},
                "the rule accepts no row, so there is nothing to certify",
            ),
            (
                {"errors": 3, "rho": 0.2},
                "3 errors in 100 rows bound JCW by 0.0545; alpha 0.05 allows 2 errors in 100 rows",
            ),
            (
                {"errors": 6, "alpha": 0.1, "rho": 0.01},
                "6 errors in 100 rows bound JCW by 0.14; alpha 0.1 allows 3 errors in 100 rows",
            ),
            (
                {"errors": 1, "accepted": 1, "n": 1},
                "1 error in 1 row bound JCW by 1; alpha 0.05 needs 93 rows",
            ),
        ],
    )
    def test_says_in_numbers_what_was_found_and_what_is_missing(self, changed, text):
        assert Certificate(**PLAIN | changed).reason == text

    @given(certificate=certificates())
    def test_prints_a_bound_that_is_never_below_its_value(self, certificate):
        printed = re.search(r"bound JCW by ([0-9.e-]+[0-9])", certificate.reason)
        if printed:
            assert certificate.upper_bound <= float(printed[1]) <= 1.01 * certificate.upper_bound

    def test_prints_no_bound_above_the_alpha_it_is_within(self):
        """0.04951 is within 0.04952; rounded up to three digits it would seem not to be."""
        certificate = Certificate(
            **PLAIN | {"errors": 0, "n": 59, "accepted": 50, "alpha": 0.04952}
        )
        assert certificate.certified
        assert (
            certificate.reason == "0 errors in 59 rows bound JCW by 0.04951, within alpha 0.04952"
        )


class TestJson:
    @given(certificate=certificates())
    def test_round_trip_gives_an_equal_certificate(self, certificate):
        assert Certificate.from_json(certificate.to_json()) == certificate

    @pytest.mark.parametrize("threshold", [math.inf, -math.inf, 0.1, 1e-300])
    def test_any_threshold_survives_strict_json(self, threshold):
        counts = {"errors": 0, "accepted": 0 if threshold == math.inf else 100}
        certificate = Certificate(**PLAIN | counts | {"threshold": threshold})
        text = certificate.to_json()

        def refuse(constant):
            raise AssertionError(f"{constant} is not strict JSON")

        assert json.loads(text, parse_constant=refuse)["n"] == 100
        assert Certificate.from_json(text) == certificate

    def test_text_holds_the_verdict_for_a_reader(self):
        values = json.loads(Certificate(**PLAIN).to_json())
        assert values["certified"] is True
        assert values["upper_bound"] == pytest.approx(0.0466, abs=1e-4)
        assert values["reason"] == Certificate(**PLAIN).reason
        assert values["coverage"] == 0.8

    @pytest.mark.parametrize(
        "changed",
        [
            {name: np.int64(PLAIN[name]) for name in ("errors", "accepted", "n")},
            {"alpha": np.float32(0.25), "rho": np.float64(0.05)},
            {"threshold": np.float32(0.5)},
        ],
    )
    def test_numbers_of_numpy_can_be_written(self, changed):
        certificate = Certificate(**PLAIN | changed)
        assert Certificate.from_json(certificate.to_json()) == certificate

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("format", "reliablenet-certificate/2"),
            ("certified", False),
            ("upper_bound", 0.04),
            ("upper_bound", "0.0466"),
            ("upper_bound", None),
            ("errors", 0),
            ("errors", 2),
            ("accepted", 90),
            ("n", 1000),
            ("coverage", 0.9),
            ("rho", 0.1),
            ("alpha", 0.04),
            ("alpha", 0.1),
            ("threshold", "inf"),
            ("threshold", "high"),
            ("threshold", None),
            ("kind", "lucky"),
            ("kind", "monotone"),
            ("threshold", 0.5),
            ("sha256", "0" * 64),
            ("reason", "0 errors in 1000 rows bound JCW by 0.003, within alpha 0.05"),
        ],
    )
    def test_an_altered_field_is_refused(self, name, value):
        values = json.loads(Certificate(**PLAIN).to_json())
        with pytest.raises((InvalidDataError, InvalidParameterError)):
            Certificate.from_json(json.dumps(values | {name: value}))

    @pytest.mark.parametrize(
        "name", [*PLAIN, "kind", "certified", "coverage", "upper_bound", "format"]
    )
    def test_a_missing_field_is_refused(self, name):
        values = json.loads(Certificate(**PLAIN).to_json())
        del values[name]
        with pytest.raises(InvalidDataError, match="certificate"):
            Certificate.from_json(json.dumps(values))

    def test_a_forged_verdict_is_called_what_it_is_even_with_a_fitting_hash(self):
        values = json.loads(Certificate(**PLAIN | {"errors": 4}).to_json())
        with pytest.raises(InvalidDataError, match=r"'certified' \(True\).*the text was altered"):
            Certificate.from_json(hashed(values | {"certified": True}))
        with pytest.raises(InvalidDataError, match=r"'upper_bound' \(0.04\).*the text was altered"):
            Certificate.from_json(hashed(values | {"upper_bound": 0.04}))

    @pytest.mark.parametrize("text", ["", "{", "null", "[]", '"certificate"', "{}"])
    def test_what_is_no_certificate_is_refused(self, text):
        with pytest.raises(InvalidDataError, match="This is not"):
            Certificate.from_json(text)

    def test_the_bound_of_another_build_may_differ_in_its_last_bits(self):
        certificate = Certificate(**PLAIN)
        values = json.loads(certificate.to_json())
        values["upper_bound"] *= 1 + 1e-12
        assert Certificate.from_json(hashed(values)) == certificate


def test_every_small_certificate_agrees_with_its_definition():
    for n, errors, alpha in product((1, 20, 59, 60), range(3), (0.05, 0.3)):
        if errors <= n:
            certificate = Certificate(errors, n, n, alpha, 0.05, 0.0)
            bound = 1.0 if errors == n else beta.ppf(0.95, errors + 1, n - errors)
            assert certificate.upper_bound == pytest.approx(bound, abs=1e-12)
            assert certificate.certified == (bound <= alpha)


def test_the_file_is_this_to_the_byte():
    """A reader of another version, or another program, depends on every name and on the hash."""
    assert (
        Certificate(1, 1, 1, 0.25, 0.5, 0.5).to_json()
        == """{
  "format": "reliablenet-certificate/1",
  "certified": false,
  "upper_bound": 1.0,
  "errors": 1,
  "accepted": 1,
  "n": 1,
  "coverage": 1.0,
  "alpha": 0.25,
  "rho": 0.5,
  "threshold": 0.5,
  "kind": "fixed",
  "reason": "1 error in 1 row bound JCW by 1; alpha 0.25 needs 7 rows",
  "sha256": "178b900bfaa17d328834d22ad61c4f6db46fbf9f1b1ba729b2793a495b14cf48"
}"""
    )


def test_the_parts_of_a_certificate_are_plain_numbers():
    counts = {name: np.int16(PLAIN[name]) for name in ("errors", "accepted", "n")}
    levels = {name: np.float32(0.5) for name in ("alpha", "rho", "threshold")}
    certificate = Certificate(**counts, **levels)
    found = [type(getattr(certificate, name)) for name in (*counts, *levels)]
    assert found == [int] * 3 + [float] * 3


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"errors": 81}, "A certificate needs errors <= accepted <= n; got 81, 80, 100."),
        ({"threshold": math.inf}, "Threshold inf accepts no row; got accepted=80."),
        (
            {"threshold": -math.inf},
            "Threshold -inf accepts every row; got accepted=80 of 100.",
        ),
        (
            {"kind": "lucky"},
            "`kind` of Certificate must be one of ('fixed', 'monotone'); got 'lucky'.",
        ),
        (
            {"kind": ["fixed"]},
            "`kind` of Certificate must be one of ('fixed', 'monotone'); got ['fixed'].",
        ),
        ({"threshold": math.nan}, "`threshold` of Certificate must be a number; got nan."),
    ],
)
def test_a_record_that_contradicts_itself_is_refused_in_these_words(changed, text):
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        Certificate(**PLAIN | changed)
    assert str(caught.value) == text


def altered(**changes):
    """Return the text of a certificate, changed by one who also mends the hash."""
    values = json.loads(Certificate(**PLAIN | {"errors": 100, "accepted": 100}).to_json())
    return hashed({name: value for name, value in (values | changes).items() if value != "drop"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "This is not the JSON of a certificate: "),
        ("[]", "This is not a certificate of the format 'reliablenet-certificate/1'."),
        (
            altered(format="reliablenet-certificate/2"),
            "This is not a certificate of the format 'reliablenet-certificate/1'.",
        ),
        (altered(kind="drop", n="drop"), "The certificate lacks ['n', 'kind']."),
        (
            Certificate(**PLAIN).to_json().replace("sha256", "sha1"),
            "The certificate was altered: its values do not match its hash.",
        ),
        (
            altered(certified=True),
            "The certificate's 'certified' (True) does not follow from its counts (False): "
            "the text was altered.",
        ),
        (
            altered(coverage="drop"),
            "The certificate's 'coverage' (None) does not follow from its counts (1.0): "
            "the text was altered.",
        ),
        (
            altered(upper_bound=0.5),
            "The certificate's 'upper_bound' (0.5) does not follow from its counts (1.0): "
            "the text was altered.",
        ),
        (
            altered(upper_bound="1.0"),
            "The certificate's 'upper_bound' ('1.0') does not follow from its counts (1.0): "
            "the text was altered.",
        ),
        (
            altered(upper_bound="drop"),
            "The certificate's 'upper_bound' (None) does not follow from its counts (1.0): "
            "the text was altered.",
        ),
    ],
)
def test_what_is_wrong_with_a_text_is_said_in_these_words(text, message):
    with pytest.raises(InvalidDataError) as caught:
        Certificate.from_json(text)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(".")


def test_a_fold_that_affords_no_error_at_all_says_so():
    certificate = Certificate(**PLAIN | {"n": 60, "accepted": 50})
    expected = "1 error in 60 rows bound JCW by 0.0767; alpha 0.05 allows 0 errors in 60 rows"
    assert certificate.reason == expected


def test_a_bound_that_rounds_to_alpha_is_printed_so():
    certificate = Certificate(**PLAIN | {"alpha": 0.0466})
    assert certificate.reason == "1 error in 100 rows bound JCW by 0.0466, within alpha 0.0466"


@pytest.mark.parametrize(("errors", "n"), [(1, 100), (0, 28), (1, 39)])
def test_a_bound_equal_to_alpha_is_not_printed_above_it(errors, n):
    """Between 0.1 and 0.125 seventeen digits, rounded up, may be the next float already."""
    alpha = clopper_pearson_upper(errors, n, 0.05)
    reason = Certificate(errors, errors, n, alpha, 0.05, 0.9).reason
    assert float(re.search("by (0[.][0-9]+),", reason)[1]) == alpha


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


@pytest.mark.parametrize("kind", ["fixed", "monotone"])
def test_counted_rows_become_a_certificate_of_the_kind_asked_for(kind):
    rows = ScoredRows(np.array([0.6, 0.7, 0.8, 0.9]), np.array([True, True, False, False]), 0.0)
    expected = Certificate(1, 3, 4, 0.1, 0.2, 0.7, kind)
    assert count_rows(rows, 0.7, 0.1, 0.2, kind) == expected


@pytest.mark.parametrize("errors", [0, 1])
def test_the_smallest_alpha_whose_rows_can_be_counted_has_them_counted(errors) -> None:
    """At 2^-50 both sides of the comparison are exact, and equal."""
    certificate = Certificate(errors, 10, 1000, 2.0**-50, 0.05, 0.5, "fixed")
    assert re.search(r"needs \d+ rows", certificate.reason)
    smaller = Certificate(errors, 10, 1000, 2.0**-51, 0.05, 0.5, "fixed")
    assert smaller.reason.endswith("needs too many rows")
