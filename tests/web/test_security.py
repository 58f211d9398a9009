"""Who gets to the page: key, host, origin, size, and what the browser is told about it."""

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import HTMLResponse
from starlette.types import Message, Receive, Scope, Send

from recto.web.security import MAX_BODY, Guard, PageAccess, PolicyHeaders, read_key

KEY = "k" * 43
ACCESS = PageAccess(KEY, "127.0.0.1", 8642)
OWN = {"host": "127.0.0.1:8642"}
OURS = {"origin": "http://127.0.0.1:8642"}
IN = {**OWN, "cookie": f"recto-8642={KEY}"}


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await HTMLResponse("<html><script>ours()</script><script src='/x.js'></script></html>")(scope, receive, send)


def ask(
    path: str = "/", headers: dict[str, str] | None = None, method: str = "GET", access: PageAccess = ACCESS
) -> httpx2.Response:
    async def run() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=Guard(PolicyHeaders(page), access))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8642") as client:
            return await client.request(method, path, headers=IN if headers is None else headers)

    return asyncio.run(run())


def connect(headers: dict[str, str]) -> str:
    """What becomes of a socket: accepted or closed."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "websocket", "path": "/_nicegui_ws/", "query_string": b"", "headers": raw}
    asyncio.run(Guard(PolicyHeaders(page), ACCESS)(scope, receive, send))
    return str(sent[0]["type"]).removeprefix("websocket.")


@pytest.mark.parametrize(
    ("path", "cookie"),
    [
        ("/", ""),
        ("/", "recto-8642=wrong"),
        ("/", f"recto-9999={KEY}"),
        ("/", "recto-8642="),
        ("/", "=;;=,"),
        ("/?key=wrong", f"recto-8642={KEY}"),
    ],
)
def test_nobody_gets_in_without_the_key(path: str, cookie: str) -> None:
    answer = ask(path, OWN | ({"cookie": cookie} if cookie else {}))
    assert answer.status_code == 403
    assert "the link that `recto web` shows" in answer.text


def test_the_link_gives_a_cookie_that_no_script_and_no_other_site_can_use() -> None:
    answer = ask(f"/c/3?x=1&key={KEY}", OWN)
    cookie = answer.headers["set-cookie"].lower()
    assert answer.status_code == 200
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert cookie.startswith(f"recto-8642={KEY}")
    assert "url=/c/3?x=1" in answer.text
    assert KEY not in answer.text
    # and leads nowhere else
    assert 'url=/evil.example/"' in ask(f"http://127.0.0.1:8642//evil.example/?key={KEY}", OWN).text


def test_a_one_time_link_opens_the_page_once() -> None:
    access = PageAccess(KEY, "127.0.0.1", 8642)
    place = access.one_time_link().removeprefix("http://127.0.0.1:8642")
    assert KEY not in place
    assert [ask(place, OWN, access=access).status_code for _ in range(2)] == [200, 403]


@pytest.mark.parametrize(
    ("hosts", "status"),
    [
        ("evil.example:8642 127.0.0.1.evil.example:8642 127.0.0.1 127.0.0.1:1 [ localhost:x", 403),
        ("127.0.0.1:8642 localhost:8642 [::1]:8642 LOCALHOST:8642", 200),
    ],
)
def test_the_page_answers_under_the_names_of_this_machine_alone(hosts: str, status: int) -> None:
    assert {ask(headers={**IN, "host": host}).status_code for host in hosts.split()} == {status}
    assert ask(headers={**IN, "host": ""}).status_code == 403


def test_a_page_for_the_network_takes_addresses_but_no_names() -> None:
    access = PageAccess(KEY, "0.0.0.0", 8642)
    assert access.is_own("192.168.1.7:8642")
    assert not access.is_own("evil.example:8642")
    assert access.link.startswith("http://127.0.0.1:8642/?key=")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:8643", "file://", "http://[", ""])
def test_another_site_is_refused(origin: str) -> None:
    assert ask(headers={**IN, "origin": origin}, method="POST").status_code == 403
    assert connect({**IN, "origin": origin}) == "close"


def test_what_changes_something_says_where_it_comes_from() -> None:
    assert ask(method="POST").status_code == 403
    assert ask(headers=IN | OURS, method="POST").status_code == 200


def test_a_socket_needs_key_host_and_origin() -> None:
    assert connect(IN | OURS) == "accept"
    for headers in (OWN | OURS, IN, IN | OURS | {"host": "evil.example:8642"}):
        assert connect(headers) == "close"


@pytest.mark.parametrize("length", [str(MAX_BODY + 1), "much"])
def test_what_is_too_large_is_not_read(length: str) -> None:
    assert ask(headers=IN | OURS | {"content-length": length}, method="POST").status_code == 413


def test_only_the_scripts_of_the_document_may_run() -> None:
    answer = ask()
    policy = answer.headers["content-security-policy"]
    found = re.search(r"script-src 'self' 'nonce-([\w-]+)' 'unsafe-eval';", policy)
    assert found
    assert answer.text.count(f'<script nonce="{found[1]}"') == 2
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["content-length"] == str(len(answer.content))
    told = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
    assert told.items() <= dict(answer.headers).items()
    assert ask().headers["content-security-policy"] != policy


@pytest.mark.parametrize("content", [None, "", "{}", '{"key": ""}', '{"key": 7}', "no json"])
def test_the_key_stays_with_the_home_and_a_damaged_one_is_replaced(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "page.json").write_text(content)
    key = read_key(tmp_path)
    assert len(key) >= 32
    assert read_key(tmp_path) == key
    assert (tmp_path / "page.json").stat().st_mode & 0o077 == 0
