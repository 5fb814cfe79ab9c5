"""Tables of any size as a fitted model takes them: the columns it knows, some rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from reliablenet._listing import listed
from reliablenet.certificate import Certificate, Provenance, RuleCertificate
from reliablenet.certificate.labels import find_places, refuse_other_spelling
from reliablenet.certificate.merging import Run, in_one
from reliablenet.certificate.partitions import certify_partitions
from reliablenet.certificate.scored import ScoredRows, join_rows
from reliablenet.cli import options
from reliablenet.errors import DataFileError, InvalidDataError
from reliablenet.methods.layers import find_encoder
from reliablenet.methods.row_watch import RowWatch
from reliablenet.methods.seen import model_hashes
from reliablenet.tables.columns import check_columns, find_columns
from reliablenet.tables.files import (
    TableFile,
    column_names,
    local_file,
    read_batches,
    read_table,
)
from reliablenet.tables.target import (
    group_names,
    label_texts,
    take_labels,
    take_numbers,
    true_labels,
)

if TYPE_CHECKING:
    from reliablenet.methods import Decisions
    from reliablenet.metrics import Breakdown
    from reliablenet.monitor.drift import SourceTest

DECIDED = ("label", "value", "confidence", "accepted", "odd")  # what is written of each row
EXPLAINED = ("threshold", "lacking", "why", "lowered_by")  # and of why it was deferred


def load_model(path: Path, trusted_keys: Sequence[Path] | None = None) -> Any:
    """Load a model; a file that is not there is missing data, and not a damaged model."""
    import reliablenet as rn

    if not path.exists():
        raise DataFileError(f"There is no model file {path}.")
    return rn.load(path, trusted_keys=list(trusted_keys or ()) or None)


def feature_batches(
    model: Any, path: Path | TableFile, also: Sequence[str] = (), by: Sequence[str] = ()
) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the features of each batch, and the columns in ``also`` as texts and in ``by``, features or not.

    What was left out in training may be absent. Columns that were categories stay as they are
    written: in a batch alone, some look like numbers.
    """
    names, encoder = getattr(model, "feature_names_in_", None), find_encoder(model)
    present = column_names(path)
    check_columns(by, present, path.name)
    also = [*also, *(name for name in by if names is None or name not in names)]
    idle = set() if encoder is None else set(encoder.dropped_)
    if names is None:  # fitted on an array: by position
        whole = len(present) == model.n_features_in_
        wanted = present if whole else [name for name in present if name not in also]
    elif used := [name for name in also if name in names]:
        raise InvalidDataError(
            f"{used[0]!r} is a column that the model predicts from, and cannot be the target."
        )
    else:
        wanted = [name for name in names if name in present or name not in idle]
    texts = {*also, *idle.intersection(by)}
    if encoder is not None:
        texts |= {*encoder.categories_, *encoder.texts_, *encoder.dates_}
    texts -= set(wanted if names is None else ())
    empty = True
    for frame in read_batches(path, list(dict.fromkeys([*wanted, *also])), text=texts):
        empty = False
        X = frame[wanted].to_numpy() if names is None else frame.reindex(columns=names)
        yield X, frame[[*also, *(name for name in by if name not in also)]]
    if empty:
        raise InvalidDataError(f"{path.name} has a header and no rows.")


def kept_columns(file: TableFile, keep: str, written: Collection[str] = DECIDED) -> list[str]:
    """Return the columns that are to be written beside each decision, which has those ``written``."""
    present = column_names(file)
    everything = keep.strip() == "all" and "all" not in present
    names = present if everything else find_columns(options.names(keep), present, file.name)
    if clash := [name for name in names if name in written]:
        raise InvalidDataError(
            f"{file.name} has a column {clash[0]!r}, and decisions have one of that name too. Rename it to keep it."
        )
    return names


def decide_batches(
    model: Any,
    path: Path | TableFile,
    keep: Sequence[str] = (),
    defer_odd: bool = False,
    allow_missing: Collection[str] = (),
    deferred: Counter[Any] | None = None,
    explain: bool = False,
) -> Iterator[tuple[Decisions, pd.DataFrame, pd.DataFrame]]:
    """Yield what is decided, the columns to keep, and why rows are deferred if asked to, batch by batch.

    The table has the groups that the rule needs; rows of groups that have no certificate are counted in
    ``deferred``, by group. Columns that the model does not use are kept as they are written.
    """
    columns = model.rule_.columns
    for X, more in feature_batches(model, path, by=list(dict.fromkeys([*columns, *keep]))):
        by = rule_groups(model, more) if columns else None
        if by and deferred is not None:
            deferred.update(model.rule_.without_threshold(by))
        decisions = model.decide(X, by, defer_odd=defer_odd, allow_missing=allow_missing)
        why = pd.DataFrame(index=range(len(decisions)))
        if explain:
            why = model._explain_decisions(decisions, X, by).to_frame()[list(EXPLAINED)]
        yield decisions, more[list(keep)].reset_index(drop=True), why


def rule_groups(model: Any, frame: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """Return the groups of rows as the model's rule spells them, whatever type a batch has."""
    found = {}
    for name in model.promise.columns:
        texts = label_texts(frame[name])
        known = model.rule_.values_of(name)[::-1]  # of two spellings the first holds
        spelled = dict(zip(label_texts(known).tolist() if known else (), known, strict=True))
        found[name] = np.array([spelled.get(text, text) for text in texts], dtype=object)
    return found


def compare_source(
    model: Any, path: Path | TableFile, level: float, group: str, seed: int
) -> SourceTest:
    """Compare the rows of a table with the source that a model was certified on."""
    from reliablenet.monitor.drift import NewRows, source_test

    if group:  # one row of each group is drawn, so that all must be known
        parts = list(feature_batches(model, path, [group]))
        names = group_names(pd.concat([columns for _, columns in parts])[group], group)
        rows = [X for X, _ in parts]
        frame = isinstance(rows[0], pd.DataFrame)
        X = pd.concat(rows) if frame else np.concatenate(rows)
        return source_test(model, X, level=level, groups=names, random_state=seed)
    refuse_no_groups(model)
    new = NewRows(model)
    for X, _ in feature_batches(model, path):
        new.add(X)
    return new.test(level, seed)


def refuse_no_groups(model: Any, otherwise: str = "") -> None:
    """Raise if the model's own certificate counts groups, and no column names them."""
    if model.grouped_:
        raise InvalidDataError(
            "The certificate of this model counts groups, one row of each. Say which column names them: "
            f"--group COLUMN{otherwise}."
        )


def check_unit(model: Any, group: str, ungrouped: bool) -> None:
    """Raise unless it is said whose rows are whose, where the model's own certificate counts groups."""
    if group and ungrouped:
        raise typer.BadParameter("give --group or --ungrouped, not both.")
    if not group and not ungrouped:
        refuse_no_groups(model, ", or --ungrouped if each row is a unit of its own")


class FreshRows:
    """A table with the truth that a model is to be certified on, read once and batch by batch.

    Rows that the model has seen are counted as they pass, and refused in the end, and so are copies.
    """

    def __init__(self, model: Any, path: Path | TableFile, target: str, group: str = "") -> None:
        self.model, self.path, self.target, self.group = model, path, target, group
        self._watch = RowWatch(model.seen_)
        self._strangers: set[str] = set()
        self._numbers = not hasattr(model, "classes_")
        self._names = label_texts([] if self._numbers else model.classes_)
        self._cuts = model.breakdown_.cuts
        self.breakdown: Breakdown | None = None  # who bears the mistakes, where rows are counted
        self._hashes: list[NDArray[np.uint64] | None] = []

    def read_all(self) -> tuple[ScoredRows, NDArray[np.uint64] | None]:
        """Return scores and verdicts of all rows, and their hashes where they can be compared."""
        batches = list(self.read())
        rows = join_rows(batches)
        self.check(rows.n_unknown == rows.n)
        known = [part for part in self._hashes if part is not None]
        return rows, np.concatenate(known) if len(known) == len(batches) else None

    def read(self) -> Iterator[ScoredRows]:
        """Yield scores and verdicts."""
        also = [self.target, *filter(None, [self.group])]
        promise = self.model.promise
        by = () if promise is None else promise.columns
        self.breakdown = None
        for X, columns in feature_batches(self.model, self.path, also, by):
            truth = self._truth(columns[self.target])
            self._hashes.append(model_hashes(self.model, X))
            self._watch.add(self._hashes[-1], truth)
            rows = self.model._checked_outputs(X).scored(truth)
            if by:
                rows = replace(rows, by=rule_groups(self.model, columns))
            if not self.group:
                part = self.model._count_cells(rows, X, self._cuts)
                self.breakdown = part if self.breakdown is None else self.breakdown + part
            yield (
                replace(rows, group=group_names(columns[self.group], self.group))
                if self.group
                else rows
            )

    def _truth(self, values: pd.Series[Any]) -> NDArray[Any]:
        """Return the truth as the model's folds held it: numbers, or places among the classes."""
        if self._numbers:
            return take_numbers(values, self.target)
        texts = true_labels(values, self.target)
        places = find_places(texts, self._names)
        self._strangers.update(texts[places < 0].tolist())
        return places

    def counted(self) -> FreshRows:
        """Return what was seen of the rows beside their scores: enough to be merged."""
        seen = copy(self)
        seen.model, seen._watch, seen._hashes = None, self._watch.without_seen(), []
        return seen

    def merge(self, later: FreshRows) -> None:
        """Take in what was seen of later rows."""
        self._watch.merge(later._watch)
        self._strangers |= later._strangers
        if self.breakdown is None:
            self.breakdown = later.breakdown
        elif later.breakdown is not None:
            self.breakdown = self.breakdown + later.breakdown

    def certify(
        self, alpha: float, rho: float, run: Run[Any] | None = None
    ) -> Certificate | RuleCertificate:
        """Return what these rows prove about the model's rule; ``run`` counts them elsewhere."""
        model = self.model
        promised = model.promise is not None
        found = certify_partitions(
            in_one(self.read) if run is None else run,
            model.promise if promised else alpha,
            rho,
            fixed=model.rule_ if promised else model.threshold_,
        )
        return self.finish(found)

    def finish(self, certificate: Certificate | RuleCertificate) -> Certificate | RuleCertificate:
        """Raise if the rows are not fresh; add to the certificate what is known about them."""
        self.check(certificate.unknown == certificate.n)
        copies = 0 if self.group else self._watch.warn_of_copies()
        made = certificate.provenance or Provenance()
        watch = self._watch
        known = replace(made, rows=watch.fingerprint(), copies=copies, compared=watch.compared)
        described: Certificate | RuleCertificate = self.model._target.describe(certificate)
        return replace(described, provenance=known)

    def check(self, none_known: bool) -> None:
        """Raise if the rows are not fresh, or their labels are not those of the model."""
        self._watch.refuse_seen()
        refuse_other_spelling(self._strangers, self._names.tolist(), "certify", self.target)
        if none_known:
            raise InvalidDataError(
                f"None of the labels in {self.target!r} is known to the model: it has "
                f"{listed(sorted(self._strangers))}, the model knows {listed(self._names)}."
            )


def training_rows(model: Any, data: str, target: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return features and labels of the table that a model was trained on, as `train` read them."""
    with local_file(data) as path:
        table = read_table(path)
    check_columns([target], table.columns.tolist(), path.name)
    features = list(getattr(model, "feature_names_in_", table.columns.drop(target)))
    check_columns(features, table.columns.tolist(), path.name)
    take = take_labels if hasattr(model, "classes_") else take_numbers
    return table[features], take(table[target], target)
