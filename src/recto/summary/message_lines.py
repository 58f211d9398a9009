"""Message lines: the messages to sum up as the lines that sentences are chosen from, each with its weight, and what the
messages beside it say of it.
"""

import re
from collections.abc import Sequence
from datetime import date
from itertools import takewhile

from msgspec import Struct

from recto.chat.priority import BINDING, CHATTER
from recto.summary.choices import asked_alternatives, chosen_options, listed_options, takes_alternative
from recto.summary.machine_output import is_document, is_machine_made, is_noise
from recto.summary.sentences import is_question, rate_sentence, sentences, terms
from recto.summary.side_questions import Said, find_side_questions
from recto.summary.small_talk import is_remark, is_small_talk_reply
from recto.summary.source_lines import OWN_DISTANCE, SourceLine
from recto.summary.statements import (
    accepts,
    agrees,
    answers,
    asks_for_text,
    is_draft,
    is_empty_offer,
    is_request,
    settles,
)
from recto.summary.worth import is_about_self, needs_context

_TALE = re.compile(
    r"\b(?:stor(?:y|ies)|tales?|poems?|novel|fairy ?tale|role-?play|geschichte|gedicht|märchen|roman|cuento|poema"
    r"|relato|histoire|conte|poème|verhaal|verhaaltje|sprookje)\b"
)
_TELLS_TALE = re.compile(
    r"\b(?:write|tell|continue|invent|make up|play|schreib\w*|erzähl\w*|erfind\w*|escrib\w+|cuénta\w*|inventa\w*"
    r"|écri\w+|raconte\w*|invente\w*|schrijf|schrijven|vertel\w*|verzin\w*)\b"
)
_SPOKEN = re.compile(r"[\"“„«][^\"”“»\n]*[\"”“»]")
_TALKS = re.compile(
    r"\d|\b(?:you|your|du|dein\w*|sie|ihnen|usted|tú?|tus?|vous|votre|vos|je|jij|jouw|u)\b", re.IGNORECASE
)
# Of a reply that tells the tale on, in words; and how many messages after it was asked for.
_MIN_TALE, _MAX_TALE = 8, 12
ROLE_WEIGHTS = {"user": 1.0, "assistant": 0.65, "tool": 0.5}
_TASK_WEIGHT, _ACCEPTED_WEIGHT, _DRAFT_WEIGHT = 1.6, 1.3, 0.03
# What was said last holds more often than what was said first.
_RECENCY = 0.3
_LONG_PROMPT, _LONG_PROMPT_WEIGHT = 1500, 0.4
# The task is in one of the first messages, after greetings.
_MAX_GREETINGS, _MAX_GREETING_CHARACTERS = 12, 2000
# Of a message beside another, so much tells what the two are about.
_MAX_NEAR = 600
# A question of a language without question marks is told by its last characters.
_MAX_ENDING = 12
_MIN_LISTED = 3
# Where two people chat, the replies are about so long on average, and this share of them tells of their author.
_MIN_REPLIES, _MAX_CHAT, _PERSONAL_SHARE, _CASUAL_SHARE = 6, 90, 0.3, 0.5
_MIN_OPTION = 40
# The reply to a message comes after at most so many tool results.
MAX_ROUNDS = 12


class PlainMessage(Struct, frozen=True, gc=False):
    """One message to summarise."""

    role: str
    text: str
    priority: int = 5
    number: int = 0
    """Of a message that is older than the former summary, which does not tell it; 0 for all others."""
    day: date | None = None
    is_step: bool = False
    """Whether an assistant says it beside a call of a tool, of which a work log tells."""


def label_of(message: PlainMessage) -> str:
    return f"{message.role.capitalize()}: "


def message_lines(
    messages: Sequence[PlainMessage], is_beginning: bool, has_log: bool = False, former: str = ""
) -> list[SourceLine]:
    """Messages weigh by role, by priority, a little by age; the task weighs more. Where a work log tells the tasks, the
    rest of a long prompt weighs less."""
    messages = [message for message in messages if message.text.strip()]
    task = _find_task(messages) if is_beginning and not has_log else -1
    aside = find_side_questions([Said(one.role, one.text, one.is_step) for one in messages], former)
    is_between_people = not has_log and _is_between_people(messages)
    tales = [_asks_for_tale(message) for message in messages]
    lines = []
    for at, message in enumerate(messages):
        weight = (
            ROLE_WEIGHTS.get("user" if is_between_people else message.role, 0.5)
            * (0.55 + 0.09 * message.priority)
            * (1 + _RECENCY * at / len(messages))
        )
        weight *= _TASK_WEIGHT if at == task else 1
        if has_log and message.role == "user" and len(message.text) > _LONG_PROMPT:
            weight *= _LONG_PROMPT_WEIGHT
        settled = message.role == "user" and is_settled(message.text, messages[at + 1 : at + 1 + MAX_ROUNDS])
        is_accepted = _is_accepted(messages, at)
        is_tale = any(tales[max(0, at - _MAX_TALE) : at]) and message.role == "assistant" and _is_told_on(message.text)
        weight *= _DRAFT_WEIGHT if is_tale or _is_draft(messages, at) else _ACCEPTED_WEIGHT if is_accepted else 1
        options, chosen = _choice(messages, at)
        lines.append(
            SourceLine(
                label_of(message),
                message.text,
                weight,
                at == task,
                message.number,
                message.day,
                settled,
                is_accepted=is_accepted,
                options=options,
                chosen=chosen,
                own_question=_own_question(messages, at),
                is_answer=_is_answer(messages, at),
                is_small_talk=_is_small_talk(messages, at),
                is_proposal=bool(not chosen and not is_accepted and _lists_proposals(messages, at)),
                has_commands=message.role == "assistant" and not has_log and "```" in message.text,
                is_document=message.role == "tool" and is_document(message.text),
                repeated=_said_before(messages, at),
                is_step=message.is_step,
                is_done=not has_log and _is_ordered(messages, at),
                asked=None if is_accepted or chosen else _asked_before(messages, at),
                is_person=is_between_people and message.role == "assistant",
                is_aside=at in aside,
            )
        )
    return lines


def _is_between_people(messages: Sequence[PlainMessage]) -> bool:
    """Whether who answers is a person too: short messages, of which most begin with a small letter, as no model writes,
    or many tell of their author."""
    if any(message.role not in ("user", "assistant") for message in messages):
        return False
    replies = [message.text for message in messages if message.role == "assistant"]
    if len(replies) < _MIN_REPLIES or sum(map(len, replies)) > _MAX_CHAT * len(replies):
        return False
    if sum(reply.lstrip()[:1].islower() for reply in replies) >= _CASUAL_SHARE * len(replies):
        return True
    personal = sum(any(map(is_about_self, sentences(reply))) for reply in replies)
    return personal >= _PERSONAL_SHARE * len(replies)


def _is_accepted(messages: Sequence[PlainMessage], at: int) -> bool:
    """Whether the user's next message takes what an assistant's proposes."""
    if at + 1 >= len(messages) or (messages[at].role, messages[at + 1].role) != ("assistant", "user"):
        return False
    return accepts(next(iter(sentences(messages[at + 1].text[:_MAX_NEAR])), ""))


def _lists_proposals(messages: Sequence[PlainMessage], at: int) -> bool:
    """Whether an assistant's message is a list, and the user does not say yes to it."""
    if messages[at].role != "assistant" or len(listed_options(messages[at].text)) < _MIN_LISTED:
        return False
    if at + 1 >= len(messages) or messages[at + 1].role != "user":
        return False
    first = next(iter(sentences(messages[at + 1].text[:_MAX_NEAR])), "")
    return not agrees(first) or is_remark(first)


def _is_draft(messages: Sequence[PlainMessage], at: int) -> bool:
    """Whether it is a text for the user to use: by its form, or because that was asked for."""
    if messages[at].role != "assistant":
        return False
    asked = messages[at - 1].text if at and messages[at - 1].role == "user" else ""
    return is_draft(messages[at].text) or (len(asked) <= _MAX_NEAR and any(map(asks_for_text, sentences(asked))))


def _asks_for_tale(message: PlainMessage) -> bool:
    """Whether the user wants something made up."""
    if message.role != "user" or len(message.text) > _MAX_NEAR:
        return False
    lower = message.text.lower()
    return _TALE.search(lower) is not None and _TELLS_TALE.search(lower) is not None


def _is_told_on(text: str) -> bool:
    """Whether a reply is a part of what is made up: it has no figures, and speaks to nobody but in quotation marks."""
    return text.count(" ") >= _MIN_TALE and _TALKS.search(_SPOKEN.sub("", text)) is None


def _is_small_talk(messages: Sequence[PlainMessage], at: int) -> bool:
    """Whether it is a reply to small talk, or the reply to it takes it for that."""
    if messages[at].role == "assistant":
        return is_small_talk_reply(messages[at].text)
    if at + 1 >= len(messages) or (messages[at].role, messages[at + 1].role) != ("user", "assistant"):
        return False
    return is_small_talk_reply(messages[at + 1].text, messages[at].text)


def _said_before(messages: Sequence[PlainMessage], at: int) -> frozenset[str]:
    """The terms of the user's message that an assistant's answers: a reply often repeats it. Where the user says hardly
    anything, the reply says it better."""
    if not at or (messages[at - 1].role, messages[at].role) != ("user", "assistant"):
        return frozenset()
    said = messages[at - 1].text
    if len(said) > _MAX_NEAR:
        return frozenset()
    # what the assistant reads in a log is news
    own = [text for text in sentences(said) if not is_machine_made(text)]
    if all(is_question(text) or needs_context(text) for text in own):
        return frozenset()
    return terms(said if "\n" not in said else "\n".join(own))


def _is_ordered(messages: Sequence[PlainMessage], at: int) -> bool:
    if not at or (messages[at - 1].role, messages[at].role) != ("user", "assistant"):
        return False
    said = messages[at - 1].text
    return len(said) <= _MAX_NEAR and any(is_request(one) or rate_sentence(one) == BINDING for one in sentences(said))


def _asked_before(messages: Sequence[PlainMessage], at: int) -> frozenset[str] | None:
    """The terms of the question at the end of the user's message that an assistant's answers; None if there is none."""
    if not at or (messages[at - 1].role, messages[at].role) != ("user", "assistant"):
        return None
    said = messages[at - 1].text
    if len(said) > _MAX_NEAR or not (found := sentences(said)) or not is_question(found[-1]):
        return None
    return terms(said)


def _choice(messages: Sequence[PlainMessage], at: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The options that a message lists or answers, and which are taken; none where nothing is."""
    asked, reply = (at, at + 1) if messages[at].role == "assistant" else (at - 1, at)
    if asked < 0 or reply >= len(messages) or (messages[asked].role, messages[reply].role) != ("assistant", "user"):
        return (), ()
    options = listed_options(messages[asked].text)
    said = sentences(messages[reply].text[:_MAX_NEAR]) if options else []
    chosen = next((places for text in said if (places := chosen_options(text, options))), ())
    return (options, chosen) if chosen else ((), ())


def _own_question(messages: Sequence[PlainMessage], at: int) -> str:
    """The question or the list in the user's message before the last, if this one takes something of it."""
    roles = [one.role for one in messages[max(0, at - OWN_DISTANCE) : at + 1]]
    if roles != ["user", "assistant", "user"]:
        return ""
    before = messages[at - OWN_DISTANCE].text[:_MAX_NEAR]
    question, options = asked_alternatives(before)
    first = next(iter(sentences(messages[at].text[:_MAX_NEAR])), "")
    if options and takes_alternative(first, options):
        return question
    listed = listed_options(before) if not listed_options(messages[at - 1].text) else ()
    taken = [listed[place][:_MIN_OPTION] for place in chosen_options(first, listed)]
    return next((one for one in sentences(before) if taken and taken[0] in one), "")


def _is_answer(messages: Sequence[PlainMessage], at: int) -> bool:
    """Whether the assistant's message before ends with a question, other than whether to go on."""
    if not at or (messages[at - 1].role, messages[at].role) != ("assistant", "user"):
        return False
    said = messages[at - 1].text[-_MAX_NEAR:].rstrip()
    if said.endswith((".", "!", ":")) and said[-_MAX_ENDING:].isascii():  # as most do
        return False
    last = (sentences(said) or [""])[-1]
    return is_question(last) and not is_empty_offer(last)


def is_settled(text: str, following: Sequence[PlainMessage]) -> bool:
    """Whether the assistant does or answers what a text asks, before the user speaks again."""
    said = takewhile(lambda message: message.role != "user", following)
    replies = [message.text for message in said if message.role == "assistant"]
    is_asked = is_question(text) or (len(text) <= _MAX_NEAR and is_question((sentences(text) or [""])[-1]))
    return any(map(answers if is_asked else settles, replies))


def _find_task(messages: Sequence[PlainMessage]) -> int:
    """The first user message that is more than a greeting; -1 if there is none."""
    for at, message in enumerate(messages[:_MAX_GREETINGS]):
        if message.role == "user" and any(
            rate_sentence(text) != CHATTER and not is_noise(text)
            for text in sentences(message.text[:_MAX_GREETING_CHARACTERS])
        ):
            return at
    return -1
