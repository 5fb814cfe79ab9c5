"""A fitted classifier as an ONNX graph: what each method gives to it, and the trial before it is written."""

from __future__ import annotations

import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from reliablenet._files import write_atomically
from reliablenet._version import __version__
from reliablenet.errors import InvalidParameterError, MissingExtraError, OddInputWarning
from reliablenet.methods.seen import model_hashes
from reliablenet.modelfile.archive import sha256

if TYPE_CHECKING:
    from reliablenet.export.onnx.trial import Trial
    from reliablenet.export.parts import Parts


class ExportingMixin(ABC):
    """Writes a fitted method for other programs."""

    def export(self, path: str | Path, X: Any = None, *, by: Any = None) -> Path:
        """Write the model as one ONNX graph that decides as `decide` does.

        It takes one input for each column in use, named as the column, of shape (n, 1): numbers in 64
        bits, NaN where missing, or texts, the empty one where missing. It gives ``label``,
        ``confidence`` and ``accepted``. Before it is written it is tried on rows made up from what the
        encoder knows, and on those of X.

        Parameters
        ----------
        path : str or Path
            By convention with the suffix ``.onnx``.
        X : array or data frame of shape (n, d), optional
            Rows to try it on, such as those that the model was fitted on. A model holds none.
        by : optional
            Their groups, as for `decide`.

        Returns
        -------
        Path

        Raises
        ------
        ExportError
            If a row gets another label, another ``accepted``, or a confidence that differs by more than
            1e-5; rows are named and nothing is written.
        """
        check_is_fitted(self)
        target = Path(path)
        if target.suffix == ".rnet" or not target.parent.is_dir() or target.is_dir():
            raise InvalidParameterError(
                "`path` of export must name a file in an existing folder, such as 'model.onnx'; got "
                f"{str(target)!r}."
            )
        self._graph_parts()  # or it raises, before anything is saved
        with tempfile.TemporaryDirectory() as folder:
            whole = self.save(Path(folder) / "model.rnet").read_bytes()
        write_graph(self, target, [] if X is None else [(X, by)], sha256(whole), "rows of X")
        return target

    @abstractmethod
    def save(self, path: str | Path) -> Path:
        """Write the fitted model to a file."""

    def _graph_parts(self) -> Parts:
        """Return what a graph must hold: a method that can be one tells it."""
        raise InvalidParameterError(
            f"A graph cannot hold a {type(self).__name__}: only classifiers of tables whose network is "
            "ours, with or without rules around them."
        )


def write_graph(
    model: Any, path: Path, batches: Iterable[tuple[Any, Any]], model_sha256: str, name: str
) -> Trial:
    """Write the graph of a model, if it decides as the model does.

    Parameters
    ----------
    model : SelectiveEstimator
        Fitted.
    path : Path
    batches : iterable of pairs
        Rows to try it on, and their groups or None.
    model_sha256 : str
        Of the model file that it is made from.
    name : str
        What to call the rows in a refusal.

    Returns
    -------
    Trial
    """
    try:
        from reliablenet.export.onnx.document import build
        from reliablenet.export.onnx.made_up import make_up_rows
        from reliablenet.export.onnx.trial import Trial, open_graph
    except ImportError as error:
        if error.name not in ("onnx", "onnxruntime"):
            raise
        raise MissingExtraError(
            f"ONNX graphs need {error.name}: pip install 'reliablenet[onnx]'"
        ) from None
    parts = model._graph_parts()
    about = {
        "certificate": model.certificate_.to_json(),
        "model_sha256": model_sha256,
        "data_fingerprint": model.fingerprint_,
        "reliablenet": __version__,
    }
    content = build(parts, about).SerializeToString()
    trial = Trial(open_graph(content))
    columns = getattr(model, "feature_names_in_", None)
    grouping = model.promise.columns if model.rule_.columns else ()
    made_up, groups = make_up_rows(parts, columns, grouping)
    known = np.empty(0, np.uint64) if model.seen_ is None else model.seen_.certified
    met = np.zeros(len(known), bool)  # copies of a row may lie in other folds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OddInputWarning)  # odd rows must be decided alike too
        trial.compare(made_up, groups, model.decide(made_up, groups), "made-up rows")
        trial.made_up = len(made_up)
        for X, by in batches:
            rows = model._check_rows(X, reset=False)
            found = model._groups(X, by, "decide") if model._by_rule else None
            trial.compare(rows, found, model.decide(X, by), name)
            trial.rows += len(rows)
            hashes = model_hashes(model, rows)
            if hashes is not None:
                met |= np.isin(known, hashes)
    trial.certified = int(met.sum())
    write_atomically(path, content)
    return trial
