"""Tool use: which command a call ran, with what outcome, and which files it read and changed.

Read off the arguments and the result, whatever the tool is called. Knows one call at a time.
"""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from recto.summary.model_orders import SOMEBODY, is_order
from recto.summary.sentences import word_set
from recto.summary.truncation import cut_text

_MAX_COMMAND, _MAX_OUTCOME, _MAX_PATH = 100, 110, 200
# Of a long result, so many characters at its start and its end are read.
_MAX_READ = 6000

_COMMAND_KEYS = word_set("command cmd commands script shell bash input_command")
_PATH_KEY = re.compile(r"(?:^|_)(?:path|file|filename|filepath|notebook)s?$|^(?:target|file_name|uri)$", re.IGNORECASE)
_CONTENT_KEYS = word_set(
    "content contents file_text new_string new_str old_string old_str replace replacement new_text diff patch edits"
)
_VERBS_THAT_CHANGE = word_set(
    "edit write create insert replace patch append delete remove rename move save update modify apply undo"
)
# These work on the file that was opened last where they name none.
_VERBS_ON_OPEN_FILE = word_set("edit insert replace append undo write")
_VERBS_THAT_READ = word_set("read open view cat show load goto scroll search grep find list get")
_WORDS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_TRIVIAL = word_set("cd export source . set echo printf sleep true pwd pushd popd unset clear alias exit which mkdir")
_LOOKING = word_set(
    "ls cat head tail grep rg find sed awk wc file stat tree nl less more du df ps env type diff cd echo pwd which"
)
_PREFIXES = word_set("sudo time nohup command exec xargs env nice stdbuf")
_INTERPRETERS = word_set("python python3 node bash sh zsh ruby perl php deno bun java Rscript")
_WITH_VERB = word_set(
    "git npm yarn pnpm cargo go docker docker-compose kubectl make pip pip3 apt apt-get brew gh terraform dotnet mvn "
    "gradle ./gradlew bazel systemctl uv poetry conda helm aws gcloud az just tox nox rake composer mix swift"
)
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("bundle", "exec"), ("npx", ""), ("conda", "run")}
_SEPARATORS = ("&&", "||", ";", "|", "&", ";;")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?([^\n]*)\n.*?(?:\n\s*\1[ \t]*(?=\n|$)|\Z)", re.DOTALL)
_ASSIGNMENT = re.compile(r"\w+=")
_WRITTEN_BY_CODE = re.compile(
    r"""open\(\s*['"]([^'"\n]+)['"]\s*,\s*['"][wax]|Path\(\s*['"]([^'"\n]+)['"]\s*\)\.write_"""
)
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S+)", re.MULTILINE)
_DIFFED = re.compile(r"^diff --git a/\S+ b/(\S+)", re.MULTILINE)
_PATH = re.compile(r"(?!-)(?!\w+://)[^\s'\"$*?{}()<>|;]*(?:/[^\s'\"$*?{}()<>|;]+|\w\.\w{1,8})")

_NAMED_FILE = re.compile(r"\bfile:? +[`'\"]?((?:/|\w)[^\s`'\",;:()]*\.\w{1,8})\b", re.IGNORECASE)
_EXIT = re.compile(r"\b(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|return ?code|exit_code)\W{1,3}(-?\d{1,3})\b", re.I)
_TALLY = re.compile(
    r"\b\d+ (?:passed|failed|errors?|failures?|tests?|examples?|problems?|warnings?|issues?)\b|^OK\b|\bFAILED\b"
    r"|\bBUILD (?:SUCCESS|FAIL)|^test result:|\ball checks passed\b|\bno issues found\b|^\W*success\b",
    re.IGNORECASE,
)
_BAD_TALLY = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bFAILED\b|\bBUILD FAIL|failures=[1-9]|errors=[1-9]", re.IGNORECASE
)
_ERROR_LINE = re.compile(
    r"^(?:E\s+)?[\w.]*(?:Error|Exception)\b|^\W*(?:\w+[ :])?(?:error|fatal|panic|failed)\b\s*[:\[(]|\bERROR\b"
    r"|no such file|command not found|permission denied|timed out|traceback \(|connection refused|syntax error"
    r"|unrecognized (?:argument|option)|\bnot found$|^make: \*\*\*|npm ERR!|\bconflict\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"^\W*(?:\w+ ){0,3}(?:error|failed|failure|invalid|no such|not found|could not|cannot|unable to|denied)\b"
    r"|\bintroduced new syntax error|\bno match(?:es)? found\b|\bdoes not exist\b|\bwas not (?:found|applied)\b",
    re.IGNORECASE,
)
_WARNING = re.compile(r"\W*warning\b", re.IGNORECASE)
_PROMPT_LINE = re.compile(r"^(?:\(.*\)\s*)?[\w@:~/.\-\[\] ]{0,60}[$#>❯%]$")
_DECORATION = re.compile(r"^[=\-*#\s]+|[=\-*#\s]+$")


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
    def opened(self) -> str:
        """The file that a later edit without a path works on."""
        return next(iter((*self.changed, *self.read)), "")


def read_tool_use(
    name: str, arguments: str, result: str, *, is_error: bool = False, open_file: str = "", frames: frozenset[str]
) -> ToolUse:
    """`frames` are lines that stand in result after result, such as a prompt."""
    given = _parsed(arguments)
    command, paths = _command_of(given), _paths_of(given)
    if command and not (paths and command in _VERBS_THAT_CHANGE | _VERBS_THAT_READ | {"str_replace", "undo_edit"}):
        return _shell_use(command, result, is_error=is_error, frames=frames)
    outcome, is_failed = find_outcome(result, is_error=is_error, frames=frames, is_strict=True)
    words = {word.lower() for word in _WORDS_OF_NAME.findall(f"{name} {command}")}
    has_content = isinstance(given, dict) and not _CONTENT_KEYS.isdisjoint(given)
    changes = not _VERBS_THAT_CHANGE.isdisjoint(words) or (has_content and _VERBS_THAT_READ.isdisjoint(words))
    patched = tuple(_PATCHED.findall(arguments.replace("\\n", "\n")))
    if not paths and not patched and not _VERBS_ON_OPEN_FILE.isdisjoint(words):
        named = _NAMED_FILE.search(result)
        paths = (named[1],) if named else (open_file,) if open_file else ()
    files = paths or patched
    if not files:
        return _other_use(name, given, outcome, is_failed=is_failed, changed=tuple(_DIFFED.findall(result)))
    families = frozenset(f"{name} {path}" for path in files)
    if is_failed:
        return ToolUse(families, cut_text(f"{name} {files[0]}", _MAX_COMMAND), outcome, is_failed=True)
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


def _other_use(name: str, given: Any, outcome: str, *, is_failed: bool, changed: tuple[str, ...]) -> ToolUse:
    values = [_flat(value) for value in given.values()] if isinstance(given, dict) else [_flat(given)]
    command = cut_text(" ".join([name, *filter(None, values)]), _MAX_COMMAND)
    return ToolUse(frozenset([name]), command, outcome, is_failed, changed=changed)


def _flat(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _command_of(given: Any) -> str:
    if not isinstance(given, dict):
        return ""
    found = next((value for key, value in given.items() if key.lower() in _COMMAND_KEYS), "")
    if isinstance(found, list):
        return " ".join(map(str, found))
    return found.strip() if isinstance(found, str) else ""


def _paths_of(given: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in _found_paths(given) if len(path) <= _MAX_PATH))


def _found_paths(given: Any, key: str = "") -> Iterator[str]:
    if isinstance(given, dict):
        for name, value in given.items():
            yield from _found_paths(value, name)
    elif isinstance(given, list):
        for value in given:
            yield from _found_paths(value, key)
    elif isinstance(given, str) and _PATH_KEY.search(key) and given.strip() and "\n" not in given:
        yield given.strip().removeprefix("file://")


# -- the shell


def _shell_use(command: str, result: str, *, is_error: bool, frames: frozenset[str]) -> ToolUse:
    parts = [words for words in _segments(command) if words]
    families = frozenset(family for words in parts if (family := command_family(words)))
    is_looking = families <= _LOOKING
    outcome, is_failed = find_outcome(result, is_error=is_error, frames=frames, is_strict=is_looking)
    files = (_files_of(words) for words in parts)
    read, changed = [], [path for found in _WRITTEN_BY_CODE.findall(command) for path in found if path]
    for some_read, some_changed in files:
        read += some_read
        changed += some_changed
    changed += [*_PATCHED.findall(command), *_DIFFED.findall(result)] if "patch" in command else []
    shown = cut_text(" ".join(_HEREDOC.sub(r"<<\1\2", command).split()), _MAX_COMMAND)
    if not families:
        return ToolUse(frozenset(), read=tuple(read), changed=tuple(changed))
    done = () if is_failed else tuple(changed)
    return ToolUse(families, shown, outcome, is_failed, is_looking, tuple(read), done, is_shell=True)


def _segments(command: str) -> list[list[str]]:
    """The words of each command in a line; in a pipe, of its first command and of what changes files."""
    command = _HEREDOC.sub(r"<<\1\2", command).replace("\\\n", " ")
    lines = command.split("\n")
    is_plain = all(line.count("'") % 2 == 0 and line.count('"') % 2 == 0 for line in lines)
    command = (" ; " if is_plain else " ").join(lines)
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = list(lexer)
    except ValueError:
        words = command.split()
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            found.append([])
            continue
        found[-1].append(word)
    return found


def command_family(words: list[str]) -> str:
    """`pytest`, `git commit`, `npm test`, `python setup.py`: what is run, without how; empty for `cd` and the like."""
    words = list(words)
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES or words[0] == "timeout"):
        words = words[2:] if words[0] == "timeout" else words[1:]
    if not words or words[0] in _TRIVIAL or words[0].startswith(("<<", ">", "2>", "#")):
        return ""
    first, *rest = words
    verbs = [word for word in rest if not word.startswith(("-", ">", "<", "2>"))]
    if first in _INTERPRETERS:
        if "-m" in rest[:-1]:
            return rest[rest.index("-m") + 1]
        return f"{first} {verbs[0]}" if verbs and "-c" not in rest else first
    if any(first == runner and (not verb or rest[:1] == [verb]) for runner, verb in _RUNNERS):
        return command_family(verbs[1:] if first != "npx" else verbs)
    if first in ("sed", "perl") and any(word.startswith("-i") for word in rest):
        return f"{first} -i"
    name = first.rsplit("/", 1)[-1] if first.startswith("/") else first
    if name in ("npm", "yarn", "pnpm") and verbs[:1] == ["run"]:
        verbs = verbs[1:]
    return f"{name} {verbs[0]}" if name in _WITH_VERB and verbs else name


def _files_of(words: list[str]) -> tuple[list[str], list[str]]:
    """The files that a command reads, and those that it changes."""
    changed = [words[at + 1] for at, word in enumerate(words[:-1]) if word in (">", ">>")]
    changed += [word.lstrip(">") for word in words if word.startswith(">") and word.strip(">")]
    paths = [word for word in words[1:] if _PATH.fullmatch(word) and word not in changed]
    match words[0], words[1:2]:
        case ("sed" | "perl", _) if any(word.startswith("-i") for word in words):
            changed += paths[-1:]
        case ("rm" | "touch" | "tee" | "mv" | "truncate", _) | ("git", ["rm" | "mv" | "restore"]):
            changed += paths
        case ("cp" | "install", _):
            changed += paths[-1:]
        case ("cat" | "head" | "tail" | "less" | "more" | "nl" | "bat" | "sed" | "open" | "view", _):
            return paths, _real(changed)
        case ("create" | "edit" | "write", _):
            changed += paths[:1]
    return [], _real(changed)


def is_path(text: str) -> bool:
    return _PATH.fullmatch(text) is not None


def _real(paths: list[str]) -> list[str]:
    return [path for path in paths if not path.startswith(("/dev/", "&"))]


# -- the result


def find_outcome(text: str, *, is_error: bool, frames: frozenset[str], is_strict: bool = False) -> tuple[str, bool]:
    """The line that says how it went, and whether it failed. `is_strict`: what is shown may be about errors, so only
    the tool itself says that it failed."""
    text, code = _unpacked(text)
    ends = text if len(text) <= _MAX_READ else f"{text[: _MAX_READ // 3]}\n{text[-_MAX_READ * 2 // 3 :]}"
    if diffed := _DIFFED.findall(ends):
        return _shown(f"diff of {', '.join(dict.fromkeys(diffed))}", code), is_error or bool(code)
    lines = _without_prompt([line.strip() for line in ends.splitlines() if line.strip()])
    lines = [line for line in lines if line not in frames] or lines[-1:]
    while lines and is_order(lines[-1], speaker=SOMEBODY):
        lines.pop()
    if code is None and (found := _EXIT.search(f"{ends[:200]}\n{ends[-200:]}")):
        code = int(found[1])
    is_failed = is_error or bool(code)
    errors = [line for line in lines[:3] + lines[-15:] if _ERROR_LINE.search(line) and not _WARNING.match(line)]
    error = errors[-1] if errors else ""
    if is_strict:
        is_failed = is_failed or bool(lines and _REFUSED.search(lines[0]))
        return _shown(error if is_failed and error else _ending(lines), code), is_failed
    tally = next((line for line in reversed(lines) if _TALLY.search(line)), "")
    if tally and (_BAD_TALLY.search(tally) or not (error and is_failed)):
        return _shown(tally, code), is_failed or _BAD_TALLY.search(tally) is not None
    if error and code != 0:
        return _shown(error, code), True
    return _shown(_ending(lines), code), is_failed


def _without_prompt(lines: list[str]) -> list[str]:
    """Without the prompt of a shell at the end, and the lines in parentheses that some put before it."""
    if not lines or not _PROMPT_LINE.match(lines[-1]):
        return lines
    end = len(lines) - 1
    while end and lines[end - 1].startswith("(") and lines[end - 1].endswith(")"):
        end -= 1
    return lines[:end]


def _ending(lines: list[str]) -> str:
    return " / ".join(lines) if len(lines) <= 2 else lines[-1]


def _shown(line: str, code: int | None) -> str:
    line = _DECORATION.sub("", line) or line
    shown = cut_text(" ".join(line.split()), _MAX_OUTCOME) or "no output"
    return f"{shown} (exit code {code})" if code and str(code) not in shown else shown


def _unpacked(text: str) -> tuple[str, int | None]:
    """The texts of a result in JSON, and its exit code."""
    if not text.lstrip().startswith("{"):
        return text, None
    given = _parsed(text)
    if not isinstance(given, dict):
        return text, None
    code = next((value for key, value in given.items() if key in ("exit_code", "returncode", "exitCode", "code")), None)
    parts = [value for value in given.values() if isinstance(value, str) and value.strip()]
    return "\n".join(parts) or text, code if isinstance(code, int) else None
