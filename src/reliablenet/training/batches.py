"""`Rows`: a fold in memory, the order in which its rows are visited, and how images are varied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from reliablenet._checks import parameter_error
from reliablenet.errors import InvalidDataError
from reliablenet.risk.event import check_real
from reliablenet.training import ranks

MARGIN = 8  # an image is moved by up to this part of its side


class Rows(NamedTuple):
    """Inputs of shape (n, ...) and class indices of shape (n,), in memory.

    Its methods are all that the training loop asks of rows; `Stream` has the same.
    """

    X: Tensor
    y: Tensor

    @property
    def weight(self) -> Tensor | None:
        """How much each row counts; None if all count alike."""
        return None

    @property
    def total(self) -> int:
        """Number of rows, over all ranks."""
        return len(self.y)

    @property
    def device(self) -> torch.device:
        """Where batches arrive."""
        return self.X.device

    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's batches of an epoch (from 1), in a new order from the generator."""
        drawn = None if self.weight is None else draw_weighted(self.weight, generator)
        for index in index_batches(self.total, size, generator):
            place = (index if drawn is None else drawn[index]).to(self.device)
            yield self.X.index_select(0, place), self.y.index_select(0, place)

    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's rows in any pieces, each row of the fold on one rank."""
        mine = slice(ranks.rank(), None, ranks.world())
        yield self.X[mine], self.y[mine]

    def largest(self) -> float:
        """Return the largest size of an input."""
        return float(self.X.abs().max())

    def generators(self) -> list[torch.Generator]:
        """Return the random generators of one's own that decide the order of the batches."""
        return []


class WeightedRows(Rows):
    """Rows that an epoch visits as often as their weights say, on average."""

    def __new__(cls, X: Tensor, y: Tensor, weight: Tensor) -> Self:
        """Return the rows; weights are at least 0, and not all 0."""
        rows = super().__new__(cls, X, y)
        rows._weight = weight
        return rows

    _weight: Tensor

    @property
    def weight(self) -> Tensor:
        """How much each row counts."""
        return self._weight


def join_rows(first: Rows, second: Rows) -> Rows:
    """Return the rows of both, with their weights if both have some."""
    X, y = (torch.cat(pair) for pair in zip(first, second, strict=True))
    if first.weight is None or second.weight is None:
        return Rows(X, y)
    return WeightedRows(X, y, torch.cat([first.weight, second.weight]))


def check_rows(name: str, rows: Rows, network: nn.Module) -> None:
    """Raise unless a network can be trained on the rows; looks at shapes and types, not at values."""
    X, y = check_real("X", rows.X), check_real("y", rows.y)
    if y.dtype != torch.int64 or y.ndim != 1 or len(y) == 0 or X.shape[:1] != y.shape:
        raise InvalidDataError(
            f"`y` of the {name} given to train must hold one class index of type int64 for each row "
            f"of `X`, and at least one; got {y.dtype}, shapes {tuple(X.shape)} and {tuple(y.shape)}."
        )
    kinds = {weight.dtype for weight in network.parameters() if weight.is_floating_point()}
    if X.is_floating_point() and kinds and X.dtype not in kinds:
        raise InvalidDataError(
            f"`X` of the {name} given to train must be of the network's type, "
            f"{' or '.join(sorted(map(str, kinds)))}; got {X.dtype}."
        )


def index_batches(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the row numbers of this rank's batches; all ranks draw one order and share each batch.

    ``size`` is for one rank: together the ranks take ``size`` times as many as they are. Of the last
    batch each takes its share; were that nothing for some, the batch before it takes these rows too.
    """
    world, rank = ranks.world(), ranks.rank()
    if n < world:
        raise InvalidDataError(
            f"Training on {world} processes needs at least as many rows; got {n}. Start fewer."
        )
    order = torch.randperm(n, generator=generator)
    start = 0
    while start < n:
        stop = start + size * world
        if n - stop < world:
            stop = n
        yield order[start:stop].tensor_split(world)[rank]
        start = stop


def draw_weighted(weight: Tensor, generator: torch.Generator) -> Tensor:
    """Return as many row numbers as there are rows, each as often as its weight says.

    A systematic sample: a row of weight w, where 1 is the mean, comes up w times rounded up or down.

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training.batches import draw_weighted
    >>> draw_weighted(torch.tensor([2.0, 1.0, 1.0, 0.0]), torch.Generator()).tolist()
    [0, 0, 1, 2]
    """
    n = len(weight)
    ends = weight.cpu().double().cumsum(0)
    places = torch.arange(n, dtype=torch.float64)
    places += torch.rand((), dtype=torch.float64, generator=generator)
    return torch.searchsorted(ends, places * (ends[-1] / n), right=True).clamp_(max=n - 1)


def flip(images: Tensor) -> Tensor:
    """Return images of shape (n, channels, height, width), half of them mirrored left to right."""
    mirrored = torch.rand(len(images), 1, 1, 1, device=images.device) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def crop(images: Tensor) -> Tensor:
    """Return images moved by up to an eighth of each side, with zeros where nothing was.

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training.batches import crop
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
