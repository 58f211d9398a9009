"""The proxy of docs/serve.md: a real nginx with TLS, as the page configures it."""

import os
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.conftest import Script
from tests.serve.conftest import Start, user

from recto.serve.server import bound_socket

pytestmark = [pytest.mark.slow, pytest.mark.untraced]
PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
LONG = " ".join(f"word{number}" for number in range(600))
OUTER = """daemon off;
pid {at}/nginx.pid;
error_log {at}/error.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {at}/body;
    proxy_temp_path {at}/proxy;
    fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi;
    scgi_temp_path {at}/scgi;
{server}
}}
"""


def configured(at: Path, port: int, upstream: str, certificate: Path, key: Path) -> str:
    """The block of the page, with this machine's ports and files in it."""
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    block = found[1]
    for old, new in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("recto.example.com", "localhost"),
        ("http://127.0.0.1:8440", upstream),
        ("/etc/ssl/recto.crt", str(certificate)),
        ("/etc/ssl/recto.key", str(key)),
    ):
        assert old in block
        block = block.replace(old, new)
    return OUTER.format(at=at, user="user root;" if os.geteuid() == 0 else "", server=block)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Callable[[str], httpx2.Client]]:
    """Starts nginx in front of an address; gives a client of it that trusts its certificate."""
    nginx, openssl = shutil.which("nginx") or shutil.which("/usr/sbin/nginx"), shutil.which("openssl")
    if not nginx or not openssl:
        pytest.skip("nginx or openssl is not installed")
    at, started, clients = tmp_path / "nginx", list[subprocess.Popen[bytes]](), list[httpx2.Client]()
    at.mkdir()
    certificate, key = at / "recto.crt", at / "recto.key"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *names, "-days", "2"], check=True, capture_output=True)

    trusted = ssl.create_default_context(cafile=str(certificate))

    def start(upstream: str) -> httpx2.Client:
        with bound_socket("127.0.0.1", 0) as bound:
            port = bound.getsockname()[1]
        (at / "nginx.conf").write_text(configured(at, port, upstream, certificate, key))
        started.append(subprocess.Popen([nginx, "-p", str(at), "-c", str(at / "nginx.conf")]))
        clients.append(httpx2.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted, timeout=60))
        while started[-1].poll() is None:
            try:
                clients[-1].get("/v1/models")
                return clients[-1]
            except httpx2.ConnectError:
                time.sleep(0.05)
        raise AssertionError((at / "error.log").read_text())

    yield start
    for client in clients:
        client.close()
    for process in started:
        process.terminate()
        process.wait()


def test_words_come_through_the_proxy_while_the_model_still_speaks(
    endpoint: Start, script: Script, proxy: Callable[[str], httpx2.Client]
) -> None:
    server = endpoint(script({"text": LONG, "delay_s": 0.1}), on_disconnect="stop")
    client = proxy(server.url)
    body = {"model": "recto", "stream": True, "messages": [user("Count.")]}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        assert response.status_code == 200
        home = response.headers["x-recto-conversation"]
        next(line for line in response.iter_lines() if "word3" in line)
        assert server.gateway.running == 1  # a minute of words is still to come
    while server.gateway.running:
        time.sleep(0.01)
    assert server.said(home)[-1].startswith("word0 word1 word2")


def test_large_messages_and_only_the_api_come_through_the_proxy(
    endpoint: Start, script: Script, proxy: Callable[[str], httpx2.Client]
) -> None:
    server = endpoint(script({"text": "Yes."}, limit=1_000_000))
    client, text = proxy(server.url), "boat " * 500_000
    passing = {"x-recto-mode": "manage"}
    body = {"model": "recto", "messages": [user(text)]}
    assert client.post("/v1/chat/completions", json=body, headers=passing).status_code == 200
    assert client.get("/metrics").status_code == 404
