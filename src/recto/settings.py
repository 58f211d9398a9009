"""One frozen Settings value from files, environment and flags, later ones winning; where each came from is kept.

Plain dataclasses rather than a validation library: every command reads this, and it must cost nothing to import.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from recto.errors import Invalid

SYSTEM_PROMPT = (
    "You are a helpful assistant. Answer in one to three short sentences, from the conversation and the documents "
    "you are given. Say so when they do not hold the answer."
)

SWITCHES = dict.fromkeys(("true", "1", "on", "yes"), True) | dict.fromkeys(("false", "0", "off", "no"), False)


def _setting(
    default: Any, help: str, *, low: float | None = None, high: float | None = None, among: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high, "among": among})


@dataclass(frozen=True, slots=True)
class ContextSettings:
    strategy: str = _setting("discard", "what happens when the window is full", among=("discard",))
    enabled: bool = _setting(True, "compact automatically")
    max_prompt_tokens: int = _setting(0, "cap of the window; 0 means the model's own", low=0, high=100_000_000)
    reserved_response_tokens: int = _setting(
        0, "kept for the reply; 0 means max(512, 5 % of the limit)", low=0, high=10_000_000
    )
    low_water: float = _setting(0.5, "share of the limit that a compaction goes down to", low=0.05, high=0.95)


@dataclass(frozen=True, slots=True)
class ReplySettings:
    max_tokens: int = _setting(0, "longest reply; 0 leaves it to the model", low=0, high=10_000_000)
    temperature: float = _setting(-1.0, "0 to 2; -1 leaves it to the model", low=-1, high=2)
    thinking_budget: int = _setting(0, "tokens a model may think; 0 is off", low=0, high=10_000_000)
    timeout_s: float = _setting(120.0, "longest silence of a provider, in seconds", low=1, high=3600)
    tries: int = _setting(4, "tries in all when a provider is busy or cannot be reached", low=1, high=20)


@dataclass(frozen=True, slots=True)
class ToolSettings:
    enabled: bool = _setting(True, "offer tools to models that can call them")
    step_limit: int = _setting(20, "rounds of tool calls in one turn", low=1, high=1000)
    timeout_s: float = _setting(60.0, "longest run of one tool, in seconds", low=1, high=3600)


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    window: int = _setting(4096, "window of the embedded model", low=512, high=8192)


@dataclass(frozen=True, slots=True)
class Settings:
    model: str = _setting("embedded:smollm2", "who answers, as provider:model")
    vault: str = _setting("", "folder of notes to chat over")
    system_prompt: str = _setting(SYSTEM_PROMPT, "what the model is told first")
    system_prompt_file: str = _setting("", "a file that holds it instead, read at every turn")
    context: ContextSettings = ContextSettings()
    reply: ReplySettings = ReplySettings()
    tools: ToolSettings = ToolSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Setting -> where its value came from; what is missing here is a default."""

    def get(self, key: str) -> Any:
        _spec(key)
        value: Any = self
        for name in key.split("."):
            value = getattr(value, name)
        return value

    def origin(self, key: str) -> str:
        return self.origins.get(key, "default")


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known about one setting."""

    key: str
    default: Any
    help: str
    low: float | None
    high: float | None
    among: tuple[str, ...]

    @property
    def allowed(self) -> str:
        if self.among:
            return " or ".join(self.among)
        if isinstance(self.default, bool):
            return "true or false"
        kind = {int: "a whole number", float: "a number"}.get(type(self.default), "a text")
        return kind if self.low is None else f"{kind} from {self.low:,} to {self.high:,}"

    def read(self, value: Any, where: str) -> Any:
        """The value as this setting's type, also from text; Invalid names what is allowed."""
        try:
            typed = self._typed(value)
        except (KeyError, TypeError, ValueError):
            raise self.wrong(value, where) from None
        if self.among and typed not in self.among:
            raise self.wrong(value, where)
        if self.low is not None and self.high is not None and not self.low <= typed <= self.high:
            raise self.wrong(value, where)
        return typed

    def _typed(self, value: Any) -> Any:
        kind = type(self.default)
        if kind is bool:
            return value if isinstance(value, bool) else SWITCHES[str(value).lower()]
        if kind is str:
            return value if isinstance(value, str) else _refuse()
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return _refuse()
        if kind is int and isinstance(value, float):
            return _refuse()
        return kind(value)

    def wrong(self, value: Any, where: str) -> Invalid:
        return Invalid(
            f"{where}: {self.key} = {value!r} is not allowed; it takes {self.allowed}",
            key=self.key,
            allowed=self.allowed,
        )


def _refuse() -> Any:
    raise TypeError


def specs() -> Iterator[Spec]:
    """All settings, in the order they are shown."""
    for entry in fields(Settings):
        if entry.name == "origins":
            continue
        if entry.metadata:
            yield _made(entry.name, entry)
        else:
            for inner in fields(entry.default):  # type: ignore[arg-type]
                yield _made(f"{entry.name}.{inner.name}", inner)


def _made(key: str, entry: Any) -> Spec:
    known = entry.metadata
    return Spec(key, entry.default, known["help"], known["low"], known["high"], known["among"])


def _spec(key: str, where: str = "") -> Spec:
    known = {spec.key: spec for spec in specs()}
    if key not in known:
        near = get_close_matches(key, known, 1)
        hint = f"; did you mean {near[0]}?" if near else "; `recto config show` lists them all"
        raise Invalid(f"{where + ': ' if where else ''}there is no setting {key}{hint}", key=key)
    return known[key]


def check(key: str, value: Any, where: str = "value") -> Any:
    """The value as it would be set; Invalid when the key is unknown or the value is not allowed."""
    return _spec(key, where).read(value, where)


def read_file(path: Path) -> dict[str, Any]:
    """The settings of one TOML file by dotted key, checked; empty when there is no file."""
    return read_text(file_text(path), str(path))


def file_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except NotADirectoryError as why:
        raise Invalid(f"{path.parent} is not a folder; set RECTO_HOME to one", file=str(path)) from why
    except UnicodeDecodeError as why:
        raise Invalid(f"{path} is not valid TOML: {why}", file=str(path)) from why
    except OSError as why:
        raise Invalid(f"cannot read {path}: {why.strerror}", file=str(path)) from why


def read_text(text: str, where: str) -> dict[str, Any]:
    """The settings of a TOML text, checked as those of a file are before it is written."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise Invalid(f"{where} is not valid TOML: {why}", file=where) from why
    return {key: check(key, value, where) for key, value in _flat(data)}


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    groups = {spec.key.partition(".")[0] for spec in specs() if "." in spec.key}
    for name, value in data.items():
        if isinstance(value, dict) and not prefix and name in groups:
            yield from _flat(value, f"{name}.")
        else:
            yield prefix + name, value


def load(
    home: Path,
    project: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for found, origin in _layers(home, project, environment, flags or {}):
        values.update(found)
        origins.update(dict.fromkeys(found, origin))
    return _build(values, origins)


def _layers(
    home: Path, project: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], str]]:
    for folder in (home, project / ".recto" if project else None):
        if folder:
            path = folder / "config.toml"
            yield _rooted(read_file(path), project or Path.cwd() if folder != home else home), str(path)
    for spec in specs():
        name = "RECTO_" + spec.key.upper().replace(".", "_")
        if environment.get(name):
            yield {spec.key: spec.read(environment[name], name)}, name
    given = {key: check(key, value, "option") for key, value in flags.items() if value is not None}
    yield given, "option"


def _rooted(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths in a file are meant from where the file belongs, not from where the command runs."""
    for key in ("vault", "system_prompt_file"):
        if values.get(key):
            values[key] = str(folder / Path(values[key]).expanduser())
    return values


def _build(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    settings = Settings(origins=dict(origins))
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        if group:
            settings = replace(settings, **{group: replace(getattr(settings, group), **{name: value})})
        else:
            settings = replace(settings, **{name: value})
    return settings
