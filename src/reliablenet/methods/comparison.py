"""`Comparison`: methods side by side on the same rows, and which of them to use."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._drawing import COLOURS, new_figure
from reliablenet._renamed import renamed_method
from reliablenet._warn import without_warnings
from reliablenet.certificate import Certificate, Promise, Provenance, RuleCertificate, wording
from reliablenet.certificate.promise_wording import promise_text
from reliablenet.errors import InvalidDataError, ReliableNetError
from reliablenet.methods.base import SelectiveEstimator
from reliablenet.methods.choice import Choice
from reliablenet.methods.judging import Judging, worth
from reliablenet.methods.method_result import (
    MethodResult,
    result_from_story,
    result_to_story,
)
from reliablenet.metrics import (
    Interval,
)
from reliablenet.metrics.paired import Contest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.95
OURS = ("ReliableClassifier", "ReliableRegressor")
FORMAT, FIRST_FORMAT = "reliablenet-comparison/2", "reliablenet-comparison/1"


@dataclass(frozen=True)
class Recommendation:
    """Which method to use. As text, it is one sentence.

    Attributes
    ----------
    name : str
        Empty if no method can be certified.
    model : SelectiveEstimator or None
        A copy of the fitted method whose threshold and certificate allow for the choice: each
        method is certified at its own part of rho (see `Choice`), so that the best of them holds at
        rho. None also in a comparison that was read from JSON.
    certificate : Certificate or None
        That of ``model``.
    chosen_among : int
        Methods that could have been handed out instead, itself included; those that rank rows alike
        count as one.
    sureness : float
        Share of paired resamples of the certification fold in which it beats the runner-up, if both
        are certified at its own part of rho.
    sentence : str
    """

    name: str
    model: SelectiveEstimator | None
    certificate: Certificate | RuleCertificate | None
    chosen_among: int
    sureness: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Comparison:
    """Methods on the same folds, best certified throughput first.

    Attributes
    ----------
    alpha, rho : float
    results : dict of str to MethodResult
        By name, best first.
    failures : dict of str to str
        What went wrong with the methods that could not be fitted.
    draws : array of shape (methods, resamples)
        Certified throughput in paired resamples of the certification fold, in the order of results.
    choice : Choice
        Which methods may be handed out and at what part of rho, fixed on the selection fold.
    promise : Promise or None
        What all methods are to keep, if it is another promise than that of alpha.
    classes : tuple or None
        Labels, where a promise is about them.
    tolerance : str
        Of numbers: how far one may be off and still be right, in words.
    """

    alpha: float
    rho: float
    results: dict[str, MethodResult]
    failures: dict[str, str]
    draws: NDArray[np.float64] = field(repr=False)
    choice: Choice
    promise: Promise | None = None
    classes: tuple[Any, ...] | None = None
    tolerance: str = ""

    def to_frame(self) -> pd.DataFrame:
        """Return one row a method, best first, failed ones last.

        ``throughput`` and the columns beside it are those of the certified threshold; the columns
        that begin with ``rule`` are those of the rule fixed beforehand, NaN where there is none.
        ``rule_within_alpha`` only compares the observed JCW with alpha; ``rule_certified`` is the
        certificate. All of these hold for a method that was settled on before. `best` chooses by
        ``choice_throughput``, that of the certificate at ``choice_rho``; both are NaN for a method
        that ``family`` stands for.
        """
        table = pd.DataFrame(
            [self._row(result) for result in self.results.values()],
            index=pd.Index(list(self.results), name="method"),
        )
        failed = pd.DataFrame(
            {"error": list(self.failures.values())},
            index=pd.Index(list(self.failures), name="method"),
        )
        return pd.concat([table.assign(error=""), failed])

    frame = renamed_method("frame", "to_frame")

    def _row(self, result: MethodResult) -> dict[str, Any]:
        interval, found, rule = self.intervals[result.name], result.certificate, result.rule
        row: dict[str, Any] = {
            "certified": found.certified,
            "throughput": result.certified_throughput,
            "throughput_low": interval.low,
            "throughput_high": interval.high,
            "coverage": found.coverage,
            "jcw": found.jcw,
            "upper_bound": found.upper_bound,
            "errors": found.errors,
            "n": found.n,
            "threshold": found.threshold,
            "rule_certified": None if rule is None else rule.certified,
            "rule_within_alpha": None if rule is None else rule.jcw <= self.alpha,
        }
        for name in ("throughput", "coverage", "jcw", "upper_bound", "errors", "threshold"):
            row[f"rule_{name}"] = math.nan if rule is None else getattr(rule, name)
        for name in ("accuracy", "ece", "aurc", "excess_aurc"):
            row[name] = getattr(result.evaluation, name)
        offer = self._offers.get(result.name)
        row["family"] = self.choice.family[result.name]
        row["choice_rho"] = math.nan if offer is None else offer.rho
        row["choice_throughput"] = math.nan if offer is None else worth(offer)
        return row | {"seconds": result.seconds}

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """Bootstrap interval (95 %) of each method's certified throughput."""
        tail = (1.0 - LEVEL) / 2
        bounds = np.quantile(self.draws, [tail, 1.0 - tail], axis=1).T.tolist()
        return {name: Interval(*pair) for name, pair in zip(self.results, bounds, strict=True)}

    @cached_property
    def _offers(self) -> dict[str, Certificate | RuleCertificate]:
        """What each method that may be handed out is certified for, at its own part of rho."""
        among = len(self.choice.divisors)
        with without_warnings():  # the same rows have been judged at `rho`
            return {
                name: self.judging.certificate(
                    result.judged,
                    self.choice.level(name, self.rho),
                    result.certificate.unit,
                    replace(result.certificate.provenance or Provenance(), chosen_among=among),
                )
                for name, result in self.results.items()
                if name in self.choice.divisors
            }

    @cached_property
    def _contest(self) -> Contest:
        """How the best offer fares against the others, if all are certified at its level."""
        offers = self._offers
        winner = max(offers, key=lambda name: worth(offers[name]))
        rows = {name: self.results[name].judged for name in offers}
        return self.judging.contest(winner, rows, offers[winner].rho)

    @property
    def judging(self) -> Judging:
        """By what methods are judged."""
        return Judging(self.alpha, self.promise, self.classes, self.tolerance)

    def best(self) -> Recommendation:
        """Return the method with the largest certified throughput, ready to use.

        Its certificate is not the one in the frame, which holds for a method settled on before: every
        method that may be handed out is certified at its own part of rho, fixed on the selection fold,
        and the one that then acts rightly on most rows is chosen. The best of them holds at rho.
        """
        among = len(self.choice.divisors)
        if not self._offers:
            return self._nothing("those that could be handed out failed on the certification fold")
        contest = self._contest
        winner, offer = self.results[contest.winner], self._offers[contest.winner]
        if worth(offer) == 0.0:
            reason = "it acts rightly on no row" if offer.certified else offer.reason
            return self._nothing(f"the best of {among} is {winner.name}, and {reason}")
        model = copy.copy(winner.model)
        if model is not None:
            model._adopt(offer)
        rival = contest.runner_up()
        sureness = math.nan if rival is None else contest.sureness(rival)
        sentence = (
            self._on_winner(winner, offer)
            + self._on_rival(contest, rival)
            + self._on_first(winner)
            + self._on_our_own(contest, rival)
        )
        return Recommendation(winner.name, model, offer, among, sureness, sentence)

    def _nothing(self, reason: str) -> Recommendation:
        sentence = f"No method can be recommended: {reason}."
        return Recommendation("", None, None, len(self.choice.divisors), math.nan, sentence)

    def _on_winner(self, winner: MethodResult, offer: Certificate | RuleCertificate) -> str:
        among, tried = len(self.choice.divisors), len(self.choice.family)
        alike = f" (of {tried} tried; those that rank rows alike count once)"
        chosen = f", certified as the best of {among} methods" if among > 1 else ""
        chosen += alike if 1 < among < tried else ""
        worth = f" It is worth nothing: {wording.emptiness(offer)}." if offer.empty else ""
        rows = "rows" if offer.unit == "row" else "groups, one row of each"
        within = f"within alpha = {self.alpha:g}"
        if self.promise is not None:
            within = f"such that {promise_text(self.promise, self.tolerance, offer.unit)},"
        if self.tolerance:
            within += f" (right: off by no more than {self.tolerance})"
        return (
            f"Use {winner.name}: {within} it acts rightly on "
            f"{offer.throughput:.3f} of all {rows} (and acts on {offer.coverage:.3f}){chosen}.{worth}"
        )

    def _on_rival(self, contest: Contest, rival: str | None) -> str:
        """Say how sure the choice is: both methods certified at the level of the winner."""
        if rival is None:
            return ""
        word = contest.word(rival)
        verdict = f"{word} less" if word else "no clear difference in these rows"
        return (
            f" Certified at the same level, {rival} acts rightly on {contest.throughput[rival]:.3f}, "
            f"{verdict}: {contest.winner} is ahead in {contest.sureness(rival):.1%} of "
            f"{contest.resamples:,} paired resamples."
        )

    def _on_first(self, winner: MethodResult) -> str:
        """Say why the first in the frame is not the one to use, where it is another."""
        first = next(iter(self.results.values()))
        name = self.choice.family[first.name]
        if name == winner.name or first.certified_throughput == winner.certified_throughput:
            return ""
        offered = f"on {worth(self._offers[name]):.3f}" if name in self._offers else "on none"
        return (
            f" If chosen beforehand, {first.name} would act rightly on "
            f"{first.certified_throughput:.3f}; at its own part of rho, {offered}."
        )

    def _on_our_own(self, contest: Contest, rival: str | None) -> str:
        """Say how our own network fared, if it took part and was not spoken of yet."""
        ours = [r.name for r in self.results.values() if r.kind in OURS]
        name = self.choice.family[ours[0]] if ours else ""
        if name in (contest.winner, rival) or name not in contest.throughput:
            return ""
        if not contest.word(name):
            return f" Our network ({ours[0]}) shows no gain here."
        loss = contest.throughput[contest.winner] - contest.throughput[name]
        return f" Our network ({ours[0]}) does not pay here: {loss:.3f} less."

    def to_json(self) -> str:
        """Return all but the fitted models as strict JSON, to be reported later.

        Examples
        --------
        >>> from reliablenet.methods import Comparison
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from reliablenet.datasets import SyntheticBand
        >>> import reliablenet as rn
        >>> rows = SyntheticBand(random_state=0).sample(2000)
        >>> found = rn.compare(rows.X, rows.y, methods={"bayes": GaussianNB()}, resamples=20)
        >>> again = Comparison.from_json(found.to_json())
        >>> again.to_frame().equals(found.to_frame()), again.best().sentence == found.best().sentence
        (True, True)
        """
        story = {
            "format": FORMAT,
            "alpha": self.alpha,
            "rho": self.rho,
            "results": [result_to_story(result) for result in self.results.values()],
            "failures": self.failures,
            "draws": self.draws.tolist(),
            "choice": vars(self.choice),
            "promise": None if self.promise is None else self.promise.to_dict(),
            "classes": None if self.classes is None else list(self.classes),
            "tolerance": self.tolerance,
        }
        return json.dumps(story, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what `to_json` wrote; refuse a text whose certificates do not follow from its rows.

        In the first format all methods tried count alike in the choice, as they did then.
        """
        try:
            story = json.loads(text)
            if story["format"] not in (FORMAT, FIRST_FORMAT):
                raise InvalidDataError(
                    f"The comparison has the format {story['format']!r}; we read {FORMAT!r}."
                )
            alpha, rho = float(story["alpha"]), float(story["rho"])
            promised, named = story.get("promise"), story.get("classes")
            promise = None if promised is None else Promise.from_dict(promised)
            classes = None if named is None else tuple(named)
            tolerance = str(story.get("tolerance", ""))
            judging = Judging(alpha, promise, classes, tolerance)
            results = [result_from_story(one, judging, rho) for one in story["results"]]
            failures = {str(name): str(error) for name, error in story["failures"].items()}
            comparison = cls(
                alpha,
                rho,
                {result.name: result for result in results},
                failures,
                np.array(story["draws"], np.float64),
                Choice.equal([*(result.name for result in results), *failures])
                if story["format"] == FIRST_FORMAT
                else Choice(**story["choice"]),
                promise,
                classes,
                tolerance,
            )
        except ReliableNetError:
            raise
        except Exception as error:  # whatever a foreign text makes its readers raise
            raise InvalidDataError(
                f"This is not the JSON of a comparison: {type(error).__name__}: {error}."
            ) from error
        comparison._check(len(results))
        return comparison

    def _check(self, n_results: int) -> None:
        """Raise where what was read contradicts itself."""
        if n_results == 0 or len(self.results) < n_results or len(self.draws) != n_results:
            raise InvalidDataError(
                "A comparison needs results of distinct names and one line of draws for each; got "
                f"{n_results} results, {len(self.results)} names, {len(self.draws)} lines."
            )
        tried, chosen = {*self.results, *self.failures}, self.choice
        if not set(self.results) <= set(chosen.family) <= tried:
            raise InvalidDataError(
                "The choice of a comparison must be among its methods; got the families "
                f"{chosen.family} for {sorted(tried)}."
            )

    def plot(self) -> Figure:
        """Draw certified throughput with its interval, and the risk-coverage curves."""
        results = list(self.results.values())
        figure = new_figure("Comparison.plot", (11, 1.8 + 0.32 * len(results)))
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        places = np.arange(len(results))[::-1]
        for place, result in zip(places, results, strict=True):
            low, high = self.intervals[result.name]
            left.plot([low, high], [place, place], color=COLOURS[0], linewidth=2)
            left.plot(result.certified_throughput, place, "o", color=COLOURS[0], markersize=7)
            if result.rule is not None:
                fill = COLOURS[1] if result.rule.certified else "white"
                left.plot(
                    result.rule.throughput, place, "D", color=COLOURS[1], mfc=fill, markersize=6
                )
        left.set_yticks(places, [result.name for result in results])
        left.grid(axis="x", color="0.9")
        left.set_axisbelow(True)
        left.set_title(f"Acted on and right, alpha = {self.alpha:g}", loc="left", fontsize=10)
        left.set_xlabel(
            "share of all rows\n"
            "dot: certified threshold, with 95 % interval; diamond: rule fixed beforehand, "
            "filled if certified",
            fontsize=9,
        )
        for number, result in enumerate(results):
            alike = (np.array_equal(self.draws[number], draw) for draw in self.draws[:number])
            if not any(alike):  # rules around one classifier have one curve
                result.curve.plot(right, label=result.name)
        right.set_title("Error rate by coverage", loc="left", fontsize=10)
        right.legend(frameon=False, fontsize=8)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        return figure
