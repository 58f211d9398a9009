"""Agent run: the rounds of calls and results in which an agent works, read into a work log.

The log goes on from the one before; the newest counts. An agent without tools writes its commands into its text, and
the output comes back in the user's role.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from recto.chat.message import Message
from recto.chat.priority import BINDING, NORMAL
from recto.sources.tools import RECALL
from recto.summary.file_list import is_same_file, with_files
from recto.summary.machine_output import has_code_punctuation, is_machine_made
from recto.summary.outcome import says_how_it_went
from recto.summary.sentences import is_question, rate_sentence, sentences
from recto.summary.small_talk import is_exclamation
from recto.summary.statements import answers, is_announcement, is_request
from recto.summary.task_text import MAX_TASK, find_task, prose
from recto.summary.tool_use import ToolUse, read_tool_use, read_written_command
from recto.summary.truncation import cut_text
from recto.summary.work_log import WorkLog, split_work_log
from recto.summary.worth import is_worth_telling, stands_alone

_MAX_EARLIER, _MAX_DONE, _MAX_STATE, _MAX_LEFT = 110, 170, 260, 240
_MIN_STATE, _MIN_TELLING, _MIN_FIRST = 40, 20, 7
_MAX_TASKS, _MAX_CHANGED, _MAX_READ, _MAX_USES = 12, 300, 60, 60
_MAX_EXAMINED = 6000
# With fewer calls than this, and fewer than one for two messages of the user, it is a chat and no run of an agent.
_MIN_CALLS, _CALLS_PER_MESSAGE = 2, 0.5
# A line that stands in so many results is a frame, such as the prompt of a shell.
_MIN_FRAMES, _MIN_FRAME_SHARE = 3, 0.2
# Where sentences of so many words make up so much of a text, a person wrote it.
_MIN_PROSE_WORDS, _MIN_PROSE_SHARE, _LONG_PROSE = 6, 0.5, 800
_LEFT_CUE = re.compile(
    r"\b(?:next|remaining|remains|left to|still (?:need|have|must|to)|todo|to do|not yet|pending|afterwards"
    r"|noch (?:offen|zu)|als nächstes|fehlt|queda|falta|pendiente|prochaine étape|reste à)\b",
    re.IGNORECASE,
)
# A message that is being answered is sent as it is, so the log points to it instead of telling it.
_POINTER = "message #{}, which follows word for word"
# What was said to a task later, in few words.
_ALSO, _MAX_AMENDMENT = " — also: ", 80
_TOLD_TASK = re.compile(r"(?:User|Task): ([^\n]+)")
_COMMAND_AT_END = re.compile(
    r"```[\w-]*\n((?:(?!```).)+?)\n?```\s*\Z"
    r"|<(execute_\w+|bash|shell|command)>((?:(?!</\2>).)+)</\2>\s*\Z"
    r"|<function=\w+>\s*<parameter=command>((?:(?!</parameter>).)+)</parameter>\s*</function>\s*\Z"
    r"|^Action: ?(?:bash|shell|terminal|run\w*|execute\w*)\nAction Input: ?(.+?)\s*\Z",
    re.DOTALL | re.MULTILINE,
)
_PROMPT_AT_END = re.compile(r"(?:^|\n)[^\n]{0,80}[$#>❯%]\s*\Z")
_NUMBERED_LINE = re.compile(r"\d+:")
_OBSERVED = re.compile(
    r"\s*\W?(?:observation|output|result|stdout|<output|<result|<returncode|execution)\b", re.IGNORECASE
)
_LABEL = re.compile(r"^\W*(?:thoughts?|thinking|reasoning|discussion|gedanken?|pensamiento)\W*:\W*", re.IGNORECASE)
_CHAINED = re.compile(r" && | ; |; ")
# What a command is for: another one for the same settles it, as "go build" a "make build" that has no rule.
_PURPOSE = re.compile(
    r"\b(?:(?P<test>(?:py)?tests?|vitest|jest|unittest)|(?P<build>build|compile)|(?P<commit>commit)|(?P<push>push)"
    r"|(?P<install>install)|(?P<deploy>deploy|scp|rsync)|(?P<migrate>migrat\w+)|(?P<lint>lint|eslint|ruff|flake8)"
    r"|(?P<ssh>ssh))\b"
)
# The command itself was wrong, and what it was to do was not even tried.
_MISTYPED = re.compile(
    r"no rule to make|command not found|unrecognized|unknown (?:option|command|flag)|not defined: -|no such option"
    r"|usage:|is not recognized|missing script|no module named pytest",
    re.IGNORECASE,
)
_PLAN_TEXTS = ("content", "step", "title", "text", "task", "description", "name")
_FINISHED = re.compile(r"complete|done|finish|cancel|skip|closed", re.IGNORECASE)


def is_agent_run(messages: Sequence[Message], *, goes_on: bool = False) -> bool:
    """Whether these are the rounds of an agent rather than a chat in which a tool was used now and then."""
    calls = sum(1 for message in messages for call in message.calls if call.name != RECALL)
    calls += len(find_observations(messages, goes_on=goes_on))
    asked = sum(message.role == "user" for message in messages)
    return calls >= _MIN_CALLS and calls >= _CALLS_PER_MESSAGE * asked


def find_observations(messages: Sequence[Message], *, goes_on: bool = False) -> dict[str, str]:
    """Messages in the user's role that hold the output of a command, by id: an agent that has no tools writes its
    commands into its text. `goes_on`: the first message may answer a command that is not at hand."""
    found: dict[str, str] = {}
    command = ""
    for at, message in enumerate(messages):
        if message.role == "assistant":
            command = "" if message.calls else _written_command(message.text)
        elif message.role == "user":
            is_first = goes_on and at == 0 and (_ends_with_prompt(message.text) or not _is_prose(message.text))
            if (command or is_first) and _looks_like_output(message.text):
                found[message.id] = command
            command = ""
    return found


def _written_command(text: str) -> str:
    found = _COMMAND_AT_END.search(text)
    return next((part.strip() for part in (found[1], found[3], found[4], found[5]) if part), "") if found else ""


def without_command(text: str) -> str:
    """What an agent says, without the command between fences at its end."""
    return _COMMAND_AT_END.sub("", text)


def _looks_like_output(text: str) -> bool:
    if len(text) > _LONG_PROSE and _is_prose(text):
        return False  # a task that ends with the prompt of its shell
    if _ends_with_prompt(text) or _OBSERVED.match(text):
        return True
    lines = [line for line in text[:_MAX_EXAMINED].splitlines() if line.strip()]
    return len(lines) > 2 and sum(map(is_machine_made, lines)) * 2 > len(lines)


def _ends_with_prompt(text: str) -> bool:
    return _PROMPT_AT_END.search(text[-200:]) is not None


def _is_prose(text: str) -> bool:
    found = [sentence for sentence in prose(text) if sentence.count(" ") >= _MIN_PROSE_WORDS - 1]
    found = [sentence for sentence in found if not (has_code_punctuation(sentence) or _NUMBERED_LINE.match(sentence))]
    return sum(map(len, found)) > _MIN_PROSE_SHARE * len(text[:_MAX_EXAMINED])


def continue_work_log(
    former: str, messages: Sequence[Message], *, late: Sequence[Message] = (), answering: int = 0
) -> WorkLog | None:
    """The log after these messages, which goes on from the one in the former summary; None where no agent worked.

    `late` are messages that are older than the former summary and were read only now. `answering` is the number of the
    message that is being answered: it is not among them, but the rounds after it are about it."""
    log, rest = split_work_log(former)
    if log is None and not is_agent_run([*late, *messages], goes_on=bool(former)):
        return None
    if log is None:
        task = _TOLD_TASK.match(rest)
        log = WorkLog(task=cut_text(task[1], MAX_TASK) if task else "")
    if late:
        log = _with_older(log, _read(WorkLog(), late, goes_on=True))
    return _read(log, messages, goes_on=bool(former), answering=answering)


def _read(log: WorkLog, messages: Sequence[Message], *, goes_on: bool, answering: int = 0) -> WorkLog:
    observed = find_observations(messages, goes_on=goes_on)
    reader = _WorkReader(log, observed, _find_frames(messages), answering)
    for message in messages:
        reader.add(message)
    return reader.finished()


def _with_older(log: WorkLog, older: WorkLog) -> WorkLog:
    """The log with files and commands of messages that it knew nothing of; what it says itself is newer."""
    known = frozenset(family for use in log.uses for family in use.families)
    uses = [use for use in older.uses if not use.families <= known]
    return replace(
        log,
        task=log.task or older.task,
        changed=with_files(older.changed, log.changed, _MAX_CHANGED),
        read=with_files(older.read, log.read, _MAX_READ),
        uses=(*uses, *log.uses)[-_MAX_USES:],
    )


def _find_frames(messages: Sequence[Message]) -> frozenset[str]:
    texts = [result.text for message in messages for result in message.results]
    texts += [message.text for message in messages if message.role == "user"]
    ends = (line.strip() for text in texts for line in {*text[:300].splitlines()[:2], *text[-300:].splitlines()[-4:]})
    least = max(_MIN_FRAMES, len(texts) * _MIN_FRAME_SHARE)
    found = (line for line, number in Counter(ends).items() if line and number >= least)
    return frozenset(line for line in found if not says_how_it_went(line))


@dataclass(slots=True)
class _WorkReader:
    log: WorkLog
    observed: dict[str, str]
    frames: frozenset[str]
    answering: int = 0
    _calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    _open_file: str = ""
    _said: str = ""
    """The last that the assistant said about the task."""
    _is_reply: bool = False
    """It was said at the end of a turn, and not before a call."""
    _plan: str | None = None
    """What is left by the agent's own list, if it keeps one."""
    _talk: tuple[str, int] | None = None
    """What the user said last that asks for nothing: a task only if the agent works on it."""
    _is_asked: bool = False
    """Whether that asks for something, beside a task that was worked on."""
    _was_heard: bool = True
    """Whether the assistant has said anything since then."""
    _is_carried_out: bool = False
    """Whether a call that it was said beside has come back."""
    _has_worked: bool = False
    """Whether a tool was used for the task, or the assistant asked back."""

    def add(self, message: Message) -> None:
        if self.answering and message.said > self.answering:
            self._begin(_POINTER.format(self.answering), self.answering)
            self.answering = 0
        if message.id in self.observed:
            if command := self.observed[message.id]:
                self._add(read_written_command(command, message.text, open_file=self._open_file, frames=self.frames))
        elif message.role == "user" and (asked := find_task(message.text)):
            self._hear(asked, message.said)
        elif message.role == "assistant":
            is_working = bool(message.calls or _written_command(message.text))
            # who is asked back goes on with the same task
            is_asked_back = self._is_asked and bool(message.text.strip()) and not answers(message.text)
            if is_working or is_asked_back:
                self._take_up()
            if message.text.strip() and not self._talk:
                self._has_worked |= not answers(message.text)
                self.log = self._told()
                self._said, self._is_reply, self._is_carried_out = message.text, not is_working, False
            self._was_heard = True
            self._calls |= {call.id: (call.name, call.arguments) for call in message.calls}
        for result in message.results:
            name, arguments = self._calls.get(result.call_id, (result.name, "{}"))
            if name == RECALL:
                continue
            if (plan := _plan_of(arguments)) is not None:
                self._plan = plan
                continue
            self._add(
                read_tool_use(
                    name,
                    arguments,
                    result.text,
                    is_error=result.is_error,
                    open_file=self._open_file,
                    frames=self.frames,
                )
            )

    def _hear(self, asked: str, number: int) -> None:
        """A request is a task at once; what only tells something is one when the agent sets to work."""
        said = sentences(asked)
        is_task = any(is_question(sentence) or is_request(sentence) for sentence in said)
        # beside a task that was worked on, a question may be answered without any work
        is_beside = self.log.task and (self._has_worked or self.log.uses)
        if (is_task and not is_beside) or (not self.log.task and _is_told(asked)):
            self._begin(asked, number)
        else:
            self._talk, self._was_heard, self._is_asked = (asked, number), False, is_task

    def _begin(self, asked: str, number: int) -> None:
        """A new task: the one before becomes an earlier one, with what came of it. Mere talk does not."""
        log, had_worked = self._told(), self._has_worked or not self.log.earlier
        self._talk, self._has_worked = None, False
        if log.task == _POINTER.format(number):
            self.log = replace(log, task=asked)
            return
        if log.task and had_worked:
            done = cut_text(log.state, _MAX_DONE)
            task = cut_text(log.task, _MAX_EARLIER)
            others = [found for found in log.earlier if found[0] != task]
            log = replace(log, earlier=(*others, (task, done))[-_MAX_TASKS:])
        self.log, self._plan = replace(log, task=asked, state="" if log.task else log.state, left=""), None

    def _take_up(self) -> None:
        """What the user said last is the task now; a few words that only restrict belong to the one before: "tonight at
        22:00, not during work"."""
        if self._talk is None:
            return
        asked, number = self._talk
        is_short = not self._is_asked and len(asked) <= _MAX_AMENDMENT
        has_task = bool(self.log.task) and not self.log.task.startswith(_POINTER.partition("{")[0])
        if not (has_task and is_short) or rate_sentence(sentences(asked)[0]) != BINDING:
            self._begin(asked, number)
            return
        self._talk = None
        self.log = replace(self.log, task=f"{self.log.task.partition(_ALSO)[0]}{_ALSO}{asked}")

    def _add(self, use: ToolUse) -> None:
        self._take_up()
        self._has_worked = self._is_carried_out = True
        self._open_file = use.opened or self._open_file
        uses = [one for one in _without(self.log.uses, use.families) if not _is_done_otherwise(one, use)]
        uses += [use] if use.command else []
        self.log = replace(
            self.log,
            uses=tuple(uses[-_MAX_USES:]),
            changed=with_files(self.log.changed, use.changed, _MAX_CHANGED),
            read=with_files(self.log.read, use.read, _MAX_READ),
        )

    def _told(self) -> WorkLog:
        """The log with the state and the next step that the assistant named last."""
        if not self._said:
            return self.log
        state, left = _state_of(self._said) if self._has_worked or self._calls else ("", "")
        self._said = ""
        if self._is_carried_out and not self._is_reply:
            left = ""
        # "Calling it now." tells less than what was said before
        if self.log.state and len(state) < (1 if self._is_reply else _MIN_STATE):
            state = self.log.state
        return replace(self.log, state=state, left=left)

    def finished(self) -> WorkLog:
        """What the user said last, and nobody has answered yet, is most often what comes next."""
        if self._talk and not self._was_heard and (self._is_asked or _is_told(self._talk[0])):
            self._take_up()
        log = self._told()
        log = log if self._plan is None else replace(log, left=self._plan)
        return replace(
            log, read=tuple(path for path in log.read if not any(is_same_file(path, it) for it in log.changed))
        )


def _is_told(asked: str) -> bool:
    return any(is_worth_telling(sentence, is_assistant=False) for sentence in sentences(asked))


def _without(uses: Iterable[ToolUse], families: frozenset[str]) -> Iterable[ToolUse]:
    """Uses that these families do not settle; of several commands in a line, each is settled by itself."""
    for use in uses:
        left = use.families - families
        if use.is_failed and use.is_shell and left and not families.isdisjoint(_last_families(use.command)):
            continue  # what failed was the last of them
        if left or not families:
            yield use if left == use.families else replace(use, families=left)


def _purposes(command: str) -> frozenset[str]:
    return frozenset(found.lastgroup for found in _PURPOSE.finditer(command) if found.lastgroup)


def _is_done_otherwise(earlier: ToolUse, later: ToolUse) -> bool:
    """Whether what failed was done in another way: the file of an edit was changed, or a command that was wrong itself
    was followed by one for the same that is right."""
    if not earlier.is_failed or later.is_failed:
        return False
    if earlier.is_shell:
        if not later.is_shell or later.is_looking:
            return False
        # the last outcome of a command that did run is told, whatever another one came to
        is_mistyped = _MISTYPED.search(earlier.outcome) is not None
        return is_mistyped and _purposes(earlier.command) <= _purposes(later.command)
    if not later.changed:
        return False
    path = earlier.command.partition(" ")[2]
    return bool(path) and any(is_same_file(path, changed) for changed in later.changed)


def _last_families(command: str) -> frozenset[str]:
    last = _CHAINED.split(command)[-1]
    return read_written_command(last, "", frames=frozenset()).families if last != command else frozenset()


def _plan_of(arguments: str) -> str | None:
    """What is left of a list of steps with their status, as agents keep it; None if the call has none."""
    if '"status"' not in arguments:
        return None
    try:
        given = json.loads(arguments)
    except ValueError:
        return None
    for items in given.values() if isinstance(given, dict) else ():
        if isinstance(items, list) and items and all(isinstance(it, dict) and "status" in it for it in items):
            left = [_step_text(item) for item in items if not _FINISHED.search(str(item["status"]))]
            return cut_text("; ".join(filter(None, left)), _MAX_LEFT)
    return None


def _step_text(item: dict[str, Any]) -> str:
    text = next((item[key] for key in _PLAN_TEXTS if isinstance(item.get(key), str)), "")
    return " ".join(text.split()).rstrip(".;")


def _state_of(text: str) -> tuple[str, str]:
    """What a reply says about how things are, and about what comes next."""
    said = [sentence for sentence in prose(_LABEL.sub("", without_command(text))) if not is_question(sentence)]
    least = [_MIN_FIRST, *[_MIN_TELLING] * len(said)]
    said = [one for one, size in zip(said, least, strict=False) if len(one) > size and not is_exclamation(one)]
    ahead = [sentence for sentence in said if is_announcement(sentence) or _LEFT_CUE.search(sentence)]
    told = [sentence for sentence in said if sentence not in ahead]
    telling = [sentence for sentence in told if rate_sentence(sentence) > NORMAL and stands_alone(sentence)]
    best = telling[:2] or [sentence for sentence in told[:1] if sentence == said[0]]
    state = " ".join(" ".join(sentence for sentence in told if sentence in best).split())
    left = [sentence for sentence in ahead if stands_alone(sentence)]
    return cut_text(state, _MAX_STATE), cut_text(" ".join(left[-1].split()) if left else "", _MAX_LEFT)
