"""`NeuralClassifier`: a network that tells classes apart, trained on a table or batch by batch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from sklearn.callback import with_callbacks

from reliablenet._checks import parameter_error
from reliablenet.errors import InvalidParameterError
from reliablenet.export.parts import Parts
from reliablenet.methods.base import RowWeighting, SelectiveClassifier
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.inputs import FitFolds
from reliablenet.methods.neural import FoldOrStream, NeuralEstimator, as_fold
from reliablenet.tables.digest import fingerprint
from reliablenet.tables.folds import Fold, Folds
from reliablenet.training.stream import Inputs, Source, Stream, is_source


@dataclass(eq=False, repr=False)  # scikit-learn brings its own
class NeuralClassifier(NeuralEstimator, SelectiveClassifier):
    """Encode rows, train a network by a schedule, and return its probabilities.

    Attributes
    ----------
    classes_ : array of shape (K,)
    network_, encoder_, input_shape_, history_
        As for `NeuralEstimator`.
    """

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        selection: Any = None,
        certification: Any = None,
        groups: Any = None,
        by: Any = None,
        **weights: Unpack[RowWeighting],
    ) -> Self:
        """Fit, choose the rule, and certify it.

        Where rows do not fit in memory, X is a `torch.utils.data.Dataset` or `DataLoader` and y is
        left out. It yields rows as float32, encoded already, and labels as class indices 0 to K-1.
        It is read once beforehand, to check it and to count its rows and classes. A Dataset is
        shuffled anew each epoch, by ``random_state``, in batches of ``batch_size``; a DataLoader
        brings its own order and batch size.

        In a `torch.distributed` group (`torchrun`) every rank calls `fit` alike and gets the same
        model. Each trains on its share of every batch, so that ``batch_size`` is that of one rank;
        a DataLoader must hold the rank's own part of the rows (`DistributedSampler`). Rank 0 writes
        ``checkpoint_file``.

        Parameters
        ----------
        X : array or data frame of shape (n, d), Dataset or DataLoader
            In a data frame, columns that are not numbers are categories, and values may be missing.
        y : array-like of shape (n,)
            Labels of any kind; None if X brings them.
        selection, certification : pair (X, y), optional
            Folds of your own. What is not given is cut from X and y by ``fold_sizes``: the
            certification fold at random, then the selection fold, stratified. A certification fold
            may be a triple (X, y, groups); one row of each group counts then.
            With a Dataset or DataLoader both are needed, and may be such as well, in a fixed order.
        groups : array-like of shape (n,), optional
            Whose row each is, such as a person's or a device's. A group stays in one fold, and of
            each group in the certification fold one row counts, drawn at random: the certificate
            is then about a random row of a random new group.
        by : array-like of shape (n,), or mapping or data frame of columns, optional
            Group of each row, where the promise is about groups; by default the column of X.
        sample_weight : array-like of shape (n,), optional
            How much each row counts in training and in what is chosen there. Threshold and certificate
            count every row once: they are about the rows that will come.

        Returns
        -------
        self
        """
        if is_source(X):
            if groups is not None:
                raise parameter_error(
                    "groups",
                    "fit",
                    f"be None: no fold is cut from a {type(X).__name__}",
                    type(groups).__name__,
                    "Keep each group in one of the folds you give, and certify on one row a group.",
                )
            if by is not None or (self.promise is not None and self.promise.columns):
                raise parameter_error(
                    "promise",
                    "fit",
                    f"not be about groups: a {type(X).__name__} does not name them",
                    str(self.promise),
                    "Fit it with alpha, and certify by group with `CertifiedThreshold` around it.",
                )
            if weights.get("sample_weight") is not None:
                expected = (
                    "be None for rows that are read batch by batch; draw them by weight instead"
                )
                raise parameter_error("sample_weight", "fit", expected, type(X).__name__)
            streamed: Self = self._fit_stream(X, y, selection, certification)
            return streamed
        for name, fold in (("selection", selection), ("certification", certification)):
            if is_source(fold):
                expected = "be a pair (X, y) if `X` is an array"
                raise parameter_error(name, "fit", expected, type(fold).__name__)
        fitted: Self = super().fit(
            X,
            y,
            selection=selection,
            certification=certification,
            groups=groups,
            by=by,
            **weights,
        )
        return fitted

    @with_callbacks
    def _fit_stream(self, X: Source, y: Any, selection: Any, certification: Any) -> Self:
        """Fit on rows that are read batch by batch."""
        if y is not None:
            raise parameter_error("y", "fit", "be None: X yields the labels", type(y).__name__)
        given = {"selection": selection, "certification": certification}
        for name, fold in given.items():
            if fold is None:
                expected = f"be given: no fold can be cut from a {type(X).__name__}"
                raise parameter_error(name, "fit", expected, None)
        self._check_settings()
        random = self._random()
        rows = Stream(X, "X", device=self._device)
        self.classes_ = np.arange(rows.count_classes())
        if not isinstance(self.threshold, str):
            self._check_threshold(self.threshold)
        self.encoder_, self.input_shape_ = None, rows.shape
        self.n_features_in_ = rows.shape[0]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        chosen, held = (self._check_part(fold, name) for name, fold in given.items())
        folds = Folds(Fold(np.empty((0, 1)), np.empty(0, np.int64)), *map(as_fold, (chosen, held)))
        self._target.warn_of_folds(self, folds)
        prints = [_fingerprint(part) for part in (rows, chosen, held)]
        self.fingerprint_ = hashlib.sha256(" ".join(prints).encode()).hexdigest()
        seed = int(random.randint(2**31 - 1))
        self.source_ = None  # rows that are read batch by batch are not described
        self._fit_folds(rows, chosen, seed, keep_selection=True)
        apart = [np.full(len(fold), -1) for fold in (folds.certification, folds.selection)]
        self._fix_rule(FitFolds(folds, apart[0], apart[1], "row"), "")
        return self

    def _check_rows(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        if not is_source(X):
            return super()._check_rows(X, y, reset=reset)
        return Inputs(X, self.input_shape_ if self.encoder_ is None else (self.n_features_in_,))

    def _check_part(self, fold: Any, name: str) -> FoldOrStream:
        """Return a fold to evaluate, given as arrays or to be read batch by batch."""
        if not is_source(fold):
            return self._check_fold(fold, name)
        part = Stream(fold, name, device=self._device, ordered=True)
        part.check_like(self.input_shape_, len(self.classes_))
        return part

    def _n_classes(self) -> int:
        return len(self.classes_)

    def _outputs(self, X: Any) -> Outputs:
        return self._class_outputs(X)

    def _graph_parts(self) -> Parts:
        if self.encoder_ is None:
            raise InvalidParameterError(
                f"A graph has one input for each column of a table; this {type(self).__name__} takes "
                f"inputs of shape {self.input_shape_} as they are."
            )
        rule = self.rule_ if hasattr(self, "certificate_") else None
        return Parts(self.encoder_, self.network_, self._objective(), self.classes_, rule=rule)


def _fingerprint(part: FoldOrStream) -> str:
    return fingerprint(part.X, part.y) if isinstance(part, Fold) else part.fingerprint
