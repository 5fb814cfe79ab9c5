from __future__ import annotations

import hashlib
import io
import tarfile
from functools import partial

import numpy as np
import pytest

from reliablenet.datasets import cifar10
from reliablenet.datasets.cifar10 import MEMBERS, NOISES, channel_statistics, corrupt, load
from reliablenet.errors import DataFileError, InvalidParameterError

RECORDS = 100  # a batch of the small CIFAR-10
XZ = "cifar10/cifar-10-binary.tar.xz"
PLACES = {
    "tar.gz": "cifar10/cifar-10-binary.tar.gz",
    "tar.xz": XZ,
    "unpacked": "cifar10/cifar-10-batches-bin",
    "unpacked at the top": "cifar-10-batches-bin",
}


def make_batch(seed):
    random = np.random.default_rng(seed)
    records = random.integers(0, 256, (RECORDS, cifar10.RECORD), np.uint8)
    records[:, 0] = random.permutation(np.arange(RECORDS) % 10)
    records[:, 1:1025] //= 2  # a channel unlike the others
    return records.tobytes()


def put(folder, place, batches):
    """Write batches as an archive or as plain files."""
    target = folder / PLACES[place]
    target.parent.mkdir(exist_ok=True)
    if place.startswith("unpacked"):
        target.mkdir()
        for name, content in batches.items():
            (target / name).write_bytes(content)
        return
    with tarfile.open(target, f"w:{place.removeprefix('tar.')}") as archive:
        for name, content in batches.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture(scope="module")
def batches():
    """The six batches of a small CIFAR-10: 500 training and 100 test images."""
    return {name: make_batch(seed) for seed, name in enumerate(MEMBERS)}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that makes batches the genuine ones, and puts them into an empty data folder."""

    def write(batches, place="tar.gz", folder="data"):
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in batches.items()}
        monkeypatch.setattr(cifar10, "MEMBERS", hashes)
        (tmp_path / folder).mkdir()
        put(tmp_path / folder, place, batches)
        monkeypatch.setenv("RELIABLENET_DATA", str(tmp_path / folder))
        return tmp_path / folder

    return write


@pytest.fixture
def small(install, batches):
    install(batches)
    return load(random_state=0)


@pytest.fixture(scope="module")
def real(needs_files):
    """All of CIFAR-10's batches, decompressed once."""
    needs_files(XZ)
    return cifar10._read_batches()


def in_order(dataset):
    return [dataset.folds.train, dataset.folds.selection, dataset.folds.certification]


def pixels_of(batches):
    """Images and labels of training and test batches, read byte by byte."""
    images, labels = [], []
    for content in batches:
        for start in range(0, len(content), 3073):
            labels.append(content[start])
            images.append(np.frombuffer(content[start + 1 : start + 3073], np.uint8))
    return np.array(images).reshape(-1, 3, 32, 32), np.array(labels)


def restore(X, info):
    """Undo the normalisation."""
    mean, deviation = (np.array(info[key])[:, None, None] for key in ("mean", "deviation"))
    return np.rint((X * deviation + mean) * 255).astype(np.uint8)


# Folds


def test_folds_shift_sweep_and_test_have_their_sizes_shapes_and_labels(small):
    assert [len(fold) for fold in in_order(small)] == [350, 75, 75]
    others = [small.test, small.shifts["grayscale, noise, dark"], *small.sweeps.values()]
    assert [len(fold) for fold in others] == [100] * 8
    for fold in [*in_order(small), *others]:
        assert fold.X.shape[1:] == (3, 32, 32)
        assert fold.X.dtype == np.float32
        assert fold.y.dtype == np.intp
    assert list(small.sweeps) == [0.0, 0.05, 0.1, 0.15, 0.2, 0.25]
    assert small.info["rows"] == 500
    assert small.info["files"] == ["cifar-10-binary.tar.gz"]


def test_every_training_image_is_in_exactly_one_fold_with_its_label(small, batches):
    images, labels = pixels_of([batches[name] for name in MEMBERS if name != cifar10.TEST])
    expected = sorted((image.tobytes(), label) for image, label in zip(images, labels, strict=True))
    found = [
        (image.tobytes(), label)
        for fold in in_order(small)
        for image, label in zip(restore(fold.X, small.info), fold.y, strict=True)
    ]
    assert sorted(found) == expected
    assert np.array_equal(restore(small.test.X, small.info), pixels_of([batches[cifar10.TEST]])[0])


def test_folds_are_stratified(small):
    for fold, share in zip(in_order(small), (35, 7.5, 7.5), strict=True):
        np.testing.assert_allclose(np.bincount(fold.y, minlength=10), share, atol=1)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(install, batches, check_seeds):
    install(batches)
    check_seeds(load, lambda dataset: dataset.sweeps[0.1])


def test_the_bits_of_seed_0_are_known(small):
    digest = hashlib.sha256()
    for fold in [*in_order(small), small.test, small.shifts["grayscale, noise, dark"]]:
        digest.update(fold.X.astype("<f4").tobytes())
        digest.update(fold.y.astype("<i8").tobytes())
    assert digest.hexdigest() == "4fda07c55bc55d068e6f5614c2ef731dfb60e01f855e104faf334570f1433adf"


def test_a_part_of_the_images_is_stratified_and_comes_in_the_same_shares(install, batches):
    install(batches)
    dataset = load(random_state=0, images=200)
    assert [len(fold) for fold in in_order(dataset)] == [140, 30, 30]
    assert np.bincount(dataset.folds.train.y).tolist() == [14] * 10
    assert len(dataset.test) == 100
    with pytest.raises(InvalidParameterError, match=r"`images` of .* must be at most 500"):
        load(random_state=0, images=501)


# Normalisation


def test_the_training_fold_has_mean_0_and_deviation_1_in_every_channel(small):
    X = small.folds.train.X.astype(np.float64)
    np.testing.assert_allclose(X.mean(axis=(0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(X.std(axis=(0, 2, 3)), 1, atol=1e-6)
    assert abs(small.info["mean"][0] - small.info["mean"][1]) > 0.2  # not one mean for all


def test_only_images_of_the_training_fold_decide_the_normalisation(install, batches):
    install(batches)
    before = load(random_state=0)
    used = {image.tobytes() for image in restore(before.folds.train.X, before.info)}
    changed = {}
    for name, content in batches.items():
        records = np.frombuffer(content, np.uint8).reshape(-1, 3073).copy()
        for record in records:
            if name == cifar10.TEST or record[1:].tobytes() not in used:
                record[1:] = 255
        changed[name] = records.tobytes()
    install(changed, folder="changed")
    after = load(random_state=0)
    assert after.info == before.info
    assert np.array_equal(after.folds.train.X, before.folds.train.X)
    for fold in (after.folds.selection, after.folds.certification, after.test):
        assert (restore(fold.X, after.info) == 255).all()


def test_statistics_are_those_of_numpy_whatever_the_size_of_a_chunk(monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (60, 3, 4, 5)).astype(np.float32)
    mean, deviation = channel_statistics(images)
    exact = images.astype(np.float64) / 255
    np.testing.assert_allclose(mean, exact.mean(axis=(0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(deviation, exact.std(axis=(0, 2, 3)), rtol=1e-6)
    monkeypatch.setattr(cifar10, "CHUNK", 7)
    assert np.array_equal(channel_statistics(images), (mean, deviation))


# Shift and sweep


def corrupt_one_by_one(pixels, noise, random, grey, brightness):
    """Each pixel by itself: grey, noise, clip, brightness."""
    draws = random.standard_normal(pixels.shape)
    changed = np.zeros(pixels.shape)
    for (i, channel, r, c), draw in np.ndenumerate(draws):
        red, green, blue = pixels[i, :, r, c] / 255
        value = 0.299 * red + 0.587 * green + 0.114 * blue if grey else (red, green, blue)[channel]
        changed[i, channel, r, c] = min(max(value + noise * draw, 0), 1) * brightness
    return changed


@pytest.mark.parametrize("noise", [0.0, 0.15])
@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("brightness", [1.0, 0.6])
def test_images_are_changed_as_in_a_plain_loop(noise, grey, brightness):
    pixels = np.random.default_rng(1).integers(0, 256, (5, 3, 8, 8)).astype(np.uint8)
    settings = {"grey": grey, "brightness": brightness}
    changed = corrupt(pixels, noise, np.random.default_rng(2), **settings)
    expected = corrupt_one_by_one(pixels, noise, np.random.default_rng(2), **settings)
    np.testing.assert_allclose(changed, expected, atol=1e-6)


def test_the_shift_is_grey_then_noise_then_dark_and_normalised_like_the_rest(small, batches):
    pixels = pixels_of([batches[cifar10.TEST]])[0]
    mean, deviation = (np.array(small.info[key])[:, None, None] for key in ("mean", "deviation"))
    changed = corrupt(pixels, 0.15, np.random.default_rng([0, 0]), grey=True, brightness=0.6)
    shifted = small.shifts["grayscale, noise, dark"]
    np.testing.assert_allclose(shifted.X, (changed - mean) / deviation, atol=1e-5)
    assert changed.max() <= np.float32(0.6)


def test_the_sweep_is_clean_at_0_and_scales_the_same_noise(small):
    assert np.array_equal(small.sweeps[0.0].X, small.test.X)
    deviation = np.array(small.info["deviation"], np.float32)[:, None, None]
    mean = np.array(small.info["mean"], np.float32)[:, None, None]
    clean, *noisy = ((small.sweeps[noise].X * deviation + mean) for noise in NOISES)
    unclipped = np.logical_and.reduce([(x > 1e-4) & (x < 1 - 1e-4) for x in noisy])
    draws = [(x - clean)[unclipped] / noise for x, noise in zip(noisy, NOISES[1:], strict=True)]
    for other in draws[1:]:
        np.testing.assert_allclose(draws[0], other, atol=1e-4)


def test_the_sweep_gives_the_same_images_each_time(small):
    for key in (0.1, 0.25):
        assert np.array_equal(small.sweeps[key].X, small.sweeps[key].X)


def test_noise_does_not_depend_on_how_many_images_are_changed_at_a_time(monkeypatch):
    pixels = np.random.default_rng(3).integers(0, 256, (20, 3, 8, 8)).astype(np.uint8)
    change = partial(corrupt, pixels, 0.1, grey=True)
    at_once = change(np.random.default_rng(0))
    monkeypatch.setattr(cifar10, "CHUNK", 7)
    assert np.array_equal(at_once, change(np.random.default_rng(0)))


# Files


def test_archives_and_unpacked_files_give_the_same_arrays(install, batches):
    loaded = []
    for place in PLACES:
        install(batches, place, folder=place)
        loaded.append(load(random_state=0))
    for other in loaded[1:]:
        for one, two in zip(in_order(loaded[0]), in_order(other), strict=True):
            assert np.array_equal(one.X, two.X)
            assert np.array_equal(one.y, two.y)
        assert np.array_equal(loaded[0].test.X, other.test.X)
    assert [dataset.info["files"] for dataset in loaded] == [
        ["cifar-10-binary.tar.gz"],
        ["cifar-10-binary.tar.xz"],
        ["cifar-10-batches-bin"],
        ["cifar-10-batches-bin"],
    ]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["data_batch_1.bin", "data_batch_4.bin", "test_batch.bin"])
def test_an_altered_batch_is_refused_by_name(install, batches, place, name, monkeypatch):
    altered = bytearray(batches[name])
    altered[1234] ^= 1
    install(batches | {name: bytes(altered)}, place)
    genuine = {key: hashlib.sha256(content).hexdigest() for key, content in batches.items()}
    monkeypatch.setattr(cifar10, "MEMBERS", genuine)
    with pytest.raises(DataFileError, match=rf"{name}.*SHA-256"):
        load(random_state=0)


def test_a_missing_batch_is_named(install, batches):
    folder = install(batches, "unpacked")
    (folder / PLACES["unpacked"] / "data_batch_3.bin").unlink()
    with pytest.raises(DataFileError, match=r"data_batch_3.bin.*cs\.toronto\.edu"):
        load(random_state=0)


@pytest.mark.parametrize("place", ["tar.gz", "tar.xz"])
def test_a_truncated_archive_is_refused_by_name(install, batches, place):
    archive = install(batches, place) / PLACES[place]
    archive.write_bytes(archive.read_bytes()[:100_000])
    with pytest.raises(DataFileError, match=rf"cifar-10-binary\.{place} is damaged"):
        load(random_state=0)


# The real files


def test_cifar10_has_1000_images_a_class_in_the_test_split_and_5000_in_the_other(real):
    source, batches = real
    assert source == "cifar-10-binary.tar.xz"
    counts = {name: np.bincount(cifar10._split(batch)[1]) for name, batch in batches.items()}
    assert counts.pop(cifar10.TEST).tolist() == [1000] * 10
    assert sum(counts.values()).tolist() == [5000] * 10


def test_cifar10_has_its_known_means_and_deviations_and_folds(real, monkeypatch):
    source, batches = real
    monkeypatch.setattr(cifar10, "_read_batches", lambda: (source, dict(batches)))
    dataset = load(random_state=0, images=10_000)
    assert [len(fold) for fold in in_order(dataset)] == [7000, 1500, 1500]
    assert np.bincount(dataset.folds.train.y).tolist() == [700] * 10
    assert len(dataset.test) == 10_000
    # of all 50,000 training images, as given in many programs; ours are of 7,000 of them
    np.testing.assert_allclose(dataset.info["mean"], [0.4914, 0.4822, 0.4465], atol=0.005)
    np.testing.assert_allclose(dataset.info["deviation"], [0.2470, 0.2435, 0.2616], atol=0.005)
