"""How important a message is by itself, 1–10, told by its role and its words. Knows no conversation and no model.

What binds later turns is high: the task, decisions, constraints, corrections, facts about the user. Cues are phrases
in English, German, French and Spanish; numbers, paths, code and length speak for themselves in any language.
"""

import re
from collections import Counter
from collections.abc import Sequence

from recto.chat.cues import SHORT, SMALL_WORDS, TOKEN
from recto.chat.cues import heard as heard_in
from recto.chat.message import Message

SUMMARY, TASK, BINDING, TELLING, NORMAL, MINOR, SMALL, CHATTER, NOTHING = 9, 8, 7, 6, 5, 4, 3, 2, 1


Heard = tuple[str, frozenset[str]]
"""A sentence and the kinds of cue in it."""

_LOOKED_AT = 2000
_LONG_RESULT = 4000
_MANY_LINES, _TOO_MANY_LINES = 20, 100
_BREAK = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_REFUSAL = re.compile(r"^(no|nope|nah|nein|non)[.!]\s+", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n\s*\n")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SAYS = re.compile(r"[^\W_]")
_FEW_WORDS = re.compile(r"[^\s\u3040-\ud7af]{1,16}(?:\s[^\s\u3040-\ud7af]{1,16})?|\S{1,3}")
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")
_FIRST_WORD = re.compile(r"[^\W\d_]+|\d")
_UNIT = r"(?:[€$£¥%°]|(?:k?m|cm|mm|mi|k?g|lbs?|[kKMGT]i?[Bb]|ms|min|mph|kWh?|USD|EUR|px)\b)"
_FILE = r"[\w-]\.(?:py|js|ts|rs|go|c|h|java|sh|sql|md|txt|json|toml|ya?ml|csv|pdf|html)\b"
_HARD = re.compile(rf"\d\s?{_UNIT}|[€$£¥]\s?\d|https?://|`|\w/\w+[/.]\w|{_FILE}|\w_\w|[a-z][A-Z]\w")
_LEVEL = r"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b"
_MACHINE = re.compile(
    rf"\W*(?:\d+[-/.]\d\d[-/.]\d\d[T ,]+)?\d\d:\d\d:\d\d|{_LEVEL}|\S+\s+\[?{_LEVEL}[\]:|]"
    r"|\s*(?:at \S+\(|File \"|\[(?!\[)|[{}<|>]|\$ |//|Traceback)"
)
_FAILED = re.compile(r"\s*(?:\w*(?:Error|Exception)\b|error\b|ERROR\b|Traceback\b|fatal:|[Ff]ailed\b)")


def priority_of(message: Message, *, is_first: bool = False) -> int:
    """From 1 (may go first) to 10. The first thing the user said is the task, whatever it is."""
    if message.compaction:
        return SUMMARY
    if message.role == "system" or (message.role == "user" and is_first):
        return TASK
    if message.role == "tool":
        return _of_results(message)
    return _of_reply(message) if message.role == "assistant" else _of_user(message)


def weigh(sentence: str) -> int:
    """One sentence on the same scale: binding, telling, normal or chatter."""
    heard = heard_in(sentence)
    if _is_binding(sentence, heard):
        return BINDING
    if "outcome" in heard or _is_fact(sentence, heard):
        return TELLING
    return CHATTER if _is_polite(sentence, heard) else NORMAL


def _of_results(message: Message) -> int:
    texts = [result.text for result in message.results] or [message.text]
    if any(result.is_error for result in message.results) or any(_FAILED.match(text) for text in texts):
        return SMALL
    return SMALL if sum(map(len, texts)) > _LONG_RESULT else MINOR


def _of_reply(message: Message) -> int:
    text = _looked_at(message.text)
    if not text.strip():
        return MINOR if message.calls else SMALL
    said = [(sentence, heard_in(sentence)) for sentence in _sentences(_FENCED.sub("\n\n", text))]
    if any("outcome" in heard or _is_binding(sentence, heard) for sentence, heard in said):
        return TELLING
    # numbers are everywhere in longer answers; a day or a month in a short one is news
    if len(text) <= 4 * SHORT and any("when" in heard and not _is_asked(sentence) for sentence, heard in said):
        return TELLING
    return _of_the_rest(text, said, SMALL)


def _of_user(message: Message) -> int:
    text = message.text.strip()
    if not _SAYS.search(text[:_LOOKED_AT]):
        return NOTHING if text or not message.blocks else NORMAL
    said = [(sentence, heard_in(sentence)) for sentence in _sentences(_own_words(text))]
    binding = sum(_is_binding(*each) for each in said)
    if binding:
        return BINDING if binding == 1 else BINDING + 1
    if len(text) <= _LOOKED_AT and (_HARD.search(text) or any(_is_fact(*each) for each in said)):
        return TELLING
    return _of_the_rest(text, said, CHATTER)


def _of_the_rest(text: str, said: Sequence[Heard], small_talk: int) -> int:
    """What no cue has placed: small talk, a word or two, a mere reaction, or something normal."""
    if not said or len(text) > 2 * SHORT:
        return NORMAL
    if all(_is_polite(*each) for each in said):
        return small_talk
    if _FEW_WORDS.fullmatch(text.strip()):
        return MINOR if _is_asked(text) else SMALL
    return MINOR if all(_is_reaction(*each) for each in said) else NORMAL


def _is_polite(sentence: str, heard: frozenset[str]) -> bool:
    return "chatter" in heard or ("courtesy" in heard and len(sentence) <= SHORT)


def _is_reaction(sentence: str, heard: frozenset[str]) -> bool:
    """ "That sounds like fun!" """
    first = TOKEN.match(sentence.lower())
    return "chatter" in heard or (sentence.endswith("!") and first is not None and first[0] in SMALL_WORDS)


def _is_asked(sentence: str) -> bool:
    return sentence.rstrip("\"')*_ ").endswith(("?", "？"))


def _is_fact(sentence: str, heard: frozenset[str]) -> bool:
    return ("when" in heard or "number" in heard) and not _is_asked(sentence)


def _is_binding(sentence: str, heard: frozenset[str]) -> bool:
    return "binds even asked" in heard or (not _is_asked(sentence) and ("binds" in heard or "likely" in heard))


def _looked_at(text: str) -> str:
    return text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}"


def _own_words(text: str) -> str:
    """What was written, not pasted: of a log or a long document only what stands before and after it."""
    if len(text) <= SHORT:
        return text
    seen = _FENCED.sub("\n\n", _looked_at(text))
    if len(text) <= 2 * _LOOKED_AT and not _is_pasted(seen.splitlines()):
        return seen
    around = [part for part in _PARAGRAPH.split(seen) if part.strip()]
    return "\n".join(part for part in (around[0], around[-1]) if part.count("\n") < 3) if len(around) > 1 else ""


def _is_pasted(lines: list[str]) -> bool:
    """Lines that a machine wrote, or that nearly all begin alike."""
    lines = [_BULLET.sub("", line) for line in lines if line.strip()]
    if len(lines) <= _MANY_LINES:
        return False
    firsts = Counter(found[0] for line in lines if (found := _FIRST_WORD.search(line)))
    machine = sum(_MACHINE.match(line) is not None for line in lines)
    return len(lines) > _TOO_MANY_LINES or 2 * max(firsts.values(), default=0) > len(lines) or 3 * machine > len(lines)


def _sentences(text: str) -> list[str]:
    """Good enough to tell a question from a statement. A "No." belongs to what is wanted instead."""
    if text.startswith(("n", "N")):
        text = _REFUSAL.sub(r"\1, ", text, count=1)
    return [part for part in _BREAK.split(text) if part and not _MACHINE.match(part)]
