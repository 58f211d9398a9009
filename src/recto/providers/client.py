"""A client of Recto's own endpoint, in any wire format: its request, the head of a reply, an error.

Fields reads one JSON object of a request field by field. A wrong value raises Invalid, which names the field as the API
itself does: `messages[0].content` or `messages.0.content`. (msgspec would read the types, but cannot treat null as
absent, and checks other than types need the path too.)

Also converts ids, names and arguments of calls, and the root of a schema, to forms that every provider accepts: one
rejected tool or call would fail every request that contains it.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NoReturn

from msgspec import MsgspecError, Struct, field, json

from recto.base.text import clean
from recto.chat.blocks import Block, Text
from recto.errors import (
    Busy,
    DoesNotFit,
    Invalid,
    NoKey,
    NotFound,
    NoVectors,
    Overflow,
    RateLimited,
    RectoError,
    Refused,
    SpendLimit,
    Unreachable,
)
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters
from recto.wire import Json, dumps, loads

CLIENT = "client"
"""The server name of tools that the client runs itself."""

# Looked up by the nearest class in the error tree. Both APIs return 400 for a prompt that is too long.
STATUSES: dict[type[RectoError], int] = {
    Invalid: 400,
    DoesNotFit: 400,
    Overflow: 400,
    Refused: 400,
    NoKey: 401,
    NotFound: 404,
    RateLimited: 429,
    SpendLimit: 429,
    Unreachable: 503,
    NoVectors: 503,
    Busy: 503,
    RectoError: 500,
}
UNEXPECTED = "The request failed unexpectedly; the log says why."


class ClientRequest(Struct, frozen=True):
    model: str
    entries: tuple[Entry, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    parameters: Parameters = field(default_factory=Parameters)
    stream: bool = False
    include_usage: bool = True
    """True if the client wants the usage at the end of a stream; a whole reply always has it."""


class ReplyHead(Struct, frozen=True):
    id: str
    model: str
    created: int = 0
    """In seconds since 1970."""


class ErrorReply(Struct, frozen=True):
    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)


def status_of(error: Exception) -> int:
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)


def sentence_of(error: Exception) -> str:
    """The message for the client. Errors outside our tree may contain internals, so their text is not shown."""
    return error.message if isinstance(error, RectoError) else UNEXPECTED


def error_headers(error: Exception) -> dict[str, str]:
    wait_s = error.retry_after_s if isinstance(error, RateLimited) else None
    return {} if wait_s is None else {"retry-after": f"{wait_s:.0f}"}


def is_too_long(error: Exception) -> bool:
    return isinstance(error, DoesNotFit | Overflow)


# -- reading requests

MAX_NUMBER = 100_000_000


class Fields:
    """The fields of one object. Null counts as absent, as in both APIs; unknown fields are accepted."""

    def __init__(self, data: Json, path: str = "", *, item: str = "[{}]") -> None:
        """`item` is how the API writes an index in a path."""
        self.path, self._item = path, item
        if not isinstance(data, dict):
            raise Invalid(f"{path or 'The request'} must be an object.", field=path)
        self.data: dict[str, Any] = data
        self._left = set(data)

    def raw(self, name: str) -> Json:
        self._left.discard(name)
        return self.data.get(name)

    def _checked(self, name: str, is_right: Callable[[Any], bool], what: str) -> Any:
        value = self.raw(name)
        return value if value is None or is_right(value) else self.refuse(name, f"must be {what}")

    def text(self, name: str) -> str | None:
        text: str | None = self._checked(name, lambda value: isinstance(value, str), "a text")
        return text

    def needed_text(self, name: str) -> str:
        return self.text(name) or self.refuse(name, "is missing")

    def whole(self, name: str, low: int = 1) -> Any:
        is_right = lambda value: type(value) is int and low <= value <= MAX_NUMBER  # noqa: E731
        return self._checked(name, is_right, f"a whole number from {low} on")

    def number(self, name: str, high: float) -> Any:
        is_right = lambda value: type(value) in (int, float) and 0 <= value <= high  # noqa: E731
        return self._checked(name, is_right, f"a number from 0 to {high:g}")

    def flag(self, name: str) -> Any:
        return self._checked(name, lambda value: isinstance(value, bool), "true or false")

    def choice(self, name: str, allowed: Collection[str]) -> Any:
        """One of `allowed`, or None. Typed Any because the caller knows the literal type."""
        is_right = lambda value: isinstance(value, str) and value in allowed  # noqa: E731
        return self._checked(name, is_right, f"one of {', '.join(allowed)}")

    def needed_choice(self, name: str, allowed: Collection[str]) -> Any:
        return self.choice(name, allowed) or self.refuse(name, "is missing")

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.raw(name)
        value = [value] if isinstance(value, str) else value or []
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            self.refuse(name, "must be a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> Any:
        return self._checked(name, lambda value: isinstance(value, dict), "an object")

    def object(self, name: str) -> "Fields | None":
        value = self.raw(name)
        return None if value is None else Fields(value, self._at(name), item=self._item)

    def needed_object(self, name: str) -> "Fields":
        return self.object(name) or self.refuse(name, "is missing")

    def items(self, name: str) -> list[Json]:
        return self._checked(name, lambda value: isinstance(value, list), "a list") or []

    def item(self, name: str, number: int, value: Json) -> "Fields":
        return Fields(value, self._at(name) + self._item.format(number), item=self._item)

    def objects(self, name: str) -> list["Fields"]:
        return [self.item(name, number, value) for number, value in enumerate(self.items(name))]

    def content(self, name: str) -> "str | list[Fields]":
        """A text, which may be absent, or a list of parts."""
        value = self.raw(name)
        if value is None or isinstance(value, str):
            return clean(value or "")[0]
        return self.objects(name) if isinstance(value, list) else self.refuse(name, "must be a text or a list of parts")

    def base64(self, name: str, text: str) -> str:
        """Returns `text`, the value of this field, if it is valid base64."""
        try:
            b64decode(text, validate=True)
        except ValueError:
            self.refuse(name, "is not valid base64")
        return text

    def only(self, neutral: Mapping[str, tuple[Json, ...]]) -> None:
        """Accepts these fields only with a value that has no effect."""
        for name, values in neutral.items():
            value = self.raw(name)
            if value is not None and value not in values:
                self.refuse(name, "is not supported here")

    def rest(self) -> dict[str, Json]:
        """The fields not read yet."""
        return {name: value for name, value in self.data.items() if name in self._left and value is not None}

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, name: str, what: str) -> NoReturn:
        path = self._at(name)
        raise Invalid(f"{path} {what}.", field=path)


def parsed(body: bytes, *, item: str = "[{}]") -> Fields:
    """The body as Fields. msgspec rejects what cannot be forwarded: NaN and lone surrogates."""
    try:
        return Fields(json.decode(body), item=item)
    except (MsgspecError, UnicodeError, RecursionError) as why:
        reason = "it is nested too deeply" if isinstance(why, RecursionError) else str(why)
        raise Invalid(f"The request is not JSON: {reason}.", field="") from why


def unique(fields: Fields, tools: Sequence[Tool]) -> tuple[Tool, ...]:
    if len({tool.name for tool in tools}) < len(tools):
        fields.refuse("tools", "must have different names")
    return tuple(tools)


def joined(blocks: Iterable[Block], separator: str = "\n") -> str:
    return separator.join(block.text for block in blocks if isinstance(block, Text))


# -- forms that every provider accepts

COMBINED = ("oneOf", "anyOf", "allOf")
LONGEST_NAME = 64
UNNAMED_TOOL = "unnamed"


def sent_id(id: str, accepted: re.Pattern[str]) -> str:
    """The id, or letters and digits derived from it, the same for a call and its result. Nine suit Mistral too."""
    return id if accepted.fullmatch(id) else sha256(id.encode("utf-8", "replace")).hexdigest()[:9]


def sent_name(name: str) -> str:
    """The name of a called tool in characters that every provider accepts."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:LONGEST_NAME] or UNNAMED_TOOL


def json_arguments(arguments: str) -> dict[str, Any]:
    """The arguments of a call as the object that providers require; empty for anything else. The block keeps the
    original text, and the tool's result names the error."""
    try:
        value = loads(arguments)
        # NaN, infinity and lone surrogates can be read but not sent
        text, repaired = clean(dumps(value))
        value = loads(text) if repaired else value
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object with properties. Combinations at the root are merged into one object that allows all of
    them; deeper levels stay unchanged."""
    if _is_object_schema(schema):
        return dict(schema)
    parts = [part for name in COMBINED for part in _list(schema.get(name)) if isinstance(part, Mapping)]
    properties = dict(_mapping(schema.get("properties")))
    for part in parts:
        properties = {**_mapping(part.get("properties")), **properties}
    out: dict[str, Any] = {"type": "object", "properties": properties}
    needing = (schema, *(_mapping(part) for part in _list(schema.get("allOf"))))
    required = [name for part in needing for name in _list(part.get("required")) if isinstance(name, str)]
    if required:
        out["required"] = list(dict.fromkeys(required))
    others = {name: value for name, value in schema.items() if name not in (*out, *COMBINED, "required")}
    return out | others if schema.get("type", "object") == "object" else out


def _is_object_schema(schema: Mapping[str, Any]) -> bool:
    required = schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(schema.get("properties"), Mapping)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
        and not any(name in schema for name in COMBINED)
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
