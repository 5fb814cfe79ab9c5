"""CIFAR-10: small photographs in ten classes; and the same in grey, with noise, and darker."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reliablenet.datasets.dataset import Dataset, LazyFolds
from reliablenet.datasets.images import chunks, cut_images
from reliablenet.datasets.sources import SourceFile, fetch, find
from reliablenet.datasets.unpacking import read_members
from reliablenet.tables.folds import Fold, Folds

PAGE = "https://www.cs.toronto.edu/~kriz/cifar.html"
ARCHIVE = SourceFile(
    "cifar10/cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    PAGE,
)
ARCHIVES = (ARCHIVE.path, "cifar10/cifar-10-binary.tar.xz")  # any packing: its members are verified
FOLDER = "cifar-10-batches-bin"
TEST = "test_batch.bin"
MEMBERS = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    TEST: "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
IMAGE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32  # a label and the pixels, channel by channel
LUMA = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601, as in PIL and torchvision
NOISE, BRIGHTNESS = 0.15, 0.60
NOISES = (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
CHUNK = 500  # images at a time: temporary arrays stay small beside the folds

Pixels = NDArray[np.uint8]
Images = NDArray[np.float32]
Statistics = NDArray[np.float32]


def load(random_state: int = 0, images: int | None = None) -> Dataset:
    """Load CIFAR-10, normalised by the channel means and deviations of the training fold.

    The folds are cut from the 50,000 training images; the 10,000 test images are ``test``. The
    shift and the sweep are the test images again: in grey, with noise and darker; and with noise
    of one standard deviation after another, a multiple of the same draws. Pixels are changed
    before they are normalised.

    Parameters
    ----------
    random_state : int
        Decides the folds and the noise.
    images : int, optional
        Use so many training images, stratified, instead of all.

    Returns
    -------
    Dataset
        Images of shape (n, 3, 32, 32), float32; labels 0 to 9, named in ``info["classes"]``.
    """
    source, batches = _read_batches()
    shown, digits = _split(batches.pop(TEST))
    labels = np.concatenate([_split(batch)[1] for batch in batches.values()])
    parts = cut_images(labels, images, random_state, "cifar10.load")
    arrays = _gather(batches, parts)
    mean, deviation = channel_statistics(arrays[0])
    for array in arrays:
        array /= np.float32(255)
        _normalise(array, mean, deviation)

    def test_with(noise: float, grey: bool = False, brightness: float = 1.0) -> Fold:
        random = np.random.default_rng([random_state, 0])
        changed = corrupt(shown, noise, random, grey=grey, brightness=brightness)
        return Fold(_normalise(changed, mean, deviation), digits)

    shift = partial(test_with, NOISE, grey=True, brightness=BRIGHTNESS)
    return Dataset(
        name="cifar10",
        folds=Folds(
            *(Fold(array, labels[part]) for array, part in zip(arrays, parts, strict=True))
        ),
        shifts=LazyFolds({"grayscale, noise, dark": shift}),
        sweeps=LazyFolds({noise: partial(test_with, noise) for noise in NOISES}),
        test=test_with(0.0),
        info={
            "files": [source],
            "rows": sum(map(len, parts)),
            "classes": list(CLASSES),
            "mean": mean.tolist(),
            "deviation": deviation.tolist(),
        },
    )


def corrupt(
    pixels: Pixels,
    noise: float,
    random: np.random.Generator,
    *,
    grey: bool = False,
    brightness: float = 1.0,
) -> Images:
    """Turn bytes into images in [0, 1]: first grey, then noise, then the brightness.

    Parameters
    ----------
    pixels : array of shape (n, 3, height, width)
    noise : float
        Standard deviation of normal noise, drawn for each pixel and channel; the sum is clipped to
        [0, 1].
    random : Generator
    grey : bool
        Replace the channels by their luma.
    brightness : float in [0, 1]
        Factor.

    Returns
    -------
    array of the shape of pixels

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.datasets.cifar10 import corrupt
    >>> pixels = np.full((1, 3, 2, 2), 255, np.uint8)
    >>> corrupt(pixels, 0.0, np.random.default_rng(0), brightness=0.5).max().item()
    0.5
    """
    images = np.empty(pixels.shape, np.float32)
    for part in chunks(len(pixels), CHUNK):
        image = images[part]
        np.divide(pixels[part], np.float32(255), out=image)
        if grey:
            red, green, blue = (image[:, c] * LUMA[c] for c in range(3))
            image[:] = (red + green + blue)[:, None]
        if noise:
            # Drawn in float64 and rounded: what libraries differ in is below float32.
            image += random.standard_normal(image.shape).astype(np.float32) * np.float32(noise)
            image.clip(0.0, 1.0, out=image)
        image *= np.float32(brightness)
    return images


def channel_statistics(images: Images) -> tuple[Statistics, Statistics]:
    """Return the mean and standard deviation of each channel of bytes, as shares of 255.

    Parameters
    ----------
    images : array of shape (n, channels, height, width)
        Whole numbers from 0 to 255, so that their float64 sums are exact in any order.

    Returns
    -------
    mean, deviation : arrays of shape (channels,)

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.datasets.cifar10 import channel_statistics
    >>> mean, deviation = channel_statistics(np.float32([[[[0, 255]]], [[[0, 255]]]]))
    >>> mean.tolist(), deviation.tolist()
    ([0.5], [0.5])
    """
    sums, squares = np.zeros((2, images.shape[1]))
    for part in chunks(len(images), CHUNK):
        chunk = images[part].astype(np.float64)
        sums += chunk.sum(axis=(0, 2, 3))
        squares += np.square(chunk, out=chunk).sum(axis=(0, 2, 3))
    count = images.size // images.shape[1]
    mean = sums / count
    deviation = np.sqrt(squares / count - mean**2)
    return (mean / 255).astype(np.float32), (deviation / 255).astype(np.float32)


def _read_batches() -> tuple[str, dict[str, bytes]]:
    """Return where the six verified batches were found, and the batches."""
    unpacked = [
        SourceFile(f"cifar10/{FOLDER}/{name}", "", sha256, PAGE, (f"{FOLDER}/{name}",))
        for name, sha256 in MEMBERS.items()
    ]
    first = unpacked[0]
    if find((first.path, *first.alternatives)):
        return FOLDER, {file.name: fetch(file).read_bytes() for file in unpacked}
    archive = find(ARCHIVES) or fetch(ARCHIVE)
    hashes = {f"{FOLDER}/{name}": sha256 for name, sha256 in MEMBERS.items()}
    members = read_members(archive, hashes)
    return archive.name, {Path(name).name: content for name, content in members.items()}


def _split(batch: bytes) -> tuple[Pixels, NDArray[np.intp]]:
    """Return images and labels of a batch; the images share its memory."""
    records = np.frombuffer(batch, np.uint8).reshape(-1, RECORD)
    return records[:, 1:].reshape(-1, *IMAGE), records[:, 0].astype(np.intp)


def _gather(batches: dict[str, bytes], parts: list[NDArray[np.intp]]) -> list[Images]:
    """Return the images of each part as float32 bytes; each batch is let go when it is done."""
    arrays = [np.empty((len(part), *IMAGE), np.float32) for part in parts]
    start = 0
    for name in list(batches):
        images = _split(batches.pop(name))[0]
        stop = start + len(images)
        for array, part in zip(arrays, parts, strict=True):
            low, high = np.searchsorted(part, (start, stop))
            array[low:high] = images[part[low:high] - start]
        start = stop
    return arrays


def _normalise(images: Images, mean: Statistics, deviation: Statistics) -> Images:
    """Normalise images in [0, 1] in place, and return them."""
    images -= mean[:, None, None]
    images /= deviation[:, None, None]
    return images
