"""What a comparison concludes, on rules whose order is known."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from contract_helpers import Scores
from matplotlib.figure import Figure

import reliablenet as rn
from reliablenet.certificate import largest_certifiable_errors
from reliablenet.metrics.paired import LIKELY
from reliablenet.tables import Fold, Folds

pytestmark = pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")


def folds(n: int = 2000, seed: int = 0) -> Folds:
    """Return rows, a fifth of them wrong, that column 0 ranks well, 1 badly, 2 as well as 0."""
    random = np.random.default_rng(seed)
    wrong = random.random(n) < 0.2
    well = 0.75 + 0.2 * random.random(n) - 0.15 * wrong
    badly = 0.55 + 0.4 * random.random(n) - 0.02 * wrong
    again = 0.75 + 0.2 * random.random(n) - 0.15 * wrong
    return alike(np.column_stack([well, badly, again]), (~wrong).astype(int))


def alike(X: np.ndarray, y: np.ndarray) -> Folds:
    """Return three folds of the same rows but for a number: the very same would be refused."""
    number = np.arange(len(y))
    return Folds(*(Fold(np.column_stack([X, number + k / 3]), y) for k in range(3)))


def comparison(**settings: object) -> rn.methods.Comparison:
    methods = {"badly": Scores(1), "well": Scores(0)}
    return rn.compare(folds=folds(), **({"methods": methods, "resamples": 400} | settings))


def test_the_better_ranking_wins_clearly() -> None:
    best = comparison().best()
    assert best.name == "well"
    assert best.sureness > 0.99
    assert best.chosen_among == 2
    offer = best.certificate
    assert best.sentence.startswith(
        f"Use well: within alpha = 0.05 it acts rightly on {offer.throughput:.3f} of all rows (and acts "
        f"on {offer.coverage:.3f}), certified as the best of 2 methods. Certified at the same level, badly "
    )
    assert "clearly less: well is ahead in" in best.sentence
    assert "of 1,000 paired resamples" in best.sentence  # however many the intervals took


def test_what_a_comparison_prints_of_itself_fits_on_a_screen() -> None:
    shown = repr(comparison())
    assert len(shown) < 2_000
    assert "'well': MethodResult(name='well'" in shown
    assert "Certified: the rule acts on" in shown


def test_groups_are_asked_for_before_anything_is_fitted() -> None:
    promise = rn.Promise.by_group(0.2, by="ward")
    with pytest.raises(rn.errors.InvalidParameterError) as caught:
        comparison(promise=promise)
    assert str(caught.value) == (
        "compare needs the group of each row (ward): a data frame with that column."
    )
    frame = pd.DataFrame({"a": np.arange(200.0), "ward": ["A", None] * 100})
    with pytest.raises(rn.errors.InvalidDataError, match="'ward' is missing in row 1"):
        rn.compare(frame, np.arange(200) % 2, promise=promise, methods={"well": Scores(0)})


def test_equals_are_called_equal() -> None:
    best = comparison(methods={"one": Scores(0), "two": Scores(2)}).best()
    assert 0.4 < best.sureness < LIKELY
    assert "no clear difference in these rows" in best.sentence


def test_the_runner_up_is_the_next_rule_that_differs() -> None:
    methods = {"well": Scores(0), "same": Scores(0), "badly": Scores(1)}
    best = comparison(methods=methods).best()
    assert best.name == "well"  # as given where equal
    assert "badly acts rightly on" in best.sentence
    assert "same" not in best.sentence.replace("the same level", "")
    alone = comparison(methods={"well": Scores(0), "same": Scores(0)}).best()
    assert np.isnan(alone.sureness)
    assert alone.sentence.endswith(f"(and acts on {alone.certificate.coverage:.3f}).")


def test_the_winner_is_certified_for_having_been_chosen() -> None:
    found = comparison()
    best, single = found.best(), found.results["well"]
    assert best.certificate.rho == 0.05 / 2
    assert best.certificate.certified
    assert best.certificate.errors < single.certificate.errors
    assert best.model.threshold_ == best.certificate.threshold > single.certificate.threshold
    rows = folds().certification
    assert best.model.evaluate(rows.X, rows.y).errors == best.certificate.errors
    assert single.model.threshold_ == single.certificate.threshold  # the method itself is as it was


def test_methods_that_rank_alike_count_once_and_only_the_first_is_handed_out() -> None:
    methods = {"badly": Scores(1), "well": Scores(0)}
    single = comparison(methods=methods)
    assert single.choice.divisors == {"badly": 2, "well": 2}
    rules = {"conformal": rn.ConformalRiskControl(Scores(0)), "twin": Scores(0)}
    found = comparison(methods=methods | rules)
    assert found.choice.divisors == single.choice.divisors
    assert found.best().certificate == single.best().certificate
    assert found.best().chosen_among == 2
    frame = found.to_frame()
    assert frame["family"].to_dict() == {
        "badly": "badly",
        "well": "well",
        "conformal": "well",
        "twin": "well",
    }
    assert frame.loc["well", "choice_rho"] == 0.05 / 2
    assert frame.loc["well", "choice_throughput"] == found.best().certificate.throughput
    assert (
        frame.loc[["conformal", "twin"], ["choice_rho", "choice_throughput"]].isna().all(axis=None)
    )


def test_the_winner_acts_rightly_on_most_rows_at_its_own_part_of_rho() -> None:
    """The selection fold prefers one, the certification fold alone the other."""
    fewer = largest_certifiable_errors(500, 0.05, 0.05 / 4) + 1
    wrong = np.arange(500) < 60

    def ranking(*parts: tuple[bool, int]) -> np.ndarray:
        """Return scores: so many right or wrong rows at a time, from the highest down."""
        left = {True: list(np.flatnonzero(wrong)), False: list(np.flatnonzero(~wrong))}
        order = [left[kind].pop() for kind, count in parts for _ in range(count)]
        score = np.empty(500)
        score[order] = np.linspace(0.99, 0.6, 500)
        return score

    good, bad = ranking((False, 440), (True, 60)), ranking((True, 60), (False, 440))
    third = ranking((True, 30), (False, 440), (True, 30))
    steady = ranking((False, 250), (True, 60), (False, 190))  # 250 right, at any level
    # 240 at a quarter of rho, 270 at all of it.
    uneven = ranking((False, 240), (True, fewer), (False, 30), (True, 60 - fewer), (False, 170))
    y = (~wrong).astype(int)
    chosen = Fold(np.column_stack([good, bad, third]), y)
    folds = Folds(chosen, chosen, Fold(np.column_stack([steady, uneven, third]), y))
    methods = {"favourite": Scores(0), "other": Scores(1), "third": Scores(2)}
    found = rn.compare(folds=folds, methods=methods, resamples=10)
    assert found.choice.divisors == {"favourite": 2, "other": 4, "third": 4}
    frame = found.to_frame()
    assert frame["throughput"].to_dict() == {"other": 0.54, "favourite": 0.5, "third": 0.0}
    assert frame.loc["other", "choice_throughput"] == 0.48
    best = found.best()
    assert (best.name, best.certificate.throughput) == ("favourite", 0.5)
    assert (
        "If chosen beforehand, other would act rightly on 0.540; at its own part of rho, on 0.480."
        in best.sentence
    )


def test_if_what_could_be_handed_out_failed_nothing_is() -> None:
    found = comparison(methods={"well": Scores(0), "same": Scores(0)})
    left = {"same": found.results["same"]}
    best = replace(found, results=left, failures={"well": "failed"}, draws=found.draws[1:]).best()
    assert (best.name, best.model, best.certificate, best.chosen_among) == ("", None, None, 1)
    assert "those that could be handed out failed" in best.sentence


def test_it_says_so_when_our_own_network_does_not_pay() -> None:
    """ReliableNet sees noise alone; one rival reads the answer, the other most of it."""
    random = np.random.default_rng(0)
    y = (random.random(1500) < 0.5).astype(int)
    most = np.where(random.random(1500) < 0.1, 1 - y, y)
    X = np.column_stack([np.where(y == 1, 0.9, 0.1), 0.3 + 0.4 * most, random.normal(size=1500)])

    class OnNoise(rn.ReliableClassifier):
        def _encode(self, X):
            return super()._encode(X) * 0

    short = rn.training.Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1)
    methods = {"reliablenet": OnNoise(schedule=short), "reader": Scores(0), "most": Scores(1)}
    same = alike(X, y)
    best = rn.compare(folds=same, methods=methods, alpha=0.2, resamples=50).best()
    assert best.name == "reader"
    assert "Our network (reliablenet) does not pay here: 1.000 less." in best.sentence
    del methods["most"]
    best = rn.compare(folds=same, methods=methods, alpha=0.2, resamples=50).best()
    assert "reliablenet acts rightly on" in best.sentence  # said once
    assert "Our network" not in best.sentence


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
    again = rn.methods.Comparison.from_json(found.to_json())
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())
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
        assert stored.curve.to_frame().equals(result.curve.to_frame())
        assert stored.curve.aurc == result.curve.aurc
        assert stored.rows.label_counts() == result.rows.label_counts()
    assert again.choice == found.choice
    assert list(again.plot().axes[0].get_yticks()) == list(found.plot().axes[0].get_yticks())


def test_learned_scores_and_undefined_measures_are_stored_too() -> None:
    short = rn.DeepGamblersClassifier(epochs=2, warmup_epochs=1)
    found = comparison(methods={"gamblers": short}, alpha=0.001, resamples=10)
    result = rn.methods.Comparison.from_json(found.to_json()).results["gamblers"]
    assert result.rows.lowest == -np.inf
    assert np.isnan(result.evaluation.accuracy_accepted)


def test_an_altered_comparison_is_refused() -> None:
    story = json.loads(comparison(resamples=10).to_json())
    marks = story["results"][0]["wrong"]
    story["results"][0]["wrong"] = "0" * len(marks)
    with pytest.raises(rn.errors.InvalidDataError, match="'well' does not follow from its rows"):
        rn.methods.Comparison.from_json(json.dumps(story))
    story["results"][0]["wrong"] = marks
    story["draws"] = story["draws"][:1]
    with pytest.raises(rn.errors.InvalidDataError, match="2 results, 2 names, 1 lines"):
        rn.methods.Comparison.from_json(json.dumps(story))
    with pytest.raises(rn.errors.InvalidDataError, match="format 'other'"):
        rn.methods.Comparison.from_json('{"format": "other"}')
    with pytest.raises(rn.errors.InvalidDataError, match="not the JSON of a comparison: KeyError"):
        rn.methods.Comparison.from_json("{}")
    with pytest.raises(
        rn.errors.InvalidDataError, match="not the JSON of a comparison: JSONDecodeError"
    ):
        rn.methods.Comparison.from_json("hello")


def test_altered_parts_of_rho_are_refused() -> None:
    story = json.loads(comparison(resamples=10).to_json())
    choice = {"divisors": {"well": 1, "badly": 2}, "family": {"well": "well", "badly": "badly"}}
    for altered, message in (
        (choice, "sum to rho at most"),
        (choice | {"divisors": {"well": 1}}, r"no part of rho: \['badly'\]"),
        (choice | {"divisors": {"well": 1}, "family": {}}, "choice of a comparison must be among"),
        (
            {"divisors": {"x": 1}, "family": {"well": "x", "badly": "x", "x": "x"}},
            "choice of a comparison must be among its methods",
        ),
        ({"divisors": []}, "not the JSON of a comparison: TypeError"),
        ({"divisors": [], "family": {}}, "not the JSON of a comparison: AttributeError"),
    ):
        with pytest.raises(rn.errors.InvalidDataError, match=message):
            rn.methods.Comparison.from_json(json.dumps(story | {"choice": altered}))


def first_format(stored: dict) -> dict:
    """Return a certificate as version 0.1 wrote it."""
    names = ("errors", "accepted", "n", "coverage", "alpha", "rho", "threshold", "kind", "reason")
    bound = rn.clopper_pearson_upper(stored["errors"], stored["n"], stored["rho"])
    values = {"format": "reliablenet-certificate/1", "certified": stored["certified"]}
    values |= {"upper_bound": bound} | {name: stored[name] for name in names}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return values | {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def test_the_first_format_is_read_with_all_methods_counting_alike() -> None:
    methods = {"badly": Scores(1), "well": Scores(0), "twin": Scores(0), "failed": object()}
    found = comparison(methods=methods, resamples=10)
    story = json.loads(found.to_json()) | {"format": "reliablenet-comparison/1"}
    del story["choice"]
    for result in story["results"]:
        del result["truth"]
        for name in ("certificate", "rule"):
            result[name] = result[name] and first_format(result[name])
    again = rn.methods.Comparison.from_json(json.dumps(story))
    assert again.choice.divisors == dict.fromkeys(["well", "twin", "badly", "failed"], 4)
    best = again.best()
    assert best.name == "well"
    assert (best.certificate.rho, best.chosen_among) == (0.05 / 4, 4)
    assert "badly acts rightly on" in best.sentence  # not the twin, which is as good in every draw
    pd.testing.assert_series_equal(again.to_frame()["throughput"], found.to_frame()["throughput"])
    assert again.results["well"].evaluation == found.results["well"].evaluation
    assert again.to_json() != json.dumps(story)
    assert rn.methods.Comparison.from_json(again.to_json()).best().sentence == best.sentence
