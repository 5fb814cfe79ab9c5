"""The monitor's page as a person uses it: label rows, see the bound move, see an alarm; on a phone and on paper."""

import json
import re

import pytest
from serving import LocalServer, make_rows, records

from reliablenet.monitor.log import DecisionLog, Outcome
from reliablenet.report import write_page
from reliablenet.report.monitor import monitor_page

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def watched(model_file, tmp_path):
    settings = {"audit": 1.0, "keep_features": True, "group": "colour", "name": EVIL}
    with LocalServer(model_file, tmp_path / "d.db", **settings) as server:
        server.log = tmp_path / "d.db"
        yield server


@pytest.fixture
def opened(browser):
    """A page that runs no foreign script and asks nobody but its own server."""
    contexts = []

    def start(url, **settings):
        context = browser.new_context(**({"viewport": {"width": 1000, "height": 800}} | settings))
        contexts.append(context)
        page = context.new_page()
        page.troubles = []
        own = url.split("/")[2] or None
        page.on("pageerror", lambda error: page.troubles.append(f"error: {error}"))
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("dialog", lambda dialog: (page.troubles.append("a script ran"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: (
                page.troubles.append(f"asked for {request.url}")
                if request.url.split("/")[2] != own
                and not request.url.startswith(("data:", "file:"))
                else None
            ),
        )
        page.goto(url)
        return page

    yield start
    for context in contexts:
        context.close()


def bound_on(page):
    shown = page.locator("#numbers dt:text-is('Upper bound') + dd b").inner_text()
    return float(re.match(r"[\d.]+", shown)[0])


def label(page, truths, count):
    """Label rows as a person would: choose, save, wait until it says so."""
    forms = page.locator("#audit form")
    done = 0
    for place in range(forms.count()):
        form = forms.nth(place)
        if form.locator("select").is_disabled():
            continue
        form.locator("select").select_option(truths[form.get_attribute("data-outcome")])
        form.locator("button").click()
        page.wait_for_function(
            "form => form.querySelector('output').textContent.startsWith('✓')",
            arg=form.element_handle(),
        )
        done += 1
        if done == count:
            return


def test_label_ten_rows_and_see_the_bound_move_and_an_alarm(watched, opened):
    right, other = {}, {"yes": "no", "no": "yes"}
    accepted = 0
    while accepted < 22:
        for row in watched.decide(make_rows(10, seed=accepted)[0]):
            right[row["id"]] = row["label"]
            accepted += row["accepted"]
    page = opened(watched.url + "/")
    assert "No outcome yet" in page.locator("h1").inner_text()
    before = bound_on(page)
    label(page, right, 10)
    page.wait_for_function("() => document.querySelector('h1').textContent.includes('No alarm')")
    assert bound_on(page) < before
    wrong = {name: other[label] for name, label in right.items()}
    label(page, wrong, 10)
    page.wait_for_selector("header.refused")
    assert page.locator("h1").inner_text().startswith("Alarm")
    assert "recertify" in page.locator("header").inner_text()
    with DecisionLog(watched.log) as log:
        assert sum(entry.wrong is True for entry in log.entries()) == 10
    assert page.troubles == []
    page.reload()
    assert page.locator("header.refused").count() == 1
    text = watched.get("/metrics").text
    assert "reliablenet_alarm" in text


def test_what_is_said_holds_for_the_rule_in_force(watched):
    """After a renewal decisions of the rule before may still wait; the page lists those in force."""
    told = watched.decide(make_rows(40, seed=0)[0])
    assert any(row["accepted"] and row["audit"] for row in told)
    log = watched.running.state.log
    before = log.rules()[-1]
    log.put_in_force(before.name, "1" * 64, before.document, before.scores)
    page = " ".join(watched.get("/").text.split())
    assert "every decision that the coin picked has its outcome" not in page
    assert "No decision of the rule in force waits for an audit" in page
    assert "the probability that a false alarm ever comes is at most 5 %" in page
    assert "of all rows, acted on wrongly; the budget is 10 %" in page


def test_an_outcome_that_is_not_taken_is_said(watched, opened):
    row = next(row for row in watched.decide(make_rows(40, seed=0)[0]) if row["accepted"])
    page = opened(watched.url + "/")
    watched.post("/outcomes", {"outcomes": [{"id": row["id"], "truth": "yes"}]})  # meanwhile
    form = page.locator(f"#audit form[data-outcome='{row['id']}']")
    form.locator("select").select_option("no")
    form.locator("button").click()
    page.wait_for_function(
        "form => form.querySelector('output').textContent.startsWith('✕ another')",
        arg=form.element_handle(),
    )
    assert form.locator("button").is_enabled()


def test_on_a_phone_and_on_paper(watched, opened):
    watched.decide(make_rows(60, seed=0)[0])
    phone = opened(watched.url + "/", viewport={"width": 375, "height": 700})
    width = phone.evaluate("document.documentElement.scrollWidth")
    assert width <= 375  # wide tables scroll by themselves
    phone.emulate_media(media="print")
    assert not phone.locator("#audit form button").first.is_visible()
    assert phone.locator("h1").is_visible()
    assert phone.pdf(format="A4")[:4] == b"%PDF"


def test_a_page_to_keep_has_no_form_and_asks_nobody(watched, opened, tmp_path):
    told = watched.decide(make_rows(30, seed=0)[0])
    with DecisionLog(watched.log) as log:
        path = write_page(monitor_page(log), tmp_path / "page.html")
    page = opened(path.as_uri())
    assert page.locator("form").count() == 0
    assert page.locator("#audit tbody tr").count() == min(sum(row["accepted"] for row in told), 25)
    assert page.locator(".eyebrow").inner_text().startswith(EVIL)
    assert page.troubles == []
    page.locator("summary", has_text="What was asked").first.click()
    assert "colour" in page.locator(".asked").first.inner_text()


def test_another_source_is_told_without_a_label(watched, opened):
    """The confidences of all rows are compared with those of the certification rows."""
    watched.decide(make_rows(40, seed=1)[0])
    page = opened(watched.url + "/")
    assert page.locator("#source strong").inner_text().startswith("No change of the source")
    strange = make_rows(150, seed=2)[0]
    strange[["x0", "x1"]] *= 0.02  # all rows lie at the border between the classes
    watched.decide(strange)
    page.reload()
    assert page.locator("#source strong").inner_text().startswith("The source changed: at row")
    assert page.locator("#source .plot > svg").count() == 1
    assert "reliablenet_source_changed 1" in watched.get("/metrics").text
    assert page.troubles == []


def test_the_page_before_the_first_decision(watched):
    answer = watched.get("/")
    assert (answer.status_code, "Nothing was decided yet" in answer.text) == (200, True)
    assert "text/html" in answer.headers["Content-Type"]
    assert EVIL not in answer.text


def test_without_an_audit_the_page_says_so(model_file, tmp_path):
    with LocalServer(model_file, tmp_path / "d.db", audit=0.0) as server:
        server.decide(make_rows(5, seed=0)[0])
        assert "No decision is audited" in server.get("/").text
        assert "reliablenet_alarm" not in server.get("/metrics").text


def test_the_page_shows_renewals(model_file, tmp_path):
    with LocalServer(model_file, tmp_path / "d.db", audit=1.0) as server:
        told = server.post("/invocations", {"dataframe_records": records(make_rows(3, seed=0)[0])})
        name = told.json()["predictions"][0]["id"]
        log = server.running.state.log
        log.record([Outcome(name, wrong=False)])
        log.put_in_force("again", "f" * 64, server.running.state.served.document)
        text = server.get("/").text
        assert text.count("<tr") > 2
        assert "ffffffffffff" in text


def test_the_page_for_people_who_write_a_client(watched, opened):
    """Its example is a request that the server takes, and it fits on a phone."""
    page = opened(f"{watched.url}/docs", viewport={"width": 390, "height": 800})
    example = page.locator("#ask pre").first.inner_text()
    answer = watched.post("/invocations", json.loads(example))
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["predictions"]) == 1
    assert (
        page.locator("#columns tbody tr").count() == 4
    )  # what training left out is not among them
    assert "same" in page.locator("#columns").inner_text()
    addresses = page.locator("#addresses td:first-child").all_inner_texts()
    described = watched.get("/openapi.json").json()["paths"]
    assert {address.split()[1] for address in addresses} == described.keys()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.troubles == []
