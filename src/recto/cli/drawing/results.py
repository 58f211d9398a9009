"""Results of actions, by their names in the table of actions: as text and as JSON, for commands and the chat."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from recto import wire
from recto.api.actions import Done
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.cli.drawing.sources import approval_in_words, include_in_words, source_to_json
from recto.cli.drawing.transcripts import compaction_to_json, undone_in_words
from recto.cli.drawing.windows import setting_in_words
from recto.cli.show import counted, shortened
from recto.memory.fact_files import fact_to_json
from recto.settings.settings import conversation_key
from recto.store.fact import MemoryFact

if TYPE_CHECKING:
    from recto.memory.fact_memory import LearnedFact

TEXT_WIDTH, FACT_WIDTH = 70, 60
Json = dict[str, Any]


class Out(Protocol):
    """Prints results: the command line, or a chat."""

    def say(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...


class Note(str):
    """A line about the result rather than of it."""


def tell(out: Out, done: Done) -> None:
    for line in RESULTS[done.action.shown](done):
        out.note(line) if isinstance(line, Note) else out.say(line)


def to_json(done: Done) -> Iterator[Json]:
    """The result for programs, one object for each value."""
    match done.action.shown, done.result:
        case (("compaction" | "undone compaction"), Compaction() as block):
            yield compaction_to_json(done.talk, block)
        case "setting", _:
            key, settings = _key(done), done.talk.settings
            found = {"key": key, "value": settings.get(key), "from": settings.origin(key)}
            yield {"conversation": done.talk.id} | found
        case _, Message() as message:
            about = {"conversation": done.talk.id, "head": done.talk.head, "message": message.id, "text": message.text}
            yield about | {name: value for name, value in done.given.items() if name == "priority"}
        case "sources", listed:
            yield from ({"conversation": done.talk.id} | source_to_json(each) for each in listed)
        case "include", change:
            names = wire.fields_to_json(change, "include", "agent")
            yield {"id": change.name, **names, "file": str(change.file)}
        case "approval", change:
            yield {"conversation": done.talk.id, "tool": change.tool, "asks": change.asks}
        case "learned", learned:
            yield _learned_to_json(learned)
        case "facts read", read:
            fresh = sum(each.is_new for each in read)
            yield {"read": len(read), "learned": fresh, "known": len(read) - fresh}
        case "facts found", (found, note):
            facts = [fact_to_json(each.fact) | {"score": each.score, "because": each.because} for each in found]
            yield {"facts": facts, "note": note}
        case "fact", fact:
            yield fact_to_json(fact) | {"same_topic": [other.number for other in _others(done)]}
        case _, Conversation() as conversation:
            yield wire.conversation_to_json(conversation)
        case _, other:
            yield wire.value_to_json(other)


def titled(conversation: Conversation) -> str:
    return shortened(conversation.title, TEXT_WIDTH) or "(no title)"


# -- conversations and messages


def _conversation(done: Done) -> Iterator[str]:
    yield done.action.said.format(number=done.result.number, title=titled(done.result))


def _message(done: Done) -> Iterator[str]:
    """The action's sentence about the message that it returned or got."""
    named = done.given.get("message")
    message = done.result if isinstance(done.result, Message) else done.talk.message(named) if named else None
    yield done.sentence(message, lambda text: shortened(text, TEXT_WIDTH))


def _undone(done: Done) -> Iterator[str]:
    before: list[Compaction] = done.talk.compactions(limit=2)[1:]
    restored = sum(block.messages_archived for block in before) - done.result.messages_archived
    yield f"{done.talk.name}: {undone_in_words(done.result, restored)}"


def _key(done: Done) -> str:
    return conversation_key(done.given["key"], done.talk.name)


def _sources(done: Done) -> Iterator[str]:
    yield from (done.action.said.format(source=each.source.id, talk=done.talk.name) for each in done.result)


# -- memory


def learned_lines(learned: "LearnedFact") -> Iterator[str]:
    fact = learned.fact
    before = "" if learned.before == fact.text else f", which said “{shortened(learned.before, FACT_WIDTH)}”"
    yield f"remembered as {fact.number} ({fact.kind})" if learned.is_new else f"known already, as {fact.number}{before}"
    yield from _contradictions(learned)


def _contradictions(learned: "LearnedFact") -> Iterator[str]:
    number = learned.fact.number
    for older in learned.contradicted:
        yield f"{number} may contradict {older.number} of {older.day}: {shortened(older.text, FACT_WIDTH)}"
    for older in learned.contradicted[:1]:
        yield f"`recto memory edit {older.number} --replaced-by {number}` lets the newer one replace it"


def _learned_to_json(learned: "LearnedFact") -> Json:
    older = [fact_to_json(fact) for fact in learned.contradicted]
    return fact_to_json(learned.fact) | {"is_new": learned.is_new, "may_contradict": older}


def _read(done: Done) -> Iterator[str]:
    fresh = sum(each.is_new for each in done.result)
    yield f"{counted(fresh, 'fact')} remembered, {len(done.result) - fresh} known already"
    for each in done.result:
        yield from _contradictions(each)


def fact_rows(facts: Iterable[MemoryFact], missing: Callable[[MemoryFact], str] = lambda fact: "") -> Iterator[str]:
    """`missing` says what is gone of a fact's note."""
    for fact in facts:
        gone = f"replaced by {fact.replaced_by}" if fact.replaced_by else missing(fact)
        yield f"{fact.number:>5}  {fact.day}  {fact.kind:<10}  {fact.marked_text}" + (f"  ({gone})" if gone else "")


def _found(done: Done) -> Iterator[str]:
    found, note = done.result
    for each in found:
        yield f"{each.fact.number:>5}  {each.score:.2f}  {each.fact.marked_text}"
        yield f"{'':>5}  {'; '.join(filter(None, (each.because, done.desk.facts.missing(each.fact))))}"
    yield from map(Note, filter(None, ("" if found else "nothing was found", note)))


def _others(done: Done) -> list[MemoryFact]:
    """The other facts about the same thing."""
    return [other for other in done.desk.facts.about(done.result) if other.number != done.result.number]


def _fact(done: Done) -> Iterator[str]:
    """Everything that is known of a fact, by name."""
    told = done.desk.conversation().numbered(fact_to_json(done.result))
    note = told.pop("note", {})
    history = [f"{each['text']} (until {each['until'][:10]})" for each in reversed(told.pop("history"))]
    for name, value in (told | note).items():
        if value not in (None, "", 0):
            yield f"{name.replace('_', ' '):<14}{value}"
    for text in history:
        yield f"{'earlier':<14}{text}"
    for other in _others(done):
        yield f"{'see also':<14}{other.number} of {other.day}: {other.marked_text}"
    if gone := done.desk.facts.missing(done.result):
        yield Note(gone)


def _memory(done: Done) -> Iterator[str]:
    yield from done.result.lines
    yield from map(Note, done.result.notes)


RESULTS: dict[str, Callable[[Done], Iterable[str]]] = {
    "conversation": _conversation,
    "compaction": _message,
    "undone compaction": _undone,
    "priority": _message,
    "head": _message,
    "undone": _message,
    "setting": lambda done: [setting_in_words(_key(done), done.talk.settings)],
    "sources": _sources,
    "include": lambda done: [include_in_words(done.result)],
    "approval": lambda done: [f"{approval_in_words(done.result)}, in {done.talk.name}"],
    "learned": lambda done: learned_lines(done.result),
    "facts read": _read,
    "facts found": _found,
    "fact": _fact,
    "memory": _memory,
}
