"""Extractive summary: the most needed sentences of a conversation, in order of time, chosen without a model.

A fitted scorer estimates how likely each is needed. The best are taken while they are worth their tokens and there is
room, skipping repetitions and superseded sentences. Every word comes from the originals. `truncate` is the last resort.
No I/O; `count` returns the tokens of a text.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from recto.chat.message import Message, Role
from recto.sentences.features import PlainMessage as PlainMessage
from recto.sentences.features import Sentence, read_conversation, shape_of, terms_of
from recto.sentences.scorer import is_superseded, needed
from recto.sentences.segments import UNSPACED, is_question
from recto.sources.tools import RECALL
from recto.summary.agent_steps import continue_work_log, find_observations, says_all_by_outcome, split_command
from recto.summary.truncation import CountTokens, cut_text, cut_to_fit, largest_fitting
from recto.summary.work_log import WorkLog

# A line of a summary: the speaker, the message's number if the order does not show it, and whether it quotes somebody.
LABEL = re.compile(r"(User|Assistant|Tool)(?: \(#(\d{1,12})\))?(?:, quoting(?: [^:\n]{1,40})?)?: (?=\S)")
_ROLES: dict[str, Role] = {"User": "user", "Assistant": "assistant", "Tool": "tool"}
SEPARATOR = " / "
_STOPS, _CLOSING = tuple(".!?:;,…。！？：；，｡؟۔।॥։။"), "\"'”’»)]}*_`」』】）"
# A work log's share of the room, and its maximum with files and commands that do not fit into that.
_WORK_SHARE, _MAX_WORK_SHARE = 0.6, 0.8
# Less likely sentences are not worth their tokens, however much room is left (`bench/summary_keys.py`): .15 keeps 1 to
# 3 % more of what readers needed, and 1 to 3 % fewer of the sentences are worth their place.
FLOOR = 0.2
# Favours short sentences: the exponent of a sentence's tokens, with room for a fifth of the text and with more.
SCARCE, _SCARCE_LENGTH, _LENGTH = 0.2, 0.75, 0.5
# Factor for sentences of a former summary, so that they stay if there is room.
_FORMER_BONUS = 1.5
# The share of a sentence's terms in another one that makes it a repetition.
_REPEATS = 0.65
# The penalty of each further sentence of one shape.
_SERIES = 0.3
# The likelihood that a sentence needs to supersede an earlier one.
_SUPERSEDES = 0.1
# Factor for the user's sentences: it keeps 1 % more of what readers needed, on held-out authors.
_BY_USER = 1.3
# Bonus for what the user wants kept, by the share of its words.
_KEEP_BONUS = 5.0
_MAX_TRUNCATED_MESSAGE = 200
_LONGEST_SHARE = 3
# A short answer says nothing without the question before it.
SHORT_ANSWER, _MAX_QUESTION = 32, 160


# -- messages as they are read here


def day_of(created: str) -> date | None:
    """The day of a message in the user's time zone; None for a time that cannot be parsed."""
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(created).astimezone().date()
    return None


def plain_messages(
    messages: Sequence[Message], *, has_log: bool, goes_on: bool = False, late: Collection[int] = ()
) -> list[PlainMessage]:
    """`goes_on`: a former summary covers what came before; `late` are the numbers of messages that it should have
    covered."""
    observed = find_observations(messages, goes_on=goes_on) if has_log else {}
    calls = [call for message in messages for call in message.calls] if has_log else []
    told = {call.id for call in calls if says_all_by_outcome(call.name, call.arguments)}
    said: list[PlainMessage] = []
    before = None
    for message in messages:
        text = "" if message.id in observed else _text_of(message, told, has_log=has_log)
        number, day = message.said if message.said in late else 0, day_of(message.time)
        is_call = not message.text and bool(message.calls)
        is_later = bool(day and before and day != before)
        said.append(PlainMessage(message.role, text, number, is_call=is_call, after_gap=is_later))
        before = day or before
    return said


def _text_of(message: Message, told: set[str], *, has_log: bool) -> str:
    """A work log covers the calls, and all that matters in the results of those in `told`."""
    results = [result.text for result in message.results if result.name != RECALL and result.call_id not in told]
    text = message.text or "\n".join(results)
    if has_log:
        return split_command(text)[0] if message.role == "assistant" else text
    return text or " ".join(f"{call.name} {call.arguments}" for call in message.calls)


# -- chosen sentences


@dataclass(slots=True)
class Extraction:
    """Messages and a former summary, read once to make summaries of several lengths."""

    messages: Sequence[PlainMessage]
    count: CountTokens
    former: str = ""
    work: WorkLog | None = None
    """Precedes the sentences and contains the task."""
    keep: str = ""
    """The user's wish for what to keep above all."""
    _all: Sequence[PlainMessage] = ()
    _said: Sequence[Sentence] = ()
    _worth: Sequence[float] = ()
    _tokens: Sequence[float] = ()
    _is_read: bool = False

    def within(self, limit: int) -> str:
        """The most needed sentences of the former summary and of the messages since, in order."""
        if limit <= 0:
            return ""
        self._read()
        log = self.work.render(int(limit * _WORK_SHARE), self.count, int(limit * _MAX_WORK_SHARE)) if self.work else ""
        room = limit - (self.count(log) + 1 if log else 0)
        chosen = self._chosen(room)
        fitting = largest_fitting(
            lambda number: self.count(self._rendered(chosen[:number])) <= room, len(chosen), len(chosen)
        )
        text = self._rendered(chosen[:fitting])
        if not (text or log):
            text = self._best_cut(room)
        return "\n\n".join(filter(None, (log, text)))

    def texts(self, limit: int) -> list[str]:
        """Only the sentences, in order, as many as fit."""
        self._read()
        return [self._said[at].segment.text for at in sorted(self._chosen(limit, floor=0))]

    def _read(self) -> None:
        if self._is_read:
            return
        self._is_read = True
        self._all = [*former_messages(self.former), *self.messages]
        self._said, rows = read_conversation(self._all)
        wanted = terms_of(self.keep)
        likely = needed(self._said, rows)
        shares = [len(wanted & each.terms) / (len(wanted) or 1) for each in self._said]
        self._worth = [found * (1 + _KEEP_BONUS * share) for found, share in zip(likely, shares, strict=True)]
        sample = "\n".join(each.segment.text for each in self._said[:: len(self._said) // 40 + 1])
        density = self.count(sample) / max(1, len(sample))
        self._tokens = [len(each.segment.text) * density + 0.5 for each in self._said]

    def _weight(self, sentence: Sentence) -> float:
        message = self._all[sentence.message]
        return (_FORMER_BONUS if message.is_former else 1.0) * (_BY_USER if message.role == "user" else 1.0)

    def _chosen(self, room: int, floor: float = FLOOR) -> list[int]:
        length = _SCARCE_LENGTH if room < SCARCE * sum(self._tokens) else _LENGTH
        order = self._order(length)
        chosen: dict[int, None] = {}
        by_term: dict[str, list[int]] = {}
        left: float = room
        for at in order:
            sentence = self._said[at]
            is_needless = self._worth[at] < floor and not self._all[sentence.message].is_former
            if is_needless or at in chosen or is_superseded(sentence, self._said, self._worth, _SUPERSEDES):
                continue
            wanted = [*self._question_of(at), at] if not self._repeats(at, by_term) else []
            cost = sum(self._tokens[one] for one in wanted)
            if not wanted or cost > left or (self._tokens[at] > room // _LONGEST_SHARE and len(chosen) > 1):
                continue
            left -= cost
            for one in wanted:
                chosen[one] = None
                for term in self._said[one].terms:
                    by_term.setdefault(term, []).append(one)
        return list(chosen)

    def _order(self, length: float) -> list[int]:
        ranks = [
            worth * self._weight(sentence) / (tokens + 3) ** length
            for sentence, worth, tokens in zip(self._said, self._worth, self._tokens, strict=True)
        ]
        alike = Counter[str]()
        for at in sorted(range(len(ranks)), key=lambda at: (-ranks[at], at)):
            shape = shape_of(self._said[at])
            ranks[at] /= 1 + _SERIES * alike[shape]
            alike[shape] += 1
        return sorted(range(len(ranks)), key=lambda at: (-ranks[at], at))

    def _repeats(self, at: int, by_term: dict[str, list[int]]) -> bool:
        sentence = self._said[at]
        shared = Counter(other for term in sentence.terms for other in by_term.get(term, ()))
        return any(
            count >= _REPEATS * len(sentence.terms) and sentence.figures <= self._said[other].figures
            for other, count in shared.items()
        )

    def _question_of(self, at: int) -> list[int]:
        """The question that a short answer of the user answers."""
        sentence = self._said[at]
        message = self._all[sentence.message]
        if message.role != "user" or len(message.text) > SHORT_ANSWER or not sentence.message or message.is_former:
            return []
        first = bisect_left(self._said, sentence.message - 1, hi=at, key=lambda each: each.message)
        before = [place for place in range(first, at) if self._said[place].message < sentence.message]
        asked = [place for place in before if is_question(self._said[place].segment.text)]
        return [place for place in asked[-1:] if len(self._said[place].segment.text) <= _MAX_QUESTION]

    def _rendered(self, chosen: Sequence[int]) -> str:
        """One line per message. A line without a label continues the previous speaker."""
        lines: list[str] = []
        before: Sentence | None = None
        spoken = ""
        for at in sorted(chosen):
            sentence = self._said[at]
            text = self._text(sentence)
            label = label_of(self._all[sentence.message], is_quote=sentence.segment.kind == "quote")
            if before and before.message == sentence.message and label == spoken:
                lines[-1] += _gap(before.segment.text, text) + text
            else:
                lines.append(text if label == spoken and not LABEL.match(text) else label + text)
            before, spoken = sentence, label
        return "\n".join(lines)

    def _text(self, sentence: Sentence) -> str:
        message, text = self._all[sentence.message], " ".join(sentence.segment.text.split())
        label = LABEL.match(text) if message.role == "tool" else None
        return text[label.end() :] if label else text

    def _best_cut(self, room: int) -> str:
        """The beginning of the best sentence, if none fits."""
        best = max(range(len(self._said)), key=lambda at: self._worth[at], default=None)
        if best is None or self._worth[best] < FLOOR:
            return ""
        sentence = self._said[best]
        label = label_of(self._all[sentence.message])
        text = cut_to_fit(self._text(sentence), room - self.count(label) - 1, self.count)
        return label + text if text and self.count(label + text) <= room else ""


def extraction_of(messages: Sequence[Message], count: CountTokens) -> Extraction:
    """Messages without a summary, with a work log if tools were used."""
    log = continue_work_log("", messages)
    return Extraction(plain_messages(messages, has_log=log is not None), count, work=log)


def _gap(first: str, second: str) -> str:
    if not first.rstrip(_CLOSING).endswith(_STOPS):
        return SEPARATOR
    return "" if UNSPACED.match(second) else " "


def label_of(message: PlainMessage, *, is_quote: bool = False) -> str:
    """Lines edited by the user have none."""
    if message.is_former and message.role == "tool" and not message.is_call:
        return ""
    role = "tool" if message.is_call else message.role
    number = f" (#{message.number})" if message.number else ""
    return f"{role.capitalize()}{number}{', quoting' if is_quote else ''}: "


def former_messages(former: str) -> Iterator[PlainMessage]:
    """The lines of a former summary as messages."""
    role: Role = "tool"
    number = 0
    for line in filter(str.strip, former.splitlines()):
        label = LABEL.match(line)
        if label:
            role, number = _ROLES[label[1]], int(label[2] or 0)
        text = line[label.end() :] if label else line.strip()
        yield PlainMessage(role, text.replace(SEPARATOR, "\n"), number, is_former=True)


def truncate(messages: Sequence[PlainMessage], limit: int, count: CountTokens, former: str = "") -> str:
    """The last resort: the beginnings of the former summary and of the newest messages."""
    head = cut_to_fit(former.strip(), limit // 2 if messages else limit, count)
    latest = messages[-max(limit, 1) :]
    starts = [label_of(message) + _start(message.text) for message in latest if message.text]

    def newest(number: int) -> str:
        return "\n".join([head, *starts[len(starts) - number :]]).strip()

    number = largest_fitting(lambda number: count(newest(number)) <= limit, len(starts), limit // 32)
    if number or not starts:
        return newest(number)
    starts[-1] = cut_to_fit(starts[-1], limit - (count(head) + 1 if head else 0), count)
    return newest(1) if count(newest(1)) <= limit else head


def _start(text: str) -> str:
    return cut_text(" ".join(text[: 4 * _MAX_TRUNCATED_MESSAGE].split()), _MAX_TRUNCATED_MESSAGE)
