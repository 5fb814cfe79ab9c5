"""The sections of a validation record, each made from a model, its file and what people said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reliablenet._json import strict
from reliablenet._listing import listed
from reliablenet.certificate import Promise, RuleCertificate, promise_wording, wording
from reliablenet.certificate.remedies import remedy
from reliablenet.certificate.shift_wording import survival
from reliablenet.monitor.delays import plan_delay
from reliablenet.report import text
from reliablenet.report.bearing import bearing_table, moves_table
from reliablenet.report.certificate import UNITS, certificate_facts, parts_table, voids
from reliablenet.report.charts import marked_numbers
from reliablenet.report.validation_record import (
    NOT_GIVEN,
    QUESTIONS,
    Fact,
    Given,
    Section,
    ValidationRecord,
)

LEVEL = 0.05  # of the monitor, as `serve` has it
EU, NIST, FDA = "EU AI Act, Annex IV", "NIST AI RMF", "FDA, change control plan"


def make_record(
    model: Any, file: Path, contents: Mapping[str, Any], given: Given | None = None
) -> ValidationRecord:
    """Return the validation record of a model.

    Parameters
    ----------
    model : SelectiveEstimator
        Loaded from the file.
    file : Path
    contents : mapping
        What the file holds: `reliablenet.cli.model_summary.contents_of`.
    given : Given, optional
        What only people know.
    """
    known = Given() if given is None else given
    subject = Subject(model, file, contents, known)
    acts = model.threshold_ < math.inf
    return ValidationRecord(
        title=file.stem,
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        verdict=promise_wording.verdict(model.certificate_, "the model", acts),
        certified=model.certificate_.certified,
        missing=known.missing,
        sections=[make(subject) for make in SECTIONS],
        contents=contents,
    )


@dataclass(frozen=True)
class Subject:
    """What sections are made from."""

    model: Any
    file: Path
    contents: Mapping[str, Any]
    given: Given

    def answers(self, *names: str) -> list[Fact]:
        """Return answers of people as facts."""
        return [
            Fact(name, QUESTIONS[name], getattr(self.given, name) or None, self.given.answer(name))
            for name in names
        ]


def _purpose(subject: Subject) -> Section:
    model, contents = subject.model, subject.contents
    classes = contents["classes"]
    if classes is None:
        predicts = f"a number, right within {contents['tolerance']}"
    else:
        names = [str(name) for name in classes]
        predicts = f"one of {len(names)} classes: {listed(names, 12, str)}"
    facts = [
        *subject.answers("purpose", "owner"),
        Fact("method", "Method", contents["method"], contents["method"]),
        Fact("predicts", "What it predicts", strict(classes), predicts),
        Fact("file", "Model file", subject.file.name, subject.file.name),
        Fact("sha256", "SHA-256", contents["sha256"]["file"], contents["sha256"]["file"]),
    ]
    deferring = (
        "For every row it acts or defers. Rows below the threshold are left to a person, who decides "
        f"without the model; on the certification fold these were {text.percent(1 - model.certificate_.coverage)} of "
        "the rows."
    )
    return Section(
        "purpose",
        "Purpose, owner, oversight",
        {EU: "1(a) intended purpose, 2(e) human oversight", NIST: "MEASURE 2.6 (fails safely)"},
        facts,
        [text.typeset(deferring)],
    )


def _data(subject: Subject) -> Section:
    features, profile = subject.contents["features"] or {}, subject.model.profile_
    facts = subject.answers("population", "source", "collected")
    tables = {}
    left_out = features.get("left_out", {})
    for name, columns in features.items():
        if name != "left_out" and columns:
            words = f"{len(columns)}: {listed(columns, 40, str)}"
            facts.append(Fact(name, f"Used as {name}", strict(columns), words))
    if left_out:
        rows = [[str(name), str(reason)] for name, reason in left_out.items()]
        tables["Left out, and why"] = marked_numbers(["Column", "Why"], rows)
    facts.append(
        Fact("left_out", "Left out", strict(left_out), f"{len(left_out)}" if left_out else "none")
    )
    told = []
    if profile is not None:
        told = [profile.summary(), promise_wording.odd_deferred(subject.model.promise)]
    return Section(
        "data",
        "Population, source, features",
        {
            EU: "2(d) data requirements, 3 specifications on input data",
            NIST: "MEASURE 2.5 (conditions of development)",
            FDA: "data management practices",
        },
        facts,
        [text.sentence(words) for words in told],
        tables,
    )


def _folds(subject: Subject) -> Section:
    model, made = subject.model, subject.model.certificate_.provenance
    n, profile = model.certificate_.n, model.profile_
    unit = "groups, one row of each" if model.grouped_ else "rows"
    facts = [
        Fact("certification_rows", "Certification fold", n, f"{text.count(n)} {unit}, seen once"),
        Fact("table", "SHA-256 of the table", model.fingerprint_, model.fingerprint_ or NOT_GIVEN),
    ]
    if profile is not None:
        trained = f"{text.count(profile.rows)} rows"
        facts.insert(0, Fact("training_rows", "Training fold", profile.rows, trained))
    if made is not None:
        facts += [
            Fact(
                "certification_hash", "Fingerprint of these rows", made.rows, made.rows or text.NONE
            ),
            Fact("answers_hash", "Fingerprint of the answers", made.model, made.model or text.NONE),
            Fact("uses", "Certificates made on these rows", made.uses, text.count(made.uses)),
            Fact(
                "chosen_among",
                "Number of methods it was chosen from",
                made.chosen_among,
                text.count(made.chosen_among),
            ),
            Fact("copies", "Copies among these rows", made.copies, text.count(made.copies)),
        ]
    told = (
        "The certification fold was drawn at random before anything was learned, or given by itself. It "
        "trained nothing and chose no setting; rows that the model has seen are recognised and refused."
    )
    return Section(
        "folds",
        "Folds and their hashes",
        {EU: "2(d), 2(g) validation and testing data", FDA: "data management practices"},
        facts,
        [told],
    )


def _promise(subject: Subject) -> Section:
    made, promise = subject.model.certificate_, subject.model.promise
    promised = Promise.overall(made.alpha) if promise is None else promise
    sentence = promise_wording.promise_text(promised, made.tolerance, made.unit)
    facts = [
        Fact("promise", "What is promised", sentence, text.sentence(sentence)),
        Fact("speaks_of", "What it is about", made.unit, text.sentence(UNITS[made.unit])),
        Fact("alpha", "Budget alpha", made.alpha, text.budget(made.alpha)),
        Fact(
            "rho", "Allowed probability that the certificate fails", made.rho, text.budget(made.rho)
        ),
        *subject.answers("alpha_reason"),
    ]
    return Section(
        "promise",
        "Promise, and why this budget",
        {
            EU: "4 appropriateness of the metrics, 5 risk management",
            NIST: "MEASURE 2.6 (risk tolerance)",
            FDA: "performance evaluation: acceptance criteria",
        },
        facts,
    )


def _evidence(subject: Subject) -> Section:
    made = subject.model.certificate_
    facts = [
        Fact(_key(name), name, value, f"{value}: {meaning}")
        for name, value, meaning in certificate_facts(made)
    ]
    told = [text.sentence(made.reason), text.sentence(wording.acted_on(made))]
    told += [text.sentence(note) for note in promise_wording.notes(made)]
    if not made.certified:
        told.append(text.sentence(remedy(made)))
    parts = parts_table(made)
    return Section(
        "evidence",
        "Counts and bounds",
        {
            EU: "2(g) metrics and test reports, 3 degrees of accuracy",
            NIST: "MEASURE 2.5 (valid and reliable)",
            FDA: "performance evaluation",
        },
        facts,
        [sentence for sentence in told if sentence],
        {} if parts is None else {"The promise, part by part": parts},
    )


def _bearing(subject: Subject) -> Section:
    found = subject.model.breakdown_
    told = ["No mistake was made on the certification fold, so nobody bears any."]
    tables = {}
    if found.cells and found.whole.errors:
        told = [text.sentence(sentence) for sentence in found.summary()]
        tables["Mistakes by true class, predicted class and column"] = bearing_table(found)
    told.append(
        "Exploratory: no promise is made about a part that the promise above does not name. Intervals "
        "hold all at once."
    )
    return Section(
        "who_bears_the_mistakes",
        "Errors by class and group",
        {EU: "2(g) discriminatory impacts, 3 accuracy for groups", NIST: "MEASURE 2.5"},
        [],
        told,
        tables,
    )


def _limits(subject: Subject) -> Section:
    made = subject.model.certificate_
    moves = moves_table(made)
    moved = survival(made)
    facts = [
        Fact(_key(title.strip(".").replace(",", "")), title.strip("."), words, words)
        for title, words in voids(made)
    ]
    if moved:
        facts.append(Fact("if_moved", "If the source moves", moved, text.sentence(moved)))
    return Section(
        "limits",
        "Limits, and what voids the certificate",
        {
            EU: "3 capabilities and limitations",
            NIST: "MEASURE 2.5 (limits of generalisation), 2.6 (beyond its knowledge)",
            FDA: "impact assessment",
        },
        facts,
        [],
        {} if moves is None else {"If the source moves: sensitivity, not a promise": moves},
    )


def _monitoring(subject: Subject) -> Section:
    made, audit = subject.model.certificate_, subject.given.audit
    worst = min(2 * made.alpha, 1.0)
    facts = [
        Fact("audit", "Decisions that a person checks", audit, text.budget(audit)),
        Fact("level", "Chance of a false alarm, ever", LEVEL, text.budget(LEVEL)),
    ]
    if made.alpha < worst and not isinstance(made, RuleCertificate):
        delay = plan_delay(made.alpha, worst, LEVEL, audit)
        words = "more than can be planned for"
        if delay.median is not None:
            words = f"{text.count(delay.median)} rows in half of the cases"
        title = f"Until the alarm, if {text.percent(worst)} were acted on wrongly"
        facts.append(Fact("rows_to_alarm", title, delay.median, words))
    facts.append(
        Fact("renewal", "What makes a new certificate necessary", *[subject.given.renewal] * 2)
    )
    told = (
        "Every decision is logged before it is sent; an independent coin picks those that are audited "
        "(reliablenet serve). The monitor's bound and alarm hold at every look (reliablenet monitor)."
    )
    return Section(
        "monitoring",
        "Monitoring plan and renewal",
        {
            EU: "9 post-market monitoring, 2(f) pre-determined changes",
            NIST: "MEASURE 2.6 (monitoring, response to failures)",
            FDA: "modification protocol: re-training, update procedures",
        },
        facts,
        [told],
    )


def _chain(subject: Subject) -> Section:
    links = subject.contents["chain"]
    rows = [
        [
            *(str(number), link["date"] or text.NONE, link["reason"]),
            *(f"{link['unit']}s", link["certificate"]),
        ]
        for number, link in enumerate(links, 1)
    ]
    table = marked_numbers(
        ["Number", "Date", "Reason", "Counted", "SHA-256 of the certificate"], rows
    )
    return Section(
        "chain",
        "Chain of certificates",
        {EU: "6 changes through the lifecycle", FDA: "update procedures"},
        [Fact("renewals", "Renewals", max(len(links) - 1, 0), text.count(max(len(links) - 1, 0)))],
        [] if links else ["This is the first certificate of the model."],
        {"Certificates, oldest first": table} if links else {},
    )


def _software(subject: Subject) -> Section:
    facts = [
        Fact(_key(name), name, version, str(version))
        for name, version in subject.contents["versions"].items()
    ]
    return Section("software", "Made with", {EU: "1(c) versions of software, 2(a)"}, facts)


SECTIONS: tuple[Callable[[Subject], Section], ...] = (
    *(_purpose, _data, _folds, _promise, _evidence, _bearing),
    *(_limits, _monitoring, _chain, _software),
)


def _key(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")
