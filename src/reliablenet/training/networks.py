"""Networks as a body and a head, so that a method can put other heads on the same body."""

from __future__ import annotations

from torch import Tensor, nn

from reliablenet._checks import check_count


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
