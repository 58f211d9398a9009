"""Ledger entries of a text: which of its facts a reader would miss, each with the words that tell it.

People's facts come in their own words; greetings and words without a topic are left out. Of machine output and of what
was pasted, only a little counts.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from recto.chat.message import Message
from recto.chat.priority import BINDING, CHATTER
from recto.chat.priority import sentence_priority as rate_by_cues
from recto.summary.asked import MAX_REPEATED, AskedBefore, answer_end, option_entries, repeats_question, taken_option
from recto.summary.corrections import corrects
from recto.summary.deadlines import plans_for_day
from recto.summary.decisions import find_answers, find_decisions, shorten_decision
from recto.summary.facts import Fact, normalize_fact_text
from recto.summary.ledger import CORRECTABLE, UNLISTED, VALUE_KINDS, LedgerEntry, is_reported
from recto.summary.ledger_worth import answers_in_part, answers_with_list, is_torn, list_rows
from recto.summary.machine_output import OUTCOME, PROSE, QUOTED, ROW, LineKinds, has_cells, mark_pasted
from recto.summary.model_orders import SOMEBODY, is_order
from recto.summary.pasted_text import SpokenPart, is_personal, mark_quoted, quotation_runs, quoted_lines, spoken_parts
from recto.summary.people import introductions, is_introduction
from recto.summary.quotation import (
    Quoted,
    Sentences,
    count_topic_words,
    quote_decision,
    quote_fact,
    quote_line,
    quote_words,
    sentences_of,
)
from recto.summary.reference import ANTECEDENT, leans_back, names_event
from recto.summary.sentences import is_question, rate_sentence, sentence_positions
from recto.summary.small_talk import is_small_talk_reply
from recto.summary.statements import (
    acknowledges,
    agrees,
    answers,
    asks_for_text,
    asks_politely,
    is_announcement,
    is_draft,
    is_request,
    leaves_open,
    says_little,
    settles,
)
from recto.summary.success import works_now
from recto.summary.worth import is_advice, is_worth_telling, needs_context

# How many facts of a kind one output may contribute, and how many rows of a table.
_MAX_OF_KIND, _MAX_TABLE = 4, 8
_MIN_ROW, _MAX_ROW = 8, 90
_MAX_ANSWER = 80
_MIN_DOCUMENT, _MAX_OWN = 3000, 600
_NAME_TOPIC, _MAX_ADDRESS = 2, 8
_MAX_REQUEST, _REQUEST_TOPIC = 140, 3
# By how many ranks an order without a "please" is lowered: "Check out the crowd" is one by its form alone.
_BARE_ORDER = 2
_STATEMENT_TOPIC = 2
# How much of a reply is read to tell whether it leaves a question open.
_REPLY_START = 200
# These are understood by themselves.
_SELF_EVIDENT = ("path", "url", "command", "error")
# In machine output these are anything that is capitalised or in quotes.
_PEOPLES = ("name", "quote", "identifier")
# Every fact but a decision has one of these.
_MAY_TELL = re.compile(
    r"[\d\"`/@_$A-Z.:-](?:(?<=[\d\"`/@_$])|(?<=\S [A-Z])|(?<=[A-Z])(?<![\s\S][A-Z])\w*[A-Z]|(?<=\w\.)\w|(?<=-)-\w"
    r"|(?<=rror:)|(?<=xception:))"
)
# What a user gives to be used is listed, however it is worded.
_GIVEN = (*_SELF_EVIDENT, "version", "identifier")
# These need a sentence that is worth telling, even the user's.
_WEAK = ("number", "date", "time", "quote", "name", "request")


def entries_of_output(text: str, facts: Iterable[Fact], message: Message) -> Iterator[LedgerEntry]:
    """What a tool, a program or a file says. A tool's call is the assistant's word; which files and commands it is for
    stands in the work log."""
    role = "assistant" if message.role == "assistant" else "tool"
    for fact, item in _quote_output(text, facts):
        is_logged = role == "assistant" and fact.kind != "error"
        yield LedgerEntry(fact, item, message.said, role=role, lowered=UNLISTED * is_logged)


def entries_of_prose(
    text: str, facts: Sequence[Fact], lines: LineKinds, message: Message, before: AskedBefore | None
) -> Iterator[LedgerEntry]:
    """What a person or the assistant says. `before` is what the message before asks: a short answer is understood
    together with it."""
    parts = spoken_parts(text)
    written, lines = lines, mark_quoted(mark_pasted(text, lines), parts)
    yield from entries_settled(text, message, before)
    is_user = message.role == "user"
    told = _Told(text, is_user)
    rows = list_rows(text, lines)
    is_answer = is_user and len(text) <= _MAX_ANSWER
    answered = before.question if is_answer and before and before.role == "assistant" else None
    asked = answered if before and before.is_asked else None
    if is_answer and before and (taken := taken_option(text, before)):
        item = quote_words(text.rstrip(".!"))
        fact = Fact("decision", text, normalize_fact_text(text), 0, len(text))
        yield LedgerEntry(fact, item, message.said, role="user", question=taken)
        yield from option_entries(text, before)
        asked = answered = None
    end = len(text) if asked else answer_end(text, before) if is_user and before else 0
    has_facts = False
    for fact, (item, short) in _quote_prose(text, facts, lines, answer_end=end, is_user=is_user):
        is_reply = fact.kind in VALUE_KINDS and fact.end <= end
        is_correction = is_user and corrects(item)
        is_understood = asked or is_reply or says_little(item) or is_correction or told.is_understood(fact, item)
        if not is_understood and (fact.kind in _WEAK or not is_user):
            continue
        if message.role == "assistant" and len(text) <= MAX_REPEATED and repeats_question(item, before):
            continue
        is_alone = (fact.kind == "decision" and count_topic_words(item) > 0) or (
            fact.kind not in _SELF_EVIDENT
            and _is_understood(fact, item)
            and not needs_context(item)
            and not (asked and answers_in_part(item, asked.text))
        )
        needed = None if is_alone else asked
        if is_reply and before and count_topic_words(item) < _STATEMENT_TOPIC:
            needed = before.question
        if says_little(item) and (needed := answered) is None:
            continue
        has_facts = True
        # the middle of a long text was hardly written for this message
        is_own = min(fact.start, len(text) - fact.end) < _MAX_OWN or len(text) < _MIN_DOCUMENT
        is_bare = fact.kind == "request" and not asks_politely(item)
        lowered = _BARE_ORDER * is_bare + int(not is_own or (fact.kind != "decision" and item.endswith(("?", "？"))))
        # what a reader of the ledger cannot place, and an assistant's knowledge, is no line of it
        is_given = is_understood or fact.kind in _GIVEN
        is_given = (is_given and not works_now(item)) or rate_by_cues(item) == BINDING
        # what is said beside a call, a work log tells
        is_placed = is_given if is_user else told.is_reported(fact) and not message.calls
        is_piece = fact.kind not in (*_GIVEN, "decision") and is_torn(item, fact, rows, is_user=is_user)
        lowered += (not is_user and is_advice(item)) + UNLISTED * (not is_placed or is_piece)
        # what it corrects may be worded otherwise; what was asked for is worth more than what comes up
        is_asked_for = fact.kind in VALUE_KINDS and asked is not None and needed is None
        lowered -= is_asked_for or (is_correction and fact.kind in CORRECTABLE)
        yield LedgerEntry(fact, item, message.said, role=message.role, question=needed, short=short, lowered=lowered)
    is_taken = says_little(text) and not agrees(text)
    if answered and ((not has_facts and rate_sentence(text) != CHATTER) or agrees(text) if asked else is_taken):
        fact = Fact("quote", text, normalize_fact_text(text), 0, len(text))
        yield LedgerEntry(fact, quote_words(text.rstrip(".!")), message.said, role="user", question=answered)
    if len(lines.starts) == lines.kinds.count(PROSE):
        return
    output = [fact for fact in facts if lines.at(fact.start) not in (PROSE, ROW, QUOTED)]
    output = [fact for fact in output if fact.kind not in VALUE_KINDS or lines.at(fact.start) == OUTCOME]
    for fact, item in _quote_output(text, output):
        yield LedgerEntry(fact, item, message.said, role=message.role, lowered=UNLISTED)
    for fact, item in _quote_others(text, facts, parts):
        yield LedgerEntry(fact, item, message.said, role=message.role, lowered=2)
    if message.role == "user":
        for fact in _rows(text, written, lines):
            yield LedgerEntry(fact, fact.text, message.said, role="user")


def has_entries(text: str, lines: LineKinds) -> bool:
    """Whether an assistant's text may hold anything that a reader would miss."""
    if is_draft(text):
        return False
    has_output = len(lines.starts) != lines.kinds.count(PROSE)
    return has_output or any(
        (not sentence.isascii() or _MAY_TELL.search(sentence) or rate_sentence(sentence) == BINDING)
        and is_worth_telling(sentence, is_assistant=True)
        for _, sentence in sentences_of(text).positions
    )


def entries_settled(text: str, message: Message, before: AskedBefore | None) -> Iterator[LedgerEntry]:
    """What was asked in the message before this one, and is settled or said to be open by it."""
    if before and before.role != message.role:
        yield from _settled(text, message, before)


class _Told:
    """Which sentences of a text are worth telling."""

    def __init__(self, text: str, is_user: bool) -> None:
        self.sentences = sentences_of(text)
        self.is_user = is_user
        self.quoted = quotation_runs([sentence for _, sentence in self.sentences.positions])
        self.known: dict[int, bool] = {}

    def is_understood(self, fact: Fact, item: str) -> bool:
        """Whether the sentence of a fact is worth telling and names what it is about, or the item brings the one before
        it that does."""
        at = self.sentences.number(fact.start)
        if at is None:
            return True
        sentence = self.sentences.positions[at][1]
        before = self.sentences.positions[at - 1][1] if at else ""
        if before and item.startswith(before):
            return self._names_topic(before) if self.is_user else not needs_context(item)
        if needs_context(item):
            return False
        if at not in self.known:
            is_quoted = at in self.quoted
            self.known[at] = is_worth_telling(sentence, is_assistant=not self.is_user, is_quoted=is_quoted)
        return self.known[at]

    def _names_topic(self, before: str) -> bool:
        """Whether the sentence before a fact tells what it is about: "exam got moved!! its 24 jan now"."""
        return (ANTECEDENT.search(before) is not None or names_event(before)) or (
            is_worth_telling(before, is_assistant=False) and not acknowledges(before)
        )

    def is_reported(self, fact: Fact) -> bool:
        """Whether an assistant tells something that happened or that can be looked up, rather than what it knows, is
        about to do, or has just got to work."""
        at = self.sentences.number(fact.start)
        if at is None:
            return True
        sentence = self.sentences.positions[at][1]
        is_past = is_announcement(sentence) or works_now(sentence)
        return is_reported(fact.kind, sentence) and not (is_past and rate_by_cues(sentence) != BINDING)


def _settled(text: str, message: Message, before: AskedBefore) -> Iterator[LedgerEntry]:
    """What was asked before this text: that it was done, or that it is still open."""
    asked = before.question
    if before.role == "user" and before.entries:
        is_done, is_answered = bool(message.calls) or settles(text), answers(text) or answers_with_list(text)
        is_small_talk = is_small_talk_reply(text)
        requests = {entry.text for entry in before.entries if entry.fact.kind == "request"}
        for entry in before.entries:
            is_asked = is_question(entry.text) and not leaves_open(entry.text)
            is_past = is_done if entry.text in requests else is_answered if is_asked else is_small_talk
            is_past = is_past and not (is_small_talk and plans_for_day(entry.text))
            if is_past and (entry.fact.kind == "decision" or not entry.lasts):
                yield replace(entry, is_settled=True)
    if (
        asked
        and before.is_asked
        and leaves_open(text[:_REPLY_START])
        and not answers_with_list(text)
        and count_topic_words(asked.text) >= _STATEMENT_TOPIC
    ):
        fact = Fact("question", asked.text, normalize_fact_text(asked.text), 0, len(asked.text))
        yield LedgerEntry(fact, asked.text, asked.number, role=before.role)


# -- prose


def _quote_prose(
    text: str, facts: Sequence[Fact], lines: LineKinds, *, answer_end: int, is_user: bool
) -> Iterator[tuple[Fact, Quoted]]:
    sentences = sentences_of(text)
    binding: dict[tuple[int, int], Quoted] = {}
    for decision in find_decisions(text, lines, sentences.positions):
        item = quote_decision(decision, text, sentences, shorten_decision(decision.text))
        binding[sentences.around(decision.start) or (decision.start, decision.end)] = item
        if not is_order(decision.text):
            yield replace(decision, kind="request") if is_user and asks_for_text(decision.text) else decision, item
    if is_user:
        yield from _requests(sentences, lines, binding)
        yield from _open_questions(sentences, lines, binding)
        introduced = (introductions(sentence, start) for start, sentence in sentences.positions)
        facts = [*chain.from_iterable(introduced), *facts]
    first = {(fact.kind, fact.normal): fact for fact in reversed(facts) if fact.is_significant}
    for fact in first.values():
        if lines.at(fact.start) != PROSE:
            continue
        place = sentences.around(fact.start)
        if place and is_order(text[place[0] : place[1]]):
            continue
        bound = binding.get(place) if place else None
        if bound and fact.text in bound.short:
            yield fact, bound
        elif not place or rate_sentence(text[place[0] : place[1]]) != CHATTER:
            quoted = quote_fact(fact, text, sentences)
            if fact.end <= answer_end or _is_understood(fact, quoted.text):
                yield fact, quoted
    for fact in find_answers(text, "user") if answer_end == len(text) else ():
        yield fact, Quoted(quote_words(fact.text), "")


def _requests(
    sentences: Sentences, lines: LineKinds, binding: dict[tuple[int, int], Quoted]
) -> Iterator[tuple[Fact, Quoted]]:
    """What the user asks somebody to do."""
    for start, sentence in sentences.positions:
        place = (start, start + len(sentence))
        if len(sentence) <= _MAX_REQUEST and is_request(sentence) and place not in binding:
            item = quote_words(sentence.rstrip(".!"))
            if lines.at(start) == PROSE and count_topic_words(item) >= _REQUEST_TOPIC and not leans_back(sentence):
                binding[place] = Quoted(item, item)
                yield Fact("request", sentence, normalize_fact_text(sentence), *place), binding[place]


def _open_questions(
    sentences: Sentences, lines: LineKinds, binding: dict[tuple[int, int], Quoted]
) -> Iterator[tuple[Fact, Quoted]]:
    """What the user says is not known yet: "Who pays? Nobody could tell me." """
    after = [*(sentence for _, sentence in sentences.positions[1:]), ""]
    for (start, sentence), following in zip(sentences.positions, after, strict=False):
        place = (start, start + len(sentence))
        is_open = leaves_open(following if is_question(sentence) else sentence)
        if is_open and place not in binding and len(sentence) <= _MAX_REQUEST and lines.at(start) == PROSE:
            # "I have to ask Petra" needs the question, and a reply hardly settles it
            whole = f"{sentence} {following}" if is_question(sentence) and not is_question(following) else sentence
            item = quote_words((whole if len(whole) <= _MAX_REQUEST else sentence).rstrip(".!"))
            if count_topic_words(item) >= (_STATEMENT_TOPIC if is_question(sentence) else _REQUEST_TOPIC):
                binding[place] = Quoted(item, item)
                if len(item) > len(sentence):
                    binding[sentences.around(place[1] + 1) or place] = binding[place]
                yield Fact("question", sentence, normalize_fact_text(sentence), *place), binding[place]


def _is_understood(fact: Fact, item: str) -> bool:
    """Whether an item tells more than a word: a figure needs its topic, a name something about it."""
    if fact.kind in _SELF_EVIDENT or (fact.kind == "name" and is_introduction(fact.text)):
        return True
    rest = item.replace(fact.text, " ", 1)
    if fact.kind == "identifier" and len(fact.text) > 3:
        return count_topic_words(rest) > 0 or not fact.text.isalpha()
    if fact.kind == "name" and not _is_addressed(fact, item):
        return count_topic_words(rest, lower=True) >= (1 if " " in fact.text else _NAME_TOPIC)
    return fact.kind != "name" and count_topic_words(rest) >= (_NAME_TOPIC if fact.kind == "quote" else 1)


def _is_addressed(fact: Fact, item: str) -> bool:
    """ "Glad it helped you, Ada" tells nothing about Ada."""
    if " " in fact.text:
        return False
    first, _, rest = item.partition(", ")
    if first == fact.text or (first.isalpha() and rest.startswith(f"{fact.text},")):  # "Wow, Ada, that is …"
        return True
    return item.endswith(f", {fact.text}") and len(item.split()) <= _MAX_ADDRESS


# -- the words of others


def _quote_others(text: str, facts: Sequence[Fact], parts: Sequence[SpokenPart]) -> Iterator[tuple[Fact, str]]:
    """Facts in what is pasted, with the name of the speaker that stands before. Where there is none, nothing is told
    that would seem to be said of the user."""
    counts: Counter[str] = Counter()
    ordered = sorted((fact for fact in facts if fact.kind not in _PEOPLES), key=lambda fact: fact.start)
    for line in quoted_lines(text, parts):
        for at, sentence in sentence_positions(line.text):
            start, end = line.offset + at, line.offset + at + len(sentence)
            item = quote_words(text[line.start : end].rstrip(".!"))
            is_labelled = line.is_labelled and not item.endswith("…")
            if is_order(sentence, speaker=line.speaker) or (not is_labelled and is_personal(sentence)):
                continue
            item = item if is_labelled else quote_words(sentence.rstrip(".!"))
            found = find_decisions(sentence, LineKinds((), (), ())) if is_labelled else []
            first, last = (bisect_left(ordered, place, key=lambda fact: fact.start) for place in (start, end))
            found += [fact for fact in ordered[first:last] if fact.text in item and _is_understood(fact, item)]
            for fact in found:
                if counts[fact.kind] < _MAX_OF_KIND and fact.is_significant:
                    counts[fact.kind] += 1
                    yield fact, item


# -- machine output


def _quote_output(text: str, facts: Iterable[Fact]) -> Iterator[tuple[Fact, str]]:
    """The first facts of each kind. A number and a path stand in their line: alone, nobody knows what they are."""
    counts: Counter[str] = Counter()
    for fact in facts:
        if not fact.is_significant or fact.kind in _PEOPLES or counts[fact.kind] >= _MAX_OF_KIND:
            continue
        is_on_line = fact.kind in VALUE_KINDS or fact.kind == "path"
        item = quote_line(fact, text) if is_on_line else quote_words(fact.text)
        if is_order(_line_of(text, fact), speaker=SOMEBODY):
            continue
        if is_on_line and (item.endswith("…") or not count_topic_words(item.replace(fact.text, " ", 1))):
            continue
        if len(item) > 2:
            counts[fact.kind] += 1
            yield fact, item


def _line_of(text: str, fact: Fact) -> str:
    return text[text.rfind("\n", 0, fact.start) + 1 : fact.end].strip()


def _rows(text: str, written: LineKinds, pasted: LineKinds) -> Iterator[Fact]:
    """The rows of a short table. Those of a long one and of a log tell nothing alone."""
    is_row = [before == PROSE and kind == ROW for before, kind in zip(written.kinds, pasted.kinds, strict=True)]
    rows = 0 if sum(is_row) > _MAX_TABLE else _MAX_TABLE
    for start, end, is_wanted in zip(pasted.starts, (*pasted.starts[1:], len(text)), is_row, strict=True):
        row = " ".join(text[start:end].split())
        if is_wanted and rows and not has_cells(row) and _MIN_ROW <= len(row) <= _MAX_ROW and row == quote_words(row):
            rows -= 1
            yield Fact("row", row, normalize_fact_text(row), start, end)
