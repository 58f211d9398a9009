"""Reads and checks models.toml, a file of facts about models. Knows the keys, not which file overrides which."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from recto.errors import Invalid
from recto.strategy import STRATEGIES

VOCABULARIES = ("o200k_base", "cl100k_base", "llama3", "mistral_v3", "qwen3", "deepseek_v3", "gemma4", "server")
PRICES = ("input", "output", "cache_read", "cache_write")
MAX_NUMBER = 100_000_000

Facts = Mapping[str, Any]
Check = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class FactsFile:
    """The tables of one file, by `provider:id`; a `*` in a name matches anything."""

    origin: str
    tables: Mapping[str, Facts]

    def about(self, name: str) -> Facts:
        """All facts about a model; a longer matching name overrides a shorter one."""
        fits = [pattern for pattern in self.tables if pattern == name or fnmatchcase(name, pattern)]
        facts: dict[str, Any] = {}
        for pattern in sorted(fits, key=lambda pattern: (pattern == name, len(pattern))):
            facts |= self.tables[pattern]
        return facts

    def names(self) -> list[str]:
        return [name for name in self.tables if "*" not in name]


def read_facts(path: Path, origin: str) -> FactsFile:
    """The checked facts of a file; empty where the file does not exist. Raises Invalid, naming the error."""
    try:
        data = tomllib.loads(path.read_bytes().decode())
    except (FileNotFoundError, NotADirectoryError):
        return FactsFile(origin, {})
    except OSError as why:
        raise Invalid(f"{path} cannot be read: {why.strerror}.", path=str(path)) from why
    except UnicodeDecodeError as why:
        raise Invalid(f"{path} is not UTF-8 text (byte {why.start}).", path=str(path)) from why
    except tomllib.TOMLDecodeError as why:
        raise Invalid(f"{path} is not valid TOML: {why}.", path=str(path)) from why
    return FactsFile(origin, {name: _checked(path, name, table) for name, table in data.items()})


def _whole(value: object, low: int) -> bool:
    return type(value) is int and low <= value <= MAX_NUMBER


def _number(value: object, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]  # checked: it is a number


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and len(text) > 1 for text in value)


CHECKS: dict[str, tuple[Check, str]] = {
    "window": (lambda value: value == 0 or _whole(value, 256), "0 for unknown, or a whole number from 256 on"),
    "max_output": (lambda value: _whole(value, 1), "a whole number from 1 on"),
    "max_tokens": (lambda value: _whole(value, 1), "a whole number from 1 on"),
    "temperature": (lambda value: _number(value, 0, 2), "a number from 0 to 2"),
    "summarizes": (lambda value: isinstance(value, bool), "true or false"),
    "fixed_temperature": (lambda value: isinstance(value, bool), "true or false"),
    "thinking_budget": (lambda value: _whole(value, 0), "a whole number from 0 on"),
    "tokenizer": (lambda value: value in VOCABULARIES, f"one of {', '.join(VOCABULARIES)}"),
    "factor": (lambda value: _number(value, 0.1, 10), "a number from 0.1 to 10"),
    "exact": (lambda value: isinstance(value, bool), "true or false"),
    "tools": (lambda value: isinstance(value, bool), "true or false"),
    **{
        name: (lambda value: isinstance(value, bool), "true or false")
        for name in ("images", "files", "adaptive_thinking", "effort", "stop", "json_schema", "forced_tools")
    },
    "strategy": (lambda value: isinstance(value, str) and value in STRATEGIES, f"one of {', '.join(STRATEGIES)}"),
    "control": (_texts, "a list of texts of at least two characters"),
    "prices": (lambda value: isinstance(value, dict), f"a table with {', '.join(PRICES)}"),
}


def _checked(path: Path, name: str, table: object) -> Facts:
    provider, colon, id = name.partition(":")
    if not (provider and colon and id) or not isinstance(table, dict):
        raise Invalid(
            f'{path}: {name!r} is not a table for a model; write ["provider:model"] and the facts below it.',
            path=str(path),
            key=name,
        )
    for key, value in table.items():
        if key not in CHECKS:
            _refuse(path, name, key, f"is not a known key; use one of {', '.join(CHECKS)}")
        is_allowed, allowed = CHECKS[key]
        if not is_allowed(value):
            _refuse(path, name, key, f"must be {allowed}, not {value!r}")
    _check_prices(path, name, table.get("prices", {}))
    return table


def _check_prices(path: Path, name: str, prices: Mapping[str, object]) -> None:
    for key, value in prices.items():
        if key not in PRICES:
            _refuse(path, name, f"prices.{key}", f"is not a known key; use one of {', '.join(PRICES)}")
        if not _number(value, 0, 1_000_000):
            _refuse(path, name, f"prices.{key}", f"must be US dollars per million tokens, not {value!r}")


def _refuse(path: Path, name: str, key: str, what: str) -> None:
    raise Invalid(f'{path}: {key} of "{name}" {what}.', path=str(path), model=name, key=key)
