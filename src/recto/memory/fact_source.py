"""FactSource: a text that a fact may come from. `source_of_fact` looks a statement up in such texts.

A statement is found in a sentence, or a row of a table, that holds all of its figures; the sentences beside it, the
heading above it and the question it answers may hold other words of it. So "Tom is 7 years old" is found in "Our cat is
Tom. He is 7 years old.", and "The fuse is 7 A" is not found in "Fuse: 10 A" above "Pump: 7 A". Words are compared by
their beginnings, in any language, and figures as they are written: a translation, a paraphrase or another unit is not
found. A question states nothing. Who does something is not compared: "My sister is vegan" holds all the words of "The
user is vegan".
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise

from msgspec import Struct

from recto.chat.blocks import File, ToolResult
from recto.chat.message import Message
from recto.memory.statements import is_negated, without_request, without_user
from recto.search.passages import split_sentences
from recto.search.terms import STOP_WORDS, UNSPACED_RUN, normalize_text
from recto.sentences.segments import is_question, readable
from recto.sentences.words import tables
from recto.sources.tools import FORGET_FACT, RECALL, RECALL_FACTS, REMEMBER
from recto.sources.vault_tools import READ_DOCUMENT
from recto.store.fact import SaidBy
from recto.summary.figures import normalize_number, thousands_value

# One in this many words may be missing, if it is written in lower case: a synonym, not a name.
WORDS_PER_MISSING = 6
# The share of a statement's words that one sentence must hold itself.
MIN_IN_SENTENCE = 1 / 4
# Forms of a word share this many first letters, and this share of the longer one.
MIN_SHARED, SHARED = 3, 0.6
# Letters that a declension adds to a name.
MOST_ADDED = 2
# Characters of the previous message that a message may refer to.
LONGEST_BESIDE = 300
MEMORY_TOOLS = (RECALL, REMEMBER, RECALL_FACTS, FORGET_FACT)
_TOKEN = re.compile(r"\d+(?:[.,'’]\d+)*|[^\W\d_]+")
_CLAUSE_END = re.compile(r"[,;](?=\s)|\s[–—-]\s|[，；、]")
_HEADING = re.compile(r"\s*#{1,6}\s")


class FactSource(Struct, frozen=True):
    text: str
    said_by: SaidBy
    name: str = ""
    """A document's name for the fact: `note Boiler.md`, `tool fetch`."""
    message: str | None = None
    """The message that holds it, or that it was sent with."""
    beside: str = ""
    """Words that it depends on: the question that it answers, the name of the document."""
    asked: str = ""
    """The arguments of the call that returned it: the result may merely repeat them."""


class ConversationSources(Struct, frozen=True):
    """The texts of a conversation that facts may come from, latest first."""

    user: list[FactSource] = []
    documents: list[FactSource] = []
    assistant: list[FactSource] = []

    def message_of_assistant(self, text: str) -> str | None:
        """The assistant's message that says this, or else its latest."""
        latest = self.assistant[0] if self.assistant else None
        found = source_of_fact(text, self.assistant) or latest
        return found.message if found else None


def conversation_sources(messages: Sequence[Message]) -> ConversationSources:
    """Collect sources from messages, latest first. Results of memory tools are excluded: they repeat other sources or
    the model."""
    found = ConversationSources()
    asked = {call.id: readable(call.arguments) for message in messages for call in message.calls}
    for at, message in enumerate(messages):
        match message.role:
            case "user":
                beside = "\n".join(_before(messages[at + 1 :]))
                found.user.append(FactSource(message.text, "user", "", message.id, beside))
            case "assistant":
                found.assistant.append(FactSource(message.text, "assistant", "", message.id))
        for block in message.blocks:
            if isinstance(block, File) and block.text:
                name = f"attachment {block.name}"
                found.documents.append(FactSource(block.text, "document", name, message.id, block.name))
            elif isinstance(block, ToolResult) and not block.is_error and block.name not in MEMORY_TOOLS:
                text, called = readable(block.text), asked.get(block.call_id, "")
                path = text.partition("\n")[0].removeprefix("path: ") if text.startswith("path: ") else ""
                name = f"note {path}" if path and block.name == READ_DOCUMENT else f"tool {block.name}"
                found.documents.append(FactSource(text, "document", name, message.id, called, called))
    return found


def _before(earlier: Sequence[Message]) -> Iterator[str]:
    """The context of a user's message: the question that it answers, and the user's previous words."""
    for message in earlier:
        if message.role == "assistant":
            yield from (line for line in split_sentences(message.text) if is_question(line))
        if message.role == "user":
            yield message.text[-LONGEST_BESIDE:]
            return


class _Statement(Struct, frozen=True):
    words: tuple[str, ...]
    """Normalized, names with a capital; in a script without spaces, two characters each."""
    figures: tuple[frozenset[str], ...]
    """The possible values of each figure: "1.000" is 1 or 1000."""

    @property
    def content(self) -> list[str]:
        little = _little()
        return [word for word in self.words if len(word) > 1 and little.isdisjoint((word, word.lower()))]

    def has_figures(self, other: "_Statement") -> bool:
        return all(any(figure & known for known in self.figures) for figure in other.figures)


def source_of_fact(text: str, sources: Iterable[FactSource]) -> FactSource | None:
    return next((source for source in sources if states_fact(source, text)), None)


def states_fact(source: FactSource, text: str) -> bool:
    """True if one sentence of a source, with its context, says this."""
    if source.asked and states_fact(FactSource(source.asked, "assistant"), text):
        return False
    plain = without_user(text)
    wanted = _statement(plain)
    # rules out most sources, which lack some word, without looking at their sentences
    if not wanted.content or not _holds(_statement(f"{source.text}\n{source.beside}").words, wanted.content):
        return False
    return any(_says(sentence, around, wanted, is_negated(plain)) for sentence, around in _sentences(source))


def _sentences(source: FactSource) -> Iterator[tuple[str, list[str]]]:
    """Each sentence that is not a question, with its context."""
    heading, found = "", list[tuple[str, str]]()
    for line in source.text.splitlines():
        heading = line if _HEADING.match(line) else heading
        found += [(sentence, heading) for sentence in split_sentences(line)]
    texts = ["", *(sentence for sentence, _ in found), ""]
    for (sentence, heading), before, after in zip(found, texts, texts[2:], strict=False):
        if not is_question(sentence):
            yield sentence, [source.beside, heading, before, after]


def _says(sentence: str, around: Sequence[str], wanted: _Statement, denies: bool) -> bool:
    said = _statement(sentence)
    if not said.has_figures(wanted):
        return False
    # next to a figure, a sentence with another one is about something else: another row of a table
    beside = [_statement(each) for each in around]
    lent = [word for each in beside if not (wanted.figures and each.figures) for word in each.words]
    held = _held(wanted.content, said.words)
    # a bare figure answers the question
    is_about = held >= MIN_IN_SENTENCE * len(wanted.content) or not said.content
    if not is_about or not _holds((*said.words, *lent), wanted.content):
        return False
    # "don't forget that …" is not a negation
    clauses = [part for part in _CLAUSE_END.split(without_request(sentence)) if part.strip()]
    nearest = max(clauses, key=lambda clause: _held(wanted.content, _statement(clause).words))
    return is_negated(nearest) == denies


def _held(wanted: Iterable[str], known: Sequence[str]) -> int:
    return sum(any(_is_same(word, other) for other in known) for word in wanted)


def _holds(known: Sequence[str], wanted: Sequence[str]) -> bool:
    missing = [word for word in wanted if not _held([word], known)]
    return len(missing) <= len(wanted) // WORDS_PER_MISSING and all(word == word.lower() for word in missing)


def _is_same(one: str, other: str) -> bool:
    shorter, longer = sorted((one.lower(), other.lower()), key=len)
    if shorter == longer or UNSPACED_RUN.match(one) or UNSPACED_RUN.match(other):
        return shorter == longer
    if one[0].isupper() and other[0].isupper():  # Anne is not Anna
        return longer.startswith(shorter) and len(longer) - len(shorter) <= MOST_ADDED and len(shorter) >= MIN_SHARED
    least = max(MIN_SHARED, math.ceil(SHARED * len(longer)))
    return len(shorter) >= least and shorter[:least] == longer[:least]


def _statement(text: str) -> _Statement:
    words, figures = list[str](), list[frozenset[str]]()
    for token in _TOKEN.findall(text):
        if token[0].isdigit():
            other = thousands_value(token)
            figures.append(frozenset({normalize_number(token), *([f"{other:.0f}"] if other is not None else [])}))
        elif runs := UNSPACED_RUN.findall(token):
            words += [f"{one}{other}" for run in runs for one, other in pairwise(run)]
        else:
            plain = normalize_text(token)
            words.append(plain.capitalize() if token[0].isupper() else plain)
    return _Statement(tuple(words), tuple(figures))


@cache
def _little() -> frozenset[str]:
    """Articles, prepositions and auxiliaries, of more languages than a search ignores."""
    return frozenset(word for words in tables()["little"].values() for word in words) | STOP_WORDS
