# The public names and where each lives: type checkers read this file, and so does `__init__.py`.

from reliablenet import (
    bench as bench,
    certificate as certificate,
    datasets as datasets,
    errors as errors,
    export as export,
    methods as methods,
    metrics as metrics,
    modelfile as modelfile,
    monitor as monitor,
    report as report,
    risk as risk,
    serve as serve,
    tables as tables,
    training as training,
)
from reliablenet._version import (
    __version__ as __version__,
)
from reliablenet.certificate import (
    Certificate as Certificate,
    Promise as Promise,
    Rule as Rule,
    RuleCertificate as RuleCertificate,
    certified_rule as certified_rule,
    certified_threshold as certified_threshold,
    certify as certify,
    clopper_pearson_upper as clopper_pearson_upper,
    conformal_threshold as conformal_threshold,
    hoeffding_upper as hoeffding_upper,
    jcw_threshold as jcw_threshold,
    rows_needed as rows_needed,
    uniform_slack as uniform_slack,
)
from reliablenet.datasets import (
    load_dataset as load_dataset,
)
from reliablenet.methods import (
    CertifiedThreshold as CertifiedThreshold,
    ConfidenceThreshold as ConfidenceThreshold,
    ConformalRiskControl as ConformalRiskControl,
    DeepGamblersClassifier as DeepGamblersClassifier,
    ERMClassifier as ERMClassifier,
    ReliableClassifier as ReliableClassifier,
    ReliableRegressor as ReliableRegressor,
    SelectiveNetClassifier as SelectiveNetClassifier,
    TemperatureScaling as TemperatureScaling,
    compare as compare,
    load as load,
)
from reliablenet.monitor import (
    Monitor as Monitor,
)
from reliablenet.monitor.drift import (
    source_test as source_test,
)
from reliablenet.monitor.martingale import (
    SourceMonitor as SourceMonitor,
)
from reliablenet.risk import (
    gap as gap,
    phi as phi,
    psi as psi,
    violation as violation,
    zeta as zeta,
)
from reliablenet.training import (
    JCWConstraint as JCWConstraint,
)
