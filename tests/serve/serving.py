"""A server in a process of its own, as a person starts it, and rows to ask it."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import requests

STARTUP = 600  # seconds: on a busy machine the imports alone take long


def make_rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a known source: the label follows from x0, x1 and colour, but for some noise."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.normal(size=n).round(6) for name in ("x0", "x1", "x2")})
    table["colour"] = rng.choice(["red", "green", "blue"], n)
    table["same"] = "x"
    risk = table.x0 + table.x1 + (table.colour == "red") + 0.3 * rng.normal(size=n)
    return table, np.where(risk > 0, "yes", "no")


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON has them."""
    plain = table.astype(object).where(table.notna(), None)
    return plain.to_dict("records")


class ServerProcess:
    """`reliablenet serve` in a process of its own."""

    def __init__(self, model: Path, log: Any, *options: str, **environment: str) -> None:
        command = [sys.executable, "-m", "reliablenet", "serve", str(model), "--log", str(log)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.lines: list[str] = []
        self._grew = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            line = self.wait_for("Serving .* on http")
        except BaseException:
            self.__exit__()
            raise
        self.url = line.split(" on ")[-1].strip()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reader.join(30)
        self.process.stderr.close()

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._grew:
                self.lines.append(line)
                self._grew.notify_all()
        with self._grew:
            self._grew.notify_all()

    def wait_for(self, pattern: str) -> str:
        """Return the first line with this pattern."""

        def found() -> str | None:
            return next((line for line in self.lines if re.search(pattern, line)), None)

        with self._grew:
            self._grew.wait_for(lambda: found() or not self._reader.is_alive(), STARTUP)
        line = found()
        assert line is not None, f"{pattern!r} was never said: {''.join(self.lines)}"
        return line

    def post(self, path: str, body: Any, **settings: Any) -> requests.Response:
        return requests.post(self.url + path, json=body, timeout=60, **settings)

    def get(self, path: str, **settings: Any) -> requests.Response:
        return requests.get(self.url + path, timeout=60, **settings)

    def decide(self, table: pd.DataFrame, **settings: Any) -> list[dict[str, Any]]:
        answer = self.post("/invocations", {"dataframe_records": records(table)}, **settings)
        assert answer.status_code == 200, answer.text
        return answer.json()["predictions"]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


class Load:
    """Clients that ask and report without a pause, and remember what they were told."""

    def __init__(
        self, url: str, rows: list[dict[str, Any]], clients: int = 4, outcomes: bool = True
    ) -> None:
        self.url, self.rows, self.outcomes = url, rows, outcomes
        self.decisions: list[str] = []
        self.reported: list[str] = []
        self.refused: list[int] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work) for _ in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        with requests.Session() as session:
            try:
                while not self._stop.is_set():
                    self._ask(session)
            except requests.RequestException:  # the server is gone
                return

    def _ask(self, session: requests.Session) -> None:
        body = {"dataframe_records": self.rows}
        answer = session.post(f"{self.url}/invocations", json=body, timeout=30)
        if answer.status_code != 200:
            self.refused.append(answer.status_code)
            return
        found = [row["id"] for row in answer.json()["predictions"]]
        self.decisions.extend(found)
        if self.outcomes:
            body = {"outcomes": [{"id": name, "truth": "yes"} for name in found]}
            answer = session.post(f"{self.url}/outcomes", json=body, timeout=30)
            if answer.status_code == 200:
                self.reported.extend(found)


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Wait for something that is going to happen."""
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


class LocalServer(ServerProcess):
    """The same server in a thread of this process, for what needs no kill."""

    def __init__(self, model: Path, log: Any, **settings: Any) -> None:
        from reliablenet.serve.server import make_server
        from reliablenet.serve.settings import Settings

        self.lines = []
        self._grew = threading.Condition()
        given = Settings(model=model, log=str(log), key=bytes(32), **({"port": 0} | settings))
        self._made = make_server(given, self._hear)
        self.running = self._made.__enter__()
        self._reader = threading.Thread(target=self.running.run)
        self._reader.start()
        self.url = self.wait_for("Serving .* on http").split(" on ")[-1].strip()

    def _hear(self, line: str) -> None:
        with self._grew:
            self.lines.append(line)
            self._grew.notify_all()

    def __exit__(self, *_: object) -> None:
        self.running.should_exit = True
        self._reader.join(60)
        self._made.__exit__(None, None, None)
