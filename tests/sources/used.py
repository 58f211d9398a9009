"""Turns with what went into their windows, and which of it the reply really used. Every source of a turn is a case;
those not used are near misses wherever one could be thought of."""

import tomllib
from pathlib import Path

from msgspec import Struct, convert


class Turn(Struct):
    asked: str
    reply: str
    used: tuple[str, ...]
    """Of the sources that were given."""
    unused: tuple[str, ...]


class Uses(Struct):
    sources: dict[str, str]
    turns: tuple[Turn, ...]


def read(name: str) -> Uses:
    return convert(tomllib.loads(Path(__file__).with_name(name).read_text("utf-8")), Uses)


CASES = read("used_cases.toml")
FRESH = read("used_fresh.toml")
"""Not used for setting the weights."""
