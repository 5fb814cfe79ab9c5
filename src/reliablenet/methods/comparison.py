"""`Comparison`: methods side by side on the same rows, and which of them to use."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.certificate import Certificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.threshold import certify_monotone
from reliablenet.errors import InvalidDataError, MissingExtraError, ReliableNetError
from reliablenet.methods.base import SelectiveClassifier
from reliablenet.metrics import Evaluation, Interval, RiskCoverageCurve, risk_coverage_curve
from reliablenet.metrics.curves import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLEAR, LIKELY = 0.95, 0.8  # shares of resamples from which we speak of a clear or likely winner
LEVEL = 0.95
FORMAT = "reliablenet-comparison/1"


@dataclass(frozen=True)
class MethodResult:
    """One method on the certification fold.

    Attributes
    ----------
    name : str
    model : SelectiveClassifier or None
        Fitted; it acts by its own rule. None in a comparison that was read from JSON.
    rule : Certificate or None
        Of the rule that was fixed before the certification fold was opened, where there is one.
    certificate : Certificate
        Of the certified threshold, chosen on the fold itself.
    evaluation : Evaluation
        At the certified threshold.
    curve : RiskCoverageCurve
    rows : ScoredRows
        Scores and verdicts, in the order of the fold.
    seconds : float
        Time to fit, that of a wrapped classifier included.
    notes : tuple of str
        Warnings that the fit gave.
    kind : str
        Name of the model's class, or of ours that it extends.
    """

    name: str
    model: Any
    rule: Certificate | None
    certificate: Certificate
    evaluation: Evaluation
    curve: RiskCoverageCurve
    rows: ScoredRows
    seconds: float
    notes: tuple[str, ...]
    kind: str = ""

    def __post_init__(self) -> None:
        if self.model is not None:
            ours = (c for c in type(self.model).__mro__ if c.__module__.startswith("reliablenet."))
            object.__setattr__(self, "kind", next(ours).__name__)

    @property
    def certified_throughput(self) -> float:
        """Share of rows that are acted on and right at the certified threshold; 0 without one."""
        return self.certificate.throughput if self.certificate.certified else 0.0


@dataclass(frozen=True)
class Recommendation:
    """Which method to use. As text, it is one sentence.

    Attributes
    ----------
    name : str
        Empty if no method can be certified.
    model : SelectiveClassifier or None
        A copy of the fitted method whose threshold and certificate allow for the choice: among M
        methods each is certified at rho / M, so that the best of them holds at rho. None also in a
        comparison that was read from JSON.
    certificate : Certificate or None
        That of ``model``.
    sureness : float
        Share of paired resamples of the certification fold in which it beats the runner-up.
    sentence : str
    """

    name: str
    model: SelectiveClassifier | None
    certificate: Certificate | None
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
    """

    alpha: float
    rho: float
    results: dict[str, MethodResult]
    failures: dict[str, str]
    draws: NDArray[np.float64]

    def frame(self) -> pd.DataFrame:
        """Return one row a method, best first, failed ones last.

        ``throughput`` and the columns beside it are those of the certified threshold; the columns
        that begin with ``rule`` are those of the rule fixed beforehand, NaN where there is none.
        ``rule_within_alpha`` only compares the observed JCW with alpha; ``rule_certified`` is the
        certificate.
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
        return row | {"seconds": result.seconds}

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """Bootstrap interval (95 %) of each method's certified throughput."""
        tail = (1.0 - LEVEL) / 2
        bounds = np.quantile(self.draws, [tail, 1.0 - tail], axis=1).T.tolist()
        return {name: Interval(*pair) for name, pair in zip(self.results, bounds, strict=True)}

    def best(self) -> Recommendation:
        """Return the method with the largest certified throughput, ready to use.

        Its certificate is that of the best of all methods tried here, failed ones included, and not
        the one in the frame, which holds for a single method chosen before.
        """
        results = list(self.results.values())
        winner = results[0]
        tried = len(results) + len(self.failures)
        corrected = certify_monotone(winner.rows, self.alpha, self.rho / tried)
        if not corrected.certified or winner.certified_throughput == 0.0:
            reason = "it acts rightly on no row" if corrected.certified else corrected.reason
            sentence = (
                f"No method can be recommended: the best of {tried} is {winner.name}, and {reason}."
            )
            return Recommendation("", None, None, math.nan, sentence)
        model = copy.copy(winner.model)
        if model is not None:
            model._adopt(corrected)
        rival = self._runner_up()
        sureness = math.nan if rival is None else self._sureness(rival)
        second = None if rival is None else results[rival]
        sentence = self._sentence(winner, second, sureness) + self._on_our_own(winner, second)
        return Recommendation(winner.name, model, corrected, sureness, sentence)

    def _runner_up(self) -> int | None:
        """Return the next method that differs; rules around one classifier may rank rows alike."""
        for number in range(1, len(self.draws)):
            if not np.array_equal(self.draws[0], self.draws[number]):
                return number
        return None

    def _sureness(self, rival: int) -> float:
        """Return the share of resamples in which the first beats a rival; a tie counts half."""
        difference = self.draws[0] - self.draws[rival]
        return float(((difference > 0).mean() + (difference >= 0).mean()) / 2)

    def _sentence(self, winner: MethodResult, rival: MethodResult | None, sureness: float) -> str:
        start = (
            f"Use {winner.name}: within alpha = {self.alpha:g} it acts rightly on "
            f"{winner.certified_throughput:.3f} of all rows"
        )
        if rival is None:
            return f"{start}."
        gain = winner.certified_throughput - rival.certified_throughput
        shares = f"ahead in {sureness:.1%} of {self.draws.shape[1]:,} paired resamples"
        if sureness >= LIKELY:
            word = "clearly" if sureness >= CLEAR else "probably"
            return f"{start}, {word} more than {rival.name}, by {gain:.3f} ({shares})."
        return (
            f"{start}, but {rival.name} with {rival.certified_throughput:.3f} is as good for all "
            f"that these rows can tell ({shares})."
        )

    def _on_our_own(self, winner: MethodResult, second: MethodResult | None) -> str:
        """Say how our own network fared, if it took part and was not spoken of yet."""
        ours = [r for r in self.results.values() if r.kind == "ReliableClassifier"]
        if not ours or ours[0] is winner or ours[0] is second:
            return ""
        loss = winner.certified_throughput - ours[0].certified_throughput
        place = list(self.results).index(ours[0].name)
        if self._sureness(place) < LIKELY:
            return f" A network of ours ({ours[0].name}) shows no gain here."
        return f" A network of ours ({ours[0].name}) does not pay here: {loss:.3f} less."

    def to_json(self) -> str:
        """Return all but the fitted models as strict JSON, to be reported later.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from reliablenet.data import SyntheticBand
        >>> import reliablenet as rn
        >>> rows = SyntheticBand(seed=0).sample(2000)
        >>> found = rn.compare(rows.X, rows.y, methods={"bayes": GaussianNB()}, resamples=20)
        >>> again = Comparison.from_json(found.to_json())
        >>> again.frame().equals(found.frame()), again.best().sentence == found.best().sentence
        (True, True)
        """
        story = {
            "format": FORMAT,
            "alpha": self.alpha,
            "rho": self.rho,
            "results": [_result_to(result) for result in self.results.values()],
            "failures": self.failures,
            "draws": self.draws.tolist(),
        }
        return json.dumps(story, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what `to_json` wrote; refuse a text whose certificates do not follow from its rows."""
        try:
            story = json.loads(text)
            if story["format"] != FORMAT:
                raise InvalidDataError(
                    f"The comparison has the format {story['format']!r}; we read {FORMAT!r}."
                )
            results = [_result_from(one) for one in story["results"]]
            draws = np.array(story["draws"], np.float64)
            comparison = cls(
                float(story["alpha"]),
                float(story["rho"]),
                {result.name: result for result in results},
                {str(name): str(error) for name, error in story["failures"].items()},
                draws,
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
        for result in self.results.values():
            if result.certificate != certify_monotone(result.rows, self.alpha, self.rho):
                raise InvalidDataError(
                    f"The certificate of {result.name!r} does not follow from its rows: the text "
                    "was altered."
                )

    def plot(self) -> Figure:
        """Draw certified throughput with its interval, and the risk-coverage curves."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError(
                "Comparison.plot needs matplotlib: pip install 'reliablenet[report]'"
            ) from error
        results = list(self.results.values())
        figure = Figure(figsize=(11, 1.8 + 0.32 * len(results)), layout="constrained")
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


def _result_to(result: MethodResult) -> dict[str, Any]:
    measured = result.evaluation.to_dict().items()
    return {
        "name": result.name,
        "kind": result.kind,
        "rule": None if result.rule is None else json.loads(result.rule.to_json()),
        "certificate": json.loads(result.certificate.to_json()),
        "evaluation": {name: None if math.isnan(value) else value for name, value in measured},
        "score": result.rows.score.tolist(),
        "wrong": "".join("1" if wrong else "0" for wrong in result.rows.wrong),
        "any_score": result.rows.lowest != 0.0,
        "seconds": result.seconds,
        "notes": list(result.notes),
    }


def _result_from(story: dict[str, Any]) -> MethodResult:
    score = np.array(story["score"], np.float64)
    wrong = np.array([mark == "1" for mark in story["wrong"]])
    measured: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in story["evaluation"].items()
    }
    rule = story["rule"]
    return MethodResult(
        name=story["name"],
        model=None,
        rule=None if rule is None else Certificate.from_json(json.dumps(rule)),
        certificate=Certificate.from_json(json.dumps(story["certificate"])),
        evaluation=Evaluation(**measured),
        # The curve knows of a row only its score and whether it is wrong.
        curve=risk_coverage_curve(
            None, np.zeros(len(wrong), int), score=score, predicted=wrong * 1
        ),
        rows=ScoredRows(score, wrong, -math.inf if story["any_score"] else 0.0),
        seconds=story["seconds"],
        notes=tuple(story["notes"]),
        kind=story["kind"],
    )
