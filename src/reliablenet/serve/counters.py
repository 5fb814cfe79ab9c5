"""What the server counts, as Prometheus reads it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

LIMITS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
PREFIX = "reliablenet"


class Counters:
    """Counts of requests, decisions and outcomes, and where the time went.

    Examples
    --------
    >>> from reliablenet.serve.counters import Counters
    >>> counters = Counters()
    >>> counters.answered("/ping", 200, 0.004)
    >>> print(counters.text().splitlines()[2])
    reliablenet_requests_total{path="/ping",code="200"} 1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[float] = Counter()
        self._decisions: Counter[bool] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._odd: Counter[tuple[str, str]] = Counter()
        self._sums: Counter[str] = Counter()

    def answered(self, path: str, code: int, seconds: float) -> None:
        """Count a request, by the name of its route."""
        with self._lock:
            self._requests[path, code] += 1
            self._seconds[next((limit for limit in LIMITS if seconds <= limit), float("inf"))] += 1
            self._sums["request_seconds"] += seconds  # type: ignore[assignment]

    def decided(
        self,
        accepted: Sequence[bool],
        audit: Sequence[bool],
        model: float,
        log: float,
    ) -> None:
        """Count decisions, those to be audited, and the seconds that the model and the log took."""
        acted = sum(accepted)
        with self._lock:
            self._decisions[True] += acted
            self._decisions[False] += len(accepted) - acted
            self._sums["audit"] += sum(audit)
            self._sums["batches"] += 1
            self._sums["model_seconds"] += model  # type: ignore[assignment]
            self._sums["log_seconds"] += log  # type: ignore[assignment]

    def were_odd(self, rows: int, values: Mapping[tuple[str, str], int]) -> None:
        """Count rows unlike those of training, and their odd values by column and kind."""
        with self._lock:
            self._sums["odd_rows"] += rows
            self._odd.update(values)

    def reported(self, statuses: Iterable[str]) -> None:
        """Count outcomes by what became of them."""
        with self._lock:
            self._outcomes.update(statuses)

    def log_failed(self) -> None:
        """Count a write to the log that failed."""
        with self._lock:
            self._sums["log_failures"] += 1

    def reloaded(self, *, well: bool) -> None:
        """Count a reload of the model, or one that failed and left the old one in force."""
        with self._lock:
            self._sums["reloads" if well else "reload_failures"] += 1

    def text(self, gauges: Iterable[tuple[str, str, float]] = ()) -> str:
        """Return all counts, and gauges as triples of name, help and value."""
        with self._lock:
            return "\n".join([*self._lines(), *_gauges(gauges), ""])

    def _lines(self) -> list[str]:
        lines = _head("requests_total", "counter", "Requests by route and status.")
        for (path, code), count in sorted(self._requests.items()):
            lines.append(f'{PREFIX}_requests_total{{path="{path}",code="{code}"}} {count}')
        lines += _head("request_seconds", "histogram", "Seconds from request to answer.")
        total = 0
        for limit in (*LIMITS, float("inf")):
            total += self._seconds[limit]
            name = "+Inf" if limit == float("inf") else f"{limit:g}"
            lines.append(f'{PREFIX}_request_seconds_bucket{{le="{name}"}} {total}')
        lines += [
            f"{PREFIX}_request_seconds_sum {self._sums['request_seconds']}",
            f"{PREFIX}_request_seconds_count {total}",
        ]
        lines += _head("decisions_total", "counter", "Decisions in the log, by what was decided.")
        for acted in (True, False):
            word = str(acted).lower()
            lines.append(f'{PREFIX}_decisions_total{{accepted="{word}"}} {self._decisions[acted]}')
        lines += _head("outcomes_total", "counter", "Outcomes reported, by what became of them.")
        for status, count in sorted(self._outcomes.items()):
            lines.append(f'{PREFIX}_outcomes_total{{status="{status}"}} {count}')
        lines += _head("odd_values_total", "counter", "Odd values by column and kind.")
        for (column, what), count in sorted(self._odd.items()):
            labels = f'column="{_escaped(column)}",what="{what}"'
            lines.append(f"{PREFIX}_odd_values_total{{{labels}}} {count}")
        for name, words in (
            ("audit", "Decisions that the coin picked for audit."),
            ("odd_rows", "Rows unlike those that the model was trained on."),
            ("batches", "Passes of the model, each for all requests that were waiting."),
            ("model_seconds", "Seconds spent deciding."),
            ("log_seconds", "Seconds spent writing the log."),
            ("log_failures", "Writes to the log that failed."),
            ("reloads", "Reloads of the model."),
            ("reload_failures", "Reloads that failed and left the old model in force."),
        ):
            lines += [
                *_head(f"{name}_total", "counter", words),
                f"{PREFIX}_{name}_total {self._sums[name]}",
            ]
        return lines


def _gauges(gauges: Iterable[tuple[str, str, float]]) -> list[str]:
    lines = []
    for name, words, value in gauges:
        lines += [*_head(name, "gauge", words), f"{PREFIX}_{name} {value:.10g}"]
    return lines


def _escaped(text: str) -> str:
    """Return a text as Prometheus has it between quotes."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {PREFIX}_{name} {words}", f"# TYPE {PREFIX}_{name} {kind}"]
