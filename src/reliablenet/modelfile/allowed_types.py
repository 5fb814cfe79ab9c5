"""Estimators of scikit-learn as bytes of a model file, and back, made of types that run no code."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from sklearn.base import BaseEstimator

from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile.archive import check_stored
from reliablenet.modelfile.tree_checks import check_trees

# Beyond the types that skops trusts by itself: our own preprocessing, trees, which are checked, and
# plain Python parts of scikit-learn: of boosting with categories, calibrated, stacked and voting
# classifiers, networks, searches and selection of features. The function of a partial is one of these
# or refused.
TRUSTED_TYPES = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "reliablenet.methods.error_model.ErrorModel",
        "reliablenet.tables.date_columns.DateColumns",
        "reliablenet.tables.free_text.TextFeatures",
        "reliablenet.tables.piecewise.PiecewiseEncoder",
        "reliablenet.tables.tabular.TabularEncoder",
        "reliablenet.tables.text_columns.TextColumns",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils.validation.check_array",
    }
)

# Where version 0.1 kept the modules of our own types.
MOVED_MODULES = {
    "reliablenet.data.piecewise": "reliablenet.tables.piecewise",
    "reliablenet.data.tabular": "reliablenet.tables.tabular",
}


def estimator_to_bytes(estimator: Any) -> bytes:
    """Return a scikit-learn estimator as bytes, unless they would be refused when loaded."""
    import skops.io

    name = type(estimator).__name__
    if not isinstance(estimator, BaseEstimator):
        raise InvalidParameterError(
            f"save can store what wraps a scikit-learn estimator or a network of this library; got {name}. "
            "Keep that model in a format of its own, and certificate_.to_json() beside it."
        )
    try:
        content = bytes(skops.io.dumps(estimator))
        refused = _untrusted(content)
    except Exception as error:  # skops raises as it likes
        raise InvalidParameterError(f"save cannot store this {name}: {error}") from error
    if refused:
        raise InvalidParameterError(
            f"save cannot store this {name}: load would refuse the types {refused}, which are not "
            "known to be harmless in a file. Keep that model in a format of its own."
        )
    return content


def estimator_from_bytes(content: bytes, path: Any) -> Any:
    """Return the estimator, if it is made of trusted types alone and its trees lead nowhere else."""
    import skops.io

    check_stored(content, path)
    content = _with_types_of_today(content)
    refused = _untrusted(content)
    if refused:
        raise ModelFileError(f"{path} is refused: it holds {refused}.")
    estimator = skops.io.loads(content, trusted=sorted(TRUSTED_TYPES))
    check_trees(estimator)
    return estimator


def _with_types_of_today(content: bytes) -> bytes:
    """Return the estimator with the types that have moved since version 0.1 named as they are now."""

    def name_anew(node: dict[str, Any]) -> dict[str, Any]:
        module = node.get("__module__")
        if isinstance(module, str) and module in MOVED_MODULES:
            node["__module__"] = MOVED_MODULES[module]
        return node

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    if not any(old.encode() in parts.get("schema.json", b"") for old in MOVED_MODULES):
        return content
    parts["schema.json"] = json.dumps(
        json.loads(parts["schema.json"], object_hook=name_anew)
    ).encode()
    renamed = io.BytesIO()
    with zipfile.ZipFile(renamed, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return renamed.getvalue()


def _untrusted(content: bytes) -> list[str]:
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=content)) - TRUSTED_TYPES)
