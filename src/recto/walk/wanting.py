"""Wanting: what a message wants of the archive, if anything: what of it is looked up, and whether it asks.

A message that asks for nothing and speaks only of what is in the window needs nothing brought back: every recalled
word is paid for, and so is the message behind it, once more, when the words are gone from the next window.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recto.chat.message import Message
from recto.chat.priority import CHATTER, weigh
from recto.search.terms import content, folded
from recto.summary.layout import PROSE, layout
from recto.walk.shelving import said

# From so many characters or lines on a message may be a paste; so many characters of it are looked at.
LONG, LINES, LOOKED_THROUGH = 300, 3, 20_000
# Of the latest messages so many characters: a word that stood farther off may as well be brought back.
HELD = 200_000
# A message this long brings along what it speaks of; whether it asks shows at its ends.
ITSELF, ENDS = 1000, 200
# A word in another form is held as well: so many of its first letters count.
BEGINNING = 5

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
class Want:
    text: str
    """What is looked up."""
    asks: bool
    """It asks, or speaks of what was before."""


def want_of(message: Message, history: Sequence[Message], *, always: bool = False) -> Want | None:
    """What people wrote of the message; with what was said before it where it says too little by itself. Chatter wants
    nothing, and neither does a log or a listing that was pasted; `always` where whatever bears on it is wanted."""
    text = written(message.text)
    if not text or weigh(text) == CHATTER:
        return None
    topics = content(text)
    if len(topics) < 2:
        before = [each.text for each in history if each.role == "user" and each.text]
        return Want("\n".join((text, *before[-1:])), asks=True)
    is_long = len(text) > ITSELF
    asks = any(_ASKS.search(part) for part in ((text[:ENDS], text[-ENDS:]) if is_long else (text,)))
    return Want(text, asks) if always or asks or not (is_long or _holds(history, topics)) else None


def _holds(history: Sequence[Message], topics: set[str]) -> bool:
    """Whether the latest messages speak of it, all but a word in five."""
    parts: list[str] = []
    left = HELD
    for message in reversed(history):
        if left <= 0:
            break
        parts.append(said(message)[:left])
        left -= len(parts[-1])
    there = folded("\n".join(parts))
    return sum(word[:BEGINNING] not in there for word in topics) * 5 <= len(topics)


def written(text: str) -> str:
    """The lines that people wrote; nothing where most of a long text is a machine's."""
    if len(text) < LONG and text.count("\n") + 1 < LINES:
        return text
    found = layout(text[:LOOKED_THROUGH])
    ends = (*found.starts[1:], min(len(text), LOOKED_THROUGH))
    lines = [text[start:end] for start, end, kind in zip(found.starts, ends, found.kinds, strict=True) if kind == PROSE]
    people = "".join(lines)
    return people if len(people) * 2 > min(len(text), LOOKED_THROUGH) else ""
