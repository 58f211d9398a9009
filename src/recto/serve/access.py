"""Who asks, and what they may: keys, their models, what they may spend and how often they may ask."""

import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from msgspec import Struct

from recto.errors import NoKey, RateLimited, Refused, SpendLimit
from recto.store.clients import AccessKey
from recto.store.store import Store

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

    def check_model(self, key: AccessKey, model: str) -> None:
        if key.models and not any(fnmatchcase(model, pattern) for pattern in key.models):
            raise Refused(f"The key {key.name} may not ask {model}; it may ask {', '.join(key.models)}.")

    def check_spending(self, key: AccessKey, at_most: float | None = None) -> None:
        """`at_most` of a request that is recorded counts already. Runs in the store's thread."""
        if key.spend_day is None:
            return
        today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00.000Z")
        spent = self._store.client_messages.spent(key.name, today)
        if spent > key.spend_day or (at_most is None and spent >= key.spend_day):
            raise SpendLimit(
                f"The key {key.name} may spend ${key.spend_day:g} a day, and with this request it would be more.",
                at_most=at_most or 0.0,
                spent=spent,
                limit=key.spend_day,
                key=key.name,
            )


class Limits(Struct, frozen=True):
    """Bounds of what a client may send."""

    body_bytes: int = 64 * 1024 * 1024
    read_s: float = 60.0
    """The longest that a client may take to send its request."""
