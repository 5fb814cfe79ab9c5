from __future__ import annotations

import dataclasses
import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import beta

from reliablenet.certificate import (
    Certificate,
    Provenance,
    anytime_upper,
    clopper_pearson_upper,
)
from reliablenet.certificate.sealing import digest
from reliablenet.errors import InvalidDataError, InvalidParameterError


def hashed(values: dict) -> str:
    """Write values as whoever alters a certificate with care would, with the hash that fits."""
    values = {name: value for name, value in values.items() if name != "sha256"}
    return json.dumps(values | {"sha256": digest(values)})


WRITTEN_BY_0_1 = """{
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
PLAIN = {"errors": 1, "accepted": 80, "n": 100, "alpha": 0.05, "rho": 0.05, "threshold": 0.9}
PROBA = np.array([[0.9, 0.1]] * 60 + [[0.7, 0.3]] * 40)
LABELS = np.array([0] * 59 + [1] + [0] * 30 + [1] * 10)


@st.composite
def certificates(draw, first_format=False):
    n = draw(st.integers(1, 500))
    threshold = draw(st.floats(0.0, 1.0) | st.just(math.inf))
    accepted = 0 if threshold == math.inf else draw(st.integers(0, n))
    more = {}
    if not first_format:
        unknown = draw(st.integers(0, n))
        more = {
            "unit": draw(st.sampled_from(["row", "group"])),
            "unknown": unknown,
            "commonest": draw(st.none() | st.integers(0, n - unknown)),
        }
    return Certificate(
        errors=draw(st.integers(0, accepted)),
        accepted=accepted,
        n=n,
        alpha=draw(st.sampled_from([0.01, 0.05, 0.1, 0.5])),
        rho=draw(st.sampled_from([0.01, 0.05, 0.2])),
        threshold=threshold,
        kind=draw(st.sampled_from(["fixed", "monotone"])),
        **more,
    )


class TestRecord:
    def test_is_frozen(self):
        certificate = Certificate(**PLAIN)
        for name in ("errors", "threshold", "kind"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(certificate, name, 0)

    @pytest.mark.parametrize(
        ("changed", "text"),
        [
            ({"errors": 81}, "A certificate needs errors <= accepted <= n; got 81, 80, 100."),
            ({"accepted": 101}, "A certificate needs errors <= accepted <= n; got 1, 101, 100."),
            ({"unknown": 101}, "A certificate needs commonest + unknown <= n; got None, 101, 100."),
            ({"unknown": 1, "commonest": 100}, "A certificate needs commonest + unknown <= n; got 100, 1, 100."),
            ({"threshold": math.inf}, "Threshold inf accepts no row; got accepted=80."),
            ({"threshold": -math.inf}, "Threshold -inf accepts every row; got accepted=80 of 100."),
            ({"errors": -1}, "`errors` of Certificate must be a whole number of at least 0; got -1."),
            ({"errors": 1.0}, "`errors` of Certificate must be a whole number of at least 0; got 1.0."),
            ({"accepted": True}, "`accepted` of Certificate must be a whole number of at least 0; got True."),
            ({"accepted": -1}, "`accepted` of Certificate must be a whole number of at least 0; got -1."),
            ({"n": 0, "accepted": 0}, "`n` of Certificate must be a whole number of at least 1; got 0."),
            ({"alpha": 5}, "`alpha` of Certificate must lie in (0, 1); got 5. Did you mean 0.05?"),
            ({"rho": 0.0}, "`rho` of Certificate must lie in (0, 1); got 0.0."),
            ({"threshold": math.nan}, "`threshold` of Certificate must be a number; got nan."),
            ({"threshold": None}, "`threshold` of Certificate must be a number; got None."),
            ({"kind": "lucky"}, "`kind` of Certificate must be one of ('fixed', 'monotone', 'sequence', 'anytime'); got 'lucky'."),
            ({"kind": ["fixed"]}, "`kind` of Certificate must be one of ('fixed', 'monotone', 'sequence', 'anytime'); got ['fixed']."),
            ({"unit": "person"}, "`unit` of Certificate must be one of ('row', 'group'); got 'person'."),
            ({"population": "some"}, "`population` of Certificate must be one of ('all', 'accepted', 'group', 'class', 'predicted'); got 'some'."),
            ({"unknown": -1}, "`unknown` of Certificate must be a whole number of at least 0; got -1."),
            ({"commonest": 0.5}, "`commonest` of Certificate must be a whole number of at least 0; got 0.5."),
            ({"commonest": -1}, "`commonest` of Certificate must be a whole number of at least 0; got -1."),
            ({"name": 3}, "`name` of Certificate must be a text; got 3."),
            ({"tolerance": 0.1}, "`tolerance` of Certificate must say in words what is right; got 0.1."),
            ({"provenance": {"uses": 1}}, "`provenance` of Certificate must be a Provenance; got {'uses': 1}."),
        ],
    )  # fmt: skip
    def test_what_contradicts_itself_is_refused_in_these_words(self, changed, text):
        with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
            Certificate(**PLAIN | changed)
        assert str(caught.value) == text

    @pytest.mark.parametrize(
        "changed",
        [
            {"errors": 0, "accepted": 0},
            {"unknown": 0, "commonest": 0},
            {"unknown": 40, "commonest": 60},
            {"unknown": 100},
            {"threshold": -math.inf, "accepted": 100},
            {"threshold": math.inf, "accepted": 0, "errors": 0},
            {"n": 1, "accepted": 1},
        ],
    )
    def test_what_just_fits_is_kept(self, changed):
        found = Certificate(**PLAIN | changed)
        assert {name: getattr(found, name) for name in changed} == changed


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
            ("format", "reliablenet-certificate/1"),
            ("format", "reliablenet-certificate/3"),
            ("unit", "group"),
            ("empty", True),
            ("commonest", 50),
            ("unknown", 1),
            ("provenance", {}),
            ("verdict", "Certified for ever."),
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
            ("reason", "0 confident mistakes in 1000 rows"),
        ],
    )
    def test_an_altered_field_is_refused(self, name, value):
        values = json.loads(Certificate(**PLAIN).to_json())
        with pytest.raises((InvalidDataError, InvalidParameterError)):
            Certificate.from_json(json.dumps(values | {name: value}))

    @pytest.mark.parametrize(
        "name",
        [
            *PLAIN,
            *("kind", "unit", "commonest", "unknown", "provenance"),
            *("certified", "coverage", "empty", "upper_bound", "format"),
        ],
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
  "format": "reliablenet-certificate/2",
  "certified": false,
  "empty": false,
  "verdict": "Not certified: the rule is not shown to keep its budget of 25 %.",
  "reason": "1 confident mistake in 1 row: up to 100 % of all rows could be acted on wrongly (50 % confidence); alpha = 25 % needs at least 7 fresh rows",
  "notes": [],
  "upper_bound": 1.0,
  "errors": 1,
  "accepted": 1,
  "n": 1,
  "unit": "row",
  "coverage": 1.0,
  "error_accepted": 1.0,
  "error_accepted_interval": [
    0.25,
    1.0
  ],
  "commonest": null,
  "guessing_error": null,
  "unknown": 0,
  "tolerance": "",
  "alpha": 0.25,
  "rho": 0.5,
  "threshold": 0.5,
  "kind": "fixed",
  "population": "all",
  "name": "",
  "provenance": null,
  "sha256": "142b387863c526ddbd95dc90dbef2c340c7e95cdb3a8a47ff4906ec9b01ffca3"
}"""
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"errors": 0, "accepted": 0, "threshold": math.inf},
        {"accepted": 100, "threshold": -math.inf, "commonest": 60, "unknown": 3},
        {"errors": 9, "accepted": 10, "commonest": 95, "kind": "monotone"},
        {"errors": 1, "accepted": 1, "alpha": 0.5, "commonest": 99},
        {"population": "group", "name": "A", "tolerance": "0.1", "unit": "group"},
        {"provenance": Provenance(model="ab", uses=2)},
    ],
)
def test_a_file_tells_what_is_stored_and_what_follows(changed):
    made = Certificate(**PLAIN | changed)
    told = made.to_dict()
    for name in ("errors", "accepted", "n", "unit", "commonest", "unknown", "tolerance", "alpha",
                 "rho", "kind", "population", "name", "certified", "empty", "coverage", "reason",
                 "upper_bound"):  # fmt: skip
        assert told[name] == getattr(made, name)
    assert told["format"] == "reliablenet-certificate/2"
    assert told["threshold"] == (
        made.threshold if math.isfinite(made.threshold) else str(made.threshold)
    )
    assert told["verdict"] == str(made)
    assert repr(made) == f"<Certificate: {made}>"
    acted, known = made.accepted > 0, made.commonest is not None
    assert told["error_accepted"] == (made.errors / made.accepted if acted else None)
    assert told["error_accepted_interval"] == (
        list(made.error_accepted_interval) if acted else None
    )
    assert told["guessing_error"] == (made.guessing_error if known else None)
    assert told["provenance"] == (made.provenance.to_dict() if made.provenance else None)
    assert json.loads(made.to_json()) == told | {"sha256": digest(told)}
    again = Certificate.from_json(made.to_json())
    assert (again, again.provenance) == (made, made.provenance)


@pytest.mark.parametrize("name", ["name", "population", "tolerance"])
def test_fields_that_came_later_may_be_absent(name):
    values = json.loads(Certificate(**PLAIN).to_json())
    del values[name]
    assert Certificate.from_json(hashed(values)) == Certificate(**PLAIN)


@pytest.mark.parametrize("factor", [1 + 2e-9, 1 - 2e-9])
def test_a_bound_that_is_off_by_more_than_its_last_bits_is_refused(factor):
    values = json.loads(Certificate(**PLAIN).to_json())
    values["upper_bound"] *= factor
    with pytest.raises(InvalidDataError, match="does not follow from its counts"):
        Certificate.from_json(hashed(values))


def test_the_parts_of_a_certificate_are_plain_numbers():
    counts = {name: np.int16(PLAIN[name]) for name in ("errors", "accepted", "n")}
    counts |= {"commonest": np.int16(3), "unknown": np.int16(2)}
    levels = {name: np.float32(0.5) for name in ("alpha", "rho", "threshold")}
    certificate = Certificate(**counts, **levels)
    found = [type(getattr(certificate, name)) for name in (*counts, *levels)]
    assert found == [int] * 5 + [float] * 3


def altered(**changes):
    """Return the text of a certificate, changed by one who also mends the hash."""
    values = json.loads(Certificate(**PLAIN | {"errors": 100, "accepted": 100}).to_json())
    return hashed({name: value for name, value in (values | changes).items() if value != "drop"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "This is not the JSON of a certificate: "),
        ("[]", "This is not a certificate of the format 'reliablenet-certificate/2'."),
        (
            altered(format="reliablenet-certificate/3"),
            "This is not a certificate of the format 'reliablenet-certificate/2'.",
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
            altered(empty=True),
            "The certificate's 'empty' (True) does not follow from its counts (False): "
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


class TestUpperBound:
    """What is printed as a bound holds at the level beside it (AUDIT A7, docs/decisions/0020)."""

    def test_a_fixed_rule_has_the_bound_of_its_errors(self):
        certificate = Certificate(**PLAIN | {"errors": 0})
        assert certificate.upper_bound == clopper_pearson_upper(0, 100, 0.05)

    def test_a_chosen_threshold_has_the_bound_of_the_most_errors_alpha_affords(self):
        """With ties fewer errors are accepted than could be: their own bound fails too often."""
        certificate = Certificate(**PLAIN | {"errors": 0, "kind": "monotone"})
        assert certificate.upper_bound == clopper_pearson_upper(1, 100, 0.05)
        assert certificate.certified

    def test_where_every_row_is_accepted_there_was_nothing_to_choose(self):
        certificate = Certificate(
            **PLAIN | {"errors": 0, "accepted": 100, "threshold": 0.0, "kind": "monotone"}
        )
        assert certificate.upper_bound == clopper_pearson_upper(0, 100, 0.05)

    @pytest.mark.parametrize(
        ("changed", "counted"),
        [
            ({"kind": "sequence", "errors": 0}, 1),  # of rows acted on always the most errors
            ({"kind": "sequence", "errors": 0, "accepted": 100}, 1),
            ({"kind": "sequence", "errors": 0, "accepted": 1}, 1),
            ({"kind": "sequence", "errors": 0, "accepted": 0}, 0),
            ({"kind": "sequence", "errors": 4}, 4),
            ({"kind": "monotone", "errors": 0, "accepted": 1}, 1),
            ({"kind": "monotone", "errors": 0, "accepted": 99}, 1),
            ({"kind": "monotone", "errors": 0, "accepted": 0}, 0),
            ({"kind": "monotone", "errors": 4}, 4),
        ],
    )
    def test_the_bound_is_of_the_errors_counted_or_of_the_most_affordable(self, changed, counted):
        found = Certificate(**PLAIN | changed)
        assert found.upper_bound == clopper_pearson_upper(counted, 100, 0.05)
        assert type(found.upper_bound) is float

    @pytest.mark.parametrize(("errors", "n"), [(0, 400), (1, 400), (30, 400), (0, 50)])
    @pytest.mark.parametrize("rho", [0.05, 0.2])
    def test_after_looks_at_any_time_it_is_alpha_or_beyond(self, errors, n, rho):
        found = Certificate(errors, 40, n, 0.05, rho, 0.9, "anytime")
        assert found.upper_bound == max(0.05, anytime_upper(errors, n, rho))
        assert found.certified == (anytime_upper(errors, n, rho) <= 0.05)

    @given(certificate=certificates())
    def test_the_verdict_is_that_of_the_errors_counted_whatever_the_kind(self, certificate):
        own = clopper_pearson_upper(certificate.errors, certificate.n, certificate.rho)
        granted = certificate.threshold < math.inf and own <= certificate.alpha
        assert certificate.certified == granted
        assert certificate.upper_bound >= own


class TestFirstFormat:
    """Certificates that version 0.1 wrote are read for ever."""

    def first(self, certificate: Certificate, **changes) -> str:
        """Write a certificate as version 0.1 did."""
        c = certificate
        values = {
            "format": "reliablenet-certificate/1",
            "certified": c.certified,
            "upper_bound": float(clopper_pearson_upper(c.errors, c.n, c.rho)),
            "errors": c.errors,
            "accepted": c.accepted,
            "n": c.n,
            "coverage": c.coverage,
            "alpha": c.alpha,
            "rho": c.rho,
            "threshold": c.threshold if math.isfinite(c.threshold) else str(c.threshold),
            "kind": c.kind,
            "reason": "its words were others",
        }
        return hashed(values | changes)

    def test_a_text_of_version_0_1_is_read(self):
        assert Certificate.from_json(WRITTEN_BY_0_1) == Certificate(1, 1, 1, 0.25, 0.5, 0.5)

    def test_an_altered_text_of_version_0_1_is_refused(self):
        with pytest.raises(InvalidDataError, match="do not match its hash"):
            Certificate.from_json(WRITTEN_BY_0_1.replace('"n": 1', '"n": 2'))

    @given(certificate=certificates(first_format=True))
    def test_any_certificate_of_it_is_read(self, certificate):
        """A chosen threshold had the bound of its own errors then; counts and verdict are the same."""
        found = Certificate.from_json(self.first(certificate))
        assert found == certificate
        assert (found.unit, found.commonest, found.unknown) == ("row", None, 0)
        assert found.provenance is None

    @pytest.mark.parametrize("name", ["certified", "coverage", "upper_bound"])
    def test_a_forged_verdict_is_refused_even_with_a_fitting_hash(self, name):
        text = self.first(Certificate(**PLAIN | {"errors": 4}), **{name: 0.04})
        with pytest.raises(InvalidDataError, match=f"'{name}' .0.04.*the text was altered"):
            Certificate.from_json(text)


class TestProvenance:
    MADE = Provenance(model="a1", rows="b2", table="c3", chosen_among=4, uses=5, copies=6)

    @pytest.mark.parametrize("compared", [True, False])
    def test_it_survives_json(self, compared):
        made = dataclasses.replace(self.MADE, compared=compared)
        certificate = Certificate(**PLAIN, provenance=made)
        found = Certificate.from_json(certificate.to_json())
        assert found.provenance == made
        notes = json.loads(certificate.to_json())["notes"]
        assert any("could not be compared" in note for note in notes) is not compared

    def test_certificates_that_prove_the_same_are_equal_whatever_it_says(self):
        assert Certificate(**PLAIN, provenance=self.MADE) == Certificate(**PLAIN)

    @pytest.mark.parametrize(
        ("changed", "text"),
        [
            ({"model": "forged"}, "`model` of Provenance must hold hexadecimal digits; got 'forged'."),
            ({"model": "X"}, "`model` of Provenance must hold hexadecimal digits; got 'X'."),
            ({"rows": 3}, "`rows` of Provenance must hold hexadecimal digits; got 3."),
            ({"table": "AB"}, "`table` of Provenance must hold hexadecimal digits; got 'AB'."),
            ({"uses": 0}, "`uses` of Provenance must be a whole number of at least 1; got 0."),
            ({"chosen_among": 0}, "`chosen_among` of Provenance must be a whole number of at least 1; got 0."),
            ({"compared": 1}, "`compared` of Provenance must be True or False; got 1."),
            ({"copies": -1}, "`copies` of Provenance must be a whole number of at least 0; got -1."),
        ],
    )  # fmt: skip
    def test_values_outside_their_domain_are_refused(self, changed, text):
        with pytest.raises(InvalidParameterError) as caught:
            dataclasses.replace(self.MADE, **changed)
        assert str(caught.value) == text

    def test_what_just_fits_is_kept_as_plain_numbers(self):
        digits = "0123456789abcdef"
        made = Provenance(digits, digits, digits, np.int8(1), np.int8(1), np.int8(0))
        assert made == Provenance(model=digits, rows=digits, table=digits)
        assert {type(value) for value in made.to_dict().values()} == {str, int}
        assert Provenance().to_dict() == {
            "model": "", "rows": "", "table": "", "chosen_among": 1, "uses": 1, "copies": 0,
        }  # fmt: skip
        assert vars(Provenance()) == Provenance().to_dict() | {"compared": True}
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.uses = 2

    @pytest.mark.parametrize("stored", [3, "x", {}, {"uses": 1}, {"luck": 1}])
    def test_a_forged_one_is_refused(self, stored):
        values = json.loads(Certificate(**PLAIN).to_json())
        with pytest.raises(InvalidDataError) as caught:
            Certificate.from_json(hashed(values | {"provenance": stored}))
        assert str(caught.value) == (
            "The provenance of a certificate must hold "
            "['chosen_among', 'copies', 'model', 'rows', 'table', 'uses']."
        )
