"""Who asks, and what they may: keys, their models, what they may spend and how often they may ask."""

import time
from collections import deque
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from recto.base.text import dollars
from recto.errors import NoKey, RateLimited, Refused, SpendLimit
from recto.store.clients import AccessKey
from recto.store.store import Store
from recto.turn.spending import SpendCap

MINUTE_S = 60.0
OPEN = AccessKey("", "")
"""Whoever asks a server without keys."""


class KeyRefused(NoKey):
    """The client's key is missing or unknown."""


class Access:
    """Counts requests of each key in this process; what was spent is summed from the store."""

    def __init__(self, store: Store, *, needs_key: bool) -> None:
        self._store, self._needs_key = store, needs_key
        self._asked: dict[str, deque[float]] = {}

    def key_of(self, headers: Mapping[str, str]) -> AccessKey:
        """The key that a request brings, as either API has it. Without keys everybody is the same somebody."""
        if not self._needs_key:
            return OPEN
        bearer = headers.get("authorization", "")
        secret = headers.get("x-api-key", "") or bearer.removeprefix("Bearer ").strip()
        found = self._store.access_keys.find(secret) if secret else None
        if found is None:
            what = "is unknown" if secret else "is missing"
            raise KeyRefused(f"The key of this server {what}; its owner makes one with `recto serve keys add`.")
        return found

    def admit(self, key: AccessKey) -> None:
        """One request more; RateLimited where these are too many."""
        if not key.requests_per_minute:
            return
        asked, at = self._asked.setdefault(key.name, deque()), time.monotonic()
        while asked and asked[0] <= at - MINUTE_S:
            asked.popleft()
        if len(asked) >= key.requests_per_minute:
            wait_s = max(1.0, asked[0] + MINUTE_S - at)
            limit = f"{key.requests_per_minute} requests a minute"
            raise RateLimited(f"The key {key.name} may make {limit}; wait a moment.", retry_after_s=wait_s)
        asked.append(at)

    def check_model(self, key: AccessKey, model: str, full: str) -> None:
        """A model by the name that was given, and by its full name."""
        if key.models and not any(fnmatchcase(name, each) for each in key.models for name in (model, full)):
            raise Refused(f"The key {key.name} may not ask {model}; it may ask {', '.join(key.models)}.")

    def check_spending(self, key: AccessKey) -> None:
        """Refuses a key that has nothing left, before anything is stored for it. What a call can cost is checked when
        its bound is stored. Runs in the store's thread."""
        if (cap := cap_of(key)) is None:
            return
        spent = self._store.charges.spent_today(cap.key)
        if spent >= cap.day:
            why = f"The key {cap.key} has spent its {dollars(cap.day)} for today."
            raise SpendLimit(why, at_most=0.0, spent=spent, limit=cap.day, key=cap.key)


def cap_of(key: AccessKey) -> SpendCap | None:
    return None if key.spend_day is None else SpendCap(key.name, key.spend_day)


class Limits(Struct, frozen=True):
    """Bounds of what a client may send."""

    body_bytes: int = 32 * 1024 * 1024
    read_s: float = 60.0
    """The longest that a client may take to send its request."""
