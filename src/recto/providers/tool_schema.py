"""Converts the root of a tool's schema to what providers accept: an object with properties. Deeper levels stay as is.

A single refused tool would fail every request that offers it.
"""

from collections.abc import Mapping
from typing import Any

COMBINED = ("oneOf", "anyOf", "allOf")


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
