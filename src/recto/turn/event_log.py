"""What the log says of events: one line for each at the level INFO, and its texts at DEBUG."""

import logging

from recto.events import (
    Appended,
    ApprovalAsked,
    Branched,
    CompactionProposed,
    ContextCompacted,
    ContextUsage,
    Event,
    NotesQuoted,
    Noticed,
    PlanChanged,
    Referenced,
    Replied,
    Retrying,
    RunEnded,
    Sent,
    SummaryRequested,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)

# without a handler Python would print our logged tracebacks to stderr
logging.getLogger("recto").addHandler(logging.NullHandler())
log = logging.getLogger("recto.events")
# without a handler Python would print our logged tracebacks to stderr
logging.getLogger("recto").addHandler(logging.NullHandler())


def log_event(event: Event) -> None:
    # called for every piece of a reply
    if isinstance(event, TextDelta | ThinkingDelta) or not log.isEnabledFor(logging.WARNING):
        return
    if isinstance(event, Retrying):
        log.warning("attempt %d failed; trying again in %g s", event.number, event.wait_s)
    elif words := _in_words(event):
        log.info("%s", words)
    if log.isEnabledFor(logging.DEBUG) and (said := _said(event)):
        log.debug("%s: %s", type(event).__name__, said)


def _in_words(event: Event) -> str:
    match event:
        case Appended(message=message):
            return f"message #{message.said} stored as {message.id}" + (" on a new branch" if event.branched else "")
        case Sent(request=request, window=window):
            return f"request {request} sent to {window.model}: {window.total:,} of {window.limit:,} tokens"
        case Replied(message=message):
            usage = message.usage
            counts = f": {usage.input:,} tokens in, {usage.output:,} out" if usage else ""
            return f"reply #{message.said} stored as {message.id}{counts}"
        case ToolStarted(call=call):
            return f"tool {call.name} started"
        case ToolFinished(call=call, result=result):
            end = "failed" if result.is_error else "finished"
            return f"tool {call.name} {end}: {len(result.text):,} characters"
        case ApprovalAsked(call=call):
            return f"asking the user whether tool {call.name} may run"
        case CompactionProposed():
            return "asking the user about a compaction"
        case SummaryRequested():
            return f"asking {event.model} for a summary of {event.size:,} tokens, part {event.part} of {event.of}"
        case ContextCompacted():
            sizes = f"{event.context_size_before:,} to {event.context_size_after:,} tokens"
            archived = f"{event.messages_archived} messages archived"
            return f"compaction {event.compaction_number} by {event.made_by}: {archived}, {sizes}"
        case PlanChanged(plan=plan):
            return f"step {event.step} of {event.max_steps}: {plan.in_words}"
        case RunEnded(report=report):
            return f"run {report.run} ended after {report.steps} steps: {report.outcome}"
        case _:
            return ""


def _said(event: Event) -> str:
    """The texts of an event."""
    match event:
        case Appended(message=message) | Replied(message=message):
            return message.text
        case Noticed(text=text) | Branched(text=text):
            return text
        case Referenced(message=message):
            return ", ".join(each.relative_path or each.wikilink for each in message.references)
        case NotesQuoted(quotes=quotes):
            return "\n".join(f"{each.relative_path}:{each.line} {each.sentence}" for each in quotes)
        case Retrying(error=error):
            return error
        case ToolStarted(call=call):
            return f"{call.name} {call.arguments}"
        case ToolFinished(call=call, result=result):
            return f"{call.name} → {result.text}"
        case ContextCompacted(summary=summary, notes=notes):
            return "\n".join((summary, *notes))
        case ContextUsage(size=size, limit=limit):
            return f"{size:,} of {limit:,} tokens"
        case _:
            return ""
