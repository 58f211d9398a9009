"""Sentence score: how much one sentence matters to a summary, by its terms, its facts, its priority and its speaker.

Knows one sentence and the weights of terms in the whole conversation, not which other sentences are selected.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from recto.chat.priority import BINDING, CHATTER, NORMAL, TELLING
from recto.summary.answer_style import wants_answers_so
from recto.summary.case_report import reports_case
from recto.summary.choices import chosen_options
from recto.summary.deadlines import plans_for_day
from recto.summary.facts import is_fenced_command
from recto.summary.machine_output import has_code_punctuation, is_machine_made, is_noise, is_row
from recto.summary.model_orders import SOMEBODY, is_order, is_prompt_frame
from recto.summary.people import names_role
from recto.summary.prohibitions import has_prohibition
from recto.summary.reference import PRONOUNS, leans_back, refers_back
from recto.summary.sentences import UNSPACED_NUMBER, is_heading, is_question, rate_sentence
from recto.summary.small_talk import FULL_NAME, SPECIFIC, confirms
from recto.summary.source_lines import ASSISTANT, TOOL, USER, LineSentence, ScoredSentence, SourceLine
from recto.summary.statements import is_announcement, is_request, leaves_open, says_little
from recto.summary.success import is_thin_success
from recto.summary.term_weights import CALENDAR, HAS_NUMBER, TermWeights, numeric_terms
from recto.summary.worth import is_about_self, is_advice, is_of_case, is_result, is_worth_telling, reports, stands_alone
from recto.text import text_cache

NOISE_SCORE = 0.0001
MIN_USEFUL_SCORE, MIN_WORTH_SCORE = 0.02, 0.15
"""Noise and small talk score less than the first, and are selected only where there is nothing else; what is not worth
telling scores less than the second, and is selected only where there is little else."""
LEADING_SENTENCES = 3
"""How many sentences of the task count as its beginning."""

# Tuned by eye on chats and agent runs; the order of the numbers matters more than their values.
_PRIORITY_BONUS, _PROHIBITION_BONUS, _ROLE_BONUS = {BINDING: 0.8, TELLING: 0.4}, 0.3, 0.5
_BOLD_BONUS, _CHOICE_BONUS, _ANSWER_BONUS = 0.4, 0.8, 0.4
_FACT_BONUS = (0.0, 0.2, 0.3, 0.4)
_MIN_BASE = 0.2
# Of terms that all weigh most, and the most facts; a little more, for rounding.
_MAX_BASE = _MIN_BASE + 1.0 + _FACT_BONUS[-1] + 0.001
_EVENT_BONUS, _TASK_START_FACTOR = 0.3, 1.6
_SMALL_TALK_FACTOR, UNWORTHY_FACTOR, _PASTED_OUTPUT_FACTOR = 0.01, 0.04, 0.5
# What others said is told after what its author says of it, and their orders to a model bind nobody.
_QUOTED_FACTOR = 0.4
_ORDER_FACTOR = 0.002
_LISTING_FACTOR, _ROW_FACTOR, _SHORT_HEADING_FACTOR, _LONG_HEADING_FACTOR = 0.35, 0.02, 0.5, 0.85
_ANNOUNCEMENT_FACTOR, _REACTION_FACTOR = 0.7, 0.4
# What an assistant proposes counts for less as long as the user has not agreed to it.
_ADVICE_FACTOR = 0.06
# What it knows can be asked again.
_KNOWLEDGE_FACTOR = 0.4
# Where an assistant tells of itself, it is a person or tells what it did.
_SELF_FACTOR = 1.4
_BACK_REFERENCE_FACTOR, _VAGUE_REFERENCE_FACTOR = 0.85, 0.55
_QUESTION_FACTORS = {USER: 0.8, ASSISTANT: 0.4}
# What the user asked and got is worth little, what is still open much.
_SETTLED_FACTOR, _OPEN_BONUS = 0.4, 0.4
_EVENTLESS_FACTOR, _EVENTLESS_LISTING_FACTOR, _FREQUENT_FACTOR = 0.15, 0.1, 0.5
# What recurs in message after message, and what tells a model how to answer, is the frame of a prompt.
_BOILERPLATE_FACTOR = 0.3
_MIN_REPETITIONS, _MIN_BOILERPLATE = 3, 25
_MIN_ROW_TERMS, _MIN_BINDING_SCORE = 6, 0.6
# The first sentences of a reply answer, the others tell more.
_MAX_ANSWER_SENTENCES = 2
# A reply says nothing new if this much of it is the user's, by terms of so many letters.
_REPEATED_SHARE, _CONFIRMED_SHARE, _MIN_TERM = 0.6, 0.4, 4
_MAX_INSPECTED, _MAX_SHORT_HEADING, _MAX_EVENT, _MAX_THROW, _ROUNDING = 400, 40, 200, 60, 1e-9
# Longer sentences lose score with the square root of their length.
_LONG_SENTENCE = 240

_NAME = re.compile("[A-Z](?<=[a-z,] [A-Z])")
_MAY_TELL = re.compile(r"[\d`@_/.A-ZÄÖÜÉ](?:(?<=[\d`@_/])|(?<=\.)\w|(?<=[^\W\d_,;] [A-ZÄÖÜÉ]))")
_FULL_NAME = re.compile("[A-Z][a-z]+ [A-Z][a-z]")
_EVENT = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ures?)?|exceptions?|warnings?|pass(?:ed|es)?|success\w*|found|total|results?)\b",
    re.IGNORECASE,
)
# The sentence of a document that has such a word reports nothing.
_OF_DOCUMENT = re.compile(r"[A-ZÄÖÜÉ](?:\S+ ){11,}\S+[.!?]$")
_LISTED = re.compile(r"\d+:|[-+]\S|@@|diff |index [0-9a-f]|\(.*\)$")
_PROMPT = re.compile(r"\S{0,24}[$#>❯]")
# What an assistant computed or found stands in bold.
_BOLD_FIGURE = re.compile(r"\*\*[^*\n]{0,40}\d[^*\n]{0,40}\*\*")
# A step of a calculation or a throw of dice: what it leads to is told, if anything.
_CALCULATES = re.compile(r"\d ?[-+×*x÷/] ?\d[\d.,]* ?= ?\d[\d.,]*(?! ?[€$£%]| ?(?:euros?|dollars|pounds|kg|km))")
_THROWS = re.compile(
    r"\b(?:roll(?:ed|s)?|throw|würf\w*|gewürfelt|wurf|tiro|tirada|lancer?|worp|d20|1d\d+|lore|stealth|perception|deception"
    r"|persuasion|insight|athletics|initiative):? (?:a |an |eine |un |une |een )?\d{1,2}\b",
    re.IGNORECASE,
)
_APOSTROPHE, _PATH = re.compile("['’]"), re.compile(r"\w{3}/\w{3}")
_LIST_ITEM = re.compile(r"(?:\d{1,2}[.)]|[A-H][.)]|[-*•]|\*\*[^*\n]{1,40}\*\*:?) ")
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


def frequent_sentences(texts: Iterable[str]) -> frozenset[str]:
    """Sentences that recur word for word: in machine output, these are the frame and not the news."""
    return frozenset(text for text, n in Counter(texts).items() if n >= _MIN_REPETITIONS)


class Promise(Struct, frozen=True, gc=False):
    """What a sentence scores at most: enough to tell that most cannot be in a summary."""

    highest: float
    base: float = 0.0
    facts: int | None = 0
    label: str = ""


def promise_of(sentence: LineSentence, line: SourceLine, weights: TermWeights) -> Promise:
    """By its terms, its facts and its priority, before anything lowers it."""
    text = sentence.text
    if is_noise(text) or (line.label == TOOL and _PROMPT.fullmatch(text)):
        return Promise(NOISE_SCORE * line.weight)
    start = text[:_MAX_INSPECTED]
    label = TOOL if is_machine_made(start) or line.label == TOOL else USER if line.is_person else line.label
    facts = _count_facts(sentence, start)
    # the 3 keeps a lone word from being the most central of all
    base = _MIN_BASE + weights.total(sentence.terms) / 1000 / (len(sentence.terms) + 3) + _FACT_BONUS[facts or 0]
    if label == ASSISTANT and not _may_be_told(line, start):
        return Promise(line.weight * UNWORTHY_FACTOR * base / _length(text), base, facts, label)
    highest = base + _highest_bonus(start, line, label) if label != TOOL else _score_event(base, start)
    if facts is None and "**" not in start and not _is_sum(start, label):  # a row
        highest = max(_ROW_FACTOR * highest, UNWORTHY_FACTOR * base)
    factor = (_TASK_START_FACTOR if line.is_task else 1.0) * (_SELF_FACTOR if label == ASSISTANT else 1.0)
    return Promise(line.weight * factor * (highest + _ROUNDING) / _length(text), base, facts, label)


def _is_sum(start: str, label: str) -> bool:
    """Whether an assistant tells what many figures come to, which is more than a row of a table."""
    return label == ASSISTANT and reports_case(start)


def cannot_be_worth(sentence: LineSentence, line: SourceLine) -> bool:
    """Whether it scores less than what is worth telling, whatever its terms are. Told without looking at these, since
    so does most of what an assistant and its tools say."""
    if line.is_task or line.is_person or line.label not in (ASSISTANT, TOOL):
        return False
    start = sentence.text[:_MAX_INSPECTED]
    if line.label == TOOL or is_machine_made(start):
        return line.weight * _MAX_BASE * _EVENTLESS_FACTOR < MIN_WORTH_SCORE and not _has_event(start)
    return line.weight * _MAX_BASE * UNWORTHY_FACTOR < MIN_WORTH_SCORE and not _may_be_told(line, start)


def _may_be_told(line: SourceLine, start: str) -> bool:
    """Whether an assistant's sentence has anything that makes one worth telling; asked first, since most have not."""
    if line.is_task or line.is_former or line.has_commands or _MAY_TELL.search(start):
        return True
    return rate_sentence(start) == BINDING or is_about_self(start)


def _highest_bonus(start: str, line: SourceLine, label: str) -> float:
    priority = rate_sentence(start)
    bonus = _priority_bonus(start, priority) + (_BOLD_BONUS if "**" in start else 0.0)
    if label == ASSISTANT:
        return bonus
    replies = _CHOICE_BONUS if line.chosen or line.own_question else _ANSWER_BONUS if line.is_answer else 0.0
    may_be_open = leaves_open(start) or (not line.is_settled and (is_question(start) or is_request(start)))
    return bonus + replies + (_OPEN_BONUS if may_be_open else 0.0)


def _priority_bonus(start: str, priority: int) -> float:
    is_rule = priority == BINDING and (has_prohibition(start) or wants_answers_so(start))
    bonus = _ROLE_BONUS if CHATTER < priority < BINDING and names_role(start) else _PROHIBITION_BONUS * is_rule
    return _PRIORITY_BONUS.get(priority, 0.0) + bonus


def _length(text: str) -> float:
    return 1.0 if len(text) <= _LONG_SENTENCE else math.sqrt(len(text) / _LONG_SENTENCE)


def score_sentence(
    sentence: LineSentence,
    line: SourceLine,
    weights: TermWeights,
    frequent: frozenset[str] = frozenset(),
    promise: Promise | None = None,
) -> float:
    """The score of a sentence of this line, which is not above its promise."""
    text, start = sentence.text, sentence.text[:_MAX_INSPECTED]
    promise = promise or promise_of(sentence, line, weights)
    if not promise.label and not promise.base:
        return promise.highest  # noise
    score, facts, label = promise.base, promise.facts, promise.label
    is_quoted = sentence.speaker is not None
    worth = _worth_factor(sentence, line, start, label) if label != TOOL else 1.0
    if worth == UNWORTHY_FACTOR and not is_order(start, speaker=sentence.speaker):
        is_empty = line.is_aside or rate_sentence(start) == CHATTER or (line.is_step and is_announcement(start))
        worth = _SMALL_TALK_FACTOR if is_empty else worth
        return line.weight * score * worth * (_QUOTED_FACTOR if is_quoted else 1.0) / _length(text)
    if label == TOOL:
        is_listing = sentence.is_code or _LISTED.match(start) is not None or has_code_punctuation(start)
        score = _score_output(score, start, text in frequent, is_listing=is_listing)
        is_vague = not is_listing and refers_back(start) and not stands_alone(start)
        score *= UNWORTHY_FACTOR if line.is_document or is_vague else 1.0
    else:
        score = _score_speech(score, start, label, is_quoted=is_quoted, is_settled=line.is_settled)
        score += _reply_bonus(sentence, line)
        is_repeated = text in frequent and _MIN_BOILERPLATE <= len(text) < len(line.text) / 2
        score *= _BOILERPLATE_FACTOR ** (is_repeated + is_prompt_frame(start))
        score *= worth
    score *= _form_factor(sentence, start, facts, line.is_task and label != TOOL and not is_quoted)
    if label == TOOL != line.label:
        score *= _PASTED_OUTPUT_FACTOR ** (1 if _EVENT.search(start) else 2)
    if is_order(start, speaker=SOMEBODY if line.label == TOOL and not sentence.speaker else sentence.speaker):
        score *= _ORDER_FACTOR
    return line.weight * score / _length(text)


def _worth_factor(sentence: LineSentence, line: SourceLine, start: str, label: str) -> float:
    """Lowers what a reader would not miss, and what an assistant only proposes."""
    is_taken = line.own_question and not sentence.position
    is_command = line.has_commands and is_fenced_command(sentence.text, line.text)
    is_worth = line.is_task or is_taken or is_command
    is_worth = is_worth or (not sentence.is_code and _is_worth(sentence, line, start, label))
    if not is_worth:
        return UNWORTHY_FACTOR
    if label != ASSISTANT:
        return 1.0
    if is_about_self(start) or reports_case(start):
        return _SELF_FACTOR
    if line.is_accepted or line.is_former:
        return 1.0
    if is_advice(start):
        return _ADVICE_FACTOR
    is_told = SPECIFIC.search(start) or rate_sentence(start) == BINDING or reports(start) or _BOLD_FIGURE.search(start)
    return 1.0 if is_told else _KNOWLEDGE_FACTOR


def _is_worth(sentence: LineSentence, line: SourceLine, start: str, label: str) -> bool:
    """Whether a reader would miss it, for what it says and where it stands."""
    # asked first, since most of its answers are no, and the ledger asks for the same
    is_worth = is_worth_telling(
        start,
        is_assistant=label == ASSISTANT,
        is_settled=line.is_settled,
        is_quoted=sentence.speaker is not None,
        is_accepted=line.is_accepted or line.is_former,
    )
    return (
        is_worth
        and not (line.is_aside or (line.is_proposal and _is_proposed(start)))
        and not is_thin_success(start)
        and not (label == ASSISTANT and _CALCULATES.search(start))
        and not (len(start) <= _MAX_THROW and _THROWS.search(start))
        and not _is_rejected(sentence.text, line)
        and not (line.repeated and _is_repeated(sentence, line))
        and not (line.is_small_talk and (label == ASSISTANT or _is_passed_over(start)))
        and not (line.is_step and not is_result(start))
        and not (line.is_done and is_about_self(start) and not _has_facts(start))
        and not (line.asked is not None and label == ASSISTANT and not _is_of_case(sentence, line.asked))
    )


def _is_passed_over(text: str) -> bool:  # by a reply that takes it for small talk
    return not (rate_sentence(text) == BINDING or plans_for_day(text) or FULL_NAME.search(text) or _PATH.search(text))


def _has_facts(text: str) -> bool:
    return (
        HAS_NUMBER.search(text) is not None or SPECIFIC.search(text) is not None or FULL_NAME.search(text) is not None
    )


def _is_of_case(sentence: LineSentence, asked: frozenset[str]) -> bool:
    """Whether an answer is about the user's own case, by its own words or by figures of the question."""
    if not sentence.terms.isdisjoint(CALENDAR) or not numeric_terms(sentence.terms).isdisjoint(asked):
        return True
    return is_of_case(sentence.text)


def _is_proposed(text: str) -> bool:
    """Whether an item of a list tells nothing that was found or done."""
    return _LIST_ITEM.match(text) is not None and not (SPECIFIC.search(text) or reports(text))


def _reply_bonus(sentence: LineSentence, line: SourceLine) -> float:
    """What a user's sentence gains for taking an option, or for answering a question."""
    if line.label != USER:
        return 0.0
    if (line.chosen and chosen_options(sentence.text, line.options)) or (line.own_question and not sentence.position):
        return _CHOICE_BONUS
    is_answer = line.is_answer and sentence.position < _MAX_ANSWER_SENTENCES and not is_question(sentence.text)
    return _ANSWER_BONUS if is_answer and rate_sentence(sentence.text[:_MAX_INSPECTED]) != CHATTER else 0.0


def _is_rejected(text: str, line: SourceLine) -> bool:
    """Whether it is an option that the user did not take."""
    if line.label != ASSISTANT or not line.chosen:
        return False
    return any(at not in line.chosen and option[:_MAX_SHORT_HEADING] in text for at, option in enumerate(line.options))


def _is_repeated(sentence: LineSentence, line: SourceLine) -> bool:
    """Whether an assistant only says what the user has just said."""
    content = {term for term in sentence.terms if len(term) >= _MIN_TERM or not term.isalpha()}
    known = {term for term in content if term in line.repeated or (term in CALENDAR and term[:3] in line.repeated)}
    if not known or (figures := numeric_terms(content)) - known:
        return False
    is_confirmed = confirms(sentence.text)
    if line.is_person and not is_confirmed:  # who says it too agrees
        return False
    share = _CONFIRMED_SHARE if is_confirmed else _REPEATED_SHARE
    adds_nothing = figures and rate_sentence(sentence.text) != BINDING and not reports(sentence.text)
    return bool(adds_nothing) or len(known) >= share * len(content)


def is_binding(sentence: ScoredSentence) -> bool:
    """Whether it binds, and is more than the frame of a prompt."""
    return sentence.score >= _MIN_BINDING_SCORE and rate_sentence(sentence.text[:_MAX_INSPECTED]) == BINDING


def _count_facts(sentence: LineSentence, start: str) -> int | None:
    """How many names, numbers, paths and the like it has, up to three; None for a row of a table, whose numbers say
    nothing without their headings."""
    if "".join(sentence.terms).isalpha():  # as most are
        facts = 0
    else:
        others = [term for term in sentence.terms if not term.isalpha()]
        facts = len([term for term in others if not _APOSTROPHE.sub("", term).isalpha()])
    if len(sentence.terms) >= _MIN_ROW_TERMS and 2 * facts > len(sentence.terms):
        return None
    facts += len(_NAME.findall(start)) + (_FULL_NAME.match(start) is not None)
    if facts < len(_FACT_BONUS) and not start.isascii():
        facts = max(facts, len(UNSPACED_NUMBER.findall(start)))
    return min(facts, len(_FACT_BONUS) - 1)


def _score_output(score: float, start: str, is_frequent: bool, *, is_listing: bool) -> float:
    """In machine output, events matter most; code and what surrounds every output tell nothing."""
    return _score_event(score, start, is_listing=is_listing) * (_FREQUENT_FACTOR if is_frequent else 1.0)


def _score_event(score: float, start: str, *, is_listing: bool = False) -> float:
    if _has_event(start):
        return score + _EVENT_BONUS
    return score * (_EVENTLESS_FACTOR if not is_listing else _EVENTLESS_LISTING_FACTOR)


@text_cache(8192)  # asked before a sentence is scored, and then
def _has_event(start: str) -> bool:
    return len(start) <= _MAX_EVENT and _EVENT.search(start) is not None and not _OF_DOCUMENT.match(start)


def _score_speech(score: float, start: str, label: str, *, is_quoted: bool, is_settled: bool) -> float:
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
    score += _priority_bonus(start, priority)
    if label == ASSISTANT and "**" in start and _BOLD_FIGURE.search(start):
        score += _BOLD_BONUS
    if label == USER and priority != BINDING and (is_question(start) or is_request(start)):
        return score * _SETTLED_FACTOR if is_settled else _QUESTION_FACTORS[USER] * score + _OPEN_BONUS
    if is_question(start):
        return score * _QUESTION_FACTORS.get(label, 1.0)
    return score + _OPEN_BONUS if label == USER and leaves_open(start) else score


def _form_factor(sentence: LineSentence, start: str, facts: int | None, is_task: bool) -> float:
    """What the form changes: the start of the task, a listing, a heading, a sentence that refers back."""
    factor = _TASK_START_FACTOR if is_task and sentence.position < LEADING_SENTENCES else 1.0
    is_result = "**" in start and _BOLD_FIGURE.search(start) is not None
    if not is_result and (sentence.is_code or _NUMBERED.match(start) or has_code_punctuation(start)):
        factor *= _LISTING_FACTOR
    if (facts is None and not is_result and not reports_case(start)) or (
        any(mark in start for mark in "|\t") and is_row(start)
    ):
        factor *= _ROW_FACTOR
    if is_heading(start):
        factor *= _SHORT_HEADING_FACTOR if len(start) < _MAX_SHORT_HEADING else _LONG_HEADING_FACTOR
    if refers_back(start):
        factor *= _BACK_REFERENCE_FACTOR if sentence.position or facts else _VAGUE_REFERENCE_FACTOR
    elif not facts and says_little(start):
        factor *= _VAGUE_REFERENCE_FACTOR
    elif not PRONOUNS.isdisjoint(sentence.terms) and leans_back(start):
        factor *= _BACK_REFERENCE_FACTOR if facts else _VAGUE_REFERENCE_FACTOR
    return factor
