"""Rows that a model has seen are recognised one by one, and fresh ones are not mistaken for them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly, quick
from safetensors.numpy import save as save_arrays
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.certificate import Provenance
from reliablenet.cli.app import app
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.renewal import renew
from reliablenet.methods.row_watch import RowWatch
from reliablenet.methods.seen import SeenRows, model_hashes
from reliablenet.modelfile.archive import open_sealed, seal, sha256
from reliablenet.modelfile.save_load import MEMBERS, SEEN
from reliablenet.tables import Fold, TabularEncoder
from reliablenet.tables.copies import hash_rows
from reliablenet.tables.files import read_table

BAND = SyntheticBand(random_state=0)
PAST, FRESH = BAND.sample(1500), BAND.sample(800)
REFUSED = "rows were given to `fit` already, row {} among them"


@pytest.fixture(scope="module")
def model() -> rn.CertifiedThreshold:
    return rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(PAST.X, PAST.y)


def loans(n: int, seed: int = 0) -> pd.DataFrame:
    """A table with numbers, whole numbers with gaps, categories, flags, dates and a name."""
    rng = np.random.default_rng(seed)
    debt = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "name": [f"person {seed} {number}" for number in rng.permutation(n)],
            "debt": debt,
            "age": pd.array(rng.integers(18, 90, n), "Int64"),
            "job": pd.Categorical(rng.choice(["office", "trade", "007"], n)),
            "member": rng.random(n) < 0.5,
            "opened": pd.date_range("2020-01-01", periods=n, freq="h"),
            "default": np.where(debt + 0.2 * rng.normal(size=n) > 0, "yes", "no"),
        }
    )
    table.loc[rng.random(n) < 0.1, ["age", "job"]] = None
    return table


@pytest.fixture(scope="module")
def table_model() -> rn.CertifiedThreshold:
    """Boosted trees on a table, behind an encoder of ours, which leaves names out."""
    trees = make_pipeline(TabularEncoder(), HistGradientBoostingClassifier(max_iter=10))
    table = loans(1000)
    model = rn.CertifiedThreshold(trees, alpha=0.2, random_state=0)
    with warnings.catch_warnings(action="ignore", category=rn.errors.ColumnWarning):
        return model.fit(table.drop(columns="default"), table["default"])


class TestCertify:
    def test_the_whole_table_is_refused(self, model) -> None:
        """AUDIT A11: it passed silently, though its hash was in the file."""
        with pytest.raises(rn.errors.InvalidDataError, match="1,500 of 1,500 " + REFUSED.format(0)):
            model.certify(PAST.X, PAST.y)

    def test_part_of_it_is_refused_in_any_order_and_among_fresh_rows(self, model) -> None:
        for part in (slice(0, 100), slice(1499, 1300, -1)):
            with pytest.raises(
                rn.errors.InvalidDataError, match="rows that trained, tuned or chose"
            ):
                model.certify(PAST.X[part], PAST.y[part])
        X, y = (
            np.concatenate([new, old[:20]]) for new, old in ((FRESH.X, PAST.X), (FRESH.y, PAST.y))
        )
        with pytest.raises(rn.errors.InvalidDataError, match="20 of 820 " + REFUSED.format(800)):
            model.certify(X, y)

    def test_the_certification_rows_are_refused_too(self, model) -> None:
        """They chose the threshold: as a fixed rule it looks better on them than it is."""
        rows = model.evidence_.row
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
            model.certify(PAST.X[rows], PAST.y[rows])

    @pytest.mark.parametrize("kind", [list, pd.DataFrame, np.asfortranarray, np.float32])
    def test_rows_are_the_same_in_any_container(self, kind) -> None:
        model = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(PAST.X, PAST.y)
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
            model.certify(kind(PAST.X[:50]), PAST.y[:50])

    def test_labels_do_not_matter(self, model) -> None:
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
            model.certify(PAST.X[:50], 1 - PAST.y[:50])

    def test_fresh_rows_are_taken(self, model) -> None:
        found = model.certify(FRESH.X, FRESH.y)
        assert (found.n, found.provenance.uses) == (800, 1)

    def test_one_row_of_many_may_be_chance_and_a_warning_tells(self, model) -> None:
        X, y = np.concatenate([FRESH.X, PAST.X[:1]]), np.concatenate([FRESH.y, PAST.y[:1]])
        with pytest.warns(rn.errors.ReuseWarning, match="1 of 801 " + REFUSED.format(800)):
            assert model.certify(X, y).n == 801

    def test_folds_of_ones_own_are_recognised_as_well(self) -> None:
        X, y = PAST.X, PAST.y
        model = rn.TemperatureScaling(LogisticRegression()).fit(
            X[:500],
            y[:500],
            selection=(X[500:1000], y[500:1000]),
            certification=(X[1000:], y[1000:]),
        )
        for start in (0, 500, 1000):
            with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
                model.certify(X[start : start + 100], y[start : start + 100])

    def test_a_network_knows_its_rows_too(self) -> None:
        model = fit_quietly(quick(rn.ERMClassifier), PAST.X, PAST.y)
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
            model.certify(PAST.X[:200], PAST.y[:200])
        assert model.certify(FRESH.X, FRESH.y).n == 800

    @pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
    def test_rows_of_a_sparse_matrix_are_recognised(self, model, kind) -> None:
        X = kind(PAST.X)
        ours = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(X, PAST.y)
        assert ours.certificate_.provenance.rows == model.certificate_.provenance.rows
        for one, rows in ((ours, X), (ours, PAST.X), (model, X)):
            with pytest.raises(rn.errors.InvalidDataError, match="1,500 of 1,500 rows"):
                one.certify(rows, PAST.y)
        fresh = kind(FRESH.X)
        assert ours.certify(fresh, FRESH.y).n == 800
        again = rn.CertifiedThreshold(LogisticRegression(C=0.01), random_state=0)
        with pytest.warns(rn.errors.ReuseWarning, match="used for 2 certificates"):
            again.fit(X, PAST.y)

    def test_what_cannot_be_compared_is_not_refused_and_the_certificate_says_so(self) -> None:
        """Rows that are lists of words, for a vectoriser."""
        rng = np.random.default_rng(0)
        words = [[str(word) for word in rng.integers(0, 9, 2 + n % 5)] for n in range(600)]
        y = np.array([int("3" in row) for row in words])
        inner = make_pipeline(CountVectorizer(analyzer=list), LogisticRegression())
        model = rn.CertifiedThreshold(inner, alpha=0.2, random_state=0).fit(words, y)
        assert model.seen_ is None
        assert model.certificate_.provenance.rows == ""
        assert model.certificate_.provenance.compared  # `fit` itself has cut the fold
        found = model.certify(words[:100], y[:100])
        assert found.n == 100
        assert not found.provenance.compared
        assert any("could not be compared" in note for note in found.to_dict()["notes"])
        assert Provenance.from_dict(found.provenance.to_dict()) == found.provenance
        assert "compared" not in model.certificate_.provenance.to_dict()
        given = rn.CertifiedThreshold(inner, alpha=0.2, random_state=0)
        given.fit(words[:400], y[:400], certification=(words[400:], y[400:]))
        assert not given.certificate_.provenance.compared


class TestFiles:
    def test_a_loaded_model_refuses_what_the_saved_one_refuses(self, model, tmp_path) -> None:
        loaded = rn.load(model.save(tmp_path / "m.rnet"))
        np.testing.assert_array_equal(loaded.seen_.trained, model.seen_.trained)
        np.testing.assert_array_equal(loaded.seen_.certified, model.seen_.certified)
        with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
            loaded.certify(PAST.X[700:800], PAST.y[700:800])
        assert loaded.certify(FRESH.X, FRESH.y) == model.certify(FRESH.X, FRESH.y)

    def test_hashes_have_no_labels_and_no_features(self, model) -> None:
        arrays = (model.seen_.trained, model.seen_.certified)
        assert {part.dtype for part in arrays} == {np.dtype(np.uint64)}
        assert sum(map(len, arrays)) == 1500
        for part in arrays:
            assert np.all(np.diff(part.astype(float)) >= 0)  # sorted: not the order of the table

    @pytest.mark.parametrize(
        ("arrays", "text"),
        [
            ({}, "two or three lists of hashes"),
            ({"trained": np.zeros(3)}, "two or three lists of hashes"),
            ({"trained": np.zeros(3), "certified": np.zeros(3)}, "two or three lists of hashes"),
            ({"twins": np.zeros((1, 1), np.int64)}, "two or three lists of hashes"),
            ({"beside": np.zeros(3)}, "two or three lists of hashes"),
            ({"twins": np.array([7])}, "7 of 6 rows seen cannot have twins"),
            ({"twins": np.array([-1])}, "-1 of 6 rows seen cannot have twins"),
            ({"twins": np.array([], np.int64)}, "cannot be read as a model"),
        ],
    )
    def test_forged_rows_are_refused(self, model, tmp_path, arrays, text) -> None:
        hashes = np.arange(3, dtype=np.uint64)
        good = {"trained": hashes, "certified": hashes, "twins": np.array([0])}
        parts = open_sealed(model.save(tmp_path / "m.rnet"), MEMBERS)
        parts[SEEN] = save_arrays(good | arrays if arrays else {"x": hashes})
        manifest = json.loads(parts["manifest.json"])
        manifest["sha256"][SEEN] = sha256(parts[SEEN])
        parts["manifest.json"] = json.dumps(manifest).encode()
        (tmp_path / "forged.rnet").write_bytes(seal(parts))
        with pytest.raises((rn.errors.InvalidDataError, rn.errors.ModelFileError), match=text):
            rn.load(tmp_path / "forged.rnet")

    def test_rows_with_another_hash_than_the_manifest_says_are_refused(
        self, model, tmp_path
    ) -> None:
        parts = open_sealed(model.save(tmp_path / "m.rnet"), MEMBERS)
        parts[SEEN] = SeenRows.of([], np.zeros(0, np.uint64)).to_bytes()
        (tmp_path / "forged.rnet").write_bytes(seal(parts))
        with pytest.raises(
            rn.errors.ModelFileError, match=r"rows\.safetensors does not match its hash"
        ):
            rn.load(tmp_path / "forged.rnet")


class TestTables:
    def test_a_table_read_from_a_file_has_the_same_hashes(self, table_model, tmp_path) -> None:
        table = loans(1000)
        table.to_csv(tmp_path / "t.csv", index=False)
        again = pd.read_csv(tmp_path / "t.csv", dtype={"job": str})
        ours = read_table(tmp_path / "t.csv")
        expected = model_hashes(table_model, table.drop(columns="default"))
        for other in (again, ours, table.sample(frac=1.0, random_state=0).sort_index()):
            found = model_hashes(table_model, other.drop(columns="default"))
            np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("kind", [str, "string", "category", object])
    def test_numbers_that_are_written_as_text_are_numbers(self, table_model, kind) -> None:
        """As from JSON or a database; the encoder reads them as numbers."""
        table = loans(1000)
        expected = model_hashes(table_model, table.drop(columns="default"))
        written = table.drop(columns="default")
        for name in ("debt", "age"):
            missing = written[name].isna()
            written[name] = written[name].astype(kind).astype(object).mask(missing, None)
            written[name] = written[name].astype(
                kind if kind == "category" else written[name].dtype
            )
        np.testing.assert_array_equal(model_hashes(table_model, written), expected)
        with pytest.raises(rn.errors.InvalidDataError, match="1,000 of 1,000 " + REFUSED.format(0)):
            table_model.certify(written, table["default"])

    def test_what_is_no_number_is_the_encoders_to_refuse(self, table_model) -> None:
        table = loans(1000).drop(columns="default").astype({"debt": object})
        table.loc[3, "debt"] = "a lot"
        with pytest.raises(rn.errors.InvalidDataError, match="held numbers when the model"):
            table_model.certify(table, loans(1000)["default"])

    def test_columns_that_are_left_out_do_not_matter(self, table_model) -> None:
        dropped = list(table_model.estimator_[0].dropped_)
        assert dropped == ["name"]
        changed = loans(1000).drop(columns="default")
        changed[dropped] = "another"
        with pytest.raises(rn.errors.InvalidDataError, match="1,000 of 1,000 " + REFUSED.format(0)):
            table_model.certify(changed, loans(1000)["default"])

    @pytest.mark.parametrize("part", [slice(None), slice(100, 300)], ids=["whole", "part"])
    def test_the_command_refuses_the_training_table(self, table_model, tmp_path, part) -> None:
        table_model.save(tmp_path / "m.rnet")
        loans(1000).iloc[part].to_csv(tmp_path / "t.csv", index=False)
        result = run("certify", tmp_path / "m.rnet", tmp_path / "t.csv", "--target", "default")
        assert result.exit_code == 2
        assert REFUSED.format(0) in result.stderr
        loans(500, seed=1).to_csv(tmp_path / "fresh.csv", index=False)
        fresh = ("certify", tmp_path / "m.rnet", tmp_path / "fresh.csv", "--target", "default")
        result = run(*fresh, "--json")
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        rows = loans(500, seed=1)
        expected = table_model.certify(rows.drop(columns="default"), rows["default"])
        found = json.loads(result.stdout)
        assert found.pop("breakdown")  # who bears the mistakes, beside the certificate
        assert found.pop("sensitivity")
        assert found == expected.to_dict()  # fingerprints and all

    def test_the_command_refuses_what_the_command_has_trained_on(self, tmp_path) -> None:
        loans(400).to_csv(tmp_path / "t.csv", index=False)
        out = ("--out", tmp_path / "m.rnet", "--alpha", "0.2")
        run("train", tmp_path / "t.csv", "--target", "default", *out)
        result = run("certify", tmp_path / "m.rnet", tmp_path / "t.csv", "--target", "default")
        assert result.exit_code == 2
        assert "400 of 400 " + REFUSED.format(0) in result.stderr


def coarse(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three columns with a few values each: nearly every row agrees with others."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, k, n) for k in (4, 6, 8)]).astype(float)
    return X, (X[:, 0] + X[:, 1] / 2 + rng.normal(size=n) > 3).astype(int)


class TestChance:
    @pytest.mark.parametrize("n", [60, 300, 1000])
    def test_fresh_rows_of_a_coarse_table_are_not_refused(self, n) -> None:
        for seed in range(20):
            past = hash_rows(coarse(n, seed)[0])
            seen = SeenRows.of([past[: n // 2]], past[n // 2 :])
            seen.check(hash_rows(coarse(n, 1000 + seed)[0]))

    def test_half_coarse_rows_are_not_refused_either(self) -> None:
        """A tenth of the rows are alike, as where most columns are missing."""
        for seed in range(20):
            rng = np.random.default_rng(seed)
            past, fresh = (np.where(rng.random(400) < 0.1, 0.0, rng.random(400)) for _ in range(2))
            seen = SeenRows.of([hash_rows(past[:300, None])], hash_rows(past[300:, None]))
            seen.check(hash_rows(fresh[:, None]))
            with pytest.raises(
                rn.errors.InvalidDataError, match="rows were given to `fit` already"
            ):
                seen.check(hash_rows(np.concatenate([fresh, past])[:, None]))

    def test_a_coarse_table_is_fitted_and_certified_without_a_warning(self) -> None:
        model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.3, random_state=0)
        model.fit(*coarse(1000, 0))
        assert model.certify(*coarse(500, 1)).provenance.uses == 1

    def test_where_all_rows_are_different_some_that_come_back_are_enough(self) -> None:
        past = hash_rows(np.arange(1000.0)[:, None])
        seen = SeenRows.of([past[:700]], past[700:])
        fresh = hash_rows(np.arange(2000.0, 2500.0)[:, None])
        with pytest.raises(rn.errors.InvalidDataError, match="10 of 500 rows"):
            seen.check(np.concatenate([fresh[:-10], past[690:700]]))


@pytest.fixture
def inner() -> rn.TemperatureScaling:
    return rn.TemperatureScaling(LogisticRegression(), random_state=0).fit(PAST.X, PAST.y)


class TestWrapped:
    @pytest.mark.parametrize(
        "wrap",
        [
            rn.CertifiedThreshold,
            rn.ConformalRiskControl,
            lambda model: rn.CertifiedThreshold(rn.TemperatureScaling(model)),
            lambda model: rn.CertifiedThreshold(FrozenEstimator(model)),
        ],
        ids=["certified", "conformal", "two deep", "frozen"],
    )
    def test_rows_that_trained_what_is_wrapped_are_refused(self, inner, wrap) -> None:
        """AUDIT A1: a rule computed on rows that its model knows by heart is too bold."""
        with pytest.raises(rn.errors.InvalidDataError, match="rows were given to `fit` already"):
            wrap(inner).fit(PAST.X, PAST.y)
        with pytest.raises(rn.errors.InvalidDataError, match="rows were given to `fit` already"):
            wrap(inner).fit(FRESH.X, FRESH.y, certification=(PAST.X, PAST.y))

    def test_and_again_when_the_rule_is_certified(self, inner, tmp_path) -> None:
        rule = fit_quietly(rn.CertifiedThreshold(inner), FRESH.X, FRESH.y)
        trained = np.delete(np.arange(1500), inner.evidence_.row)
        rest = BAND.sample(300)
        for found in (rule, rn.load(rule.save(tmp_path / "m.rnet"))):
            for rows in (Fold(PAST.X[trained], PAST.y[trained]), FRESH):
                with pytest.raises(
                    rn.errors.InvalidDataError, match="rows were given to `fit` already"
                ):
                    found.certify(rows.X[:200], rows.y[:200])
            assert found.certify(rest.X, rest.y).n == 300

    def test_rows_that_certified_what_is_wrapped_may_certify_the_rule(self, inner) -> None:
        """They had no part in making the model; the ledger counts them."""
        held = inner.evidence_.row
        rule = rn.TemperatureScaling(inner)
        with pytest.warns(rn.errors.ReuseWarning, match="used for 2 certificates"):
            rule.fit(PAST.X[held], PAST.y[held], selection=(FRESH.X, FRESH.y))
        assert rule.certificate_.provenance.uses == 2

    def test_what_a_rule_wraps_can_be_certified_by_itself(self) -> None:
        rule = rn.CertifiedThreshold(rn.TemperatureScaling(LogisticRegression()), random_state=0)
        rule.fit(PAST.X, PAST.y)
        assert rule.estimator_.seen_ is None
        assert not rule.estimator_.certify(FRESH.X, FRESH.y).certified


class TestWatch:
    def test_batches_give_what_the_whole_gives(self) -> None:
        rows = hash_rows(PAST.X)
        labels = PAST.y.astype(np.intp)
        whole, parts = RowWatch(None), RowWatch(None)
        whole.add(rows, labels)
        for start in range(0, 1500, 400):
            parts.add(rows[start : start + 400], labels[start : start + 400])
        assert whole.fingerprint() == parts.fingerprint() != ""

    def test_rows_that_cannot_be_compared_have_no_fingerprint(self) -> None:
        watch = RowWatch(None)
        watch.add(None, np.zeros(5, np.intp))
        assert (watch.fingerprint(), watch.warn_of_copies()) == ("", 0)
        watch.refuse_seen()

    def test_of_many_rows_it_keeps_some_and_counts_copies_all_the_same(self, monkeypatch) -> None:
        monkeypatch.setattr("reliablenet.methods.row_watch.MOST_WATCHED", 1000)
        rows = hash_rows(np.repeat(np.arange(5000.0), 2)[:, None])
        watch = RowWatch(None)
        for start in range(0, len(rows), 700):
            watch.add(rows[start : start + 700], np.zeros(len(rows[start : start + 700]), np.intp))
        assert len(watch._hashes) <= 1000
        with pytest.warns(rn.errors.FoldWarning, match="repeat another one"):
            assert watch.warn_of_copies() == pytest.approx(5000, rel=0.01)


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class TestRowsBesideThoseOfAGroup:
    """Of a certification group one row counts; the others hang together with it, and are no fresh rows."""

    PERSON = np.repeat(np.arange(300), 5)

    def fitted(self, **folds) -> rn.CertifiedThreshold:
        return rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(
            PAST.X, PAST.y, **({"groups": self.PERSON} | folds)
        )

    @staticmethod
    def others(model: rn.CertifiedThreshold) -> np.ndarray:
        """Return the places of rows that neither trained nor certified."""
        seen = np.concatenate([model.seen_.trained, model.seen_.certified])
        return np.flatnonzero(~np.isin(hash_rows(PAST.X), seen))

    def test_every_row_of_the_table_is_recognised(self) -> None:
        model = self.fitted()
        assert len(model.seen_) == 1500
        with pytest.raises(rn.errors.InvalidDataError, match="1,500 of 1,500 rows were given"):
            model.certify(PAST.X, PAST.y, groups=self.PERSON)

    def test_they_are_refused_also_from_a_file(self, tmp_path) -> None:
        model = self.fitted()
        beside = self.others(model)
        assert len(beside) == 4 * model.certificate_.n
        loaded = rn.load(model.save(tmp_path / "m.rnet"))
        for one in (model, loaded):
            with pytest.raises(rn.errors.InvalidDataError, match=REFUSED.format(0)):
                one.certify(PAST.X[beside], PAST.y[beside], groups=self.PERSON[beside])
            assert one.certify(FRESH.X, FRESH.y, groups="rows").n == 800

    def test_so_are_those_of_a_certification_fold_with_groups(self) -> None:
        held = (PAST.X[1000:], PAST.y[1000:], self.PERSON[1000:])
        model = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(
            PAST.X[:1000], PAST.y[:1000], certification=held
        )
        assert (len(model.seen_.certified), len(model.seen_.beside)) == (100, 400)
        with pytest.raises(rn.errors.InvalidDataError, match="500 of 500 rows were given"):
            model.certify(PAST.X[1000:], PAST.y[1000:], groups=self.PERSON[1000:])

    def test_a_rule_around_the_model_may_choose_on_them(self) -> None:
        """They have trained nothing."""
        model = self.fitted()
        beside = self.others(model)
        rule = rn.CertifiedThreshold(FrozenEstimator(model), random_state=0)
        fitted = rule.fit(PAST.X[beside], PAST.y[beside], groups=self.PERSON[beside])
        assert fitted.certificate_.unit == "group"

    def test_after_a_renewal_they_are_past_rows(self) -> None:
        model = self.fitted()
        says = model._outputs(FRESH.X).scored(FRESH.y)
        renewed, _ = renew(model, says, hash_rows(FRESH.X), groups="rows")
        assert len(renewed.seen_.beside) == 0
        with pytest.raises(rn.errors.InvalidDataError, match="1,500 of 1,500 rows were given"):
            renewed.certify(PAST.X, PAST.y, groups=self.PERSON)

    def test_tables_without_groups_have_none(self, model, tmp_path) -> None:
        assert len(model.seen_.beside) == 0
        parts = open_sealed(model.save(tmp_path / "m.rnet"), MEMBERS)
        assert b"beside" not in parts[SEEN]  # so that such files are read by earlier versions
