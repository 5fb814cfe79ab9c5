"""Augmentation: training images at random mirrored and moved, so that a network sees more of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from reliablenet._checks import parameter_error

MARGIN = 8  # an image is moved by up to this part of its side


def flip(images: Tensor) -> Tensor:
    """Return images of shape (n, channels, height, width), half of them mirrored left to right."""
    mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def crop(images: Tensor) -> Tensor:
    """Return images moved by up to an eighth of each side, with zeros where nothing was.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> crop(torch.arange(1.0, 9.0).reshape(1, 1, 1, 8))
    tensor([[[[0., 1., 2., 3., 4., 5., 6., 7.]]]])
    """
    n, channels, height, width = images.shape
    device = images.device
    down, across = (-(-side // MARGIN) if side > 1 else 0 for side in (height, width))
    padded = functional.pad(images, (across, across, down, down))
    # First row and column of each crop.
    tops, lefts = (torch.randint(0, 2 * m + 1, (n, 1), device=device) for m in (down, across))
    rows = tops + torch.arange(height, device=device)
    columns = lefts + torch.arange(width, device=device)
    image = torch.arange(n, device=device)[:, None, None, None]
    channel = torch.arange(channels, device=device)[:, None, None]
    return padded[image, channel, rows[:, None, :, None], columns[:, None, None, :]]


AUGMENTATIONS = {"flips": (flip,), "crops": (crop,), "flips+crops": (flip, crop)}


def check_augment(name: Any, owner: str) -> None:
    """Raise unless this names an augmentation, or is None."""
    if name is not None and (not isinstance(name, str) or name not in AUGMENTATIONS):
        raise parameter_error("augment", owner, f"be None or one of {list(AUGMENTATIONS)}", name)


def check_images(name: str | None, shape: Sequence[int], owner: str) -> None:
    """Raise if there is something to augment and rows are no images."""
    if name is not None and len(shape) != 3:
        raise parameter_error(
            "augment",
            owner,
            f"be None for inputs of shape {tuple(shape)}",
            name,
            "Only images of shape (channels, height, width) can be mirrored and moved.",
        )


def augment_images(images: Tensor, name: str | None) -> Tensor:
    """Return a batch after an augmentation, which draws from torch's global generator."""
    for change in AUGMENTATIONS.get(name or "", ()):
        images = change(images)
    return images
