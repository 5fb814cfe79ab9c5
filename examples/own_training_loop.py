"""The constraint in a training loop of your own: a warm-up, a threshold, three added lines."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import Fold


def tensors(fold: Fold) -> tuple[Tensor, Tensor]:
    return torch.tensor(fold.X, dtype=torch.float32), torch.tensor(fold.y)


def main() -> None:
    torch.manual_seed(0)
    folds = SyntheticBand(random_state=0).folds()
    X, y = tensors(folds.train)
    network = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    def run_epoch(constraint: rn.JCWConstraint | None = None) -> None:
        for batch in torch.randperm(len(y)).split(256):
            logits = network(X[batch])
            loss = nn.functional.cross_entropy(logits, y[batch])
            if constraint is not None:
                loss = loss + constraint.penalty(logits, y[batch])  # 1. the price of violations
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if constraint is not None:
                constraint.step()  # 2. the price moves

    for _ in range(10):
        run_epoch()
    X_selection, y_selection = tensors(folds.selection)
    with torch.no_grad():
        confidence, guess = torch.softmax(network(X_selection), dim=1).max(dim=1)
    threshold = confidence[guess != y_selection].quantile(0.8).item()

    constraint = rn.JCWConstraint(0.05, threshold, rows=len(y), tau=0.03, dual_rate=0.3)
    for stage in range(5):
        for _ in range(4):
            run_epoch(constraint)
        print(f"stage {stage}: tau {constraint.tau:.3f}, multiplier {constraint.multiplier:.2f}")
        constraint.tighten()  # 3. a sharper surrogate

    X_new, y_new = tensors(folds.certification)
    with torch.no_grad():
        proba = torch.softmax(network(X_new), dim=1)
    certificate = rn.certified_threshold(proba, y_new, alpha=0.05)
    print("certified:", certificate.certified, "because", certificate.reason)
    print(f"coverage:  {certificate.coverage:.3f}, at confidence {certificate.threshold:.3f}")


if __name__ == "__main__":
    main()
