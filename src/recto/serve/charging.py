"""The maximum and actual cost of calls that are passed on.

The bound is written before the call, in the transaction that checks the limits, and settled with the cost after it.
Managed requests do the same in `turn/spending.py`.
"""

import asyncio
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.message import Usage
from recto.errors import Invalid, SpendLimit
from recto.providers.client_formats import body_members, body_tokens, is_measured
from recto.providers.http import BAD_DATA
from recto.providers.model import Model, reported_count
from recto.settings.settings import SpendSettings
from recto.store.store import Store
from recto.turn.spending import (
    LARGEST_REPLY,
    SpendCap,
    check_cap,
    check_day,
    is_priced,
    largest_reply,
    priced,
    shorter_reply,
)
from recto.window.request import Format
from recto.wire import Json, loads

MOST_REPLIES = 128
LENGTHS = ("max_tokens", "max_completion_tokens")
# Tiers that cost no more than the known prices.
USUAL_TIERS = (None, "auto", "default", "flex", "standard_only")
OWN_TOOLS = (None, "function", "custom")
"""Types of tools that the client runs itself."""
EMBEDDING_FIELDS = frozenset(
    {"model", "input", "dimensions", "encoding_format", "user", "output_dimension", "output_dtype", "input_type"}
)


class CallBound(Struct, frozen=True):
    """The maximum cost of a call: its input, and its replies at their longest."""

    model: Model
    tokens: int
    longest: int
    """Of one reply."""
    replies: int = 1
    is_given: bool = True
    """True if the client limits the length of a reply."""

    @property
    def most(self) -> float | None:
        """US dollars; None if the price is unknown."""
        prices = self.model.prices
        longest = min(self.longest, self.model.max_output or self.longest)
        return prices.at_most(self.tokens, self.replies * longest) if prices else None

    def shorter(self, why: SpendLimit) -> int | None:
        """The reply length that stays within a limit; None if the client set one, or nothing useful fits."""
        return None if self.is_given else shorter_reply(self.model, self.longest, why, self.replies)


async def bound_of(body: bytes, data: Mapping[str, Json], format: Format, model: Model) -> CallBound:
    """The bound of the body as sent; `data` is what the client sent."""
    given = [each for name in LENGTHS if type(each := data.get(name)) is int and each > 0]
    replies = data.get("n")
    if replies is not None and not (type(replies) is int and 1 <= replies <= MOST_REPLIES):
        raise Invalid(f"n must be a whole number from 1 to {MOST_REPLIES}.", field="n")
    longest = max(given) if given else largest_reply(model)
    is_free = not is_priced(model) or not (model.prices and model.prices.at_most(1, 1))
    tokens = 0 if is_free else await asyncio.to_thread(body_tokens, body, format, model)
    if not all(is_measured(each.get("content")) for each in _objects(data.get("messages"))):
        tokens = max(tokens, model.window or LARGEST_REPLY)
    return CallBound(model, tokens, longest, replies or 1, bool(given))


def _objects(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def embedding_bound(body: bytes, model: Model) -> CallBound:
    """Vectors have no price of their own, and no token is shorter than a byte."""
    prices = model.prices
    prices = replace(prices, output=prices.output or 0.0) if prices and prices.input is not None else None
    return CallBound(replace(model, prices=prices), len(body), 0)


def check_fields(key: str, fields: Mapping[str, Json], known: frozenset[str]) -> None:
    """Rejects fields that may raise the price of a call, for a key with a limit. Unknown fields may: some gateways
    accept another model, or a search, in a field of their own."""
    unknown = sorted(set(fields) - known)
    if fields.get("service_tier") not in USUAL_TIERS:
        unknown.append("service_tier")
    if any(each.get("type") not in OWN_TOOLS for each in _objects(fields.get("tools"))):
        unknown.append("tools")
    if unknown:
        raise Invalid(
            f"{unknown[0][:80]} is not allowed here: the key {key} has a spending limit, and the cost of this "
            "cannot be known before the call.",
            field=unknown[0],
        )


def check_members(body: bytes) -> None:
    """Rejects a duplicate field: a provider may read the one that we do not."""
    names = [name for name, _, _ in body_members(body.decode())]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Invalid(f"{twice[:80]} is given twice.", field=twice)


def begin_charge(
    store: Store, owner: str, cap: SpendCap | None, limits: SpendSettings, purpose: str, bound: CallBound
) -> int:
    """Writes the bound of a call outside any conversation; raises SpendLimit if it is too high."""
    with store.database.write():
        if cap:
            check_cap(store, cap, bound.model.name, bound.most)
        check_day(store, limits, bound.most)
        return store.charges.begin(owner, bound.model.name, purpose, bound.most)


class CallCost(Struct, frozen=True):
    cost_usd: float | None
    """None if the price is unknown."""
    usage: Usage | None = None


def embedding_cost(bound: CallBound, answer: bytes) -> CallCost:
    """By the reported usage, else the maximum."""
    try:
        told = loads(answer)["usage"]
        tokens = reported_count(told.get("prompt_tokens") or told.get("total_tokens"))
    except BAD_DATA:
        tokens = None
    if not tokens:
        return CallCost(bound.most)
    usage = Usage(tokens, 0)
    return CallCost(priced(bound.model, usage).cost_usd, usage)
