"""Requests that schemathesis makes from the OpenAPI description of a server, sound ones and broken ones."""

from collections import Counter
from dataclasses import dataclass, field

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, seed as with_seed, settings
from hypothesis.errors import Unsatisfiable


@dataclass
class Found:
    """How many requests were sent, what codes came back, and which requests failed the server."""

    requests: int = 0
    codes: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)


def fuzz(url: str, examples: int, seed: int) -> Found:
    """Ask every address, with requests that fit its description and with some that do not."""
    description = schemathesis.openapi.from_dict(
        requests.get(f"{url}/openapi.json", timeout=60).json()
    )
    found = Found()
    for operation in description.get_all_operations():
        for mode in schemathesis.GenerationMode:
            try:
                cases = operation.ok().as_strategy(generation_mode=mode)
                _ask(url, cases, examples, seed, found)
            except Unsatisfiable:  # nothing can be wrong with a request without parts
                continue
    return found


def _ask(url, cases, examples, seed, found):
    @with_seed(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def ask(case):
        answer = case.call(base_url=url, timeout=60)
        found.requests += 1
        found.codes[answer.status_code] += 1
        if answer.status_code >= 500 or b"Traceback" in answer.content:
            found.failures.append((case.method, case.formatted_path, case.body, answer.text))

    ask()
