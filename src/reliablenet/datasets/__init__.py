"""The paper's six datasets, and where their files are found. Never imports torch."""

from reliablenet.datasets.dataset import Dataset
from reliablenet.datasets.registry import DATASETS, load_dataset
from reliablenet.datasets.synthetic_band import SyntheticBand

__all__ = ["DATASETS", "Dataset", "SyntheticBand", "load_dataset"]
