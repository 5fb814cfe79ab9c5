"""What the pages say, without a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import reliablenet as rn
from reliablenet.bench import Store, pending_jobs, run_jobs
from reliablenet.certificate import wording
from reliablenet.datasets import SyntheticBand
from reliablenet.report import benchmark_page, comparison_page, model_page, text, write_page
from reliablenet.report.page import embed

LIMIT = 1_500_000


def words(page: str) -> str:
    """Return the text of a page without its marks."""
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)).replace(text.NARROW, " ")


def plain(sentence: str) -> str:
    """Return the words of a sentence, however it is set or begun."""
    return sentence.replace(":", "").casefold()


def points(page: str) -> dict:
    return json.loads(re.search(r'id="points">(.*?)</script>', page).group(1))


def test_a_model_page_says_it_all(model, rows, comparison) -> None:
    table, y = rows
    page = model_page(
        model, table=table, labels=y, groups="job", comparison=comparison, title="My model"
    )
    said, certificate = words(page), model.certificate_
    assert plain(wording.verdict(certificate, "the model")) in plain(said)
    assert "and wrongly on at most 9 % of all rows from this source (95 % confidence)." in said
    for needed in (
        "My model · ReliableClassifier",
        certificate.to_json().split('"sha256": "')[1][:64],
        model.fingerprint_,
        repr(certificate.threshold),
        "monotone",
        "What voids it",
        "all of them at once",
        "Expected calibration error",
        "Multiplier",
        "Gap of the surrogate",
        "The least sure",
        "Groups are not covered by the certificate",
        "logistic",
        "learning_rate",
        f"scikit-learn {__import__('sklearn').__version__}",
    ):
        assert needed in said, needed
    assert len(page.encode()) < LIMIT


def test_the_best_of_a_comparison_is_certified_for_having_been_chosen(comparison) -> None:
    best = comparison.best()
    said = words(model_page(best.model, comparison=comparison))
    level = text.confidence(best.certificate.rho).replace(text.NARROW, " ")
    assert f"({level} confidence)" in said
    assert "The fold was given by itself, and rows are numbered within it" in said


def test_a_refused_model_says_why_and_what_would_help(refused) -> None:
    said = words(model_page(refused))
    assert "Not certified The model defers every row." in said
    assert plain(refused.certificate_.reason) in plain(said)
    assert "What would grant it. At least" in said
    assert "alpha = 0.2 % needs at least" in said
    assert "No threshold is certified on this fold" in said
    assert "Acted on and wrong None." in said


def test_a_rule_without_history_or_certificate(rows) -> None:
    band = SyntheticBand(random_state=0).sample(3000)
    rule = rn.ConfidenceThreshold(LogisticRegression(), alpha=0.05, random_state=1)
    with pytest.warns(rn.errors.NotCertifiedWarning):
        rule.fit(band.X, band.y)
    said = words(model_page(rule))
    assert "of rows without a certificate." in said
    assert "What would grant it. A certified threshold: these rows certify every one from" in said
    assert "Training" not in said
    assert "LogisticRegression" in said


def test_history_is_found_through_a_wrapper() -> None:
    band = SyntheticBand(random_state=0).sample(2000)
    inner = rn.ERMClassifier(epochs=3)
    clf = rn.CertifiedThreshold(inner, random_state=0).fit(band.X, band.y)
    said = words(model_page(clf))
    assert "Training" in said
    assert "Multiplier" not in said  # plain training has none


def test_a_loaded_model_has_the_same_page(model, tmp_path) -> None:
    loaded = rn.load(model.save(tmp_path / "m.rnet"))
    assert model_page(loaded) == model_page(model)


def test_the_points_start_at_the_model_and_hold_the_certificate(model) -> None:
    found, certificate = points(model_page(model)), model.certificate_
    here = {name: column[found["start"]] for name, column in found["columns"].items()}
    assert here["status"] == "yes"
    assert here["accepted"] == text.count(certificate.accepted)
    assert here["errors"] == text.count(certificate.errors)
    assert here["bound"] == text.percent_up(certificate.upper_bound, certificate.alpha)
    assert set(found["columns"]["status"][: found["start"]]) == {"no"}
    assert set(found["columns"]["status"][found["start"] : -1]) == {"yes"}
    assert found["columns"]["status"][-1] == "acts on nothing"


def test_nothing_given_is_taken_as_markup(model, rows, comparison) -> None:
    table, y = rows
    groups = table["note"]
    evil = "<script>alert(1)</script>"
    page = model_page(model, table=table, labels=y, groups=groups, title=evil)
    for made in (page, comparison_page(comparison, title=evil)):
        assert evil not in made
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in made
        assert "<img" not in made
        assert made.count("<script") == made.count("</script>")
    assert "src=x onerror" in page  # as text
    assert json.loads(embed({"</script>\u2028&": 1})) == {"</script>\u2028&": 1}
    assert not set("<>&\u2028") & set(embed("</script>\u2028&"))


def test_pages_ask_for_nothing_from_elsewhere(model, comparison) -> None:
    for page in (model_page(model), comparison_page(comparison)):
        assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", page)
        assert "default-src 'none'" in page


def test_a_comparison_page_is_the_same_from_json(comparison) -> None:
    page = comparison_page(comparison)
    assert comparison_page(rn.methods.Comparison.from_json(comparison.to_json())) == page
    said = words(page)
    best = comparison.best()
    assert best.sentence.split(". ")[0] in said.replace("&lt;", "<").replace("&gt;", ">")
    level = text.confidence(best.certificate.rho).replace(text.NARROW, " ")
    assert f"chosen among {best.chosen_among} methods on the very rows that certify it" in said
    assert f"this one at {level} instead of 95 %, and the best of them holds at 95 %" in said
    assert f"In the choice certified at {level}" in said
    assert "broken. InvalidParameterError: `estimator`" in said
    for result in comparison.results.values():
        assert text.percent(result.certified_throughput) in page


def test_a_comparison_that_recommends_nothing() -> None:
    band = SyntheticBand(random_state=0).sample(300)
    found = rn.compare(
        band.X, band.y, methods={"one": LogisticRegression()}, alpha=0.001, resamples=10
    )
    said = words(comparison_page(found))
    assert "None certified No method can be recommended" in said
    assert "The certificate of the choice" not in said


def test_a_benchmark_page_has_the_tables_and_the_figures(study) -> None:
    page = benchmark_page(*study)
    said = words(page)
    assert len(page.encode()) < LIMIT
    assert "of our means lie within two of the paper" in said
    assert "reliablenet_last+certified" in said
    assert page.count("data:image/png;base64,") >= 8
    assert "Error rate by coverage under shift" in said
    assert "JCW and coverage by severity, synthetic_band" in said
    assert "JCW and coverage by group" not in said  # of datasets that were not run


def test_a_benchmark_page_of_a_few_methods(study, tmp_path) -> None:
    _, profile = study
    store = Store(tmp_path)
    run_jobs(pending_jobs(profile, store, methods=["erm"], seeds=[0]), store)
    assert "What can be certified" not in benchmark_page(store, profile)
    with pytest.raises(rn.errors.InvalidDataError, match="No run of the profile 'tiny'"):
        benchmark_page(Store(tmp_path / "none"), profile)


def test_writing_a_page(tmp_path) -> None:
    path = write_page("<p>é", tmp_path / "page.html")
    assert path.read_bytes() == "<p>é".encode()
    write_page("new", path)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "new"
    with pytest.raises(rn.errors.InvalidParameterError, match="a file in an existing folder"):
        write_page("", tmp_path / "no" / "page.html")


def test_what_is_no_model() -> None:
    with pytest.raises(
        rn.errors.InvalidParameterError, match="method of this library; got 'Logistic"
    ):
        model_page(LogisticRegression())
    with pytest.raises(ValueError, match="not fitted"):
        model_page(rn.ERMClassifier())


def test_without_jinja_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from reliablenet.report.page import render\n"
        "try: render('model.html')\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "A report needs jinja2: pip install 'reliablenet[report]'\n"


def test_the_page_of_a_comparison_by_groups_speaks_of_groups() -> None:
    band = SyntheticBand(random_state=0).sample(2000)
    found = rn.compare(
        band.X, band.y, methods={"bayes": GaussianNB()}, resamples=20, groups=np.arange(2000) // 2
    )
    said = comparison_page(found).replace("\u202f", " ")
    lead = said[said.index("By the share of rows acted on and right") :].partition("</p>")[0]
    assert "such that a row drawn at random from a new group is acted on wrongly" in lead
    assert "groups, one row of each." in lead
    assert "of all rows" not in lead
    assert "it acts on the row drawn from" in said
