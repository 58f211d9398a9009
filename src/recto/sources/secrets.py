"""Hides what looks like a key, a token or a password in the command lines and addresses of servers."""

import re
from collections.abc import Sequence

HIDDEN = "…"
_SECRET = r"[\w-]*(?:auth|key|password|secret|token)[\w-]*"
_SECRET_OPTION = re.compile(rf"-{{1,2}}{_SECRET}", re.IGNORECASE)
_SECRET_VALUE = re.compile(rf"(-{{0,2}}{_SECRET}\s*[:=]\s*).+", re.IGNORECASE | re.DOTALL)
_QUERY = re.compile(r"([?&][^=&#]+=)[^&#]+")
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


def without_secrets(args: Sequence[str]) -> list[str]:
    """Arguments with keys and tokens hidden: `--token X`, `API_KEY=X`, `Authorization: Bearer X`."""
    shown, is_next = [], False
    for arg in args:
        shown.append(HIDDEN if is_next else _SECRET_VALUE.sub(rf"\1{HIDDEN}", without_secret_address(arg)))
        is_next = bool(_SECRET_OPTION.fullmatch(arg))
    return shown


def without_secret_address(url: str) -> str:
    """A URL without its password and without the values of its query."""
    if "://" not in url:
        return url
    return _QUERY.sub(rf"\1{HIDDEN}", _PASSWORD.sub(f"{HIDDEN}@", url))
