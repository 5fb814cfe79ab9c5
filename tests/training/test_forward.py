from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from reliablenet.training import mlp
from reliablenet.training.forward import BLOCK_CHUNKS, IMAGE_CHUNK, TABLE_CHUNK, evaluate_logits

MANY = 20_000


@pytest.fixture(scope="module")
def network() -> nn.Module:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return mlp(11, 3, width=64)


@pytest.fixture(scope="module")
def rows() -> torch.Tensor:
    return torch.randn(MANY, 11, generator=torch.Generator().manual_seed(0))


def bits(logits: torch.Tensor) -> torch.Tensor:
    return logits.view(torch.int32)


def test_a_row_has_the_same_bits_alone_among_7_and_among_20_000(network, rows):
    together = bits(evaluate_logits(network, rows))
    for place in (0, 1, TABLE_CHUNK - 1, TABLE_CHUNK, 7777, MANY - 8, MANY - 1):
        assert torch.equal(
            bits(evaluate_logits(network, rows[place : place + 1]))[0], together[place]
        )
        start = min(place, MANY - 7)
        seven = bits(evaluate_logits(network, rows[start : start + 7]))
        assert torch.equal(seven, together[start : start + 7])


def test_a_row_has_the_same_bits_at_any_position(network, rows):
    order = torch.randperm(MANY, generator=torch.Generator().manual_seed(1))
    assert torch.equal(
        bits(evaluate_logits(network, rows[order])), bits(evaluate_logits(network, rows))[order]
    )


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda X: X.T.contiguous().T, id="column-major"),
        pytest.param(lambda X: torch.cat([X, X], 1)[:, :11], id="columns of a wider table"),
        pytest.param(lambda X: X.repeat_interleave(2, 0)[::2], id="every second row"),
        pytest.param(lambda X: X.flip(0)[torch.arange(len(X)).flip(0)], id="twice reversed"),
        pytest.param(
            lambda X: torch.cat([torch.zeros(1), X.flatten()])[1:].view(X.shape), id="unaligned"
        ),
    ],
)
def test_the_layout_in_memory_does_not_change_the_bits(network, rows, view):
    rows = rows[:1500]
    assert torch.equal(
        bits(evaluate_logits(network, view(rows))), bits(evaluate_logits(network, rows))
    )


@pytest.mark.parametrize("size", [1, 100, TABLE_CHUNK, 700, 3000])
def test_pieces_of_any_size_give_the_bits_of_the_whole(network, rows, size):
    rows, seen = rows[:1500], []
    watch = network.register_forward_hook(lambda module, inputs, outputs: seen.append(inputs[0]))
    pieces = evaluate_logits(network, iter(rows.split(size)))
    watch.remove()
    assert torch.equal(bits(pieces), bits(evaluate_logits(network, rows)))
    assert [len(chunk) for chunk in seen] == [TABLE_CHUNK] * 3  # only the last is filled up


def test_logits_are_those_of_the_network(network, rows):
    with torch.no_grad():
        torch.testing.assert_close(evaluate_logits(network, rows[:1000]), network(rows[:1000]))


def test_images_keep_their_axes():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    images = torch.randn(IMAGE_CHUNK + 3, 1, 4, 4)
    assert torch.equal(evaluate_logits(network, images)[-1:], evaluate_logits(network, images[-1:]))


def test_no_rows_give_no_logits(network, rows):
    assert evaluate_logits(network, rows[:0]).shape == (0, 3)


def test_dropout_is_off_and_batch_statistics_stay_as_they_were(rows):
    network = nn.Sequential(nn.Linear(11, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    first, second = evaluate_logits(network, rows[:20]), evaluate_logits(network, rows[:20])
    assert torch.equal(first, second)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


@pytest.mark.parametrize("training", [True, False])
def test_the_networks_mode_is_restored(network, rows, training):
    network.train(training)
    logits = evaluate_logits(network, rows[:5])
    assert all(module.training is training for module in network.modules())
    assert not logits.requires_grad


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("broken")


def test_the_networks_mode_is_restored_after_an_exception(rows):
    network = nn.Sequential(nn.Dropout(), Broken()).train()
    with pytest.raises(RuntimeError, match="broken"):
        evaluate_logits(network, rows[:5])
    assert all(module.training for module in network.modules())


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_rows_beside_the_edge_of_a_block_come_once_and_in_order(more):
    X = torch.arange(BLOCK_CHUNKS * TABLE_CHUNK + more).unsqueeze(1).float()
    assert torch.equal(evaluate_logits(nn.Identity(), X), X)
    assert torch.equal(evaluate_logits(nn.Identity(), X.split(777)), X)


MEMORY = """
    import resource
    import torch
    from reliablenet.training import tabular
    from reliablenet.training.forward import evaluate_logits

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # in MiB, on Linux

    torch.set_num_threads(1)
    network = tabular(100, 2)
    evaluate_logits(network, (torch.randn(1000, 100) for _ in range(3)))
    before = peak()
    print(len(evaluate_logits(network, (torch.randn(1000, 100) for _ in range(500)))), peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
def test_memory_is_that_of_the_outputs():
    """4 MiB of outputs, twice while they are joined; kept one by one they took 26 to 453 MiB."""
    program = [sys.executable, "-c", textwrap.dedent(MEMORY)]
    result = subprocess.run(program, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    rows, grown = map(int, result.stdout.split())
    assert rows == 500_000
    assert grown < 20
