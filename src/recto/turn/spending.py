"""What a call may cost and did cost, and the user's limits, which stop a call before it is made."""

from msgspec.structs import replace

from recto.chat.message import Usage
from recto.errors import SpendLimit
from recto.providers.model import Model
from recto.settings import SpendSettings
from recto.store.spending import Spent, today
from recto.store.store import Store
from recto.tasks.run import TaskRun
from recto.text import dollars
from recto.window.request import Request

# For replies that broke off: their provider reports no usage, and there is no time to count.
CHARACTERS_PER_TOKEN = 4
CONVERSATION = "spend.conversation"
MAX_COST = "--max-cost"


def is_priced(model: Model) -> bool:
    return model.prices is not None and model.prices.are_known


def priced(model: Model, usage: Usage) -> Usage:
    """The usage with what it cost at the model's prices of now."""
    return replace(usage, cost_usd=model.prices.cost(usage)) if model.prices else usage


def broken_off(model: Model, tokens: int, text: str) -> Usage:
    """Our estimate for a call that broke off while it was answered: its input, and the output that came."""
    return priced(model, Usage(tokens, len(text) // CHARACTERS_PER_TOKEN, reported=False))


def at_most(model: Model, tokens: int, longest_reply: int) -> float | None:
    """The most that a call can cost, in US dollars; None where the price is not known."""
    output = min(longest_reply, model.max_output or longest_reply)
    return model.prices.at_most(tokens, output) if model.prices else None


def check_limits(store: Store, limits: SpendSettings, request: Request, run: TaskRun | None = None) -> None:
    """Raises SpendLimit where the request could cost more than is left, also of what its run may cost.

    In the transaction that stores the request: requests that have not ended count with the most that they can cost, so
    that turns which run at the same time share what is left."""
    most = request.at_most_usd
    if not most:
        return
    if run and run.max_cost is not None:
        _check_run(store.spending.of_messages(run.messages), most, run.max_cost)
    if limits.conversation:
        spent = store.spending.total(request.conversation)
        _check(spent, most, limits.conversation, CONVERSATION, "this conversation")
    if limits.day:
        _check(store.spending.total(since=today()), most, limits.day, "spend.day", "today")


def _check_run(spent: Spent, most: float, limit: float) -> None:
    before = spent.cost_usd + spent.open_usd
    if before + most > limit:
        told = f"of the {dollars(limit)} for this run ({MAX_COST}) {dollars(before)} is spent"
        why = f"the next call could cost {dollars(most)}, and {told}"
        raise SpendLimit(why, at_most=most, spent=before, limit=limit, key=MAX_COST)


def _check(spent: Spent, most: float, limit: float, key: str, whose: str) -> None:
    before = spent.cost_usd + spent.open_usd
    if before + most <= limit:
        return
    # a conversation's own limit wins over the user's
    group = "context" if key == CONVERSATION else "config"
    raise SpendLimit(
        f"this call could cost {dollars(most)}, and of the {dollars(limit)} for {whose} ({key}) {dollars(before)} "
        f"is spent; `recto {group} set {key} AMOUNT` raises that, and a shorter reply (reply.max_tokens) or another "
        "model costs less",
        at_most=most,
        spent=before,
        limit=limit,
        key=key,
    )
