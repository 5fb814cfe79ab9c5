"""What a monitor says, and how it is kept: a sentence, a summary, and JSON that refuses to be altered."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from reliablenet._checks import check_count, check_fraction, check_probability, is_real
from reliablenet.certificate.anytime import STAKES
from reliablenet.certificate.sealing import read_values, seal, unseal
from reliablenet.certificate.wording import exact, percent_up
from reliablenet.errors import InvalidDataError
from reliablenet.monitor.e_process import NODES, Capital
from reliablenet.monitor.population import Population, PopulationKind

if TYPE_CHECKING:
    from reliablenet.monitor.monitor import Monitor

FORMAT = "reliablenet-monitor/1"
COUNTS = ("accepted", "labels")
STATE = ("rows", "errors", "log_surplus", "log_restarts", "log_cash", "starts", "peak")


def sentence(monitor: Monitor) -> str:
    """Return whether the promise is still kept, in one sentence."""
    raised = {name: part for name, part in monitor.parts.items() if part.alarm}
    chance = f"a false alarm has a chance of {exact(monitor.level)}"
    if raised:
        name, part = min(raised.items(), key=lambda item: item[1].alarm_row or 0)
        whose = f" of {name}" if name else ""
        more = [other for other in raised if other != name]
        others = f" The same holds for {', '.join(more[:5])}." if more else ""
        return (
            f"Alarm at row {part.alarm_row:,}{whose}: the rule acts wrongly on more than "
            f"{exact(part.alpha)} of {_rows_of(part)} ({chance}).{others}"
        )
    if monitor.labels == 0:
        return "No alarm, and no outcome yet: nothing is known."
    bounds = [
        f"{name + ': ' if name else ''}at most {percent_up(part.upper_bound, part.alpha)} of {_rows_of(part)}"
        for name, part in monitor.parts.items()
    ]
    shown = "; ".join(bounds[:3]) + ("; ..." if len(bounds) > 3 else "")
    return f"No alarm: acted on wrongly so far {shown} ({exact(1 - monitor.level)} confidence)."


def _rows_of(part: Population) -> str:
    return "rows acted on" if part.kind == "accepted" else "rows"


def summary(monitor: Monitor) -> dict[str, Any]:
    """Return what a monitor knows, as plain types."""
    several = len(monitor.parts) > 1 or "" not in monitor.parts
    found = {
        "alarm": monitor.alarm,
        "verdict": str(monitor),
        "level": monitor.level,
        "audit": monitor.audit,
        "e_value": _finite(monitor.e_value),
        "alarm_at": 1.0 / monitor.level,
        "worst_e_value": _finite(monitor.worst_e_value),
        "upper_bound": monitor.upper_bound,
        "best_upper_bound": monitor.best_upper_bound,
        "rows": monitor.rows,
        "labels": monitor.labels,
        "pending": monitor.pending,
    }
    if not several:
        return found | _part_summary(monitor.parts[""])
    parts = {name: _part_summary(part) for name, part in monitor.parts.items()}
    return found | {"parts": parts}


def _part_summary(part: Population) -> dict[str, Any]:
    return {
        "alpha": part.alpha,
        "alarm": part.alarm,
        "alarm_row": part.alarm_row,
        "log_e_value": part.log_e_value,
        "upper_bound": part.upper_bound,
        "rows": part.rows,
        "accepted": part.accepted,
        "labels": part.labels,
        "errors": part.errors,
        "pending": part.waiting,
        "jcw": None if part.rows == 0 else part.jcw,
    }


def to_json(monitor: Monitor) -> str:
    """Return the whole state as strict JSON."""
    parts = {}
    for name, part in monitor.parts.items():
        state = {key: _plain(getattr(part.capital, key)) for key in STATE}
        parts[name] = {
            "alpha": part.alpha,
            "level": part.level,
            "audit": part.audit,
            "kind": part.kind,
            "value": part.value,
            "accepted": part.accepted,
            "labels": part.labels,
            "weight": part.weight,
            "pending": [[share, count] for share, count in part.pending.items()],
            "alarm_row": part.alarm_row,
            "log_kept": part.log_kept.tolist(),
            "capital": state,
        }
    values = {"format": FORMAT, "level": monitor.level, "audit": monitor.audit, "parts": parts}
    values["summary"] = summary(monitor)
    return seal(values)


def from_json(text: str) -> tuple[float, float, dict[str, Population]]:
    """Return level, audit and populations that `to_json` wrote down."""
    values = read_values(text, (FORMAT,), "monitor")
    unseal(values, ("level", "audit", "parts", "summary"), "monitor")
    try:
        level = check_fraction("level", values["level"], "Monitor")
        audit = check_probability("audit", values["audit"], "Monitor")
        parts = {str(name): _population(part) for name, part in values["parts"].items()}
        stated = values["summary"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidDataError(
            f"The monitor cannot be read: {type(error).__name__}: {error}."
        ) from error
    for name, part in parts.items():
        fits = math.isclose(part.level, level / len(parts), rel_tol=1e-9)
        if not fits or part.audit not in (audit, 1.0):
            raise InvalidDataError(f"Level or audit of {name!r} do not fit those of the monitor.")
    if not parts:
        raise InvalidDataError("The monitor watches nothing.")
    if not isinstance(stated, dict) or stated.get("alarm") != any(p.alarm for p in parts.values()):
        raise InvalidDataError("The summary of the monitor does not follow from its state.")
    return level, audit, parts


def _population(stored: dict[str, Any]) -> Population:
    capital = stored["capital"]
    arrays: dict[str, Any] = {}
    for key, size in (("log_surplus", NODES), ("log_restarts", NODES)):
        arrays[key] = np.array([_number(value) for value in capital[key]])
        if arrays[key].shape != (size,) or np.isnan(arrays[key]).any():
            raise InvalidDataError(f"`{key}` of a monitor must hold {size} numbers.")
    kept = np.array(stored["log_kept"], np.float64)
    if kept.shape != STAKES.shape or not np.isfinite(kept).all():
        raise InvalidDataError(f"`log_kept` of a monitor must hold {len(STAKES)} numbers.")
    counts: dict[str, Any] = {
        key: check_count(key, capital[key], "Monitor", minimum=0)
        for key in ("rows", "errors", "starts")
    }
    rest = {key: check_count(key, stored[key], "Monitor", minimum=0) for key in COUNTS}
    pending = {
        check_probability("pending", share, "Monitor"): check_count("pending", count, "Monitor")
        for share, count in stored["pending"]
    }
    waiting = sum(pending.values())
    if (
        not counts["errors"]
        <= rest["labels"]
        <= rest["labels"] + waiting
        <= rest["accepted"]
        <= counts["rows"]
    ):
        raise InvalidDataError("A monitor needs errors <= labels <= accepted <= rows.")
    if stored["kind"] not in get_args(PopulationKind):
        raise InvalidDataError(f"A monitor has no rows of the kind {stored['kind']!r}.")
    state = Capital(
        log_cash=_number(capital["log_cash"]), peak=_number(capital["peak"]), **arrays, **counts
    )
    alarm = stored["alarm_row"]
    return Population(
        check_fraction("alpha", stored["alpha"], "Monitor"),
        check_fraction("level", stored["level"], "Monitor"),
        check_probability("audit", stored["audit"], "Monitor"),
        stored["kind"],
        str(stored["value"]),
        weight=_number(stored["weight"]),
        pending=pending,
        alarm_row=None if alarm is None else check_count("alarm_row", alarm, "Monitor"),
        capital=state,
        log_kept=kept,
        **rest,
    )


def _number(value: Any) -> float:
    if value == "-inf":
        return -math.inf
    if not is_real(value):
        raise InvalidDataError(f"The state of a monitor must hold numbers; got {value!r}.")
    return float(value)


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_finite(float(entry)) for entry in value]
    return _finite(value) if isinstance(value, float) else value
