"""Exceptions and warnings of the library; each exception is also the builtin a caller would catch."""


class ReliableNetError(Exception):
    """Base of every exception that the library raises on purpose."""


class InvalidParameterError(ReliableNetError, ValueError):
    """A setting lies outside its domain."""


class InvalidDataError(ReliableNetError, ValueError):
    """Rows, labels or probabilities cannot be used as they are."""


class DataFileError(ReliableNetError, OSError):
    """A source file is missing, damaged, or could not be downloaded; the message says what to do."""


class ModelFileError(ReliableNetError, ValueError):
    """A model or checkpoint file is damaged, foreign, or holds what we refuse to load."""


class DecisionLogError(ReliableNetError, OSError):
    """A decision log cannot be read or written; nothing was recorded."""


class ExportError(ReliableNetError, ValueError):
    """What was to be written for other programs does not decide as the model does; nothing was written."""


class TrainingDivergedError(ReliableNetError, ArithmeticError):
    """Training produced a loss or weights that are not finite; no model was kept."""


class MissingExtraError(ReliableNetError, ImportError):
    """An optional dependency is not installed; the message holds the install command."""


class ClusterError(ReliableNetError, ConnectionError):
    """A cluster cannot be reached, has no workers, or lost them; the message says what to do."""


class ClusterWarning(UserWarning):
    """A cluster has no workers yet."""


class NotCertifiedWarning(UserWarning):
    """No certificate was granted; the message says whether the rule acts or defers every row."""


class ConstraintWarning(UserWarning):
    """The constraint never bound, never became feasible, or left most of the budget unspent."""


class FoldWarning(UserWarning):
    """A fold lacks something that a user would expect it to hold."""


class ColumnWarning(UserWarning):
    """A column of a table is left out, or gives the target away; the message names it."""


class LeakWarning(ColumnWarning):
    """A column gives the target away.

    Attributes
    ----------
    column : str
    """

    def __init__(self, message: str, column: str = "") -> None:
        super().__init__(message)
        self.column = column


class LabelWarning(UserWarning):
    """Labels look mistaken: a class that the model does not know, or more errors than guessing makes."""


class ReuseWarning(UserWarning):
    """Certification rows were used before, or for more than the certificate allows for."""


class OddInputWarning(UserWarning):
    """New rows do not look like those that the model was trained on; the message says where."""


class EmptyCertificateWarning(UserWarning):
    """A certificate was granted that is worth nothing; the message says why."""
