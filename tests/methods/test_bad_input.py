"""What a user can get wrong, and what they are told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly
from sklearn.naive_bayes import GaussianNB
from torch import nn

import reliablenet as rn
from reliablenet.datasets import SyntheticBand

BAND = SyntheticBand(random_state=0).sample(400)
X, Y = BAND.X, BAND.y
QUICK = {"schedule": rn.training.Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1)}


def model(**settings: object) -> rn.ReliableClassifier:
    return rn.ReliableClassifier(**({"random_state": 0} | QUICK | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"alpha": 5},
            r"`alpha` of ReliableClassifier must lie in \(0, 1\); got 5. Did you mean 0.05",
        ),
        ({"alpha": 0.0}, r"`alpha` of ReliableClassifier must lie in \(0, 1\); got 0.0"),
        ({"alpha": "low"}, "`alpha` of ReliableClassifier"),
        ({"rho": 1.0}, "`rho` of ReliableClassifier must lie in"),
        ({"threshold": 0.5}, r"`threshold` of ReliableClassifier must lie in \(1/2, 1\]"),
        ({"threshold": 90}, "Did you mean 0.9"),
        ({"threshold": "best"}, "`threshold` .* 'best'"),
        ({"m2": 0.4}, r"`m2` of ReliableClassifier must lie in \(0, m1 / \(1 \+ m1\)\)"),
        ({"network": "transformer"}, "`network` .* be one of"),
        ({"network": lambda d, k: 3}, "`network` .* return an nn.Module"),
        (
            {"network": lambda d, k: nn.Linear(d, k + 1)},
            r"must return 2 outputs a row \(2 classes\)",
        ),
        ({"schedule": "fast"}, "`schedule` of ReliableClassifier"),
        ({"schedule": rn.training.Schedule.erm(3)}, "with at least one stage"),
        ({"checkpoint": "best"}, "`checkpoint` of ReliableClassifier"),
        ({"batch_size": 0}, "`batch_size` of Optimisation"),
        ({"learning_rate": -1.0}, "`learning_rate` of Optimisation"),
        ({"fold_sizes": (0.5, 0.5)}, "`fold_sizes` of fit"),
        ({"fold_sizes": (0.5, 0.2, 0.2)}, "`fold_sizes` of fit"),
        ({"verbose": "loud"}, "`verbose` of ReliableClassifier"),
        ({"device": "abacus"}, "`device` of ReliableClassifier must be .auto. or name a device"),
        ({"device": "cuda:99"}, "`device` of ReliableClassifier must be .auto. or name a device"),
    ],
)
def test_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(rn.errors.ReliableNetError, match=message) as raised:
        model(**settings).fit(X, Y)
    assert isinstance(raised.value, ValueError)


def spoiled(value: float) -> np.ndarray:
    table = X.copy()
    table[3, 1] = value
    return table


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite(value: float) -> None:
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model().fit(spoiled(value), Y)
    fitted = fit_quietly(model(threshold=0.9, alpha=0.2), X, Y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        fitted.decide(spoiled(value))


@pytest.mark.parametrize("dtype", [object, str])
def test_text_in_an_array_points_to_data_frames(dtype: type) -> None:
    table = np.array([["a", "1"], ["b", "2"]] * 200, dtype=dtype)
    with pytest.raises(rn.errors.InvalidDataError, match=r"got text .*'a'.* data frame"):
        model().fit(table, Y)


def test_an_infinity_in_a_frame_names_its_column() -> None:
    frame = pd.DataFrame(spoiled(np.inf), columns=list("abcdefghij"))
    with pytest.raises(rn.errors.InvalidDataError, match="Column 'b' must hold finite numbers"):
        model().fit(frame, Y)


def test_two_spellings_of_one_class_are_warned_of() -> None:
    labels = np.where(Y[0] == Y, "no", "yes").astype(object)
    labels[np.flatnonzero(labels == "no")[::2]] = "NO"
    rule = rn.CertifiedThreshold(GaussianNB(), alpha=0.9, random_state=0)
    with pytest.warns(rn.errors.LabelWarning, match="'NO' and 'no', which differ in case"):
        rule.fit(X, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones(400), "at least two classes; got 1 class"),
        (np.where(np.arange(400) == 5, np.nan, Y), "row 5"),
        (Y[:-1], "inconsistent numbers of samples"),
        (np.linspace(0, 1, 400), "continuous"),
    ],
)
def test_labels(labels: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model().fit(X, labels)


def test_empty_and_too_few_rows() -> None:
    with pytest.raises(ValueError, match="0 sample"):
        model().fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="0 sample"):
        model().fit(pd.DataFrame({"a": []}), [])
    with pytest.raises(rn.errors.InvalidDataError, match="at least 4 rows"):
        model().fit(X[:3], [0, 1, 0])


@pytest.mark.filterwarnings("ignore::reliablenet.errors.FoldWarning")
@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
def test_ten_rows_are_fitted_and_refused_a_certificate_with_the_reason() -> None:
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match="in 4 rows: .* needs at least 59 fresh rows"
    ):
        model().fit(X[:10], np.arange(10) % 2)


def test_a_label_that_training_lacks() -> None:
    with pytest.raises(rn.errors.InvalidDataError, match=r"the certification fold .*got 2;"):
        model().fit(X, Y, certification=(X[:50], np.full(50, 2)))


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
def test_a_class_missing_from_a_fold_is_named() -> None:
    with pytest.warns(rn.errors.FoldWarning, match=r"selection fold: \[1\]"):
        model(alpha=0.3).fit(X, Y, selection=(X[:50], np.zeros(50, int)))


@pytest.mark.filterwarnings("ignore::reliablenet.errors.NotCertifiedWarning")
@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
def test_a_class_with_one_row_is_named() -> None:
    labels = np.where(np.arange(400) == 0, "rare", np.where(Y == 1, "yes", "no"))
    with pytest.warns(rn.errors.FoldWarning, match="'rare'"):
        model().fit(X, labels)


def test_warnings_point_at_the_line_that_called_fit() -> None:
    with pytest.warns() as caught:
        model(alpha=0.001).fit(X, np.where(np.arange(400) == 0, 2, Y))
    kinds = {rn.errors.FoldWarning, rn.errors.ConstraintWarning, rn.errors.NotCertifiedWarning}
    assert {warning.category for warning in caught} == kinds
    assert {warning.filename for warning in caught} == {__file__}


def test_folds_of_the_wrong_form() -> None:
    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"`selection` of fit must be a pair \(X, y\)"
    ):
        model().fit(X, Y, selection=3)


@pytest.fixture(scope="module")
def fitted_on_frame() -> rn.ReliableClassifier:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(10)])
    return fit_quietly(model(threshold=0.9, alpha=0.2), frame, Y)


def test_columns_renamed_missing_or_too_many(fitted_on_frame) -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(10)])
    with pytest.raises(ValueError, match=r"(?s)feature names.*f0.*"):
        fitted_on_frame.decide(frame.rename(columns={"f0": "g0"}))
    with pytest.raises(ValueError, match=r"(?s)Feature names.*missing.*f3"):
        fitted_on_frame.decide(frame.drop(columns="f3"))
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="10 features"),
    ):
        fitted_on_frame.decide(X[:, :9])


def test_labels_unseen_at_certification(fitted_on_frame) -> None:
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(10)])
    frame += 100.0  # rows that it has not seen
    with pytest.raises(rn.errors.InvalidDataError, match=r"among the 2 known classes: got 7"):
        fitted_on_frame.certify(frame, np.full(400, 7))
    with pytest.warns(
        rn.errors.LabelWarning, match=r"10 of 400 rows have a label .* not know \(7\)"
    ):
        found = fitted_on_frame.certify(frame, np.where(np.arange(400) < 10, 7, Y))
    assert found.unknown == 10


def test_using_before_fitting() -> None:
    with pytest.raises(ValueError, match="not fitted"):
        model().decide(X)


def test_training_that_diverges_says_where_and_why() -> None:
    with pytest.raises(
        rn.errors.TrainingDivergedError, match=r"diverged in epoch \d+ .*learning rate"
    ):
        model(learning_rate=1e30).fit(X, Y)


def test_folds_may_be_arrays_where_training_had_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    named = fit_quietly(model(), frame, Y, selection=(frame[:100], Y[:100]))
    with pytest.warns(UserWarning, match="valid feature names"):
        unnamed = fit_quietly(model(), frame, Y, selection=(X[:100], Y[:100]))
    np.testing.assert_array_equal(named.predict_proba(frame), unnamed.predict_proba(frame))


def test_files_in_the_place_of_folders_and_folders_in_the_place_of_files(tmp_path) -> None:
    fitted = fit_quietly(model(threshold=0.9, alpha=0.2), X, Y)
    with pytest.raises(rn.errors.InvalidParameterError, match="must name a file"):
        fitted.save(tmp_path)
    with pytest.raises(rn.errors.ModelFileError, match="Is a directory"):
        rn.load(tmp_path)


@pytest.mark.parametrize("path", ["a\0b", "", "no-such-file"])
def test_a_path_at_which_no_model_lies(path) -> None:
    with pytest.raises(rn.errors.ModelFileError, match="No model file can be read"):
        rn.load(path)


@pytest.mark.parametrize("path", [None, 3, b"model.rnet", X])
def test_a_path_that_is_none(path) -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match="`path` of load must name a file"):
        rn.load(path)


def test_a_dict_is_no_table_for_a_wrapped_classifier() -> None:
    with pytest.raises(rn.errors.InvalidDataError, match="`X` must hold rows; got a dict"):
        rn.CertifiedThreshold(GaussianNB()).fit({"a": Y}, Y)


def test_masked_values_are_not_counted_as_if_they_were_not_masked() -> None:
    proba = np.tile([0.9, 0.1], (60, 1))
    masked = np.ma.masked_array(np.zeros(60, int), np.arange(60) == 3)
    with pytest.raises(rn.errors.InvalidDataError, match="`y` must not hold masked values; got 1"):
        rn.certify(proba, masked, threshold=0.5)
    unmasked = np.ma.masked_array(np.zeros(60, int), np.zeros(60, bool))
    assert rn.certify(proba, unmasked, threshold=0.5).n == 60
