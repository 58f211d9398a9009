"""Short numbers for people: `#12` for a message on a path, `#3` for a conversation. Programs keep the ids."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
# An id has 26 characters: whatever is this short can only be a number.
_MOST_DIGITS = 9


def number_in(named: str | int) -> int | None:
    """57 for `#57` or `57`; None where it is an id."""
    digits = str(named).strip().removeprefix("#")
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS else None


def ids_in(value: object) -> set[str]:
    """All ids in the texts and keys of a JSON value."""
    if isinstance(value, str):
        return set(_ID.findall(value))
    if isinstance(value, Mapping):
        return {id for key, each in value.items() for id in ids_in(key) | ids_in(each)}
    return {id for each in value for id in ids_in(each)} if isinstance(value, list | tuple) else set()


def with_short_names(value: T, names: Mapping[str, str]) -> T:
    """The same JSON value with short names in place of the ids that have one."""
    renamed: T = _renamed(value, names) if names else value
    return renamed


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _ID.sub(lambda found: names.get(found[0], found[0]), value)
    if isinstance(value, Mapping):
        return {_renamed(key, names): _renamed(each, names) for key, each in value.items()}
    return type(value)(_renamed(each, names) for each in value) if isinstance(value, list | tuple) else value
