"""Who may ask, and how much: tokens, hosts, sizes, slow clients, addresses outside."""

import base64
import socket
import time

import pytest
import requests
from serving import LocalServer, make_rows, records, wait_until

TOKEN = "correct horse battery staple"  # noqa: S105


@pytest.fixture(scope="module")
def guarded(model_file, tmp_path_factory):
    log = tmp_path_factory.mktemp("guarded") / "d.db"
    with LocalServer(model_file, log, token=TOKEN, timeout=5.0) as running:
        yield running


def basic(password):
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic(TOKEN)])
def test_the_right_token_is_let_in(guarded, header):
    assert guarded.get("/certificate", headers={"Authorization": header}).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        f"Token {TOKEN}",
        basic("wrong"),
        "Basic ???",
        basic(""),
        "Bearer \u00e9".encode("latin-1"),
    ],
)
@pytest.mark.parametrize(
    "path", ["/certificate", "/metrics", "/", "/audit", "/openapi.json", "/nothing"]
)
def test_a_wrong_token_is_not(guarded, header, path):
    headers = {} if header is None else {"Authorization": header}
    answer = guarded.get(path, headers=headers)
    assert answer.status_code == 401
    assert "Bearer" in answer.headers["WWW-Authenticate"]
    assert TOKEN not in answer.text


def test_a_wrong_token_decides_nothing(guarded):
    body = {"dataframe_records": records(make_rows(1, 0)[0])}
    for path, content in (
        ("/invocations", body),
        ("/outcomes", {"outcomes": [{"id": "a", "truth": "b"}]}),
    ):
        assert guarded.post(path, content).status_code == 401
    allowed = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.post("/invocations", body, headers=allowed).status_code == 200


def test_health_needs_no_token(guarded):
    for path in ("/ping", "/healthz", "/v2/health/live", "/v2/health/ready"):
        assert guarded.get(path).status_code == 200


def test_a_name_that_is_not_the_servers_is_refused(server):
    """Else a page elsewhere could reach loopback by a name of its own that leads there."""
    for host in ("evil.example", "127.0.0.1.evil.example:80", "", "localhost.evil"):
        assert server.get("/ping", headers={"Host": host}).status_code in (400, 421)
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8080"):
        assert server.get("/ping", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_form_of_another_page_cannot_write(server, kind):
    data = b'{"outcomes": [{"id": "a", "truth": "b"}]}'
    answer = requests.post(
        f"{server.url}/outcomes", data=data, headers={"Content-Type": kind}, timeout=30
    )
    assert answer.status_code == 415
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_too_many_rows_and_bytes(server):
    table, _ = make_rows(501, seed=0)
    answer = server.post("/invocations", {"dataframe_records": records(table)})
    assert (answer.status_code, "500 rows; got 501" in answer.text) == (413, True)
    answer = server.post("/invocations", {"dataframe_records": "x" * 2**18})
    assert (answer.status_code, "262,144 bytes" in answer.text) == (413, True)

    def pieces():
        for _ in range(40):
            yield b'"' + b"x" * 10_000

    try:  # without a length, so that only counting helps
        headers = {"Content-Type": "application/json"}
        answer = requests.post(
            f"{server.url}/invocations", data=pieces(), headers=headers, timeout=30
        )
        assert answer.status_code == 413
    except requests.ConnectionError:  # the server closed before all was sent
        pass
    assert server.get("/ping").status_code == 200


def test_a_deep_body_is_refused(server):
    text = b'{"dataframe_records":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    answer = requests.post(
        f"{server.url}/invocations",
        data=text,
        headers={"Content-Type": "application/json"},
        timeout=30,
    )
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../../etc/passwd",
        "/v2/models/..%2f..%2fetc%2fpasswd",
        "/v2/models/%00",
        "//etc/passwd",
        "/.git/config",
        "/decisions.db",
        "/\\..\\..",
    ],
)
def test_no_file_is_handed_out(server, path):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split(b" ")[1] in (b"404", b"400")
    assert b"root:" not in answer
    assert b"Traceback" not in answer


def closes(client, limit=20.0):
    """Tell whether the other side hangs up in time, whatever it says before."""
    client.settimeout(limit)
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_slow_clients_are_hung_up_on_and_hold_up_nobody(guarded):
    host, port = guarded.url.removeprefix("http://").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(20)]
    for client in silent[:10]:
        client.sendall(b"POST /invocations HTTP/1.1\r\nHost: local")
    slow = socket.create_connection((host, int(port)))
    slow.sendall(
        b"POST /invocations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + TOKEN.encode() + b"\r\nContent-Length: 1000\r\n\r\n{"
    )
    begun = time.monotonic()
    assert guarded.get("/ping").status_code == 200
    assert time.monotonic() - begun < 10
    slow.settimeout(20)
    assert b"408" in slow.recv(4096)
    assert all(closes(client) for client in silent)
    for client in (*silent, slow):
        client.close()


def test_a_client_that_goes_away_harms_nobody(server):
    host, port = server.url.removeprefix("http://").split(":")
    for _ in range(5):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                b"POST /invocations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000\r\n\r\n{"
            )
    wait_until(lambda: server.get("/healthz").json()["waiting"] == 0)
    assert server.decide(make_rows(1, seed=0)[0])


def test_nothing_is_told_of_the_machinery(server):
    answer = server.get("/nothing")
    assert "server" not in {name.lower() for name in answer.headers}
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
