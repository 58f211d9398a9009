"""Outcome: the line of a tool's result that says how it went, and whether it failed. Knows no tool by name."""

import json
import re
from collections.abc import Iterator
from typing import Any

from recto.summary.machine_output import has_code_punctuation, is_noise
from recto.summary.model_orders import SOMEBODY, is_order
from recto.summary.truncation import cut_text

MAX_OUTCOME = 170
NO_OUTPUT = "no output"
_MAX_DETAIL, _MAX_JOINED, _MAX_JOINED_SIZE = 100, 4, 40
# Of a long result, so many characters at its start and its end are read.
_MAX_READ = 6000

_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|return ?code|exit_code)\W{1,3}(-?\d{1,3})\b", re.IGNORECASE
)
_EXIT_KEYS = ("exit_code", "returncode", "return_code", "exitCode", "code", "status_code")
_TEXT_KEYS = ("output", "stdout", "stderr", "text", "content", "message", "result", "error", "data", "body")
_TALLY = re.compile(
    r"\b\d+ (?:passed|failed|errors?|failures?|tests?|examples?|problems?|warnings?|issues?|passing|failing)\b|^OK\b"
    r"|\b\d+ previous errors?\b"
    r"|\b(?-i:FAILED)\b|^FAIL\b|^ok\s+\S+\s+[\d.]+s|\bBUILD (?:SUCCESS|FAIL)|^test result:|\btests run: \d"
    r"|\ball checks passed\b|\bno issues found\b|^\W*success\b",
    re.IGNORECASE,
)
_BAD_TALLY = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|(?:previous )?errors?)\b|\b(?-i:FAILED)\b|^(?-i:FAIL)\b|\bBUILD FAIL"
    r"|(?:failures|errors)[=:] ?[1-9]",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"^(?:E\s+)?[\w.]*(?:Error|Exception)\b|^\W*(?:\w+[ :])?(?:error|fatal|panic|failed)\b\s*[:\[(]|\bERROR\b"
    r"|no such file|command not found|permission denied|timed out|traceback \(|connection refused|syntax error"
    r"|unrecognized (?:argument|option)|\bnot found$|^make: \*\*\*|npm ERR!|\bconflict\b|: error\b.*:"
    r"|is not recognized as an? |^fehler\b|nicht gefunden$|no encontrado$",
    re.IGNORECASE,
)
# Which of many failed: the first of these says more than how many there were.
_DETAIL = re.compile(
    r"^(?-i:FAILED|FAIL:?|--- FAIL:|ERROR:?) \S|^[✕✗×] |^not ok \d|^\S+:\d+(?::\d+)?:? \w|^error(?:\[\w+\])?: "
    r"|^- \S+ \(|^\S+\(\d+,\d+\): error|: error\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"^\W*(?:\w+ ){0,3}(?:error|failed|failure|invalid|no such|not found|could not|cannot|unable to|denied)\b"
    r"|\bintroduced new syntax error|\bno match(?:es)? found\b|\bdoes not exist\b|\bwas not (?:found|applied)\b",
    re.IGNORECASE,
)
_WARNING = re.compile(r"[\W\d]*(?:\[?(?:warning|notice|deprecat\w+|hint)\b|npm (?:warn|notice)\b)", re.IGNORECASE)
_PROMPT_LINE = re.compile(r"^(?:\(.*\)\s*)?[\w@:~/.\-\[\] ]{0,60}[$#>❯%]$")
_DECORATION = re.compile(r"^[=\-*#\s]+|[=\-*#\s]+$")
_TAG = re.compile(r"</?[a-zA-Z][\w:-]*(?:\s[^<>]*)?/?>")
_LABEL = re.compile(r"\A\s*(?:observation|output|result|stdout)\s*:\s*", re.IGNORECASE)
_CODE_TAG = re.compile(r"<(?:returncode|exit_?code)>(-?\d{1,3})<")
_DIFFED = re.compile(r"^diff --git a/\S+ b/(\S+)", re.MULTILINE)
_PROGRESS = re.compile(r"\d+ ?%.*[|█#=>]{3}|[█▓░⠋⠙⠹⠸]|(?:\s+[\d:.kMG-]+){6}$")
_WORDS = re.compile(r"[^\W\d_]{3,}|\d")
_IS_PROSE = re.compile(r"[\W\d]*[^\W\d_]{2,}(?: \S+)*[.!]$|[^\W\d_]{2,} (?:\S+ )+\S+$")


def find_outcome(text: str, *, is_error: bool, frames: frozenset[str], is_strict: bool = False) -> tuple[str, bool]:
    """`frames` are lines that stand in result after result, such as a prompt. `is_strict`: what is shown may be about
    errors, so only the tool itself says that it failed."""
    text, code = _unpacked(text)
    ends = text if len(text) <= _MAX_READ else f"{text[: _MAX_READ // 3]}\n{text[-_MAX_READ * 2 // 3 :]}"
    if diffed := _DIFFED.findall(ends):
        return _shown(f"diff of {', '.join(dict.fromkeys(diffed))}", code), is_error or bool(code)
    if code is None and (
        found := _EXIT.search(_TAG.sub(" ", f"{ends[:200]}\n{ends[-200:]}")) or _CODE_TAG.search(ends)
    ):
        code = int(found[1])
    lines = _lines(_CODE_TAG.sub("<", ends), frames)
    while lines and is_order(lines[-1], speaker=SOMEBODY):
        lines.pop()
    is_failed = is_error or bool(code)
    errors = [line for line in lines[:3] + lines[-15:] if _ERROR_LINE.search(line) and not _WARNING.match(line)]
    error = _telling_error(errors)
    if is_strict:
        is_failed = is_failed or bool(lines and _REFUSED.search(lines[0]))
        return _shown(error if is_failed and error else _ending(lines, is_listing=True), code), is_failed
    tally = next((line for line in reversed(lines) if _TALLY.search(line)), "")
    if tally and (_BAD_TALLY.search(tally) or not (error and is_failed)):
        is_bad = _BAD_TALLY.search(tally) is not None
        return _shown(_with_detail(tally, lines) if is_bad else tally, code), is_failed or is_bad
    if error and code != 0:
        return _shown(error, code), True
    return _shown(_ending(lines), code), is_failed


def _telling_error(errors: list[str]) -> str:
    """The last, where a traceback ends; of lines that begin alike, the first, which gives the reason."""
    starts = [line.split()[:2] for line in errors]
    is_alike = len(errors) > 1 and starts.count(starts[-1]) > 1
    return errors[starts.index(starts[-1]) if is_alike else -1] if errors else ""


def says_how_it_went(line: str) -> bool:
    return _TALLY.search(line) is not None or _ERROR_LINE.search(line) is not None


def find_diffed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_DIFFED.findall(text)))


def _lines(text: str, frames: frozenset[str]) -> list[str]:
    """What a person would read: without markup, progress and the prompt of a shell."""
    text = _LABEL.sub("", text, count=1)
    found = _without_prompt([line.strip() for line in text.splitlines() if line.strip()])
    found = [line for line in found if line not in frames] or found[-1:]
    read = [text for line in found if (text := " ".join(_TAG.sub(" ", line).split()))]
    return [line for line in read if not _PROGRESS.search(line)] or read[-1:]


def _without_prompt(lines: list[str]) -> list[str]:
    """Without the prompt of a shell at the end, and the lines in parentheses that some put before it."""
    if not lines or not _PROMPT_LINE.match(lines[-1]):
        return lines
    end = len(lines) - 1
    while end and lines[end - 1].startswith("(") and lines[end - 1].endswith(")"):
        end -= 1
    return lines[:end]


def _with_detail(tally: str, lines: list[str]) -> str:
    """How many failed, and the first that did."""
    first = next((line for line in lines if line != tally and _DETAIL.search(line)), "")
    return f"{_plain(tally).rstrip('.:')}: {cut_text(_plain(first), _MAX_DETAIL)}" if first else tally


def _ending(lines: list[str], *, is_listing: bool = False) -> str:
    """The last line that tells something; of code or a listing, the first if that is a sentence."""
    if len(lines) <= 2 or (is_listing and len(lines) <= _MAX_JOINED and sum(map(len, lines)) < _MAX_JOINED_SIZE):
        return " / ".join(lines)
    telling = [line for line in lines if _is_telling(line)]
    quiet = [line for line in telling if not _WARNING.match(line)] or telling
    if not quiet:
        return next((line for line in reversed(lines) if _WORDS.search(line)), lines[-1])
    if has_code_punctuation(lines[-1]) and _IS_PROSE.match(lines[0]):
        return lines[0]
    return quiet[-1]


def _is_telling(line: str) -> bool:
    return _WORDS.search(line) is not None and not has_code_punctuation(line) and not is_noise(line)


def _plain(line: str) -> str:
    return " ".join((_DECORATION.sub("", line) or line).split())


def _shown(line: str, code: int | None) -> str:
    shown = cut_text(_plain(line), MAX_OUTCOME) or NO_OUTPUT
    return f"{shown} (exit code {code})" if code and str(code) not in shown else shown


def _unpacked(text: str) -> tuple[str, int | None]:
    """The texts of a result in JSON, and its exit code."""
    if text.lstrip()[:1] not in ("{", "["):
        return text, None
    try:
        given = json.loads(text)
    except ValueError:
        return text, None
    found = list(_values(given))
    if not any(key in _TEXT_KEYS for key, value in found if isinstance(value, str)):
        return text, None
    code = next((value for key, value in found if key in _EXIT_KEYS and isinstance(value, int)), None)
    parts = [value for key, value in found if isinstance(value, str) and value.strip() and key not in ("type", "id")]
    return "\n".join(parts) or text, None if code is True or code is False else code


def _values(given: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(given, dict) and depth < 5:
        for name, value in given.items():
            yield from _values(value, str(name), depth + 1)
    elif isinstance(given, list) and depth < 5:
        for value in given[:50]:
            yield from _values(value, key, depth + 1)
    else:
        yield key, given
