"""Messages with their blocks, compactions in words, plans as trees, and the report of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from recto import wire
from recto.base.text import dollars
from recto.chat.blocks import (
    Block,
    Compaction,
    File,
    Image,
    MessageRange,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.chat.compaction_words import (
    WRITERS,
    archived_in_words,
    block_in_words,
    compaction_line,
    counts_in_words,
    kept_in_words,
)
from recto.chat.message import Message
from recto.cli import show
from recto.cli.drawing.references import references_shown
from recto.events import ContextCompacted, SummaryProgress, SummaryRequested, Working
from recto.reports.transcript import TranscriptEntry
from recto.tasks.plan import PlanStep, TaskPlan
from recto.tasks.run import RunReport

if TYPE_CHECKING:
    from recto.api.blocking import Talk

MOST_RANGES = 12
NOTHING_CHECKED: Mapping[str, int] = {}
NOTHING_COMPACTED = "stopped; nothing was compacted"
# Looking for lost facts in this many archived messages takes only a moment.
LOST_MESSAGES = 300
RESULT_WIDTH, BRANCH_WIDTH = 200, 50
INDENT = "  "
USUAL_PRIORITIES = range(3, 8)
APPROVALS = {
    "allowed": "allowed by you",
    "always": "always allowed",
    "denied": "denied by you",
    "unanswered": "nobody was asked",
    "changed": "changed since it was allowed",
    "forbidden": "forbidden",
}
MARKS = {"unfinished": "unfinished", "stopped": "stopped", "error": "failed"}
SIGNS = {"pending": "○", "active": "▶", "done": "✔", "blocked": "✖", "dropped": "–"}
# Most files in a report, and the width of a goal on one line.
MOST_FILES, GOAL_WIDTH = 12, 100


# -- compactions


def event_in_words(event: ContextCompacted) -> str:
    """The marker line of a new compaction."""
    by = f"summary by {event.made.model}" if event.made else "summary as before"
    sizes = (event.messages_archived, event.context_size_before, event.context_size_after)
    return compaction_line(event.compaction_number, archived_in_words(*sizes), WRITERS.get(event.made_by, by))


def in_one_line(block: Compaction) -> str:
    """The marker line with its time, and the action if that was not a compaction."""
    action = "" if block.action == "compact" else f" · {block.action}"
    return f"{show.when(block.timestamp)}  {block_in_words(block)}{action}"


def remarks(notes: tuple[str, ...], excerpts: int, checks: Mapping[str, int] = NOTHING_CHECKED) -> list[str]:
    """Lines with the fate of the facts, failures, and what is sent shortened."""
    ledger, invented = checks.get("ledger"), checks.get("invented")
    facts = (
        kept_in_words(checks),
        f"{ledger} more in the ledger" if ledger else "",
        f"{invented} unverified" if invented else "",
    )
    are = "is sent as an excerpt" if excerpts == 1 else "are sent as excerpts"
    long = f"{show.counted(excerpts, 'long text')} {are}" if excerpts else ""
    return [line for line in (", ".join(filter(None, facts)), *notes, long) if line]


def request_in_words(event: SummaryRequested) -> str:
    part = f", part {event.part} of {event.of}" if event.of > 1 else ""
    return f"summing up {event.size:,} tokens with {event.model}{part}"


def progress_in_words(event: SummaryProgress) -> str:
    read = f", {event.read:,} read so far" if event.read else ""
    return f"summing up {show.counted(event.of, 'message')}{read}"


def compaction_facts(block: Compaction) -> Iterator[tuple[str, str]]:
    """The facts about a compaction, by name. Messages are ids here: `Talk.numbered` replaces them."""
    yield "compaction", f"{block.compaction_number}, {show.when(block.timestamp)}" + _action(block)
    covered = block.messages_archived + len(block.lifted)
    # `last` may be a Compaction, which has no number
    yield "covers", f"{show.counted(covered, 'message')}, up to #{covered}" if covered else "no messages"
    if block.lifted:
        yield "still sent", f"{show.counted(len(block.lifted), 'message')}: {', '.join(block.lifted)}"
    if block.context_size_before or block.context_size_after:
        yield "window", f"{block.context_size_before:,} → {block.context_size_after:,} tokens"
    yield "made by", _made(block)
    yield "because", block.because
    if block.unread:
        yield "read", f"{_ranges(block.read)}; the next compaction reads more"
        yield "not read", f"{show.counted(block.unread_messages, 'message')}: {_ranges(block.unread)}"
    for note in block.notes:
        yield "note", note
    if block.pinned:
        yield "pins", ", ".join(block.pinned)
    if block.excerpts:
        yield "excerpts", ", ".join(f"{key} ({len(text):,} characters)" for key, text in block.excerpts.items())


def _ranges(ranges: Sequence[MessageRange]) -> str:
    """The first few ranges, and the number of the rest."""
    named = [f"#{first}–#{last}" if first < last else f"#{first}" for first, last in ranges[:MOST_RANGES]]
    more = f" and {len(ranges) - MOST_RANGES} more" if len(ranges) > MOST_RANGES else ""
    return ", ".join(named) + more


def _action(block: Compaction) -> str:
    return "" if block.action == "compact" else f" ({block.action})"


def _made(block: Compaction) -> str:
    if block.made_by != "model":
        return {"user": "you", "clear": "you: cleared"}.get(block.made_by, WRITERS.get(block.made_by, block.made_by))
    if block.made is None:
        return "model"
    took = f" in {block.made.duration_s:.1f} s" if block.made.duration_s is not None else ""
    return f"model {block.made.model}{took}"


def no_summary_in_words(block: Compaction) -> str:
    if block.last is None:
        return "There is no summary: nothing is archived; what is long is sent as an excerpt."
    return "There is no summary: what is archived is not sent."


def beside_summary(block: Compaction) -> Iterator[str]:
    """Lines with the ledger of a summary, what was set aside, and the counts of its facts."""
    ledger: list[str] = []
    if block.ledger:
        from recto.summary.ledger import ledger_rows  # compiles patterns: a tenth of a second

        ledger = [*quoted_in_words(ledger_rows(block.ledger))]
    parts = (
        ("Said besides, word for word:", ledger),
        ("Set aside by this compaction:", block.set_aside),
        ("Set aside so far, by messages:", block.contents),
    )
    for title, lines in parts:
        if lines:
            yield from ("", title, *lines)
    if counts := counts_in_words(block.checks):
        yield from ("", f"{counts}.")


def lost_in_words(found: Sequence[tuple[int, str, str]], archived: int) -> Iterator[str]:
    """The statements that are only in the archive, of the latest archived messages."""
    looked = f"the last {LOST_MESSAGES} of " if archived > LOST_MESSAGES else ""
    yield f"{show.counted(len(found), 'statement')} only in {looked}{show.counted(archived, 'archived message')}:"
    yield from quoted_in_words(found)


def quoted_in_words(quotations: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    """One line per quotation: message number, role if any, and the words."""
    wanted = [(f"#{number} {'you' if role == 'user' else role}".rstrip(), item) for number, role, item in quotations]
    width = max((len(head) for head, _ in wanted), default=0)
    before = None
    for head, item in wanted:
        yield f"{head if head != before else '':<{width}}  {item}"
        before = head


def undone_in_words(block: Compaction, back: int) -> str:
    """The result of undoing a compaction."""
    size, after = block.context_size_before, block.context_size_after
    sizes = f" ({size:,} → {after:,} tokens)" if size or after else ""
    return f"{show.counted(back, 'message')} {'is' if back == 1 else 'are'} back in the window{sizes}"


def compaction_to_json(talk: "Talk", block: Compaction) -> dict[str, Any]:
    """The JSON of every command that makes or shows a Compaction."""
    return {"conversation": talk.id, "head": talk.head, "compaction": wire.block_to_json(block)}


# -- messages


def branch_in_words(message: Message) -> str:
    """The text at the end of a branch, or else what it did."""
    block = message.compaction
    said = f"{message.role}: {show.shortened(message.text, BRANCH_WIDTH)}"
    return said if block is None else f"{block_in_words(block)}{_action(block)}"


def tell_entry(entry: TranscriptEntry, because: str = "", *, with_tools: bool = True) -> None:
    """Print an entry. Archived messages are dimmed. A Compaction gets its own line; `because` adds its reason."""
    message = entry.message
    if block := message.compaction:
        show.say(f"── {block_in_words(block)} ({because or block.because}) ──", fg="yellow")
        for line in remarks(block.notes, len(block.excerpts), block.checks) if block.action == "compact" else ():
            show.say(f"· {line}", dim=True)
        # a pin keeps the summary, which was shown above
        if block.summary and block.action not in ("pin", "unpin"):
            show.say(indent(block.summary, INDENT), dim=True)
        show.say("")
        return
    show.say(" · ".join(_facts(entry)), dim=not entry.active, bold=entry.active or None)
    for each in message.blocks:
        if not isinstance(each, References) and (with_tools or not isinstance(each, ToolCall | ToolResult)):
            is_dim = not entry.active or isinstance(each, Thinking | ToolCall | ToolResult)
            show.say_words(_in_words(each), dim=is_dim or None)
    for line in references_shown(message.references, fold=None, is_terminal=False):
        show.say(line, dim=not entry.active or None)
    if message.error:
        show.say(f"{MARKS.get(message.status, 'failed')}: {message.error}", fg="red")
    show.say("")


def _facts(entry: TranscriptEntry) -> Iterator[str]:
    message = entry.message
    yield f"#{message.said} {message.role}"
    if message.time:
        yield show.when(message.time)
    if message.tokens.own is not None:
        yield show.counted(message.tokens.own, "token")
    if message.model:
        yield message.model
    if message.priority not in USUAL_PRIORITIES:
        yield f"priority {message.priority}"
    if mark := MARKS.get(message.status):
        yield mark
    if entry.pinned:
        yield "pinned"
    if entry.lifted or not entry.active:
        yield "archived, still sent" if entry.lifted else "archived"


def _in_words(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Thinking(text=text):
            return f"(thought) {text}"
        case ToolCall():
            return f"→ {block.name} {show.shortened(block.arguments, RESULT_WIDTH)}"
        case ToolResult():
            # its size, who let it run, and what else of it is kept
            facts = [show.counted(len(block.text), "character"), APPROVALS.get(block.approval, "")]
            facts += ["kept whole" if block.whole else "", *(f"{each.partition(' ')[0]} kept" for each in block.media)]
            told = f"({', '.join(filter(None, facts))}) {'failed: ' if block.is_error else ''}"
            return f"← {block.name} {told}{show.shortened(block.text, RESULT_WIDTH)}"
        case File():
            return f"[file {block.name}, {show.counted(len(block.text), 'character')}]"
        case Image():
            return f"[image, {block.media_type}]"
        case Compaction():
            return block.summary
        case References():
            return block.told


def work_in_words(event: Working) -> str:
    match event.stage:
        case "store":
            return "waiting until other processes have stored theirs"
        case "model":
            return f"loading {event.model}"
        case "notes":
            return f"indexing {show.counted(event.notes, 'note')}"
        case "sources":
            return "choosing sources"
        case "search":
            return "searching earlier messages"


# -- plans and runs


def plan_tree(goal: str, plan: TaskPlan, *, width: int = GOAL_WIDTH) -> list[str]:
    """The goal, its steps, and their files. Plain: the status as a word, and no lines."""
    lines = [show.shortened(goal, width)]
    for place, step in enumerate(plan.steps, 1):
        lines += _branch(step, place == len(plan.steps), width)
    return lines


def _branch(step: PlanStep, is_last: bool, width: int) -> Iterator[str]:
    if show.is_plain():
        yield f"  {step.status}: {show.visible(step.text)}"
    else:
        sign = f"{'└─' if is_last else '├─'} {SIGNS[step.status]} "
        yield sign + show.shortened(step.text, width - len(sign))
    yield from (f"{'  ' if is_last else '│ '}     {show.shortened(file, width - 8)}" for file in step.files)


def progress_line(plan: TaskPlan, step: int, max_steps: int) -> str:
    return f"step {step} of {max_steps}: {plan.in_words}"


def report_lines(report: RunReport, *, conversation: str) -> Iterator[str]:
    """The result of a run. `conversation` is its name for commands."""
    because = f": {show.visible(report.because)}" if report.because else ""
    yield f"{report.outcome}{because}"
    yield from plan_tree(report.goal, report.plan)
    if report.references:
        yield f"notes: {_listed([each.relative_path or each.wikilink for each in report.references])}"
    uses: dict[str, list[str]] = {"changed": [], "probably changed": [], "looked at": []}
    for file in report.files:
        changed = "changed" if file.is_certain else "probably changed"
        uses[changed if file.is_changed else "looked at"].append(file.path)
    yield from (f"{what}: {_listed(files)}" for what, files in uses.items() if files)
    if report.refused:
        yield f"not run, since nobody allowed it: {_listed(report.refused)}; --allow-tool SERVER/TOOL allows it"
    cost = [dollars(report.cost_usd)] if report.cost_usd else []
    tokens = f"{report.input:,} tokens in ({report.cache_read:,} from the cache), {report.output:,} out"
    steps = f"{report.steps} of {show.counted(report.max_steps, 'step')}"
    yield ", ".join((steps, tokens, *cost, f"{report.duration_s:.1f} s"))
    if not report.is_done:
        yield f"`recto agent run --continue -c {conversation}` continues"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_FILES} more" if len(names) > MOST_FILES else ""
    return ", ".join(map(show.visible, names[:MOST_FILES])) + more
