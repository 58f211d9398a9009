"""The possible and actual cost of calls, and the user's limits, which stop a call before it is made."""

import math

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import dollars
from recto.chat.message import Usage
from recto.errors import Refused, SpendLimit
from recto.providers.catalog import thinks_unseen
from recto.providers.model import MILLION, Model
from recto.settings.settings import SpendSettings
from recto.store.spending import Spent, today
from recto.store.store import Store
from recto.tasks.run import TaskRun
from recto.window.request import Request

# For replies that broke off: their provider reports no usage, and there is no time to count.
CHARACTERS_PER_TOKEN = 4
CONVERSATION = "spend.conversation"
MAX_COST, MAX_STEPS = "--max-cost", "--max-steps"
# Used if a model's longest reply and window are unknown: more than any model writes.
LARGEST_REPLY = 128_000
# A shorter reply is not worth asking for.
SHORTEST_REPLY = 64


class SpendCap(Struct, frozen=True):
    """The most that all calls with one key of the endpoint may cost in a day, in US dollars."""

    key: str
    day: float


def is_priced(model: Model) -> bool:
    return model.prices is not None and model.prices.are_known


def priced(model: Model, usage: Usage) -> Usage:
    """The usage with its cost at the model's current prices."""
    return replace(usage, cost_usd=model.prices.cost(usage)) if model.prices else usage


def broken_off(model: Model, tokens: int, text: str, most: float | None = None) -> Usage:
    """The input, and the output that came; or `most` if the model thinks invisibly, which cannot be counted."""
    usage = priced(model, Usage(tokens, len(text) // CHARACTERS_PER_TOKEN, reported=False))
    return replace(usage, cost_usd=most) if most is not None and thinks_unseen(model.id) else usage


def at_most(model: Model, tokens: int, longest_reply: int) -> float | None:
    """The highest cost in US dollars; None if the price is unknown."""
    output = min(longest_reply, model.max_output or longest_reply)
    return model.prices.at_most(tokens, output) if model.prices else None


def largest_reply(model: Model) -> int:
    return min(model.max_output or LARGEST_REPLY, model.window or LARGEST_REPLY)


def shorter_reply(model: Model, longest: int, why: SpendLimit, replies: int = 1) -> int | None:
    """The longest reply within the limit, in tokens; None if nothing useful fits. `longest`: the length with which the
    call was stopped."""
    dearest = model.prices.dearest_output if model.prices else 0.0
    if not dearest:
        return None
    too_many = math.ceil((why.spent + why.at_most - why.limit) * MILLION / dearest / replies)
    fits = min(longest, model.max_output or longest) - too_many
    return fits if fits >= SHORTEST_REPLY else None


def check_limits(
    store: Store, limits: SpendSettings, request: Request, run: TaskRun | None = None, cap: SpendCap | None = None
) -> None:
    """Raises SpendLimit if the request could cost more than is left, also for its run and its key.

    Runs in the transaction that stores the request: requests in progress count with the most that they can cost, so
    that concurrent turns share the rest."""
    most = request.at_most_usd
    if cap:
        check_cap(store, cap, request.model, most)
    if not most:
        return
    if run and run.max_cost is not None:
        before = _total(store.spending.of_messages(run.messages))
        told = f"of the {dollars(run.max_cost)} for this run ({MAX_COST}) {dollars(before)} is spent"
        _check(before, most, run.max_cost, MAX_COST, f"the next call could cost {dollars(most)}, and {told}")
    if limits.conversation:
        # a conversation's own limit overrides the user's
        spent = store.spending.total(request.conversation)
        _check_setting(spent, most, limits.conversation, CONVERSATION, "this conversation", "context")
    check_day(store, limits, most)


def check_day(store: Store, limits: SpendSettings, most: float | None) -> None:
    """Checks a call that belongs to no conversation."""
    if limits.day and most:
        _check_setting(store.spending.total(since=today()), most, limits.day, "spend.day", "today", "config")


def check_cap(store: Store, cap: SpendCap, model: str, most: float | None) -> None:
    """Raises SpendLimit if a call could cost more than the key may still spend today, and Refused if its cost is
    unknown. Runs in the transaction that stores the call's maximum."""
    if most is None:
        raise unpriced_refusal(cap.key, model)
    before = store.charges.spent_today(cap.key) if most else 0.0
    left = f"{dollars(max(0.0, cap.day - before))} of its {dollars(cap.day)} for today is left"
    why = f"This call could cost {dollars(most)}, and {left} to the key {cap.key}; a smaller max_tokens costs less."
    _check(before, most, cap.day, cap.key, why)


def unpriced_refusal(key: str, model: str) -> Refused:
    refused = Refused(
        f"The key {key} has a spending limit and the price of {model} is unknown. Use another model, or ask the owner "
        "of the server to set `prices` in models.toml."
    )
    refused.sent = False
    return refused


def _total(spent: Spent) -> float:
    return spent.cost_usd + spent.open_usd


def _check(before: float, most: float, limit: float, key: str, why: str) -> None:
    if before + most > limit:
        raise SpendLimit(why, at_most=most, spent=before, limit=limit, key=key)


def _check_setting(spent: Spent, most: float, limit: float, key: str, whose: str, group: str) -> None:
    before = _total(spent)
    why = (
        f"this call could cost {dollars(most)}, and of the {dollars(limit)} for {whose} ({key}) {dollars(before)} "
        f"is spent; `recto {group} set {key} AMOUNT` raises that, and a shorter reply (reply.max_tokens) or another "
        "model costs less"
    )
    _check(before, most, limit, key, why)
