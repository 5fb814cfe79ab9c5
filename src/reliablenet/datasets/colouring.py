"""Grey digits made hard to read and coloured: what turns MNIST into Coloured MNIST."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_count, check_positive, check_probability, parameter_error
from reliablenet.datasets.images import chunks

SIDE = 28
COLOURS = np.array(  # neighbours are 30 degrees apart, seen from black
    [
        (1.00, 0.00, 0.00),  # 0 red
        (0.00, 1.00, 0.00),  # 1 green
        (0.00, 0.00, 1.00),  # 2 blue
        (1.00, 0.58, 0.00),  # 3 orange
        (0.00, 1.00, 0.58),  # 4 mint
        (0.58, 0.00, 1.00),  # 5 violet
        (0.58, 1.00, 0.00),  # 6 lime
        (0.00, 0.58, 1.00),  # 7 azure
        (1.00, 0.00, 0.58),  # 8 rose
        (1.00, 1.00, 1.00),  # 9 white
    ],
    np.float32,
)
CHUNK = 1000  # images painted at a time, so that the work stays in the processor's cache


@dataclass(frozen=True)
class Weakening:
    """How much the shape of a digit is weakened.

    Parameters
    ----------
    downsampling : int
        Side of the squares of pixels that are replaced by their mean; a divisor of 28.
    noise : float
        Standard deviation of the normal noise that each square gets in each channel.
    occlusion : float in [0, 1]
        Probability that a square window of the image is black (before the noise).
    window : int
        Side of that window in downsampled pixels.
    """

    downsampling: int
    noise: float
    occlusion: float
    window: int

    def __post_init__(self) -> None:
        check_count("downsampling", self.downsampling, "Weakening")
        if SIDE % self.downsampling:
            raise parameter_error(
                "downsampling", "Weakening", f"be a divisor of {SIDE}", self.downsampling
            )
        check_positive("noise", self.noise, "Weakening", zero=True)
        check_probability("occlusion", self.occlusion, "Weakening", zero=True)
        check_count("window", self.window, "Weakening", minimum=0)
        if self.window > self.side:
            raise parameter_error(
                "window", "Weakening", f"be at most {self.side}, the downsampled side", self.window
            )

    @property
    def side(self) -> int:
        """Side of the downsampled image."""
        return SIDE // self.downsampling


def draw_colours(
    labels: NDArray[np.intp], correlation: float, random: np.random.Generator
) -> NDArray[np.intp]:
    """Return a colour for each digit: its own, or with 1 - correlation any of the nine others.

    Parameters
    ----------
    labels : array of shape (n,)
    correlation : float
    random : Generator
        As much is drawn from it for any correlation, and a digit that loses its own colour as the
        correlation falls keeps the other one from there on.

    Returns
    -------
    array of shape (n,), rows of `COLOURS`

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.datasets.colouring import draw_colours
    >>> draw_colours(np.arange(5), 1.0, np.random.default_rng(0)).tolist()
    [0, 1, 2, 3, 4]
    """
    own = random.random(len(labels)) < correlation
    others = (labels + random.integers(1, len(COLOURS), len(labels))) % len(COLOURS)
    return np.where(own, labels, others)


def paint(
    pixels: NDArray[np.uint8],
    colours: NDArray[np.intp],
    weakening: Weakening,
    random: np.random.Generator,
) -> NDArray[np.float32]:
    """Downsample, occlude and colour grey images, add noise, and bring them back to size.

    Parameters
    ----------
    pixels : array of shape (n, 28, 28)
    colours : array of shape (n,), rows of `COLOURS`
    weakening : Weakening
    random : Generator

    Returns
    -------
    array of shape (n, 3, 28, 28), in [0, 1]

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.datasets.colouring import Weakening, paint
    >>> plain = Weakening(downsampling=1, noise=0, occlusion=0, window=0)
    >>> grey = np.full((1, 28, 28), 51, np.uint8)
    >>> orange = paint(grey, np.array([3]), plain, np.random.default_rng(0))
    >>> orange.shape, (255 * orange[0, :, 0, 0]).round().tolist()
    ((1, 3, 28, 28), [51.0, 30.0, 0.0])
    """
    n, side, block = len(pixels), weakening.side, weakening.downsampling
    occluded = random.random(n) < weakening.occlusion
    corner = random.integers(0, side - weakening.window + 1, (2, n, 1))
    offset = np.arange(side) - corner
    rows, columns = (offset >= 0) & (offset < weakening.window)
    hidden = occluded[:, None, None] & rows[:, :, None] & columns[:, None, :]
    painted = np.empty((n, 3, SIDE, SIDE), np.float32)
    blocks = painted.reshape(n, 3, side, block, side, block)
    for part in chunks(n, CHUNK):
        shape = _block_sums(pixels[part], block) / np.float32(255 * block * block)
        shape[hidden[part]] = 0.0
        image = shape[:, None] * COLOURS[colours[part], :, None, None]
        # Drawn in float64 and rounded: what libraries differ in is below float32.
        noise = random.standard_normal(image.shape).astype(np.float32)
        image += noise * np.float32(weakening.noise)
        image.clip(0.0, 1.0, out=image)
        blocks[part] = image[:, :, :, None, :, None]
    return painted


def _block_sums(pixels: NDArray[np.uint8], block: int) -> NDArray[np.float32]:
    """Return the sum of each square of pixels; a sum of whole numbers has no rounding."""
    side = SIDE // block
    sums = np.zeros((len(pixels), side, side), np.uint32)
    for row in range(block):
        for column in range(block):
            sums += pixels[:, row::block, column::block]
    return sums.astype(np.float32)
