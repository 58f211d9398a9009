"""Messages with their blocks and references, search hits, compactions in words, plans as trees, the report of a run."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.base.text import dollars
from recto.chat.blocks import (
    Block,
    Compaction,
    DocumentReference,
    File,
    Image,
    MessageRange,
    Quote,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    unique_references,
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
from recto.cli.terminal import in_one_line, to_file
from recto.events import (
    ContextCompacted,
    Event,
    NotesQuoted,
    Referenced,
    Replied,
    SummaryProgress,
    SummaryRequested,
    Working,
)
from recto.reports.transcript import TranscriptEntry
from recto.search.terms import normalize_text, query_terms
from recto.tasks.plan import PlanStep, TaskPlan
from recto.tasks.run import RunReport

if TYPE_CHECKING:
    from recto.api.blocking import Talk
    from recto.recall.message_search import FoundMessage


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
HEADING = "📚 Referenced documents"
FOLD = 10
NOWHERE: Mapping[str, Path] = {}
SUMMARY_WIDTH = 100
QUOTES = "From your notes"
TINY = "In the words of {model}, a small model that may be wrong:"
LONGEST_HEADING = 40
SNIPPET_WIDTH, AHEAD = 200, 40
PLACES = {"active": "", "archived": "archived", "branch": "on another branch ({id})"}
# Words may differ in their endings: a stemmer finds `masts` with `mast`.
ENDING, LEAST = 3, 3

Span = tuple[int, int]


# -- compactions


def event_in_words(event: ContextCompacted) -> str:
    """The marker line of a new compaction."""
    by = f"summary by {event.made.model}" if event.made else "summary as before"
    sizes = (event.messages_archived, event.context_size_before, event.context_size_after)
    return compaction_line(event.compaction_number, archived_in_words(*sizes), WRITERS.get(event.made_by, by))


def marker_line(block: Compaction) -> str:
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
    """The goal and its steps. Plain: the status as a word, and no lines."""
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


def progress_line(plan: TaskPlan, step: int, max_steps: int) -> str:
    return f"step {step} of {max_steps}: {plan.in_words}"


def report_lines(report: RunReport, *, conversation: str) -> Iterator[str]:
    """The result of a run. `conversation` is its name for commands."""
    because = f": {show.visible(report.because)}" if report.because else ""
    yield f"{report.outcome}{because}"
    yield from plan_tree(report.goal, report.plan)
    if report.references:
        yield f"notes: {_listed([each.relative_path or each.wikilink for each in report.references])}"
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


# -- references, quotes and search hits


class ReferenceListener:
    """Collects the documents of question and reply for lines to show after the reply."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._asked: Message | None = None
        self._quoted = frozenset[str]()
        self._is_terminal = is_terminal

    def hear(self, event: Event) -> list[str]:
        if isinstance(event, Referenced):
            self._asked = event.message
        if isinstance(event, NotesQuoted):
            self._quoted = frozenset(each.relative_path for each in event.quotes)
            return quotes_shown(event, is_terminal=self._is_terminal)
        if isinstance(event, Replied) and not event.message.calls:
            messages = [*([self._asked] if self._asked else ()), event.message]
            return message_references(messages, self._quoted, is_terminal=self._is_terminal)
        return []


def message_references(
    messages: list[Message],
    quoted: Set[str] = frozenset(),
    *,
    is_terminal: bool,
    fold: int | None = FOLD,
) -> list[str]:
    """Lines for the documents of several messages, each once; without those that were found and `quoted`."""
    known = unique_references(each for message in messages for each in message.references)
    found = [each for each in known if each.reference_type == "direct" or each.relative_path not in quoted]
    places = {
        each.relative_path: Path(block.vault) / each.relative_path
        for message in messages
        for block in message.blocks
        if isinstance(block, References) and block.vault
        for each in block.references
        if each.relative_path
    }
    return references_shown(found, places, fold=fold, is_terminal=is_terminal)


def references_shown(
    references: Sequence[DocumentReference],
    places: Mapping[str, Path] = NOWHERE,
    *,
    fold: int | None = FOLD,
    is_terminal: bool,
) -> list[str]:
    """Lines for documents named, then read, then found; on a terminal with colours and links to the files in
    their `places`.

    More than `fold` are only counted; None shows all. Broken and refused ones are always shown.
    """
    if not references:
        return []
    ordered = sorted(references, key=lambda each: (each.reference_type != "direct", each.context_snippet is not None))
    room = len(ordered) if fold is None else max(0, fold - sum(bool(each.problem) for each in ordered))
    kept = {id(each) for each in [each for each in ordered if not each.problem][:room]}
    shown = [each for each in ordered if each.problem or id(each) in kept]
    lines = [_styled(HEADING, is_terminal, bold=True)]
    lines += [line for each in shown for line in _reference_lines(each, places, is_terminal)]
    if rest := len(ordered) - len(shown):
        lines.append(
            _styled(f"… and {rest} more (`recto conversations show` or /references all)", is_terminal, dim=True)
        )
    return lines


def _reference_lines(each: DocumentReference, places: Mapping[str, Path], is_terminal: bool) -> Iterator[str]:
    wikilink = show.shortened(each.wikilink, SUMMARY_WIDTH)
    if each.problem:
        where = f"  {in_one_line(each.relative_path)}" if each.relative_path else ""
        told = f"⚠ {wikilink}{where}  {show.shortened(each.problem, SUMMARY_WIDTH)}"
        yield _styled(told, is_terminal, fg="yellow")
        return
    assert each.relative_path is not None
    # a search gives a snippet, reading gives all
    how = f"  ({'found' if each.context_snippet else 'read'})" if each.reference_type == "search" else ""
    place = places.get(each.relative_path)
    is_linked = is_terminal and place is not None and place.is_absolute()
    path = to_file(each.relative_path, place or Path(), is_terminal=is_linked)
    yield f"• {_styled(wikilink, is_terminal, bold=True)}  {path}{_styled(how, is_terminal, dim=True) if how else ''}"
    if said := each.summary or each.context_snippet:
        yield _styled(f"  {show.shortened(said, SUMMARY_WIDTH)}", is_terminal, dim=True)


def _styled(text: str, is_terminal: bool, **style: Any) -> str:
    return click.style(text, **style) if is_terminal else text


# -- quotes


def quotes_shown(event: NotesQuoted, *, is_terminal: bool) -> list[str]:
    """A heading, the quotes with the answering sentence in bold, and a word about what follows; on a terminal with
    links to the files."""
    lines = [_styled(QUOTES, is_terminal, bold=True)] if event.quotes else []
    lines += [_quote_line(each, Path(event.vault), is_terminal) for each in event.quotes]
    if event.tiny_model:
        lines.append(_styled(TINY.format(model=show.visible(event.tiny_model)), is_terminal, dim=True))
    return lines


def _quote_line(quote: Quote, root: Path, is_terminal: bool) -> str:
    link = show.shortened(quote.wikilink, LONGEST_HEADING)
    is_told = quote.heading.casefold() in quote.wikilink.casefold()
    heading = "" if is_told else f" › {show.shortened(quote.heading, LONGEST_HEADING)}"
    sentence, more = show.shortened(quote.sentence, SNIPPET_WIDTH), show.shortened(quote.more, SUMMARY_WIDTH)
    shown = to_file(link, root / quote.relative_path, is_terminal=is_terminal) if root.is_absolute() else link
    return f"• {shown}{heading}: {_styled(sentence, is_terminal, bold=True)}{f' {more}' if more else ''}"


# -- search hits


def found_to_json(found: "FoundMessage") -> dict[str, Any]:
    told = wire.fields_to_json(found, "conversation", "title", "place", "score", "because")
    told |= wire.fields_to_json(found.message, "id", "role", "text", "created", "status") | {
        "number": found.message.said
    }
    return told | {"passage": wire.fields_to_json(found, "text", "start", "end")}


def hit_lines(found: "FoundMessage", wanted: str) -> tuple[str, str]:
    """The message, and the passage with the searched words in bold. A message on another branch also gets its id, since
    numbers name messages of the current path."""
    message = found.message
    title = f" ({show.shortened(found.title, 40)})" if found.title else ""
    which = f"#{message.said} in conversation #{found.conversation_number}{title}"
    when = show.when(message.time) if message.time else ""
    facts = [which, when, message.role, PLACES[found.place].format(id=message.id)]
    head = click.style("  ".join(filter(None, facts)), dim=True)
    return head, f"  {bold(*snippet_around(found.text, wanted))}"


def snippet_around(text: str, wanted: str) -> tuple[str, list[Span]]:
    """The part of a passage with most of the words, on one line, and their places in it."""
    line = " ".join(show.visible(text).split())
    places = sorted(_places(line, wanted))
    start = _start(line, places)
    part = line[start : start + SNIPPET_WIDTH]
    before, after = "…" if start else "", "…" if start + SNIPPET_WIDTH < len(line) else ""
    moved = [(first - start + len(before), last - start + len(before)) for first, last in places]
    return before + part + after, [span for span in moved if span[0] >= 0 and span[1] <= len(before + part)]


def _places(line: str, wanted: str) -> Iterator[Span]:
    """The places of the words, with any ending of up to three letters."""
    # folded like the index, but character by character, to keep places
    plain = "".join(unicodedata.normalize("NFC", normalize_text(sign).strip())[:1] or " " for sign in line)
    for term in query_terms(wanted):
        word = term.removesuffix("*")
        stem = re.escape(word[: max(LEAST, len(word) - ENDING)])
        ending = rf"\b{stem}\w{{0,{2 * ENDING}}}\b" if word.isascii() else re.escape(word)
        yield from (found.span() for found in re.finditer(ending, plain))


def _start(line: str, places: list[Span]) -> int:
    """A little before the place that most others follow closely."""
    if len(line) <= SNIPPET_WIDTH or not places:
        return 0
    room = SNIPPET_WIDTH - AHEAD
    best = max(places, key=lambda span: sum(span[0] <= first < span[0] + room for first, _ in places))
    start = max(0, min(best[0] - AHEAD, len(line) - SNIPPET_WIDTH))
    return line.find(" ", start, best[0]) + 1 or start if start else 0


def bold(line: str, spans: list[Span]) -> str:
    out, at = "", 0
    for first, last in spans:
        if first >= at:
            out += line[at:first] + click.style(line[first:last], bold=True)
            at = last
    return out + line[at:]
