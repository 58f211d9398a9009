"""KeyGuard: who may talk to the page of a shared server: whoever has signed in with a key, from the page itself."""

from collections.abc import Awaitable, Callable
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.serve.connections import note_valid_key
from recto.web.security import (
    HEADERS,
    MAX_BODY,
    OTHER_SITE,
    TOO_LARGE,
    PageAccess,
    body_size,
    read_cookies,
    refuse,
)

if TYPE_CHECKING:
    from recto.store.clients import AccessKey

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
SCOPE_KEY = "recto.key"
"""Where a request carries the key that it came with."""
# A form with one key in it.
MAX_FORM = 4096
NO_SIGN_IN = "Sign in first: open this page in a browser."
UNKNOWN = "This key is unknown here. The owner of the server makes one with `recto serve keys add`."
POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
DOCUMENT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recto: sign in</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; display: grid; place-content: center; min-height: 90vh; margin: 0;
  background: light-dark(#fbfbf9, #16181b); color: light-dark(#1f2328, #e4e6e8); }}
main {{ width: min(24rem, 90vw); }}
h1 {{ font-size: 1.375rem; }}
label {{ display: block; }}
input, button {{ font: inherit; width: 100%; box-sizing: border-box; padding: .55rem .75rem; margin: .35rem 0 .8rem;
  border: 1px solid light-dark(#dcdcd6, #363b41); border-radius: .5rem; background: light-dark(#fff, #1e2125);
  color: inherit; }}
button {{ background: light-dark(#2f5d8a, #8ab4e0); color: light-dark(#fff, #10202f); border: 0; cursor: pointer; }}
:focus-visible {{ outline: 2px solid light-dark(#2f5d8a, #8ab4e0); outline-offset: 2px; }}
[role=alert] {{ color: light-dark(#a4262c, #ff9a9f); }}
</style></head><body><main><h1>Recto</h1>{told}
<form method="post" action="/sign-in"><label>Your key for this server
<input name="key" type="password" autocomplete="current-password" required autofocus></label>
<button>Sign in</button></form></main></body></html>"""
FindKey = Callable[[str], Awaitable["AccessKey | None"]]


class SharedAddress(PageAccess, frozen=True):
    """The address of the page of a shared server, and the names under which a proxy in front of it is reached."""

    names: frozenset[str] = frozenset()

    def is_own(self, host: str) -> bool:
        return _name(host) in self.names or super().is_own(host)

    @property
    def cookie(self) -> str:
        return f"recto-serve-{self.port}"


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class KeyGuard:
    """Lets through what comes from the page itself with a known key, and says whose it is."""

    def __init__(self, app: ASGIApp, address: SharedAddress, find: FindKey) -> None:
        self._app, self._address, self._find = app, address, find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if not self._address.is_from_here(scope, headers):
            await refuse(scope, receive, send, OTHER_SITE)
        elif body_size(headers) > MAX_BODY:
            await refuse(scope, receive, send, TOO_LARGE, status=413)
        elif scope["type"] == "http" and scope["path"] in (SIGN_IN, SIGN_OUT):
            await (await self._signed(scope, receive, headers))(scope, receive, send)
        elif key := await self._key(read_cookies(headers).get(self._address.cookie, "")):
            note_valid_key(scope)
            await self._app({**scope, SCOPE_KEY: key}, receive, send)
        elif scope["type"] == "http" and "text/html" in headers.get("accept", ""):
            await _document("", 401)(scope, receive, send)
        else:
            await refuse(scope, receive, send, NO_SIGN_IN)

    async def _key(self, given: str) -> "AccessKey | None":
        return await self._find(given) if given else None

    async def _signed(self, scope: Scope, receive: Receive, headers: Headers) -> Response:
        """In or out. A sign-in carries its origin, which was checked: another site cannot sign anybody in."""
        if scope["path"] == SIGN_OUT or scope["method"] != "POST":
            made = RedirectResponse("/", 303, headers={"cache-control": "no-store", **HEADERS})
            if scope["path"] == SIGN_OUT:
                made.delete_cookie(self._address.cookie, httponly=True, samesite="strict")
            return made
        given = parse_qs(await _form(receive)).get("key", [""])[0].strip()
        if await self._key(given) is None:
            return _document(UNKNOWN, 403)
        made = RedirectResponse("/", 303, headers={"cache-control": "no-store", **HEADERS})
        is_https = "https" in (scope.get("scheme"), headers.get("x-forwarded-proto"))
        made.set_cookie(self._address.cookie, given, httponly=True, samesite="strict", secure=is_https)
        return made


def _document(told: str, status: int) -> Response:
    words = f'<p role="alert">{escape(told)}</p>' if told else ""
    # with no-referrer the browser would not name the origin of the form
    own = {"referrer-policy": "same-origin", "content-security-policy": POLICY}
    headers = {"cache-control": "no-store", **HEADERS, **own}
    return HTMLResponse(DOCUMENT.format(told=words), status, headers)


async def _form(receive: Receive) -> str:
    body = bytearray()
    while len(body) <= MAX_FORM:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body[:MAX_FORM]).decode("latin-1")
