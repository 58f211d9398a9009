"""Extractive summary: the most important sentences of a conversation, in order of time, chosen without a model.

Sentences are scored, selected while they add something new, and cut to fit; every word comes from the originals.
`truncate` is the last resort. No I/O; `count` says how many tokens a text takes.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from recto.chat.priority import BINDING
from recto.summary.corrections import find_corrections
from recto.summary.machine_output import is_machine_made
from recto.summary.message_lines import MAX_ROUNDS, ROLE_WEIGHTS, label_of, message_lines
from recto.summary.message_lines import PlainMessage as PlainMessage
from recto.summary.message_lines import is_settled as was_settled
from recto.summary.relative_dates import add_dates
from recto.summary.sentence_context import SentenceContext
from recto.summary.sentence_pool import SentencePool, build_pool
from recto.summary.sentence_score import MIN_USEFUL_SCORE, MIN_WORTH_SCORE, is_binding
from recto.summary.sentence_selection import SentenceRanking, SentenceSelection, select_required
from recto.summary.sentence_series import without_passing_series
from recto.summary.sentences import is_heading, rate_sentence, sentences, terms
from recto.summary.small_talk import is_small_talk_reply
from recto.summary.source_lines import (
    ASSISTANT,
    FORMER_SUMMARY,
    TOOL,
    ScoredSentence,
    SentenceKey,
    SourceLine,
)
from recto.summary.statements import settles
from recto.summary.term_weights import TermWeights
from recto.summary.truncation import CountTokens, cut_text, cut_to_fit, largest_fitting
from recto.summary.work_log import WorkLog
from recto.summary.worth import is_worth_telling

_LABEL = re.compile(r"(User|Assistant|Tool)(?: \(#(\d{1,12})\))?(, quoting(?: ([^:]{1,40}))?)?: (?=\S)")
_LABELS = re.compile(rf"^{_LABEL.pattern}", re.MULTILINE)
# The first line of a former summary weighs half as much again; this bonus decays over the lines after it.
_FRONT_BONUS, _FRONT_DECAY = 0.5, 3.0
# The former summary's share of the room, of what neither needs for what binds, and its bounds: bench/summary.py.
_FORMER_SHARE, _MIN_FORMER, _MAX_FORMER = 2 / 3, 1 / 2, 7 / 8
# A work log's share of the room, and the most that it takes for files and commands that have no place in it.
_WORK_SHARE, _MAX_WORK_SHARE = 0.6, 0.8
_MAX_TRUNCATED_MESSAGE = 200
# How many times more a line weighs that names all of what the user wants kept; at most so many lines must be told that
# name so much of it.
_KEEP_BONUS, _MOST_WANTED, _LEAST_WANTED = 5.0, 4, 0.3

_ENDS_SENTENCE = re.compile(r"[.!?:;,…。！？：；，｡؟۔।॥։።][\"'”’»)\]}*_`」』】）]*$")
_MAX_PERIODS = 12
# Bounds, in characters, for the average sentence when estimating how many fit.
_MIN_SENTENCE, _MAX_SENTENCE = 15, 80
# How many more sentences are tried for the room that the best ones leave.
_MAX_FILLINGS = 12
# With less room than this, in characters, it is not divided into thirds; with fewer sentences, none brings context.
_MIN_DIVIDED, _MIN_WITH_CONTEXT = 75, 5
# A sentence that is no longer than this is told whole, or cut if nothing else can be told.
_MAX_WHOLE = 240


@dataclass(slots=True)
class Extraction:
    """Messages and a former summary, read once, of which summaries of several lengths can be made."""

    messages: Sequence[PlainMessage]
    count: CountTokens
    former: str = ""
    work: WorkLog | None = None
    """Stands before the sentences, and tells the task."""
    keep: str = ""
    """What the user wants kept above all."""
    _density: float = 0.0
    _pool: SentencePool | None = None

    def within(self, limit: int) -> str:
        """The most important sentences of the former summary and of the messages since, in order."""
        former, count = _without_answered(self.former.strip(), self.messages), self.count
        pool = self._opened(limit, former)
        if limit <= 0:
            return ""
        log = self.work.render(int(limit * _WORK_SHARE), count, int(limit * _MAX_WORK_SHARE)) if self.work else ""
        if log and not (pool.lines or former):
            return log
        log += "\n" if log else ""
        lines = _wanted(_former_lines(former, has_log=bool(log)), self.keep)
        head = _shorten_former(former, lines, pool, limit - (count(log) + 1 if log else 0), count, self._density)
        head = _join(log, head)
        told = _join(head, _summarize(pool, limit, count, self._density, head)).strip()
        return "\n".join(without_passing_series(told.split("\n")))

    def _opened(self, limit: int, former: str) -> SentencePool:
        if self._pool is None:
            said = message_lines(self.messages, not former, has_log=self.work is not None, former=former)
            lines = _wanted(said, self.keep)
            self._density = _characters_per_token([former, *(line.text for line in lines)], self.count)
            self._pool = build_pool(lines, limit * self._density)
        return self._pool


def _wanted(lines: Sequence[SourceLine], keep: str) -> Sequence[SourceLine]:
    """Lines that tell of what the user wants kept weigh more, by how much of it they name; the best must be told."""
    wanted = terms(keep)
    if not wanted:
        return lines
    held = [wanted & terms(line.text) for line in lines]
    common = Counter(chain.from_iterable(held))
    # words that stand in most lines, such as articles, tell nothing
    weights = {term: math.log((len(lines) + 1) / (common[term] + 0.5)) for term in wanted}
    total = sum(weights.values())
    shares = [sum(map(weights.__getitem__, found)) / total for found in held]
    least = max(_LEAST_WANTED, sorted(shares)[-_MOST_WANTED:][0] if shares else 0.0)
    return [
        replace(line, weight=line.weight * (1 + _KEEP_BONUS * share), is_wanted=share >= least)
        for line, share in zip(lines, shares, strict=True)
    ]


def extract(messages: Sequence[PlainMessage], limit: int, count: CountTokens, former: str = "") -> str:
    """One summary within `limit` tokens."""
    return Extraction(messages, count, former).within(limit)


def truncate(messages: Sequence[PlainMessage], limit: int, count: CountTokens, former: str = "") -> str:
    """The last resort: the start of the former summary, and the starts of the newest messages."""
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


def _former_lines(former: str, *, has_log: bool) -> list[SourceLine]:
    """Lines of a former summary. The first ones hold the task and early decisions, and outlive the rest."""
    lines = []
    written = list(filter(str.strip, former.splitlines()))
    for at, line in enumerate(written):
        label, reply = _LABEL.match(line), _LABEL.match(written[at + 1]) if at + 1 < len(written) else None
        is_settled = reply is not None and reply[1] == "Assistant" and settles(written[at + 1][reply.end() :])
        weight = ROLE_WEIGHTS[label[1].lower()] if label else 1.0
        text = line[label.end() :] if label else line.strip()
        number = int(label[2] or 0) if label else 0
        bonus = 1 + _FRONT_BONUS * math.exp(-at / _FRONT_DECAY)
        speaker = (label[4] or "") if label and label[3] else None
        shown = f"{label[1]}: " if label else ""
        is_task = at == 0 and not has_log
        told = SourceLine(shown, text, weight * bonus, is_task, number, speaker=speaker, is_settled=is_settled)
        lines.append(replace(told, is_former=True))
    return lines


def _without_answered(former: str, messages: Sequence[PlainMessage]) -> str:
    """A former summary may end with a question that was still open, or with small talk: the first reply since then
    tells."""
    rest, _, last = former.rpartition("\n")
    label = _LABEL.match(last)
    if not rest or not label or label[1] != "User" or not messages or messages[0].role != "assistant":
        return former
    asked = last[label.end() :]
    if is_small_talk_reply(messages[0].text) and rate_sentence(asked) != BINDING:
        return rest
    if is_worth_telling(asked, is_assistant=False, is_settled=True) or not was_settled(asked, messages[:MAX_ROUNDS]):
        return former
    return rest


def _shorten_former(
    former: str, lines: Sequence[SourceLine], pool: SentencePool, limit: int, count: CountTokens, density: float
) -> str:
    """The former summary, in its share of the room or in the room that the rest does not need."""
    share = int(limit * _former_share(former, pool, limit * density)) if former else 0
    if not former or (len(former) <= 4 * share * density and count(former) <= share):
        return former
    rest = _summarize(pool, limit - share, count, density, known=_known_sentences(former))
    room = limit - (count(rest) + 1 if rest else 0)
    if len(former) <= 4 * room * density and count(former) <= room:
        return former
    return _summarize(build_pool(lines, room * density), room, count, density)


def _former_share(former: str, pool: SentencePool, size: float) -> float:
    """What binds comes first, then the former summary gets two thirds of the rest."""
    before = sum(len(line) for line in former.splitlines() if _binds(line))
    since = sum(len(sentence.text) for sentence in pool.sentences if is_binding(sentence))
    if before + since > size:
        share = before / (before + since)
    else:
        share = (before + _FORMER_SHARE * (size - before - since)) / max(1.0, size)
    return min(max(share, _MIN_FORMER), _MAX_FORMER)


def _binds(line: str) -> bool:
    label = _LABEL.match(line)
    return any(rate_sentence(found) == BINDING for found in sentences(line[label.end() :] if label else line))


def _characters_per_token(texts: Sequence[str], count: CountTokens) -> float:
    """Measured on a sample: counting every sentence would take longer than scoring it."""
    sample = "\n".join(text[:100] for text in texts[:: len(texts) // 40 + 1])
    return min(max(len(sample) / max(1, count(sample)), 0.1), 100.0)


def _known_sentences(text: str) -> list[ScoredSentence]:
    plain = _LABELS.sub("", text)
    return [ScoredSentence(FORMER_SUMMARY, at, found, terms(found), 0.0) for at, found in enumerate(sentences(plain))]


def _summarize(
    pool: SentencePool,
    limit: int,
    count: CountTokens,
    density: float,
    head: str = "",
    known: Sequence[ScoredSentence] | None = None,
) -> str:
    """As many of the best sentences as fit after `head`, in order of time."""
    room = limit - (count(head) if head else 0)
    if room <= 0 or not pool.sentences:
        return ""
    lines = pool.lines
    ranking = _rank(pool, room, count, density, _known_sentences(head) if known is None else known)
    ranked = ranking.sentences

    def tokens(picks: Sequence[ScoredSentence]) -> int:
        return count(_join(head, _render(picks, lines)))

    guess = _estimate_fitting(ranked, lines, room * density)
    number = largest_fitting(lambda number: tokens(ranked[:number]) <= limit, len(ranked), guess)
    picks = ranking.understandable(ranked[:number])
    tries, left = _MAX_FILLINGS, (limit - tokens(picks)) * density
    for sentence in ranked[number + 1 :]:
        if not tries or left < _MIN_SENTENCE:
            break
        if len(sentence.text) <= left and ranking.has_context(sentence, picks):
            tries -= 1
            if (used := tokens([*picks, sentence])) <= limit:
                picks.append(sentence)
                left = (limit - used) * density
    return _render(picks, lines)


def _join(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _rank(
    pool: SentencePool, room: int, count: CountTokens, density: float, known: Sequence[ScoredSentence]
) -> SentenceRanking:
    """More sentences than there is room for, the most important first, each cut to its share of the room."""
    size, lines = room * density, pool.lines
    selection = _open_selection(pool, size, known)
    selection.correct_summary()
    first = select_required(selection, lines)
    required = frozenset(selection.pool[at].key for at in selection.selected)
    selection.complete(size)
    selection.fill(size)
    share = room // 3 if size >= _MIN_DIVIDED else room
    ranked: list[ScoredSentence] = []
    stumps: list[ScoredSentence] = []
    for number, at in enumerate(selection.selected):
        # required sentences are counted sooner, since all of them must fit
        cautious = density * (0.25 if number < first else 0.7)
        whole = selection.pool[at]
        cut = _cut_sentence(whole, lines, share, count, cautious)
        if cut is whole or lines[whole.line].is_task or len(whole.text) > _MAX_WHOLE:
            ranked.append(_readable(cut, lines))
            continue
        stumps.append(_readable(cut, lines))
        if len(whole.text) <= size:
            ranked.append(_readable(whole, lines))
    ranked = [sentence for sentence in ranked if sentence.text]
    if not ranked and not known:
        ranked = [sentence for sentence in stumps if sentence.text]
    return SentenceRanking(ranked, selection.needs, required)


def _open_selection(pool: SentencePool, size: float, known: Sequence[ScoredSentence]) -> SentenceSelection:
    found, weights, lines = list(pool.sentences), pool.weights, pool.lines
    average = sum(len(sentence.text) for sentence in found) / len(found)
    number = size / min(max(average, _MIN_SENTENCE), _MAX_SENTENCE)
    # a period should have room for two
    periods = min(max(int(number / 2), 3), _MAX_PERIODS)
    context = None
    if number >= _MIN_WITH_CONTEXT:
        context = SentenceContext(pool.reader, _find_corrections(lines, known, found, weights))
    told = sum(len(sentence.text) for sentence in known)
    known_terms = [sentence.terms for sentence in known]
    per_period = max(number / periods, 0.3)
    return SentenceSelection(found, weights, len(lines), periods, per_period, known_terms, context, told=told)


def _find_corrections(
    lines: Sequence[SourceLine], known: Sequence[ScoredSentence], pool: Sequence[ScoredSentence], weights: TermWeights
) -> dict[SentenceKey, ScoredSentence]:
    """A message that is older than the former summary corrects nothing in it; neither do quotations and orders."""
    least = {ASSISTANT: MIN_WORTH_SCORE}  # its advice corrects nothing either
    pool = [
        sentence
        for sentence in pool
        if sentence.speaker is None and sentence.score > least.get(lines[sentence.line].label, MIN_USEFUL_SCORE)
    ]
    later = [sentence for sentence in pool if not lines[sentence.line].number]
    speakers = {at: line.label for at, line in enumerate(lines)}
    found = {
        key: correction
        for key, correction in find_corrections([*known, *later], weights, speakers).items()
        if correction.line != FORMER_SUMMARY  # it is in the summary already
    }
    return found if len(later) == len(pool) else find_corrections(pool, weights, speakers) | found


def _cut_sentence(
    sentence: ScoredSentence, lines: Sequence[SourceLine], share: int, count: CountTokens, density: float
) -> ScoredSentence:
    """Cuts a sentence to its share of the room. One that is clearly shorter is not counted."""
    label = lines[sentence.line].heading(sentence.speaker)
    if len(label) + len(sentence.text) <= share * density:
        return sentence
    return replace(sentence, text=cut_to_fit(sentence.text, share - (count(label) if label else 0) - 1, count))


def _readable(sentence: ScoredSentence, lines: Sequence[SourceLine]) -> ScoredSentence:
    """With the dates that it means. Nobody knows which day "tomorrow" is in what is quoted."""
    line, text = lines[sentence.line], sentence.text
    if line.label == TOOL and (label := _LABEL.match(text)):
        text = text[label.end() :]
    if line.day and sentence.speaker is None and line.label != TOOL and not is_machine_made(text):
        text = add_dates(text, line.day)
    return replace(sentence, text=text) if text != sentence.text else sentence


def _estimate_fitting(ranked: Sequence[ScoredSentence], lines: Sequence[SourceLine], size: float) -> int:
    """About how many fit."""
    for number, sentence in enumerate(ranked):
        size -= len(sentence.text) + len(lines[sentence.line].heading(sentence.speaker)) + 1
        if size < 0:
            return number
    return len(ranked)


def _render(picks: Iterable[ScoredSentence], lines: Sequence[SourceLine]) -> str:
    """In order of time; consecutive sentences of one message share a line."""
    rendered: list[str] = []
    before: ScoredSentence | None = None
    for pick in sorted(picks, key=lambda pick: pick.key):
        text, line = pick.text.replace("\n", " "), lines[pick.line]
        # a fence stands between a heading and its command
        gap = 2 if before and is_heading(before.text) else 1
        is_near = before and before.line == pick.line and pick.position - before.position <= gap
        is_next = is_near and before and before.speaker == pick.speaker
        if before and is_next and not before.text.endswith("…"):
            rendered[-1] += _separator(before.text, pick.text, line.text) + text
        else:
            rendered.append(line.heading(pick.speaker) + text)
        before = pick
    return "\n".join(rendered)


def _separator(first: str, second: str, text: str) -> str:
    """None where the original has none, as between Chinese sentences; a stroke between lines that end no sentence."""
    if not _ENDS_SENTENCE.search(first):
        return " / "
    return "" if not first[-1].isascii() and first + second in text else " "
