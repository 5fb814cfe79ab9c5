"""A whole graph decides as the model does, in this process and where nothing of ours is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from graphs import mixed

import reliablenet as rn
from made_up_texts import make_texts
from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.trial import feeds, open_graph, run
from reliablenet.training import AdaptiveSchedule
from reliablenet.training.growing import KINDS

ROOT = Path(__file__).parents[3]
SHORT = AdaptiveSchedule(warmup_epochs=4, epochs_per_stage=2, patience=2)
NODE = ROOT / ".node" / "node_modules" / "onnxruntime-node"
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::reliablenet.errors.{name}")
    for name in (
        *("ReuseWarning", "NotCertifiedWarning", "ConstraintWarning", "LabelWarning"),
        *("EmptyCertificateWarning", "OddInputWarning", "FoldWarning"),
    )
]


def classifier(**settings: Any) -> rn.ReliableClassifier:
    settings = {"alpha": 0.3, "schedule": SHORT, "verbose": False, "random_state": 0} | settings
    return rn.ReliableClassifier(**settings)


@pytest.fixture(scope="module")
def team() -> rn.ReliableClassifier:
    return classifier(members=("network", *KINDS)).fit(*mixed())


def worded(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """A mixed table with requests in words, dates and a duration."""
    X, y = mixed(n, seed)
    draw = np.random.default_rng(seed)
    X["request"] = make_texts(n, draw)
    X.loc[draw.random(n) < 0.05, "request"] = None
    opened = pd.Timestamp("2022-01-01") + pd.to_timedelta(draw.uniform(0, 900, n), unit="D")
    X["opened"] = opened.strftime("%d.%m.%Y %H:%M")
    X["paid"] = opened + pd.to_timedelta(draw.uniform(0, 60, n), unit="D")
    X["waited"] = pd.to_timedelta(draw.uniform(0, 9, n), unit="D")
    refund = X["request"].str.contains("refund", na=False)
    return X, np.where(refund | (opened.day_of_week == 0), "yes", y)


def foreign_words() -> pd.DataFrame:
    """Rows of another draw, with words, letters and dates that training never had."""
    X, _ = worded(300, seed=5)
    X.loc[:20, "request"] = "Où est ma carte № ½? “日本” cafe\u0301"
    X.loc[21:30, "request"] = " "
    X.loc[31:40, "request"] = "my card is late " * 200
    X.loc[41:60, "opened"] = "3 Mar 2031"
    X.loc[61:80, "opened"] = "soon"
    X.loc[81:90, "paid"] = pd.NaT
    X.loc[91:99, "waited"] = pd.NaT
    return X


@pytest.fixture(scope="module")
def reader() -> rn.ReliableClassifier:
    return classifier(members=("network", *KINDS)).fit(*worded())


@pytest.fixture(scope="module")
def reading_graph(reader, tmp_path_factory) -> Path:
    return reader.export(tmp_path_factory.mktemp("graph") / "words.onnx", worded()[0])


@pytest.fixture(scope="module")
def graph(team, tmp_path_factory) -> Path:
    return team.export(tmp_path_factory.mktemp("graph") / "model.onnx", mixed()[0])


def foreign_rows() -> pd.DataFrame:
    """Rows of another draw, with texts that training never saw and gaps where it had none."""
    X, _ = mixed(1000, seed=5)
    X.loc[:40, "job"] = "astronaut"
    X.loc[41:60, "town"] = None
    X.loc[61:80, "debt"] = np.nan
    X.loc[81:100, "gain"] = 1e12
    return X


def agree(session: Any, model: Any, X: Any, groups: Any = None) -> None:
    ours = model.decide(X, groups)
    label, confidence, accepted = run(session, feeds(session, X, groups))
    assert label.tolist() == ours.label.tolist()
    assert accepted.tolist() == ours.accepted.tolist()
    assert np.abs(confidence - ours.confidence).max() < 1e-5


def test_network_and_trees_decide_alike(team, graph) -> None:
    session = open_graph(graph.read_bytes())
    X = foreign_rows()
    assert 0 < team.decide(X).accepted.sum() < len(X)
    agree(session, team, X)
    agree(session, team, X.head(1))


def test_words_dates_and_durations_are_read_inside(reader, reading_graph) -> None:
    session = open_graph(reading_graph.read_bytes())
    kinds = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    expected = {"request": "text", "opened": "date", "paid": "date", "waited": "days"}
    assert expected.items() <= kinds.items()
    X = foreign_words()
    assert 0 < reader.decide(X).accepted.sum() < len(X)
    agree(session, reader, X)
    agree(session, reader, X.head(1))


def test_a_row_that_the_graph_cannot_read_is_never_accepted(reader, reading_graph) -> None:
    session = open_graph(reading_graph.read_bytes())
    X, _ = worded(200, seed=6)
    given = feeds(session, X)
    before = run(session, given)[2]
    odd = given["request"].copy()
    odd[:, 0] = [f"{text} ΤΕΛΟΣ" for text in odd[:, 0]]
    assert before.any()
    assert not run(session, given | {"request": odd})[2].any()


def test_inputs_outputs_and_metadata_say_what_it_is(team, graph) -> None:
    session = open_graph(graph.read_bytes())
    kinds = {one.name: one.type for one in session.get_inputs()}
    assert kinds == {
        **dict.fromkeys(("age", "debt", "gain", "member"), "tensor(double)"),
        **dict.fromkeys(("job", "town"), "tensor(string)"),
    }
    assert all(one.shape == ["rows", 1] for one in session.get_inputs())
    assert [one.name for one in session.get_outputs()] == ["label", "confidence", "accepted"]
    about = session.get_modelmeta().custom_metadata_map
    assert rn.Certificate.from_json(about["certificate"]) == team.certificate_
    assert json.loads(about["columns"])["job"] == "category"
    saved = team.save(graph.with_suffix(".rnet"))
    from reliablenet.datasets.sources import sha256_of

    assert about["model_sha256"] == sha256_of(saved)


def test_a_number_that_is_infinite_is_never_accepted(team, graph) -> None:
    session = open_graph(graph.read_bytes())
    given = feeds(session, mixed(200, seed=6)[0])
    given["debt"][:] = np.inf
    assert not run(session, given)[2].any()


def test_groups_and_predicted_classes_have_thresholds_of_their_own(tmp_path) -> None:
    X, y = mixed(900)
    X["code"] = np.random.default_rng(1).integers(3, size=len(X)) + 1  # a group and a feature
    promise = rn.Promise.all_of(
        rn.Promise.by_group(0.45, by="code"),
        rn.Promise.by_group(0.45, by="ward"),
        rn.Promise.by_predicted({"yes": 0.4}),
    )
    wards = np.where(np.arange(len(X)) % 2, "north", "south").astype(object)
    by = {"code": X["code"].to_numpy(), "ward": wards}
    clf = classifier(promise=promise, network="mlp").fit(X, y, by=by)
    assert len(clf.rule_.tables) > 1
    rows = X.copy()
    rows.loc[:50, "code"] = 7
    new = {"code": rows["code"].to_numpy(), "ward": wards.copy()}
    new["ward"][100:150] = "nowhere"
    new["ward"][150:200] = None
    clf.export(tmp_path / "g.onnx", rows, by=new)
    session = open_graph((tmp_path / "g.onnx").read_bytes())
    agree(session, clf, rows, new)
    accepted = run(session, feeds(session, rows, new))[2]
    assert not accepted[:51].any()
    assert not accepted[100:200].any()
    assert accepted.any()


def test_arrays_temperatures_and_whole_numbers_as_labels(tmp_path) -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(500, 3))
    X[:, 1] = 1.0  # says nothing
    y = (X[:, 0] > 0).astype(int) + (X[:, 2] > 0.5) + 4
    clf = rn.TemperatureScaling(rn.ERMClassifier(epochs=3, random_state=0), 0.4, random_state=0)
    clf.fit(X, y).export(tmp_path / "t.onnx", X)
    session = open_graph((tmp_path / "t.onnx").read_bytes())
    assert [one.name for one in session.get_inputs()] == ["0", "2"]
    agree(session, clf, draw.normal(size=(300, 3)))
    assert run(session, feeds(session, X))[0].dtype == np.int64


ALONE = """
import sys
BLOCKED = ("torch", "sklearn", "scipy", "pandas", "reliablenet", "onnx", "skops")
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Block())
import json, numpy as np, onnxruntime
table = json.load(sys.stdin)
session = onnxruntime.InferenceSession(sys.argv[1])
rows = {}
for column in session.get_inputs():
    values = [[value] for value in table[column.name]]
    rows[column.name] = np.array(values, object if column.type == "tensor(string)" else float)
label, confidence, accepted = session.run(["label", "confidence", "accepted"], rows)
print(json.dumps([label.tolist(), confidence.tolist(), accepted.tolist()]))
"""


def as_json(graph: Path, X: pd.DataFrame) -> str:
    given = feeds(open_graph(graph.read_bytes()), X)
    columns = {
        name: [None if isinstance(v, float) and np.isnan(v) else v for v in part[:, 0].tolist()]
        for name, part in given.items()
    }
    return json.dumps(columns)


def same(found: str, model: Any, X: pd.DataFrame) -> bool:
    label, confidence, accepted = json.loads(found)
    ours = model.decide(X)
    near = np.allclose(confidence, ours.confidence, rtol=0.0, atol=1e-5)
    return bool(near and label == ours.label.tolist() and accepted == ours.accepted.tolist())


@pytest.fixture(params=["numbers and categories", "words and dates"])
def case(request) -> tuple[Any, Path, pd.DataFrame]:
    if request.param == "words and dates":
        found = request.getfixturevalue("reader"), request.getfixturevalue("reading_graph")
        return *found, foreign_words()
    found = request.getfixturevalue("team"), request.getfixturevalue("graph")
    return *found, foreign_rows()


def test_it_runs_where_nothing_of_ours_is(case) -> None:
    model, graph, X = case
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(graph)],
        input=as_json(graph, X),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert same(done.stdout, model, X)


NODE_SCRIPT = """
const ort = require(process.argv[2]);
const table = JSON.parse(require('fs').readFileSync(0));
(async () => {
  const session = await ort.InferenceSession.create(process.argv[3]);
  const rows = {};
  for (const name of session.inputNames) {
    const text = table[name].some(v => typeof v === 'string');
    const values = text ? table[name] : Float64Array.from(table[name], v => v === null ? NaN : v);
    rows[name] = new ort.Tensor(text ? 'string' : 'float64', values, [values.length, 1]);
  }
  const d = await session.run(rows);
  console.log(JSON.stringify([
    Array.from(d.label.data), Array.from(d.confidence.data), Array.from(d.accepted.data, Boolean),
  ]));
})();
"""


@pytest.mark.skipif(
    shutil.which("node") is None or not NODE.is_dir(),
    reason="needs Node and onnxruntime-node: run `make node`",
)
def test_it_runs_in_node(case, tmp_path) -> None:
    model, graph, X = case
    script = tmp_path / "decide.js"
    script.write_text(NODE_SCRIPT)
    done = subprocess.run(
        ["node", script, NODE, graph],
        input=as_json(graph, X),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert same(done.stdout, model, X)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (rn.CertifiedThreshold, "this rule is around a LogisticRegression"),
        (rn.SelectiveNetClassifier, "an acceptance score that the network has learned"),
    ],
)
def test_what_no_graph_can_hold_is_refused(model, said, tmp_path) -> None:
    from sklearn.linear_model import LogisticRegression

    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    inside = (LogisticRegression(),) if model is rn.CertifiedThreshold else ()
    settings = {} if inside else {"epochs": 1}
    clf = model(*inside, alpha=0.4, random_state=0, **settings).fit(X, y)
    with pytest.raises(InvalidParameterError, match=said):
        clf.export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
