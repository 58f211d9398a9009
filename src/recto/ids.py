"""Ids: 26 characters of Crockford base 32, time first, so that text order is birth order.

The format is ULID's; ten lines need no library.
"""

import os
import threading
import time

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
    return len(text) == 26 and all(digit in _DIGITS for digit in text)
