"""Models of tables with text and dates: all members see them, files hold them, odd ones are named."""

from __future__ import annotations

import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.monitor.drift import source_test
from reliablenet.tables import TabularEncoder

WORDS = {
    "card": ["card", "lost", "stolen", "block", "plastic", "replace"],
    "money": ["refund", "transfer", "euro", "account", "missing", "payment"],
}
COMMON = ["my", "the", "please", "is", "i", "want", "when"]


def requests(n: int, seed: int) -> pd.DataFrame:
    """Return requests in words with their date; those of weekends are about cards more often."""
    rng = np.random.default_rng(seed)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D")
    about = np.where(rng.random(n) < np.where(at.day_of_week >= 5, 0.9, 0.3), "card", "money")
    said = [
        " ".join(rng.permutation([*rng.choice(WORDS[one], 2), *rng.choice(COMMON, 4)]))
        for one in about
    ]
    frame = pd.DataFrame({"said": said, "at": at.strftime("%d/%m/%Y"), "x": rng.normal(size=n)})
    return frame.assign(about=about)


TABLE = requests(900, 0)
X, Y = TABLE.drop(columns="about"), TABLE["about"].to_numpy()
NEW = requests(200, 1).drop(columns="about")


def vowels(texts: list[str]) -> np.ndarray:
    """Embed texts by some letters."""
    return np.array([[text.count(letter) for letter in "aeioubkf"] for text in texts], np.float32)


@pytest.fixture(scope="module")
def model():
    made = rn.ReliableClassifier(members=("network", "forest"), random_state=0, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rn.errors.ColumnWarning)
        return made.fit(X, Y)


def test_the_whole_team_learns_from_words_and_dates(model) -> None:
    assert (model.encoder_.texts_, model.encoder_.dates_) == (["said"], ["at"])
    right = model.predict(NEW) == requests(200, 1)["about"]
    assert right.mean() > 0.95
    assert model.certificate_.certified
    (forest,) = model.team_.members
    width = model.encoder_.compact(NEW).shape[1]
    assert forest.trees.columns.tolist() == [width]
    assert (model.input_shape_, width > 50) == ((width,), True)


def test_a_row_is_decided_alike_in_any_company_and_on_any_number_of_threads(model) -> None:
    whole = model.predict_proba(NEW)
    alone = np.concatenate([model.predict_proba(NEW.iloc[[row]]) for row in range(5)])
    assert np.array_equal(alone, whole[:5])
    before = torch.get_num_threads()
    try:
        for threads in (1, 4):
            torch.set_num_threads(threads)
            assert np.array_equal(model.predict_proba(NEW), whole)
    finally:
        torch.set_num_threads(before)


def test_a_file_holds_text_and_dates_without_code_or_words(model, tmp_path) -> None:
    path = model.save(tmp_path / "m.rnet")
    again = rn.load(path)
    assert np.array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert (again.text, again.dates, again.embedding) == ("auto", "auto", None)
    with zipfile.ZipFile(path) as archive:
        assert "texts.safetensors" in archive.namelist()
        assert b"stolen" not in archive.read("texts.safetensors")
        assert b"stolen" not in archive.read("source.json")
    assert path.read_bytes() == again.save(tmp_path / "again.rnet").read_bytes()
    with pytest.raises(InvalidParameterError, match="`embedding` of load is only for models"):
        rn.load(path, embedding=vowels)


def test_dates_written_otherwise_are_the_same_rows(model) -> None:
    days = pd.to_datetime(NEW["at"], format="%d/%m/%Y")
    for at in (days, days.dt.tz_localize("UTC"), days.dt.strftime("%Y-%m-%d")):
        assert np.array_equal(model.predict_proba(NEW.assign(at=at)), model.predict_proba(NEW))
    with pytest.raises(rn.errors.InvalidDataError, match="rows"):
        model.certify(X.assign(at=pd.to_datetime(X["at"], format="%d/%m/%Y")), Y)


def test_odd_dates_and_texts_are_named_and_can_be_deferred(model) -> None:
    said, at = NEW["said"].tolist(), NEW["at"].tolist()
    at[:4] = ["31/02/2024", "soon", "01/01/2099", None]
    said[4:6] = ["card " * 500, None]
    new = NEW.assign(said=said, at=at)
    with pytest.warns(rn.errors.OddInputWarning):
        decided = model.decide(new, defer_odd=True)
    assert decided.odd.tolist() == [True] * 6 + [False] * 194
    assert not decided.accepted[:6].any()
    shown = str(decided.oddities)
    assert "at: 2 values that cannot be read as a date, such as '31/02/2024', 'soon'" in shown
    assert "at: 1 value far outside" in shown
    assert "such as 2099-01-01" in shown
    assert "said: 1 value of 2,500 characters, far outside" in shown


def test_the_source_test_looks_at_text_and_dates(model) -> None:
    same = source_test(model, NEW)
    assert {"said", "at"} <= {part.name for part in same.parts}
    later = pd.to_datetime(NEW["at"], format="%d/%m/%Y") + pd.Timedelta("100D")
    assert "at" in source_test(model, NEW.assign(at=later)).where


def test_an_embedding_is_asked_for_again_and_recognised(tmp_path) -> None:
    made = rn.ReliableClassifier(
        members=("network",), embedding=vowels, random_state=0, verbose=False
    ).fit(X, Y)
    path = made.save(tmp_path / "m.rnet")
    with pytest.raises(ModelFileError, match=r"a file cannot hold code.*embedding="):
        rn.load(path)
    with pytest.raises(ModelFileError, match="not the one that the model was fitted with"):
        rn.load(path, embedding=lambda texts: vowels(texts)[:, ::-1])
    again = rn.load(path, embedding=vowels)
    assert again.embedding is vowels
    assert np.array_equal(again.predict_proba(NEW), made.predict_proba(NEW))


def test_a_pipeline_with_text_is_stored_too(tmp_path) -> None:
    inner = make_pipeline(TabularEncoder(), LogisticRegression(max_iter=500))
    made = rn.CertifiedThreshold(inner, random_state=0).fit(X, Y)
    again = rn.load(made.save(tmp_path / "m.rnet"))
    assert np.array_equal(again.predict_proba(NEW), made.predict_proba(NEW))


def test_the_command_reads_text_and_dates_and_leaves_them_out_if_told(tmp_path, capsys) -> None:
    from typer.testing import CliRunner

    from reliablenet.cli.app import app

    TABLE.assign(day=range(len(TABLE))).to_csv(tmp_path / "t.csv", index=False)
    NEW.assign(day=0).to_csv(tmp_path / "new.csv", index=False)
    base = ["train", str(tmp_path / "t.csv"), "--target", "about", "--network", "mlp"]
    model, out = str(tmp_path / "m.rnet"), str(tmp_path / "d.csv")

    def call(*more: str) -> object:
        return CliRunner().invoke(app, [*base, "--out", model, *more])

    assert call("--text", "x", "--drop", "day").exit_code == 0
    made = rn.load(model)
    assert (made.encoder_.texts_, made.encoder_.dates_) == (["said", "x"], ["at"])
    decided = CliRunner().invoke(app, ["predict", model, str(tmp_path / "new.csv"), "--out", out])
    assert decided.exit_code == 0, decided.output
    rows = NEW.assign(x=pd.read_csv(tmp_path / "new.csv", dtype=str)["x"])
    expected = made.decide(rows.reindex(columns=made.feature_names_in_)).to_frame()
    pd.testing.assert_frame_equal(pd.read_csv(out), expected, check_dtype=False)
    shown = CliRunner().invoke(app, ["inspect", model, "--json"])
    assert json.loads(shown.stdout)["features"]["texts"] == ["said", "x"]
    left = call("--no-text", "--no-date")
    assert "'said' is left out" in left.output
    assert rn.load(model).encoder_.numbers_ == ["x"]
    both = call("--text", "said", "--no-text")
    assert both.exit_code == 2
    assert "exclude each other" in both.output
    wrong = call("--date", "x")
    assert wrong.exit_code != 0
    assert "'x' is to be read as dates" in wrong.output
