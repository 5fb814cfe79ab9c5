from __future__ import annotations

import subprocess
import sys
from inspect import signature

import numpy as np
import pytest

from reliablenet.datasets import SyntheticBand, registry, synthetic_band
from reliablenet.errors import InvalidParameterError


def test_a_dataset_is_loaded_by_name_with_seed_and_settings():
    by_name = registry.load_dataset("synthetic_band", random_state=3, gamma=0.2, dimension=4)
    directly = synthetic_band.load(3, gamma=0.2, dimension=4)
    assert by_name.name == "synthetic_band"
    assert by_name.info == directly.info
    assert np.array_equal(by_name.folds.train.X, directly.folds.train.X)


def test_every_dataset_has_a_loader_whose_first_parameter_is_a_seed_of_0():
    for name in registry.DATASETS:
        module = __import__(f"reliablenet.datasets.{name}", fromlist=["load"])
        first, *others = signature(module.load).parameters.values()
        assert (first.name, first.default) == ("random_state", 0)
        assert all(setting.default is not setting.empty for setting in others)


@pytest.mark.parametrize("name", ["mnist", "Adult", "", None])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    with pytest.raises(InvalidParameterError, match=r"`name` of load_dataset .*'adult'.*got"):
        registry.load_dataset(name)


@pytest.mark.parametrize("seed", [-1, 0.5, "0", True, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(InvalidParameterError, match="`random_state` of load_dataset"):
        registry.load_dataset("synthetic_band", seed)


def test_an_unknown_setting_is_refused_with_the_settings_there_are():
    message = r"load_dataset\('synthetic_band'\) must be among \['gamma', .*got \['gama', 'width'\]"
    with pytest.raises(InvalidParameterError, match=message):
        registry.load_dataset("synthetic_band", width=1, gama=0.5)


def test_a_setting_of_a_dataset_that_has_none_is_refused():
    with pytest.raises(
        InvalidParameterError, match=r"be left out: adult has no settings; got \['size'\]"
    ):
        registry.load_dataset("adult", size=3)


def test_loading_a_table_imports_no_torch():
    code = (
        "import sys; from reliablenet.datasets.registry import load_dataset; "
        "load_dataset('synthetic_band'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_parameter_that_0_1_called_seed_still_works() -> None:
    with pytest.warns(DeprecationWarning, match="`seed` is now called `random_state`"):
        old = registry.load_dataset("synthetic_band", seed=3)
    new = registry.load_dataset("synthetic_band", random_state=3)
    assert np.array_equal(old.folds.train.X, new.folds.train.X)
    with pytest.warns(DeprecationWarning, match="`seed` is now called `random_state`"):
        band = SyntheticBand(seed=3)
    assert np.array_equal(band.direction, SyntheticBand(random_state=3).direction)
