"""`ERMClassifier`: the same network trained on its loss alone, to compare with."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from reliablenet.methods.neural_classifier import NeuralClassifier
from reliablenet.modelfile import stored_as
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.schedule import Schedule


@stored_as("network")
@dataclass(eq=False, repr=False)
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
    batch_size, learning_rate, weight_decay, clip_norm, promise, augment, text, dates, embedding, fold_sizes, device,
    checkpoint_file, verbose
        As for `ReliableClassifier`.
    random_state : int, RandomState or None

    Attributes
    ----------
    threshold_, certificate_, history_, classes_, network_, encoder_
        As for `ReliableClassifier`.

    Examples
    --------
    >>> from reliablenet import ERMClassifier
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> clf = ERMClassifier(alpha=0.05, epochs=5, random_state=0).fit(rows.X, rows.y)
    >>> clf.certificate_.kind
    'monotone'
    """

    _: KW_ONLY
    epochs: int = 100

    def _schedule(self) -> BaseSchedule:
        return Schedule.erm(self.epochs)
