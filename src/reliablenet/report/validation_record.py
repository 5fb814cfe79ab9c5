"""The validation record of a model: what a model-risk or a regulatory file asks for, from the model file and from people.

What the file knows is read from it; what only people can know (purpose, owner, why this budget) is given, and where it is
not, the record says so. JSON, page and model card are written from the one record here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reliablenet._checks import check_probability, parameter_error
from reliablenet.report.charts import Numbers

FORMAT = "reliablenet-record/1"
NOT_GIVEN = "not given"
RENEWAL = (
    "An alarm of the monitor, a change of the source that the source test reports, or a change of the "
    "process that makes the rows. Then acting stops, or all rows are deferred, until a certificate on "
    "fresh labelled rows is granted (reliablenet recertify); the old one stays in the chain."
)
DISCLAIMER = (
    "Each section names what it may help to answer in Annex IV of the EU AI Act (Regulation (EU) "
    "2024/1689), in the NIST AI Risk Management Framework 1.0 and in the FDA's guidance on predetermined "
    "change control plans. No compliance is claimed with any of them: what they ask for goes beyond a "
    "model file, and whether they are met is for the people who answer for the system."
)


@dataclass(frozen=True)
class Given:
    """What only people know about a model; empty texts are shown as not given.

    Attributes
    ----------
    purpose : str
        What decisions it makes, for whom.
    owner : str
        Who answers for it.
    population : str
        Whom or what the rows are, and where they come from.
    source : str
        The file or the query that the rows were taken from.
    collected : str
        When these rows were collected.
    alpha_reason : str
        Why this budget.
    renewal : str
        What makes a new certificate necessary; there is a sentence by default.
    audit : float
        Share of decisions that a person is to check in use.
    """

    purpose: str = ""
    owner: str = ""
    population: str = ""
    source: str = ""
    collected: str = ""
    alpha_reason: str = ""
    renewal: str = RENEWAL
    audit: float = 0.1

    def __post_init__(self) -> None:
        check_probability("audit", self.audit, "Given")
        for name in QUESTIONS:
            if not isinstance(getattr(self, name), str):
                raise parameter_error(name, "Given", "be a text", getattr(self, name))

    @property
    def missing(self) -> list[str]:
        """Questions without an answer."""
        return [asked for name, asked in QUESTIONS.items() if not getattr(self, name).strip()]

    def answer(self, name: str) -> str:
        """Return an answer, or that it was not given."""
        return getattr(self, name).strip() or NOT_GIVEN


QUESTIONS = {
    "purpose": "What is the model for?",
    "owner": "Who answers for it?",
    "population": "Whom or what are the rows about?",
    "source": "Which file or query do they come from?",
    "collected": "When were they collected?",
    "alpha_reason": "Why this budget?",
}


@dataclass(frozen=True)
class Fact:
    """One entry: its name in JSON, its title, its value there, and how a page says it."""

    name: str
    title: str
    value: Any
    words: str

    @property
    def given(self) -> bool:
        """Whether there is an answer."""
        return self.words != NOT_GIVEN


@dataclass(frozen=True)
class Section:
    """Facts, sentences and tables that belong together, and which documents ask for them.

    Attributes
    ----------
    name, title : str
    asked_by : dict
        Name of a document to what it calls this.
    facts : list of Fact
    sentences : list of str
    tables : dict from title to Numbers
    """

    name: str
    title: str
    asked_by: dict[str, str]
    facts: list[Fact] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    tables: dict[str, Numbers] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the section as JSON can hold it."""
        tables = {
            title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for title, table in self.tables.items()
        }
        return {
            "title": self.title,
            "asked_by": self.asked_by,
            **{fact.name: fact.value for fact in self.facts},
            "sentences": self.sentences,
            "tables": tables,
        }


@dataclass(frozen=True)
class ValidationRecord:
    """All sections of a record.

    Attributes
    ----------
    title : str
    written : str
        When, in ISO form.
    verdict : str
    certified : bool
    missing : list of str
        Questions that nobody answered.
    sections : list of Section
    contents : dict
        What the model file holds, as `reliablenet inspect --json` tells it.
    """

    title: str
    written: str
    verdict: str
    certified: bool
    missing: list[str]
    sections: list[Section]
    contents: Mapping[str, Any]

    def __getitem__(self, name: str) -> Section:
        return next(section for section in self.sections if section.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON can hold it."""
        return {
            "format": FORMAT,
            "title": self.title,
            "written": self.written,
            "verdict": self.verdict,
            "certified": self.certified,
            "claims_compliance": False,
            "note": DISCLAIMER,
            "not_given": self.missing,
            **{section.name: section.to_dict() for section in self.sections},
            "model_file": dict(self.contents),
        }
