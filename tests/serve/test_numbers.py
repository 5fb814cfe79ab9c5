"""A regressor behind the server: values for labels, truths that are numbers, right within the tolerance."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from contract_helpers import fit_quietly, quick
from serving import LocalServer, records
from sklearn.linear_model import LinearRegression

import reliablenet as rn
from reliablenet.monitor.log import DecisionLog


def make_flats(n, seed):
    """Prices of a known source, and how far each may be off: a column, so that rows differ."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"area": rng.uniform(30, 150, n).round(3)})
    table["town"] = rng.choice(["north", "south"], n)
    table["allowed"] = rng.choice([8.0, 20.0], n)
    noise = np.where(table.town == "north", 2.0, 12.0) * rng.normal(size=n)
    return table, (2 * table.area + 20 * (table.town == "south") + noise).to_numpy()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A network whose tolerance differs from row to row."""
    model = quick(rn.ReliableRegressor, tolerance="allowed", alpha=0.2)
    fit_quietly(model, *make_flats(1200, seed=0))
    folder = tmp_path_factory.mktemp("flats")
    path = model.save(folder / "flats.rnet")
    with LocalServer(path, folder / "d.db", audit=1.0, keep_features=True) as running:
        running.log, running.model = folder / "d.db", model
        yield running


def test_values_are_those_of_python_and_in_the_log(served):
    table, _ = make_flats(60, seed=1)
    expected = served.model.decide(table)
    answers = served.decide(table)
    assert [row["value"] for row in answers] == expected.value.tolist()
    assert [row["confidence"] for row in answers] == expected.confidence.tolist()
    assert [row["accepted"] for row in answers] == expected.accepted.tolist()
    assert set(answers[0]) == {"value", "confidence", "accepted", "id", "audit"}
    with DecisionLog(served.log) as log:
        entries = {entry.id: entry for entry in log.entries()}
    for row, allowed in zip(answers, table.allowed, strict=True):
        entry = entries[row["id"]]
        assert (float(entry.label), float(entry.tolerance)) == (row["value"], allowed)


def test_a_truth_is_judged_by_the_tolerance_of_its_row(served):
    table, _ = make_flats(2, seed=2)
    table["allowed"] = [8.0, 20.0]
    near, far = served.decide(table)
    off = [{"id": row["id"], "truth": row["value"] + 10.0} for row in (near, far)]
    answer = served.post("/outcomes", {"outcomes": off})
    assert (answer.status_code, answer.json()["recorded"]) == (200, 2)
    again = {"id": near["id"], "truth": str(near["value"] + 10.0)}  # as a form sends it
    status = served.post("/outcomes", {"outcomes": [again]}).json()["results"][0]["status"]
    assert status == "already recorded"
    other = {"id": near["id"], "truth": near["value"]}
    assert served.post("/outcomes", {"outcomes": [other]}).status_code == 409
    with DecisionLog(served.log) as log:
        wrong = {entry.id: entry.wrong for entry in log.entries()}
    assert (wrong[near["id"]], wrong[far["id"]]) == (True, False)


@pytest.mark.parametrize("truth", ["much", "", "12,5", None, True, [1], 10**400, "nan", "1e999"])
def test_a_truth_that_is_no_number_is_refused(served, truth):
    name = served.decide(make_flats(1, seed=3)[0])[0]["id"]
    body = json.dumps({"outcomes": [{"id": name, "truth": truth}]})
    headers = {"Content-Type": "application/json"}
    answer = served.post("/outcomes", None, data=body, headers=headers)
    assert answer.status_code in (400, 422)
    assert re.search("must be a number|not JSON", answer.json()["error"])


@pytest.mark.parametrize(
    ("allowed", "words"),
    [(None, "got null"), (0, "got 0"), (-3.5, "got -3.5"), ("8", "got text")],
)
def test_a_row_without_a_tolerance_is_refused(served, allowed, words):
    rows = records(make_flats(1, seed=4)[0])
    rows[0]["allowed"] = allowed
    answer = served.post("/invocations", {"dataframe_records": rows})
    assert (answer.status_code, answer.json()["column"]) == (422, "allowed")
    assert words in answer.json()["error"]


def test_what_the_server_tells_of_numbers(served):
    certificate = served.get("/certificate").json()["certificate"]
    assert certificate["tolerance"] == 'the tolerance in "allowed"'
    described = served.get("/v2/models/flats").json()
    assert described["outputs"][0] == {"name": "value", "datatype": "FP64", "shape": [-1]}
    table, _ = make_flats(3, seed=5)
    inputs = [
        {
            "name": name,
            "shape": [3],
            "datatype": "BYTES" if name == "town" else "FP64",
            "data": table[name].tolist(),
        }
        for name in table
    ]
    answer = served.post("/v2/models/flats/infer", {"inputs": inputs}).json()
    assert answer["outputs"][0]["data"] == served.model.decide(table).value.tolist()
    paths = served.get("/openapi.json").json()["paths"]
    schema = paths["/invocations"]["post"]["responses"]["200"]["content"]["application/json"]
    row = schema["schema"]["properties"]["predictions"]["items"]["properties"]
    assert row["value"] == {"type": "number"}
    listed = served.get("/audit?limit=1").json()["decisions"][0]
    assert isinstance(listed["value"], float)
    assert float(listed["tolerance"]) in (8.0, 20.0)
    manual = served.get("/docs").text
    assert "a number, right if the truth is within the tolerance in" in manual
    assert "reliablenet_upper_bound" in served.get("/metrics").text


def test_a_person_types_the_truth_into_the_page(served, browser):
    rows = [row for row in served.decide(make_flats(80, seed=6)[0]) if row["accepted"]]
    context = browser.new_context(viewport={"width": 375, "height": 700})
    try:
        page = context.new_page()
        page.goto(served.url + "/")
        form = page.locator("#audit form").first
        name = form.get_attribute("data-outcome")
        with DecisionLog(served.log) as log:
            value = next(float(entry.label) for entry in log.entries() if entry.id == name)
        form.locator("input").fill(f"{value + 1000:.2f}")
        form.locator("button").click()
        page.wait_for_function(
            "form => form.querySelector('output').textContent.startsWith('✓')",
            arg=form.element_handle(),
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert "right within" in page.locator("#audit").inner_html()
    finally:
        context.close()
    with DecisionLog(served.log) as log:
        found = next(entry for entry in log.entries() if entry.id == name)
    assert (rows != [], found.wrong, float(found.truth)) == (True, True, round(value + 1000, 2))


def test_a_regressor_of_scikit_learn_and_a_tolerance_in_percent(tmp_path):
    table, y = make_flats(1500, seed=7)
    X = table[["area", "allowed"]].to_numpy()
    model = rn.CertifiedThreshold(LinearRegression(), alpha=0.3, tolerance="10%", random_state=0)
    path = fit_quietly(model, X, y).save(tmp_path / "line.rnet")
    with LocalServer(path, tmp_path / "d.db", audit=1.0) as server:
        answer = server.post("/invocations", {"inputs": X[:2].tolist()}).json()["predictions"]
        assert [row["value"] for row in answer] == model.decide(X[:2]).value.tolist()
        assert "right within 10 % of the truth" in server.get("/").text
        truths = [row["value"] / factor for row, factor in zip(answer, (1.099, 1.101), strict=True)]
        outcomes = [
            {"id": row["id"], "truth": truth} for row, truth in zip(answer, truths, strict=True)
        ]
        assert server.post("/outcomes", {"outcomes": outcomes}).json()["recorded"] == 2
        found = list(server.running.state.log.entries())
        assert [entry.wrong for entry in found] == [False, True]
        assert found[0].tolerance == "0.1 of the truth"
