"""RecallQuery: decides whether a message needs archived messages, and which part of it is searched for.

A message that asks nothing and is only about what is in the window recalls nothing: recalled text costs tokens, and the
user's message is sent again without it in the next window.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recto.chat.message import Message
from recto.chat.priority import CHATTER, sentence_priority
from recto.recall.indexed_message import searchable_text
from recto.search.terms import normalize_text, topic_words
from recto.summary.machine_output import PROSE, classify_lines

# A message with so many characters or lines may be a paste; at most MAX_EXAMINED characters of it are examined.
MIN_PASTE_CHARACTERS, MIN_PASTE_LINES, MAX_EXAMINED = 300, 3, 20_000
# Characters of the latest messages that count as present; words farther back may as well be recalled.
RECENT_CHARACTERS = 200_000
# A message this long carries its own context; whether it asks is judged by its start and end.
SELF_CONTAINED, ENDS = 1000, 200
# Words match by so many first letters, so that other forms match too.
STEM_LETTERS = 5

_ASKS = re.compile(
    r"[?？؟]"
    r"|^\W*(?:who|whom|whose|what|when|where|which|why|how|remind|recall|wer|wen|wem|was|wann|wo|warum|wieso|welche\w*|wie"
    r"|qui|que|quoi|quand|où|quel\w*|pourquoi|comment|combien|quién|qué|cuándo|dónde|cuál|cómo|cuánto)\b"
    r"|\b(?:remember|earlier|again|previous(?:ly)?|before|back then|last (?:time|week|month|year)|(?:we|i|you) "
    r"(?:said|told|mentioned|discussed|agreed|decided|talked)|as (?:agreed|discussed|decided)"
    r"|erinner\w*|vorhin|früher|damals|letzte\w*|wieder|rappel\w*|avant|dernière?|encore|recuerd\w*|antes|otra vez)\b",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class RecallQuery:
    text: str
    """The text to search for."""
    asks: bool
    """Whether the message asks a question or refers to the past."""


def recall_query(message: Message, history: Sequence[Message], *, always: bool = False) -> RecallQuery | None:
    """The query for a message: its text written by people, with the user's message before it where it is too short.
    None for chatter, and for a pasted log or listing. `always` searches even where the message does not ask."""
    text = written_by_people(message.text)
    if not text or sentence_priority(text) == CHATTER:
        return None
    topics = topic_words(text)
    if len(topics) < 2:
        before = [earlier.text for earlier in history if earlier.role == "user" and earlier.text]
        return RecallQuery("\n".join((text, *before[-1:])), asks=True)
    is_long = len(text) > SELF_CONTAINED
    asks = any(_ASKS.search(part) for part in ((text[:ENDS], text[-ENDS:]) if is_long else (text,)))
    return RecallQuery(text, asks) if always or asks or not (is_long or _covers(history, topics)) else None


def _covers(history: Sequence[Message], topics: set[str]) -> bool:
    """Whether the latest messages contain at least four of five topic words."""
    parts: list[str] = []
    left = RECENT_CHARACTERS
    for message in reversed(history):
        if left <= 0:
            break
        parts.append(searchable_text(message)[:left])
        left -= len(parts[-1])
    recent = normalize_text("\n".join(parts))
    return sum(word[:STEM_LETTERS] not in recent for word in topics) * 5 <= len(topics)


def written_by_people(text: str) -> str:
    """The lines that people wrote; empty where most of a long text is machine output."""
    if len(text) < MIN_PASTE_CHARACTERS and text.count("\n") + 1 < MIN_PASTE_LINES:
        return text
    found = classify_lines(text[:MAX_EXAMINED])
    ends = (*found.starts[1:], min(len(text), MAX_EXAMINED))
    lines = [text[start:end] for start, end, kind in zip(found.starts, ends, found.kinds, strict=True) if kind == PROSE]
    people = "".join(lines)
    return people if len(people) * 2 > min(len(text), MAX_EXAMINED) else ""
