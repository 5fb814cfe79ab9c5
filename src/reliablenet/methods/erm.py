"""`ERMClassifier`: the same network trained on its loss alone, to compare with."""

from __future__ import annotations

from typing import Any

from reliablenet.methods.neural import NetworkFactory, NeuralClassifier
from reliablenet.training.schedule import Schedule


class ERMClassifier(NeuralClassifier):
    """Plain empirical risk minimisation, with the same rule, certificate and contract.

    Parameters
    ----------
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    threshold : {"certified", "selection"} or float in (1/K, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection":
        the most permissive one whose JCW on the selection fold is within alpha. A number: itself.
    network : "mlp" or callable (n_features, n_classes) -> nn.Module
    epochs : int
    checkpoint : {"last", "selection"}
        Keep the weights of the last epoch, as the paper does, or those with the lowest
        selection-fold loss (early stopping), which is the stronger baseline.
    batch_size, learning_rate, weight_decay, clip_norm, fold_sizes, device, checkpoint_file, verbose
        As for `ReliableClassifier`.
    random_state : int, RandomState or None

    Attributes
    ----------
    threshold_, certificate_, history_, classes_, network_, encoder_
        As for `ReliableClassifier`.

    Examples
    --------
    >>> from reliablenet.data import SyntheticBand
    >>> rows = SyntheticBand(seed=0).sample(4000)
    >>> clf = ERMClassifier(alpha=0.05, epochs=5, random_state=0).fit(rows.X, rows.y)
    >>> clf.certificate_.kind
    'monotone'
    """

    def __init__(
        self,
        alpha: float = 0.05,
        rho: float = 0.05,
        threshold: str | float = "certified",
        *,
        network: str | NetworkFactory = "mlp",
        epochs: int = 100,
        checkpoint: str = "last",
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        clip_norm: float = 5.0,
        fold_sizes: Any = "auto",
        device: str = "cpu",
        checkpoint_file: Any = None,
        verbose: bool | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.rho = rho
        self.threshold = threshold
        self.network = network
        self.epochs = epochs
        self.checkpoint = checkpoint
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.fold_sizes = fold_sizes
        self.device = device
        self.checkpoint_file = checkpoint_file
        self.verbose = verbose
        self.random_state = random_state

    def _schedule(self) -> Schedule:
        return Schedule.erm(self.epochs)
