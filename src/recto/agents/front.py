"""A file of rules/ or references/ becomes a source: what its front matter says about it, and its text.

Whatever is wrong with it is a sentence; what can be used of it is used.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from recto.errors import Invalid
from recto.sources.source import INCLUDES, MOST_PRIORITY, Written
from recto.text import clean
from recto.vault.decoding import text_of
from recto.vault.document import Document, name_of, parse
from recto.vault.prose import front_matter

KEYS = ("description", "include", "priority", "enabled")
_MOST_DESCRIPTION = 2000


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a file gave: a source, or none; and what is wrong with it."""

    source: Written | None
    notes: tuple[str, ...] = ()


def read_sheet(kind: type[Written], path: str, raw: bytes | str) -> Sheet:
    """`raw` is what the file holds, or a sentence that says why that cannot be had."""
    if isinstance(raw, str):
        return Sheet(None, (raw,))
    name = source_name(path)
    if not name or not name.isprintable():
        return Sheet(None, (f"{clean(path)[0]!r} has a name that cannot be written: it is left out",))
    try:
        text = text_of(raw, path)
    except Invalid as why:
        return Sheet(None, (why.message,))
    properties, body, notes = _taken_apart(path, text)
    said = dict(_said(path, properties, notes))
    if not body:
        return Sheet(None, (*notes, f"{path} has no text: the {kind.kind} is not offered"))
    return Sheet(kind(name, body, path=path, **said), tuple(notes))


def source_name(path: str) -> str:
    """As it is typed: some disks keep an accent apart from its letter."""
    return unicodedata.normalize("NFC", name_of(path.replace("\\", "/"))).strip()


def key_of(name: str) -> str:
    """Two names of the same key are one: neither case counts, nor how an accent is kept."""
    return unicodedata.normalize("NFC", name).casefold()


def _taken_apart(path: str, text: str) -> tuple[Mapping[str, Any], str, list[str]]:
    document, front = Document(path, text), front_matter(text)
    properties, start = document.head
    is_odd = start == 0 if front else text.startswith("---")
    problem = parse(text).problem if is_odd else None
    body = text[front[2] if front else 0 :].strip()
    return properties, body, [f"{path}: {problem}"] if problem else []


def _said(path: str, properties: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """What of the front matter counts; what is wrong goes to the notes, and the default stays."""
    for key, value in properties.items():
        if key not in KEYS:
            near = get_close_matches(key.lower(), KEYS, 1, 0.8)
            notes += [f"{path}: there is no property {key}; did you mean {near[0]}?"] if near else []
        elif value is not None and _is_allowed(key, value):
            yield key, _described(value) if key == "description" else value
        elif value is not None:
            notes.append(f"{path}: {key} = {_shown(value)} is not allowed; it takes {_allowed(key)}")


def _is_allowed(key: str, value: Any) -> bool:
    if key == "priority":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_PRIORITY
    if key == "enabled":
        return isinstance(value, bool)
    return isinstance(value, str) and (key == "description" or value in INCLUDES)


def _allowed(key: str) -> str:
    numbers = f"a whole number from 0 to {MOST_PRIORITY}"
    return {"include": " or ".join(INCLUDES), "priority": numbers, "enabled": "true or false"}.get(key, "a text")


def _described(text: str) -> str:
    return " ".join(clean(text)[0].split())[:_MOST_DESCRIPTION]


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # a number of more digits than Python writes
        return "a very long number"
