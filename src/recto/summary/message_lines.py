"""Message lines: the messages to sum up as the lines that sentences are chosen from, each with its weight, what was
settled, and what the two talk about.
"""

from collections.abc import Sequence
from datetime import date
from itertools import takewhile

from msgspec import Struct

from recto.chat.priority import CHATTER
from recto.summary.decisions import content_terms
from recto.summary.machine_output import is_noise
from recto.summary.sentences import is_question, rate_sentence, sentences
from recto.summary.source_lines import SourceLine
from recto.summary.statements import accepts, answers, settles

ROLE_WEIGHTS = {"user": 1.0, "assistant": 0.9, "tool": 0.5}
_TASK_WEIGHT = 1.6
_LONG_PROMPT, _LONG_PROMPT_WEIGHT = 1500, 0.4
# The task is in one of the first messages, after greetings.
_MAX_GREETINGS, _MAX_GREETING_CHARACTERS = 12, 2000
# Of a message beside another, so much tells what the two are about, in words of at least so many letters.
_MAX_NEAR, _MIN_TERM = 600, 5
# The reply to a message comes after at most so many tool results.
MAX_ROUNDS = 12


class PlainMessage(Struct, frozen=True):
    """One message to summarise."""

    role: str
    text: str
    priority: int = 5
    number: int = 0
    """Of a message that is older than the former summary, which does not tell it; 0 for all others."""
    day: date | None = None


def label_of(message: PlainMessage) -> str:
    return f"{message.role.capitalize()}: "


def message_lines(messages: Sequence[PlainMessage], is_beginning: bool, has_log: bool = False) -> list[SourceLine]:
    """Messages weigh by role, by priority, a little by age; the task weighs more. Where a work log tells the tasks, the
    rest of a long prompt weighs less."""
    messages = [message for message in messages if message.text.strip()]
    task = _find_task(messages) if is_beginning and not has_log else -1
    lines = []
    for at, message in enumerate(messages):
        weight = ROLE_WEIGHTS.get(message.role, 0.5) * (0.55 + 0.09 * message.priority) * (1 + 0.1 * at / len(messages))
        weight *= _TASK_WEIGHT if at == task else 1
        if has_log and message.role == "user" and len(message.text) > _LONG_PROMPT:
            weight *= _LONG_PROMPT_WEIGHT
        settled = message.role == "user" and is_settled(message.text, messages[at + 1 : at + 1 + MAX_ROUNDS])
        about, is_accepted = _talked_about(messages, at) if message.role == "assistant" else (frozenset(), False)
        lines.append(
            SourceLine(
                label_of(message),
                message.text,
                weight,
                at == task,
                message.number,
                message.day,
                settled,
                about=about,
                is_accepted=is_accepted,
            )
        )
    return lines


def _talked_about(messages: Sequence[PlainMessage], at: int) -> tuple[frozenset[str], bool]:
    """What the user says around an assistant's message, in terms, and whether that accepts it."""
    beside = [messages[place] for place in (at - 1, at + 1) if 0 <= place < len(messages)]
    near = [message.text[:_MAX_NEAR] for message in beside if message.role == "user"]
    after = messages[at + 1].text if at + 1 < len(messages) and messages[at + 1].role == "user" else ""
    return frozenset(term for text in near for term in content_terms(text) if len(term) >= _MIN_TERM), accepts(after)


def is_settled(text: str, following: Sequence[PlainMessage]) -> bool:
    """Whether the assistant does or answers what a text asks, before the user speaks again."""
    said = takewhile(lambda message: message.role != "user", following)
    replies = [message.text for message in said if message.role == "assistant"]
    return any(map(answers if is_question(text) else settles, replies))


def _find_task(messages: Sequence[PlainMessage]) -> int:
    """The first user message that is more than a greeting; -1 if there is none."""
    for at, message in enumerate(messages[:_MAX_GREETINGS]):
        if message.role == "user" and any(
            rate_sentence(text) != CHATTER and not is_noise(text)
            for text in sentences(message.text[:_MAX_GREETING_CHARACTERS])
        ):
            return at
    return -1
