"""Numbers over a conversation: what was said on its path, what was sent in all its branches, what that cost."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from recto.cli.show import counted
from recto.errors import RectoError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recto.chat.blocks import Compaction
    from recto.desk import Desk
    from recto.providers.model import Prices
    from recto.store.records import Record
    from recto.talk import Talk

USAGE = ("input", "output", "cache_read", "cache_write")
PRICE_UNIT = 1_000_000
MAKE_ROOM = ("compact", "clear")
"""What is done to a window to make it smaller; pins, edits and what is taken back are the other actions."""


def gather(desk: "Desk", talk: "Talk") -> dict[str, Any]:
    records = [desk.record(id) for id in desk.store.records.ids(talk.id)]
    spent = [Spent.of(record) for record in records]
    summaries = [each for each in spent if each.purpose == "summary"]
    return {
        "conversation": talk.id,
        **_said(talk),
        **_window(desk, talk),
        **_totals(desk, spent),
        "recalled": _recalled(records),
        "models": _by_model(desk, spent),
        "summaries": _totals(desk, summaries),
    }


@dataclass(frozen=True, slots=True)
class Spent:
    """What one request took; a summary has no reply, and its usage is in its own record."""

    purpose: str
    model: str
    usage: Counter[str]

    @classmethod
    def of(cls, record: "Record") -> Self:
        return cls(record.purpose, record.account.get("model", "unknown"), Counter(_usage(record.outcome)))


def _totals(desk: "Desk", spent: "Sequence[Spent]") -> dict[str, Any]:
    models = _by_model(desk, spent)
    known = [model["cost_usd"] for model in models if model["cost_usd"] is not None]
    return {
        "requests": len(spent),
        "usage": {name: sum(each.usage[name] for each in spent) for name in USAGE},
        "cost_usd": round(sum(known), 6) if known else None,
    }


def _by_model(desk: "Desk", spent: "Sequence[Spent]") -> list[dict[str, Any]]:
    usage: dict[str, Counter[str]] = {}
    for each in spent:
        usage.setdefault(each.model, Counter()).update(each.usage)
    return [
        {"model": model, **{name: total[name] for name in USAGE}, "cost_usd": _cost(desk, model, total)}
        for model, total in usage.items()
    ]


def _recalled(records: "Sequence[Record]") -> dict[str, int]:
    """How often archived messages came back by themselves, and what they took."""
    sections = [section for record in records for section in record.account.get("sections", ())]
    picks = [section["picks"] for section in sections if section["name"] == "recalled"]
    tokens = sum(pick["tokens"] for some in picks for pick in some)
    return {
        "requests": len(picks),
        "messages": len({pick["name"] for some in picks for pick in some}),
        "tokens": tokens,
    }


def _window(desk: "Desk", talk: "Talk") -> dict[str, Any]:
    """How full the window is now; without the model nobody can say, and everything else is told all the same."""
    try:
        ready = desk.run(desk.engine.ready(talk.standing))
        window = talk.window()
    except RectoError as why:
        return {"strategy": talk.strategy, "window": None, "window_error": why.message}
    size = {"size": window.total, "limit": window.limit, "percent": round(100 * window.total / window.limit, 1)}
    due = ready.budget.due if ready.budget.trigger else None
    at = {"trigger": due, "low_water": ready.budget.low_water, "compacts": window.plan.cut is not None}
    return {"strategy": ready.strategy, "window": size | at}


def _said(talk: "Talk") -> dict[str, Any]:
    covered, block = talk.covered(), talk.compaction()
    roles: Counter[str] = Counter()
    priorities: Counter[int] = Counter()
    blocks: list[Compaction] = []
    tokens = archived = 0
    for message in talk.path():
        if message.compaction:
            blocks.append(message.compaction)
            continue
        roles[message.role] += 1
        priorities[message.priority] += 1
        tokens += message.tokens.own or 0
        archived += not covered.active(message)
    return {
        "messages": roles.total(),
        "roles": dict(sorted(roles.items())),
        "tokens": tokens,
        **_compactions(blocks),
        "archived": archived,
        "active": roles.total() - archived,
        "pinned": len(block.pinned) if block else 0,
        "priorities": {str(priority): priorities[priority] for priority in sorted(priorities)},
    }


def _compactions(blocks: "Sequence[Compaction]") -> dict[str, Any]:
    """All of them, those that made room by who wrote their summaries, and what the user did besides."""
    made = [block for block in blocks if block.action in MAKE_ROOM]
    return {
        "compactions": len(blocks),
        "made_by": dict(Counter(block.made_by for block in made)),
        "actions": dict(Counter(block.action for block in blocks)),
        "freed": sum(block.context_size_before - block.context_size_after for block in made),
    }


def _usage(outcome: dict[str, Any]) -> dict[str, int]:
    reported = outcome.get("usage") or {}
    return {name: reported.get(name, 0) for name in USAGE}


def _cost(desk: "Desk", model: str, spent: "Counter[str]") -> float | None:
    """US dollars; None where the prices are unknown, or the model is no longer to be had."""
    try:
        prices = desk.model(model).prices
    except RectoError:
        return None
    return priced(prices, spent) if prices else None


def priced(prices: "Prices", spent: "Counter[str]") -> float | None:
    if prices.input is None or prices.output is None:
        return None
    fresh = spent["input"] - spent["cache_read"] - spent["cache_write"]
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    cost = (
        fresh * prices.input
        + spent["cache_read"] * read
        + spent["cache_write"] * write
        + spent["output"] * prices.output
    )
    return cost / PRICE_UNIT


def in_words(numbers: dict[str, Any]) -> Iterator[tuple[str, str]]:
    roles = ", ".join(f"{count:,} {role}" for role, count in numbers["roles"].items())
    yield "conversation", numbers["conversation"]
    yield "messages", f"{numbers['messages']:,} ({roles})" if roles else "none"
    yield "tokens said", f"{numbers['tokens']:,}"
    yield "window", _window_in_words(numbers)
    yield "strategy", numbers["strategy"] or "unknown"
    yield "archived", f"{counted(numbers['archived'], 'message')}; {numbers['active']:,} active"
    yield "compactions", _compactions_in_words(numbers)
    yield "pinned", f"{numbers['pinned']:,}"
    yield "priorities", ", ".join(f"{count:,} of {priority}" for priority, count in numbers["priorities"].items())
    yield "requests", f"{numbers['requests']:,}"
    yield "tokens sent", _usage_in_words(numbers)
    yield "cost", _cost_in_words(numbers)
    yield "recalled", _recalled_in_words(numbers["recalled"])
    if of_these := numbers["summaries"]["requests"]:
        sent, cost = _usage_in_words(numbers["summaries"]), _cost_in_words(numbers["summaries"])
        yield "for summaries", f"{counted(of_these, 'request')} of these, {sent}; {cost}"


def _window_in_words(numbers: dict[str, Any]) -> str:
    window = numbers["window"]
    if window is None:
        return f"unknown: {numbers['window_error']}"
    if window["compacts"]:
        return f"about {window['size']:,} of {window['limit']:,} tokens, once the next message has compacted it"
    due = f"compacted at {window['trigger']:,} to {window['low_water']:,}" if window["trigger"] else "never compacted"
    return f"{window['size']:,} of {window['limit']:,} tokens ({window['percent']:.0f} %), {due}"


def _compactions_in_words(numbers: dict[str, Any]) -> str:
    made = ", ".join(f"{count:,} {by}" for by, count in numbers["made_by"].items())
    besides = [f"{count:,} {action}" for action, count in numbers["actions"].items() if action not in MAKE_ROOM]
    done = f"{made} ({numbers['freed']:,} tokens freed)" if made else "none"
    return "; ".join((done, ", ".join(besides))) if besides else done


def _usage_in_words(numbers: dict[str, Any]) -> str:
    usage = numbers["usage"]
    return f"{usage['input']:,} ({usage['cache_read']:,} read from caches), {usage['output']:,} came back"


def _recalled_in_words(recalled: dict[str, int]) -> str:
    if not recalled["requests"]:
        return "nothing"
    messages, requests = counted(recalled["messages"], "archived message"), counted(recalled["requests"], "request")
    return f"{messages} in {requests}, {recalled['tokens']:,} tokens in all"


def _cost_in_words(numbers: dict[str, Any]) -> str:
    cost = numbers["cost_usd"]
    return "unknown: no prices" if cost is None else f"${cost:.4f}"
