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
    def group(self) -> Tensor | None:
        """Index of each row's group, from 0; None if there are none."""
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
    ) -> Iterator[tuple[Tensor, ...]]:
        """Yield this rank's batches of an epoch (from 1), in a new order from the generator.

        A batch is rows and labels, and the groups of the rows if there are any.
        """
        drawn = None if self.weight is None else draw_weighted(self.weight, generator)
        held = (self.X, self.y) if self.group is None else (self.X, self.y, self.group)
        for index in index_batches(self.total, size, generator):
            place = (index if drawn is None else drawn[index]).to(self.device)
            yield tuple(part.index_select(0, place) for part in held)

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


class AnnotatedRows(Rows):
    """Rows with weights, groups, or both; an epoch visits a row as often as its weight says, on average."""

    def __new__(
        cls, X: Tensor, y: Tensor, weight: Tensor | None = None, group: Tensor | None = None
    ) -> Self:
        """Return the rows; weights are at least 0, and not all 0."""
        rows = super().__new__(cls, X, y)
        rows._weight, rows._group = weight, group
        return rows

    _weight: Tensor | None
    _group: Tensor | None

    @property
    def weight(self) -> Tensor | None:
        """How much each row counts; None if all count alike."""
        return self._weight

    @property
    def group(self) -> Tensor | None:
        """Index of each row's group, from 0; None if there are none."""
        return self._group

    def group_rows(self, groups: int) -> list[float]:
        """Return how many rows of each group an epoch visits, on average."""
        weight = torch.ones_like(self.y) if self.weight is None else self.weight
        group = torch.zeros_like(self.y) if self.group is None else self.group
        sums = torch.bincount(group.cpu(), weight.cpu().double(), minlength=groups)
        return (sums * (len(self.y) / sums.sum())).tolist()


def join_rows(first: Rows, second: Rows) -> Rows:
    """Return the rows of both, with their weights, where rows that have none count 1, and their groups."""
    X, y = (torch.cat(pair) for pair in zip(first, second, strict=True))
    weight = group = None
    if first.weight is not None or second.weight is not None:
        weights = (
            torch.ones(len(part.y), dtype=torch.float64, device=part.device)
            if part.weight is None
            else part.weight
            for part in (first, second)
        )
        weight = torch.cat(tuple(weights))
    if first.group is not None and second.group is not None:
        group = torch.cat([first.group, second.group])
    return Rows(X, y) if weight is None and group is None else AnnotatedRows(X, y, weight, group)


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
    n, _, height, width = images.shape
    device = images.device
    down, across = (-(-side // MARGIN) if side > 1 else 0 for side in (height, width))
    padded = functional.pad(images, (across, across, down, down))
    # First row and column of each crop.
    tops, lefts = (torch.randint(0, 2 * m + 1, (n, 1), device=device) for m in (down, across))
    windows = padded.unfold(2, height, 1).unfold(3, width, 1)  # a view of every crop there is
    return windows[torch.arange(n, device=device), :, tops.squeeze(1), lefts.squeeze(1)]


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
