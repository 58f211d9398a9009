"""The short form of a tool: what a model needs to call it, without the rest of its description.

It depends on the tool alone, so that a request with it begins with the same bytes as the one before.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from recto.sources.source import Tool

LONGEST_DESCRIPTION, LONGEST_FIELD = 160, 60
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Their keys are names, not keywords: a property may be called `title`."""
_LEFT_OUT = ("title", "examples", "$schema", "$comment")
_DATA = ("enum", "const", "default", "required")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\s*\n")


def short_form(tool: Tool) -> Tool:
    """Equal to the tool where nothing can be left out."""
    description = _shortened(tool.description, LONGEST_DESCRIPTION)
    return replace(tool, description=description, schema=_short_schema(tool.schema))


def _short_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _short_value(key, value) for key, value in schema.items() if key not in _LEFT_OUT}


def _short_value(key: str, value: Any) -> Any:
    if key == "description" and isinstance(value, str):
        return _shortened(value, LONGEST_FIELD)
    if key in _BY_NAME and isinstance(value, Mapping):
        return {name: _short_item(item) for name, item in value.items()}
    if key in _DATA:
        return value
    return [_short_item(item) for item in value] if isinstance(value, list) else _short_item(value)


def _short_item(value: Any) -> Any:
    return _short_schema(value) if isinstance(value, Mapping) else value


def _shortened(text: str, longest: int) -> str:
    """The first sentence, as much of it as is allowed."""
    first = " ".join(_SENTENCE_END.split(text.strip(), maxsplit=1)[0].split())
    if len(first) <= longest:
        return first
    return f"{first[: longest - 1].rpartition(' ')[0] or first[: longest - 1]}…"
