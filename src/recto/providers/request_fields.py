"""Fields: reads one JSON object of a client's request field by field. A wrong value raises Invalid, which names the
field as the API itself does: `messages[0].content` or `messages.0.content`.

Converts the root of a tool's schema to what providers accept: an object with properties. Deeper levels stay as is.
Does the same for the id, name and arguments of a call that a model wrote.

A single refused tool or call would fail every request that has it.
"""

import re
from base64 import b64decode
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any, NoReturn

from recto.base.text import clean
from recto.errors import Invalid
from recto.wire import Json, dumpb, dumps, loads

MAX_NUMBER = 100_000_000


class Fields:
    """The fields of one object. Null counts as absent, as in both APIs. `end` refuses fields that were not read."""

    def __init__(self, data: Json, path: str = "", *, item: str = "[{}]", lenient: bool = False) -> None:
        """`item` is how the API writes an index in a path; `lenient` accepts unknown fields, here and below."""
        self.path, self._item, self._lenient = path, item, lenient
        if not isinstance(data, dict):
            raise Invalid(f"{path or 'The request'} must be an object.", field=path)
        self._data: dict[str, Any] = data
        self._left = set(data)

    def raw(self, name: str) -> Json:
        self._left.discard(name)
        return self._data.get(name)

    def text(self, name: str) -> str | None:
        value = self.raw(name)
        if value is not None and not isinstance(value, str):
            self.refuse(name, "must be a text")
        return value

    def needed_text(self, name: str) -> str:
        value = self.text(name)
        return value if value else self.refuse(name, "is missing")

    def whole(self, name: str, low: int = 1) -> int | None:
        value = self.raw(name)
        if value is not None and (type(value) is not int or not low <= value <= MAX_NUMBER):
            self.refuse(name, f"must be a whole number from {low} on")
        return value

    def number(self, name: str, low: float, high: float) -> float | None:
        value: float | None = self.raw(name)
        if value is not None and (type(value) not in (int, float) or not low <= value <= high):
            self.refuse(name, f"must be a number from {low:g} to {high:g}")
        return value

    def flag(self, name: str) -> bool | None:
        value = self.raw(name)
        if value is not None and not isinstance(value, bool):
            self.refuse(name, "must be true or false")
        return value

    def choice(self, name: str, allowed: Collection[str]) -> Any:
        """One of `allowed`, or None. Typed Any because the caller knows the literal type."""
        value = self.raw(name)
        if value is not None and (not isinstance(value, str) or value not in allowed):
            self.refuse(name, f"must be one of {', '.join(allowed)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or a single text."""
        value = self.raw(name)
        value = [value] if isinstance(value, str) else value or []
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            self.refuse(name, "must be a list of texts")
        return tuple(value)

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        value = self.raw(name)
        if value is not None and not isinstance(value, dict):
            self.refuse(name, "must be an object")
        return value

    def object(self, name: str) -> "Fields | None":
        value = self.raw(name)
        return None if value is None else self._below(value, self.at(name))

    def needed_object(self, name: str) -> "Fields":
        return self.object(name) or self.refuse(name, "is missing")

    def items(self, name: str) -> list[Json]:
        value = self.raw(name)
        if value is not None and not isinstance(value, list):
            self.refuse(name, "must be a list")
        return value or []

    def item(self, name: str, number: int, value: Json) -> "Fields":
        """An object of a list."""
        return self._below(value, self.at(name) + self._item.format(number))

    def objects(self, name: str) -> list["Fields"]:
        return [self.item(name, number, value) for number, value in enumerate(self.items(name))]

    def _below(self, value: Json, path: str) -> "Fields":
        return Fields(value, path, item=self._item, lenient=self._lenient)

    def base64(self, name: str, text: str) -> str:
        """Returns `text`, which was read from this field, if it is valid base64."""
        try:
            b64decode(text, validate=True)
        except ValueError:
            self.refuse(name, "is not valid base64")
        return text

    def ignore(self, *names: str) -> None:
        """Accepts fields that have no effect here."""
        self._left.difference_update(names)

    def only(self, name: str, *neutral: Json) -> None:
        """Accepts a field only with a value that has no effect."""
        value = self.raw(name)
        if value is not None and value not in neutral:
            self.refuse(name, "is not supported here")

    def rest(self) -> dict[str, Json]:
        """The fields that were not read; they count as read from now on."""
        rest = {name: value for name, value in self._data.items() if name in self._left and value is not None}
        self._left.clear()
        return rest

    def end(self) -> None:
        if self._left and not self._lenient:
            self.refuse(min(self._left), "is not a known field")

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, name: str, what: str) -> NoReturn:
        path = self.at(name) if name else self.path
        raise Invalid(f"{path} {what}.", field=path)


def parsed(body: bytes, *, item: str, lenient: bool = False) -> Fields:
    """The body as Fields. Refuses values that cannot be forwarded: NaN and lone surrogates."""
    try:
        data = loads(body)
        dumpb(data)
    except UnicodeError as why:
        raise Invalid("The request contains characters that are not valid Unicode.", field="") from why
    except (ValueError, RecursionError) as why:
        raise Invalid(f"The request is not JSON: {str(why) or 'it is nested too deeply'}.", field="") from why
    return Fields(data, item=item, lenient=lenient)


COMBINED = ("oneOf", "anyOf", "allOf")
LONGEST_NAME = 64
UNNAMED_TOOL = "unnamed"


def sent_id(id: str, accepted: re.Pattern[str]) -> str:
    """The id, or letters and digits made from it, the same for a call and its result. Nine suit Mistral too."""
    return id if accepted.fullmatch(id) else sha256(id.encode("utf-8", "replace")).hexdigest()[:9]


def sent_name(name: str) -> str:
    """The name of a called tool in the characters that every provider accepts."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:LONGEST_NAME] or UNNAMED_TOOL


def json_arguments(arguments: str) -> dict[str, Any]:
    """The arguments of a call as the object that providers require; empty where the model wrote something else. The
    block keeps the original text, and the tool's result names the error."""
    try:
        value = loads(arguments)
        # NaN and infinity can be read but not sent, and neither can halves of characters
        text, repaired = clean(dumps(value))
        value = loads(text) if repaired else value
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object. Combinations at the root are merged into one object that allows all of them."""
    if _is_object_schema(schema):
        return dict(schema)
    parts = [part for name in COMBINED for part in _list(schema.get(name)) if isinstance(part, Mapping)]
    properties = dict(_mapping(schema.get("properties")))
    for part in parts:
        properties = {**_mapping(part.get("properties")), **properties}
    out: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
    for part in _list(schema.get("allOf")):
        required += [name for name in _list(_mapping(part).get("required")) if isinstance(name, str)]
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
