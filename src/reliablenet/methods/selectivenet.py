"""`SelectiveNetClassifier`: a network with a head that selects rows (Geifman and El-Yaniv, 2019)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor, nn

from reliablenet._checks import check_fraction, check_positive, check_probability, parameter_error
from reliablenet._renamed import renamed_setting
from reliablenet.errors import InvalidDataError
from reliablenet.methods.abstaining import AbstainingClassifier
from reliablenet.modelfile import stored_as
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.networks import Network
from reliablenet.training.objective import Objective

LEAST_MASS = 1e-8  # keeps the selective risk finite where nothing is selected


@dataclass(frozen=True)
class SelectiveLoss(Objective):
    """Selective risk with a penalty for missing the target coverage, mixed with an auxiliary loss.

    Outputs are K class logits, one selection logit, and K auxiliary logits.
    """

    target_coverage: float
    coverage_weight: float
    mixing: float

    def loss(self, outputs: Tensor, y: Tensor, epoch: int) -> Tensor:
        """Return the loss of a batch; the selective risk is divided by the mass selected."""
        selected = self.score(outputs)
        losses = nn.functional.cross_entropy(self.logits(outputs), y, reduction="none")
        risk = (selected * losses).sum() / (selected.sum() + LEAST_MASS)
        shortfall = torch.relu(self.target_coverage - selected.mean())
        auxiliary = outputs[:, _n_classes(outputs) + 1 :]
        return self.mixing * (risk + self.coverage_weight * shortfall.square()) + (
            1.0 - self.mixing
        ) * nn.functional.cross_entropy(auxiliary, y)

    def logits(self, outputs: Tensor) -> Tensor:
        """Return the logits of the main head."""
        return outputs[:, : _n_classes(outputs)]

    def score(self, outputs: Tensor) -> Tensor:
        """Return the selection s(x), between 0 and 1."""
        return torch.sigmoid(outputs[:, _n_classes(outputs)])


class SelectiveNetwork(nn.Module):
    """A network's body and head, with a selection head and an auxiliary head beside it.

    Parameters
    ----------
    network : Network
    features : int
        Width of what the body returns.
    n_classes : int
    """

    def __init__(self, network: Network, features: int, n_classes: int) -> None:
        super().__init__()
        self.body = network.body
        self.head = network.head
        self.selection = nn.Sequential(
            nn.Linear(features, features), nn.ReLU(), nn.Linear(features, 1)
        )
        self.auxiliary = nn.Linear(features, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return class logits, selection logit and auxiliary logits side by side."""
        features = self.body(x)
        heads = (self.head, self.selection, self.auxiliary)
        return torch.cat([head(features) for head in heads], dim=-1)


@stored_as("network")
@renamed_setting("score", "scored_by")
@dataclass(eq=False, repr=False)
class SelectiveNetClassifier(AbstainingClassifier):
    """A network that learns which rows to take on, so as to be right on a given share of them.

    Parameters
    ----------
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    threshold : {"certified", "selection"} or float in (0, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection":
        the most permissive one whose JCW on the selection fold is within alpha. A number: itself.
    target_coverage : float in (0, 1)
        Share of rows that training aims to select; the original's c, the paper's kappa.
    coverage_weight : float
        Weight of the squared shortfall from it.
    mixing : float in (0, 1]
        Share of the selective loss; the rest is the auxiliary head's cross-entropy on all rows.
    scored_by : {"native", "softmax"}
        What is compared with the threshold: the selection head, or the top class probability.
    network : "mlp" or callable (n_features, n_classes) -> Network
        It must have a body and a head (`reliablenet.training.Network`): the other heads share the
        body.
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

    Notes
    -----
    The selective risk is divided by the mass selected, as the original's equations say; its public
    code leaves that out. The selection head has one hidden layer, as wide as the body's output.

    Examples
    --------
    >>> from reliablenet import SelectiveNetClassifier
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> clf = SelectiveNetClassifier(epochs=8, random_state=0).fit(rows.X, rows.y)
    >>> clf.certificate_.certified
    True
    """

    _: KW_ONLY
    target_coverage: float = 0.8
    coverage_weight: float = 32.0
    mixing: float = 0.5

    def _check_settings(self) -> None:
        super()._check_settings()
        owner = "SelectiveNetClassifier"
        check_fraction("target_coverage", self.target_coverage, owner)
        check_positive("coverage_weight", self.coverage_weight, owner)
        check_probability("mixing", self.mixing, owner)

    def _objective(self) -> SelectiveLoss:
        return SelectiveLoss(
            float(self.target_coverage), float(self.coverage_weight), float(self.mixing)
        )

    def _build_network(self, seed: int) -> nn.Module:
        n_classes = len(self.classes_)
        network = self._from_factory(n_classes, seed)
        if not isinstance(network, Network) or type(network).forward is not Network.forward:
            raise parameter_error(
                "network",
                "SelectiveNetClassifier",
                "return a reliablenet.training.Network, nothing but a body and a head, so that "
                "other heads can share the body",
                type(network).__name__,
            )
        features = tuple(evaluate_logits(network.body, torch.zeros(1, *self.input_shape_)).shape)
        if len(features) != 2:
            raise InvalidDataError(
                "The body of `network` of SelectiveNetClassifier must return one vector a row; for "
                f"1 row it returned shape {features}. Add nn.Flatten()."
            )
        with torch.random.fork_rng([]):
            torch.manual_seed(seed + 1)  # not the draws that made the body
            return SelectiveNetwork(network, features[1], n_classes)


def _n_classes(outputs: Tensor) -> int:
    return (outputs.shape[-1] - 1) // 2
