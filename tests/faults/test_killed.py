"""kill -9 in the middle of writing: the name always stands for a whole file, old or new."""

from __future__ import annotations

import json
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and kills")

# A child writes without end and is killed at a random moment of its work, again and again.
KILLS = """
import json, os, random, signal, sys, time
import torch
torch.set_num_threads(1)
import reliablenet as rn
from pathlib import Path

def strike(work, longest):
    moments = random.Random(0)
    while True:
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            try:
                os.write(write, b"x")
                while True:
                    work()
            finally:
                os._exit(7)
        os.read(read, 1)
        time.sleep(moments.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        os.close(read), os.close(write)
        yield
"""

SAVE = """
import copy
old = rn.load(sys.argv[1])
new = copy.copy(old)
new.clip_norm = 7.0
path = Path("m.rnet")
old.save(path)
seen, end = [], time.monotonic() + 200  # a slow disk needs more rounds to be struck at both
for _ in strike(lambda: (new.save(path), old.save(path)), 0.25):
    seen.append(rn.load(path).clip_norm)
    if len(seen) >= 60 and (len(set(seen)) == 2 or time.monotonic() > end):
        break
print(json.dumps({"seen": seen, "old": old.clip_norm, "new": new.clip_norm}))
"""

CHECKPOINT = """
from safetensors.torch import load_file
from reliablenet.training import Rows, mlp, train
torch.manual_seed(0)
rows = Rows(torch.randn(64, 4), torch.arange(64) % 2)
schedule = rn.training.Schedule(warmup_epochs=200, epochs_per_stage=100, max_stages=2)

def run(path):
    torch.manual_seed(1)
    network = mlp(4, 2)
    train(network, rows, rows, schedule=schedule, alpha=0.2, checkpoint_file=path)
    return {name: value.tolist() for name, value in network.state_dict().items()}

path, rounds, whole = Path("run.ckpt"), 0, 0
for _ in strike(lambda: run(path), 0.3):
    rounds += 1
    whole += not path.exists() or bool(load_file(path))
    if rounds == 30:
        break
print(json.dumps({"rounds": rounds, "whole": whole, "same": run(path) == run(None)}))
"""


def test_in_the_middle_of_saving_a_model(model, start) -> None:
    code, out, err = start(model, program=KILLS + SAVE).end()
    assert code == 0, err
    found = json.loads(out)
    assert len(found["seen"]) >= 60
    assert set(found["seen"]) == {found["old"], found["new"]}


def test_in_the_middle_of_a_checkpoint(start) -> None:
    code, out, err = start(program=KILLS + CHECKPOINT).end()
    assert code == 0, err
    assert json.loads(out) == {"rounds": 30, "whole": 30, "same": True}
