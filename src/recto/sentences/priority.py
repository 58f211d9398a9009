"""The priority of a message, 1–10, rated on arrival by its role and text alone.

Compactions, instructions and tool results have fixed priorities. Messages of people and models are rated by the scorer,
fitted on how bad readers found the loss of a message. Knows no conversation.
"""

from collections.abc import Sequence

from recto.base.text import text_cache
from recto.chat.message import Message, Role
from recto.sentences.features import FEATURES, PlainMessage, Sentence, read_conversation
from recto.sentences.scorer import rating
from recto.sentences.segments import UNSPACED
from recto.sentences.words import word_class, words_in

SUMMARY, TASK, NORMAL, MINOR, SMALL, LEAST, NOTHING = 9, 8, 5, 4, 3, 2, 1
TASK_WITHIN = 8
"""The task is among this many messages."""
# Of a longer text, only this many characters at the start and the end are examined.
_EXAMINED = 1500
_LONG_RESULT = 4000
# Priority per standard deviation: closest to the readers, on held-out authors.
_STEP = 2.5
# A message with at most this many words, no marks and a rating below _LOW is small talk; for a first message, the lower
# number applies. Readers found 87 % of these unimportant (3 or less).
_FEW_WORDS, _FEWEST_WORDS, _LOW = 4, 2, -0.4
_MARKS = tuple(FEATURES.index(mark) for mark in ("asks", "announces", "figures", "names", "path"))


def awaits_task(earlier: Sequence[Message]) -> bool:
    """True if the user has said nothing yet, or nothing but greetings."""
    is_early = len(earlier) < TASK_WITHIN
    return is_early and all(message.priority < NORMAL for message in earlier if message.role == "user")


def priority_of(message: Message, *, is_first: bool = False) -> int:
    """From 1 (dropped first) to 10. `is_first`: the user's first message, which is the task unless it is a greeting."""
    if message.compaction:
        return SUMMARY
    if message.role == "system":
        return TASK
    if message.role == "tool":
        return _of_results(message)
    text = message.text.strip()
    if message.role == "assistant" and not text:
        return MINOR if message.calls else SMALL
    if is_first and message.role == "user" and (len(message.blocks) > 1 or not is_small_talk(text, _FEWEST_WORDS)):
        return TASK
    if not _says_something(text):
        return NOTHING if text or not message.blocks else NORMAL
    return min(max(round(NORMAL + _STEP * _rated(message.role, text)), LEAST), TASK)


def is_small_talk(text: str, most_words: int = _FEW_WORDS) -> bool:
    """True if a user's text is a greeting, thanks, applause or the like, which needs no lookup."""
    if not _says_something(text):
        return True
    if _word_count(text[:_EXAMINED]) > most_words:
        return False
    is_order = _word_count(text) > 1 and not word_class("courtesies").is_in(words_in(text), text)
    rows = read_alone("user", text)[1]
    return not is_order and not any(row[mark] for row in rows for mark in _MARKS) and _rated("user", text) < _LOW


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text[:_EXAMINED]))


def read_alone(role: Role, text: str, *, is_call: bool = False) -> tuple[list[Sentence], list[list[float]]]:
    """The sentences of a message and their features, without its conversation."""
    return read_conversation([PlainMessage(role, _examined(text), is_call=is_call)])


@text_cache(1024)
def _rated(role: Role, text: str) -> float:
    rows = read_alone(role, text)[1]
    return rating(rows) if rows else _LOW


def _of_results(message: Message) -> int:
    size = sum(len(result.text) for result in message.results) or len(message.text)
    has_failed = any(result.is_error for result in message.results)
    return SMALL if has_failed or size > _LONG_RESULT else MINOR


def _word_count(text: str) -> int:
    """Scripts without spaces have about two characters per word."""
    return len(text.split()) + len(UNSPACED.findall(text)) // 2


def _examined(text: str) -> str:
    return text if len(text) <= 2 * _EXAMINED else f"{text[:_EXAMINED]}\n\n{text[-_EXAMINED:]}"
