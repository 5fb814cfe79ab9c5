"""The monitor's view of the log, computed anew when the log has changed, and never twice at once."""

from __future__ import annotations

import threading
import time

from reliablenet.monitor.log import DecisionLog
from reliablenet.monitor.watched import Watched, watch

STALE = 60.0  # seconds after which Prometheus is told a new view


class Watching:
    """The last view of a log.

    Parameters
    ----------
    log : DecisionLog
    level : float
        Allowed probability of a false alarm.
    """

    def __init__(self, log: DecisionLog, level: float) -> None:
        self.log, self.level = log, level
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] = ()
        self._view: Watched | None = None
        self._time = -STALE

    def view(self) -> Watched:
        """Return the view of the log as it is now."""
        with self._lock:
            seen = (len(self.log.rules()), *self.log.counts().values())
            if self._view is None or seen != self._seen:
                self._view, self._seen = watch(self.log, self.level, before=self._view), seen
            self._time = time.monotonic()
            return self._view

    def gauges(self) -> list[tuple[str, str, float]]:
        """Return what Prometheus is told, at most a minute old."""
        old = time.monotonic() - self._time > STALE
        view = self.view() if old or self._view is None else self._view
        gauges = []
        if view.source is not None:
            gauges = [
                ("source_changed", "Whether confidences ever changed.", float(view.source.alarm)),
                ("source_e_value", "Evidence of another source.", min(view.source.e_value, 1e300)),
            ]
        if view.monitor is None:
            return gauges
        return [
            *gauges,
            ("alarm", "Whether the monitor ever raised the alarm.", float(view.monitor.alarm)),
            ("e_value", "Evidence that the promise is broken.", min(view.monitor.e_value, 1e300)),
            ("upper_bound", "Bound of the share acted on wrongly.", view.monitor.upper_bound),
            ("outcomes_pending", "Audited rows without outcome.", float(view.monitor.pending)),
        ]
