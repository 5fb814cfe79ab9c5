"""A file with the predictions of any model: labels and scores, probabilities, or verdicts and scores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import check_finite
from reliablenet._listing import listed
from reliablenet.certificate.labels import LabelsSeen, find_places, refuse_other_spelling
from reliablenet.certificate.rule_search import accepted_by
from reliablenet.certificate.scored import ScoredRows, check_proba, proba_rows
from reliablenet.certificate.wording import threshold_text
from reliablenet.errors import InvalidDataError
from reliablenet.metrics.breakdowns import Breakdown, count_cells
from reliablenet.metrics.cells import MOST_COLUMNS, Cut, learn_cuts
from reliablenet.tables.columns import spell_columns
from reliablenet.tables.files import BATCH_ROWS, TableFile, column_names, read_batches
from reliablenet.tables.target import (
    group_names,
    label_texts,
    promised_groups,
    true_labels,
    verdicts,
)

if TYPE_CHECKING:
    from reliablenet.certificate import Certificate, RuleCertificate


@dataclass(frozen=True)
class Cells:
    """What the mistakes of a certified rule are counted by.

    Attributes
    ----------
    certificate : Certificate or RuleCertificate
    columns : list of str
        Beside labels and scores.
    cuts : dict from str to Cut
        How each column is cut into cells.
    classes : list, optional
    """

    certificate: Certificate | RuleCertificate
    columns: list[str]
    cuts: dict[str, Cut]
    classes: list[Any] | None


@dataclass(frozen=True)
class Predictions:
    """Where the truth and the predictions of a file are.

    Attributes
    ----------
    path : Path or TableFile
    label : str
        Column with the truth.
    predicted, score : str
        Columns with the predicted label and its confidence, or
    proba : tuple of str
        columns with the probabilities of the classes; of two classes, one is enough.
    positive : str
        The label that a single probability is that of; by default found out.
    correct : str
        Column that says which answers are right, with ``score`` alone.
    group : str
        Column that says whose row each is, if rows belong together.
    by : tuple of str
        Columns whose values make the groups of a promise.
    lower_is_better : bool
        Whether a low score means a sure answer. Rows then have it with its sign turned.
    known : frozenset of str
        True labels that are known to come, where this is only a part of the rows.
    """

    path: Path | TableFile
    label: str = ""
    predicted: str = ""
    score: str = ""
    proba: tuple[str, ...] = ()
    positive: str = ""
    correct: str = ""
    group: str = ""
    by: tuple[str, ...] = ()
    lower_is_better: bool = False
    known: frozenset[str] = frozenset()

    def as_spelled(self) -> Predictions:
        """Return the same with the columns as the file spells them."""
        names = ("label", "predicted", "score", "correct", "group")
        typed = [getattr(self, name) for name in names]
        given = [*filter(None, typed), *self.proba, *self.by]
        found = spell_columns(given, column_names(self.path), self.path.name)
        spelled = dict(zip(given, found, strict=True))
        changes: dict[str, Any] = {
            name: spelled.get(value, "") for name, value in zip(names, typed, strict=True)
        }
        for name in ("proba", "by"):
            changes[name] = tuple(spelled[column] for column in getattr(self, name))
        return replace(self, **changes)

    def given(self) -> dict[str, list[str]]:
        """Return the columns by the option that each was given with."""
        single = ("label", "predicted", "score", "correct", "group")
        found = {f"--{name}": [getattr(self, name)] for name in single}
        return found | {"--proba": list(self.proba), "--by": list(self.by)}

    def threshold(self, value: float) -> float:
        """Return a threshold of scores as one of rows, or one of rows as one of scores."""
        return 0.0 - value if self.lower_is_better else value

    def acts_at(self, threshold: float) -> str:
        """Say at which scores of the file the rule acts, given its threshold of rows."""
        side = "or less" if self.lower_is_better else "or more"
        return f"{self.score} {threshold_text(self.threshold(threshold))} {side}"

    def read(self, seen: LabelsSeen | None = None) -> Iterator[ScoredRows]:
        """Yield scores and verdicts, batch by batch, anew whenever it is called.

        Where ``seen`` is given, this is a part of the rows; their labels are written down there.
        """
        labels = LabelsSeen() if seen is None else seen
        for _, rows in self._rows(labels):
            yield rows
        if seen is None:
            self.check_labels(labels)

    def check_labels(self, labels: LabelsSeen) -> None:
        """Raise if a slip in spelling would be a class, or if predictions and truth have no label in common."""
        refuse_other_spelling(labels.true - labels.said, labels.said, "certify", self.label)
        if self.predicted and labels.said and not labels.true & labels.said:
            raise InvalidDataError(
                f"No label in {self.predicted!r} ({listed(sorted(labels.said))}) occurs in {self.label!r} "
                f"({listed(sorted(labels.true))}), so every prediction would be wrong. Use the same words "
                "in both columns."
            )

    def breakdown(self, certificate: Certificate | RuleCertificate) -> Breakdown | None:
        """Count who bears the mistakes of a certified rule: by label and by every other column of the file."""
        cells = self.cells(certificate)
        return None if cells is None else self.count_cells(cells)

    def cells(self, certificate: Certificate | RuleCertificate) -> Cells | None:
        """Return what mistakes are counted by; the first rows say how columns are cut.

        None where one row of each group counts, or too many columns are there.
        """
        used = {self.label, self.predicted, self.score, self.correct, *self.proba}
        others = [name for name in column_names(self.path) if name not in used]
        if self.group or len(others) > MOST_COLUMNS:
            return None
        frame, wrong = self._first_rows(others)
        cuts = {
            name: cut
            for name, cut in learn_cuts(frame[others]).items()
            if not _is_verdict(cut.places(frame[name]), wrong)
        }
        return Cells(certificate, others, cuts, self.classes())

    def _first_rows(self, columns: list[str]) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Return some columns and the verdicts of the first rows, in however many files they are."""
        frames, verdicts, rows = [], [], 0
        for frame, batch in self._rows(LabelsSeen(), columns):
            frames.append(frame[columns])
            verdicts.append(batch.wrong)
            rows += batch.n
            if rows >= BATCH_ROWS:
                break
        return pd.concat(frames)[:BATCH_ROWS], np.concatenate(verdicts)[:BATCH_ROWS]

    def count_cells(self, cells: Cells) -> Breakdown | None:
        """Count mistakes; None if there are no rows."""
        found: Breakdown | None = None
        for frame, rows in self._rows(LabelsSeen(), cells.columns):
            accepted = accepted_by(cells.certificate, rows)
            table = frame[cells.columns]
            part = count_cells(rows, accepted, table, cells.cuts, classes=cells.classes)
            found = part if found is None else found + part
        return found

    def _rows(
        self, seen: LabelsSeen, also: Sequence[str] = ()
    ) -> Iterator[tuple[pd.DataFrame, ScoredRows]]:
        """Yield batches of the file, with those columns as well, and what they say."""
        for frame, rows in self._answered(also) if self.correct else self._predicted(seen, also):
            more: dict[str, Any] = {}
            if self.group:
                more["group"] = group_names(frame[self.group], self.group)
            if self.by:
                more["by"] = {name: promised_groups(frame[name], name) for name in self.by}
            yield frame, replace(rows, **more) if more else rows

    def classes(self) -> list[Any] | None:
        """Return the labels of the probability columns, in their order; None if there are none."""
        known = self.with_known_labels().known
        return self._classes(set(known)).tolist() if known else None

    def with_known_labels(self) -> Predictions:
        """Return the same with the labels that tell what the probability columns stand for."""
        if not self.proba or self.known:
            return self
        seen, rows = set[str](), 0
        for frame in self._frames([self.label], {self.label}):
            seen.update(true_labels(frame[self.label], self.label).tolist())
            rows += len(frame)
            if len(seen) > 1 if len(self.proba) == 1 else rows >= BATCH_ROWS:
                break
        return replace(self, known=frozenset(seen))

    def _classes(self, labels: set[str]) -> NDArray[Any]:
        """Return the labels of the probability columns; of a single one, the other label and its own."""
        if len(self.proba) > 1:
            return name_classes(self.proba, sorted(labels), self.label)
        asked = str(label_texts([self.positive])[0]) if self.positive else ""
        positive = asked or positive_label(self.proba[0], sorted(labels), self.label)
        others = sorted(labels - {positive})
        if len(others) > 1:
            raise InvalidDataError(
                f"Column {self.proba[0]!r} is the probability of {positive!r}, and {self.label!r} holds "
                f"more than one other label: {listed(others)}. Give a probability for each class."
            )
        return np.array([others[0] if others else f"not {positive}", positive], dtype=object)

    @property
    def lowest(self) -> float:
        """A score at which every row is acted on."""
        return 0.0 if self.proba else -math.inf

    def _answered(self, also: Sequence[str]) -> Iterator[tuple[pd.DataFrame, ScoredRows]]:
        texts = {self.correct, self.group, *self.by}
        for frame in self._frames([self.correct, self.score, *also], texts):
            right = verdicts(frame[self.correct], self.correct)
            yield frame, ScoredRows(self._scores(frame), ~right, -math.inf)

    def _predicted(
        self, seen: LabelsSeen, also: Sequence[str]
    ) -> Iterator[tuple[pd.DataFrame, ScoredRows]]:
        answers = list(self.proba) or [self.predicted, self.score]
        classes: NDArray[Any] | None = None
        seen.true |= self.known
        texts = {self.label, self.predicted, self.group, *self.by}
        for frame in self._frames([self.label, *answers, *also], texts):
            labels = true_labels(frame[self.label], self.label)
            if not self.proba:
                predicted = label_texts(frame[self.predicted])
                rows = ScoredRows(
                    self._scores(frame),
                    predicted != labels,
                    -math.inf,
                    truth=labels,
                    predicted=predicted,
                )
                seen.said.update(predicted.tolist())
            else:
                table = self._probabilities(frame)
                if len(self.proba) == 1:  # the other label may come later
                    classes = self._classes(seen.true.union(labels.tolist()))
                elif classes is None:
                    classes = self._classes(set(self.known) or set(labels.tolist()))
                seen.said = set(classes.tolist())
                rows = proba_rows(check_proba(table, "certify"), find_places(labels, classes))
            seen.true.update(labels.tolist())
            yield frame, rows

    def _frames(self, columns: list[str], texts: set[str]) -> Iterator[pd.DataFrame]:
        wanted = list(dict.fromkeys([*columns, *filter(None, [self.group]), *self.by]))
        return read_batches(self.path, wanted, text=texts)

    def _probabilities(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        columns = [_numbers(frame[name], name) for name in self.proba]
        if len(columns) > 1:
            return np.column_stack(columns)
        outside = (columns[0] < 0.0) | (columns[0] > 1.0)
        if outside.any():
            raise InvalidDataError(
                f"Column {self.proba[0]!r} must hold probabilities, from 0 to 1; got "
                f"{columns[0][outside.argmax()]:g}. For a score of another kind give the predicted label "
                "and the score."
            )
        return np.column_stack([1.0 - columns[0], columns[0]])

    def _scores(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        score = _numbers(frame[self.score], self.score)
        return -score if self.lower_is_better else score


def name_classes(columns: Sequence[str], labels: Sequence[str], target: str) -> NDArray[Any]:
    """Return which label each probability column stands for.

    By their names, by what differs in their names, or by position, whichever knows all labels; else by
    the names that know most of them, if any do.

    Examples
    --------
    >>> from reliablenet.cli.predictions import name_classes
    >>> name_classes(["p_no", "p_yes"], ["no"], "y").tolist()
    ['no', 'yes']
    >>> name_classes(["low", "high"], ["0", "1"], "y").tolist()
    ['0', '1']
    >>> name_classes(["p_no", "p_yes"], ["maybe", "no"], "y").tolist()
    ['no', 'yes']
    """
    # Names in order: what the first and the last begin with alike, all begin with.
    first, *_, last = sorted(columns)
    common = next(
        (i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0
    )
    positions = [str(place) for place in range(len(columns))]
    named = [
        label_texts(np.array(names, object))
        for names in (columns, [name[common:] for name in columns], positions)
    ]
    known = [len(set(labels) & set(classes)) for classes in named]
    if max(known) == len(labels):
        return named[known.index(len(labels))]
    if max(known[:2]) > 0:
        return named[known.index(max(known[:2]))]
    raise InvalidDataError(
        f"The labels in {target!r}, such as {list(labels)[:5]}, are neither the names nor the "
        f"numbers of the probability columns {list(columns)}. Name the columns after the classes."
    )


def _is_verdict(places: NDArray[np.intp], wrong: NDArray[np.bool_]) -> bool:
    """Tell whether a column only says which answers are wrong."""
    size, mistakes = np.bincount(places), np.bincount(places, weights=wrong)
    return bool(wrong.any() and np.all((mistakes == 0) | (mistakes == size)))


def positive_label(column: str, labels: Sequence[str], target: str) -> str:
    """Return the label that a single probability is that of: the one in its name, or 1 or True.

    Examples
    --------
    >>> from reliablenet.cli.predictions import positive_label
    >>> positive_label("p_default", ["default", "paid"], "outcome"), positive_label("p", ["0"], "y")
    ('default', '1')
    """
    words = re.split(r"[\W_]+", column.casefold())
    named = [label for label in labels if label.casefold() in words]
    if len(named) == 1:
        return named[0]
    for zero, one in (("0", "1"), ("False", "True"), ("-1", "1")):
        if set(labels) <= {zero, one}:
            return one
    raise InvalidDataError(
        f"Of which label is {column!r} the probability? {target!r} holds {listed(labels)}. Name it, or "
        "name the column after it."
    )


def _numbers(values: pd.Series[Any], column: str) -> NDArray[np.float64]:
    try:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"Column {column!r} must hold numbers; it holds text such as "
            f"{values.dropna().iloc[0]!r}."
        ) from None
    check_finite(column, numbers, "certify")
    return numbers
