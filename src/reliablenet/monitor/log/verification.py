"""Whether the coin of a log was tossed as its key says, and no decision was left out."""

from __future__ import annotations

from dataclasses import dataclass

from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log.decision_log import DecisionLog


@dataclass(frozen=True)
class Verification:
    """What is wrong with a log; nothing, if both are empty.

    Attributes
    ----------
    otherwise : list of str
        Ids of decisions that the coin of this key would have treated otherwise.
    gaps : list of str
        Ids that a run of a server must have given before a later one, and that are not there.
    """

    otherwise: list[str]
    gaps: list[str]

    def __bool__(self) -> bool:
        return not self.otherwise and not self.gaps


def verify(log: DecisionLog, key: bytes) -> Verification:
    """Toss the coin of every decision again, and look for decisions that are missing.

    Parameters
    ----------
    log : DecisionLog
    key : bytes
        Of the audit coin. The share of each decision is read from the log.

    Returns
    -------
    Verification
        True where all is as it must be.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from reliablenet.monitor.coin import AuditCoin
    >>> from reliablenet.monitor.log import DecisionLog
    >>> from reliablenet.monitor.log.verification import verify
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = DecisionLog(Path(folder.name) / "decisions.db", create=True)
    >>> rule = log.put_in_force("loans", model="0" * 64, document="{}")
    >>> coin = AuditCoin(bytes(32), share=0.5)
    >>> logged = log.append(rule, coin, ["yes"] * 20, [0.9] * 20, [True] * 20)
    >>> bool(verify(log, coin.key)), bool(verify(log, bytes([1]) * 32))
    (True, False)
    >>> log.close()
    >>> folder.cleanup()
    """
    coins: dict[float, AuditCoin] = {}
    following: dict[str, int] = {}
    otherwise: list[str] = []
    gaps: list[str] = []
    for entry in log.entries():
        coin = coins.setdefault(entry.share, AuditCoin(key, entry.share))
        if coin.picks(entry.id) != entry.audit:
            otherwise.append(entry.id)
        run, _, count = entry.id.partition("-")
        place = int(count, 16)
        gaps += [f"{run}-{missing:08x}" for missing in range(following.get(run, 0), place)]
        following[run] = place + 1
    return Verification(otherwise, gaps)
