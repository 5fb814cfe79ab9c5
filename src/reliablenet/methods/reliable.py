"""`ReliableClassifier`: a network under a budget for confident mistakes, its team, and their certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from reliablenet._checks import is_real, parameter_error
from reliablenet.certificate import jcw_threshold
from reliablenet.export.parts import Parts
from reliablenet.methods.architectures import NetworkFactory
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.group_training import (
    WAYS,
    Served,
    choose_way,
    find_groups,
    schedule_of,
    serve,
    way_taken,
    ways_to_try,
)
from reliablenet.methods.neural import FoldOrStream, RowsOrStream
from reliablenet.methods.neural_classifier import NeuralClassifier
from reliablenet.modelfile import stored_as
from reliablenet.modelfile.network import NetworkParts
from reliablenet.risk.surrogate import M1, M2, check_smoothing
from reliablenet.tables.folds import Fold
from reliablenet.training import ranks
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.batches import Rows, join_rows
from reliablenet.training.growing import KINDS, Labels, Matrix, RowWeights
from reliablenet.training.history import History
from reliablenet.training.schedule import Schedule
from reliablenet.training.team import OwnMember, Team, fit_members, weigh

NETWORK = "network"
LEAST_ROWS = 60  # training rows, for trees to be members unasked


@stored_as("network")
@dataclass(eq=False, repr=False)
class ReliableClassifier(NeuralClassifier):
    """A network trained so that it is rarely confident and wrong, trees beside it, and a certified rule.

    Parameters
    ----------
    alpha : float in (0, 1)
        Budget for the share of all rows on which the model acts and is wrong.
    rho : float in (0, 1)
        Allowed probability, over the draw of the certification fold, that the certificate fails.
    threshold : {"certified", "selection"} or float in (1/K, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection":
        the training threshold, set on the selection fold before constrained training. A number:
        that threshold, in training and afterwards.
    network : "tabular", "mlp", "resnet9", "cnn5", "resnet18" or callable
        For tables an ensemble on quantile bins (`tabular`, `PiecewiseEncoder`) or the paper's network,
        "mlp"; the others are for images, "resnet9" the one that a CPU trains in minutes. A callable
        (n_features, n_classes) -> nn.Module is a network of your own; for inputs with more than two
        axes its first argument is their shape.
    members : "auto", or sequence of "network", "boosting", "forest" and classifiers of your own
        Who answers. With more than the network, probabilities are averaged, by weights that make the
        labels of the selection fold most likely; the rule, its threshold and its certificate are about
        the average, and the constraint acts on the network. Classifiers of your own have `fit` and
        `predict_proba`, and get the rows encoded (``encoder_.compact``). "auto": boosting and a forest
        beside the network of a table, if the threshold is "certified" and `network` and `schedule` are
        not chosen by you; else the network alone.
    schedule : "adaptive", "paper", AdaptiveSchedule or Schedule
        See `AdaptiveSchedule` and, for the paper's, `Schedule`. An adaptive one trains the network once
        more in the end if the threshold is "certified" and the constraint was not needed: on training
        and selection rows together. It does not where a rule around it, such as a temperature, still
        computes something on the selection fold.
    checkpoint : {"selection", "last"}
        Which epoch's weights to keep: the lowest selection-fold loss among the epochs that keep the
        budget on the selection fold, or the last.
    promise : Promise, optional
        What must hold, if it is another promise than that of ``alpha``: by group, by class, among rows
        acted on, by cost, or several. Training then aims at its smallest budget, and with a common
        threshold for all groups at the budget of each group (``group_training``).
    group_training : {"auto", "constraint", "weights", "both", "plain"}
        For ``Promise.by_group(..., common=True)``: a JCW constraint for each group, groups that count
        alike in training, both, or neither. In every case the group of the selection fold that does worst
        decides which weights are kept. "auto" tries the first three and takes the one that acts rightly
        on most rows of that group, if it costs all rows together no more than 0.02. Groups are needed to
        fit and to certify; nobody asks for them to decide. ``history_.way`` and ``history_.ways`` tell.
    batch_size, clip_norm
        Of the optimiser, Adam.
    learning_rate, weight_decay : float or "auto"
        "auto": the paper's, 1e-3 and 1e-4; for "tabular" those of `Optimisation.tabular`, for "resnet9"
        those of `Optimisation.fast_images`. They and the other networks for images average the weights.
    augment : {"flips", "crops", "flips+crops"}, optional
        What happens at random to training images: mirrored left to right, moved by up to an eighth.
    text, dates : "auto", None, or column or sequence of columns
        Columns of a data frame to read as free text and as dates, beside those that look like it; None
        leaves such columns out. See `TabularEncoder`.
    embedding : callable, optional
        From a list of n texts to an array of shape (n, d), in place of the words of free text. A file
        cannot hold it: `load` asks for it again.
    m1, m2 : float
        Shape of the surrogate; 0 < m2 < m1 / (1 + m1).
    class_weight : "balanced" or mapping of labels to numbers, optional
        How much the rows of a class count in training; "balanced" lets every class count alike. A label
        that is not named counts 1. It shapes the model and nothing else: budget, threshold and
        certificate count every row once, because they are about the rows that will come.
    fold_sizes : "auto" or three shares
        For training, selection and certification, where `fit` cuts folds of its own.
    device : str
        Where the network lives, as torch names it; "auto" takes CUDA if there is any, else Apple's MPS,
        else the CPU. Same bits are promised on one machine and device.
    checkpoint_file : path, optional
        Keeps the state of training after every epoch; a later `fit` with the same data and settings
        continues from it to the same bits.
    verbose : bool or "auto"
        Progress bar; "auto" shows one if standard error is a terminal.
    random_state : int, RandomState or None
        An int makes everything reproducible on one machine, bit by bit.

    Attributes
    ----------
    threshold_ : float
    certificate_ : Certificate
    history_ : History
        Of the fit that decided how long to train; ``history_.weights_in_use`` says whether the weights
        are from it or from a second one.
    training_threshold_ : float
        The threshold at which the constraint acted.
    team_ : Team or None
        Who answers beside the network, and the weight of each; None if nobody does.
    classes_, network_, encoder_, n_features_in_, feature_names_in_
        See `NeuralClassifier` and `SelectiveClassifier`.

    Examples
    --------
    >>> from reliablenet import ReliableClassifier
    >>> from reliablenet.datasets import SyntheticBand
    >>> band = SyntheticBand(random_state=0)
    >>> rows, new = band.sample(4000), band.sample(5)
    >>> clf = ReliableClassifier(alpha=0.05, random_state=0).fit(rows.X, rows.y)
    >>> clf.certificate_.certified, clf.certificate_.upper_bound <= 0.05
    (True, True)
    >>> clf.decide(new.X).to_frame().columns.tolist()
    ['label', 'confidence', 'accepted']
    """

    _: KW_ONLY
    members: str | Sequence[Any] = "auto"
    network: str | NetworkFactory = "tabular"
    schedule: str | BaseSchedule = "adaptive"
    checkpoint: str = "selection"
    m1: float = M1
    m2: float = M2
    class_weight: str | Mapping[Any, float] | None = None
    group_training: str = "auto"

    team_: Team | None = field(init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        self._beside_network()
        self._check_class_weight()
        ways_to_try(self.group_training, self._schedule(), "ReliableClassifier")
        check_smoothing(0.5, self.m1, self.m2, "ReliableClassifier")
        self._schedule().check_keep(
            self.checkpoint, "checkpoint", "ReliableClassifier", 'Or use schedule="paper".'
        )

    def _schedule(self) -> BaseSchedule:
        named: dict[str, Callable[[], BaseSchedule]] = {
            "paper": Schedule.paper,
            "adaptive": lambda: self._architecture().schedule,
        }
        if isinstance(self.schedule, str) and self.schedule in named:
            return named[self.schedule]()
        if not isinstance(self.schedule, BaseSchedule) or not self.schedule.constrained:
            raise parameter_error(
                "schedule",
                "ReliableClassifier",
                'be "paper", "adaptive" or a Schedule or AdaptiveSchedule with at least one stage',
                self.schedule,
            )
        return self.schedule

    def _constraint(self, selection_rows: int) -> dict[str, Any]:
        return {
            "threshold": None if isinstance(self.threshold, str) else float(self.threshold),
            "aim": self._schedule().aim(self._budget, self.rho, selection_rows),
            "m1": self.m1,
            "m2": self.m2,
        }

    def _sets_threshold_last(self) -> bool:
        """Tell whether training leaves the threshold to the certificate."""
        return self.threshold == "certified" and self._schedule().leaves_threshold_open(None)

    def _refits(self) -> bool:
        return self._sets_threshold_last() and self.history_.chosen().stage == 0

    def _beside_network(self) -> list[Any]:
        """Return what is to answer beside the network: names of trees, and estimators of the user's own."""
        if self.members == "auto":
            wanted = self.network == "tabular" and self._sets_threshold_last()
            return list(KINDS) if wanted else []
        named = [self.members] if isinstance(self.members, str) else list(self.members)
        texts = [name for name in named if isinstance(name, str)]
        others = [one for one in named if not isinstance(one, str)]
        sound = all(hasattr(one, "fit") and hasattr(one, "predict_proba") for one in others)
        sound &= not any(isinstance(one, type) for one in others)
        if NETWORK not in texts or not set(texts) <= {NETWORK, *KINDS} or not sound:
            raise parameter_error(
                "members",
                "ReliableClassifier",
                f'be "auto", or hold "{NETWORK}" and any of {list(KINDS)} or classifiers of your own',
                self.members,
                "For a classifier without a network, use CertifiedThreshold.",
            )
        if len(set(texts)) < len(texts):
            raise parameter_error("members", "ReliableClassifier", "name each once", self.members)
        return [one for one in named if not isinstance(one, str) or one != NETWORK]

    def _check_class_weight(self) -> None:
        given = self.class_weight
        sound = given is None or (isinstance(given, str) and given == "balanced")
        if isinstance(given, Mapping):
            sound = all(is_real(one) and 0.0 <= one < math.inf for one in given.values())
        if not sound:
            raise parameter_error(
                "class_weight",
                "ReliableClassifier",
                'be None, "balanced" or a mapping of labels to numbers of at least 0',
                given,
            )

    def _weigh_rows(
        self, y: NDArray[np.int64], given: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if self.class_weight is None:
            return given
        own = np.ones(len(y)) if given is None else given
        if isinstance(self.class_weight, Mapping):
            labels = self.classes_.tolist()
            unknown = [label for label in self.class_weight if label not in labels]
            if unknown:
                expected = f"name labels of `y`, which are {labels[:10]}"
                raise parameter_error("class_weight", "ReliableClassifier", expected, unknown)
            each = np.array([float(self.class_weight.get(label, 1.0)) for label in labels])
        else:
            total = np.bincount(y, own, len(self.classes_))
            each = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0)
        weight: NDArray[np.float64] = each[y] * own
        if weight.sum() == 0.0:
            raise parameter_error(
                "class_weight",
                "ReliableClassifier",
                "leave some rows with a weight",
                self.class_weight,
            )
        return weight

    def _fit_folds(
        self, train_fold: FoldOrStream, selection: FoldOrStream, seed: int, *, keep_selection: bool
    ) -> None:
        if self.class_weight is not None and not isinstance(train_fold, Fold):
            expected = "be None for rows that are read batch by batch; draw them by weight instead"
            raise parameter_error("class_weight", "ReliableClassifier", expected, self.class_weight)
        self.team_ = None
        self._selection_rows = None
        self._training_groups = find_groups(self.promise, *self._learned_by)
        super()._fit_folds(train_fold, selection, seed, keep_selection=keep_selection)
        self._training_groups = None

    def _fits(self) -> int:
        return 1 if self._training_groups is None else len(self._ways())

    def _ways(self) -> tuple[str, ...]:
        return ways_to_try(self.group_training, self._schedule(), "ReliableClassifier")

    def _fit_network(
        self, rows: RowsOrStream, chosen: RowsOrStream, seed: int, settings: dict[str, Any]
    ) -> tuple[RowsOrStream, RowsOrStream]:
        groups = self._training_groups
        if groups is None or not isinstance(rows, Rows) or not isinstance(chosen, Rows):
            return super()._fit_network(rows, chosen, seed, settings)
        more = self._constraint(chosen.total)
        more["group_aims"] = groups.aims(settings["schedule"], self.rho)
        fits: dict[str, tuple[tuple[Rows, Rows], nn.Module, History]] = {}
        tried: dict[str, Served] = {}
        for name in self._ways():
            way = WAYS[name]
            folds = groups.annotate_folds(rows, chosen, balanced=way.balanced)
            own = settings | {"schedule": schedule_of(way, settings["schedule"])}
            if own["checkpoint_file"] is not None:  # each training has a file of its own
                file = own["checkpoint_file"]
                own["checkpoint_file"] = file.with_name(f"{file.name}.{name}")
            self.network_ = self._build_network(seed).to(self._device)
            history = self._train(folds[0], folds[1], seed, **own, **more)
            proba = self._read_outputs(iter([chosen.X])).proba
            right = proba.argmax(1) == chosen.y.cpu().numpy()
            tried[name] = serve(proba.max(1), right, groups.selection, more["group_aims"])
            fits[name] = folds, self.network_, history
        best = ranks.from_first(choose_way(tried))
        folds, self.network_, self.history_ = fits[best]
        history = self.history_
        history.groups, history.way = groups.names, way_taken(best, history)
        history.ways = {name: served.shares for name, served in tried.items()}
        if math.isnan(history.threshold):  # no constraint acted at any
            history.threshold = min(tried[best].threshold, 1.0)
        return folds

    def _add_members(self, rows: Rows, chosen: Rows, seed: int) -> None:
        wanted = self._beside_network()
        automatic = isinstance(self.members, str) and self.members == "auto"
        if self.encoder_ is None or (automatic and rows.total < LEAST_ROWS):
            if wanted and not automatic:
                raise parameter_error(
                    "members",
                    "ReliableClassifier",
                    f'be ("{NETWORK}",) for inputs that are not the rows of a table',
                    self.members,
                )
            return
        if not wanted:
            return
        X, y, weight = _plain(rows)
        held, labels, counts = _plain(chosen)
        members = fit_members(wanted, X, y, (held, labels), seed, weight)
        classes = len(self.classes_)
        said = [member.probabilities(held, classes) for member in members]
        network = self._read_outputs(iter([chosen.X])).proba
        self.team_ = Team(members, weigh([network, *said], labels, counts))

    def _refit(self, rows: Rows, chosen: Rows, seed: int) -> None:
        super()._refit(rows, chosen, seed)
        if self.team_ is not None:
            X, y, weight = _plain(join_rows(rows, chosen))
            self.team_ = self.team_.fit_again(X, y, seed, weight)

    def _outputs(self, X: Any) -> Outputs:
        team = getattr(self, "team_", None)
        if team is None:
            return super()._outputs(X)
        heard: list[list[NDArray[np.float64]]] = []

        def listen() -> Iterator[Tensor]:
            for piece in self._encoded_pieces(X):
                heard.append(team.listen(piece.cpu().numpy(), len(self.classes_)))
                yield piece

        network = self._read_outputs(listen()).proba
        return Outputs(
            team.combine(network, [np.concatenate(one) for one in zip(*heard, strict=True)])
        )

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        if "members" not in learned["settings"]:  # files from before there were any
            self.members = (NETWORK,)

    def _graph_parts(self) -> Parts:
        return replace(super()._graph_parts(), team=self.team_)

    def _network_parts(self) -> NetworkParts:
        return replace(super()._network_parts(), team=self.team_)

    def _restore_network(self, parts: NetworkParts) -> None:
        super()._restore_network(parts)
        self.team_ = parts.team
        if not isinstance(self.members, str):
            # classifiers of the user's own are not among the settings that a file holds
            others = () if self.team_ is None else self.team_.members
            own = (one.estimator for one in others if isinstance(one, OwnMember))
            self.members = tuple(one if isinstance(one, str) else next(own) for one in self.members)

    @property
    def training_threshold_(self) -> float:
        """The threshold at which the constraint acted."""
        return self.history_.threshold

    def _selection_threshold(self, selection: Fold) -> float:
        if self.team_ is None:
            return self.training_threshold_
        rows = self._selection_rows  # before they trained the members too
        if rows is None:
            rows = self._outputs(selection.X).scored(selection.y)
        return jcw_threshold(rows, None, self._constraint(len(selection))["aim"])


def _plain(rows: Rows) -> tuple[Matrix, Labels, RowWeights]:
    """Return encoded rows, class indices and weights as arrays."""
    weight = None if rows.weight is None else rows.weight.cpu().numpy()
    return rows.X.cpu().numpy(), rows.y.cpu().numpy(), weight
