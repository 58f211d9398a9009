"""Work log: what an agent was asked, what it did and what is left, as the lines at the front of a summary.

The latest task in the user's words, finished ones short, files read and changed, commands with their last outcome, and
errors that are still open. A value: how it is shown in little room, and how it is read back. `agent_run` writes it.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.summary.file_list import COMMA, list_files, parse_files
from recto.summary.shell_command import is_path
from recto.summary.tool_use import ToolUse, read_written_command
from recto.summary.truncation import CountTokens, cut_text, cut_to_fit

BEGINS = "Work log:"
_TASK, _EARLIER, _STATE, _LEFT, _CHANGED, _READ = "Task: ", "Earlier task: ", "State: ", "Left: ", "Changed: ", "Read: "
_RAN, _FAILED, _LOOKED = "Ran: ", "Failed: ", "Looked: "
_ARROW = " → "
# The most of the room that the task takes, and of the rest the changed files.
_MAX_TASK_SHARE, _MAX_CHANGED_SHARE = 0.35, 0.7
# So many of the latest commands are more important than the state; of edits that failed, so many are shown.
_MAX_FIRST_USES, _MAX_FAILED_EDITS = 10, 4
# Characters of a command and its outcome: where not all commands fit, they are told with fewer words.
_WIDTHS = ((100, 200), (70, 110), (48, 64))
_WHOLE = (300, 200)
_MIN_FAILED = 120
# With more tokens than this, the beginning of an error is worth a line.
_MIN_CUT = 15
# Places of lines that are told with fewer words before one of them is left out.
_MATTERS = (2, 3, 9, 10, 11)
_EXIT_CODE = re.compile(r" \(exit code -?\d+\)$")


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

    def render(self, limit: int, count: CountTokens, most: int = 0) -> str:
        """As many of its lines as fit, the most important ones first; in the order in which a reader wants them. Where
        not all that matters fits, it is told with fewer words, and then gets up to `most`."""
        rendered = ""
        tries = [(limit, widths) for widths in _WIDTHS] + ([(most, _WIDTHS[-1])] if most > limit else [])
        for room, widths in tries:
            rendered, has_all = self._rendered(room, count, widths)
            if has_all:
                break
        return rendered

    def _rendered(self, limit: int, count: CountTokens, widths: tuple[int, int]) -> tuple[str, bool]:
        """And whether nothing is left out that matters."""
        task = cut_to_fit(self.task, int(limit * _MAX_TASK_SHARE), count)
        lines = {_TASK + task: 0} if task else {}
        left = limit - count(f"{BEGINS}\n{_TASK}{task}") - 1
        is_brief = widths in _WIDTHS[1:]
        changed = list_files(self.changed, int(left * _MAX_CHANGED_SHARE), count, _CHANGED, is_brief=is_brief)
        has_all = not changed.endswith(" more)")
        for rank, line in self._lines(changed, widths):
            cost = count(line) + 1
            if cost > left and line.startswith(_READ):
                line = list_files(self.read, left - 1, count, _READ)
                cost = count(line) + 1 if line else 0
            if left > _MIN_CUT and cost > left and line.startswith(_FAILED):
                line, has_all = cut_to_fit(line, left - 1, count), False
                cost = count(line) + 1
            if line and cost <= left:
                left -= cost
                lines[line] = rank
            elif rank in _MATTERS:
                has_all = False
        if not lines or left < 0:
            return "", False
        oldest_first = list(lines)[::-1]
        return "\n".join([BEGINS, *sorted(oldest_first, key=lambda line: lines[line])]), has_all

    def whole_beside(self, summary: str) -> str:
        """All of its lines, unless the summary has them."""
        whole, _ = self._rendered(1_000_000, len, _WHOLE)
        return "" if summary == whole or summary.startswith(f"{whole}\n") else whole

    def _lines(self, changed: str, widths: tuple[int, int]) -> Iterable[tuple[int, str]]:
        """Each line with its place, the most important first."""
        shown = [use for use in reversed(self.uses) if use.command]
        ran = [use for use in shown if use.is_shell and not use.is_looking]
        others = [use for use in shown if not (use.is_shell or use.is_looking)]
        good = [use for use in ran if not (use.is_failed or use.is_quiet)]
        quiet = [use for use in shown if use.is_looking or (use.is_shell and use.is_quiet)]
        earlier = [(1, _earlier_line(asked, done)) for asked, done in reversed(self.earlier)]

        def told(uses: Iterable[ToolUse], rank: int) -> Iterable[tuple[int, str]]:
            return ((rank, _use_line(use, widths)) for use in uses)

        if changed:
            yield 4, changed
        yield from told((use for use in ran if use.is_failed), 11)
        yield from told(good[:_MAX_FIRST_USES], 10)
        if self.state:
            yield 2, _STATE + self.state
        yield from told([*good[_MAX_FIRST_USES:], *(use for use in others if not use.is_failed)], 10)
        yield from told([use for use in others if use.is_failed][:_MAX_FAILED_EDITS], 12)
        if self.left:
            yield 3, _LEFT + self.left
        yield from earlier[:1]
        narrow = widths if widths == _WHOLE else _WIDTHS[-1]
        yield from ((12 if use.is_failed else 9, _use_line(use, narrow)) for use in quiet)
        yield from earlier[1:]
        if self.read:
            yield 5, _READ + COMMA.join(self.read)


def _earlier_line(asked: str, done: str) -> str:
    return f"{_EARLIER}{asked}{_ARROW}{done}" if done else _EARLIER + asked


def _use_line(use: ToolUse, widths: tuple[int, int]) -> str:
    command, outcome = widths
    outcome = max(outcome, _MIN_FAILED) if use.is_failed else outcome
    label = _FAILED if use.is_failed else _LOOKED if use.is_looking else _RAN
    shown = cut_text(use.command, command)
    came = _EXIT_CODE.search(use.outcome)
    code = came[0] if came and len(use.outcome) > outcome else ""
    told = cut_text(use.outcome.removesuffix(code), outcome) + code
    return f"{label}{f'`{shown}`' if use.is_shell else shown}{_ARROW}{told}"


def split_work_log(summary: str) -> tuple[WorkLog | None, str]:
    """The log at the front of a summary, and the rest."""
    if not summary.startswith(BEGINS):
        return None, summary
    block, _, rest = summary.partition("\n\n")
    return _parse(block.split("\n")[1:]), rest


def whole_log(edited: str, summary: str, whole: str) -> str:
    """What stays of the whole log when the user edits a summary: all of it, unless the part that the summary shows was
    edited too."""
    block = summary.partition("\n\n")[0]
    return whole if summary.startswith(BEGINS) and edited.startswith(f"{block}\n\n") else ""


def _parse(lines: Sequence[str]) -> WorkLog:
    log = WorkLog()
    uses: list[ToolUse] = []
    for line in lines:
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
                log = replace(log, changed=parse_files(text))
            case "Read: ":
                log = replace(log, read=parse_files(text))
            case "Ran: " | "Failed: " | "Looked: ":
                uses.append(_parse_use(first, second, f"{label} "))
            case "Earlier ":
                asked, _, done = text.removeprefix("task: ").partition(_ARROW)
                log = replace(log, earlier=(*log.earlier, (asked, done)))
    return replace(log, uses=tuple(uses))


def _parse_use(command: str, outcome: str, label: str) -> ToolUse:
    if command.startswith("`"):
        command = command.strip("`")
        families = read_written_command(command, "", frames=frozenset()).families
        return ToolUse(families, command, outcome, label == _FAILED, label == _LOOKED, is_shell=True)
    name, _, rest = command.partition(" ")
    is_file = label == _FAILED and is_path(rest)
    families = frozenset([command if is_file else name])
    return ToolUse(families, command, outcome, label == _FAILED, label == _LOOKED)
