"""Work log: an agent's tasks, actions and open steps, as the first lines of a summary.

It has the latest task in the user's words, earlier ones shortened, files read and changed, and commands with their last
outcome. A value that can be rendered to a size and parsed again. `agent_steps` extracts it from messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from recto.summary.truncation import CountTokens, cut_text, cut_to_fit, largest_fitting

BEGINS, NO_OUTPUT = "Work log:", "no output"
_TASK, _EARLIER, _STATE, _LEFT, _CHANGED, _READ = "Task: ", "Earlier task: ", "State: ", "Left: ", "Changed: ", "Read: "
_LOOKED, _RAN, _FAILED, _ARROW, _COMMA = "Looked: ", "Ran: ", "Failed: ", " → ", ", "
_LABELS = (_TASK, _EARLIER, _STATE, _LEFT, _CHANGED, _READ, _LOOKED, _RAN, _FAILED)
"""In the order of their lines."""
# Lines that are shortened before one of them is left out.
_MATTERS = (_STATE, _LEFT, _LOOKED, _RAN, _FAILED)
# The task's maximum share of the room, and the changed files' share of the rest.
_MAX_TASK_SHARE, _MAX_CHANGED_SHARE = 0.35, 0.7
# Characters of a command and its outcome, fewer if not all fit. An error keeps at least _MIN_FAILED.
_WIDTHS, _WHOLE, _MIN_FAILED = ((100, 200), (48, 64)), (300, 200), 120
_MORE = " (+"


class LoggedStep(Struct, frozen=True):
    """A command or another call, with its last outcome."""

    command: str
    outcome: str = NO_OUTPUT
    is_failed: bool = False
    is_looking: bool = False
    """It only looked around: its outcome matters least."""
    is_shell: bool = False

    def line(self, widths: tuple[int, int]) -> tuple[str, str]:
        label = _FAILED if self.is_failed else _LOOKED if self.is_looking else _RAN
        command = cut_text(self.command, widths[0])
        outcome = cut_text(self.outcome, max(widths[1], _MIN_FAILED) if self.is_failed else widths[1])
        return label, f"{label}{f'`{command}`' if self.is_shell else command}{_ARROW}{outcome}"


class WorkLog(Struct, frozen=True):
    """Everything oldest first."""

    task: str = ""
    earlier: tuple[tuple[str, str], ...] = ()
    """Earlier tasks, each with its final state."""
    state: str = ""
    left: str = ""
    changed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    steps: tuple[LoggedStep, ...] = ()

    def render(self, limit: int, count: CountTokens, most: int = 0) -> str:
        """As many lines as fit, in reading order; the most important are chosen first. If something important does not
        fit, lines are shortened, and then the log may take up to `most`."""
        for room, widths in [(limit, each) for each in _WIDTHS] + ([(most, _WIDTHS[-1])] if most > limit else []):
            rendered, has_all = self._rendered(room, count, widths)
            if has_all:
                break
        return rendered

    def whole_beside(self, summary: str) -> str:
        """All of its lines, unless the summary has them."""
        whole, _ = self._rendered(1_000_000, len, _WHOLE)
        return "" if summary == whole or summary.startswith(f"{whole}\n") else whole

    def _rendered(self, limit: int, count: CountTokens, widths: tuple[int, int]) -> tuple[str, bool]:
        """The text, and True if nothing important is omitted."""
        task = cut_to_fit(self.task, int(limit * _MAX_TASK_SHARE), count)
        lines = {_TASK + task: _TASK} if task else {}
        left = limit - count(f"{BEGINS}\n{_TASK}{task}") - 1
        changed = list_files(self.changed, int(left * _MAX_CHANGED_SHARE), count, _CHANGED)
        has_all = _MORE not in changed
        for label, line in ((_CHANGED, changed), *self._lines(widths)):
            line = list_files(self.read, left - 1, count, _READ) if label == _READ else line
            if line.removeprefix(label) and count(line) + 1 <= left:
                left -= count(line) + 1
                lines[line] = label
            elif line != label:
                has_all = has_all and label not in _MATTERS
        if not lines or left < 0:
            return "", False
        ordered = [line for label in _LABELS for line in reversed(lines) if lines[line] == label]
        return "\n".join([BEGINS, *ordered]), has_all

    def _lines(self, widths: tuple[int, int]) -> Iterator[tuple[str, str]]:
        """Each label and line, the most important first; empty ones are left out later."""
        newest = self.steps[::-1]
        failed = sorted((step for step in newest if step.is_failed), key=lambda step: not step.is_shell)
        quiet = [step for step in newest if not step.is_failed and (step.is_looking or step.outcome == NO_OUTPUT)]
        narrow = widths if widths == _WHOLE else _WIDTHS[-1]
        earlier = [(_EARLIER, f"{_EARLIER}{asked}{done and _ARROW}{done}") for asked, done in reversed(self.earlier)]
        yield from (step.line(widths) for step in failed)
        yield _STATE, _STATE + self.state
        yield from (step.line(widths) for step in newest if not step.is_failed and step not in quiet)
        yield _LEFT, _LEFT + self.left
        yield from earlier[:1]
        yield from (step.line(narrow) for step in quiet)
        yield from earlier[1:]
        yield _READ, _READ


def split_work_log(summary: str) -> tuple[WorkLog | None, str]:
    """The log at the front of a summary, and the rest."""
    if not summary.startswith(BEGINS):
        return None, summary
    block, _, rest = summary.partition("\n\n")
    found: dict[str, Any] = {"steps": (), "earlier": ()}
    for line in block.split("\n")[1:]:
        label = next((label for label in _LABELS if line.startswith(label)), "")
        text = line.removeprefix(label)
        if label in (_LOOKED, _RAN, _FAILED):
            is_shell = text.startswith("`")
            command, _, outcome = text.removeprefix("`").partition(f"`{_ARROW}" if is_shell else _ARROW)
            found["steps"] += (LoggedStep(command, outcome, label == _FAILED, label == _LOOKED, is_shell),)
        elif label == _EARLIER:
            found["earlier"] += (text.partition(_ARROW)[::2],)
        elif label:
            found[label[:-2].lower()] = parse_files(text) if label in (_CHANGED, _READ) else text
    return WorkLog(**found), rest


def whole_log(edited: str, summary: str, whole: str) -> str:
    """What remains of the whole log after the user edits a summary: all of it, unless the part shown was edited too."""
    block = summary.partition("\n\n")[0]
    return whole if summary.startswith(BEGINS) and edited.startswith(f"{block}\n\n") else ""


# -- files on one line: src/a.py, setup.py (+12 more)


def list_files(files: Sequence[str], limit: int, count: CountTokens, label: str) -> str:
    """One line after its label, with the newest files that fit; empty if none fits."""

    def newest(number: int) -> str:
        more = f"{_MORE}{len(files) - number} more)" if number < len(files) else ""
        return f"{label}{_COMMA.join(files[len(files) - number :])}{more}"

    number = largest_fitting(lambda number: count(newest(number)) <= limit, len(files), len(files))
    return newest(number) if number else ""


def parse_files(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.partition(_MORE)[0].split(_COMMA)))


def with_files(known: Iterable[str], more: Iterable[str], most: int = 300) -> tuple[str, ...]:
    """The newest last, without duplicates: a path and the same path from the root are one file."""
    files = dict.fromkeys(known)
    for path in filter(None, (" ".join(path.removeprefix("./").replace(_COMMA, ",").split()) for path in more)):
        same = [other for other in files if is_same_file(path, other)]
        for other in same:
            del files[other]
        files[max((path, *same), key=len)] = None
    return tuple(files)[-most:]


def is_same_file(path: str, other: str) -> bool:
    shorter, longer = sorted((path, other), key=len)
    return path == other or (longer.endswith(shorter) and longer[-len(shorter) - 1] in "/\\")
