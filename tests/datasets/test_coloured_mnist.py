from __future__ import annotations

import gzip
import hashlib
import struct
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from reliablenet.datasets import coloured_mnist, colouring
from reliablenet.datasets.coloured_mnist import CORRELATIONS, HASHES, WEAKENING, load
from reliablenet.datasets.colouring import COLOURS, Weakening, draw_colours, paint
from reliablenet.datasets.images import cut_images
from reliablenet.datasets.sources import SourceFile
from reliablenet.errors import DataFileError, InvalidParameterError

PATHS = [f"mnist/{name}" for name in HASHES]
ORIGINAL_FILES = coloured_mnist.FILES
WHITE = 9
PLAIN = Weakening(downsampling=1, noise=0.0, occlusion=0.0, window=0)
CLEAN = Weakening(WEAKENING.downsampling, 0.0, 0.0, 0)  # downsampled, and nothing else


def idx(values):
    """Bytes of an array in the IDX format, compressed."""
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return gzip.compress(header + values.tobytes(), mtime=0)


def draw_digits(n, seed):
    """Blots in the middle of the image in place of digits, and labels."""
    random = np.random.default_rng(seed)
    pixels = np.zeros((n, 28, 28), np.uint8)
    pixels[:, 6:22, 8:20] = random.integers(0, 256, (n, 16, 12))
    pixels[random.random(pixels.shape) < 0.5] = 0
    return pixels, (np.arange(n) % 10).astype(np.uint8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with a small MNIST: 600 training and 200 test images."""
    contents = [idx(values) for n, seed in [(600, 0), (200, 1)] for values in draw_digits(n, seed)]
    files = []
    for path, content in zip(PATHS, contents, strict=True):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        files.append(SourceFile(path, "", sha256, page="https://example.org"))
    monkeypatch.setattr(coloured_mnist, "FILES", files)
    monkeypatch.setenv("RELIABLENET_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def real(needs_files):
    """A tenth of MNIST."""
    needs_files(*PATHS)
    return load(random_state=0, images=6000)


def in_order(dataset):
    return [dataset.folds.train, dataset.folds.selection, dataset.folds.certification]


# Colours


@pytest.mark.parametrize("correlation", [*CORRELATIONS, 0.0, 1.0])
def test_each_digit_has_its_own_colour_as_often_as_asked(correlation):
    labels = np.arange(100_000) % 10
    own = draw_colours(labels, correlation, np.random.default_rng(0)) == labels
    four_errors = 4 * np.sqrt(correlation * (1 - correlation) / len(labels))
    assert own.mean() == pytest.approx(correlation, abs=four_errors)
    by_digit = np.bincount(labels[own], minlength=10) / 10_000
    np.testing.assert_allclose(by_digit, correlation, atol=four_errors * np.sqrt(10))


def test_the_nine_other_colours_are_equally_likely_for_every_digit():
    labels = np.arange(400_000) % 10
    counts = np.zeros((10, 10))
    np.add.at(counts, (labels, draw_colours(labels, 0.1, np.random.default_rng(1))), 1)
    others = counts[~np.eye(10, dtype=bool)] / 40_000
    np.testing.assert_allclose(others, 0.1, atol=4 * np.sqrt(0.1 * 0.9 / 40_000))


def test_a_digit_that_lost_its_colour_keeps_the_other_one_as_the_correlation_falls():
    labels = np.arange(5000) % 10
    levels = [draw_colours(labels, r, np.random.default_rng(2)) for r in CORRELATIONS]
    for higher, lower in pairwise(levels):
        lost = higher != labels
        assert np.array_equal(higher[lost], lower[lost])


def test_colours_differ_in_direction_so_that_a_darker_one_is_no_other():
    directions = COLOURS / np.linalg.norm(COLOURS, axis=1, keepdims=True)
    angles = np.degrees(np.arccos((directions @ directions.T).clip(-1, 1)))
    assert angles[~np.eye(10, dtype=bool)].min() == pytest.approx(30, abs=0.5)
    assert (COLOURS.max(axis=1) == 1).all()


# Painting


def paint_one_by_one(pixels, colours, weakening, random):
    """The same in plain loops."""
    n, side, block = len(pixels), weakening.side, weakening.downsampling
    occluded = random.random(n)
    corners = random.integers(0, side - weakening.window + 1, (2, n, 1))[..., 0]
    noise = random.standard_normal((n, 3, side, side))
    images = np.zeros((n, 3, 28, 28))
    for i in range(n):
        grey = np.zeros((28, 28))
        for r in range(0, 28, block):
            for c in range(0, 28, block):
                grey[r : r + block, c : c + block] = pixels[i, r : r + block, c : c + block].mean()
        if occluded[i] < weakening.occlusion:
            top, left = corners[:, i] * block
            grey[top : top + weakening.window * block, left : left + weakening.window * block] = 0
        for channel in range(3):
            images[i, channel] = grey / 255 * COLOURS[colours[i], channel]
            images[i, channel] += weakening.noise * np.kron(
                noise[i, channel], np.ones((block,) * 2)
            )
    return images.clip(0, 1)


@pytest.mark.parametrize(
    "weakening",
    [
        WEAKENING,
        PLAIN,
        Weakening(2, 0.3, 0.5, 5),
        Weakening(7, 0.1, 1.0, 4),
        Weakening(28, 0, 0, 1),
    ],
)
def test_images_are_those_of_a_plain_loop(weakening):
    pixels, labels = draw_digits(50, seed=3)
    painted = paint(pixels, labels, weakening, np.random.default_rng(4))
    expected = paint_one_by_one(pixels, labels, weakening, np.random.default_rng(4))
    assert painted.dtype == np.float32
    np.testing.assert_allclose(painted, expected, atol=1e-6)


def test_only_the_pixels_of_the_digit_are_coloured():
    pixels, labels = draw_digits(100, seed=5)
    painted = paint(pixels, labels, PLAIN, np.random.default_rng(0))
    expected = pixels[:, None] / np.float32(255) * COLOURS[labels][:, :, None, None]
    np.testing.assert_allclose(painted, expected, atol=1e-6)
    assert not painted.transpose(0, 2, 3, 1)[pixels == 0].any()


def test_without_noise_every_pixel_is_black_or_in_the_colour_of_its_image():
    pixels, labels = draw_digits(100, seed=6)
    painted = paint(pixels, labels, CLEAN, np.random.default_rng(0))
    largest = painted.max(axis=1, keepdims=True)
    np.testing.assert_allclose(painted, largest * COLOURS[labels][:, :, None, None], atol=1e-6)


def test_another_colour_changes_neither_digit_nor_noise_nor_occlusion():
    pixels, labels = draw_digits(300, seed=7)
    other = np.where(np.arange(300) < 150, labels, (labels + 1) % 10)
    first, second = (
        paint(pixels, colours, WEAKENING, np.random.default_rng(8)) for colours in (labels, other)
    )
    assert np.array_equal(first[:150], second[:150])
    assert (first[150:] != second[150:]).any(axis=(1, 2, 3)).all()
    background = paint(pixels, np.full(300, WHITE), CLEAN, np.random.default_rng(0))[:, :1] == 0
    assert (first == second)[np.broadcast_to(background, first.shape)].all()


def test_occlusion_blackens_one_window_of_its_size_as_often_as_asked():
    weakening = Weakening(downsampling=2, noise=0.0, occlusion=0.3, window=5)
    white = np.full((4000, 28, 28), 255, np.uint8)
    painted = paint(white, np.full(4000, WHITE), weakening, np.random.default_rng(9))
    dark = (painted[:, 0] == 0).sum(axis=(1, 2))
    assert set(dark.tolist()) == {0, 10 * 10}
    assert (dark > 0).mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 4000))
    tops = (painted[dark > 0, 0] == 0).any(axis=2).argmax(axis=1)
    assert set(tops.tolist()) == set(range(0, 19, 2))


def test_noise_has_the_standard_deviation_asked_for():
    grey = np.full((300, 28, 28), 128, np.uint8)
    weakening = Weakening(downsampling=1, noise=0.1, occlusion=0.0, window=0)
    painted = paint(grey, np.full(300, WHITE), weakening, np.random.default_rng(10))
    assert painted.std() == pytest.approx(0.1, rel=0.01)
    assert painted.mean() == pytest.approx(128 / 255, abs=0.001)
    by_channel = painted.transpose(1, 0, 2, 3).reshape(3, -1)
    assert np.abs(np.corrcoef(by_channel)[np.triu_indices(3, 1)]).max() < 0.01


def test_the_bits_of_painted_images_are_known():
    pixels, labels = draw_digits(50, seed=12)
    painted = paint(pixels, labels, Weakening(4, 0.12, 0.2, 3), np.random.default_rng(0))
    digest = hashlib.sha256(painted.astype("<f4").tobytes()).hexdigest()
    assert digest == "fc4a76e5150442a3e1502f5785ccac5a1521618824bb59cbbc0eccb3bfafe85c"


def test_images_do_not_depend_on_how_many_are_painted_at_a_time(monkeypatch):
    pixels, labels = draw_digits(50, seed=11)
    at_once = paint(pixels, labels, WEAKENING, np.random.default_rng(0))
    monkeypatch.setattr(colouring, "CHUNK", 7)
    assert np.array_equal(at_once, paint(pixels, labels, WEAKENING, np.random.default_rng(0)))


# Loading


def test_folds_shift_sweep_and_test_have_their_sizes_shapes_and_labels(folder):
    dataset = load(random_state=0)
    assert [len(fold) for fold in in_order(dataset)] == [420, 90, 90]
    others = [dataset.test, dataset.shifts["correlation 0.1"], *dataset.sweeps.values()]
    assert [len(fold) for fold in others] == [200] * 11
    for fold in [*in_order(dataset), *others]:
        assert fold.X.shape[1:] == (3, 28, 28)
        assert fold.X.dtype == np.float32
        assert fold.X.min() >= 0
        assert fold.X.max() <= 1
        assert fold.y.dtype == np.intp
        assert np.bincount(fold.y).tolist() == [len(fold) // 10] * 10
    assert list(dataset.sweeps) == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert dataset.info["files"] == PATHS
    assert dataset.info["rows"] == 600


def test_every_training_image_is_in_exactly_one_fold(folder):
    clean = load(random_state=3, correlation=1.0, weakening=PLAIN)
    grey = np.concatenate([fold.X.max(axis=1) for fold in in_order(clean)])
    seen = sorted(image.tobytes() for image in np.rint(grey * 255).astype(np.uint8))
    assert seen == sorted(image.tobytes() for image in draw_digits(600, 0)[0])


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(folder, check_seeds):
    check_seeds(load, lambda dataset: dataset.test)


def test_the_shift_and_the_sweep_give_the_same_images_each_time(folder):
    dataset = load(random_state=0)
    for level in (0.5, 0.1):
        assert np.array_equal(dataset.sweeps[level].X, dataset.sweeps[level].X)
    assert np.array_equal(dataset.sweeps[0.9].X, dataset.test.X)
    assert np.array_equal(dataset.sweeps[0.1].X, dataset.shifts["correlation 0.1"].X)
    kept = (dataset.sweeps[0.9].X == dataset.sweeps[0.1].X).all(axis=(1, 2, 3)).mean()
    assert kept == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 200))  # own at both, or other at both


def test_the_correlation_is_that_of_folds_and_test_and_not_of_the_shift(folder):
    usual, uncoloured = load(random_state=0), load(random_state=0, correlation=0.1)
    assert np.array_equal(uncoloured.test.X, usual.sweeps[0.1].X)
    assert np.array_equal(uncoloured.sweeps[0.9].X, usual.sweeps[0.9].X)
    assert not np.array_equal(uncoloured.folds.train.X, usual.folds.train.X)


def test_a_part_of_the_images_is_stratified_and_comes_in_the_same_shares(folder):
    dataset = load(random_state=0, images=200)
    assert [len(fold) for fold in in_order(dataset)] == [140, 30, 30]
    assert [np.bincount(fold.y).tolist() for fold in in_order(dataset)] == [
        [14] * 10,
        [3] * 10,
        [3] * 10,
    ]
    assert len(dataset.test) == 200


# Wrong settings and files


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"correlation": 1.1}, r"`correlation` of coloured_mnist.load must lie in \[0, 1\]"),
        ({"images": 601}, "`images` of coloured_mnist.load must be at most 600; got 601"),
        ({"images": 2.5}, "`images` of coloured_mnist.load must be a whole number"),
    ],
)
def test_settings_outside_their_domain_are_refused(folder, settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        load(random_state=0, **settings)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"downsampling": 3}, "`downsampling` of Weakening must be a divisor of 28; got 3"),
        ({"noise": -0.1}, "`noise` of Weakening must be a finite number of at least 0"),
        ({"occlusion": 2}, r"`occlusion` of Weakening must lie in \[0, 1\]; got 2"),
        ({"downsampling": 4, "window": 8}, "`window` of Weakening must be at most 7"),
    ],
)
def test_knobs_outside_their_domain_are_refused(knobs, message):
    with pytest.raises(InvalidParameterError, match=message):
        replace(WEAKENING, **knobs)


@pytest.mark.parametrize("path", PATHS)
def test_a_truncated_file_is_refused_by_name(folder, path):
    content = (folder / path).read_bytes()
    (folder / path).write_bytes(content[: len(content) // 2])
    with pytest.raises(DataFileError, match=path):
        load(random_state=0)


def test_another_file_under_the_right_name_is_refused(folder):
    (folder / PATHS[0]).write_bytes((folder / PATHS[2]).read_bytes())
    with pytest.raises(DataFileError, match="SHA-256"):
        load(random_state=0)


def test_the_folder_of_torchvision_will_do(folder, monkeypatch):
    expected = load(random_state=0).test
    (folder / "mnist").rename(folder / "moved")
    (folder / "MNIST").mkdir()
    (folder / "moved").rename(folder / "MNIST/raw")
    files = [
        SourceFile(file.path, "", file.sha256, file.page, original.alternatives)
        for file, original in zip(coloured_mnist.FILES, ORIGINAL_FILES, strict=True)
    ]
    monkeypatch.setattr(coloured_mnist, "FILES", files)
    assert np.array_equal(load(random_state=0).test.X, expected.X)


# The real files


def test_mnist_has_its_known_label_counts(real):
    counts = np.bincount(real.test.y).tolist()
    assert counts == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    labels = coloured_mnist._read(coloured_mnist.FILES[1], 8)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(labels).tolist() == counts
    used = np.bincount(np.concatenate([fold.y for fold in in_order(real)]))
    np.testing.assert_allclose(used, np.array(counts) / 10, atol=3)  # one a cut
    assert [len(part) for part in cut_images(labels, None, 0, "")] == [42_000, 9_000, 9_000]


def test_the_bits_of_seed_0_are_known(real):
    digest = hashlib.sha256()
    for fold in [*in_order(real), real.test, real.shifts["correlation 0.1"]]:
        digest.update(fold.X.astype("<f4").tobytes())
        digest.update(fold.y.astype("<i8").tobytes())
    assert digest.hexdigest() == "01dc2c7dcf4d5b4c88289a3ec1be95f68bd45cd04b8a5fa651892e2d2b039661"
