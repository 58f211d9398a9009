"""SourceFile: a file of rules/ or references/ read as a source, from its front matter and its text.

Each problem becomes a sentence; the rest of the file is used.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from recto.base.text import clean
from recto.errors import Invalid
from recto.sources.source import INCLUDES, MAX_PRIORITY, TextSource
from recto.vault.decoding import decode_text
from recto.vault.document import Document, note_name, parse_note
from recto.vault.links import front_matter

FRONT_MATTER_KEYS = ("description", "include", "priority", "enabled")
_MAX_DESCRIPTION_CHARS = 2000


class SourceFile(Struct, frozen=True):
    """The source that a file holds, if any, and the problems found in it."""

    source: TextSource | None
    notes: tuple[str, ...] = ()


def read_source_file(kind: type[TextSource], path: str, raw: bytes | str) -> SourceFile:
    """`raw` is the content of the file, or a sentence that says why it cannot be read."""
    if isinstance(raw, str):
        return SourceFile(None, (raw,))
    name = source_name(path)
    if not name or not name.isprintable():
        return SourceFile(None, (f"{clean(path)[0]!r} has a name that cannot be printed and is ignored",))
    try:
        text = decode_text(raw, path)
    except Invalid as why:
        return SourceFile(None, (why.message,))
    properties, body, notes = _split(path, text)
    values = dict(_read_properties(path, properties, notes))
    if not body:
        return SourceFile(None, (*notes, f"{path} has no text, so the {kind.kind} is ignored"))
    return SourceFile(kind(name, body, path=path, **values), tuple(notes))


def source_name(path: str) -> str:
    """The file's name as people type it: some disks store an accent apart from its letter."""
    return unicodedata.normalize("NFC", note_name(path.replace("\\", "/"))).strip()


def name_key(name: str) -> str:
    """Names with the same key are the same: case and the encoding of accents do not matter."""
    return unicodedata.normalize("NFC", name).casefold()


def _split(path: str, text: str) -> tuple[Mapping[str, Any], str, list[str]]:
    """Properties, body and problems of a file."""
    document, front = Document(path, text), front_matter(text)
    properties, start = document.head
    is_odd = start == 0 if front else text.startswith("---")
    problem = parse_note(text).problem if is_odd else None
    body = text[front[2] if front else 0 :].strip()
    return properties, body, [f"{path}: {problem}"] if problem else []


def _read_properties(path: str, properties: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yields the valid properties. A wrong value becomes a note, and the default applies."""
    for key, value in properties.items():
        if key not in FRONT_MATTER_KEYS:
            near = get_close_matches(key.lower(), FRONT_MATTER_KEYS, 1, 0.8)
            notes += [f"{path}: unknown property {key}; did you mean {near[0]}?"] if near else []
        elif value is not None and _is_allowed(key, value):
            yield key, _one_line(value) if key == "description" else value
        elif value is not None:
            notes.append(f"{path}: {key} = {_repr(value)} is not allowed; it takes {_allowed_values(key)}")


def _is_allowed(key: str, value: Any) -> bool:
    if key == "priority":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY
    if key == "enabled":
        return isinstance(value, bool)
    return isinstance(value, str) and (key == "description" or value in INCLUDES)


def _allowed_values(key: str) -> str:
    numbers = f"a whole number from 0 to {MAX_PRIORITY}"
    return {"include": " or ".join(INCLUDES), "priority": numbers, "enabled": "true or false"}.get(key, "a text")


def _one_line(text: str) -> str:
    return " ".join(clean(text)[0].split())[:_MAX_DESCRIPTION_CHARS]


def _repr(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # a number with more digits than Python prints
        return "a very long number"
