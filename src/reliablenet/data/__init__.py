"""Where rows come from: folds, tables, the synthetic band. Never imports torch."""

from reliablenet.data.folds import Fold, Folds, cut_folds, cut_rows, fold_counts
from reliablenet.data.synthetic_band import SyntheticBand
from reliablenet.data.tabular import TabularEncoder

__all__ = [
    "Fold",
    "Folds",
    "SyntheticBand",
    "TabularEncoder",
    "cut_folds",
    "cut_rows",
    "fold_counts",
]
