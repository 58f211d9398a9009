"""Who may talk to the page, and what its documents may do: key, host, origin, size, and the content security policy.

ASGI middleware around everything that is served. Knows nothing of what is shown.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Collection, Mapping
from html import escape
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from msgspec import Struct, field
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recto.base.home_files import PAGE_FILE, private_home, read_json, write_json
from recto.errors import RectoError
from recto.serve.connections import note_valid_key

KEY_NAME = "key"
LEAST_KEY = 32
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A larger upload is refused before it is read.
MAX_BODY = 32 << 20
COOKIE_DAYS = 90
NO_KEY = "Open the link that `recto web` shows: it carries the key to this page."
OTHER_SITE = "This request comes from another site, or under another name: the page answers only to its own."
TOO_LARGE = f"This is too large: at most {MAX_BODY >> 20} MB at once."
WELCOME = '<!doctype html><title>Recto</title><meta http-equiv="refresh" content="0;url={place}">'
# 'unsafe-eval': NiceGUI compiles its own components and handlers in the browser. No text that is shown reaches them.
POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def read_key(home: Path) -> str:
    """The key to the page of this home. It is kept, so that an open page finds its server again after a restart."""
    file = home / PAGE_FILE
    key = read_json(file).get(KEY_NAME)
    if isinstance(key, str) and len(key) >= LEAST_KEY:
        return key
    key = secrets.token_urlsafe(32)
    with private_home(home):
        try:
            write_json(file, {KEY_NAME: key})
        except OSError as why:
            raise RectoError(f"cannot write {file}: {why.strerror or why}", path=str(file)) from why
    return key


class PageAccess(Struct, frozen=True):
    """The address that the page listens on, and the key that it asks for."""

    key: str
    host: str
    port: int
    tickets: set[str] = field(default_factory=set)
    """Keys that are good for one use."""

    @property
    def link(self) -> str:
        """What opens the page: it carries the key once, and a cookie carries it from then on."""
        return self._link(self.key)

    def one_time_link(self) -> str:
        """For programs that are told the link where other users of the machine can read it."""
        self.tickets.add(ticket := secrets.token_urlsafe(32))
        return self._link(ticket)

    def _link(self, key: str) -> str:
        name = "127.0.0.1" if self.is_everywhere else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/?{urlencode({KEY_NAME: key})}"

    @property
    def cookie(self) -> str:
        """Cookies do not tell ports apart: two pages on one machine need two names."""
        return f"recto-{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def is_everywhere(self) -> bool:
        return self.host in ("", "0.0.0.0", "::")

    def is_own(self, host: str) -> bool:
        """Whether a Host header names this page. A name that leads here from elsewhere does not (DNS rebinding); an
        address in digits cannot be made to lead elsewhere."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        known = name == self.host or (name in LOOPBACK and (self.is_everywhere or self.host in LOOPBACK))
        return port == self.port and (known or (self.is_everywhere and _is_address(name)))

    def is_own_origin(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and self.is_own(parts.netloc)

    def is_from_here(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request comes from the page itself, under its own name."""
        origin = headers.get("origin")
        if not self.is_own(headers.get("host", "")):
            return False
        if origin is not None:
            return self.is_own_origin(origin)
        # browsers name the origin of every socket and of whatever changes something
        return scope["type"] == "http" and scope["method"] in ("GET", "HEAD")

    def admits(self, given: str) -> bool:
        """Whether a link may open the page; a ticket does so once."""
        if given in self.tickets:
            self.tickets.discard(given)
            return True
        return self.opens(given)

    def opens(self, given: str | None) -> bool:
        return hmac.compare_digest((given or "").encode(), self.key.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Lets through what comes from the page itself, with its key, and tells the browser what the page may do."""

    def __init__(self, app: ASGIApp, access: PageAccess) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self._access.is_from_here(scope, headers):
            await refuse(scope, receive, send, OTHER_SITE)
        elif given := _given_key(scope):
            await self._welcome(scope, receive, send, given)
        elif not self._access.opens(read_cookies(headers).get(self._access.cookie)):
            await refuse(scope, receive, send, NO_KEY)
        elif body_size(headers) > MAX_BODY:
            await refuse(scope, receive, send, TOO_LARGE, status=413)
        else:
            note_valid_key(scope)
            await self._app(scope, receive, send)

    async def _welcome(self, scope: Scope, receive: Receive, send: Send, given: str) -> None:
        """Takes the key out of the address, where others could read it, and into a cookie."""
        if scope["type"] != "http" or not self._access.admits(given):
            await refuse(scope, receive, send, NO_KEY)
            return
        kept = [pair for pair in _query(scope) if pair[0] != KEY_NAME]
        # a path of two slashes would be another host
        place = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{urlencode(kept)}" if kept else "")
        # not a redirect: after one that another program began, the browser would not send a strict cookie
        headers = {"cache-control": "no-store", "content-security-policy": "default-src 'none'", **HEADERS}
        response = HTMLResponse(WELCOME.format(place=escape(place)), headers=headers)
        response.set_cookie(
            self._access.cookie, self._access.key, max_age=COOKIE_DAYS * 86_400, httponly=True, samesite="strict"
        )
        await response(scope, receive, send)


class PolicyHeaders:
    """Adds the content security policy to every answer, and its nonce to the scripts of documents."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        host = Headers(scope=scope).get("host", "")
        policy = POLICY.format(nonce=nonce, socket=f"ws://{host} wss://{host}")
        await self._app(scope, receive, _Sender(send, policy, nonce))


class _Sender:
    """Passes an answer on. A document is held back until it is whole, since its length changes."""

    def __init__(self, send: Send, policy: str, nonce: str) -> None:
        self._send, self._policy, self._nonce = send, policy, nonce
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in {**HEADERS, "content-security-policy": self._policy}.items():
                headers[name] = value
            if headers.get("content-type", "").startswith("text/html"):
                headers["cache-control"] = "no-store"
                self._start = message
                return
        elif self._start is not None:
            await self._hold(self._start, message)
            return
        await self._send(message)

    async def _hold(self, start: Message, message: Message) -> None:
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        # whatever is shown is escaped in the document: only its own scripts are written so
        body = bytes(self._body).replace(b"<script", f'<script nonce="{self._nonce}"'.encode())
        MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})


def _query(scope: Scope) -> Collection[tuple[str, str]]:
    return parse_qsl(scope.get("query_string", b"").decode("latin-1"))


def _given_key(scope: Scope) -> str | None:
    return dict(_query(scope)).get(KEY_NAME)


def read_cookies(headers: Headers) -> Mapping[str, str]:
    try:
        return {name: each.value for name, each in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def body_size(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else MAX_BODY + 1


async def refuse(scope: Scope, receive: Receive, send: Send, why: str, *, status: int = 403) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    await PlainTextResponse(f"{why}\n", status, {"cache-control": "no-store", **HEADERS})(scope, receive, send)
