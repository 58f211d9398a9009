"""Statistics and costs in words: of a conversation, of today, by model or day, with the user's limits."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from recto.base.text import dollars
from recto.cli.show import counted, shortened

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.reports.conversation_stats import ConversationStats, RequestTotals, RequestUse
    from recto.settings.settings import SpendSettings
    from recto.store.spending import Spent, SpentBy, TokenUse

UNKNOWN_COST = "price unknown"
# Only this many conversations are named by number and title, older ones by id.
LISTED, LONGEST_TITLE = 1000, 24
PURPOSES = {
    "reply": "replies",
    "summary": "summaries",
    "ahead": "summaries written ahead",
    "gist": "lines about documents",
    "facts": "proposals of facts",
    "passthrough": "requests passed through",
    "embeddings": "embeddings of clients",
}


# -- costs


def spent_in_words(spent: "Spent", limit: float = 0.0) -> str:
    """$0.42 of $1.00, 12 requests; the price of 2 is unknown"""
    if spent.unpriced == spent.requests > 0:
        return f"{UNKNOWN_COST}, {counted(spent.requests, 'request')}"
    of = f" of {dollars(limit)}" if limit else ""
    told = [f"{dollars(spent.cost_usd)}{of}, {counted(spent.requests, 'request')}"]
    if spent.unpriced:
        told.append(f"the price of {spent.unpriced:,} is unknown, and not in the sum")
    if spent.open_usd:
        told.append(f"up to {dollars(spent.open_usd)} more for what has not ended")
    return "; ".join(told)


def cost_lines(talk: "Talk", desk: "Desk") -> Iterator[tuple[str, str]]:
    """The cost of a conversation, by purpose and model if it had several, and of the day."""
    limits = talk.settings.spend
    if talk.id is not None:
        (whole,) = desk.spending("total", conversation=talk.id)
        yield talk.name, spent_in_words(whole, limits.conversation)
        groups: tuple[SpentBy, ...] = ("model", "purpose")
        for by in groups:
            parts = desk.spending(by, conversation=talk.id)
            for each in parts if len(parts) > 1 else ():
                yield f"  {PURPOSES.get(each.name, each.name)}", spent_in_words(each)
    (today,) = desk.spending("total", since=date.today())
    yield "today", spent_in_words(today, limits.day)


def status_of_cost(talk: "Talk", desk: "Desk") -> str:
    """The status line's cost; empty if nothing was spent and no limit is set."""
    limits, told = talk.settings.spend, []
    (spent,) = desk.spending("total", conversation=talk.id) if talk.id is not None else (None,)
    if spent and (spent.cost_usd or spent.unpriced or limits.conversation):
        known = dollars(spent.cost_usd) if spent.cost_usd or not spent.unpriced else ""
        unknown = UNKNOWN_COST if spent.unpriced else ""
        of = f" of {dollars(limits.conversation)}" if limits.conversation and known else ""
        told.append(" + ".join(filter(None, (known + of, unknown))))
    if limits.day:
        (today,) = desk.spending("total", since=date.today())
        told.append(f"today {dollars(today.cost_usd)} of {dollars(limits.day)}")
    return ", ".join(told)


def cost_table(
    desk: "Desk", by: "SpentBy", groups: "Sequence[Spent]", total: "Spent", tokens: "Sequence[TokenUse]"
) -> Iterator[tuple[str, str]]:
    used = {each.name: tokens_in_words(each) for each in tokens}
    titles = {each.id: each for each in desk.conversations(limit=LISTED)} if by == "conversation" else {}
    for each in groups:
        known = titles.get(each.name)
        name = (
            shortened(f"#{known.number} {known.title}", LONGEST_TITLE) if known else PURPOSES.get(each.name, each.name)
        )
        yield name, "; ".join(filter(None, (spent_in_words(each), used.get(each.name, ""))))
    yield "in all", "; ".join(filter(None, (spent_in_words(total), used.get("", ""))))


def tokens_in_words(used: "TokenUse") -> str:
    """12,000 tokens in (40 % from a cache), 800 out"""
    if not used.input and not used.output:
        return ""
    cached = f" ({used.cache_read / used.input:.0%} from a cache)" if used.cache_read and used.input else ""
    return f"{used.input:,} tokens in{cached}, {used.output:,} out"


def costs_to_json(
    by: "SpentBy", groups: "Sequence[Spent]", total: "Spent", limits: "SpendSettings", tokens: "Sequence[TokenUse]"
) -> dict[str, Any]:
    caps = {"conversation": limits.conversation, "day": limits.day}
    used = {each.name: {"input": each.input, "output": each.output, "cache_read": each.cache_read} for each in tokens}
    told = [each.to_json() | used.get(each.name, {}) for each in groups]
    return {"by": by, "total": total.to_json() | used.get("", {}), "groups": told, "limits": caps}


# -- statistics


def use_in_lines(uses: "Sequence[RequestUse]") -> Iterator[str]:
    """A line for each reply: fill of the window, tokens, cost, and the compaction before it."""
    for each in uses:
        cost = "" if each.usage.cost_usd is None else dollars(each.usage.cost_usd)
        cached = f"{each.usage.cache_read:,} cached" if each.usage.cache_read else ""
        compacted = f"compaction {each.compaction}" if each.compaction else ""
        beside = " · ".join(filter(None, (cached, cost, compacted)))
        share = each.tokens / each.limit if each.limit else 0
        yield f"#{each.number:<5}{share:>4.0%} {each.tokens:>9,}  {beside}".rstrip()


def stats_in_words(name: str, stats: "ConversationStats") -> Iterator[tuple[str, str]]:
    """`name` is the conversation's number or title."""
    from recto.reports.conversation_stats import MAKE_ROOM  # statistics: windows do without

    said, window = stats.said, stats.window
    roles = ", ".join(f"{count:,} {role}" for role, count in said.roles.items())
    yield "conversation", name.removeprefix("conversation ")
    yield "messages", f"{said.messages:,} ({roles})" if roles else "none"
    yield "tokens said", f"{said.tokens:,}"
    if window is None:
        yield "window", f"unknown: {stats.window_error}"
    elif window.compacts:
        yield "window", f"about {window.size:,} of {window.limit:,} tokens, once the next message has compacted it"
    else:
        due = f"compacted at {window.trigger:,} to {window.low_water:,}" if window.trigger else "never compacted"
        yield "window", f"{window.size:,} of {window.limit:,} tokens ({window.percent:.0f} %), {due}"
    yield "strategy", stats.strategy or "unknown"
    yield "archived", f"{counted(said.archived, 'message')}; {said.active:,} active"
    made = ", ".join(f"{count:,} {by}" for by, count in said.made_by.items())
    others = ", ".join(f"{count:,} {action}" for action, count in said.actions.items() if action not in MAKE_ROOM)
    yield "compactions", "; ".join(filter(None, (f"{made} ({said.freed:,} tokens freed)" if made else "none", others)))
    yield "requests", f"{stats.totals.requests:,}"
    yield "tokens sent", _usage(stats.totals)
    yield "cost", _cost(stats.totals)
    if of_these := stats.summaries.requests:
        sent, cost = _usage(stats.summaries), _cost(stats.summaries)
        yield "summaries", f"{counted(of_these, 'request')} of these, {sent}; {cost}"


def _usage(totals: "RequestTotals") -> str:
    usage = totals.usage
    return f"{usage['input']:,} ({usage['cache_read']:,} read from caches), {usage['output']:,} came back"


def _cost(totals: "RequestTotals") -> str:
    if totals.cost_usd is None:
        return "unknown: no prices" if totals.requests else dollars(0)
    missing = f", without {counted(totals.unpriced, 'request')} of unknown price" if totals.unpriced else ""
    return dollars(totals.cost_usd) + missing
