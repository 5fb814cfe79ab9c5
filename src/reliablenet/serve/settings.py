"""What a server is told: where it listens, where it logs, and how much it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reliablenet._checks import check_count, check_positive, parameter_error

MEBIBYTE = 2**20


@dataclass(frozen=True)
class Settings:
    """Settings of a server.

    Attributes
    ----------
    model : Path
    log : str
        A SQLite file or a PostgreSQL URL.
    audit : float
        Share of decisions that the coin picks.
    name : str
        Of the model in URLs and on the page; by default that of the file.
    host, port : str, int
        Loopback unless told otherwise; port 0 takes any that is free.
    token : str
        That every request must bring, none if empty.
    key : bytes
        Of the audit coin.
    group : str
        A column that says which population a row belongs to; the log keeps it.
    keep_features : bool
        Whether the log keeps what was asked.
    durable : bool
        Whether SQLite waits for the disk at every commit.
    most_bytes, most_rows : int
        Of one request.
    timeout : float
        Seconds for a client to send its request, and for a request to be answered.
    watch : float
        Seconds between two looks whether the model file was replaced; 0: only on SIGHUP.
    level : float
        Probability of a false alarm of the monitor.
    defer_odd : bool
        Whether rows unlike those of training are deferred.
    allow_missing : tuple of str
        Columns that may be null in every row of a request though they never were in training.
    trusted_keys : tuple of Path
        Files of public keys. If there are any, a model file that none of them signed is not served.
    """

    model: Path
    log: str
    key: bytes
    audit: float = 0.1
    name: str = ""
    host: str = "127.0.0.1"
    port: int = 8080
    token: str = ""
    group: str = ""
    keep_features: bool = False
    durable: bool = False
    most_bytes: int = 16 * MEBIBYTE
    most_rows: int = 10_000
    timeout: float = 30.0
    watch: float = 0.0
    level: float = 0.05
    defer_odd: bool = False
    allow_missing: tuple[str, ...] = ()
    trusted_keys: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        check_count("most_bytes", self.most_bytes, "serve")
        check_count("most_rows", self.most_rows, "serve")
        check_positive("timeout", self.timeout, "serve")
        check_positive("watch", self.watch, "serve", zero=True)
        if not 0 <= self.port < 2**16:
            raise parameter_error("port", "serve", "lie in [0, 65535]", self.port)

    @property
    def title(self) -> str:
        """The name of the model."""
        return self.name or self.model.stem

    @property
    def local(self) -> bool:
        """Whether the server is reached from this machine alone."""
        return self.host in ("127.0.0.1", "localhost", "::1")
