"""Statistics of a conversation in words."""

from collections.abc import Iterator

from recto.cli.show import counted
from recto.reports.conversation_stats import MAKE_ROOM, ConversationStats, RecallStats, RequestTotals, SaidStats


def stats_in_words(name: str, stats: ConversationStats) -> Iterator[tuple[str, str]]:
    """`name` is what people call the conversation."""
    said = stats.said
    roles = ", ".join(f"{count:,} {role}" for role, count in said.roles.items())
    yield "conversation", name.removeprefix("conversation ")
    yield "messages", f"{said.messages:,} ({roles})" if roles else "none"
    yield "tokens said", f"{said.tokens:,}"
    yield "window", _window(stats)
    yield "strategy", stats.strategy or "unknown"
    yield "archived", f"{counted(said.archived, 'message')}; {said.active:,} active"
    yield "compactions", _compactions(said)
    yield "pinned", f"{said.pinned:,}"
    yield "priorities", ", ".join(f"{count:,} of {priority}" for priority, count in said.priorities.items())
    yield "requests", f"{stats.totals.requests:,}"
    yield "tokens sent", _usage(stats.totals)
    yield "cost", _cost(stats.totals)
    yield "recalled", _recalled(stats.recalled)
    if of_these := stats.summaries.requests:
        sent, cost = _usage(stats.summaries), _cost(stats.summaries)
        yield "for summaries", f"{counted(of_these, 'request')} of these, {sent}; {cost}"


def _window(stats: ConversationStats) -> str:
    window = stats.window
    if window is None:
        return f"unknown: {stats.window_error}"
    if window.compacts:
        return f"about {window.size:,} of {window.limit:,} tokens, once the next message has compacted it"
    due = f"compacted at {window.trigger:,} to {window.low_water:,}" if window.trigger else "never compacted"
    return f"{window.size:,} of {window.limit:,} tokens ({window.percent:.0f} %), {due}"


def _compactions(said: SaidStats) -> str:
    made = ", ".join(f"{count:,} {by}" for by, count in said.made_by.items())
    others = [f"{count:,} {action}" for action, count in said.actions.items() if action not in MAKE_ROOM]
    done = f"{made} ({said.freed:,} tokens freed)" if made else "none"
    return "; ".join((done, ", ".join(others))) if others else done


def _usage(totals: RequestTotals) -> str:
    usage = totals.usage
    return f"{usage['input']:,} ({usage['cache_read']:,} read from caches), {usage['output']:,} came back"


def _recalled(recalled: RecallStats) -> str:
    if not recalled.requests:
        return "nothing"
    messages, requests = counted(recalled.messages, "archived message"), counted(recalled.requests, "request")
    return f"{messages} in {requests}, {recalled.tokens:,} tokens in all"


def _cost(totals: RequestTotals) -> str:
    return "unknown: no prices" if totals.cost_usd is None else f"${totals.cost_usd:.4f}"
