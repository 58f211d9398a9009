"""Plans and runs in lines: a plan as a tree below its goal, and the report at the end of a run."""

from collections.abc import Iterator, Sequence

from recto.base.text import dollars
from recto.cli import show
from recto.tasks.plan import PlanStep, TaskPlan
from recto.tasks.report import RunReport
from recto.tasks.run import FileUse

SIGNS = {"pending": "○", "active": "▶", "done": "✔", "blocked": "✖", "dropped": "–"}
# Files that a report names, and the width of a goal on one line.
MOST_FILES, GOAL_WIDTH = 12, 100


def plan_tree(goal: str, plan: TaskPlan, *, width: int = GOAL_WIDTH) -> list[str]:
    """The goal, below it the steps, below each its files. Plain: the status as a word, and no lines."""
    lines = [show.shortened(goal, width)]
    for place, step in enumerate(plan.steps, 1):
        lines += _branch(step, place == len(plan.steps), width)
    return lines


def _branch(step: PlanStep, is_last: bool, width: int) -> Iterator[str]:
    if show.is_plain():
        yield f"  {step.status}: {show.visible(step.text)}"
        yield from (f"    {show.visible(file)}" for file in step.files)
        return
    fork, trunk = ("└─", "  ") if is_last else ("├─", "│ ")
    sign = f"{fork} {SIGNS[step.status]} "
    yield sign + show.shortened(step.text, width - len(sign))
    for place, file in enumerate(step.files, 1):
        twig = "└─" if place == len(step.files) else "├─"
        yield f"{trunk}   {twig} " + show.shortened(file, width - len(trunk) - 6)


def tree_window(lines: Sequence[str], most: int) -> list[str]:
    """So many lines of a tree: around the step that is worked on."""
    if len(lines) <= most:
        return list(lines)
    at = next((place for place, line in enumerate(lines) if SIGNS["active"] in line[:6]), len(lines) - 1)
    first = max(1, min(at - most // 2, len(lines) - most + 1))
    return [lines[0], *lines[first : first + most - 1]]


def progress_line(plan: TaskPlan, step: int, max_steps: int) -> str:
    return f"step {step} of {max_steps}: {plan.in_words}"


def report_lines(report: RunReport, *, conversation: str) -> Iterator[str]:
    """What a run came to. `conversation` is how a command names it."""
    because = f": {show.visible(report.because)}" if report.because else ""
    yield f"{report.outcome}{because}"
    yield from plan_tree(report.goal, report.plan)
    if report.references:
        names = [each.relative_path or each.wikilink for each in report.references]
        yield f"notes: {_listed(names)}"
    for what in ("changed", "probably changed", "looked at"):
        if files := [each.path for each in report.files if _touched(each) == what]:
            yield f"{what}: {_listed(files)}"
    if report.refused:
        yield f"not run, since nobody allowed it: {_listed(report.refused)}; --allow-tool SERVER/TOOL allows it"
    yield ", ".join(_figures(report))
    if not report.is_done:
        yield f"`recto agent run --continue -c {conversation}` goes on"


def _touched(file: FileUse) -> str:
    if not file.is_changed:
        return "looked at"
    return "changed" if file.is_certain else "probably changed"


def _figures(report: RunReport) -> Iterator[str]:
    yield f"{report.steps} of {show.counted(report.max_steps, 'step')}"
    yield f"{report.input:,} tokens in ({report.cache_read:,} from the cache), {report.output:,} out"
    if report.cost_usd:
        yield dollars(report.cost_usd)
    yield f"{report.duration_s:.1f} s"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_FILES} more" if len(names) > MOST_FILES else ""
    return ", ".join(map(show.visible, names[:MOST_FILES])) + more
