from __future__ import annotations

from collections import Counter

import pytest
import torch

from reliablenet.errors import InvalidParameterError
from reliablenet.training import Optimisation, Rows, Schedule, cnn5, train
from reliablenet.training.batches import (
    AUGMENTATIONS,
    AnnotatedRows,
    augment_images,
    crop,
    flip,
    join_rows,
)

EPOCHS = 4


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def test_half_of_the_images_are_mirrored_and_none_is_changed_otherwise():
    images = torch.rand(2000, 2, 3, 5)
    flipped = flip(images)
    same = (flipped == images).flatten(1).all(1)
    mirrored = (flipped == images.flip(-1)).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert 900 < mirrored.sum() < 1100


def test_an_image_is_moved_by_every_step_up_to_an_eighth_of_its_side():
    image = torch.zeros(1, 1, 16, 24)
    image[0, 0, 8, 12] = 7.0  # one bright point tells where the image went
    moved = crop(image.expand(4000, 1, 16, 24))
    assert (moved.flatten(1).sum(1) == 7.0).all()
    found = Counter(divmod(int(place), 24) for place in moved.flatten(1).argmax(1))
    assert set(found) == {(8 + down, 12 + right) for down in range(-2, 3) for right in range(-3, 4)}
    assert min(found.values()) > 4000 / 35 / 2


def test_channels_of_an_image_move_together_and_zeros_come_in():
    images = torch.rand(50, 1, 9, 9) + 1.0
    moved = crop(torch.cat([images, 2 * images], 1))
    assert torch.equal(2 * moved[:, 0], moved[:, 1])
    assert (moved == 0.0).any()
    assert moved.shape == (50, 2, 9, 9)


def test_a_line_of_pixels_moves_along_itself_alone():
    line = torch.rand(100, 1, 1, 8) + 1.0
    assert crop(line).flatten(1).sum(1).gt(0).all()


def test_without_a_name_nothing_is_drawn():
    images = torch.rand(4, 1, 8, 8)
    before = torch.get_rng_state()
    assert augment_images(images, None) is images
    assert torch.equal(torch.get_rng_state(), before)


def rows_of(n, seed):
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=random)
    X = 0.3 * torch.randn(n, 1, 8, 8, generator=random)
    X[:, 0, 2:6, 2:6] += y[:, None, None]
    return Rows(X, y)


def trained(augment, seed=3, **settings):
    torch.manual_seed(0)
    network = cnn5((1, 8, 8), 2, width=4)
    history = train(
        network,
        rows_of(200, 0),
        rows_of(100, 1),
        alpha=0.1,
        schedule=Schedule.erm(EPOCHS),
        optimisation=Optimisation(batch_size=20, learning_rate=1e-2, averaging=0.9),
        random_state=seed,
        augment=augment,
        **settings,
    )
    return network.state_dict(), history


def same(one, other):
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_training_sees_other_images_and_is_reproducible(name):
    plain, _ = trained(None)
    first, history = trained(name)
    again, _ = trained(name)
    assert same(first, again)
    assert not same(first, plain)
    assert history.records[-1].accuracy > 0.9


def test_a_killed_training_goes_on_to_the_same_images(tmp_path):
    whole, _ = trained("flips+crops")

    def die(history):
        if len(history.records) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained("flips+crops", checkpoint_file=tmp_path / "run", after_epoch=die)
    resumed, history = trained("flips+crops", checkpoint_file=tmp_path / "run")
    assert len(history.records) == EPOCHS
    assert same(whole, resumed)


@pytest.mark.parametrize("name", ["rotations", ("flips",), 3])
def test_an_unknown_augmentation(name):
    with pytest.raises(InvalidParameterError, match="`augment` of train must be None or one of"):
        trained(name)


def test_weighted_rows_come_up_as_often_as_their_weights_say() -> None:
    weight = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0] * 20)
    data = AnnotatedRows(torch.arange(100.0)[:, None], torch.zeros(100, dtype=torch.int64), weight)
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(100)
    for epoch in range(1, 41):
        for X, _ in data.batches(epoch, 32, generator):
            counts += torch.bincount(X[:, 0].long(), minlength=100)
    assert counts.sum() == 4000
    assert torch.allclose(counts.reshape(20, 5).mean(0), 40 * weight[:5], atol=4.0)
    assert torch.all(counts[weight == 0] == 0)


def test_joined_rows_keep_their_weights() -> None:
    y = torch.zeros(2, dtype=torch.int64)
    plain, heavy = Rows(torch.ones(2, 1), y), AnnotatedRows(torch.ones(2, 1), y, torch.ones(2) * 3)
    assert join_rows(plain, heavy).weight.tolist() == [1, 1, 3, 3]
    assert torch.equal(join_rows(heavy, heavy).weight, torch.full((4,), 3.0))


def test_joined_rows_keep_their_groups_if_both_have_some() -> None:
    y, group = torch.zeros(2, dtype=torch.int64), torch.tensor([0, 1])
    plain, known = Rows(torch.ones(2, 1), y), AnnotatedRows(torch.ones(2, 1), y, group=group)
    assert join_rows(plain, known).group is None
    joined = join_rows(known, known)
    assert joined.group.tolist() == [0, 1, 0, 1]
    assert joined.weight is None
    assert joined.group_rows(3) == [2.0, 2.0, 0.0]


def test_a_batch_brings_the_groups_of_its_rows() -> None:
    rows = AnnotatedRows(
        torch.arange(10.0)[:, None], torch.zeros(10, dtype=torch.int64), group=torch.arange(10)
    )
    for X, _, group in rows.batches(1, 4, torch.Generator()):
        assert X[:, 0].tolist() == group.tolist()
