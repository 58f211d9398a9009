"""Results of actions, by their names in the table of actions: as text and as JSON, for commands and the chat."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from recto import wire
from recto.api.actions import Done
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.cli.drawing.sources import approval_in_words, include_in_words, source_to_json
from recto.cli.drawing.transcripts import compaction_to_json, undone_in_words
from recto.cli.drawing.windows import setting_in_words
from recto.cli.show import counted, shortened, when
from recto.memory.fact_files import fact_to_json
from recto.settings.settings import conversation_key
from recto.store.fact import MemoryFact

if TYPE_CHECKING:
    from recto.memory.fact_memory import LearnedFact

TEXT_WIDTH, FACT_WIDTH = 70, 60
Json = dict[str, Any]


class Out(Protocol):
    """Prints results: the command line, or a chat."""

    def say(self, text: str, *, dim: bool | None = None) -> None: ...

    def note(self, text: str) -> None: ...


class Result(NamedTuple):
    draw: Callable[[Out, Done], None]
    to_json: Callable[[Done], Iterable[Json]]


def tell(out: Out, done: Done) -> None:
    RESULTS[done.action.shown].draw(out, done)


def titled(conversation: Conversation) -> str:
    return shortened(conversation.title, TEXT_WIDTH) or "(no title)"


# -- conversations and messages


def _draw_conversation(out: Out, done: Done) -> None:
    out.say(done.action.said.format(number=done.result.number, title=titled(done.result)))


def _draw_message(out: Out, done: Done) -> None:
    """The action's sentence about the message that it returned or got."""
    named = done.given.get("message")
    message = done.result if isinstance(done.result, Message) else done.talk.message(named) if named else None
    out.say(done.sentence(message, lambda text: shortened(text, TEXT_WIDTH)))


def _restored(done: Done) -> int:
    """The number of messages that are back in the window."""
    now: Compaction = done.result
    before: list[Compaction] = done.talk.compactions(limit=2)[1:]
    return sum(block.messages_archived for block in before) - now.messages_archived


def _draw_undone(out: Out, done: Done) -> None:
    out.say(f"{done.talk.name}: {undone_in_words(done.result, _restored(done))}")


def _in_talk(of_result: Callable[[Done], Json]) -> Callable[[Done], Iterable[Json]]:
    return lambda done: [{"conversation": done.talk.id} | of_result(done)]


def _draw_setting(out: Out, done: Done) -> None:
    out.say(setting_in_words(_key(done), done.talk.settings))


def _setting_to_json(done: Done) -> Json:
    key, settings = _key(done), done.talk.settings
    return {"key": key, "value": settings.get(key), "from": settings.origin(key)}


def _key(done: Done) -> str:
    return conversation_key(done.given["key"], done.talk.name)


def _draw_sources(out: Out, done: Done) -> None:
    for listed in done.result:
        out.say(done.action.said.format(source=listed.source.id, talk=done.talk.name))


# -- memory


def learned_lines(learned: "LearnedFact") -> Iterator[str]:
    fact = learned.fact
    if learned.is_new:
        yield f"remembered as {fact.number} ({fact.kind})"
    elif learned.before == fact.text:
        yield f"known already, as {fact.number}"
    else:
        before = shortened(learned.before, FACT_WIDTH)
        yield f"known already, as {fact.number}, which said “{before}” and has your words now"
    yield from _contradictions(learned)


def _contradictions(learned: "LearnedFact") -> Iterator[str]:
    number = learned.fact.number
    for older in learned.contradicted:
        yield f"{number} may contradict {older.number} of {older.day}: {shortened(older.text, FACT_WIDTH)}"
    for older in learned.contradicted[:1]:
        yield f"`recto memory edit {older.number} --replaced-by {number}` lets the newer one replace it"


def _draw_learned(out: Out, done: Done) -> None:
    for line in learned_lines(done.result):
        out.say(line)


def _learned_to_json(done: Done) -> Iterator[Json]:
    older = [fact_to_json(fact) for fact in done.result.contradicted]
    yield fact_to_json(done.result.fact) | {"is_new": done.result.is_new, "may_contradict": older}


def _draw_read(out: Out, done: Done) -> None:
    fresh = sum(each.is_new for each in done.result)
    out.say(f"{counted(fresh, 'fact')} remembered, {len(done.result) - fresh} known already")
    for each in done.result:
        for line in _contradictions(each):
            out.say(line, dim=True)


def _read_to_json(done: Done) -> Iterator[Json]:
    fresh = sum(each.is_new for each in done.result)
    yield {"read": len(done.result), "learned": fresh, "known": len(done.result) - fresh}


def fact_rows(facts: Iterable[MemoryFact], missing: Callable[[MemoryFact], str] = lambda fact: "") -> Iterator[str]:
    """`missing` says what is gone of a fact's note."""
    for fact in facts:
        gone = f"replaced by {fact.replaced_by}" if fact.replaced_by else missing(fact)
        yield f"{fact.number:>5}  {fact.day}  {fact.kind:<10}  {fact.marked_text}" + (f"  ({gone})" if gone else "")


def _draw_facts(out: Out, done: Done) -> None:
    found, note = done.result
    for each in found:
        out.say(f"{each.fact.number:>5}  {each.score:.2f}  {each.fact.marked_text}")
        out.say(f"{'':>5}  {'; '.join(filter(None, (each.because, done.desk.facts.missing(each.fact))))}", dim=True)
    for text in filter(None, ("" if found else "nothing was found", note)):
        out.note(text)


def _facts_to_json(done: Done) -> Iterator[Json]:
    found, note = done.result
    facts = [
        fact_to_json(each.fact)
        | {"score": each.score, "because": each.because, "older": [fact_to_json(fact) for fact in each.older]}
        for each in found
    ]
    yield {"facts": facts, "note": note}


def _others(done: Done) -> list[MemoryFact]:
    """The other facts about the same thing."""
    return [other for other in done.desk.facts.about(done.result) if other.number != done.result.number]


def _draw_fact(out: Out, done: Done) -> None:
    fact = done.result
    for name, value in _fact_facts(fact, done):
        out.say(f"{name:<12}{value}")
    if gone := done.desk.facts.missing(fact):
        out.note(gone)


def _fact_facts(fact: MemoryFact, done: Done) -> Iterator[tuple[str, str]]:
    yield f"fact {fact.number}", fact.text
    yield "kind", fact.kind
    by = fact.mark or f"by {'you' if fact.learned_by == 'user' else fact.learned_by}"
    source = f", from message {fact.message} of conversation {fact.conversation}" if fact.message else ""
    yield "learned", f"{when(fact.created)}, {by}" + done.desk.conversation().numbered(source)
    yield "used", f"{counted(fact.uses, 'time')}, last {when(fact.last_used)}" if fact.last_used else "never"
    if fact.note:
        yield "vault", fact.note.vault
    if fact.confidence < 1:
        yield "confidence", f"{fact.confidence:.0%}"
    if fact.replaced_by:
        yield "replaced by", str(fact.replaced_by)
    for earlier in reversed(fact.history):
        yield "earlier", f"{earlier.text} (until {earlier.until[:10]})"
    for other in _others(done):
        yield "see also", f"{other.number} of {other.day}: {other.marked_text}"


def _draw_memory(out: Out, done: Done) -> None:
    for line in done.result.lines:
        out.say(line)
    for note in done.result.notes:
        out.note(note)


# -- all of them

RESULTS = {
    "conversation": Result(_draw_conversation, lambda done: [wire.conversation_to_json(done.result)]),
    "compaction": Result(_draw_message, lambda done: [compaction_to_json(done.talk, done.result)]),
    "undone compaction": Result(
        _draw_undone, lambda done: [compaction_to_json(done.talk, done.result) | {"restored": _restored(done)}]
    ),
    "priority": Result(
        _draw_message, _in_talk(lambda done: {"message": done.result.id, "priority": done.given["priority"]})
    ),
    "head": Result(_draw_message, _in_talk(lambda done: {"head": done.talk.head})),
    "undone": Result(
        _draw_message,
        _in_talk(lambda done: {"head": done.talk.head, "undone": done.result.id, "text": done.result.text}),
    ),
    "setting": Result(_draw_setting, _in_talk(_setting_to_json)),
    "sources": Result(
        _draw_sources, lambda done: [{"conversation": done.talk.id} | source_to_json(each) for each in done.result]
    ),
    "include": Result(
        lambda out, done: out.say(include_in_words(done.result)),
        lambda done: [
            {
                "id": done.result.name,
                "include": done.result.include,
                "agent": done.result.agent,
                "file": str(done.result.file),
            }
        ],
    ),
    "approval": Result(
        lambda out, done: out.say(f"{approval_in_words(done.result)}, in {done.talk.name}"),
        _in_talk(lambda done: {"tool": done.result.tool, "asks": done.result.asks}),
    ),
    "learned": Result(_draw_learned, _learned_to_json),
    "facts read": Result(_draw_read, _read_to_json),
    "facts found": Result(_draw_facts, _facts_to_json),
    "fact": Result(
        _draw_fact, lambda done: [fact_to_json(done.result) | {"same_topic": [other.number for other in _others(done)]}]
    ),
    "memory": Result(_draw_memory, lambda done: [done.result.to_json()]),
}
