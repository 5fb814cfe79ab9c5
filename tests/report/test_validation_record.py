"""The validation record: one source for JSON, page and model card; what nobody said is told as not given."""

import json
from pathlib import Path

import pytest

import reliablenet as rn
from reliablenet.cli.model_summary import contents_of
from reliablenet.errors import InvalidParameterError
from reliablenet.report.record_page import NAMES, model_card, record_page, write_files
from reliablenet.report.record_sections import make_record
from reliablenet.report.validation_record import NOT_GIVEN, QUESTIONS, Given

MODELS = Path(__file__).parents[1] / "methods" / "models_of_0_2_dev"
EVIL = "<script>alert(1)</script> | *bold*"
SAID = Given(purpose=EVIL, owner="Risk, team 3", alpha_reason="The loss of one mistake is 20 fees.")


def recorded(name, given=None):
    file = MODELS / f"{name}.rnet"
    model = rn.load(file)
    return model, make_record(model, file, contents_of(model, file), given)


@pytest.fixture(scope="module")
def reliable():
    return recorded("reliable", SAID)


def test_the_record_has_what_the_issue_lists(reliable):
    model, record = reliable
    told = record.to_dict()
    made = model.certificate_
    assert told["format"] == "reliablenet-record/1"
    assert (told["certified"], told["claims_compliance"]) == (made.certified, False)
    assert (told["purpose"]["purpose"], told["purpose"]["owner"]) == (SAID.purpose, SAID.owner)
    assert told["purpose"]["sha256"] == told["model_file"]["sha256"]["file"]
    assert told["data"]["population"] is None
    assert told["folds"]["certification_rows"] == made.n
    assert told["folds"]["table"] == model.fingerprint_
    assert (told["promise"]["alpha"], told["promise"]["rho"]) == (made.alpha, made.rho)
    assert told["promise"]["alpha_reason"] == SAID.alpha_reason
    assert told["evidence"]["k"] == f"{made.errors:,}"
    assert "certify again" in told["limits"]["another_source"]
    assert told["monitoring"]["audit"] == 0.1
    assert "recertify" in told["monitoring"]["renewal"]
    assert told["chain"]["renewals"] == 0
    assert told["software"]["torch"]
    assert set(record.missing) == set(QUESTIONS.values()) - {
        QUESTIONS[name] for name in ("purpose", "owner", "alpha_reason")
    }


def test_every_section_says_which_document_asks_for_it(reliable):
    _, record = reliable
    documents = {name for section in record.sections for name in section.asked_by}
    assert documents == {"EU AI Act, Annex IV", "NIST AI RMF", "FDA, change control plan"}
    assert all(section.asked_by for section in record.sections)
    page = record_page(record)
    assert "No compliance is claimed" in page
    assert "MEASURE 2.5" in page
    assert "MEASURE 2.6" in page


def test_page_and_card_tell_the_same_and_run_nothing(reliable):
    _, record = reliable
    page, card = record_page(record), model_card(record)
    assert "<script>alert" not in page
    assert "<script>" not in card
    assert r"\| \*bold\*" in card
    for section in record.sections:
        assert section.title in page
        assert section.title in card
        plain = [fact.words for fact in section.facts if fact.words != EVIL]
        assert all(" ".join(words.split()) in card.replace("\\", "") for words in plain)
    assert card.startswith('---\nlibrary_name: "reliablenet"\n')
    assert NOT_GIVEN in page
    assert NOT_GIVEN in card


@pytest.mark.parametrize("name", ["groups", "uncertified", "two_rules", "conformal"])
def test_other_promises_and_refused_certificates_have_one_too(name, tmp_path):
    model, record = recorded(name)
    paths = write_files(record, tmp_path / "record")
    assert [path.name for path in paths] == list(NAMES.values())
    told = json.loads(paths[0].read_text("utf-8"))
    assert told["certified"] == model.certificate_.certified
    assert told["not_given"] == list(QUESTIONS.values())


def test_what_is_said_is_checked():
    with pytest.raises(InvalidParameterError, match="`audit`"):
        Given(audit=0.0)
    with pytest.raises(InvalidParameterError, match="`owner`"):
        Given(owner=3)


def test_it_prints_without_a_line_beyond_the_paper(reliable, browser, tmp_path):
    path = write_files(reliable[1], tmp_path)[1]
    context = browser.new_context(viewport={"width": 375, "height": 700})
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        page.set_viewport_size({"width": 690, "height": 900})  # of A4 between its margins
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 690
        assert page.pdf(format="A4")[:4] == b"%PDF"
    finally:
        context.close()
