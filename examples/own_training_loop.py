"""The constraint in a training loop of your own: three added lines."""

from __future__ import annotations

import torch
from torch import nn

import reliablenet as rn
from reliablenet.data import SyntheticBand


def main() -> None:
    torch.manual_seed(0)
    band = SyntheticBand(seed=0)
    rows, held_out = band.sample(5000), band.sample(3000)
    X, y = torch.tensor(rows.X, dtype=torch.float32), torch.tensor(rows.y)
    network = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)

    constraint = rn.JCWConstraint(alpha=0.05, threshold=0.75, rows=len(y), tau=0.1)
    for stage in range(6):
        for _ in range(4):
            for batch in torch.randperm(len(y)).split(256):
                logits = network(X[batch])
                loss = nn.functional.cross_entropy(logits, y[batch])
                loss = loss + constraint.penalty(logits, y[batch])  # 1. the price of violations
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                constraint.step()  # 2. the price moves
        print(
            f"stage {stage}: tau {constraint.tau:.3f}, "
            f"multiplier {constraint.multiplier.item():.2f}, loss {loss.item():.3f}"
        )
        constraint.tighten()  # 3. a sharper surrogate

    with torch.no_grad():
        proba = torch.softmax(network(torch.tensor(held_out.X, dtype=torch.float32)), dim=1)
    certificate = rn.certify(proba, held_out.y, threshold=0.75, alpha=0.05)
    print("certified:", certificate.certified, "because", certificate.reason)
    print(f"coverage:  {certificate.coverage:.3f}")


if __name__ == "__main__":
    main()
