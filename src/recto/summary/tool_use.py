"""Tool use: which command a call ran, with what outcome, and which files it read and changed.

Read off the arguments and the result, whatever the tool is called. Knows one call at a time.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from recto.summary.machine_output import is_document
from recto.summary.outcome import NO_OUTPUT, find_diffed, find_outcome
from recto.summary.sentences import word_set
from recto.summary.shell_command import (
    command_families,
    command_files,
    files_written_by_code,
    is_editing_family,
    is_looking_family,
    is_path,
    patched_files,
    shorten_command,
    split_commands,
    unwrap,
)
from recto.summary.truncation import cut_text

_MAX_COMMAND, _MAX_OTHER, _MAX_PATH, _MAX_TITLE = 300, 100, 200, 100

_COMMAND_KEYS = word_set("command cmd commands script shell bash input_command command_line commandline")
_CODE_KEYS = word_set("code source input python script")
_PATH_KEY = re.compile(r"(?:^|_)(?:path|file|filename|filepath|notebook)s?$|^(?:target|file_name|uri)$", re.IGNORECASE)
_MOVE_KEY = re.compile(r"^(?:source|destination|dest|from|to|old|new|src|dst)$", re.IGNORECASE)
_CONTENT_KEYS = word_set(
    "content contents file_text new_string new_str old_string old_str replace replacement new_text diff patch edits "
    "code_edit old_text search_replace updates"
)
_VERBS_THAT_CHANGE = word_set(
    "edit write create insert replace patch append delete remove rename move save update modify apply undo overwrite"
)
_VERBS_THAT_MOVE = word_set("move rename copy")
# These work on the file that was opened last where they name none.
_VERBS_ON_OPEN_FILE = word_set("edit insert replace append undo write")
_WORDS_OF_EDITORS = word_set("file text line lines code string str block content in into to and at range search tool")
_VERBS_THAT_READ = word_set("read open view cat show load goto scroll search grep find list get")
_VERBS_THAT_LIST = word_set("search grep find list glob ls tree")
_WORDS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMED_FILE = re.compile(r"\bfile:? +[`'\"]?((?:/|\w)[^\s`'\",;()]*\.\w{1,8})\b", re.IGNORECASE)
_PATCH_APPLIED = re.compile(
    r"^(?:patching file |Applied patch to |Checking patch |reformatted |[AMD] )['\"]?([^\s'\"]+?)['\"]?"
    r"(?:\.\.\.| cleanly\.?| \(.*\))?$",
    re.MULTILINE,
)
_APPLIES = re.compile(r"\bpatch\b|\bgit (?:apply|am)\b|\b(?:black|ruff) ")


class ToolUse(Struct, frozen=True):
    """What one call did. Without a command it only read or changed files."""

    families: frozenset[str]
    """What it is an instance of: a later use of the same family has the last word on it."""
    command: str = ""
    outcome: str = ""
    is_failed: bool = False
    is_looking: bool = False
    """It only looked around: its outcome matters least."""
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    is_shell: bool = False

    @property
    def is_quiet(self) -> bool:
        """It looked around, changed files that are listed anyway, or said nothing: it matters less than others."""
        is_edit = bool(self.families) and all(map(is_editing_family, self.families))
        return not self.is_failed and (self.is_looking or is_edit or self.outcome == NO_OUTPUT)

    @property
    def opened(self) -> str:
        """The file that a later edit without a path works on."""
        return next(iter((*self.changed, *self.read)), "")


def read_tool_use(
    name: str, arguments: str, result: str, *, is_error: bool = False, open_file: str = "", frames: frozenset[str]
) -> ToolUse:
    """`frames` are lines that stand in result after result, such as a prompt."""
    given = _parsed(arguments)
    command = _command_of(given)
    words = {word.lower() for word in _WORDS_OF_NAME.findall(f"{name} {command if ' ' not in command else ''}")}
    paths = _paths_of(given, moves=not _VERBS_THAT_MOVE.isdisjoint(words))
    if command and not (paths and command in _VERBS_THAT_CHANGE | _VERBS_THAT_READ | {"str_replace", "undo_edit"}):
        return _shell_use(command, result, is_error=is_error, frames=frames)
    outcome, is_failed = find_outcome(result, is_error=is_error, frames=frames, is_strict=True)
    outcome = _reading_matter(result) if not is_failed and is_document(result) else outcome
    has_content = isinstance(given, dict) and not _CONTENT_KEYS.isdisjoint(map(_snake, given))
    changes = not _VERBS_THAT_CHANGE.isdisjoint(words) or (has_content and _VERBS_THAT_READ.isdisjoint(words))
    patched = tuple(patched_files(_patch_in(given)))
    if not paths and not patched and _works_on_open_file(words):
        named = _NAMED_FILE.search(result)
        paths = (named[1],) if named else (open_file,) if open_file else ()
    files = paths or patched
    if not files or (not changes and not _VERBS_THAT_LIST.isdisjoint(words)):
        is_looking = not changes and not _VERBS_THAT_READ.isdisjoint(words)
        return _other_use(name, given, outcome, result, is_failed=is_failed, is_looking=is_looking)
    families = frozenset(f"{name} {path}" for path in files)
    if is_failed:
        return ToolUse(families, cut_text(f"{name} {files[0]}", _MAX_OTHER), outcome, is_failed=True)
    return ToolUse(families, changed=files) if changes else ToolUse(families, read=files)


def says_all_by_outcome(name: str, arguments: str) -> bool:
    """Whether a call runs a program or changes files, so that its outcome is all that a reader wants of its result;
    what was looked at may be worth telling."""
    use = read_tool_use(name, arguments, "", frames=frozenset())
    return bool(use.changed) or (use.is_shell and not use.is_looking)


def read_written_command(text: str, result: str, *, open_file: str = "", frames: frozenset[str]) -> ToolUse:
    """The same for a command that an agent without tools wrote between fences."""
    name, _, rest = text.partition("\n")[0].strip().partition(" ")
    if name not in _VERBS_THAT_CHANGE | {"open", "view", "goto"} or name == "patch":
        return _shell_use(text, result, is_error=False, frames=frames)
    path = next((word for word in rest.split() if is_path(word)), "")
    arguments = json.dumps({"path": path, "content": text} if path else {"content": text})
    return read_tool_use(name, arguments, result, open_file=open_file, frames=frames)


def _works_on_open_file(words: set[str]) -> bool:
    verbs = words & _VERBS_ON_OPEN_FILE
    return bool(verbs) and words <= _VERBS_ON_OPEN_FILE | _WORDS_OF_EDITORS


def _other_use(name: str, given: Any, outcome: str, result: str, *, is_failed: bool, is_looking: bool) -> ToolUse:
    values = [_flat(value) for value in given.values()] if isinstance(given, dict) else [_flat(given)]
    command = cut_text(" ".join([name, *filter(None, values)]), _MAX_OTHER)
    code = "\n".join(value for key, value in _items(given) if key.lower() in _CODE_KEYS and isinstance(value, str))
    changed = find_diffed(result) or (() if is_failed else files_written_by_code(code))
    return ToolUse(frozenset([name]), command, outcome, is_failed, is_looking, changed=changed)


def _items(given: Any) -> list[tuple[str, Any]]:
    return list(given.items()) if isinstance(given, dict) else []


def _flat(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _snake(key: str) -> str:
    return _CAMEL.sub("_", key).lower()


def _command_of(given: Any) -> str:
    found = next((value for key, value in _items(given) if _snake(key) in _COMMAND_KEYS), "")
    if isinstance(found, list):
        return unwrap(list(map(str, found)))
    return unwrap(found.strip()) if isinstance(found, str) else ""


def _patch_in(given: Any) -> str:
    """Texts of a call that may be a diff, with the line breaks that they have."""
    if isinstance(given, str):
        return given.replace("\\n", "\n")
    return "\n".join(value for _, value in _items(given) if isinstance(value, str))


def _paths_of(given: Any, *, moves: bool = False) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in _found_paths(given, moves=moves) if len(path) <= _MAX_PATH))


def _found_paths(given: Any, key: str = "", *, moves: bool = False) -> Iterator[str]:
    if isinstance(given, dict):
        for name, value in given.items():
            yield from _found_paths(value, name, moves=moves)
    elif isinstance(given, list):
        for value in given:
            yield from _found_paths(value, key, moves=moves)
    elif isinstance(given, str) and given.strip() and "\n" not in given and _is_path_key(key, given, moves=moves):
        yield given.strip().removeprefix("file://")


def _is_path_key(key: str, value: str, *, moves: bool) -> bool:
    return _PATH_KEY.search(_snake(key)) is not None or (moves and bool(_MOVE_KEY.match(key)) and is_path(value))


def _shell_use(command: str, result: str, *, is_error: bool, frames: frozenset[str]) -> ToolUse:
    parts = split_commands(command)
    families = command_families(parts)
    is_looking = all(map(is_looking_family, families))
    outcome, is_failed = find_outcome(result, is_error=is_error, frames=frames, is_strict=is_looking)
    files = command_files(command, parts)
    applied = tuple(_PATCH_APPLIED.findall(result)) + find_diffed(result) if _APPLIES.search(command) else ()
    changed = tuple(dict.fromkeys((*files.changed, *applied)))
    if not families:
        return ToolUse(frozenset(), read=files.read, changed=changed)
    shown = cut_text(shorten_command(command), _MAX_COMMAND)
    # of several commands in a line, those that came before the one that failed were carried out
    done = () if is_failed and len(parts) == 1 else changed
    return ToolUse(families, shown, outcome, is_failed, is_looking, files.read, done, is_shell=True)


def _reading_matter(text: str) -> str:
    """What a page is: its title, or else its length. What it says is not how the call came out."""
    title = text.strip().partition("\n")[0].strip()
    return (
        title if len(title) <= _MAX_TITLE and not title.endswith((".", "!")) else f"{len(text.split()):,} words of text"
    )


def readable_arguments(arguments: str) -> str:
    """The arguments of a tool call as a person reads them: a line for each, without quotes and escapes."""
    try:
        return "\n".join(_argument_lines(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


def _argument_lines(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _argument_lines(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _argument_lines(inner, name)
    else:
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"{name}: {written}" if name else written
