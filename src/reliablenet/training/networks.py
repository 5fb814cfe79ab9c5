"""Networks as a body and a head, so that a method can put other heads on the same body."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from reliablenet._checks import check_count, parameter_error


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
    >>> network = cnn5((3, 28, 28), 10)
    >>> network.head.in_features, sum(p.numel() for p in network.parameters())
    (1024, 103498)
    """
    channels, *size = _check_shape(shape, n_classes, width, "cnn5")
    wide = 2 * width

    def convolve(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]

    def pool() -> nn.Module:
        return nn.MaxPool2d(2, ceil_mode=True)

    body = nn.Sequential(
        *convolve(channels, width),
        pool(),
        *convolve(width, wide),
        pool(),
        *convolve(wide, wide),
        *convolve(wide, wide),
        pool(),
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
