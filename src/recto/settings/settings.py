"""Settings: one frozen value from files, environment and flags, in increasing priority, with the origin of each.

Plain dataclasses rather than a validation library: every command imports this, so the import must be fast.
"""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.base import toml_file
from recto.base.home_files import private_home
from recto.base.text import closest_key
from recto.errors import Invalid
from recto.settings.project_access import PATHS, USER_FILE, ProjectAccess, ProjectSetting, project_file
from recto.settings.spec import ACCEPTED, HINTS, Spec, hint, under_own_keys, variable_of
from recto.settings.spec import setting as _setting
from recto.settings.strategy import STRATEGY_NAMES, SUMMARIZE

SYSTEM_PROMPT = (
    "You are a helpful assistant. Answer in one to three short sentences, from the conversation and the documents "
    "you are given. Say so when they do not hold the answer."
)

MIN_SUMMARY_TOKENS = 96
WHEN, LEARN = ("auto", "always", "never"), ("off", "ask", "on")
LIVE, FIXED = SESSIONS = ("live", "fixed")


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    system: float = _setting(0.10, "share of the room for the system prompt and rules", low=0, high=1)
    tools: float = _setting(0.30, "share of the room for tools", low=0, high=1)
    messages: float = _setting(0.60, "share of the room for messages, plus what the others leave", low=0, high=1)


@dataclass(frozen=True, slots=True)
class ContextSettings:
    strategy: str = _setting(SUMMARIZE.name, "how a compaction makes room in a full window", among=STRATEGY_NAMES)
    enabled: bool = _setting(True, "compact automatically")
    session: str = _setting(
        LIVE, "`always` rules and references: as they are now (live), or as they were first (fixed)", among=SESSIONS
    )
    confirm: bool = _setting(False, "show each summary and ask before compacting")
    threshold: float = _setting(0.85, "compact when the window reaches this share of its limit", low=0.1, high=1)
    prepare_at: float = _setting(
        0.7, "write the next summary in the background from this share of the limit on; 0 means never", low=0, high=1
    )
    low_water: float = _setting(0.5, "a compaction shrinks the window to this share of the room", low=0.05, high=0.95)
    recent_messages_to_keep: int = _setting(
        6, "latest messages that are never compacted, including the new one; 0 means none", low=0, high=1000
    )
    min_recent_messages_to_keep: int = _setting(2, "keep at least this many if they are large", low=0, high=1000)
    summary_model: str = _setting("", "model that writes summaries, as provider:model; empty means `model`")
    summary_ratio: float = _setting(0.2, "longest summary, as a share of the room", low=0.01, high=0.3)
    summary_tokens: int = _setting(0, "longest summary in tokens; 0 means summary_ratio decides", low=0, high=100_000)
    summary_style: str = _setting("", "how summaries should be written, in your own words")
    summary_timeout_s: float = _setting(300.0, "longest wait for the summary model, in seconds", low=1, high=3600)
    recall_ratio: float = _setting(0.38, "share of the room for recalled messages; 0 turns recall off", low=0, high=1)
    recall_tokens: int = _setting(0, "most tokens recalled; 0 means recall_ratio decides", low=0, high=1_000_000)
    top_k: int = _setting(20, "number of best matching source passages to consider for a message", low=1, high=1000)
    top_n: int = _setting(
        5, "most sources to include for a message, not counting those at or above include_score", low=0, high=100
    )
    include_score: float = _setting(0.7, "sources scoring at least this are always included", low=0, high=1)
    min_score: float = _setting(0.4, "sources scoring less than this are never included", low=0, high=1)
    memory_integration: bool = _setting(True, "use memory; off leaves out all memory, whatever the others say")
    use_project_memory: bool = _setting(True, "read the RECTO.md, AGENTS.md or CLAUDE.md of the project")
    use_agent_memory: bool = _setting(True, "read the memory.md of the agent")
    use_user_memory: bool = _setting(True, "read the memory.md of your RECTO_HOME")
    use_facts: bool = _setting(True, "recall remembered facts, and let models that can call tools remember new ones")
    learn_facts: str = _setting("off", "learn facts from what you say; ask: after a question", among=LEARN)
    learn: bool = _setting(True, "raise the score of sources that replies to similar messages used")
    max_prompt_tokens: int = _setting(0, "largest window; 0 means the model's own limit", low=0, high=100_000_000)
    reserved_response_tokens: int = _setting(
        0, "tokens reserved for the reply; 0 means 5 % of the limit, at least 512", low=0, high=10_000_000
    )
    budgets: BudgetSettings = BudgetSettings()


@dataclass(frozen=True, slots=True)
class ReplySettings:
    max_tokens: int = _setting(0, "longest reply in tokens; 0 means the model decides", low=0, high=10_000_000)
    temperature: float = _setting(-1.0, "sampling temperature, 0 to 2; -1 means the model's default", low=-1, high=2)
    thinking_budget: int = _setting(0, "most tokens for thinking; 0 turns thinking off", low=0, high=10_000_000)
    max_characters: int = _setting(4_000_000, "most characters of thinking or without max_tokens", low=1000, high=10**9)
    timeout_s: float = _setting(120.0, "longest wait for the next data from a provider, in seconds", low=1, high=3600)
    tries: int = _setting(4, "attempts in total when a provider is busy or unreachable", low=1, high=20)


@dataclass(frozen=True, slots=True)
class ToolSettings:
    enabled: bool = _setting(True, "offer tools to models that can call them")
    step_limit: int = _setting(20, "most rounds of tool calls in one turn", low=1, high=1000)
    call_limit: int = _setting(256, "most tool calls in one reply", low=1, high=10_000)
    timeout_s: float = _setting(60.0, "longest run of one tool call, in seconds", low=1, high=3600)
    start_s: float = _setting(30.0, "longest wait for an MCP server to start, in seconds", low=1, high=600)
    result_characters: int = _setting(
        60_000, "most characters of a tool result to send; the whole result is stored", low=1000, high=10_000_000
    )
    allow_write: bool = _setting(False, "offer the tools that write, rename and delete notes in the vault")


@dataclass(frozen=True, slots=True)
class ReferenceSettings:
    enabled: bool = _setting(True, "record which documents messages and replies refer to")
    gists: bool = _setting(False, "let the model write one-line summaries of documents after its reply")
    auto: str = _setting(
        "auto", "find passages in the vault for each message; auto: if the model has no tools", among=WHEN
    )
    quotes: str = _setting("auto", "quote notes with each reply; auto: if the model has no tools", among=WHEN)
    outside: bool = _setting(False, "let @path include files from outside the project and the vault")


@dataclass(frozen=True, slots=True)
class SearchSettings:
    embedder: str = _setting(
        "local",
        "embedder for semantic search: local (multilingual and minilm), either of these, provider:model, or none",
    )
    timeout_s: float = _setting(
        2.0, "longest wait for a query's embedding before keyword search alone answers, in seconds", low=0.05, high=60
    )


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    window: int = _setting(4096, "window of the embedded model, in tokens", low=512, high=32768)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    backup: bool = _setting(True, "back the store up once a day, and keep the backups of a week")


@dataclass(frozen=True, slots=True)
class SpendSettings:
    conversation: float = _setting(0.0, "most US dollars for one conversation; 0 means no limit", low=0, high=1_000_000)
    day: float = _setting(
        0.0, "most US dollars for one day, in all conversations; 0 means no limit", low=0, high=1_000_000
    )


@dataclass(frozen=True, slots=True)
class ServeSettings:
    body_mb: int = _setting(32, "largest request that `recto serve` takes, in megabytes", low=1, high=1024)


@dataclass(frozen=True, slots=True)
class Settings:
    model: str = _setting("embedded:qwen2.5-coder-1.5b", "model that answers, as provider:model")
    vault: str = _setting("", "folder of notes to chat over")
    system_prompt: str = _setting(SYSTEM_PROMPT, "instructions at the start of every window")
    system_prompt_file: str = _setting("", "file with the system prompt, read at every turn; replaces system_prompt")
    context: ContextSettings = ContextSettings()
    reply: ReplySettings = ReplySettings()
    tools: ToolSettings = ToolSettings()
    references: ReferenceSettings = ReferenceSettings()
    search: SearchSettings = SearchSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    store: StoreSettings = StoreSettings()
    spend: SpendSettings = SpendSettings()
    serve: ServeSettings = ServeSettings()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Key -> origin of its value; missing keys have their default."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Key -> why the project's value is not used."""

    def get(self, key: str) -> Any:
        value: Any = self
        for name in _spec(key).key.split("."):
            value = getattr(value, name)
        return value

    def origin(self, key: str) -> str:
        return self.origins.get(own_key(key), "default")


def specs() -> Iterator[Spec]:
    """All settings, in display order."""
    yield from _specs_of(Settings, "")


def _specs_of(group: Any, prefix: str) -> Iterator[Spec]:
    for entry in fields(group):
        known = entry.metadata
        if known:
            key = prefix + entry.name
            allowed = known["low"], known["high"], known["among"]
            yield Spec(key, entry.default, known["help"], *allowed, ACCEPTED.get(key, ""))
        elif is_dataclass(entry.default):
            yield from _specs_of(entry.default, f"{prefix}{entry.name}.")


@cache
def _by_name() -> dict[str, Spec]:
    """Every setting by each of its names."""
    return {name: spec for spec in specs() for name in spec.names}


def _spec(key: str, where: str = "") -> Spec:
    known = _by_name()
    if key in known:
        return known[key]
    place = f"{where}: " if where else ""
    if own := hint(key):
        raise Invalid(f"{place}Unknown setting {key}. Use {own}.", key=key)
    near = closest_key(key, HINTS | {name: spec.key for name, spec in known.items()})
    more = f"did you mean {near}?" if near else "`recto config show` lists them all"
    raise Invalid(f"{place}there is no setting {key}; {more}", key=key)


def own_key(key: str, where: str = "") -> str:
    """Our name of a setting, given under ours or its second name. Raises Invalid for an unknown one."""
    return _spec(key, where).key


def check(key: str, value: Any, where: str = "value") -> Any:
    """The converted value. Raises Invalid if the key is unknown or the value is not allowed."""
    return _spec(key, where).read(value, where)


def conversation_key(key: str, where: str) -> str:
    """The full name of a conversation's setting; `context.` may be left out. Raises Invalid for others."""
    known = _by_name()
    found = known.get(f"context.{key}") or known.get(key)
    full = found.key if found else key
    if full in known and not full.startswith("context.") and full != "spend.conversation":
        whose = "a conversation keeps settings of context, and spend.conversation"
        raise Invalid(f"{where}: {full} is not kept with a conversation; {whose}", key=full)
    return _spec(f"context.{key}" if f"context.{key}" in HINTS else full, where).key


def read_file(path: Path) -> dict[str, Any]:
    """The checked settings of one TOML file by dotted key; empty if the file does not exist."""
    return _read(toml_file.file_text(path), str(path))


def _read(text: str, where: str) -> dict[str, Any]:
    """The checked settings of a TOML text by dotted key."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise Invalid(f"{where} is not valid TOML: {why}", file=where) from why
    return under_own_keys(flat(data), _spec, where)


def flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values by dotted key; tables that are not groups of settings stay whole."""
    groups = {name.rpartition(".")[0] for name in _by_name()}
    for name, value in data.items():
        if isinstance(value, dict) and prefix + name in groups:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def load(
    home: Path,
    project: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    user = str(home / USER_FILE)
    below = read_file(home / USER_FILE)
    for key in PATHS:  # relative to the file's folder, not the current one
        if below.get(key):
            below[key] = str(home / os.path.expanduser(below[key]))
    values, origins = dict(below), dict.fromkeys(below, user)
    refused: dict[str, str] = {}
    if project:
        access = ProjectAccess(home, project)
        for each in project_settings(home, project):
            if problem := access.refusal(each, below.get(each.key, _spec(each.key).default)):
                refused[each.key] = problem
            else:
                values[each.key], origins[each.key] = each.place or each.value, each.file
    for found, origin in _asked(environment, flags or {}):
        values |= found
        origins |= dict.fromkeys(found, origin)
    # a variable or an option overrides it anyway
    notes = {key: why for key, why in refused.items() if origins.get(key, user) == user}
    return replace(changed(Settings(), values, origins), notes=notes)


def project_settings(home: Path, project: Path) -> list[ProjectSetting]:
    if os.path.realpath(project / ".recto") == os.path.realpath(home):  # it is the user's own
        return []
    path, access = project_file(project), ProjectAccess(home, project)
    return [access.setting(key, value, path, project) for key, value in read_file(path).items()]


def _asked(environment: Mapping[str, str], flags: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The values of variables and options, each with its origin."""
    for spec in specs():
        if given := next((name for key in spec.names if environment.get(name := variable_of(key))), ""):
            yield {spec.key: spec.read(environment[given], given)}, given
    yield under_own_keys([(key, value) for key, value in flags.items() if value is not None], _spec, "option"), "option"


def _with(group: Any, names: list[str], value: Any) -> Any:
    first, *rest = names
    return replace(group, **{first: _with(getattr(group, first), rest, value) if rest else value})


def changed(settings: Settings, values: Mapping[str, Any], origin: str | Mapping[str, str]) -> Settings:
    """The settings with these values changed and checked; `origin` is for all values, or per key."""
    values = {own_key(key): value for key, value in values.items()}
    origins = dict.fromkeys(values, origin) if isinstance(origin, str) else {key: origin[key] for key in values}
    for key, value in values.items():
        settings = _with(settings, key.split("."), check(key, value, origins[key]))
    return _check_together(replace(settings, origins={**settings.origins, **origins}), values)


def _check_together(settings: Settings, just_set: Collection[str]) -> Settings:
    """Check settings that depend on each other. If only one of two was set, the default of the other adapts. Raises
    Invalid about the one that was just set, with its `rivals`."""
    context, own = settings.context, settings.origins
    shares, reserved, most = context.budgets, context.reserved_response_tokens, context.max_prompt_tokens
    least, recent = context.min_recent_messages_to_keep, context.recent_messages_to_keep
    adapted: dict[str, Any] = {}
    wrong: list[dict[str, str]] = []

    def ordered(low: str, high: str, default: float, start: str = "from 0 to") -> None:
        """The first of two settings must be lower; if only its default is not, it gets another one."""
        values = getattr(context, low), getattr(context, high)
        if f"context.{low}" in own:
            wrong.append({low: f"a number {start} {values[1]:,g}", high: f"a number from {values[0]:,g} on"})
        adapted[low] = default

    if least > recent:
        if recent:
            ordered("min_recent_messages_to_keep", "recent_messages_to_keep", recent)
        adapted["min_recent_messages_to_keep"] = recent
    if most and reserved >= most:
        too_high, too_low = f"a whole number from 0 to {most - 1:,}", f"0, or a whole number from {reserved + 1:,} on"
        wrong.append({"reserved_response_tokens": too_high, "max_prompt_tokens": too_low})
    if context.low_water >= context.threshold:
        ordered("low_water", "threshold", context.threshold / 2, "below")
    if context.min_score > context.include_score:
        if "context.include_score" not in own:
            adapted["include_score"] = context.min_score
        else:
            ordered("min_score", "include_score", context.include_score)
    if 0 < context.summary_tokens < MIN_SUMMARY_TOKENS:
        wrong.append({"summary_tokens": f"0, or a whole number from {MIN_SUMMARY_TOKENS} to 100,000"})
    left = 1 - shares.system - shares.tools - shares.messages
    if left < -1e-9:
        rooms = {name: max(0.0, left + getattr(shares, name)) for name in ("messages", "tools", "system")}
        together = "so that all three are at most 1"
        wrong.append({f"budgets.{name}": f"a number from 0 to {room:g}, {together}" for name, room in rooms.items()})
    for each in wrong:
        set_now = [name for name in each if f"context.{name}" in just_set]
        name = set_now[0] if len(set_now) == 1 else next(iter(each))
        key, allowed = f"context.{name}", each[name]
        why = f"{settings.origin(key)}: {key} = {settings.get(key)!r} is not allowed; it takes {allowed}"
        raise Invalid(why, key=key, allowed=allowed, rivals=[f"context.{other}" for other in each if other != name])
    return replace(settings, context=replace(context, **adapted)) if adapted else settings


# -- changed for good, without losing a comment


class SettingChange(Struct, frozen=True):
    key: str
    value: Any
    file: Path


def set_setting(key: str, value: Any, *, home: Path, project: Path | None = None) -> SettingChange:
    """Write a setting, checked alone and with the rest of its file, into the user's file or the project's."""
    typed, key = check(key, value, "config set"), own_key(key)
    path = project_file(project) if project else home / USER_FILE
    if key in PATHS and typed and not typed.startswith("~"):
        # a typed path is relative to the current folder, one in a file to the file's place
        place = Path(typed).absolute()
        typed = os.path.relpath(place, project) if project and place.is_relative_to(project) else str(place)
    text = toml_file.with_value(_without(_spec(key).names[1:], path)[0], path, key.split("."), typed)
    values = _read(text, str(path))
    changed(Settings(), values, str(path))
    if project:
        access = ProjectAccess(home, project)
        access.accept([access.setting(key, typed, path, project)])
    with private_home(home):
        toml_file.write(path, text)
    return SettingChange(key, typed, path)


def unset_setting(key: str, *, home: Path, project: Path | None = None) -> bool:
    """Remove a setting, under any of its names, from the user's or project's file. Returns True if it was set."""
    key = own_key(key, "config unset")
    path = project_file(project) if project else home / USER_FILE
    text, was_there = _without(_spec(key).names, path)
    if was_there:
        with private_home(home):
            toml_file.write(path, text)
    return was_there


def _without(names: Sequence[str], path: Path) -> tuple[str, bool]:
    """The text of a file without these settings, and whether it had one of them."""
    before = text = toml_file.file_text(path)
    for name in names:
        left = toml_file.without(text, path, name.split("."))
        text = text if left is None else left
    return text, text != before
