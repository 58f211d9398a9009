"""Ids: 26 characters of Crockford base 32, time first, so that text order is birth order.

The format is ULID's; ten lines need no library.
"""

import os
import threading
import time

ID_LENGTH = 26
# An id can be named by so many of its first characters.
SHORTEST_START = 4
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A new id, larger than every other that this process has made."""
    global _last
    stamp = (time.time_ns() // 1_000_000) << _RANDOM_BITS | int.from_bytes(os.urandom(10), "big")
    with _lock:
        _last = max(stamp, _last + 1)
        number = _last
    return "".join(_DIGITS[(number >> shift) & 31] for shift in range(125, -1, -5))


def is_id(text: str) -> bool:
    return len(text) == ID_LENGTH and all(digit in _DIGITS for digit in text)


def id_start(text: str) -> str | None:
    """The beginning of an id as it was typed, in capitals; None for what is none, or too short to tell."""
    typed = text.strip().upper()
    is_start = SHORTEST_START <= len(typed) <= ID_LENGTH and all(digit in _DIGITS for digit in typed)
    return typed if is_start and typed[0].isdecimal() else None  # it begins with a time, not with a letter
