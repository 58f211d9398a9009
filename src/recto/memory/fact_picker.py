"""FactPicker: puts facts that bear on the message in front of it, in the section `memory`.

Also brings the tools with which a model remembers, looks up and forgets facts.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from recto.chat.message import Message
from recto.errors import RectoError
from recto.memory.fact_memory import FactMemory, LearnedFact, RelevantFact, is_told_by, missing_note
from recto.sentences.words import phrases
from recto.sources.selection import OfferedTool, Selection, StablePicks
from recto.sources.server_config import ServerConfig
from recto.sources.source import BUILT_IN_SERVER, Insert, Pick
from recto.sources.tools import FORGET_FACT_TOOL, RECALL_FACTS_TOOL, REMEMBER, REMEMBER_TOOL, LocalTool
from recto.store.fact import ASSISTANT, FACT_KINDS, NoteReference, checked_kind
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.planned_request import PlannedRequest
from recto.turn.session_sources import SessionSources, can_call, configured_tool
from recto.turn.source_picker import STAYS
from recto.turn.turn import Picker, Room, Turn, VolatilePicks

if TYPE_CHECKING:
    from recto.memory.fact_source import FactSource

log = logging.getLogger(__name__)

HEADING = "Remembered from earlier conversations, with the day it was said; of two statements the newer counts:"
# The share of the unused room, and the token limit: facts cost tokens with every message.
SHARE, MOST_TOKENS = 0.20, 1000
# How many facts that did not fit are recorded, and how many messages back the words of a fact are searched for.
MOST_PASSED, MESSAGES_BACK = 5, 400
LONGEST_QUESTION = 2000
DOCUMENTS = "documents"
# Characters of a fact shown in the reason of its pick.
SHOWN = 60


class FactPicker(Picker):
    def __init__(self, memory: FactMemory, sources: SessionSources, turn: Turn) -> None:
        super().__init__()
        self._memory, self._sources, self._turn = memory, sources, turn
        self._store, self._has_facts = sources.store, False
        self._inserts: tuple[Insert, ...] = ()

    @property
    def _is_on(self) -> bool:
        resolved = self._turn.resolved
        return resolved.settings.memory_integration and resolved.settings.use_facts

    async def stable(self) -> StablePicks:
        """The tools, for models that can call them."""
        resolved = self._turn.resolved
        if not self._is_on:
            return StablePicks()
        self._has_facts = await self._store.do(self._memory.has_facts)
        if not can_call(resolved, self._sources.settings):
            return StablePicks()
        config, overrides = resolved.agent.server(BUILT_IN_SERVER), self._turn.overrides
        tools = [_configured(each, config) for each in fact_tools(self._memory, self._store, self._turn, self)]
        # keep the tools of earlier messages until the next compaction, so that the prefix stays the same
        last, asks = self._turn.session.last_tools, self.asks
        stays = last.chosen if last and last.compaction == self._turn.compaction else ()
        offered = list[OfferedTool]()
        for each in tools:
            if not each.tool.enabled or overrides.removes(each.tool):
                continue
            if overrides.mode(each.tool):
                offered.append(OfferedTool(each, Selection(each.tool, "always", "always included")))
            elif asks and (self._has_facts or each.tool.name == REMEMBER):
                offered.append(OfferedTool(each, Selection(each.tool, "agent", "the message speaks of remembering")))
            elif each.tool.id in stays:
                offered.append(OfferedTool(each, Selection(each.tool, "agent", STAYS), lasts=False))
        return StablePicks(tools=tuple(offered))

    @property
    def wants_room(self) -> bool:
        return self._has_facts

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        """The facts about the message, best first, within their share of the room."""
        question = message.text[:LONGEST_QUESTION]
        try:
            found, _ = await asyncio.to_thread(self._memory.relevant, question)
        except RectoError as why:
            self.notes.append(f"no fact was recalled: {why.message}")
            return VolatilePicks()
        except Exception as why:  # failing memory must never end a chat
            log.exception("recalling facts failed")
            self.notes.append(f"no fact was recalled: the search failed ({type(why).__name__}: {why})")
            return VolatilePicks()
        left = min(int(room.unused * SHARE), MOST_TOKENS)
        picks, texts, passed = list[Pick](), list[str](), list[Pick]()
        for each in found:
            text = fact_lines(each)
            tokens = await context.token_cache.tokens_of(text)
            if useless := each.fact.note and self._useless(each.fact.note, context, room):
                passed += _picks(each, tokens, f"{useless}; ")[: MOST_PASSED - len(passed)]
            elif tokens <= left:
                picks += _picks(each, tokens)
                texts.append(text)
                left -= tokens
            elif len(passed) < MOST_PASSED:
                passed.append(_picks(each, tokens, f"takes {tokens} tokens, and {left} are left for facts; ")[0])
        if not picks:
            return VolatilePicks(passed=tuple(passed))
        return VolatilePicks((Insert("memory", "\n".join((HEADING, *texts)), tuple(picks)),), tuple(passed))

    def _useless(self, note: NoteReference, context: TurnContext, room: Room) -> str:
        """Why a note should be left out: a model that cannot read it would be misled."""
        vault = self._turn.session.vault
        if not vault or str(vault.root) != note.vault:
            return "its vault is not the one of this conversation"
        if not context.reader:
            return "the model cannot read notes"
        is_in = any(pick.kind == "document" and pick.name == note.path for each in room.inserts for pick in each.picks)
        return "the note itself is in the window" if is_in else missing_note(note)

    async def fill(self, planned: PlannedRequest) -> PlannedRequest:
        """Add nothing; note what the other pickers have added."""
        self._inserts = tuple(insert for insert, _ in planned.current.inserts)
        return planned

    @property
    def instructions(self) -> list[str]:
        """The rules, references and memory that every window holds anyway: a fact must not repeat them."""
        brought = (insert.text for insert in self._inserts if insert.section != DOCUMENTS)
        return [*(source.text for source in self._turn.resolved.agent.enabled_texts), *brought]

    @property
    def documents(self) -> "list[FactSource]":
        from recto.memory.fact_source import FactSource  # an eighth of the startup time

        message = self._turn.asked
        return [
            FactSource(insert.text, "document", f"note {pick.name}", message.id if message else None, beside=pick.name)
            for insert in self._inserts
            if insert.section == DOCUMENTS
            for pick in insert.picks
        ]

    @property
    def asks(self) -> bool:
        """True if the message speaks of remembering: the tools cost tokens with every request."""
        return bool(self._turn.asked and phrases("remembering").search(self._turn.asked.text))


def _configured(runnable: LocalTool, config: ServerConfig | None) -> LocalTool:
    """Apply the agent's configuration; settings for other built-in tools do not include this one."""
    made = configured_tool(runnable, config)
    is_said = config and (config.tool(runnable.tool.name).include or config.include)
    return made if is_said else replace(made, tool=replace(made.tool, include="agent"))


def fact_lines(each: RelevantFact) -> str:
    """A fact as the model reads it, with earlier statements about the same thing."""
    lines = [f"- [{each.fact.number}] {each.fact.day}: {each.fact.marked_text}"]
    lines += [f"  (earlier, {older.day}: {older.marked_text})" for older in each.older]
    return "\n".join(lines)


def _picks(each: RelevantFact, tokens: int, why: str = "") -> list[Pick]:
    share, picks = tokens // (1 + len(each.older)), list[Pick]()
    for fact in (each.fact, *each.older):
        size = share if picks else tokens - share * len(each.older)
        shown = fact.text if len(fact.text) <= SHOWN else f"{fact.text[:SHOWN]}…"
        reason = each.reasons.get(fact.number) or f"fact {each.fact.number} may contradict it"
        because = f"“{shown}”: {f'{fact.mark}; ' if fact.mark else ''}{why}{reason}"
        sha = hashlib.sha256(fact.text.encode()).hexdigest()
        picks.append(Pick("fact", str(fact.number), because, size, "agent", each.score, sha))
    return picks


# -- tools


def fact_tools(memory: FactMemory, store: Store, turn: Turn, picker: FactPicker) -> list[LocalTool]:
    session, model = turn.session, turn.resolved.model.name
    message = turn.message.id if turn.message else None

    def remember(arguments: Mapping[str, Any]) -> str:
        text, replaces = arguments.get("text"), arguments.get("replaces")
        if not isinstance(text, str):
            raise RectoError("give `text`: one statement that can be understood alone")
        kind = checked_kind(str(arguments["kind"])) if arguments.get("kind") in FACT_KINDS else None
        from recto.memory.fact_source import conversation_sources, source_of_fact  # an eighth of the startup time

        said = conversation_sources(store.tree.page(session.head, most=MESSAGES_BACK) if session.head else [])
        source = source_of_fact(text, said.user)
        if source is None:
            if is_told_by(text, picker.instructions):
                raise RectoError("not remembered: a rule or memory says this already, in every conversation")
            documents = [*picker.documents, *said.documents]
            if picker.asks:
                source = source_of_fact(text, documents)
            elif is_told_by(text, [each.text for each in documents]):
                raise RectoError("not remembered: a document says this, and the user did not ask to remember it")
        writer = f"{ASSISTANT} {model}"
        if source:
            writer = model if source.said_by == "user" else source.name
        learned = memory.learn(
            text,
            kind,
            learned_by=writer,
            conversation=session.conversation,
            message=source.message if source else said.message_of_assistant(text),
            replaces=_number(replaces) if replaces else None,
        )
        if source and source.said_by == "user" and source.message and source.message != message:
            # counting is still under way in this turn, whose end reports what was learned
            store.tree.learn(source.message, [str(learned.fact.number)])
        return "\n".join(_outcome(learned, is_found=source is not None))

    def recall_facts(arguments: Mapping[str, Any]) -> str:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            raise RectoError("give `query`: what to look for")
        found, note = memory.search(query)
        lines = [fact_lines(each) for each in found] or ["Nothing is remembered about this."]
        return "\n".join([*lines, *([f"({note})"] if note else [])])

    def forget_fact(arguments: Mapping[str, Any]) -> str:
        known = memory.forget(_number(arguments.get("number")))
        return f"Forgotten: fact {known.number}."

    return [
        LocalTool(REMEMBER_TOOL, remember, writes=True),
        LocalTool(RECALL_FACTS_TOOL, recall_facts),
        LocalTool(FORGET_FACT_TOOL, forget_fact, writes=True, approval="ask"),
    ]


def learned_in_words(number: int, text: str, *, is_new: bool) -> str:
    return f"Remembered as fact {number}: {text}" if is_new else f"Known already, as fact {number}: {text}"


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise RectoError("a fact is named by its number, such as 12") from None


def _outcome(learned: LearnedFact, *, is_found: bool) -> Iterator[str]:
    fact = learned.fact
    yield learned_in_words(fact.number, fact.marked_text, is_new=learned.is_new)
    if not is_found and not fact.is_confirmed:
        yield (
            "Neither the user nor a document of this conversation says this in these words, so it is kept as your own "
            f"note. If the user said it, call remember again with their words and replaces {fact.number}."
        )
    for older in learned.contradicted:
        yield f"It may contradict fact {older.number} ({older.day}): {older.text}"
