"""`DeepGamblersClassifier`: a network that may keep part of its stake (Liu et al., 2019)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from reliablenet._checks import check_count, check_positive, parameter_error
from reliablenet._renamed import renamed_setting
from reliablenet.methods.abstaining import AbstainingClassifier
from reliablenet.modelfile import stored_as
from reliablenet.training.objective import Objective


@dataclass(frozen=True)
class GamblersLoss(Objective):
    """The gambler's loss, -log(p_y + p_abstain / reward); the last output is the abstention.

    In the first ``warmup_epochs`` the class logits are trained alone, by cross-entropy.
    """

    reward: float
    warmup_epochs: int

    def loss(self, outputs: Tensor, y: Tensor, epoch: int) -> Tensor:
        """Return the mean loss of a batch."""
        if self.is_warmup(epoch):
            return nn.functional.cross_entropy(self.logits(outputs), y)
        shares = torch.log_softmax(outputs, -1)
        won = shares.gather(-1, y.unsqueeze(-1)).squeeze(-1)
        return -torch.logaddexp(won, shares[:, -1] - math.log(self.reward)).mean()

    def logits(self, outputs: Tensor) -> Tensor:
        """Return the class logits: without the abstention, softmax renormalises the classes."""
        return outputs[:, :-1]

    def score(self, outputs: Tensor) -> Tensor:
        """Return the share that is put on classes, 1 - p_abstain."""
        return 1.0 - torch.softmax(outputs, -1)[:, -1]

    def is_warmup(self, epoch: int) -> bool:
        """Tell whether an epoch trains the class logits alone."""
        return epoch <= self.warmup_epochs


@stored_as("network")
@renamed_setting("score", "scored_by")
@dataclass(eq=False, repr=False)
class DeepGamblersClassifier(AbstainingClassifier):
    """A network with one more output, "abstain", that returns a part of the stake.

    Parameters
    ----------
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    threshold : {"certified", "selection"} or float in (0, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection":
        the most permissive one whose JCW on the selection fold is within alpha. A number: itself.
    reward : float in (1, K]
        The paper's o: a stake on the right class is multiplied by it, a stake kept is returned.
        The smaller it is, the more rows the network abstains from.
    warmup_epochs : int
        Epochs of plain cross-entropy before the gambling begins; they count among ``epochs``.
    scored_by : {"native", "softmax"}
        What is compared with the threshold: 1 less the probability of "abstain", or the top class
        probability.
    network : "mlp" or callable (n_features, n_outputs) -> nn.Module
        Called with one output more than there are classes.
    epochs : int
    checkpoint : {"last", "selection"}
        Keep the weights of the last epoch, or those with the lowest selection-fold loss.
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
    >>> from reliablenet import DeepGamblersClassifier
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> clf = DeepGamblersClassifier(epochs=8, warmup_epochs=2, random_state=0).fit(rows.X, rows.y)
    >>> clf.certificate_.certified
    True
    """

    _: KW_ONLY
    reward: float = 1.9
    warmup_epochs: int = 10

    def _check_settings(self) -> None:
        super()._check_settings()
        owner = "DeepGamblersClassifier"
        check_positive("reward", self.reward, owner)  # its range depends on the number of classes
        check_count("warmup_epochs", self.warmup_epochs, owner, minimum=0)
        if self.warmup_epochs >= self.epochs:
            raise parameter_error(
                "warmup_epochs", owner, f"be below epochs = {self.epochs}", self.warmup_epochs
            )

    def _objective(self) -> GamblersLoss:
        return GamblersLoss(float(self.reward), int(self.warmup_epochs))

    def _build_network(self, seed: int) -> nn.Module:
        most = len(self.classes_)
        if not 1.0 < self.reward <= most:
            raise parameter_error(
                "reward",
                "DeepGamblersClassifier",
                f"lie in (1, {most}]: beyond the number of classes, abstaining never pays",
                self.reward,
            )
        return self._from_factory(most + 1, seed)
