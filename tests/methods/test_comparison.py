"""What a comparison concludes, on rules whose order is known."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from contract_helpers import Scores
from matplotlib.figure import Figure

import reliablenet as rn
from reliablenet.data import Fold, Folds


def folds(n: int = 2000, seed: int = 0) -> Folds:
    """Return rows, a fifth of them wrong, that column 0 ranks well, 1 badly, 2 as well as 0."""
    random = np.random.default_rng(seed)
    wrong = random.random(n) < 0.2
    well = 0.75 + 0.2 * random.random(n) - 0.15 * wrong
    badly = 0.55 + 0.4 * random.random(n) - 0.02 * wrong
    again = 0.75 + 0.2 * random.random(n) - 0.15 * wrong
    fold = Fold(np.column_stack([well, badly, again]), (~wrong).astype(int))
    return Folds(fold, fold, fold)


def comparison(**settings: object) -> rn.Comparison:
    methods = {"badly": Scores(1), "well": Scores(0)}
    return rn.compare(folds=folds(), **({"methods": methods, "resamples": 400} | settings))


def test_the_better_ranking_wins_clearly() -> None:
    best = comparison().best()
    assert best.name == "well"
    assert best.sureness > 0.99
    assert str(best).startswith("Use well: within alpha = 0.05 it acts rightly on 0.")
    assert "clearly more than badly" in best.sentence
    assert "of 400 paired resamples" in best.sentence


def test_equals_are_called_equal() -> None:
    best = comparison(methods={"one": Scores(0), "two": Scores(2)}).best()
    assert 0.4 < best.sureness < 0.8
    assert "is as good for all that these rows can tell" in best.sentence


def test_the_runner_up_is_the_next_rule_that_differs() -> None:
    methods = {"well": Scores(0), "same": Scores(0), "badly": Scores(1)}
    best = comparison(methods=methods).best()
    assert best.name == "well"  # as given where equal
    assert "more than badly" in best.sentence
    alone = comparison(methods={"well": Scores(0), "same": Scores(0)}).best()
    assert np.isnan(alone.sureness)
    assert alone.sentence.endswith("of all rows.")


def test_the_winner_is_certified_for_having_been_chosen() -> None:
    found = comparison()
    best, single = found.best(), found.results["well"]
    assert best.certificate.rho == pytest.approx(0.05 / 2)
    assert best.certificate.certified
    assert best.certificate.errors < single.certificate.errors
    assert best.model.threshold_ == best.certificate.threshold > single.certificate.threshold
    rows = folds().certification
    assert best.model.evaluate(rows.X, rows.y).errors == best.certificate.errors
    assert single.model.threshold_ == single.certificate.threshold  # the method itself is as it was


def test_failed_methods_count_among_those_tried() -> None:
    methods = {"well": Scores(0), "badly": Scores(1), "failed": object(), "too": object()}
    found = comparison(methods=methods)
    assert len(found.failures) == 2
    assert found.best().certificate.rho == pytest.approx(0.05 / 4)


def test_it_says_so_when_our_own_network_does_not_pay() -> None:
    """ReliableNet sees noise alone; one rival reads the answer, the other most of it."""
    random = np.random.default_rng(0)
    y = (random.random(1500) < 0.5).astype(int)
    most = np.where(random.random(1500) < 0.1, 1 - y, y)
    X = np.column_stack([np.where(y == 1, 0.9, 0.1), 0.3 + 0.4 * most, random.normal(size=1500)])

    class OnNoise(rn.ReliableClassifier):
        def _encode(self, X):
            return super()._encode(X) * 0

    fold = Fold(X, y)
    short = rn.Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1)
    methods = {"reliablenet": OnNoise(schedule=short), "reader": Scores(0), "most": Scores(1)}
    same = Folds(fold, fold, fold)
    best = rn.compare(folds=same, methods=methods, alpha=0.2, resamples=50).best()
    assert best.name == "reader"
    assert "A network of ours (reliablenet) does not pay here" in best.sentence
    del methods["most"]
    best = rn.compare(folds=same, methods=methods, alpha=0.2, resamples=50).best()
    assert "more than reliablenet" in best.sentence  # said once
    assert "A network of ours" not in best.sentence


def test_intervals_hold_the_figure_they_are_about() -> None:
    found = comparison()
    for name, interval in found.intervals.items():
        assert interval.low < found.results[name].certified_throughput < interval.high


def test_the_plot_shows_every_method_and_one_curve_a_ranking() -> None:
    methods = {"well": Scores(0), "same": Scores(0), "badly": Scores(1)}
    figure = comparison(methods=methods).plot()
    assert isinstance(figure, Figure)
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["well", "same", "badly"]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["well", "badly"]


def test_a_stored_comparison_says_what_the_fresh_one_says() -> None:
    methods = {"badly": Scores(1), "well": Scores(0), "failed": object()}
    found = comparison(methods=methods | {"conformal": rn.ConformalRiskControl(Scores(2))})
    again = rn.Comparison.from_json(found.to_json())
    pd.testing.assert_frame_equal(again.frame(), found.frame())
    np.testing.assert_array_equal(again.draws, found.draws)
    assert again.failures == found.failures
    assert again.best().sentence == found.best().sentence
    assert again.best().certificate == found.best().certificate
    assert again.best().model is None
    assert again.to_json() == found.to_json()
    for name, result in found.results.items():
        stored = again.results[name]
        assert (stored.model, stored.kind, stored.notes) == (None, result.kind, result.notes)
        assert (stored.rule, stored.certificate) == (result.rule, result.certificate)
        assert stored.evaluation == result.evaluation
        assert stored.curve.frame().equals(result.curve.frame())
        assert stored.curve.aurc == result.curve.aurc
    assert list(again.plot().axes[0].get_yticks()) == list(found.plot().axes[0].get_yticks())


def test_learned_scores_and_undefined_measures_are_stored_too() -> None:
    short = rn.DeepGamblersClassifier(epochs=2, warmup_epochs=1)
    found = comparison(methods={"gamblers": short}, alpha=0.001, resamples=10)
    result = rn.Comparison.from_json(found.to_json()).results["gamblers"]
    assert result.rows.lowest == -np.inf
    assert np.isnan(result.evaluation.accuracy_accepted)


def test_an_altered_comparison_is_refused() -> None:
    story = json.loads(comparison(resamples=10).to_json())
    story["results"][0]["wrong"] = "0" * len(story["results"][0]["wrong"])
    with pytest.raises(rn.InvalidDataError, match="'well' does not follow from its rows"):
        rn.Comparison.from_json(json.dumps(story))
    story["draws"] = story["draws"][:1]
    with pytest.raises(rn.InvalidDataError, match="2 results, 2 names, 1 lines"):
        rn.Comparison.from_json(json.dumps(story))
    with pytest.raises(rn.InvalidDataError, match="format 'other'"):
        rn.Comparison.from_json('{"format": "other"}')
    with pytest.raises(rn.InvalidDataError, match="not the JSON of a comparison: KeyError"):
        rn.Comparison.from_json("{}")
    with pytest.raises(rn.InvalidDataError, match="not the JSON of a comparison: JSONDecodeError"):
        rn.Comparison.from_json("hello")
