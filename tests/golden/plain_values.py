"""Any value that the Python door gives, as JSON: structs with their names, bytes as text or by hash."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto import AsyncTalk, Talk

Json = Any


def as_text(value: object) -> str:
    return json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n"


def plain(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return _of_bytes(value)
        case Path() | date():
            return str(value)
        case BaseException():
            return {"error": type(value).__name__, "says": str(value)}
        case Mapping():
            return {key if isinstance(key, str) else json.dumps(plain(key)): plain(each) for key, each in value.items()}
        case set() | frozenset():
            return sorted(map(plain, value), key=json.dumps)
        case AsyncTalk() | Talk():
            return {"talk": value.name, "title": value.title, "head": value.head, "model": value.model}
        case _ if type(value).__module__.startswith("recto.turn"):
            return f"<{type(value).__name__}>"  # the inside of the engine
        case Struct():
            return _named(value, value.__struct_fields__)
        case tuple() if hasattr(value, "_fields"):
            return _named(value, value._fields)
    if dataclasses.is_dataclass(value):
        return _named(value, [each.name for each in dataclasses.fields(value)])
    if isinstance(value, Iterable):
        return [plain(each) for each in value]
    return f"<{type(value).__name__}>"


def _named(value: object, fields: Iterable[str]) -> Json:
    return {"": type(value).__name__} | {name: plain(getattr(value, name)) for name in fields}


def _of_bytes(value: bytes) -> Json:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"{len(value)} bytes {hashlib.sha256(value).hexdigest()}"
    try:
        return {"bytes of JSON": json.loads(text)}
    except ValueError:
        return text
