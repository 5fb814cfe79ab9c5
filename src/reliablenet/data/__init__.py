"""Where rows come from: folds, tables, the paper's datasets. Never imports torch."""

from reliablenet.data.dataset import Dataset
from reliablenet.data.fold_sizes import fold_counts
from reliablenet.data.folds import (
    Fold,
    Folds,
    cut_folds,
    cut_groups,
    cut_paper_folds,
    cut_rows,
)
from reliablenet.data.piecewise import PiecewiseEncoder
from reliablenet.data.registry import DATASETS, load_dataset
from reliablenet.data.synthetic_band import SyntheticBand
from reliablenet.data.tabular import TabularEncoder

__all__ = [
    "DATASETS",
    "Dataset",
    "Fold",
    "Folds",
    "PiecewiseEncoder",
    "SyntheticBand",
    "TabularEncoder",
    "cut_folds",
    "cut_groups",
    "cut_paper_folds",
    "cut_rows",
    "fold_counts",
    "load_dataset",
]
