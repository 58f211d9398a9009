"""Sentence context: the other sentences that one needs to be understood: what it refers to, its question, its answer,
its correction. Does not know how much a sentence matters.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from recto.chat.priority import CHATTER, NORMAL
from recto.summary.choices import chosen_options
from recto.summary.facts import is_fenced_command
from recto.summary.machine_output import is_machine_made, is_noise
from recto.summary.prohibitions import qualifies
from recto.summary.quotation import count_topic_words
from recto.summary.reference import leans_back, names_event, refers_back
from recto.summary.sentences import IS_UNSPACED, is_heading, is_question, rate_sentence, word_set
from recto.summary.small_talk import is_reaction, is_remark
from recto.summary.source_lines import (
    FORMER_SUMMARY,
    OWN_DISTANCE,
    TOOL,
    USER,
    LineReader,
    LineSentence,
    ScoredSentence,
    SentenceKey,
)
from recto.summary.statements import (
    accepts,
    acknowledges,
    agrees,
    asks_politely,
    is_draft,
    is_empty_offer,
    leaves_open,
    says_little,
)
from recto.summary.success import is_thin_success
from recto.summary.worth import is_advice, is_compliment, stands_alone

# Longer sentences are not added as context.
_MAX_CONTEXT = 240
_MAX_LINES_TO_ANSWER, _MAX_SENTENCES_TO_ANSWER = 8, 5
_MAX_ELLIPTIC_SPACES, _MAX_ELLIPTIC_CHARACTERS = 7, 12
_MAX_REFUSAL = 60
# Terms that tell a topic have so many letters; a sentence with fewer topic words is understood beside another.
_MIN_TOPIC, _MIN_TOPICS, _MAX_AGREEMENT, _MAX_ANSWER_TOPICS = 5, 2, 4, 3
# Two sentences that speak of somebody need not speak of the same, in terms.
_ANYBODY = word_set(
    "everyon everybo someone somebod anyone anybody nobody everyth somethi anythin nothing jemand niemand alles etwas "
    "nichts alguien nadie todos quelque personn"
)
_MAX_SENTENCES_SINCE = 2
# A user's message that is no longer than this is one thought: what it begins with says what it is about.
_SHORT_MESSAGE = 160
# An option is found again by so much of it.
_MIN_OPTION, _MAX_OPTION, _MIN_PART = 40, 200, 3
_LIST_MARK = re.compile(r"(?:\*\*)?(?:\d{1,2}[.)]|[A-H][.)]|[-*•])(?:\*\*)? +")
_YES_OR_NO = re.compile(
    r"(?:yes|no|yep|nope|ja|nein|doch|oui|non|s[iíì]|sim|não|tak|nie)\b|是|不是|对|はい|いいえ|네|아니", re.IGNORECASE
)
# What is right comes next: "Oh wait, I must correct."
_ANNOUNCES = re.compile(
    r"(?:(?:oh|ah|no|sorry|ups|oops|perdón|pardon)[, ]+)*(?:wait|correction"
    r"|i (?:must|have to|need to) correct\b[^\d]{0,24}"
    r"|small correction|moment|ich muss mich korrigieren|kleine korrektur|perdón|me corrijo|pardon|je (?:me )?corrige"
    r"|wait, i (?:must|have to) correct[^\d]{0,24})[.!:,…]*",
    re.IGNORECASE,
)
_BREAKS_OFF = re.compile(
    r"\b(?:no,? wait|wait|nein,? warte|moment|no,? espera|espera|non,? attends|attends|nee,? wacht|no,? aspetta|aspetta"
    r"|nie,? czekaj|czekaj|não,? espera)[.!…]*$|待って[。…]*$",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"(?:pues(?: entonces)?|entonces|dann(?: also)?|also|donc|alors|(?:ok(?:ay)?,? )?then|so)\b(?= \S+(?: \S+){0,3}$)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"""(?<=[a-zäöüéíóú,] )[A-ZÄÖÜÉ]\w|["“„«]|\d""")
_DIGIT = re.compile(r"\d")
_FIGURE = re.compile(r"[\d.,:]+\D{0,3}$")
_REFUSAL = re.compile(r"(?:no|nope|nein|non|not|nicht|pas)\b|不|いや|いいえ|아니", re.IGNORECASE)


class SentenceContext(Struct):
    """The other sentences that one needs to be understood: the one it refers to, its question, its answer, its
    correction. Looked up when a sentence is selected, since most never are."""

    reader: LineReader
    corrections: Mapping[SentenceKey, ScoredSentence] = msgspec.field(default_factory=dict)

    @property
    def summary_corrections(self) -> list[ScoredSentence]:
        """Corrections of sentences in the former summary."""
        return [sentence for (line, _), sentence in self.corrections.items() if line == FORMER_SUMMARY]

    def of(self, sentence: ScoredSentence) -> list[ScoredSentence]:
        """The sentences that it needs, with a score of zero."""
        if sentence.key in self.corrections:
            return [self.corrections[sentence.key], *self._neighbours(sentence)]
        return list(self._neighbours(sentence))

    def following(self, sentence: ScoredSentence, size: int) -> Iterator[ScoredSentence]:
        """The prose after it in its line, up to `size` characters including the sentence itself."""
        size -= len(sentence.text)
        for other in self.reader.cached_sentences(sentence.line):
            if other.position > sentence.position:
                size -= len(other.text)
                is_own = other.speaker is None and not other.is_code
                if size < 0 or not is_own or is_noise(other.text) or is_machine_made(other.text):
                    return
                yield _unscored(sentence.line, other)

    def _neighbours(self, sentence: ScoredSentence) -> Iterator[ScoredSentence]:
        text, line, position = sentence.text, sentence.line, sentence.position
        source = self.reader.lines[line]
        if source.label == TOOL or is_machine_made(text):
            return
        if source.label == USER and source.chosen and (options := self._options(sentence)):
            yield from options
            return
        if source.own_question and not position:
            yield from self._asked_before(line, source.own_question)
            return
        if source.has_commands and is_fenced_command(text, source.text):
            found = [self.reader.sentence_at(line, position - step) for step in (1, 2)]
            yield from (_unscored(line, one) for one in found if one and not is_noise(one.text))
            return
        is_leaning = leans_back(text)
        is_thin = not is_question(text) and count_topic_words(text) < _MIN_TOPICS
        is_short = source.label == USER and len(source.text) <= _SHORT_MESSAGE and sentence.speaker is None
        needs_before = is_short or is_leaning or (is_thin and not _LIST_MARK.match(text)) or refers_back(text)
        before = self._before(line, position) if needs_before else None
        if before and is_short and before.speaker is not None:
            before = None  # the words of somebody else
        if before is None and sentence.speaker is None and (is_leaning or (source.label == USER and _agrees_to(text))):
            before = self._said_before(sentence)
        if before:
            yield before
        if source.label == USER and sentence.speaker is None and (limit := self._restriction(line, position + 1)):
            yield limit
        is_opener = before is None and not position and (is_thin or _opens_message(text, is_short))
        is_opener = is_opener or _ANNOUNCES.fullmatch(text) is not None or _BREAKS_OFF.search(text) is not None
        is_opener = is_opener or (source.label == USER and is_question(text) and self._goes_on(line, position + 1))
        if (is_heading(text) or _is_refusal(text) or is_opener) and (after := self._meaningful(line, position + 1)):
            yield after
        is_asked = is_question(text) and sentence.speaker is None and not source.is_task
        if is_asked and not self._answers_himself(line, text) and (answer := self._answer(sentence)):
            yield answer
        is_bare = before is None and says_little(text)
        is_short_answer = _is_elliptic(text) or (source.is_answer and count_topic_words(text) <= _MAX_ANSWER_TOPICS)
        said = self._question(sentence) if sentence.speaker is None and is_short_answer else None
        if is_bare and sentence.speaker is None and not said:
            said = self._corrected(sentence)
            # a figure alone answers a question, or is one of many
            said = said or (self._said_before(sentence) if not _FIGURE.match(text) else None)
        if said:
            yield said

    def _options(self, choice: ScoredSentence) -> list[ScoredSentence]:
        """The options that a sentence takes by their places in a list."""
        options, line = self.reader.lines[choice.line].options, self._other_speaker(choice.line, -1)
        taken = [options[at][:_MAX_OPTION] for at in chosen_options(choice.text, options)]
        said = self.reader.cached_sentences(line) if line is not None and taken else []
        return [_unscored(line or 0, found) for found in said if any(_is_of_option(found.text, one) for one in taken)]

    def _asked_before(self, line: int, question: str) -> Iterator[ScoredSentence]:
        """What the user asked in the message before his last."""
        asked = line - OWN_DISTANCE
        yield from (_unscored(asked, one) for one in self.reader.cached_sentences(asked) if one.text == question)

    def _answers_himself(self, line: int, question: str) -> bool:
        after = self.reader.lines[line + OWN_DISTANCE : line + OWN_DISTANCE + 1]
        return any(each.own_question == question for each in after)

    def _corrected(self, correction: ScoredSentence) -> ScoredSentence | None:
        """The sentence that it corrects."""
        for (line, position), later in self.corrections.items():
            if later.key == correction.key and line != FORMER_SUMMARY:
                found = self.reader.sentence_at(line, position)
                return _unscored(line, found) if found else None
        return None

    def _restriction(self, line: int, position: int) -> ScoredSentence | None:
        """The sentence at this place, if it takes something out of the one before: "not on tents though"."""
        found = self.reader.sentence_at(line, position)
        if found is None or found.is_code or not _is_meaningful(found) or is_question(found.text):
            return None
        return _unscored(line, found) if qualifies(found.text) and count_topic_words(found.text) else None

    def _goes_on(self, line: int, position: int) -> bool:
        """Whether the sentence at this place is about the one before: "Who pays? I want it to be the club." """
        found = self.reader.sentence_at(line, position)
        return found is not None and not is_question(found.text) and leans_back(found.text)

    def _before(self, line: int, position: int) -> ScoredSentence | None:
        """The sentence before, or the one before a cry: "We give her a boat. Secret!! Don't tell." """
        found = self.reader.sentence_at(line, position - 1)
        is_cry = found is not None and is_remark(found.text) and not names_event(found.text)
        return self._meaningful(line, position - 1 - is_cry)

    def _meaningful(self, line: int, position: int) -> ScoredSentence | None:
        found = self.reader.sentence_at(line, position)
        if not found or found.is_code or not _is_meaningful(found):
            return None
        is_empty = is_reaction(found.text) or agrees(found.text)
        is_empty = (
            is_empty
            or (is_remark(found.text) and not names_event(found.text))
            or is_thin_success(found.text)
            or (
                acknowledges(found.text)
                and count_topic_words(found.text) < _MIN_TOPICS
                and not _DIGIT.search(found.text)
            )
        )
        return None if is_empty else _unscored(line, found)

    def _answer(self, question: ScoredSentence) -> ScoredSentence | None:
        """The other speaker's first meaningful sentence after a question that ends its own message."""
        after = self.reader.sentence_at(question.line, question.position + 1)
        if after and not is_question(after.text):
            return None
        line = self._other_speaker(question.line, 1)
        if line is None:
            return None
        first = self.reader.cached_sentences(line)[:_MAX_SENTENCES_TO_ANSWER]
        own = [found for found in first if found.speaker is None and not is_draft(self.reader.lines[line].text)]
        answer = next((found for found in own if _is_meaningful(found) and not found.is_code), None)
        if answer is None or is_question(answer.text) or acknowledges(answer.text) or leaves_open(answer.text):
            return None
        return _unscored(line, answer)

    def _question(self, answer: ScoredSentence) -> ScoredSentence | None:
        """The question at the end of the other speaker's last message, if the answer starts its own."""
        own = self.reader.cached_sentences(answer.line)
        if any(_is_meaningful(sentence) for sentence in own if sentence.position < answer.position):
            return None
        line = self._other_speaker(answer.line, -1)
        last = self.reader.cached_sentences(line)[-_MAX_SENTENCES_SINCE:] if line is not None else []
        asked = next(
            (found for found in reversed(last) if is_question(found.text) and found.text[0] not in "-*•"), None
        )
        # "Could you send us a photo?" asks for something, and not what is so
        if line is None or asked is None or not _is_short_question(asked) or asks_politely(asked.text):
            return None
        # what the answer names itself need not be asked
        is_clear = not says_little(answer.text) and any(_is_topic(term) for term in asked.terms & answer.terms)
        is_clear = is_clear or (
            count_topic_words(answer.text) > _MAX_ANSWER_TOPICS and _YES_OR_NO.match(answer.text) is None
        )
        return None if is_clear else _unscored(line, asked)

    def _said_before(self, sentence: ScoredSentence) -> ScoredSentence | None:
        """What this sentence is the first to answer in the other speaker's last message: the one that speaks of the
        same, one in bold, or the first."""
        own = self.reader.cached_sentences(sentence.line)
        if any(_is_meaningful(found) for found in own if found.position < sentence.position):
            return None
        line = self._other_speaker(sentence.line, -1)
        said = self.reader.cached_sentences(line) if line is not None else []
        is_taken = self.reader.lines[sentence.line].label == USER and accepts(sentence.text)
        said = [found for found in said if _is_meaningful(found) and not found.is_code]
        said = [found for found in said if _tells(found.text) or (is_taken and _offers(found.text))]
        topic = set(filter(_is_topic, sentence.terms))
        found = max(said, key=lambda found: (len(topic & found.terms), "**" in found.text), default=None)
        if line is None or found is None or is_empty_offer(found.text) or is_draft(self.reader.lines[line].text):
            return None
        if not (topic & found.terms or is_taken) and (is_advice(found.text) or not _names_something(found.text)):
            return None
        return _unscored(line, found)

    def _other_speaker(self, line: int, step: int) -> int | None:
        """The next line in this direction that another speaker wrote; tool results in between are skipped."""
        lines = self.reader.lines
        for other in range(line + step, line + step * _MAX_LINES_TO_ANSWER, step):
            if not 0 <= other < len(lines) or lines[other].label == lines[line].label:
                return None
            if lines[other].label != TOOL:
                return other
        return None


def _is_of_option(text: str, option: str) -> bool:
    """Whether a sentence is a part of an option, or holds it: "3. **The twins.** Both claim it" is two."""
    part = _LIST_MARK.sub("", text, count=1)
    return option[:_MIN_OPTION] in text or (len(part) > _MIN_PART and part in option)


def _unscored(line: int, sentence: LineSentence) -> ScoredSentence:
    return ScoredSentence(line, sentence.position, sentence.text, sentence.terms, 0.0, sentence.speaker)


def _is_meaningful(sentence: LineSentence) -> bool:
    text = sentence.text
    return (
        len(text) <= _MAX_CONTEXT
        and not is_noise(text)
        and not is_machine_made(text)
        and rate_sentence(text) != CHATTER
    )


def _names_something(text: str) -> bool:
    """Whether a pronoun in the answer may stand for something in it that a reader wants to know."""
    return _NAMED.search(text) is not None or rate_sentence(text) > NORMAL


def _is_topic(term: str) -> bool:
    is_long = len(term) >= _MIN_TOPIC or (not term.isascii() and IS_UNSPACED.match(term) is not None)
    return is_long and term not in _ANYBODY


def _tells(text: str) -> bool:
    is_empty = acknowledges(text) or is_reaction(text) or is_remark(text) or says_little(text) or is_compliment(text)
    return stands_alone(text) and not is_empty


def _offers(text: str) -> bool:
    """Whether an assistant proposes something that a user can take as it is."""
    is_empty = acknowledges(text) or is_remark(text) or is_question(text)
    return is_advice(text) and count_topic_words(text) > _MIN_TOPICS and not is_empty


def _agrees_to(text: str) -> bool:
    """Whether it takes what the other said, or concludes from it, and hardly says what that is."""
    is_taking = accepts(text) or (_CONCLUDES.match(text) is not None and _NAMED.search(text) is None)
    return is_taking and count_topic_words(text) <= _MAX_AGREEMENT


def _opens_message(text: str, is_short: bool) -> bool:
    """Whether the next sentence says what this one is about: "Went weighing on Saturday. Hive 1 has 41 kg", "Setlist?
    75 minutes are about 16 songs"."""
    return count_topic_words(text) < (_MIN_TOPICS if is_question(text) else _MIN_TOPICS + is_short)


def _is_short_question(sentence: LineSentence) -> bool:
    text = sentence.text
    is_wanted = is_question(text) and not is_empty_offer(text)
    return is_wanted and len(text) <= _MAX_CONTEXT and rate_sentence(text) != CHATTER


def _is_refusal(text: str) -> bool:
    """The next sentence says what is wanted instead."""
    return len(text) <= _MAX_REFUSAL and _REFUSAL.match(text) is not None


def _is_elliptic(text: str) -> bool:
    """Too short to be understood alone, or a plain yes or no."""
    if answer := _YES_OR_NO.match(text):  # "Yes, Van Dam Movers, they come on 28 September" says it all
        rest = text[answer.end() :]
        return count_topic_words(rest) <= _MAX_ANSWER_TOPICS or _NAMED.search(rest) is None
    if len(text) <= _MAX_ELLIPTIC_CHARACTERS:
        return True
    return text.count(" ") < _MAX_ELLIPTIC_SPACES and (text.isascii() or not IS_UNSPACED.search(text))
