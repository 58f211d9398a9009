"""Ids: 26 characters of Crockford base 32, time first, so that they sort by creation.

The format is ULID's; ten lines need no library.
"""

import os
import threading
import time

ID_LENGTH = 26
# Shortest prefix that can name an id.
SHORTEST_START = 4
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGIT_SET = frozenset(_DIGITS)
_PAIRS = [one + other for one in _DIGITS for other in _DIGITS]
_TIME_BITS, _RANDOM_BITS = 48, 80
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A new id, larger than all others of this process."""
    global _last
    stamp = (time.time_ns() // 1_000_000) << _RANDOM_BITS | int.from_bytes(os.urandom(10), "big")
    with _lock:
        _last = max(stamp, _last + 1)
        number = _last
    return _in_digits(number)


def derived_id(milliseconds: int, *names: str) -> str:
    """A deterministic id for something with names elsewhere, made at this time."""
    import hashlib  # two milliseconds that `recto --help` does without

    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    stamp = min(max(milliseconds, 0), (1 << _TIME_BITS) - 1)
    return _in_digits(stamp << _RANDOM_BITS | int.from_bytes(digest[: _RANDOM_BITS // 8], "big"))


def _in_digits(number: int) -> str:
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def is_id(text: str) -> bool:
    return len(text) == ID_LENGTH and _DIGIT_SET.issuperset(text)


def id_start(text: str) -> str | None:
    """A typed beginning of an id, in capitals; None if it cannot be one, or is too short."""
    typed = text.strip().upper()
    is_start = SHORTEST_START <= len(typed) <= ID_LENGTH and _DIGIT_SET.issuperset(typed)
    return typed if is_start and typed[0].isdecimal() else None  # ids begin with a time, so with a digit


def varint(value: int) -> bytes:
    """A non-negative integer in few bytes: seven bits each, lowest first."""
    head = bytearray()
    while value > 127:
        head.append(value & 127 | 128)
        value >>= 7
    return bytes([*head, value])
