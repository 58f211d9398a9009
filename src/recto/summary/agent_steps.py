"""Agent steps: extracts a work log from the messages of an agent's run.

A turn is a user's message and the rounds of calls that answer it. It begins a new task if the agent sets to work on it:
judged by its length, whether it answers a question, and which of its rare words the calls repeat. An agent without
tools writes a command at the end of its text, and the output comes back in the user's role.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from recto.base.text import text_cache
from recto.chat.message import Message
from recto.sentences.features import terms_of
from recto.sentences.segments import is_question, readable, segments
from recto.sources.tools import RECALL
from recto.summary.truncation import cut_text
from recto.summary.work_log import NO_OUTPUT, LoggedStep, WorkLog, is_same_file, split_work_log, with_files
from recto.tasks.run import run_entry

_MAX_TASK, _MAX_EARLIER, _MAX_DONE, _MAX_STATE, _MAX_LEFT, _MAX_OUTCOME, _MAX_WHOLE = 400, 110, 170, 260, 240, 170, 80
_MAX_TASKS, _MAX_STEPS, _MAX_READ, _MAX_COMMAND, _MAX_CALL, _MAX_PATH = 12, 60, 60, 300, 100, 200
# The maximum of characters examined: of a prompt, of a text or command, of a line. The minimum for a state written next
# to a call.
_MAX_PROMPT, _MAX_EXAMINED, _MAX_LINE, _MIN_STATE = 60_000, 6_000, 500, 40
# With fewer calls than this, and fewer than one for two messages of the user, it is a chat, not an agent's run.
_MIN_CALLS, _CALLS_PER_MESSAGE = 2, 0.5
# Minimum terms of a request: usually, if it is the first or unanswered, and after a question; each term that the calls
# repeat counts _TAKEN_UP times. Rare terms of a whole task.
_MIN_REQUEST, _MIN_FIRST, _MIN_AFTER_QUESTION, _TAKEN_UP, _MIN_TASK = 7, 5, 12, 4, 16
# The message being answered is sent in full, so the log points to it.
_POINTER = "message #{}, which follows word for word"
# Separators in a prompt.
_BORDER = re.compile(
    r"(?m)^[ \t]*</?[A-Za-z][\w-]*(?: [^<>\n]*)?>|</[A-Za-z][\w-]*>[ \t]*$|^#{1,6} [^\n]{1,60}$"
    r"|^\*\*[^*\n]{1,60}\*\*:?$|^[A-Z][A-Z _-]{2,40}:$"
)
_OWN_WORDS = ("prose", "heading", "item")
_PROMPTS, _LONGEST_PROMPT = tuple("$#>❯%"), 81
_STOPS, _MAX_SHORT = tuple(".!。！?？؟"), 800


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_LABELS = _words("observation output result stdout returncode execution")
# The arguments of a call: keys, the last word of keys for paths, parts of verbs.
_COMMAND_KEYS = _words("command commands cmd script shell bash input_command commandline command_line")
_PATH_WORDS, _MOVE_KEYS = (
    _words("path file filename filepath notebook"),
    _words("source destination dest src dst target"),
)
_CHANGES = tuple(_words("edit insert replac append undo write creat patch delet remov updat save move rename copy"))
_LISTS = ("search", "grep", "find", "list", "glob", "tree")
_LOOKS = (*_LISTS, "read", "open", "view", "show", "goto", "scroll", "get")
_EDITORS = _words("edit create insert append write open view goto str_replace undo_edit")
_CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")
_NAMED_FILE = re.compile(r"\bfile:? [`'\"]?((?:/|\w)[^\s`'\",;()]{0,200}\.\w{1,8})\b", re.I)
_PATCHED = re.compile(r"(?m)^(?:\*\*\* (?:\w+ File|Move to): |\+\+\+ (?:b/)?|patching file )(\S[^\n\t]*)")
_WRAPPED = re.compile(r"(?:\S*/)?(?:ba|z|da|)sh -\w*c (.*)", re.S)
# A program in a command line, without its prefix (`CI=1 timeout 60 uv run`), and its arguments.
_RUN = re.compile(
    r"(?:^|[;&|\n(])[ \t]*(?:(?:\w+=\S{0,200}|\d+[smh]?|-\S{1,200}|sudo|time|nohup|exec|xargs|env|npx|timeout|uv|poetry"
    r"|run|do)\s+)*(?:[^\s;&|>]{0,200}[/\\])?([\w.-]+)([^;&|\n>]*)"
)
_SHOWS = _words("cat head tail less more nl bat open view type sed")
_GIT_LOOKS = ("git status", "git diff", "git log", "git show", "git branch")
_LOOKING = _SHOWS.union(_GIT_LOOKS) | _words(
    "cd for done fi export source set echo printf sleep true pwd which mkdir ls grep rg awk wc file stat du df ps"
    " diff sort cut uniq tr jq dir"
)
_EDITING = _words("rm touch tee mv cp copy black isort patch") | {"git rm", "git mv", "git apply"}
_WITH_VERB = _words(
    "git npm yarn pnpm cargo go docker docker-compose kubectl make pip pip3 apt apt-get brew gh terraform dotnet mvn"
    " gradle gradlew systemctl helm aws gcloud az just tox nox rake composer mix python python3 py node ruby perl php"
    " deno bun java bash zsh sh"
)
_HEREDOC, _QUOTATION = re.compile(r"<<-? ?['\"]?(\w+)[^\n]*"), re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*\"""")
_EXIT = re.compile(r"(?i)(?:\b\w+\.)??\b(?:exit(?:ed with)?|return)[ _]?(?:code|status)\W{1,3}(-?\d{1,3})\b(?:</\w+>)?")
_ERROR = re.compile(
    r"(?i)^(?:E\s+)?[\w.]*(?:Error|Exception)\b|^\W*(?:\w+[ :])?(?:error|fatal|panic|failed|failure)\b\s*[:\[(]|^FAIL"
    r"|: (?:fatal |syntax )?error\b|\bERROR\b|syntax error|no such file|not found|denied|refused|timed out|\*\*\* "
)
_COUNT = re.compile(r"\b\d+ (?:\w+ )?(?:passed|tests?|examples?)\b|^OK\b|\bBUILD\b|^ok\s|test result:|tests run:", re.I)
_BAD = re.compile(r"\b[1-9]\d* (?:\w+ )?(?:failed|failing|failures?|errors?)\b|\bFAILED\b|(?:ures|errors)[=:] ?[1-9]")
_DETAIL = re.compile(r"(?:FAILED|ERROR|not ok|[✕✗×]) |(?:[A-Z]:)?[\w./\\-]+[:(]\d+")
# A finished step of a plan.
_OVER = ("complete", "done", "finish", "cancel", "skip", "close", "drop")
_Action = tuple[frozenset[str], LoggedStep | None, Sequence[str], Sequence[str]]
"""The effect of one call: its family, in which a later call replaces it; its line, unless it only read or changed
files; the files read, and the files changed."""


@dataclass(slots=True)
class _Turn:
    asked: str = ""
    number: int = 0
    is_task: bool = False
    """A goal, or the message being answered."""
    said: list[tuple[str, bool]] = field(default_factory=list)
    """The assistant's texts, each with True if a call follows."""
    work: frozenset[str] = frozenset()
    has_calls: bool = False
    actions: list[_Action] = field(default_factory=list)
    left: str | None = None
    """The rest of the agent's own list of steps."""


def continue_work_log(former: str, messages: Sequence[Message], *, answering: int = 0) -> WorkLog | None:
    """The log after these messages, continued from the former summary; None if no agent worked. `answering` is the
    number of the message being answered: it is not among them, but the rounds after it are about it."""
    log = split_work_log(former)[0]
    calls = [call for message in messages for call in message.calls if call.name != RECALL]
    number = len(calls) + len(find_observations(messages, goes_on=bool(former)))
    if log is None and number < max(_MIN_CALLS, _CALLS_PER_MESSAGE * sum(each.role == "user" for each in messages)):
        return None
    return _read(log or WorkLog(), messages, goes_on=bool(former), answering=answering)


def _read(log: WorkLog, messages: Sequence[Message], *, goes_on: bool, answering: int = 0) -> WorkLog:
    before, turns = _Turn(), list(_turns(messages, find_observations(messages, goes_on=goes_on), answering))
    steps, changed, read = list(log.steps), log.changed, log.read
    for turn in turns:
        log = _with_task(log, turn, _task_of(turn, before, log.task, is_last=turn is turns[-1]))
        before = turn
        for families, step, has_read, has_changed in turn.actions:
            # a failure is resolved by a part of the command, and a failed edit by another change of the file
            done = families.union(map(_file_name, has_changed))
            known = [(each, _families_of(each)) for each in steps]
            steps = [each for each, own in known if not (own & done if each.is_failed else own <= families)]
            steps += [step] if step else []
            changed, read = with_files(changed, has_changed), with_files(read, has_read, _MAX_READ)
    read = tuple(path for path in read if not any(is_same_file(path, other) for other in changed))
    return replace(log, changed=changed, read=read, steps=tuple(steps[-_MAX_STEPS:]))


def _turns(messages: Sequence[Message], observed: dict[str, str], answering: int) -> Iterator[_Turn]:
    """The first turn continues the previous request."""
    turn, goals, called = _Turn(has_calls=True), dict[object, str](), dict[str, tuple[str, str]]()
    for message in messages:
        if answering and message.said > answering:
            yield turn
            turn, answering = _Turn(_POINTER.format(answering), is_task=True), 0
        if command := observed.get(message.id):
            turn.actions.append(_action("bash", json.dumps({"command": command}), message.text))
        elif message.role == "user" and message.id not in observed:
            entry = run_entry(message)  # a goal stays the task, however often its run is continued
            text = goals.setdefault(entry["run"], str(entry.get("goal") or "")) if entry else message.text
            if turn.asked and not (turn.said or turn.has_calls or turn.is_task):
                turn.asked = text if len(terms_of(text)) >= _MIN_REQUEST else f"{turn.asked}\n\n{text}"
            else:
                yield turn
                turn = _Turn(text, message.said, is_task=bool(entry and text))
        elif message.role == "assistant":
            said, command = (message.text, "") if message.calls else split_command(message.text)
            given = [command] * bool(command) + [
                readable(each.arguments) for each in message.calls if each.name != RECALL
            ]
            turn.work = turn.work.union(*(terms_of(text[:_MAX_EXAMINED]) for text in given))
            turn.has_calls |= bool(given)
            turn.said += [(said, bool(given))] if said.strip() else []
            called |= {call.id: (call.name, call.arguments) for call in message.calls}
        for result in message.results:
            name, arguments = called.get(result.call_id, (result.name, "{}"))
            if name != RECALL and (left := _plan_left(arguments)) is not None:
                turn.left = left
            elif name != RECALL:
                turn.actions.append(_action(name, arguments, result.text, is_error=result.is_error))
    yield turn


def _task_of(turn: _Turn, before: _Turn, known: str, *, is_last: bool) -> str:
    """The task that a turn begins; empty if it continues the known one or needs no work."""
    if turn.is_task:
        return _task_text(turn.asked) if turn.number else turn.asked
    asked, last = turn.asked, segments(before.said[-1][0])[-1:] if before.said else ()
    if last and is_question(last[0].text) and len(terms_of(asked)) < _MIN_AFTER_QUESTION:
        # for an answer, the request before the assistant's question may be the task
        asked = before.asked if not before.has_calls and _rare(before.asked) & turn.work else ""
    taken_up = _rare(asked) & turn.work
    size = len(terms_of(asked)) + _TAKEN_UP * (len(taken_up) + len(taken_up - _rare(known)))
    is_request = size >= (_MIN_REQUEST if known and turn.has_calls else _MIN_FIRST)
    is_taken_on = turn.has_calls or (is_last and not turn.said)
    return _task_text(asked) if asked and is_request and is_taken_on else ""


def _with_task(log: WorkLog, turn: _Turn, task: str) -> WorkLog:
    state, left = _state_of(turn.said), turn.left
    if log.task == _POINTER.format(turn.number):
        log, task = replace(log, task=_task_text(turn.asked)), ""
    if task and task != log.task:
        former = (cut_text(log.task, _MAX_EARLIER), cut_text(log.state, _MAX_DONE))
        earlier = (*(each for each in log.earlier if each[0] != former[0]), *([former] if log.task else []))
        return replace(log, task=task, earlier=earlier[-_MAX_TASKS:], state=state, left=left or "")
    return replace(log, state=(turn.has_calls and state) or log.state, left=log.left if left is None else left)


def _rare(text: str) -> frozenset[str]:
    return frozenset(term for term in terms_of(text) if len(term) > 3 or not term.isascii())


def _state_of(said: Sequence[tuple[str, bool]]) -> str:
    """The beginning and the end of the assistant's last text."""
    for text, has_call in reversed(said):
        found = [each.text for each in segments(text[:_MAX_EXAMINED]) if each.kind in ("prose", "item")]
        telling = [each for each in found if not is_question(each) and len(terms_of(each)) > 1]
        chosen = telling if sum(map(len, telling)) <= _MAX_STATE else telling[:: len(telling) - 1 or 1]
        state = cut_text(_joined(chosen), _MAX_STATE)
        if state and (not has_call or len(state) >= _MIN_STATE):
            return state
    return ""


def _joined(said: Sequence[str]) -> str:
    """Lines that end in a word get a full stop."""
    lines = [" ".join(each.split()) for each in said]
    ended = [f"{line}." if line[-1:].isalnum() else line for line in lines[:-1]]
    return " ".join([*ended, *lines[-1:]])


def _is_word(text: str) -> bool:
    return text.replace("_", "a").isalnum()


def _plan_left(arguments: str) -> str | None:
    """The open steps of a list with statuses, as agents keep it; None if the call has none."""
    steps = [each for each in _objects(arguments)[:-1] if "status" in each]
    left = [each for each in steps if not str(each["status"]).startswith(_OVER)]
    texts = (" ".join(max(map(str, each.values()), key=len).split()).rstrip(".;") for each in left)
    return cut_text("; ".join(texts), _MAX_LEFT) if steps else None


def _task_text(text: str) -> str:
    """The user's own words; of a long prompt, the beginning of its prose, without titles and lists of rules."""
    said, is_long = list[str](), len(text) > _MAX_TASK
    for part in _BORDER.split(text[:_MAX_PROMPT]) if is_long else [text]:
        if not is_long or len(_rare(" ".join(said))) < _MIN_TASK:
            said += [each.text for each in segments(part) if each.kind in _OWN_WORDS[: 2 if is_long else 3]]
    if len(terms_of(" ".join(said))) < _MIN_FIRST:
        said = [each.text for each in segments(text[:_MAX_EXAMINED]) if each.kind in _OWN_WORDS]
    return cut_text(_joined(said), _MAX_TASK)


def find_observations(messages: Sequence[Message], *, goes_on: bool = False) -> dict[str, str]:
    """Map messages in the user's role that hold a command's output to the command. With `goes_on`, the first message
    may answer a command that is not included."""
    found, command = dict[str, str](), "" if goes_on else None
    for message in messages:
        if message.role == "user" and command is not None and is_command_output(message.text):
            found[message.id] = command
        is_said = message.role == "assistant" and not message.calls
        command = split_command(message.text)[1] or None if is_said else None
    return found


def split_command(text: str) -> tuple[str, str]:
    """The agent's text, and the command at its end."""
    ended, start, command = text.rstrip(), -1, ""
    if ended.endswith("```"):
        start = f"\n{ended}".rfind("\n```", 0, len(ended) - 2)
        command = ended[start + 3 : -3].partition("\n")[2].strip()
    return (text[:start], command) if start >= 0 and command else (text, "")


def is_command_output(text: str) -> bool:
    """Recognised by a prompt, a label, or lines that are not prose. A long task may end with a shell prompt."""
    found = segments(text[:_MAX_EXAMINED])
    half = sum(len(each.text) for each in found) / 2
    prose = sum(len(each.text) for each in found if each.kind in ("prose", "item") and each.text.endswith(_STOPS))
    machine = sum(len(each.text) for each in found if each.kind in ("output", "code", "row"))
    is_labelled = _ends_in_prompt(text[-200:]) or _label_of(text) in _LABELS
    return (is_labelled and (prose < half or len(text) < _MAX_SHORT)) or machine > half


def _label_of(text: str) -> str:
    """The first word of a text, after at most one sign."""
    start = text.lstrip()[:16].lower()
    start = start if _is_word(start[:1]) else start[1:]
    return start[: next((at for at, char in enumerate(start) if not _is_word(char)), len(start))]


def _ends_in_prompt(text: str) -> bool:
    line = text.rstrip().rpartition("\n")[2]
    return line.endswith(_PROMPTS) and len(line) <= _LONGEST_PROMPT and "<" not in line


def _action(name: str, arguments: str, result: str, *, is_error: bool = False) -> _Action:
    pairs = [(_CAMEL.sub("_", key).lower(), value) for each in _objects(arguments) for key, value in each.items()]
    given = ((key, each) for key, value in pairs for each in (value if isinstance(value, list) else [value]))
    values = [(key, str(each).strip()) for key, each in given if isinstance(each, str | int | float)]
    command = " ".join(value for key, value in values if key in _COMMAND_KEYS)
    files = [path for key, path in values if _names_path(key) or (key in _MOVE_KEYS and _is_path(path))]
    files = [path.removeprefix("file://") for path in files if 0 < len(path) <= _MAX_PATH]
    editor, _, edited = command.partition(" ")
    if command and editor not in _EDITORS:
        wrapped = _WRAPPED.match(command)
        return _shell_action(wrapped[1].strip("'\" ") if wrapped else command, result, is_error=is_error)
    verb, told = editor or name, "\n".join(value for _, value in values)
    lower = verb.lower()
    changes, lists, looks = (any(word in lower for word in words) for words in (_CHANGES, _LISTS, _LOOKS))
    named = _NAMED_FILE.findall(result)[:1] if lower.startswith(_CHANGES) else []
    files = files or [word for word in edited.partition("\n")[0].split() if _is_path(word)][:1]
    files = files or _PATCHED.findall(told.replace("\\n", "\n")) or named
    step = _outcome(result, is_error=is_error, is_looking=True)
    if files and (changes or not lists):
        step, families = replace(step, command=f"{verb} {files[0]}"), frozenset(f"{verb} {path}" for path in files)
        read, changed = ((), ()) if step.is_failed else ((), files) if changes else (files, ())
        return families, step if step.is_failed else None, read, changed
    is_looking = looks and not changes
    step = replace(step, command=cut_text(" ".join(f"{name} {told}".split()), _MAX_CALL), is_looking=is_looking)
    changed = [] if step.is_failed or is_looking else [*_PATCHED.findall(told), *_PATCHED.findall(result)]
    return frozenset([name]), step, (), changed


def _names_path(key: str) -> bool:
    return key.rpartition("_")[2].removesuffix("s") in _PATH_WORDS or key in ("file_name", "uri")


def says_all_by_outcome(name: str, arguments: str) -> bool:
    """True if a call runs a program or changes files: only the outcome of its result matters."""
    _, step, _, changed = _action(name, arguments, "")
    return bool(changed or (step and step.is_shell and not step.is_looking))


def _objects(arguments: str) -> list[dict[str, Any]]:
    """Inner ones first."""
    found: list[dict[str, Any]] = []
    with suppress(ValueError, RecursionError):
        json.loads(arguments, object_hook=found.append)
    return found or [{"": arguments.replace("\\n", "\n")}]


def _shell_action(command: str, result: str, *, is_error: bool) -> _Action:
    families, programs, targets = _programs(command)
    step = _outcome(result, is_error=is_error, is_looking=all(map(_is_looking, families)))
    patched = _PATCHED.findall(result) if families & {"patch", "git apply"} else []
    read, changed = list[str](), [*_PATCHED.findall(command), *patched, *targets]
    for family, words in programs:
        given = [word for word in words[family.count(" ") :] if _may_be_file(word)]
        is_in_place = any(map(_edits_in_place, words)) and not family.startswith(_LISTS)
        if family in _EDITING:
            changed += given[-1:] if family in ("cp", "copy") else given
        elif is_in_place or family in _SHOWS:
            (changed if is_in_place else read).extend(path for path in given if is_in_place or _is_path(path))
    # of several commands in a line, those before the failed one were executed
    changed = [] if step.is_failed and len(programs) == 1 else changed
    is_edit = changed and not step.is_failed and step.outcome == NO_OUTPUT
    shown = cut_text(" ".join(command.split()), _MAX_COMMAND)
    told = None if is_edit or not families else replace(step, command=shown, is_shell=True)
    return families, told, read, changed


def _programs(command: str) -> tuple[frozenset[str], list[tuple[str, list[str]]], list[str]]:
    """The families of a command line (`pytest`, `git commit`: the command without options; commands that only look or
    edit count if all do), its programs with their arguments, and the files that receive output."""
    command = command.replace("\\\n", " ").partition("*** Begin Patch")[0]
    if mark := _HEREDOC.search(command):
        command = command[: mark.end()] + "\n" + command[mark.end() :].partition(f"\n{mark[1]}\n")[2]
    command = _QUOTATION.sub(lambda found: found[0][1:-1] if _is_path(found[0][1:-1]) else "?", command[:_MAX_EXAMINED])
    command = re.sub(r"[\d&]?>&\d|<+ ?[^\s;&|]*|(?m:^[ \t]*#.*)|\d(?=>)", " ", command)
    found = []
    for program, rest in _RUN.findall(command):
        words = rest.split()
        module = words[words.index("-m") + 1 :][:1] if program.startswith("py") and "-m" in words else []
        given = [word for word in words if _may_be_file(word) and word != "run"]
        verb = f" {given[0]}" if given and program in _WITH_VERB else ""
        found.append((module[0] if module else program + verb, words))
    every = frozenset(family for family, _ in found)
    ran = frozenset(family for family in every if not _is_looking(family))
    families = frozenset(family for family in ran if family not in _EDITING) or ran or every
    return families, found, re.findall(r"(?<!>)>++\|? ?(?!/dev/)([^\s;&|<>()]+)", command)


def _is_looking(family: str) -> bool:
    return family in _LOOKING or (family.startswith(_LOOKS) and _is_word(family))


def _edits_in_place(word: str) -> bool:
    return word in ("-w", "--write", "--fix") or (word[:1] == "-" and word[-1] == "i" and word[1:].isalpha())


def _may_be_file(word: str) -> bool:
    """False for options, patterns, assignments and sed scripts."""
    script = word.lstrip("0123456789,")
    is_script = script[:1] == "s" and script[1:2] in script[2:] and not _is_word(script[1:2] or "a")
    return word[0] != "-" and not is_script and set(word).isdisjoint("*?$=")


@text_cache(512)
def _families_of(step: LoggedStep) -> frozenset[str]:
    if step.is_shell:
        return _programs(step.command)[0]
    name, *_, last = f"{step.command} {step.command}".replace("\\", "/").replace(" ", "/").split("/")
    return frozenset([name, *((step.command, last) if step.is_failed else ())])


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _is_path(text: str) -> bool:
    name = _file_name(text)
    is_plain = 0 < len(text) <= _MAX_PATH and not set(text) & set(" $*?{}()<>|;=\"'\n") and "://" not in text
    has_ending = re.fullmatch(r"[^.]\S*\.\w{1,8}|\.\w+", name) and not set(name) <= set("0123456789.")
    return is_plain and text[0] != "-" and bool(has_ending or len(name) < len(text))


def _outcome(text: str, *, is_error: bool, is_looking: bool) -> LoggedStep:
    """The outcome of a call, and whether it failed; what was looked at may be about errors."""
    text = readable(text)
    ends = text if len(text) <= _MAX_EXAMINED else f"{text[: _MAX_EXAMINED // 3]}\n{text[-_MAX_EXAMINED:]}"
    exits = [int(code) for code in _EXIT.findall(f"{ends[:200]}\n{ends[-200:]}")]
    kept = (" ".join(line[:_MAX_LINE].split()) for line in ends.splitlines() if _EXIT.sub("", line).strip("< "))
    lines = [line for each in kept if (line := each.strip("=-* ")) and not (line[-1] == ":" and " " not in line)]
    while lines and (_ends_in_prompt(lines[-1]) or (lines[-1][0] == "(" and lines[-1][-1] == ")")):
        lines.pop()
    errors = [line for line in lines[:3] + lines[3:][-15:] if _ERROR.search(line)]
    bad = [] if is_looking else [line for line in lines if _BAD.search(line)]
    has_error = bool(errors) and len(lines) < 4 if is_looking else bool(bad or (errors and not exits))
    is_failed, fails = is_error or any(exits) or has_error, bad[-1:] or errors[:1]
    details = [line for line in lines if _DETAIL.match(line) and line not in fails][:1] if bad else []
    counts = [] if is_looking else [line for line in lines if _COUNT.search(line)]
    last = next((line for line in reversed(lines) if any(map(str.isalpha, line))), lines[-1] if lines else "")
    shown = f"{lines[0]} (+{len(lines) - 1} lines)" if is_looking and lines else last
    shown = " / ".join(lines) if sum(map(len, lines)) <= _MAX_WHOLE else shown
    shown = ": ".join([*fails, *details]) if is_failed and fails else counts[-1] if counts else shown
    code = f" (exit code {exits[-1]})" if any(exits) and str(exits[-1]) not in shown else ""
    return LoggedStep("", (cut_text(shown, _MAX_OUTCOME) or NO_OUTPUT) + code, is_failed, is_looking)
