"""FactSource: a text that a fact may come from. `source_of_fact` looks a statement up in such texts.

A statement is found in a sentence, or a row of a table, that holds all of its figures; the sentences beside it, the
heading above it and the question it answers may hold other words of it. So "Tom is 7 years old" is found in "Our cat is
Tom. He is 7 years old.", and "The fuse is 7 A" is not found in "Fuse: 10 A" above "Pump: 7 A". Words are compared by
their beginnings, in any language: a translation is not found, and neither is a free paraphrase. A question states
nothing. Who does something is not compared: "My sister is vegan" holds all the words of "The user is vegan".
"""

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
from recto.summary.evidence import Evidence
from recto.summary.figures import Value, normalize_number, number_words, thousands_value
from recto.summary.relative_dates import add_dates, day_of
from recto.summary.values import find_values

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
_CHINESE_FIGURES = "零二两三四五六七八九十百千万"


class FactSource(Struct, frozen=True):
    text: str
    said_by: SaidBy
    name: str = ""
    """A document's name for the fact: `note Boiler.md`, `tool fetch`."""
    message: str | None = None
    """The message that holds it, or that it was sent with."""
    created: str = ""
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
                found.user.append(FactSource(message.text, "user", "", message.id, message.created, beside))
            case "assistant":
                found.assistant.append(FactSource(message.text, "assistant", "", message.id, message.created))
        for block in message.blocks:
            if isinstance(block, File) and block.text:
                name = f"attachment {block.name}"
                found.documents.append(FactSource(block.text, "document", name, message.id, "", block.name))
            elif isinstance(block, ToolResult) and not block.is_error and block.name not in MEMORY_TOOLS:
                text, called = readable(block.text), asked.get(block.call_id, "")
                path = text.partition("\n")[0].removeprefix("path: ") if text.startswith("path: ") else ""
                name = f"note {path}" if path and block.name == READ_DOCUMENT else f"tool {block.name}"
                found.documents.append(FactSource(text, "document", name, message.id, "", called, called))
    return found


def _before(earlier: Sequence[Message]) -> Iterator[str]:
    """The context of a user's message: the question that it answers, and the user's previous words."""
    for message in earlier:
        if message.role == "assistant":
            yield from (line for line in split_sentences(message.text) if is_question(line))
        if message.role == "user":
            yield message.text[-LONGEST_BESIDE:]
            return


class _Word(Struct, frozen=True):
    text: str
    """Normalized; in a script without spaces, two characters."""
    is_capital: bool = False
    unit_of: str = ""
    """The figure directly before it."""

    @property
    def is_letter(self) -> bool:
        """True for a letter that names something: blood type A, room B; not I."""
        return self.is_capital and len(self.text) == 1 and self.text != "i"


class _Statement(Struct, frozen=True):
    words: tuple[_Word, ...]
    """All words, including small ones: a word of another language may look like one."""
    figures: tuple[frozenset[str], ...]
    """The possible values of each figure: "1.000" is 1 or 1000."""

    @property
    def content(self) -> tuple[_Word, ...]:
        return tuple(
            word
            for place, word in enumerate(self.words)
            if word.unit_of or _is_content(word.text) or (place and word.is_letter)
        )

    def has_figures(self, other: "_Statement") -> bool:
        return all(any(figure & known for known in self.figures) for figure in other.figures)

    @property
    def topic(self) -> tuple[_Word, ...]:
        """The words that its figures are about."""
        return tuple(word for word in self.content if not word.unit_of)


def source_of_fact(text: str, sources: Iterable[FactSource]) -> FactSource | None:
    return next((source for source in sources if states_fact(source, text)), None)


def states_fact(source: FactSource, text: str) -> bool:
    """True if one sentence of a source, with its context, says this."""
    if source.asked and states_fact(FactSource(source.asked, "assistant"), text):
        return False
    plain = without_user(text)
    wanted = _statement(plain)
    # rules out most sources, which lack some word, without looking at their sentences
    if not wanted.topic or not _holds(_statement(f"{source.text}\n{source.beside}").words, wanted.topic):
        return False
    return any(_says(sentence, around, plain, source.created) for sentence, around in _sentences(source))


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


def _says(sentence: str, around: Sequence[str], text: str, created: str) -> bool:
    dated = add_dates(sentence, day_of(created))
    evidence = Evidence()
    evidence.add(dated)
    said, has_figures = _statement(sentence), any(map(str.isdigit, text))
    for fact in reversed(find_values(text)):
        if fact.kind in ("date", "time"):
            if not (evidence.states(fact) or _adds_year(fact, evidence, created)):
                return False
        elif fact.kind != "number" or said.has_figures(_statement(fact.text)) or not evidence.states(fact):
            continue  # as written, or in another unit
        text = f"{text[: fact.start]} {text[fact.end :]}"
    wanted = _statement(text)
    if not said.has_figures(wanted):
        return False
    # next to a figure, a sentence with another one is about something else: another row of a table
    beside = [_statement(each) for each in around]
    lent = [word for each in beside if not (has_figures and each.figures) for word in each.words]
    if not _holds((*said.words, *lent), wanted.content):
        return False
    # "don't forget that …" is not a negation
    clauses = [part for part in _CLAUSE_END.split(without_request(sentence)) if part.strip()]
    return _is_about(said, wanted) and _agrees(clauses, said, wanted, is_negated(text))


def _adds_year(fact: Value, evidence: Evidence, created: str) -> bool:
    """True if a fact adds the year to a day: the year in which it was said, or the next."""
    year, _, day = fact.normal.partition("-")
    is_near = created[:4].isdigit() and year.isdigit() and int(year) - int(created[:4]) in (0, 1)
    has_year = any(known[:4].isdigit() and known[5:] == day for known in evidence.dates)
    return is_near and f"--{day}" in evidence.dates and not has_year


def _is_about(said: _Statement, wanted: _Statement) -> bool:
    """True if a sentence holds enough of the words itself. A bare figure answers the question."""
    held = sum(_is_held(word, said.words) for word in wanted.topic)
    return held >= MIN_IN_SENTENCE * len(wanted.topic) or not said.topic


def _agrees(clauses: Sequence[str], said: _Statement, wanted: _Statement, denies: bool) -> bool:
    """True if the clause with most of the words agrees in negation and, if the sentence has other figures too, each
    figure is next to one of the words."""
    parts = [(clause, _statement(clause)) for clause in clauses]
    nearest, _ = max(parts, key=lambda part: sum(_is_held(word, part[1].words) for word in wanted.topic))
    if is_negated(nearest) != denies:
        return False
    if len(said.figures) <= len(wanted.figures) or not said.topic:
        return True
    near = [_statement(part) for clause in clauses for part in _around_figures(clause)]
    return all(
        any(
            any(figure & known for known in part.figures) and any(_is_held(word, part.words) for word in wanted.topic)
            for part in near
        )
        for figure in wanted.figures
    )


def _around_figures(clause: str) -> Iterator[str]:
    """Each figure of a clause, with the words between the previous figure and the next."""
    found = [each.span() for each in _TOKEN.finditer(clause) if each[0][0].isdigit()]
    for place in range(len(found)):
        start = found[place - 1][1] if place else 0
        end = found[place + 1][0] if place + 1 < len(found) else len(clause)
        yield clause[start:end]


def _holds(known: Sequence[_Word], wanted: Sequence[_Word]) -> bool:
    missing = [word for word in wanted if not _is_held(word, known)]
    return len(missing) <= len(wanted) // WORDS_PER_MISSING and not any(
        word.is_capital or word.unit_of for word in missing
    )


def _is_held(word: _Word, known: Iterable[_Word]) -> bool:
    return any(_is_same(word, other) for other in known)


def _is_same(one: _Word, other: _Word) -> bool:
    if one.text == other.text:
        return True
    if one.unit_of and one.unit_of == other.unit_of and _is_short_for(*sorted((one.text, other.text), key=len)):
        return True
    if UNSPACED_RUN.match(one.text) or UNSPACED_RUN.match(other.text):
        return False
    shorter, longer = sorted((one.text, other.text), key=len)
    if one.is_capital and other.is_capital:  # Anne is not Anna
        return longer.startswith(shorter) and len(longer) - len(shorter) <= MOST_ADDED and len(shorter) >= MIN_SHARED
    shared = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    return shared >= max(MIN_SHARED, SHARED * len(longer))


def _is_short_for(short: str, long: str) -> bool:
    """True for a unit: A for amperes, km for kilometres."""
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def _statement(text: str) -> _Statement:
    words, figures, before = list[_Word](), list[frozenset[str]](), ""
    for token in _TOKEN.findall(text):
        plain = normalize_text(token)
        value = number_words().get(token.casefold(), 1)
        if token[0].isdigit():
            readings = _readings(token)
            figures.append(readings)
            before = min(readings)
            continue
        if value != 1:  # one is an article in many languages
            before = f"{value:g}"
            figures.append(frozenset({before}))
            continue
        if runs := UNSPACED_RUN.findall(token):
            words += [_Word(f"{one}{other}") for run in runs for one, other in pairwise(run)]
            figures += [frozenset(char) for run in runs for char in run if char in _CHINESE_FIGURES]
        else:
            is_unit = token.isupper() or plain not in STOP_WORDS
            words.append(_Word(plain, token[0].isupper(), before if is_unit else ""))
        before = ""
    return _Statement(tuple(words), tuple(figures))


def _is_content(word: str) -> bool:
    return len(word) > 1 and word not in STOP_WORDS and word not in _little()


@cache
def _little() -> frozenset[str]:
    """Articles, prepositions and auxiliaries, of more languages than a search ignores."""
    return frozenset(word for words in tables()["little"].values() for word in words)


def _readings(figure: str) -> frozenset[str]:
    other = thousands_value(figure)
    return frozenset({normalize_number(figure), *([f"{other:.0f}"] if other is not None else [])})
