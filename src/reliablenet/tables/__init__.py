"""Where a user's rows come from: files, columns, target, encoders, folds, copies. Never imports torch."""

from reliablenet.tables.fold_sizes import fold_counts
from reliablenet.tables.folds import (
    Fold,
    Folds,
    cut_folds,
    cut_groups,
    cut_paper_folds,
    cut_rows,
)
from reliablenet.tables.piecewise import PiecewiseEncoder
from reliablenet.tables.tabular import TabularEncoder

__all__ = [
    "Fold",
    "Folds",
    "PiecewiseEncoder",
    "TabularEncoder",
    "cut_folds",
    "cut_groups",
    "cut_paper_folds",
    "cut_rows",
    "fold_counts",
]
