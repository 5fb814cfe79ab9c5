"""ReliableNet: classifiers that know when to act and when to defer.

The public names, and nothing else. Each is imported on first use, because torch alone takes seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from reliablenet._version import __version__

if TYPE_CHECKING:
    from reliablenet import metrics
    from reliablenet.certificate import (
        Certificate,
        certification_power,
        certified_threshold,
        certify,
        clopper_pearson_upper,
        conformal_threshold,
        hoeffding_upper,
        jcw_threshold,
        rows_needed,
        uniform_slack,
    )
    from reliablenet.datasets import Dataset, load_dataset
    from reliablenet.errors import (
        ColumnWarning,
        ConstraintWarning,
        DataFileError,
        EmptyCertificateWarning,
        FoldWarning,
        InvalidDataError,
        InvalidParameterError,
        LabelWarning,
        MissingExtraError,
        ModelFileError,
        NotCertifiedWarning,
        ReliableNetError,
        ReuseWarning,
        TrainingDivergedError,
    )
    from reliablenet.methods import (
        CertifiedThreshold,
        Comparison,
        ConfidenceThreshold,
        ConformalRiskControl,
        Decisions,
        DeepGamblersClassifier,
        ERMClassifier,
        ReliableClassifier,
        SelectiveClassifier,
        SelectiveNetClassifier,
        TemperatureScaling,
        compare,
        default_methods,
        load,
    )
    from reliablenet.risk import gap, phi, psi, violation, zeta
    from reliablenet.training import JCWConstraint, Schedule

_HOME = {
    "certificate": (
        "Certificate",
        "certification_power",
        "certified_threshold",
        "certify",
        "clopper_pearson_upper",
        "conformal_threshold",
        "hoeffding_upper",
        "jcw_threshold",
        "rows_needed",
        "uniform_slack",
    ),
    "datasets": ("Dataset", "load_dataset"),
    "errors": (
        "ColumnWarning",
        "ConstraintWarning",
        "DataFileError",
        "EmptyCertificateWarning",
        "FoldWarning",
        "InvalidDataError",
        "InvalidParameterError",
        "LabelWarning",
        "MissingExtraError",
        "ModelFileError",
        "NotCertifiedWarning",
        "ReliableNetError",
        "ReuseWarning",
        "TrainingDivergedError",
    ),
    "methods": (
        "CertifiedThreshold",
        "Comparison",
        "ConfidenceThreshold",
        "ConformalRiskControl",
        "Decisions",
        "DeepGamblersClassifier",
        "ERMClassifier",
        "ReliableClassifier",
        "SelectiveClassifier",
        "SelectiveNetClassifier",
        "TemperatureScaling",
        "compare",
        "default_methods",
        "load",
    ),
    "risk": ("gap", "phi", "psi", "violation", "zeta"),
    "training": ("JCWConstraint", "Schedule"),
}
_ROOMS = (
    *(
        "risk",
        "certificate",
        "metrics",
        "tables",
        "datasets",
        "training",
        "methods",
        "bench",
        "report",
    ),
    "data",  # of version 0.1
)
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Certificate",
    "CertifiedThreshold",
    "ColumnWarning",
    "Comparison",
    "ConfidenceThreshold",
    "ConformalRiskControl",
    "ConstraintWarning",
    "DataFileError",
    "Dataset",
    "Decisions",
    "DeepGamblersClassifier",
    "ERMClassifier",
    "EmptyCertificateWarning",
    "FoldWarning",
    "InvalidDataError",
    "InvalidParameterError",
    "JCWConstraint",
    "LabelWarning",
    "MissingExtraError",
    "ModelFileError",
    "NotCertifiedWarning",
    "ReliableClassifier",
    "ReliableNetError",
    "ReuseWarning",
    "Schedule",
    "SelectiveClassifier",
    "SelectiveNetClassifier",
    "TemperatureScaling",
    "TrainingDivergedError",
    "__version__",
    "certification_power",
    "certified_threshold",
    "certify",
    "clopper_pearson_upper",
    "compare",
    "conformal_threshold",
    "default_methods",
    "gap",
    "hoeffding_upper",
    "jcw_threshold",
    "load",
    "load_dataset",
    "metrics",
    "phi",
    "psi",
    "rows_needed",
    "uniform_slack",
    "violation",
    "zeta",
]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"reliablenet.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'reliablenet' has no attribute {name!r}")
    value = getattr(import_module(f"reliablenet.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
