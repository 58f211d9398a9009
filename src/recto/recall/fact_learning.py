"""Learning by itself: after a reply, what the user said of lasting things becomes facts, or is proposed."""

import asyncio
import logging
from collections.abc import AsyncGenerator

from recto.chat.message import Message
from recto.concurrency import StoreThread
from recto.errors import RectoError
from recto.events import Event, FactLearned, FactProposed, Noticed, Unanswered
from recto.memory.learning import learnable
from recto.recall.fact_memory import FactMemory, is_told_by
from recto.settings import ContextSettings
from recto.store.store import Store
from recto.turn.assembly import Turn
from recto.turn.session import ChatSession

log = logging.getLogger(__name__)

ASK, ON = "ask", "on"
LEARNED_BY = "Recto"
CONFIDENCE = 0.8
"""Nobody asked for it to be remembered."""


async def learn_from(
    memory: FactMemory,
    store: Store,
    store_thread: StoreThread,
    session: ChatSession,
    message: Message,
    turn: Turn,
    *,
    can_ask: bool,
) -> AsyncGenerator[Event, None]:
    """Learns from the message of a turn that is over, as the settings say. Nothing that goes wrong here ends a turn."""
    settings = turn.context.settings
    if not _may_learn(settings, can_ask):
        return
    statements = [text for text in learnable(message.text) if not is_told_by(text, _sources(turn), [])]
    for text in statements:
        if settings.learn_facts == ASK and not await asyncio.to_thread(_is_news, memory, text):
            continue
        if settings.learn_facts == ASK:
            proposed = FactProposed(text)
            yield proposed
            if not await _accepted(proposed):
                continue
        try:
            learned = await asyncio.to_thread(
                memory.learn,
                text,
                learned_by=LEARNED_BY,
                conversation=session.conversation,
                message=message.id,
                confidence=CONFIDENCE,
            )
            await store_thread.do(store.tree.learn, message.id, [str(learned.fact.number)])
        except RectoError as why:
            yield Noticed(f"not remembered: {why.message}")
            return
        except Exception as why:  # the reply is there, whatever goes wrong here
            log.exception("learning from a message failed")
            yield Noticed(f"nothing was remembered ({type(why).__name__}: {why})")
            return
        if learned.is_new:
            yield FactLearned(learned.fact.number, learned.fact.text)


def _may_learn(settings: ContextSettings, can_ask: bool) -> bool:
    if not (settings.memory_integration and settings.use_facts):
        return False
    return settings.learn_facts == ON or (settings.learn_facts == ASK and can_ask)


def _sources(turn: Turn) -> list[str]:
    """What the window told that the user did not say: rules, memory, documents, facts."""
    instructed = turn.preamble.instructed
    texts = [each.text for each in (*instructed.rules, *instructed.references, *instructed.memory)]
    return [*texts, *(item.text for item, _ in turn.current.inserts)]


def _is_news(memory: FactMemory, text: str) -> bool:
    try:
        return memory.known(text) is None
    except RectoError:
        return True


async def _accepted(proposed: FactProposed) -> bool:
    try:
        return await proposed.answered()
    except Unanswered:
        return False
