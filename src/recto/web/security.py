"""Access to the page and the rights of its documents: key, host, origin, size, and the content security policy.

ASGI middleware around everything that is served. Knows nothing about the content.
"""

import hmac
import ipaddress
import secrets
import socket
from contextlib import suppress
from html import escape
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from msgspec import Struct, field
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recto.base.home_files import PAGE_FILE, private_home, read_json, write_json
from recto.errors import RectoError

# If this port is taken, any free one is used.
USUAL_PORT = 8642
LONGEST_QUEUE = 128
KEY_NAME = "key"
LEAST_KEY = 32
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Larger uploads are refused unread.
MAX_BODY = 32 << 20
COOKIE_DAYS = 90
NO_KEY = "Open the link that `recto web` shows: it carries the key to this page."
OTHER_SITE = "This request comes from another site, or under another name: the page answers only to its own."
TOO_LARGE = f"This is too large: at most {MAX_BODY >> 20} MB at once."
WELCOME = '<!doctype html><title>Recto</title><meta http-equiv="refresh" content="0;url={place}">'
# 'unsafe-eval': NiceGUI compiles its own components and handlers in the browser. Shown texts never reach them.
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
PRIVATE = HEADERS | {"cache-control": "no-store"}


def listening_socket(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port on the usual one, or on any other if that is taken."""
    if port is None:
        with suppress(OSError, UnicodeError):
            return _listening(host, USUAL_PORT)
    try:
        return _listening(host, port or 0)
    except (OSError, UnicodeError) as why:
        at = f"{host} port {port}" if port else host
        reason = getattr(why, "strerror", None) or "it is not a name of this machine"
        words = f"cannot listen on {at}: {reason}; --port and --host name another place"
        raise RectoError(words, host=host, port=port) from why


def _listening(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(LONGEST_QUEUE)
    except OSError:
        made.close()
        raise
    return made


def read_key(home: Path) -> str:
    """The stored key to the page of this home, so that an open page reconnects after a restart."""
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
    """The page's address and key."""

    key: str
    host: str
    port: int
    tickets: set[str] = field(default_factory=set)
    """One-time keys."""

    @property
    def link(self) -> str:
        """The link with the key; a cookie carries it from then on."""
        return self._link(self.key)

    def one_time_link(self) -> str:
        """A link to pass to programs: other users of the machine can read their arguments."""
        self.tickets.add(ticket := secrets.token_urlsafe(32))
        return self._link(ticket)

    def _link(self, key: str) -> str:
        name = "127.0.0.1" if self._is_everywhere else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/?{urlencode({KEY_NAME: key})}"

    @property
    def cookie(self) -> str:
        """The name of the cookie, with the port: cookies ignore ports, and a machine may have two pages."""
        return f"recto-{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    @property
    def _is_everywhere(self) -> bool:
        return self.host in ("", "0.0.0.0", "::")

    def is_own(self, host: str) -> bool:
        """True if a Host header names this page. Foreign host names are refused (DNS rebinding); numeric addresses
        cannot be rebound."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        known = name == self.host or (name in LOOPBACK and (self._is_everywhere or self.is_loopback))
        return port == self.port and (known or (self._is_everywhere and _is_address(name)))

    def is_from_here(self, scope: Scope, headers: Headers) -> bool:
        """True if a request comes from the page itself, under its own name."""
        if not self.is_own(headers.get("host", "")):
            return False
        if (origin := headers.get("origin")) is None:
            # browsers send the origin with every socket and every unsafe method
            return scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and self.is_own(parts.netloc)

    def admits(self, given: str) -> bool:
        """True if a link may open the page; a ticket works once."""
        if given in self.tickets:
            self.tickets.discard(given)
            return True
        return self.opens(given)

    def opens(self, given: str | None) -> bool:
        return hmac.compare_digest((given or "").encode(), self.key.encode())


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return False


class Guard:
    """Admits requests from the page itself with its key."""

    def __init__(self, app: ASGIApp, access: PageAccess) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            if not self._access.is_from_here(scope, headers):
                app = refusal(OTHER_SITE)
            elif _body_size(headers) > MAX_BODY:
                app = refusal(TOO_LARGE, 413)
            else:
                app = await self._answer(scope, receive, headers) or app
        await app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, headers: Headers) -> ASGIApp | None:
        """The answer instead of the page; None for a request with a valid key."""
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        given = dict(query).get(KEY_NAME)
        if not given:
            return None if self._access.opens(self._cookie(headers)) else refusal(NO_KEY)
        if scope["type"] != "http" or not self._access.admits(given):
            return refusal(NO_KEY)
        # move the key from the readable address into a cookie
        kept = [pair for pair in query if pair[0] != KEY_NAME]
        # a path that begins with two slashes would name another host
        place = "/" + quote(scope["path"].lstrip("/\\")) + (f"?{urlencode(kept)}" if kept else "")
        # not a redirect: after one started by another program, browsers do not send a strict cookie
        own = {"content-security-policy": "default-src 'none'"}
        response = HTMLResponse(WELCOME.format(place=escape(place)), headers=PRIVATE | own)
        self._set_cookie(response, self._access.key, max_age=COOKIE_DAYS * 86_400)
        return response

    def _cookie(self, headers: Headers) -> str:
        return cookie_parser(headers.get("cookie", "")).get(self._access.cookie, "")

    def _set_cookie(self, response: Response, value: str, *, max_age: int | None = None, secure: bool = False) -> None:
        response.set_cookie(
            self._access.cookie, value, max_age=max_age, httponly=True, samesite="strict", secure=secure
        )


class PolicyHeaders:
    """Adds the content security policy to every response, and its nonce to the scripts of documents."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        nonce = secrets.token_urlsafe(16)
        host = Headers(scope=scope).get("host", "")
        policy = POLICY.format(nonce=nonce, socket=f"ws://{host} wss://{host}")
        start: Message | None = None
        document = bytearray()

        async def pass_on(message: Message) -> None:
            """Pass on a response; documents are buffered, since their length changes."""
            nonlocal start
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                headers.update(HEADERS | {"content-security-policy": policy})
                if headers.get("content-type", "").startswith("text/html"):
                    headers["cache-control"] = "no-store"
                    start = message
                    return
            elif start is not None:
                document.extend(message.get("body", b""))
                if message.get("more_body"):
                    return
                # content is escaped in the document: only its own scripts match
                body = bytes(document).replace(b"<script", f'<script nonce="{nonce}"'.encode())
                MutableHeaders(raw=start["headers"])["content-length"] = str(len(body))
                await send(start)
                message = {"type": "http.response.body", "body": body}
            await send(message)

        await self._app(scope, receive, pass_on)


def _body_size(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else MAX_BODY + 1


def refusal(why: str, status: int = 403) -> ASGIApp:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": why})
        else:
            await PlainTextResponse(f"{why}\n", status, PRIVATE)(scope, receive, send)

    return refuse
