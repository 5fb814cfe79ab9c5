"""The decision log: what was decided, what a person is to check, and what turned out."""

from reliablenet.monitor.log.decision_log import DecisionLog as DecisionLog
from reliablenet.monitor.log.records import (
    Entry as Entry,
    Logged as Logged,
    Outcome as Outcome,
    Rule as Rule,
    Status as Status,
)
