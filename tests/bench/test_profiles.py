from __future__ import annotations

import pytest

from reliablenet.bench import PROFILES, Plan, load_profile
from reliablenet.errors import InvalidParameterError
from reliablenet.training import Schedule


def test_the_paper_profile_has_the_papers_settings():
    paper = load_profile("paper")
    assert paper.seeds == (0, 37, 42, 123, 2026)
    assert paper.rho == 0.05
    alphas = {name: plan.alpha for name, plan in paper.plans.items()}
    assert alphas == {
        "synthetic_band": 0.05,
        "german_credit": 0.05,
        "adult": 0.05,
        "unsw_nb15": 0.05,
        "unsw_nb15-alpha-0.01": 0.01,
        "coloured_mnist": 0.01,
        "cifar10": 0.03,
    }
    for name, plan in paper.plans.items():
        expected = (80, 10, 14, 5) if name == "cifar10" else (100, 10, 6, 15)
        found = (plan.epochs, plan.warmup_epochs, plan.epochs_per_stage, plan.max_stages)
        assert found == expected
        assert plan.warmup_epochs + plan.epochs_per_stage * plan.max_stages == plan.epochs
        assert plan.data == {}
        assert plan.width is None


def test_the_cpu_profile_differs_in_images_alone():
    paper, cpu = PROFILES["paper"], PROFILES["cpu"]
    changed = {name for name in paper.plans if paper.plans[name] != cpu.plans[name]}
    assert changed == {"coloured_mnist", "cifar10"}
    for name in changed:  # long enough for the multiplier to come down from its cap
        plan = cpu.plans[name]
        constrained = plan.epochs_per_stage * plan.max_stages
        assert constrained >= Schedule.paper().multiplier_max
        assert plan.warmup_epochs + constrained == plan.epochs


def test_all_images_are_trained_in_fewer_epochs_in_which_the_multiplier_travels_as_far():
    paper, images = PROFILES["paper"], PROFILES["images"]
    assert set(images.plans) == {"coloured_mnist", "cifar10"}
    for name, plan in images.plans.items():
        full = paper.plans[name]
        assert (plan.data, plan.alpha) == ({}, full.alpha)
        constrained = plan.epochs_per_stage * plan.max_stages
        assert plan.warmup_epochs + constrained == plan.epochs < full.epochs
        travelled = full.dual_rate * full.epochs_per_stage * full.max_stages
        assert plan.dual_rate * constrained == pytest.approx(travelled)
        assert plan.settings()["bfloat16"] is True


def test_a_file_extends_a_profile(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'extends = "cpu"\nseeds = [1, 2]\n[plans.adult]\nepochs = 20\n'
        '[plans.small]\ndataset = "german_credit"\nalpha = 0.1\n'
    )
    profile = load_profile(str(path))
    assert profile.name == "mine"
    assert profile.seeds == (1, 2)
    assert profile.plans["adult"].epochs == 20
    assert profile.plans["adult"].max_stages == 15
    assert profile.plans["small"] == Plan("german_credit", alpha=0.1)
    assert profile.plans["cifar10"] == PROFILES["cpu"].plans["cifar10"]
    path.write_text('name = "one"\nonly = true\n[plans.adult]\n')
    assert list(load_profile(str(path)).plans) == ["adult"]


def test_a_profile_reads_the_results_of_those_it_extends(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "cpu"\n')
    store = load_profile(str(path)).open_store(tmp_path)
    assert store.folder == tmp_path / "mine"
    assert store.others == (tmp_path / "cpu", tmp_path / "paper")
    assert load_profile("paper").open_store(tmp_path).others == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = [", "is not TOML"),
        ("colour = 3", r"unknown settings: \['colour'\]"),
        ("[plans.adult]\nepoch = 3", r"'adult' .* unknown settings: \['epoch'\]"),
        ("[plans.adult]\nepochs = 0", "`epochs` of Plan"),
        ("[plans.new]\nalpha = 0.1", "`dataset` of Plan must be one of"),
        ("[plans.adult]\nalpha = 5", "`alpha` of Plan .* Did you mean 0.05"),
        ('[plans.adult]\nnetwork = "cnn6"', "`network` of Plan must be one of"),
        ("[plans.adult]\ndata = 3", "`data` of Plan must be settings"),
        ("[plans.adult]\nboosting = 1", "`boosting` of Plan must be true or false"),
        ('[plans.adult]\nkind = "text"', r"`kind` of Plan must be one of \['table', 'images'\]"),
        ('[plans.adult]\nnetwork = "tabular"', "`network` of Plan must be one of"),
        ("seeds = []", "`seeds` of Profile must not be empty"),
        ("only = true", "`plans` of Profile must not be empty"),
        ("seeds = 3", "`seeds` of .* must be a list"),
        ("plans = 3", "`plans` of .* must be tables"),
        ("[plans]\nadult = 3", "`plans` of .* must be tables, .* got {'adult': 3}"),
        ("extends = 3", "`extends` of .* must name another profile"),
        ('extends = "huge"', "`profile` of bench must be one of"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InvalidParameterError, match=message):
        load_profile(str(path))


def test_what_version_0_1_called_boosting_is_read_with_one_warning(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text("[plans.adult]\nboosting = false\n[plans.cifar10]\nboosting = true\n")
    with pytest.warns(
        FutureWarning, match=r'old.toml, write kind = "table" for boosting'
    ) as caught:
        profile = load_profile(str(path))
    assert len(caught) == 1
    assert (profile.plans["adult"].kind, profile.plans["cifar10"].kind) == ("images", "table")


def test_records_keep_the_settings_of_0_1_so_that_old_runs_count():
    assert Plan("adult").settings() == {
        "dataset": "adult",
        "alpha": 0.05,
        "data": {},
        "network": "mlp",
        "width": None,
        "epochs": 100,
        "warmup_epochs": 10,
        "epochs_per_stage": 6,
        "max_stages": 15,
        "boosting": True,
    }
    assert PROFILES["paper"].plans["cifar10"].settings()["boosting"] is False


@pytest.mark.parametrize("name", ["huge", "none.toml"])
def test_an_unknown_profile_names_those_there_are(name):
    with pytest.raises(InvalidParameterError, match=r"\['cpu', 'images', 'paper', 'smoke'\] or a"):
        load_profile(name)


def test_the_warmed_up_network_is_a_moment_of_erms_training():
    with pytest.raises(InvalidParameterError, match=r"`epochs` of Plan must be at least .*, 10"):
        Plan("adult", epochs=9)
