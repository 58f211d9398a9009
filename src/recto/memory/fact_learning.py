"""FactLearner: after a reply, turns lasting statements of the user into facts, or proposes them.

A model selects the sentences in the background; its findings are shown with the next message. It may only point to the
user's sentences, which are kept verbatim. If a sentence cannot be understood alone, the model's wording is used,
provided that every word of it is in the message. Without such a model, or if it fails, rules decide immediately.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.base.concurrency import TaskSet
from recto.chat.message import Message
from recto.errors import RectoError
from recto.events import Event, FactLearned, FactProposed, Noticed, Unanswered
from recto.memory.fact_memory import FactMemory, is_told_by
from recto.memory.frequent_notes import FrequentNotes
from recto.memory.statements import (
    MAX_WORDS,
    UserStatement,
    fact_stems,
    is_negated,
    learnable,
    numbers_in,
    own_statements,
    without_user,
)
from recto.settings.settings import ContextSettings
from recto.store.fact import FACT_KINDS, FactKind
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.emitting import Emit
from recto.turn.planned_request import PlannedRequest
from recto.turn.preamble import build_preamble
from recto.turn.session import ChatSession
from recto.turn.side_call import SideCall, call_model, count_texts
from recto.vault.vault_search import OpenVaults
from recto.window.request import Parameters

log = logging.getLogger(__name__)

ASK, ON = "ask", "on"
LEARNED_BY = "Recto"
CONFIDENCE = 0.8
"""Lower than for facts that the user asked to remember."""
MOST_TOKENS, TIMEOUT_S = 600, 60.0


class ProposedFact(Struct, frozen=True):
    text: str
    kind: FactKind | None = None


class FactLearner:
    def __init__(self, memory: FactMemory, store: Store, vaults: OpenVaults, home: Path) -> None:
        self._memory, self._store = memory, store
        self.frequent_notes = FrequentNotes(store, memory, vaults, home)
        self._tasks = TaskSet()
        self._untold: dict[str, list[Event]] = {}
        """By conversation, facts learned in the background."""
        self._proposed: dict[str, list[tuple[ProposedFact, str, str]]] = {}
        """By conversation, the proposals for the user after the next reply, with their message and model."""

    def untold(self, session: ChatSession) -> Sequence[Event]:
        return self._untold.pop(session.conversation, ())

    async def learn(
        self, session: ChatSession, message: Message, planned: PlannedRequest, emit: Emit, *, can_ask: bool
    ) -> None:
        """Learn from the message of a finished turn, as the settings say. Failures never end the turn."""
        settings = planned.context.settings
        if not _may_learn(settings, can_ask):
            return
        found, said = list(self._proposed.pop(session.conversation, ())), message.text
        if settings.learn_by_model and _can_propose(planned.context):
            texts = [each.text for each in own_statements(said) if each.is_asked and not each.leans]
            if is_worth_asking(said):
                self._tasks.begin(self._propose(session, message, planned))
        else:
            texts = list(learnable(said))
        found += [(ProposedFact(text), message.id, LEARNED_BY) for text in _own(texts, planned)]
        await self._take(session, found, emit, asks=settings.learn_facts == ASK)

    async def _take(
        self, session: ChatSession, found: Iterable[tuple[ProposedFact, str, str]], emit: Emit, *, asks: bool
    ) -> None:
        for fact, message, learned_by in found:
            if asks:
                if not await asyncio.to_thread(self._is_news, fact.text):
                    continue
                proposed, is_accepted = FactProposed(fact.text), False
                await emit(proposed)
                with suppress(Unanswered):
                    is_accepted = await proposed.answered()
                if not is_accepted:
                    continue
            try:
                learned = await asyncio.to_thread(
                    self._memory.learn,
                    fact.text,
                    fact.kind,
                    learned_by=learned_by,
                    conversation=session.conversation,
                    message=message,
                    confidence=CONFIDENCE,
                )
                await self._store.do(self._store.tree.learn, message, [str(learned.fact.number)])
            except RectoError as why:
                await emit(Noticed(f"not remembered: {why.message}"))
                return
            except Exception as why:  # the reply is complete; no failure here may affect it
                log.exception("learning from a message failed")
                await emit(Noticed(f"nothing was remembered ({type(why).__name__}: {why})"))
                return
            if learned.is_new:
                await emit(FactLearned(learned.fact.number, learned.fact.text))

    async def _propose(self, session: ChatSession, message: Message, planned: PlannedRequest) -> None:
        """In the background, ask the model, check its answer, and learn the facts or keep them as proposals."""
        try:
            facts = await self._asked(session, message, planned.context)
        except RectoError as why:
            log.info("no facts were proposed: %s", why.message)
            facts = None
        except Exception:
            log.exception("proposing facts failed")
            return
        if facts is None:
            facts = [ProposedFact(each.text) for each in own_statements(message.text) if each.tells and not each.leans]
        own = set(_own([fact.text for fact in facts], planned))
        found = [(fact, message.id, planned.context.model.name) for fact in facts if fact.text in own]
        if planned.context.settings.learn_facts == ASK:
            self._proposed.setdefault(session.conversation, []).extend(found)
            return

        async def keep(event: Event) -> None:
            self._untold.setdefault(session.conversation, []).append(event)

        await self._take(session, found, keep, asks=False)

    async def _asked(self, session: ChatSession, message: Message, context: TurnContext) -> list[ProposedFact] | None:
        preamble = await build_preamble(context.token_cache, Parameters())
        order = (await count_texts(context, [proposal_order(message.text)]))[0]
        question = SideCall(context, preamble, (), order, "which facts the message states", MOST_TOKENS)
        if not question.fits:
            return None
        answer = await call_model(question, self._store, session, message.id, TIMEOUT_S, purpose="facts")
        return supported_facts(answer.text, message.text)

    def _is_news(self, text: str) -> bool:
        try:
            return self._memory.known(text) is None
        except RectoError:
            return True

    async def close(self) -> None:
        await self._tasks.close()
        await asyncio.to_thread(self.frequent_notes.close)


def _may_learn(settings: ContextSettings, can_ask: bool) -> bool:
    if not (settings.memory_integration and settings.use_facts):
        return False
    return settings.learn_facts == ON or (settings.learn_facts == ASK and can_ask)


def _can_propose(context: TurnContext) -> bool:
    """Exclude weak models, which would propose junk, and models that serve one request at a time, which would delay
    the next message."""
    return context.model.summarizes and not context.model.one_slot


def _own(texts: Iterable[str], planned: PlannedRequest) -> list[str]:
    """Drop statements that the user only repeats from the window: rules, memory, documents, facts."""
    instructed = planned.preamble.instructed
    sources = [each.text for each in (*instructed.rules, *instructed.references, *instructed.memory)]
    sources += [item.text for item, _ in planned.current.inserts]
    return [text for text in texts if not is_told_by(text, sources)]


# -- what a model proposes

ORDER = """\
Below is a message that a user wrote to an assistant. Which lasting facts does the user state in it about themselves, \
their people, their work, their decisions or their preferences, that would help in a conversation months from now? \
Leave out questions, tasks, quotations, pasted text, examples, guesses, plans for today, moods, and what the message \
only mentions.
Answer with JSON alone: a list of objects with "quote" (the user's own words, exactly as they stand in the message), \
"fact" (the same as one statement that can be understood alone, in the language of the message, with no word of \
content that the message lacks) and "kind" (one of {kinds}). Most messages state none: answer [].

<message>
{message}
</message>"""
# More than this from one message is a text, not facts.
MOST = 5


def proposal_order(message: str) -> str:
    return ORDER.format(kinds=", ".join(FACT_KINDS), message=message)


def is_worth_asking(message: str) -> bool:
    """True if a model may point to a sentence; one that depends on another needs a second sentence."""
    said = list(own_statements(message))
    return any(_may_be_kept(each) and (len(said) > 1 or not each.leans) for each in said)


def _may_be_kept(statement: UserStatement) -> bool:
    """Only statements that are clearly lasting: most of a message is about the work, the world or the day."""
    if statement.is_asked or statement.passes:
        return False
    if statement.leans:
        return statement.names > 0
    return statement.tells or (statement.is_own and statement.is_likely)


def supported_facts(answer: str, message: str) -> list[ProposedFact] | None:
    """The facts in a model's answer that the user's own words support; None if the answer is not a list."""
    listed = answer[max(answer.find("["), 0) : answer.rfind("]") + 1]
    try:
        items = json.loads(listed) if listed.startswith("[") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(items, list):
        return None
    found = {fact.text: fact for item in items[:MOST] if isinstance(item, dict) for fact in _supported(item, message)}
    return list(found.values())


def _supported(item: dict[str, Any], message: str) -> Iterator[ProposedFact]:
    quote, fact, kind = item.get("quote"), item.get("fact"), item.get("kind")
    if not isinstance(quote, str) or not (quoted := _plain(quote)):
        return
    known: FactKind | None = next((each for each in FACT_KINDS if each == kind), None)
    for each in own_statements(message):
        said = _plain(each.text)
        if not _may_be_kept(each) or not (quoted in said or said in quoted):
            continue
        if not each.leans:
            yield ProposedFact(each.text, known)
        elif isinstance(fact, str) and _is_said(fact, each.text, message):
            yield ProposedFact(" ".join(fact.split()), known)


def _is_said(fact: str, sentence: str, message: str) -> bool:
    """True if the words and numbers of a fact are in the message, and most of its words in the sentence."""
    stems, said = fact_stems(without_user(fact)), fact_stems(sentence)
    if not stems or not stems <= fact_stems(message) or 2 * len(stems & said) < len(said) or "?" in fact:
        return False
    can_stand = len(fact.split()) <= MAX_WORDS and not UserStatement(fact, is_asked=False).leans
    return can_stand and numbers_in(fact) <= numbers_in(sentence) and is_negated(fact) == is_negated(sentence)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!'\"“”‘’")
