"""The training loop: warm-up, threshold, constrained stages, choice of the weights to keep.

One flat loop over epochs, so that a run can be continued after any of them to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from reliablenet._checks import (
    check_fraction,
    check_seed,
    check_threshold,
)
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training import checkpoint, ranks
from reliablenet.training.augmentation import check_augment
from reliablenet.training.denormal import flushed_denormals
from reliablenet.training.history import History
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.rows import Rows, check_rows
from reliablenet.training.run import Keep, Run, Settings
from reliablenet.training.schedule import Schedule
from reliablenet.training.stream import Stream


def train(
    network: nn.Module,
    rows: Rows | Stream,
    selection: Rows | Stream,
    *,
    alpha: float,
    schedule: Schedule,
    objective: Objective | None = None,
    optimisation: Optimisation | None = None,
    threshold: float | None = None,
    aim: float | None = None,
    keep: Keep = "selection",
    seed: int = 0,
    m1: float = M1,
    m2: float = M2,
    augment: str | None = None,
    after_epoch: Callable[[History], bool] | None = None,
    checkpoint_file: Path | None = None,
) -> History:
    """Train a network in place under a budget for confident mistakes, and return its history.

    In a `torch.distributed` group all ranks call this alike and train one network: each on its share
    of every batch, with gradients averaged over all rows. Rank 0 measures and writes for all.

    Parameters
    ----------
    network : nn.Module
        Maps a batch of inputs to logits. Holds the chosen weights when this returns.
    rows, selection : Rows or Stream
        Training rows; and the rows that set the threshold and choose the weights, an ordered stream
        if they are one.
    alpha : float
        Budget.
    schedule : Schedule
        Without stages this is plain ERM.
    objective : Objective, optional
        What to minimise instead of cross-entropy; only without stages.
    optimisation : Optimisation, optional
    threshold : float, optional
        Training threshold; by default the schedule's quantile of the confidences of the selection
        rows that the warmed-up network gets wrong. If the schedule adapts: the most permissive one
        whose selection-fold JCW is within the aim.
    aim : float, optional
        JCW that the selection fold is to keep; by default alpha.
    keep : {"selection", "last"}
        Which constrained epoch's weights to keep. "selection": the lowest selection-fold loss
        among the epochs whose selection-fold JCW is within alpha, or the smallest JCW if there is
        none (for ERM: the lowest selection-fold loss). "last": those of the last epoch.
    seed : int
        Decides the order of the batches and whatever the network draws (dropout).
    m1, m2 : float
        Shape of the surrogate.
    augment : {"flips", "crops", "flips+crops"}, optional
        What happens at random to training images; evaluation sees them as they are.
    after_epoch : callable, optional
        Called with the history after each epoch, when the network has the weights that were
        measured; a true answer ends training.
    checkpoint_file : Path, optional
        Written after every epoch; if it exists and belongs to this very run, training continues
        from it and ends with the same bits as if it had never stopped.

    Returns
    -------
    History
    """
    check_fraction("alpha", alpha, "train")
    check_seed("seed", seed, "train")
    check_augment(augment, "train")
    if threshold is not None:
        threshold = check_threshold("threshold", threshold, "train")
    for name, fold in (("rows", rows), ("selection rows", selection)):
        if isinstance(fold, Rows):
            check_rows(name, fold, network)
    settings = Settings(
        alpha,
        schedule,
        objective or Objective(),
        optimisation or Optimisation(),
        threshold,
        alpha if aim is None else check_fraction("aim", aim, "train"),
        keep,
        seed,
        m1,
        m2,
        augment,
    )
    key = ""
    if checkpoint_file is not None or ranks.world() > 1:
        key = checkpoint.fingerprint(network, [rows, selection], settings)
        ranks.check_agreement(f"{key} {checkpoint_file is None}")
    devices = [] if rows.device.type == "cpu" else [rows.device]
    # the caller's random state stays as it was
    with torch.random.fork_rng(devices), flushed_denormals():
        torch.manual_seed(seed + ranks.rank())  # ranks draw other dropout, but one order of rows
        run = Run(network, rows, selection, settings)
        if checkpoint_file is not None:
            checkpoint.restore(checkpoint_file, run, key)
        while not run.history.stopped:
            run.one_epoch()
            with run.averaged_weights():
                asked = after_epoch is not None and after_epoch(run.history)
            if any(ranks.gather(bool(asked))) and not run.history.stopped:
                run.history.stopped = "a callback asked for it"
                if not run.kept:  # in a warm-up, which may never be kept otherwise
                    run.keep_weights()
                run.return_to_kept()
                run.fix_threshold()
            if checkpoint_file is not None:
                checkpoint.write(checkpoint_file, run, key)
    network.load_state_dict(run.kept)
    network.eval()
    return run.history
