"""models.toml: facts about models, read from a file and checked. Knows the keys; not which file wins over which."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from recto.errors import Invalid

VOCABULARIES = ("o200k_base", "cl100k_base", "llama3", "mistral_v3", "qwen3", "deepseek_v3", "gemma4", "server")
STRATEGIES = ("discard", "summarize", "hybrid")
PRICES = ("input", "output", "cache_read", "cache_write")
LARGEST = 100_000_000

Facts = Mapping[str, Any]
Holds = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class FactsFile:
    """The tables of one file, by `provider:id`; a `*` in a name stands for anything."""

    origin: str
    tables: Mapping[str, Facts]

    def about(self, name: str) -> Facts:
        """Everything that is said about a model; what is said under the longer name wins."""
        fits = [pattern for pattern in self.tables if pattern == name or fnmatchcase(name, pattern)]
        facts: dict[str, Any] = {}
        for pattern in sorted(fits, key=lambda pattern: (pattern == name, len(pattern))):
            facts |= self.tables[pattern]
        return facts

    def names(self) -> list[str]:
        return [name for name in self.tables if "*" not in name]


def read_facts(path: Path, origin: str) -> FactsFile:
    """The checked file; an empty one where there is none. Whatever is wrong in it is Invalid and named."""
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


def _whole(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= LARGEST


def _number(value: object, least: float, most: float) -> bool:
    return type(value) in (int, float) and least <= value <= most  # type: ignore[operator]  # seen to be a number


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and len(text) > 1 for text in value)


CHECKS: dict[str, tuple[Holds, str]] = {
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
    "strategy": (lambda value: value in STRATEGIES, f"one of {', '.join(STRATEGIES)}"),
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
            _refuse(path, name, key, f"is not known; allowed are {', '.join(CHECKS)}")
        holds, allowed = CHECKS[key]
        if not holds(value):
            _refuse(path, name, key, f"must be {allowed}, not {value!r}")
    _check_prices(path, name, table.get("prices", {}))
    return table


def _check_prices(path: Path, name: str, prices: Mapping[str, object]) -> None:
    for key, value in prices.items():
        if key not in PRICES:
            _refuse(path, name, f"prices.{key}", f"is not known; allowed are {', '.join(PRICES)}")
        if not _number(value, 0, 1_000_000):
            _refuse(path, name, f"prices.{key}", f"must be US dollars for a million tokens, not {value!r}")


def _refuse(path: Path, name: str, key: str, what: str) -> None:
    raise Invalid(f'{path}: {key} of "{name}" {what}.', path=str(path), model=name, key=key)
