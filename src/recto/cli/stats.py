"""Numbers over a conversation: what was said on its path, what was sent in all its branches, what that cost."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from recto.cli.show import counted
from recto.errors import RectoError

if TYPE_CHECKING:
    from recto.desk import Desk, Talk
    from recto.providers.model import Prices

USAGE = ("input", "output", "cache_read", "cache_write")
PRICE_UNIT = 1_000_000


def gather(desk: "Desk", talk: "Talk") -> dict[str, Any]:
    said = _said(talk)
    usage: dict[str, Counter[str]] = {}
    requests = desk.store.records.ids(talk.id)
    for id in requests:
        record = desk.record(id)
        usage.setdefault(record.account.get("model", "unknown"), Counter()).update(_usage(record.outcome))
    costs = {model: _cost(desk, model, spent) for model, spent in usage.items()}
    known = [cost for cost in costs.values() if cost is not None]
    totals = sum(usage.values(), Counter[str]())
    return {
        "conversation": talk.id,
        **said,
        "requests": len(requests),
        "usage": {name: totals[name] for name in USAGE},
        "cost_usd": round(sum(known), 6) if known else None,
        "models": [
            {"model": model, **{name: spent[name] for name in USAGE}, "cost_usd": costs[model]}
            for model, spent in usage.items()
        ],
    }


def _said(talk: "Talk") -> dict[str, Any]:
    covered = talk.covered()
    roles: Counter[str] = Counter()
    tokens = compactions = archived = 0
    for message in talk.path():
        if message.compaction:
            compactions += 1
            continue
        roles[message.role] += 1
        tokens += message.tokens.own or 0
        archived += not covered.active(message)
    return {
        "messages": roles.total(),
        "roles": dict(sorted(roles.items())),
        "tokens": tokens,
        "compactions": compactions,
        "archived": archived,
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
    usage = numbers["usage"]
    yield "conversation", numbers["conversation"]
    yield "messages", f"{numbers['messages']:,} ({roles})" if roles else "none"
    yield "tokens said", f"{numbers['tokens']:,}"
    yield "archived", f"{counted(numbers['archived'], 'message')} by {counted(numbers['compactions'], 'compaction')}"
    yield "requests", f"{numbers['requests']:,}"
    yield "tokens sent", f"{usage['input']:,} ({usage['cache_read']:,} read from caches), {usage['output']:,} came back"
    cost = numbers["cost_usd"]
    yield "cost", "unknown: no prices" if cost is None else f"${cost:.4f}"
