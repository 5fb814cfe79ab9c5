from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.errors import InvalidParameterError
from reliablenet.methods import ERMClassifier, load
from reliablenet.tables import PiecewiseEncoder
from reliablenet.training import (
    Network,
    Optimisation,
    Rows,
    Schedule,
    cnn5,
    mlp,
    resnet9,
    resnet18,
    train,
)
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.networks import BasicBlock, BatchNorm, PiecewiseLayer, tabular


def test_the_default_is_the_papers_10_128_128_2_network():
    sizes = [tuple(p.shape) for p in mlp(10, 2).parameters()]
    assert sizes == [(128, 10), (128,), (128, 128), (128,), (2, 128), (2,)]


@pytest.mark.parametrize(("width", "depth"), [(8, 1), (32, 3)])
def test_width_and_depth_are_those_of_the_hidden_layers(width, depth):
    network = mlp(4, 3, width=width, depth=depth)
    hidden = [layer for layer in network.body if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in hidden] == [width] * depth
    assert network(torch.zeros(5, 4)).shape == (5, 3)


def test_logits_are_linear_in_features_that_are_not_negative():
    network = mlp(4, 2, width=16)
    x = torch.randn(50, 4)
    features = network.body(x)
    assert (features >= 0).all()
    torch.testing.assert_close(network(x), features @ network.head.weight.T + network.head.bias)


def test_another_head_can_be_put_on_the_same_body():
    network = mlp(4, 2, width=16)
    wider = Network(network.body, nn.Linear(16, 5))
    assert wider(torch.zeros(3, 4)).shape == (3, 5)
    assert wider.body is network.body


def test_the_same_seed_initialises_the_same_weights():
    weights = []
    for _ in range(2):
        with torch.random.fork_rng([]):
            torch.manual_seed(3)
            weights.append(mlp(4, 2).head.weight)
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 0, "n_classes": 2}, "`n_features` of mlp"),
        ({"n_features": 3, "n_classes": 1}, "`n_classes` of mlp must be .* at least 2; got 1"),
        ({"n_features": 3, "n_classes": 2, "width": 0}, "`width` of mlp"),
        ({"n_features": 3, "n_classes": 2, "depth": 0}, "`depth` of mlp"),
        ({"n_features": 3.0, "n_classes": 2}, "`n_features` of mlp must be a whole number"),
    ],
)
def test_sizes_outside_their_domain_are_refused(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        mlp(**arguments)


SHAPES = [(1, 28, 28), (3, 28, 28), (3, 32, 32), (3, 17, 23), (2, 1, 1)]
NARROW = {
    "cnn5": partial(cnn5, width=4),
    "resnet9": partial(resnet9, width=4),
    "resnet18": partial(resnet18, width=4),
}


def parameter_count(network):
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_image_network_takes_images_of_any_size_and_its_body_ends_in_a_vector(name, shape):
    network = NARROW[name](shape, 7)
    x = torch.rand(2, *shape)
    features = network.body(x)
    assert features.shape == (2, network.head.in_features)
    torch.testing.assert_close(network.head(features), network(x))
    assert network(x).shape == (2, 7)


def test_cnn5_has_four_convolutions_and_one_linear_layer():
    layers = [m for m in cnn5((3, 28, 28), 10).modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert [type(layer).__name__ for layer in layers] == ["Conv2d"] * 4 + ["Linear"]
    # 3x3 kernels and biases, and 64 channels of 4x4 pixels before the head
    counts = [3 * 32 * 9 + 32, 32 * 64 * 9 + 64, 64 * 64 * 9 + 64, 64 * 64 * 9 + 64]
    assert [parameter_count(layer) for layer in layers] == [*counts, 64 * 4 * 4 * 10 + 10]


def test_cnn5_pools_before_it_rectifies_to_the_bits_of_the_usual_order():
    torch.manual_seed(0)
    ours = cnn5((3, 9, 11), 4, width=4)
    usual = copy.deepcopy(ours)
    layers = list(usual.body)
    for place in [i for i, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d)]:
        layers[place : place + 2] = reversed(layers[place : place + 2])
    usual.body = nn.Sequential(*layers)
    assert [type(layer) for layer in layers[1:3]] == [nn.ReLU, nn.MaxPool2d]
    images, labels = torch.randn(16, 3, 9, 11), torch.randint(0, 4, (16,))
    outputs = []
    for network in (ours, usual):
        outputs.append(network(images))
        cross_entropy(outputs[-1], labels).backward()
    assert torch.equal(*outputs)
    pairs = zip(ours.parameters(), usual.parameters(), strict=True)
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs)


def test_resnet18_has_the_known_number_of_parameters():
    assert parameter_count(resnet18((3, 32, 32), 10)) == 11_173_962
    # CIFAR-100 needs 90 more rows of the head, grey images 2 * 64 fewer 3x3 kernels
    assert parameter_count(resnet18((3, 32, 32), 100)) == 11_173_962 + 90 * 513
    assert parameter_count(resnet18((1, 28, 28), 10)) == 11_173_962 - 2 * 64 * 9


def test_resnet9_has_nine_convolutions_in_three_stages_of_falling_size():
    network = resnet9((3, 32, 32), 10)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 9
    assert {m.kernel_size for m in convolutions} == {(3, 3)}
    sizes = []
    for module in network.body:
        if isinstance(module, BasicBlock):
            module.register_forward_hook(lambda _, __, out: sizes.append(tuple(out.shape[1:])))
    network(torch.rand(1, 3, 32, 32))
    assert sizes == [(32, 16, 16), (64, 8, 8), (128, 4, 4)]
    kernels = [(3, 32), (32, 32), (32, 32), (32, 64), (64, 64), (64, 64)]
    kernels += [(64, 128), (128, 128), (128, 128)]
    expected = sum(9 * a * b + 2 * b for a, b in kernels) + 129 * 10
    assert parameter_count(network) == expected


def test_resnet18_has_18_layers_and_halves_the_image_three_times():
    network = resnet18((3, 32, 32), 10, width=8)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    on_the_path = [m for m in convolutions if m.kernel_size == (3, 3)]
    assert len(on_the_path) + 1 == 18
    assert len(convolutions) - len(on_the_path) == 3  # shortcuts
    sizes = []
    for module in network.body:
        if isinstance(module, BasicBlock):
            module.register_forward_hook(lambda _, __, out: sizes.append(tuple(out.shape[1:])))
    network(torch.rand(1, 3, 32, 32))
    stages = [(8, 32, 32), (16, 16, 16), (32, 8, 8), (64, 4, 4)]
    assert sizes == [stage for stage in stages for _ in range(2)]


def test_a_basic_block_adds_its_input_to_what_its_convolutions_make():
    block = BasicBlock(3, 3).eval()
    x = torch.randn(2, 3, 5, 5)
    torch.testing.assert_close(block(x), torch.relu(x + block.residual(x)))
    nn.init.zeros_(block.residual[-1].weight)
    assert torch.equal(block(x), torch.relu(x))


@pytest.mark.parametrize("name", NARROW)
def test_the_last_batch_may_be_one_row_of_an_image_that_shrinks_to_one_pixel(name):
    x, y = torch.rand(9, 3, 8, 8), torch.arange(9) % 2
    network = NARROW[name]((3, 8, 8), 2)
    optimisation = Optimisation(batch_size=4)  # 4 + 4 + 1 rows
    history = train(
        network,
        Rows(x, y),
        Rows(x, y),
        alpha=0.1,
        schedule=Schedule.erm(2),
        optimisation=optimisation,
    )
    assert len(history.records) == 2
    assert all(torch.isfinite(value).all() for value in network.state_dict().values())


def test_one_value_a_channel_is_normalised_by_the_running_statistics_and_leaves_them_alone():
    layer = BatchNorm(3)
    layer(torch.randn(16, 3, 4, 4) * 2 + 1)
    kept = {name: value.clone() for name, value in layer.state_dict().items()}
    x = torch.randn(1, 3, 1, 1, requires_grad=True)
    trained = layer(x)
    trained.sum().backward()
    assert torch.equal(trained, layer.eval()(x))
    assert (x.grad != 0).all()
    assert all(torch.equal(kept[name], value) for name, value in layer.state_dict().items())


def test_more_than_one_value_a_channel_is_normalised_as_torch_does():
    ours, theirs = BatchNorm(3), nn.BatchNorm2d(3)
    for shape in [(4, 3, 5, 5), (1, 3, 2, 1), (2, 3, 1, 1)]:
        x = torch.randn(shape)
        assert torch.equal(ours(x), theirs(x))
    assert all(torch.equal(ours.state_dict()[k], v) for k, v in theirs.state_dict().items())


@pytest.mark.parametrize("name", NARROW)
def test_an_image_gets_the_same_bits_alone_and_in_company(name):
    network = NARROW[name]((3, 9, 9), 3)
    x = torch.rand(20, 3, 9, 9)
    network(x * 3)  # in training mode: running statistics that are not the initial ones
    together = evaluate_logits(network, x)
    alone = torch.cat([evaluate_logits(network, row[None]) for row in x[:3]])
    assert torch.equal(together[:3], alone)
    padded_otherwise = evaluate_logits(network, torch.cat([x[:3], 100 + x[3:]]))
    assert torch.equal(padded_otherwise[:3], alone)


@pytest.mark.parametrize("name", NARROW)
def test_weights_and_running_statistics_go_into_a_state_dict_and_back(name):
    network, other = (NARROW[name]((3, 9, 9), 3) for _ in range(2))
    x = torch.rand(20, 3, 9, 9)
    network(x)
    other.load_state_dict(network.state_dict())
    assert torch.equal(evaluate_logits(network, x), evaluate_logits(other, x))


def test_a_classifier_with_cnn5_comes_back_from_its_file_with_the_same_bits(tmp_path):
    random = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = random.random((200, 3, 8, 8), np.float32) + y[:, None, None, None].astype(np.float32)
    fitted = ERMClassifier(alpha=0.2, network="cnn5", epochs=2, random_state=0).fit(X, y)
    fitted.save(tmp_path / "model.zip")
    loaded = load(tmp_path / "model.zip")
    assert np.array_equal(fitted.predict_proba(X), loaded.predict_proba(X))
    assert loaded.threshold_ == fitted.threshold_


@pytest.mark.parametrize("factory", [cnn5, resnet9, resnet18])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": 784}, r"`shape` of .* must be \(channels, height, width\).*got 784\. Images"),
        ({"shape": (28, 28)}, "`shape` of .* must be .*got \\(28, 28\\)"),
        ({"shape": (3, 0, 28)}, "`height` of .* must be a whole number of at least 1; got 0"),
        ({"shape": (3.0, 28, 28)}, "`channels` of .* must be a whole number"),
        ({"n_classes": 1}, "`n_classes` of .* must be .* at least 2; got 1"),
        ({"width": 0}, "`width` of .* must be .* at least 1; got 0"),
    ],
)
def test_images_and_sizes_outside_their_domain_are_refused(factory, arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        factory(**({"shape": (3, 28, 28), "n_classes": 10} | arguments))


# The ensemble for tables


def test_each_member_is_a_network_of_its_own_with_weights_made_of_shared_ones():
    torch.manual_seed(0)
    network = tabular(5, 3, width=7, depth=3, members=4, dropout=0.0)
    for parameter in network.parameters():  # no factor is 1 any more
        parameter.data += 0.1 * torch.randn_like(parameter)
    X = torch.randn(6, 5)
    together = network.train()(X)
    assert together.shape == (6, 4, 3)
    for member in range(4):
        hidden = X
        for layer, weights in enumerate(network.shared):
            matrix = weights.weight * network.after[layer][member].T
            if layer:
                matrix = matrix * network.before[layer - 1][member]
            hidden = torch.relu(hidden @ matrix.T + network.bias[layer][member])
        alone = hidden @ network.head[member] + network.head_bias[member]
        torch.testing.assert_close(together[:, member], alone)


def test_evaluation_gives_the_mean_of_the_members_probabilities():
    torch.manual_seed(0)
    network = tabular(5, 3, members=4, dropout=0.0)
    X = torch.randn(6, 5)
    mean = torch.softmax(network.train()(X), -1).mean(1)
    torch.testing.assert_close(torch.softmax(network.eval()(X), -1), mean)


def test_members_differ_from_the_start_and_dropout_acts_in_training_alone():
    torch.manual_seed(0)
    network = tabular(5, 2, dropout=0.5)
    X = torch.randn(3, 5)
    members = network.train()(X)
    assert len(set(members[0, :, 0].tolist())) == 8
    assert not torch.equal(members, network(X))
    assert torch.equal(network.eval()(X), network(X))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"members": 0}, "`members` of tabular"),
        ({"dropout": 1.0}, r"`dropout` of tabular must lie in \[0, 1\)"),
        ({"width": 1.5}, "`width` of tabular"),
        ({"n_classes": 1}, "`n_classes` of tabular"),
    ],
)
def test_bad_settings_of_the_ensemble_are_refused(setting, message):
    with pytest.raises(InvalidParameterError, match=message):
        tabular(**({"n_features": 3, "n_classes": 2} | setting))


# Its inputs


def test_the_piecewise_layer_equals_the_encoder_to_the_bit():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=600), random.integers(0, 4, 600), random.random(600)])
    X[random.random(600) < 0.1, 2] = np.nan
    y = (np.abs(X[:, 0]) + random.normal(size=600) > 1).astype(int)
    encoder = PiecewiseEncoder(bins=6).fit(X, y)
    assert 0 < sum(map(bool, encoder.bins_)) < len(encoder.bins_)  # some in pieces, some not
    pieces = PiecewiseLayer(encoder.bins_)
    spread = pieces(torch.from_numpy(encoder.compact(X))).numpy()
    assert spread.shape == (600, pieces.width)
    assert spread.tobytes() == encoder.transform(X).tobytes()


def test_the_piecewise_layer_adds_nothing_to_a_file():
    assert not PiecewiseLayer([0, 3]).state_dict()
    assert not list(PiecewiseLayer([0, 3]).parameters())
