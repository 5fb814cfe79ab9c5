"""Rows held out to judge a rule by: groups, copies, classes not known, and what a certificate tells."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.certificate.groups import draw_places
from reliablenet.cli.app import app
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.held_out import HeldOut
from reliablenet.report import model_page
from reliablenet.tables.copies import hash_rows
from reliablenet.tables.digest import fingerprint

BAND = SyntheticBand(random_state=0)
PAST, FRESH = BAND.sample(1500), BAND.sample(1000)
PERSON = np.arange(1000) // 4


@pytest.fixture
def model() -> rn.CertifiedThreshold:
    return rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(PAST.X, PAST.y)


class TestGroups:
    """AUDIT A4: the promise is about a random row of a random group, and says so."""

    def test_one_row_of_each_group_counts(self, model) -> None:
        found = model.certify(FRESH.X, FRESH.y, groups=PERSON)
        assert (found.unit, found.n) == ("group", 250)
        drawn = draw_places(PERSON, 1000)
        rows = model.score_rows(FRESH.X[drawn], FRESH.y[drawn])
        accepted = rows.score >= model.threshold_
        assert (found.accepted, found.errors) == (accepted.sum(), (accepted & rows.wrong).sum())

    def test_the_same_rows_give_the_same_certificate_and_a_seed_another_draw(self, model) -> None:
        first, again = (model.certify(FRESH.X, FRESH.y, groups=PERSON) for _ in range(2))
        assert first == again
        with warnings.catch_warnings(action="ignore", category=rn.errors.ReuseWarning):
            draws = [
                model.certify(FRESH.X, FRESH.y, groups=PERSON, random_state=seed).provenance.rows
                for seed in range(3)
            ]
        assert len(set(draws)) == 3

    def test_a_model_that_counts_groups_is_not_certified_by_rows_unless_it_is_said(self) -> None:
        rule = rn.CertifiedThreshold(LogisticRegression(), random_state=0)
        model = rule.fit(PAST.X, PAST.y, groups=np.arange(len(PAST.y)) // 4)
        with pytest.raises(rn.errors.InvalidParameterError) as caught:
            model.certify(FRESH.X, FRESH.y)
        assert str(caught.value) == (
            "`groups` of CertifiedThreshold.certify must say whose row each is, as the certificate of this model "
            'counts groups, one row of each (or be "rows" if each row is a unit of its own); got None.'
        )
        assert model.certify(FRESH.X, FRESH.y, groups=PERSON).unit == "group"
        with pytest.warns(rn.errors.ReuseWarning):
            found = model.certify(FRESH.X, FRESH.y, groups="rows")
        assert (found.unit, found.n) == ("row", 1000)

    def test_every_word_about_it_speaks_of_groups(self, model) -> None:
        found = model.certify(FRESH.X, FRESH.y, groups=PERSON.astype(str))
        for words in (str(found), repr(found), found.reason, *found.to_dict()["notes"]):
            assert "group" in words
            assert "of all rows" not in words
        assert json.loads(found.to_json())["unit"] == "group"
        assert rn.Certificate.from_json(found.to_json()).unit == "group"

    def test_a_fit_with_groups_says_so_in_certificate_file_page_and_command(self, tmp_path) -> None:
        person = np.arange(1500) // 3
        model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.1, random_state=0)
        model.fit(PAST.X, PAST.y, groups=person)
        path = model.save(tmp_path / "m.rnet")
        for found in (model, rn.load(path)):
            assert found.grouped_
            assert found.certificate_.unit == "group"
            page = model_page(found)
            assert "one row of each, drawn at random" in page
            assert "a row drawn at random from a new group is acted on wrongly" in page
            assert "of all rows from this source" not in page
        shown = CliRunner().invoke(app, ["inspect", str(path)]).stdout
        assert "groups, one row of each" in shown
        assert "of all rows" not in shown
        told = json.loads(CliRunner().invoke(app, ["inspect", str(path), "--json"]).stdout)
        assert told["certificate"]["unit"] == "group"

    def test_grouped_follows_from_the_certificate_and_cannot_be_set(self, model) -> None:
        assert not model.grouped_
        with pytest.raises(AttributeError):
            model.grouped_ = True

    @pytest.mark.parametrize(
        ("groups", "text"),
        [
            (PERSON[:5], "one label for each of the 1000 rows"),
            (np.where(PERSON == 3, np.nan, PERSON), "missing in row 12"),
        ],
    )
    def test_groups_that_do_not_fit_the_rows_are_refused(self, model, groups, text) -> None:
        with pytest.raises(rn.errors.InvalidDataError, match=text):
            model.certify(FRESH.X, FRESH.y, groups=groups)

    def test_a_seed_that_is_none_is_refused(self, model) -> None:
        with pytest.raises(
            rn.errors.InvalidParameterError, match="`random_state` of CertifiedThreshold"
        ):
            model.certify(FRESH.X, FRESH.y, groups=PERSON, random_state="luck")


class TestCopies:
    """AUDIT A5: each row five times made 78 of 400 certificates false, without a warning."""

    FIVE = np.repeat(np.arange(200), 5)

    def test_copies_within_the_fold_are_warned_of_and_counted(self, model) -> None:
        X, y = FRESH.X[self.FIVE], FRESH.y[self.FIVE]
        text = r"800 of 1000 certification rows \(80%\) repeat another one.*There are 200 different"
        with pytest.warns(rn.errors.FoldWarning, match=text):
            found = model.certify(X, y)
        assert found.provenance.copies == 800
        assert (
            "800 rows repeat another row of the fold, and count again" in found.to_dict()["notes"]
        )

    @pytest.mark.filterwarnings("ignore::reliablenet.errors.NotCertifiedWarning")
    def test_in_fit_as_well(self) -> None:
        rule = rn.CertifiedThreshold(LogisticRegression())
        held = (FRESH.X[self.FIVE], FRESH.y[self.FIVE])
        with pytest.warns(rn.errors.FoldWarning, match="800 of 1000 certification rows"):
            rule.fit(PAST.X, PAST.y, certification=held)
        assert rule.certificate_.provenance.copies == 800

    def test_the_remedy_helps(self, model) -> None:
        found = model.certify(FRESH.X[self.FIVE], FRESH.y[self.FIVE], groups=self.FIVE)
        assert (found.n, found.provenance.copies) == (200, 0)

    def test_rows_that_agree_by_chance_are_neither_warned_of_nor_called_copies(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.integers(0, 8, (3000, 2)).astype(float)
        y = (X.sum(axis=1) + rng.normal(size=3000) > 7).astype(int)
        rule = rn.CertifiedThreshold(LogisticRegression(), alpha=0.2, random_state=0)
        found = rule.fit(X, y).certificate_
        assert found.provenance.copies == 0
        assert found.to_dict()["notes"] == []


class TestUnknownClasses:
    """AUDIT A6: rows of a class that the model does not know are certain errors."""

    NAMES = np.array(["no", "yes"])

    @pytest.fixture
    def named(self) -> rn.CertifiedThreshold:
        rule = rn.CertifiedThreshold(LogisticRegression(), random_state=0)
        return rule.fit(PAST.X, self.NAMES[PAST.y])

    def labels(self, strangers: int, name: str = "maybe") -> np.ndarray:
        labels = self.NAMES[FRESH.y].astype(object)
        labels[:strangers] = name
        return labels

    @pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
    def test_certify_counts_them_as_wrong(self, named) -> None:
        with pytest.warns(
            rn.errors.LabelWarning, match=r"50 of 1000 rows .*\('maybe'\).*counted as wrong"
        ):
            found = named.certify(FRESH.X, self.labels(50))
        assert found.unknown == 50
        assert json.loads(found.to_json())["unknown"] == 50
        plain = named.certify(FRESH.X, self.labels(0))
        assert (plain.unknown, plain.accepted) == (0, found.accepted)
        accepted = named.accept(FRESH.X[:50])
        right = named.predict(FRESH.X[:50]) == self.labels(0)[:50]
        assert found.errors == plain.errors + (accepted & right).sum()
        note = "50 rows of a class that the model does not know count as wrong"
        assert note in found.to_dict()["notes"]

    def test_so_does_a_certification_fold_of_ones_own(self, tmp_path) -> None:
        rule = rn.CertifiedThreshold(LogisticRegression(), alpha=0.1)
        with pytest.warns(rn.errors.LabelWarning, match="30 of 1000 rows"):
            rule.fit(PAST.X, self.NAMES[PAST.y], certification=(FRESH.X, self.labels(30)))
        loaded = rn.load(rule.save(tmp_path / "m.rnet"))
        for found in (rule, loaded):
            assert found.certificate_.unknown == 30
            assert (found.evidence_.truth[:30] == -1).all()
            assert found.evidence_.wrong[:30].all()
            assert found.classes_.tolist() == ["no", "yes"]
        assert "30 rows of a class that the model does not know" in model_page(loaded)

    def test_a_selection_fold_must_hold_classes_that_are_known(self) -> None:
        """Nothing can be chosen for them."""
        with pytest.raises(
            rn.errors.InvalidDataError, match=r"selection fold holds labels .*'maybe'"
        ):
            rn.TemperatureScaling(LogisticRegression()).fit(
                PAST.X, self.NAMES[PAST.y], selection=(FRESH.X, self.labels(30))
            )

    @pytest.mark.parametrize("slip", ["Yes", "yes ", " YES"])
    def test_a_slip_in_spelling_is_no_class(self, named, slip) -> None:
        with pytest.raises(
            rn.errors.InvalidDataError, match=f"holds {slip!r} where the predictions say"
        ):
            named.certify(FRESH.X, self.labels(5, slip))

    def test_where_none_is_known_nothing_is_certified(self, named) -> None:
        with pytest.raises(rn.errors.InvalidDataError, match=r"None of the labels.*got 'maybe'"):
            named.certify(FRESH.X, self.labels(1000))

    def test_evaluation_counts_them_as_wrong_too(self, named) -> None:
        with pytest.warns(rn.errors.LabelWarning, match="50 of 1000 rows"):
            measured = named.evaluate(FRESH.X, self.labels(50))
        assert measured.accuracy < named.evaluate(FRESH.X, self.labels(0)).accuracy


class TestProvenance:
    def test_a_fit_marks_model_rows_and_table(self, model) -> None:
        made = model.certificate_.provenance
        assert made.table == model.fingerprint_ == fingerprint(PAST.X, PAST.y)
        assert (len(made.model), len(made.rows), made.uses) == (32, 32, 1)
        held = model.evidence_.row
        assert model.seen_.certified.tolist() == sorted(hash_rows(PAST.X[held]))

    def test_rows_given_by_themselves_have_no_table(self, model) -> None:
        assert model.certify(FRESH.X, FRESH.y).provenance.table == ""
        rule = rn.CertifiedThreshold(LogisticRegression())
        more = BAND.sample(500)
        rule.fit(PAST.X, PAST.y, certification=(more.X, more.y))
        assert rule.certificate_.provenance.table == ""

    def test_order_does_not_matter_and_every_row_and_label_does(self, model) -> None:
        with warnings.catch_warnings(action="ignore", category=rn.errors.ReuseWarning):
            whole = model.certify(FRESH.X, FRESH.y).provenance
            turned = model.certify(FRESH.X[::-1], FRESH.y[::-1]).provenance
            less = model.certify(FRESH.X[1:], FRESH.y[1:]).provenance
            other = model.certify(FRESH.X, np.r_[1 - FRESH.y[0], FRESH.y[1:]]).provenance
        assert (turned.rows, turned.model) == (whole.rows, whole.model)
        assert turned.uses == 1  # the last bits of the scores may differ
        assert len({whole.rows, less.rows, other.rows}) == 3
        assert len({whole.model, less.model, other.model}) == 3

    def test_frames_and_arrays_of_the_same_numbers_are_the_same_rows(self, model) -> None:
        rows = model.score_rows(FRESH.X, FRESH.y)
        marks = {
            HeldOut(rows, hash_rows(X)).judge(0.05, 0.05, 0.9).provenance.rows
            for X in (FRESH.X, pd.DataFrame(FRESH.X), FRESH.X.tolist())
        }
        assert len(marks) == 1
