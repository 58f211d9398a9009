"""Sentence score: how much one sentence matters to a summary, by its terms, its facts, its priority and its speaker.

Knows one sentence and the weights of terms in the whole conversation, not which other sentences are selected.

Sentence selection: a greedy choice from a pool of scored sentences. Weighs score, novelty, coverage of time and
context; does not know how much room there is in the end.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from recto.chat.priority import BINDING, CHATTER, NORMAL, TELLING
from recto.summary.machine_output import has_code_punctuation, is_machine_made, is_noise
from recto.summary.model_orders import SOMEBODY, is_order, is_prompt_frame
from recto.summary.sentences import (
    PRONOUNS,
    UNSPACED_NUMBER,
    is_heading,
    is_question,
    leans_back,
    rate_sentence,
    refers_back,
    word_set,
)
from recto.summary.source_lines import (
    ASSISTANT,
    TOOL,
    USER,
    LineSentence,
    ScoredSentence,
    SentenceContext,
    SentenceKey,
    SourceLine,
)

NOISE_SCORE = 0.0001
MIN_USEFUL_SCORE = 0.02
"""Noise and small talk score less. They are selected only where there is nothing else."""
LEADING_SENTENCES = 3
"""How many sentences of the task count as its beginning."""

# Tuned by eye on chats and agent runs; the order of the numbers matters more than their values.
_PRIORITY_BONUS = {BINDING: 0.8, TELLING: 0.4}
_FACT_BONUS = (0.0, 0.25, 0.4, 0.5)
_EVENT_BONUS = 0.3
_TASK_START_FACTOR = 1.6
_SMALL_TALK_FACTOR = 0.01
_PASTED_OUTPUT_FACTOR = 0.5
# What others said is told after what its author says of it, and their orders to a model bind nobody.
_QUOTED_FACTOR = 0.4
_ORDER_FACTOR = 0.002
_LISTING_FACTOR = 0.35
_SHORT_HEADING_FACTOR, _LONG_HEADING_FACTOR = 0.5, 0.85
_ANNOUNCEMENT_FACTOR = 0.7
_REACTION_FACTOR = 0.4
_BACK_REFERENCE_FACTOR, _VAGUE_REFERENCE_FACTOR = 0.85, 0.55
_QUESTION_FACTORS = {USER: 0.8, ASSISTANT: 0.4}
_EVENTLESS_FACTOR, _EVENTLESS_LISTING_FACTOR, _FREQUENT_FACTOR = 0.6, 0.1, 0.5
# What recurs in message after message, and what tells a model how to answer, is the frame of a prompt.
_BOILERPLATE_FACTOR = 0.3
_MIN_REPETITIONS, _MIN_BOILERPLATE = 3, 25
_MIN_ROW_TERMS = 6
_MAX_INSPECTED, _MAX_SHORT_HEADING = 400, 40
# Longer sentences lose score with the square root of their length.
_LONG_SENTENCE = 240

_NAME = re.compile("[A-Z](?<=[a-z,] [A-Z])")
_FULL_NAME = re.compile("[A-Z][a-z]+ [A-Z][a-z]")
_EVENT = re.compile(r"\b(?:error|fail|exception|warning|pass|success|found|total|result)", re.IGNORECASE)
_LISTED = re.compile(r"\d+:|[-+]\S|@@|diff |index [0-9a-f]|\(.*\)$")
_PROMPT = re.compile(r"\S{0,24}[$#>❯]")
_NUMBERED = re.compile(r"#?\d+:")
# Praise, wishes and thanks for what the other has said.
_REACTION = re.compile(
    r"(?:(?:yeah|yes|wow|oh|aw+|hey|sure|absolutely|definitely|thanks|ja|klar|sí|claro|oui)\b[^.!?]{0,16}[,!] ?)?"
    r"(?:you(?:['’]re| are|['’]ve| have| look| seem| did|['’]d be)|that(?:['’]s| is| was|['’]d| sounds?| must)"
    r"|sounds?|glad|(?:so )?(?:great|good|nice|happy|proud|awesome|amazing|congrat\w*|keep (?:it )?up|well done)"
    r"|(?:i(?:'m|’m| am) )(?:so |really |very )?(?:proud|happy|glad|sorry|excited) (?:of|for|to hear|you)"
    r"|das (?:klingt|ist ja|freut)|schön|toll|super|qué (?:bueno|bien|genial)|me alegr\w*|bravo|c['’]est super)\b"
    r"[^.?]*!",
    re.IGNORECASE,
)
_ANNOUNCEMENT = re.compile(
    r"(?:(?:now|next|first|then|so|okay|ok|great|perfect)[,!.:]? )?"
    r"(?:let's|let me|let us|i'll|i will|we'll|we will|we can now|i'm going to|ich werde|lass uns|je vais|voy a"
    r"|我会|我来|我将|では|それでは)",
    re.IGNORECASE,
)
_NUMERIC = re.compile("[\\d〇零二三四五六七八九十百千万亿億]|一[年月日号点时時]|[年月]一")
# Days and months in four languages, cut to the length of terms; "may" is more often a verb.
_CALENDAR = word_set("""
monday tuesday wednesd thursda friday saturda sunday january februar march april june july august septemb october
novembe decembe jan feb apr jun jul aug sep sept oct nov dec montag diensta mittwoc donners freitag samstag sonntag
januar märz juni juli oktober dezembe lundi mardi mercred jeudi vendred samedi dimanch janvier février avril juin
juillet août octobre lunes martes miércol jueves viernes sábado domingo enero febrero marzo abril mayo junio julio
agosto octubre noviemb diciemb
""")


class TermWeights(dict[str, int]):
    """The weight of each term, up to 1000. Integers, so that a sum does not depend on the order of a set."""

    def __missing__(self, term: str) -> int:
        return 300

    def total(self, terms: set[str]) -> int:
        return sum(map(self.__getitem__, terms))


def term_weights(sentences: Sequence[set[str]]) -> TermWeights:
    """Terms that recur weigh most, but not those that are everywhere. Needs no list of stop words."""
    counts = Counter(chain.from_iterable(sentences))
    weights = {term: math.sqrt(math.log1p(n)) * math.log((len(sentences) + 1) / n) for term, n in counts.items()}
    top = max(weights.values(), default=1.0)
    return TermWeights({term: round(1000 * weight / top) for term, weight in weights.items()})


def frequent_sentences(texts: Iterable[str]) -> frozenset[str]:
    """Sentences that recur word for word: in machine output, these are the frame and not the news."""
    return frozenset(text for text, n in Counter(texts).items() if n >= _MIN_REPETITIONS)


def score_sentence(
    sentence: LineSentence, line: SourceLine, weights: TermWeights, frequent: frozenset[str] = frozenset()
) -> float:
    """The score of a sentence of this line."""
    text = sentence.text
    if is_noise(text) or (line.label == TOOL and _PROMPT.fullmatch(text)):
        return NOISE_SCORE * line.weight
    start = text[:_MAX_INSPECTED]
    label = TOOL if line.label != TOOL and is_machine_made(start) else line.label
    facts = _count_facts(sentence, start)
    # the 3 keeps a lone word from being the most central of all
    score = 0.2 + weights.total(sentence.terms) / 1000 / (len(sentence.terms) + 3) + _FACT_BONUS[facts or 0]
    if label == TOOL:
        is_listing = sentence.is_code or _LISTED.match(start) is not None or has_code_punctuation(start)
        score = _score_output(score, start, text in frequent, is_listing=is_listing)
    else:
        is_repeated = text in frequent and _MIN_BOILERPLATE <= len(text) < len(line.text) / 2
        score = _score_speech(score, start, label, is_quoted=sentence.speaker is not None)
        score *= _BOILERPLATE_FACTOR if is_repeated or is_prompt_frame(start) else 1
    is_own_task = line.is_task and label != TOOL and sentence.speaker is None
    score *= _form_factor(sentence, start, facts, is_own_task)
    if label != line.label:
        score *= _PASTED_OUTPUT_FACTOR
    if is_order(start, speaker=SOMEBODY if line.label == TOOL and not sentence.speaker else sentence.speaker):
        score *= _ORDER_FACTOR
    return line.weight * score / math.sqrt(max(1.0, len(text) / _LONG_SENTENCE))


def is_announcement(text: str) -> bool:
    """Whether it says what the speaker does next."""
    return _ANNOUNCEMENT.match(text) is not None


def _count_facts(sentence: LineSentence, start: str) -> int | None:
    """How many names, numbers, paths and the like it has, up to three; None for a row of a table, whose numbers say
    nothing without their headings."""
    facts = sum([not term.isalpha() for term in sentence.terms])
    if len(sentence.terms) >= _MIN_ROW_TERMS and 2 * facts > len(sentence.terms):
        return None
    facts += len(_NAME.findall(start)) + (_FULL_NAME.match(start) is not None)
    if not start.isascii():
        facts = max(facts, len(UNSPACED_NUMBER.findall(start)))
    return min(facts, len(_FACT_BONUS) - 1)


def _score_output(score: float, start: str, is_frequent: bool, *, is_listing: bool) -> float:
    """In machine output, events matter most; code and what surrounds every output tell nothing."""
    if _EVENT.search(start):
        score += _EVENT_BONUS
    else:
        score *= _EVENTLESS_FACTOR if not is_listing else _EVENTLESS_LISTING_FACTOR
    return _FREQUENT_FACTOR * score if is_frequent else score


def _score_speech(score: float, start: str, label: str, *, is_quoted: bool) -> float:
    priority = rate_sentence(start)
    if is_quoted:
        score *= _QUOTED_FACTOR
        priority = min(priority, TELLING)
    if priority == CHATTER:
        return _SMALL_TALK_FACTOR * score
    if label == ASSISTANT and is_announcement(start):
        return _ANNOUNCEMENT_FACTOR * score
    if priority == NORMAL and _REACTION.match(start):
        return _REACTION_FACTOR * score
    score += _PRIORITY_BONUS.get(priority, 0.0)
    return score * _QUESTION_FACTORS.get(label, 1.0) if is_question(start) else score


def _form_factor(sentence: LineSentence, start: str, facts: int | None, is_task: bool) -> float:
    """What the form changes: the start of the task, a listing, a heading, a sentence that refers back."""
    factor = _TASK_START_FACTOR if is_task and sentence.position < LEADING_SENTENCES else 1.0
    if sentence.is_code or _NUMBERED.match(start) or has_code_punctuation(start):
        factor *= _LISTING_FACTOR
    if facts is None:
        factor *= _LISTING_FACTOR
    if is_heading(start):
        factor *= _SHORT_HEADING_FACTOR if len(start) < _MAX_SHORT_HEADING else _LONG_HEADING_FACTOR
    if refers_back(start):
        factor *= _BACK_REFERENCE_FACTOR if sentence.position or facts else _VAGUE_REFERENCE_FACTOR
    elif not PRONOUNS.isdisjoint(sentence.terms) and leans_back(start):
        factor *= _BACK_REFERENCE_FACTOR if facts else _VAGUE_REFERENCE_FACTOR
    return factor


def numeric_terms(terms: set[str]) -> set[str]:
    """The terms that are or contain a number, in digits or East Asian characters, and names of days and months."""
    # most terms are plain words, which need no search
    return {
        term
        for term in terms
        if term in _CALENDAR or (not (term.isascii() and term.isalpha()) and _NUMERIC.search(term))
    }


# How much each selected sentence lowers others: those of the same period, and those of the same line.
_PERIOD_PENALTY, _LINE_PENALTY = 0.5, 0.25
_CONTEXT_EXPONENT = 0.5
# How much of the room the start of the task may take.
_TASK_SHARE = 0.12
# A sentence that shares this much with another, and all of its numbers, repeats it.
_REPETITION = 0.85
# With the same numbers, this much in common makes two sentences at least this similar.
_MIN_ECHO, _ECHO_SIMILARITY = 0.3, 0.7
# A sentence that was corrected later keeps this much of its score.
_OUTDATED_FACTOR = 0.6
# Selects more than fits, because the caller leaves some out.
_OVERFILL = 1.5


@dataclass(slots=True)
class SentenceSelection:
    """The sentences selected so far, and the score that this leaves to each other one. Scores only ever decrease."""

    pool: list[ScoredSentence]
    weights: TermWeights
    lines: int
    periods: int
    per_period: float
    selected_terms: list[set[str]]
    """The terms of each selected sentence, and of those in the former summary."""
    context: SentenceContext | None = None
    selected: list[int] = field(default_factory=list)
    """Indices in the pool, in the order of selection."""
    needs: dict[SentenceKey, list[SentenceKey]] = field(default_factory=dict)
    _in_period: Counter[int] = field(default_factory=Counter)
    _in_line: Counter[int] = field(default_factory=Counter)
    _similarities: dict[int, tuple[int, float, set[str]]] = field(default_factory=dict)
    """For each sentence: how many others it was compared with, the highest similarity, and its numbers."""
    _characters: int = 0
    _pool_indices: dict[SentenceKey, int] = field(init=False)
    _contexts: dict[int, list[ScoredSentence]] = field(default_factory=dict)
    _is_selected: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._pool_indices = {sentence.key: at for at, sentence in enumerate(self.pool)}

    def has(self, at: int) -> bool:
        return at in self._is_selected

    def select(self, at: int) -> None:
        """Selects one sentence without its context."""
        self._is_selected.add(at)
        sentence = self.pool[at]
        self.selected.append(at)
        self.selected_terms.append(sentence.terms)
        self._characters += len(sentence.text) + 1
        self._in_period[self._period(sentence)] += 1
        self._in_line[sentence.line] += 1

    def select_with_context(self, at: int) -> None:
        """Selects the sentences that it needs before it, so that any first few of the selection can be understood."""
        if self.has(at):
            return
        self._is_selected.add(at)  # sentences may need each other
        self.select_context(at)
        self.select(at)

    def select_context(self, at: int) -> None:
        context = self._context_of(at)
        self.needs[self.pool[at].key] = [needed.key for needed in context]
        for needed in context:
            self.select_with_context(self._pool_index(needed))

    def complete(self, size: float) -> None:
        """Adds corrections of the former summary, the context of selected sentences, and what follows the task."""
        for correction in self.context.summary_corrections if self.context else ():
            self.select_with_context(self._pool_index(correction))
        for at in self.selected[:]:
            self.select_context(at)
            sentence = self.pool[at]
            if self.context and self.context.reader.lines[sentence.line].is_task:
                for following in self.context.following(sentence, int(size * _TASK_SHARE)):
                    self.select_with_context(self._pool_index(following))

    def score(self, at: int) -> float:
        sentence = self.pool[at]
        crowding = 1 + _PERIOD_PENALTY * (self._in_period[self._period(sentence)] / self.per_period)
        score = sentence.score * self._novelty(at) / crowding / (1 + _LINE_PENALTY * self._in_line[sentence.line])
        if self.context and sentence.key in self.context.corrections:
            score *= _OUTDATED_FACTOR
        return score * self._context_factor(at) if at in self._contexts else score

    def fill(self, size: float) -> None:
        """Selects the best sentence again and again until there are more than enough for `size` characters.

        Scores only decrease, so the best of the heap is the best of all once its score is up to date.
        """
        heap = [
            (-sentence.score, at)
            for at, sentence in enumerate(self.pool)
            if sentence.score > MIN_USEFUL_SCORE and not self.has(at)
        ]
        heapq.heapify(heap)
        enough = self._characters + _OVERFILL * size
        while heap and self._characters < enough:
            at = heapq.heappop(heap)[1]
            if self.has(at):
                continue
            score = self.score(at)
            if score <= 0:
                continue
            if not heap or score >= -heap[0][0]:  # the context is looked up only for the best
                self._context_of(at)
                score = self.score(at)
            if heap and score < -heap[0][0]:
                heapq.heappush(heap, (-score, at))
            else:
                self.select_with_context(at)

    def _period(self, sentence: ScoredSentence) -> int:
        return sentence.line * self.periods // self.lines

    def _context_of(self, at: int) -> list[ScoredSentence]:
        if at not in self._contexts:
            self._contexts[at] = self.context.of(self.pool[at]) if self.context else []
        return self._contexts[at]

    def _context_factor(self, at: int) -> float:
        """Lowers the score of a sentence by the room that its context takes."""
        added = [needed for needed in self._context_of(at) if not self.has(self._pool_indices.get(needed.key, -1))]
        size = len(self.pool[at].text)
        return (size / (size + sum(len(needed.text) for needed in added))) ** _CONTEXT_EXPONENT if added else 1.0

    def _pool_index(self, sentence: ScoredSentence) -> int:
        if sentence.key not in self._pool_indices:
            self._pool_indices[sentence.key] = len(self.pool)
            self.pool.append(sentence)
        return self._pool_indices[sentence.key]

    def _novelty(self, at: int) -> float:
        """From 1 to 0; 0 for a sentence that repeats a single selected one. Another number is always new."""
        terms = self.pool[at].terms
        compared, highest, numbers = self._similarities.get(at) or (0, 0.0, numeric_terms(terms))
        total = self.weights.total(terms) or 1
        for other in self.selected_terms[compared:]:
            shared = terms & other
            if 3 * len(shared) < len(terms):  # too little to matter, as for most
                continue
            similarity = self.weights.total(shared) / total
            if numbers <= other and (similarity >= _REPETITION or (numbers and similarity >= _MIN_ECHO)):
                similarity = 1.0 if similarity >= _REPETITION else max(similarity, _ECHO_SIMILARITY)
            highest = max(highest, similarity)
        self._similarities[at] = len(self.selected_terms), highest, numbers
        return 1 - highest * highest


def select_required(selection: SentenceSelection, lines: Sequence[SourceLine]) -> int:
    """Selects one sentence of the task and of each third of the time that is worth telling; returns how many."""
    for group in _required_groups(selection.pool, lines):
        if any(map(selection.has, group)):
            continue
        best = max(group, key=lambda at: (selection.score(at), selection.pool[at].score))
        if selection.score(best) > MIN_USEFUL_SCORE or not selection.selected_terms:
            selection.select(best)
    return len(selection.selected)


def _required_groups(pool: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> list[list[int]]:
    """The summary needs one of each group: the task, and each third of the lines, or of the sentences of few lines."""
    task = [at for at, sentence in enumerate(pool) if lines[sentence.line].is_task]
    own = [at for at in task if pool[at].speaker is None]
    leading = [at for at in own if pool[at].position < LEADING_SENTENCES and pool[at].score > MIN_USEFUL_SCORE]
    thirds: list[list[int]] = [[], [], []]
    for at, sentence in enumerate(pool):
        thirds[sentence.line * 3 // len(lines) if len(lines) >= 3 else at * 3 // len(pool)].append(at)
    return [group for group in (leading or own or task, *thirds) if group]
