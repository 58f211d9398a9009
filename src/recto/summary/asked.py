"""What an item of the ledger needs to be understood: the question that a short answer answers, and the sentences beside
it in its message.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from recto.chat.message import Message
from recto.chat.priority import BINDING, CHATTER, sentence_priority
from recto.summary.choices import asked_alternatives, chosen_options, listed_options, takes_alternative
from recto.summary.facts import Fact, normalize_fact_text
from recto.summary.ledger import AskedQuestion, LedgerEntry
from recto.summary.quotation import count_topic_words, quote_words, sentences_of
from recto.summary.reference import refers_back
from recto.summary.sentences import is_question, rate_sentence, sentence_positions, terms
from recto.summary.small_talk import is_remark
from recto.summary.statements import accepts, agrees, asks_of_unnamed, asks_politely, is_empty_offer

_MAX_QUESTION, _MAX_ANSWER = 140, 80
# What a statement must name to be taken up by a reply.
_MIN_TOPIC = 2
# The assistant repeats what the user said in so many characters, if this much of it is the same.
MAX_REPEATED, _REPEATED_SHARE = 400, 0.6

# A message that is no longer than this is one thought.
_MAX_NEIGHBOURS, _MIN_NEIGHBOURS, _MAX_THIN = 140, 2, 3
# "She is the new project lead"
_IS_SOMEBODY = re.compile(
    r"(?:(?:he|she|they|er|sie|él|ella|il|elle|hij|zij|lui|lei|on|ona|ele|ela)(?:['’]s| is| are| ist| sind| es| est|"
    r" è| jest| é)|es|è|é|jest) ",
    re.IGNORECASE,
)
_NAMES_SUBJECT = re.compile(
    r"(?:the|my|our|his|her|their|der|die|das|mein|meine|unser|unsere|el|la|los|las|mi|le|les|mon|ma"
    r"|notre|il|lo|gli|mio|mia|de|het|mijn|o|a|os|as|meu|minha)\b",
    re.IGNORECASE,
)
# Who says whether an answer is right knows it: the question was for practice, unless it is about the one who is asked.
_VERDICT = re.compile(
    r"\W*(?:yes|no|oui|non|ja|nein|nee|sí|si|almost|hm)?\W*(?:that['’]s |that is |c['’]est |das ist |dat is |es )?"
    r"(?:(?:almost |partly |partially |absolutely |exactly |not quite |ganz |nicht ganz |fast )?"
    r"(?:correct|incorrect|wrong|right|spot on|well done|richtig|falsch|correcto|incorrecto|exacto|correcte|juste|faux"
    r"|exact|juist|fout|esatto|giusto|sbagliato|dobrze|źle)(?=[\s.!,:;–—]|$)|not quite|nicht ganz|pas tout à fait"
    r"|niet helemaal|casi|presque|正解|不正解)",
    re.IGNORECASE,
)
_TO_SOMEBODY = re.compile(
    r"\b(?:you|your|yours|we|our|us|i|my|me|du|dein\w*|dir|dich|ihr|euch|eure?\w*|sie|ihnen|wir|uns\w*|tú|te|tu|tus"
    r"|usted\w*|vosotr\w*|quier\w*|tien\w*|vous|votre|vos|toi|ton|ta|tes|je|jij|jouw?|jullie|u|uw|wij|we|ons|vuoi"
    r"|hai|ti|vi|voi|masz|chcesz|pan\w*)\b|あなた|ますか",
    re.IGNORECASE,
)


class AskedBefore(NamedTuple):
    """What the message before asks."""

    role: str
    question: AskedQuestion | None = None
    """At its end; anywhere, if it is the user's. Where it asks nothing, what it says in bold or last."""
    is_asked: bool = True
    entries: tuple[LedgerEntry, ...] = ()
    """What of the user's does not outlast the reply if that settles it, or what an assistant lists as options."""
    content: frozenset[str] = frozenset()
    """What the user says, in terms: a reply often repeats it."""
    number: int = 0
    options: tuple[str, ...] = ()  # an assistant's, to choose from
    own: tuple[AskedQuestion, tuple[str, ...]] | None = None
    """What the user asked before the assistant's message, and its alternatives."""


def asked_in(
    text: str, message: Message, found: Sequence[LedgerEntry], before: AskedBefore | None
) -> AskedBefore | None:
    """What a message asks; `found` are its entries, and `before` is what the one before it asks."""
    if message.role == "user":
        entries = tuple(entry for entry in found if not entry.lasts or sentence_priority(entry.text) != BINDING)
        questions = [sentence for _, sentence in sentences_of(text).positions if is_question(sentence)]
        question, options = asked_alternatives(text)
        own = (AskedQuestion(message.said, quote_words(question), "user"), options) if options else None
        last = _asked_question(questions[-1:], message)
        return AskedBefore("user", last, entries=entries, content=_content(text), own=own)
    asked = _asked_at_end(text, message)
    if options := listed_options(text):
        listed = tuple(entry for entry in found if any(entry.text in option for option in options))
        return (asked or AskedBefore(message.role))._replace(number=message.said, options=options, entries=listed)
    if before and before.role == "user" and before.own:
        return (asked or AskedBefore(message.role, is_asked=False))._replace(own=before.own)
    return asked


def _asked_at_end(text: str, message: Message) -> AskedBefore | None:
    sentences = [sentence for _, sentence in sentences_of(text).positions]
    sentence = sentences[-1] if sentences else ""
    asked = _asked_question([sentence], message) if is_question(sentence) else None
    said = quote_words(next((one for one in sentences if "**" in one), sentence).rstrip(".!。"))
    if is_empty_offer(sentence):
        return None
    if asked or len(said) > _MAX_QUESTION or said.endswith("…") or count_topic_words(said) < _MIN_TOPIC:
        return AskedBefore(message.role, asked) if asked else None
    return AskedBefore(message.role, AskedQuestion(message.said, said), is_asked=False)


def _asked_question(questions: Sequence[str], message: Message) -> AskedQuestion | None:
    for sentence in questions:
        item = quote_words(sentence)
        is_useless = is_empty_offer(sentence) or asks_of_unnamed(sentence) or asks_politely(sentence)
        is_useless = is_useless and message.role == "assistant"
        if len(sentence) <= _MAX_QUESTION and item.endswith(("?", "？")) and not is_useless:
            return AskedQuestion(message.said, item)
    return None


def _content(text: str) -> frozenset[str]:
    return terms(text) if len(text) <= MAX_REPEATED else frozenset()


def was_for_practice(question: AskedQuestion, verdict: str) -> bool:
    """Whether a reply to an answer judges it: "Correct! Next: …". What is asked about a person's own matter is not."""
    return bool(_VERDICT.match(verdict)) and is_impersonal(question)


def is_impersonal(question: AskedQuestion) -> bool:
    """Whether a question is about nobody who talks here, as those of an exercise are."""
    return not _TO_SOMEBODY.search(question.text)


def answer_end(text: str, before: AskedBefore) -> int:
    """Where the words end that answer what the assistant asked, or take what it said: "300 words. In English." """
    first = sentences_of(text).positions[:1]
    if before.role != "assistant" or before.question is None or not first:
        return 0
    end = first[0][0] + len(first[0][1])
    is_taken = before.is_asked or accepts(text[:end])
    return end if is_taken and end <= _MAX_ANSWER else 0


def taken_option(text: str, before: AskedBefore) -> AskedQuestion | None:
    """The option that a short answer takes by its place in a list, or the question of which it takes an alternative."""
    if before.own and takes_alternative(text, before.own[1]):
        return before.own[0]
    chosen = chosen_options(text, before.options)
    return AskedQuestion(before.number, quote_words(before.options[chosen[0]])) if chosen else None


def option_entries(text: str, before: AskedBefore) -> Iterator[LedgerEntry]:
    """What a choice makes of the other options: those that are taken too, and those that are not."""
    chosen = [before.options[at] for at in chosen_options(text, before.options)]
    for option in chosen[1:]:
        fact = Fact("decision", option, normalize_fact_text(option), 0, len(option))
        yield LedgerEntry(fact, quote_words(option), before.number)
    for entry in before.entries:
        if not any(entry.text in option for option in chosen):
            yield replace(entry, is_settled=True)


def repeats_question(item: str, before: AskedBefore | None) -> bool:
    """Whether the assistant says again what the user has just said."""
    if before is None or before.role != "user":
        return False
    content = {term for term in terms(item) if len(term) > 2}
    known = content & before.content
    has_news = any(char.isdigit() for term in content - known for char in term)
    return not has_news and len(known) >= _REPEATED_SHARE * max(1, len(content))


def with_neighbours(entries: Iterable[LedgerEntry], text: str) -> list[LedgerEntry]:
    """The entries of a user's short message, each with the sentences that it needs: those before it, which name what it
    is about ("labelled. G1 to G4" rather than "G1 to G4"), and the one after a name, which says who that is."""
    found = list(sentence_positions(text)) if len(text) <= _MAX_NEIGHBOURS and "\n" not in text else []
    if len(found) < _MIN_NEIGHBOURS:
        return list(entries)
    return [_with_neighbours(entry, text, found) for entry in entries]


def _with_neighbours(entry: LedgerEntry, text: str, found: Sequence[tuple[int, str]]) -> LedgerEntry:
    at = text.find(entry.text)
    if at < 0 or entry.question:
        return entry
    end = at + len(entry.text)
    first = next((start for start, sentence in found if not _is_light(sentence)), at)
    after = next(((start, sentence) for start, sentence in found if start >= end), None)
    is_clear = count_topic_words(entry.text) > _MAX_THIN or _NAMES_SUBJECT.match(entry.text)
    start = at if is_clear or at < found[1][0] else min(first, at)
    if entry.fact.kind == "name" and after and _IS_SOMEBODY.match(after[1]):
        end = after[0] + len(after[1].rstrip(".!"))
    item = text[start:end]
    if item == entry.text or quote_words(item) != item:
        return entry
    return replace(entry, text=item, short=entry.short or entry.text)


def _is_light(sentence: str) -> bool:
    is_empty = rate_sentence(sentence) == CHATTER or is_remark(sentence) or agrees(sentence)
    return is_empty or refers_back(sentence) or not count_topic_words(sentence)
