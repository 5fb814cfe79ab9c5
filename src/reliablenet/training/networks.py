"""Networks: for tables the paper's and our own ensemble, for images two convolutional ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from reliablenet._checks import check_count, is_real, parameter_error
from reliablenet.risk.members import average_members
from reliablenet.tables.piecewise import bin_columns

BIAS_SPREAD = 0.05  # between the members' first biases


class Network(nn.Module):
    """A body that computes features and a head that turns them into logits.

    Parameters
    ----------
    body : nn.Module
        Maps a batch of inputs to features of shape (n, body_width).
    head : nn.Module
        Maps features to logits of shape (n, K).
    """

    def __init__(self, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of a batch."""
        logits: Tensor = self.head(self.body(x))
        return logits


def mlp(n_features: int, n_classes: int, *, width: int = 128, depth: int = 2) -> Network:
    """Return the paper's tabular network: ``depth`` hidden ReLU layers of ``width`` units.

    Parameters
    ----------
    n_features, n_classes : int
    width, depth : int

    Returns
    -------
    Network

    Examples
    --------
    >>> from reliablenet.training import mlp
    >>> sum(p.numel() for p in mlp(10, 2).parameters())
    18178
    """
    for name, value in (("n_features", n_features), ("width", width), ("depth", depth)):
        check_count(name, value, "mlp")
    check_count("n_classes", n_classes, "mlp", minimum=2)
    layers: list[nn.Module] = []
    for layer in range(depth):
        layers += [nn.Linear(width if layer else n_features, width), nn.ReLU()]
    return Network(nn.Sequential(*layers), nn.Linear(width, n_classes))


def tabular(
    n_features: int,
    n_classes: int,
    *,
    width: int = 96,
    depth: int = 2,
    members: int = 8,
    dropout: float = 0.1,
) -> BatchEnsemble:
    """Return the default network for tables: an ensemble of small ReLU networks.

    Parameters
    ----------
    n_features, n_classes : int
    width, depth : int
        Units of a hidden layer, and hidden layers.
    members : int
    dropout : float in [0, 1)

    Returns
    -------
    BatchEnsemble

    Examples
    --------
    >>> from reliablenet.training import tabular
    >>> sum(p.numel() for p in tabular(10, 2).parameters())
    15568
    """
    sizes = {"n_features": n_features, "width": width, "depth": depth, "members": members}
    for name, value in sizes.items():
        check_count(name, value, "tabular")
    check_count("n_classes", n_classes, "tabular", minimum=2)
    if not is_real(dropout) or not 0.0 <= dropout < 1.0:
        raise parameter_error("dropout", "tabular", "lie in [0, 1)", dropout)
    return BatchEnsemble(n_features, n_classes, width, depth, members, float(dropout))


def cnn5(shape: Sequence[int], n_classes: int, *, width: int = 32) -> Network:
    """Return a convolutional network of five layers with weights: four 3x3 convolutions, one linear.

    The convolutions have ``width``, 2 ``width``, 2 ``width`` and 2 ``width`` channels, each with a
    ReLU, and all but the third with max-pooling by 2, which rounds sizes up. The paper says no
    more than "five-layer". Without batch normalisation, so that batches may be of any size.

    Parameters
    ----------
    shape : (channels, height, width of the image)
        Any height and width.
    n_classes : int
    width : int

    Returns
    -------
    Network

    Examples
    --------
    >>> from reliablenet.training import cnn5
    >>> network = cnn5((3, 28, 28), 10)
    >>> network.head.in_features, sum(p.numel() for p in network.parameters())
    (1024, 103498)
    """
    channels, *size = _check_shape(shape, n_classes, width, "cnn5")
    wide = 2 * width

    def convolve(inputs: int, outputs: int, *, pooled: bool = True) -> list[nn.Module]:
        # Pooled before it is rectified: the same bits, and a quarter of the pixels to rectify.
        pool = [nn.MaxPool2d(2, ceil_mode=True)] if pooled else []
        return [nn.Conv2d(inputs, outputs, 3, padding=1), *pool, nn.ReLU()]

    body = nn.Sequential(
        *convolve(channels, width),
        *convolve(width, wide),
        *convolve(wide, wide, pooled=False),
        *convolve(wide, wide),
        nn.Flatten(),
    )
    height, breadth = (-(-side // 8) for side in size)  # three halvings, each rounded up
    return Network(body, nn.Linear(wide * height * breadth, n_classes))


def resnet18(shape: Sequence[int], n_classes: int, *, width: int = 64) -> Network:
    """Return ResNet-18 with the stem for small images: one 3x3 convolution and no max-pooling.

    Four stages of two basic blocks with ``width`` to 8 ``width`` channels, batch normalisation, and
    global average pooling (He et al., 2016).

    Parameters
    ----------
    shape : (channels, height, width of the image)
        Any height and width.
    n_classes : int
    width : int
        Channels of the first stage; 64 is the paper's, 8 trains on a CPU.

    Returns
    -------
    Network

    Examples
    --------
    >>> from reliablenet.training import resnet18
    >>> network = resnet18((3, 32, 32), 10)
    >>> network.head.in_features, sum(p.numel() for p in network.parameters())
    (512, 11173962)
    """
    channels = _check_shape(shape, n_classes, width, "resnet18")[0]
    layers: list[nn.Module] = [*_normalised(channels, width, 3), nn.ReLU()]
    inputs = width
    for stage in range(4):
        outputs = width * 2**stage
        layers += [BasicBlock(inputs, outputs, 2 if stage else 1), BasicBlock(outputs, outputs)]
        inputs = outputs
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(body, nn.Linear(inputs, n_classes))


def resnet9(shape: Sequence[int], n_classes: int, *, width: int = 32) -> Network:
    """Return a residual network for small images that two cores can train: nine 3x3 convolutions.

    Three stages with ``width``, 2 ``width`` and 4 ``width`` channels. Each is a convolution, max-pooling
    by 2, which rounds sizes up, and a basic block; so that all convolutions but the first of a stage see
    few pixels. Batch normalisation and global average pooling, as in `resnet18`, which takes twenty
    times as many operations for an image.

    Parameters
    ----------
    shape : (channels, height, width of the image)
        Any height and width.
    n_classes : int
    width : int
        Channels of the first stage.

    Returns
    -------
    Network

    Examples
    --------
    >>> from reliablenet.training import resnet9
    >>> network = resnet9((3, 32, 32), 10)
    >>> network.head.in_features, sum(p.numel() for p in network.parameters())
    (128, 482730)
    """
    inputs = _check_shape(shape, n_classes, width, "resnet9")[0]
    layers: list[nn.Module] = []
    for outputs in (width, 2 * width, 4 * width):
        pool = nn.MaxPool2d(2, ceil_mode=True)
        layers += [*_normalised(inputs, outputs, 3), nn.ReLU(), pool, BasicBlock(outputs, outputs)]
        inputs = outputs
    body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(body, nn.Linear(inputs, n_classes))


class BatchEnsemble(nn.Module):
    """Members that share their weight matrices and differ in factors, biases and heads.

    Each unit of a hidden layer has a factor of its own in each member, before the weights and after
    them (Wen et al. 2020); the first layer's weights see the same inputs for all members and are
    applied once. Factors begin as random signs after the first layer, which sets the members apart,
    and as ones elsewhere.

    In training mode it returns the members' logits, of shape (n, members, K), so that each is
    trained as a classifier of its own; in evaluation mode the logarithm of their mean probabilities,
    of shape (n, K).

    Parameters
    ----------
    n_features, n_classes : int
    width, depth, members : int
    dropout : float in [0, 1)
        Share of hidden units left out in training.
    """

    def __init__(
        self, n_features: int, n_classes: int, width: int, depth: int, members: int, dropout: float
    ) -> None:
        super().__init__()
        self.dropout = dropout
        inputs = [n_features, *[width] * (depth - 1)]
        self.shared = nn.ModuleList(nn.Linear(size, width, bias=False) for size in inputs)
        self.before = nn.ParameterList(torch.ones(members, 1, width) for _ in inputs[1:])
        signs = torch.randint(0, 2, (members, 1, width)) * 2.0 - 1.0
        self.after = nn.ParameterList([signs, *(torch.ones_like(signs) for _ in inputs[1:])])
        self.bias = nn.ParameterList(_first_bias(size, width, members) for size in inputs)
        self.head = nn.Parameter(torch.randn(members, width, n_classes) / math.sqrt(width))
        self.head_bias = nn.Parameter(torch.zeros(members, 1, n_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return the members' logits while training, else one vector of logits a row."""
        first, *others = self.shared
        hidden = torch.addcmul(self.bias[0], first(x), self.after[0])
        hidden = self._drop(functional.relu_(hidden))
        for layer, weights in enumerate(others, start=1):
            # The factors go into the weights, of which there are fewer numbers than in a batch.
            own = self.before[layer - 1].mT * weights.weight.T * self.after[layer]
            hidden = torch.baddbmm(self.bias[layer], hidden, own)
            hidden = self._drop(functional.relu_(hidden))
        logits = torch.baddbmm(self.head_bias, hidden, self.head).transpose(0, 1)
        return logits if self.training else average_members(logits)

    def _drop(self, hidden: Tensor) -> Tensor:
        kept = self.draw_kept(hidden)
        return hidden if kept is None else hidden * kept

    def draw_kept(self, hidden: Tensor) -> Tensor | None:
        """Draw factors of shape (n, width) for hidden units, 0 where one is left out; None if all stay.

        For a row they are the same in all members: chance is dear on a CPU.
        """
        if not self.training or self.dropout == 0.0:
            return None
        kept = torch.empty_like(hidden[0]).bernoulli_(1.0 - self.dropout)
        return kept.div_(1.0 - self.dropout)


class PiecewiseLayer(nn.Module):
    """Spread positions among bins over one column a bin, as `PiecewiseEncoder` does.

    Put in front of a network it keeps the rows of a table small: a number with 32 bins takes one
    column in memory instead of 32.

    Parameters
    ----------
    bins : sequence of int
        Bins of each column, 0 for one that stays as it is.

    Attributes
    ----------
    width : int
        Columns that come out.

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training.networks import PiecewiseLayer
    >>> PiecewiseLayer([0, 4])(torch.tensor([[7.0, 2.25]]))
    tensor([[7.0000, 1.0000, 1.0000, 0.2500, 0.0000]])
    """

    def __init__(self, bins: Sequence[int]) -> None:
        super().__init__()
        stay, source, first = bin_columns(bins)
        self.width = len(stay) + len(source)
        # Not part of a file: the encoder tells them.
        self.stay: Tensor
        self.source: Tensor
        self.first: Tensor
        self.register_buffer("stay", torch.tensor(stay, dtype=torch.int64), persistent=False)
        self.register_buffer("source", torch.tensor(source, dtype=torch.int64), persistent=False)
        self.register_buffer("first", torch.tensor(first, dtype=torch.float32), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the columns that stay, then those of the bins."""
        pieces = x.index_select(1, self.source).sub_(self.first).clamp_(0.0, 1.0)
        return torch.cat([x.index_select(1, self.stay), pieces], 1)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where shapes differ.

    Parameters
    ----------
    inputs, outputs : int
        Channels.
    stride : int
        Of the first convolution and of the shortcut.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *_normalised(inputs, outputs, 3, stride), nn.ReLU(), *_normalised(outputs, outputs, 3)
        )
        changes = stride > 1 or inputs != outputs
        self.shortcut = nn.Sequential(*_normalised(inputs, outputs, 1, stride) if changes else ())

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum of both paths."""
        return functional.relu(self.residual(x) + self.shortcut(x))


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation that can be trained on one value a channel, by its running statistics.

    One value has no variance, and torch refuses it: the last batch of an epoch may be a single
    row, and a small image has shrunk to one pixel in the last stage.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised batch."""
        if self.training and x.numel() == x.shape[1]:
            return functional.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


def _first_bias(inputs: int, width: int, members: int) -> Tensor:
    """Return biases as of `nn.Linear`, a little different for each member."""
    bound = 1.0 / math.sqrt(inputs)
    return torch.empty(width).uniform_(-bound, bound) + BIAS_SPREAD * torch.randn(members, 1, width)


def _normalised(inputs: int, outputs: int, size: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution without bias and the batch normalisation that makes it needless."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return [convolution, BatchNorm(outputs)]


def _check_shape(shape: Sequence[int], n_classes: int, width: int, owner: str) -> tuple[int, ...]:
    """Return the shape of an image as three whole numbers, if that is what it is."""
    if not isinstance(shape, Sequence) or len(shape) != 3:
        raise parameter_error(
            "shape",
            owner,
            "be (channels, height, width) of an image",
            shape,
            "Images go in as arrays of shape (n, channels, height, width).",
        )
    check_count("n_classes", n_classes, owner, minimum=2)
    check_count("width", width, owner)
    names = ("channels", "height", "width of the image")
    return tuple(check_count(name, side, owner) for name, side in zip(names, shape, strict=True))
