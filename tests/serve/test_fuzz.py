"""Requests made up from the OpenAPI description, and against it: never a 5xx. `python -m studies http_fuzz` makes thousands."""

from http_fuzz_cases import fuzz


def test_made_up_requests_never_fail_the_server(server):
    found = fuzz(server.url, examples=3, seed=0)
    assert found.requests > 30
    assert found.failures == []
    assert server.get("/healthz").status_code == 200
