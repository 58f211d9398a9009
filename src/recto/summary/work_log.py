"""Work log: what an agent was asked, what it did and what is left, as the lines at the front of a summary.

The latest task in the user's words, finished ones short, files read and changed, commands with their last outcome, and
errors that are still open. It is read back from the former summary and goes on from there; the newest counts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.message import Message
from recto.chat.priority import CHATTER, NORMAL
from recto.sources.tools import RECALL
from recto.summary.machine_output import has_code_punctuation, is_machine_made, is_noise
from recto.summary.model_orders import is_order, is_prompt_frame
from recto.summary.pasted_text import own_words
from recto.summary.sentence_score import is_announcement
from recto.summary.sentences import is_question, rate_sentence, tagged_sentences
from recto.summary.tool_use import ToolUse, is_path, read_tool_use, read_written_command
from recto.summary.truncation import CountTokens, cut_text, cut_to_fit

BEGINS = "Work log:"
_TASK, _EARLIER, _STATE, _LEFT, _CHANGED, _READ = "Task: ", "Earlier task: ", "State: ", "Left: ", "Changed: ", "Read: "
_RAN, _FAILED, _LOOKED = "Ran: ", "Failed: ", "Looked: "
_ARROW, _COMMA = " → ", ", "
_MAX_TASK, _MAX_EARLIER, _MAX_DONE, _MAX_STATE, _MAX_LEFT = 400, 110, 170, 260, 160
_MIN_STATE = 40
_MAX_TASKS, _MAX_FILES, _MAX_USES = 12, 60, 40
# So many commands go before the list of changed files where there is little room; of edits that failed, so many.
_MAX_FIRST_USES, _MAX_FAILED_EDITS = 8, 4
_MAX_EXAMINED = 6000
# With fewer calls than this, and fewer than one for two messages of the user, it is a chat and no run of an agent.
_MIN_CALLS, _CALLS_PER_MESSAGE = 2, 0.5
# A line that stands in so many results is a frame, such as the prompt of a shell.
_MIN_FRAMES = 3
_MAX_TASK_SHARE = 0.35
# Where sentences of so many words make up so much of a text, a person wrote it.
_MIN_PROSE_WORDS, _MIN_PROSE_SHARE, _LONG_PROSE = 6, 0.5, 800
_LEFT_CUE = re.compile(
    r"\b(?:next|remaining|remains|left to|still (?:need|have|must|to)|todo|to do|not yet|pending|afterwards"
    r"|noch (?:offen|zu)|als nächstes|fehlt|queda|falta|pendiente|prochaine étape|reste à)\b",
    re.IGNORECASE,
)
_TOLD_TASK = re.compile(r"(?:User|Task): ([^\n]+)")
_FENCE_AT_END = re.compile(r"```[\w-]*\n((?:(?!```).)+?)\n?```\s*\Z", re.DOTALL)
_PROMPT_AT_END = re.compile(r"(?:^|\n)[^\n]{0,80}[$#>❯%]\s*\Z")
_NUMBERED_LINE = re.compile(r"\d+:")
_OBSERVED = re.compile(r"\s*(?:observation|output|result|stdout|<output|<result|execution)\b", re.IGNORECASE)


class WorkLog(Struct, frozen=True):
    """Everything oldest first."""

    task: str = ""
    earlier: tuple[tuple[str, str], ...] = ()
    """What was asked before, and what came of it."""
    state: str = ""
    left: str = ""
    changed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    uses: tuple[ToolUse, ...] = ()

    def render(self, limit: int, count: CountTokens) -> str:
        """As many of its lines as fit, the most important ones first; in the order in which a reader wants them."""
        task = cut_to_fit(self.task, int(limit * _MAX_TASK_SHARE), count)
        lines = {_TASK + task: 0} if task else {}
        left = limit - count(f"{BEGINS}\n{_TASK}{task}") - 1
        for rank, line in self._lines():
            cost = count(line) + 1
            if cost > left and line.startswith((_CHANGED, _READ)):
                line = _fewer_files(line, left, count)
                cost = count(line) + 1 if line else 0
            if line and cost <= left:
                left -= cost
                lines[line] = rank
        if not lines or left < 0:
            return ""
        oldest_first = list(lines)[::-1]
        return "\n".join([BEGINS, *sorted(oldest_first, key=lambda line: lines[line])])

    def _lines(self) -> Iterable[tuple[int, str]]:
        """Each line with its place, the most important first."""
        shown = [use for use in reversed(self.uses) if use.command]
        ran = [use for use in shown if use.is_shell and not use.is_looking]
        yield from ((11 if use.is_failed else 10, _use_line(use)) for use in ran[:_MAX_FIRST_USES])
        if self.changed:
            yield 4, _CHANGED + _COMMA.join(self.changed)
        if self.state:
            yield 2, _STATE + self.state
        yield from ((11 if use.is_failed else 10, _use_line(use)) for use in ran[_MAX_FIRST_USES:])
        yield from ((10, _use_line(use)) for use in shown if not (use.is_failed or use.is_shell))
        others = [use for use in shown if use.is_failed and not use.is_shell]
        yield from ((12, _use_line(use)) for use in others[:_MAX_FAILED_EDITS])
        if self.left:
            yield 3, _LEFT + self.left
        yield from ((1, _earlier_line(asked, done)) for asked, done in reversed(self.earlier))
        if self.read:
            yield 5, _READ + _COMMA.join(self.read)
        yield from ((12 if use.is_failed else 9, _use_line(use)) for use in shown if use.is_looking)


def _earlier_line(asked: str, done: str) -> str:
    return f"{_EARLIER}{asked}{_ARROW}{done}" if done else _EARLIER + asked


def _use_line(use: ToolUse) -> str:
    label = _FAILED if use.is_failed else _LOOKED if use.is_looking else _RAN
    command = f"`{use.command}`" if use.is_shell else use.command
    return f"{label}{command}{_ARROW}{use.outcome}"


def _fewer_files(line: str, left: int, count: CountTokens) -> str:
    """Without the oldest files."""
    label, _, listed = line.partition(" ")
    files = listed.split(_COMMA)
    while files and count(f"{label} {_COMMA.join(files)}") + 1 > left:
        del files[: max(1, len(files) // 4)]
    return f"{label} {_COMMA.join(files)}" if files else ""


def split_work_log(summary: str) -> tuple[WorkLog | None, str]:
    """The log at the front of a summary, and the rest."""
    if not summary.startswith(BEGINS):
        return None, summary
    block, _, rest = summary.partition("\n\n")
    log = WorkLog()
    uses: list[ToolUse] = []
    for line in block.split("\n")[1:]:
        label, _, text = line.partition(" ")
        first, _, second = text.rpartition(_ARROW) if _ARROW in text else (text, "", "")
        match f"{label} ":
            case "Task: ":
                log = replace(log, task=text)
            case "State: ":
                log = replace(log, state=text)
            case "Left: ":
                log = replace(log, left=text)
            case "Changed: ":
                log = replace(log, changed=tuple(text.split(_COMMA)))
            case "Read: ":
                log = replace(log, read=tuple(text.split(_COMMA)))
            case "Ran: " | "Failed: " | "Looked: ":
                uses.append(_read_use(first, second, f"{label} "))
            case "Earlier ":
                asked, _, done = text.removeprefix("task: ").partition(_ARROW)
                log = replace(log, earlier=(*log.earlier, (asked, done)))
    return replace(log, uses=tuple(uses)), rest


def _read_use(command: str, outcome: str, label: str) -> ToolUse:
    if command.startswith("`"):
        command = command.strip("`")
        families = read_written_command(command, "", frames=frozenset()).families
        return ToolUse(families, command, outcome, label == _FAILED, label == _LOOKED, is_shell=True)
    name, _, rest = command.partition(" ")
    is_file = label == _FAILED and is_path(rest)
    return ToolUse(frozenset([command if is_file else name]), command, outcome, label == _FAILED)


def is_agent_run(messages: Sequence[Message], *, goes_on: bool = False) -> bool:
    """Whether these are the rounds of an agent rather than a chat in which a tool was used now and then."""
    calls = sum(1 for message in messages for call in message.calls if call.name != RECALL)
    calls += len(find_observations(messages, goes_on=goes_on))
    asked = sum(message.role == "user" for message in messages)
    return calls >= _MIN_CALLS and calls >= _CALLS_PER_MESSAGE * asked


def find_observations(messages: Sequence[Message], *, goes_on: bool = False) -> dict[str, str]:
    """Messages in the user's role that hold the output of a command, by id: an agent that has no tools writes its
    commands between fences. `goes_on`: the first message may answer a command that is not at hand."""
    found: dict[str, str] = {}
    command = ""
    for at, message in enumerate(messages):
        if message.role == "assistant":
            fence = None if message.calls else _FENCE_AT_END.search(message.text)
            command = fence[1].strip() if fence else ""
        elif message.role == "user":
            is_first = goes_on and at == 0 and not _is_prose(message.text)
            if (command or is_first) and _looks_like_output(message.text):
                found[message.id] = command
            command = ""
    return found


def _looks_like_output(text: str) -> bool:
    if len(text) > _LONG_PROSE and _is_prose(text):
        return False  # a task that ends with the prompt of its shell
    if _PROMPT_AT_END.search(text[-200:]) or _OBSERVED.match(text):
        return True
    lines = [line for line in text[:_MAX_EXAMINED].splitlines() if line.strip()]
    return len(lines) > 2 and sum(map(is_machine_made, lines)) * 2 > len(lines)


def continue_work_log(former: str, messages: Sequence[Message], *, answering: int = 0) -> WorkLog | None:
    """The log after these messages, which goes on from the one in the former summary; None where no agent worked.

    `answering` is the number of the message that is being answered: it is not among them, but the rounds after it are
    about it."""
    log, rest = split_work_log(former)
    if log is None and not is_agent_run(messages, goes_on=bool(former)):
        return None
    if log is None:
        task = _TOLD_TASK.match(rest)
        log = WorkLog(task=cut_text(task[1], _MAX_TASK) if task else "")
    observed = find_observations(messages, goes_on=bool(former))
    reader = _WorkReader(log, observed, _find_frames(messages), answering)
    for message in messages:
        reader.add(message)
    return reader.finished()


def _find_frames(messages: Sequence[Message]) -> frozenset[str]:
    texts = [result.text for message in messages for result in message.results]
    texts += [message.text for message in messages if message.role == "user"]
    ends = (line.strip() for text in texts for line in {*text[:300].splitlines()[:2], *text[-300:].splitlines()[-4:]})
    return frozenset(line for line, number in Counter(ends).items() if line and number >= _MIN_FRAMES)


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

    def add(self, message: Message) -> None:
        if self.answering and message.said > self.answering:
            self._begin("")
            self.answering = 0
        if message.id in self.observed:
            if command := self.observed[message.id]:
                self._add(read_written_command(command, message.text, open_file=self._open_file, frames=self.frames))
        elif message.role == "user" and (asked := _asked(message.text)):
            self._begin(asked)
        elif message.role == "assistant":
            if message.text.strip():
                self.log = self._told()
                self._said = message.text
            self._calls |= {call.id: (call.name, call.arguments) for call in message.calls}
        for result in message.results:
            name, arguments = self._calls.get(result.call_id, (result.name, "{}"))
            if name != RECALL:
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

    def _begin(self, asked: str) -> None:
        """A new task: the one before becomes an earlier one, with what came of it."""
        log = self._told()
        if log.task:
            done = cut_text(log.state, _MAX_DONE)
            log = replace(log, earlier=(*log.earlier, (cut_text(log.task, _MAX_EARLIER), done))[-_MAX_TASKS:])
        self.log = replace(log, task=asked, state="" if log.task else log.state, left="")

    def _add(self, use: ToolUse) -> None:
        self._open_file = use.opened or self._open_file
        uses = [other for other in self.log.uses if not other.families <= use.families or not use.families]
        uses += [use] if use.command else []
        self.log = replace(
            self.log,
            uses=tuple(uses[-_MAX_USES:]),
            changed=_with_files(self.log.changed, use.changed),
            read=_with_files(self.log.read, use.read),
        )

    def _told(self) -> WorkLog:
        """The log with the state and the next step that the assistant named last."""
        if not self._said:
            return self.log
        state, left = _state_of(self._said)
        self._said = ""
        # "Calling it now." tells less than what was said before
        state = self.log.state if len(state) < _MIN_STATE and self.log.state else state
        return replace(self.log, state=state, left=left)

    def finished(self) -> WorkLog:
        log = self._told()
        return replace(log, read=tuple(path for path in log.read if not any(_is_same(path, it) for it in log.changed)))


def _with_files(known: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    """The newest last, each once: a path and the same path from the root are one file."""
    files = list(known)
    for path in more:
        path = path.removeprefix("./").replace(_COMMA, ",")
        same = [other for other in files if _is_same(path, other)]
        files = [other for other in files if other not in same]
        files.append(max((path, *same), key=len))
    return tuple(files[-_MAX_FILES:])


def _is_same(path: str, other: str) -> bool:
    return path == other or other.endswith(f"/{path}") or path.endswith(f"/{other}")


def without_command(text: str) -> str:
    """What an agent says, without the command between fences at its end."""
    return _FENCE_AT_END.sub("", text)


def _asked(text: str) -> str:
    """The task in the user's own words: what is not pasted, small talk, code or the frame of a prompt; empty if nothing
    is."""
    own = _prose(own_words(text[:_MAX_EXAMINED]))
    found = [sentence for sentence in own if not is_prompt_frame(sentence) and not is_order(sentence)]
    asked = " ".join(" ".join(found)[: 2 * _MAX_TASK].split())
    return cut_text(asked, _MAX_TASK) if asked.count(" ") > 1 or not asked.isascii() else ""


def _is_prose(text: str) -> bool:
    found = [sentence for sentence in _prose(text) if sentence.count(" ") >= _MIN_PROSE_WORDS - 1]
    found = [sentence for sentence in found if not (has_code_punctuation(sentence) or _NUMBERED_LINE.match(sentence))]
    return sum(map(len, found)) > _MIN_PROSE_SHARE * len(text[:_MAX_EXAMINED])


def _prose(text: str) -> list[str]:
    return [
        sentence
        for sentence, is_code in tagged_sentences(text[:_MAX_EXAMINED])
        if not is_code
        and not is_noise(sentence)
        and not is_machine_made(sentence)
        and rate_sentence(sentence) != CHATTER
    ]


def _state_of(text: str) -> tuple[str, str]:
    """What a reply says about how things are, and about what comes next."""
    said = [sentence for sentence in _prose(text) if not is_question(sentence)]
    ahead = [sentence for sentence in said if is_announcement(sentence) or _LEFT_CUE.search(sentence)]
    told = [sentence for sentence in said if sentence not in ahead]
    best = [sentence for sentence in told if rate_sentence(sentence) > NORMAL][:2] or told[:2]
    state = " ".join(" ".join(sentence for sentence in told if sentence in best).split())
    return cut_text(state, _MAX_STATE), cut_text(" ".join(ahead[-1].split()) if ahead else "", _MAX_LEFT)
