"""The priority of a message, 1–10, judged by its role and its words alone. Knows no conversation and no model.

Messages that bind later turns rank high: the task, decisions, constraints, corrections, facts about the user. Cues are
phrases in eight European languages; numbers, paths, code and length count in any language.
"""

import re
from collections import Counter
from collections.abc import Sequence

from recto.chat.cues import SHORT, SMALL_WORDS, TOKEN, cues_in, words_of
from recto.chat.message import Message

SUMMARY, TASK, BINDING, TELLING, NORMAL, MINOR, SMALL, CHATTER, NOTHING = 9, 8, 7, 6, 5, 4, 3, 2, 1


CuedSentence = tuple[str, frozenset[str]]
"""A sentence and the kinds of cue in it."""

# What somebody says of himself has so many words, and one of these.
_MIN_WISH = 5
_OWN_WORDS = frozenset(
    ("i", "my", "we", "our", "ich", "wir", "mein", "meine", "meinen", "je", "nous", "mon", "ma", "mi", "ik", "mijn")
)
# Of a longer text, only so many characters at its start and its end are examined.
_EXAMINED = 2000
_LONG_RESULT = 4000
_MANY_LINES, _TOO_MANY_LINES = 20, 100
# A set of characters at the very start keeps the scan fast; what stands before it is looked at afterwards.
_BREAK = re.compile(r"[\s](?:(?<=[.!?…。！？]\s)\s*|(?<=\n)\n*)")
_REFUSAL = re.compile(r"^(no|nope|nah|nein|non)[.!]\s+", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n\s*\n")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SAYS = re.compile(r"[^\W_]")
_FEW_WORDS = re.compile(r"[^\s\u3040-\ud7af]{1,16}(?:\s[^\s\u3040-\ud7af]{1,16})?|\S{1,3}")
_BULLET = re.compile(r"(?:(?<!\s)\s++)?(?:[-*•]|(?<!\d)\d++[.)])\s++")
_FIRST_WORD = re.compile(r"[^\W\d_]+|\d")
_UNIT = r"(?:[€$£¥%°]|(?:k?m|cm|mm|mi|k?g|lbs?|[kKMGT]i?[Bb]|ms|min|mph|kWh?|USD|EUR|px)\b)"
_FILE = r"\.(?<=[\w-]\.)(?:py|js|ts|rs|go|c|h|java|sh|sql|md|txt|json|toml|ya?ml|csv|pdf|html)\b"
# The first starts with a set of characters and the second with single ones: both are found without trying every place.
_HARD = re.compile(rf"[\d€$£¥A-Z](?:(?<=\d)\s?{_UNIT}|(?<=[€$£¥])\s?\d|(?<=[a-z][A-Z])\w)")
_HARD_NAME = re.compile(rf"https?://|`|/(?<=\w/)\w+[/.]\w|{_FILE}|_(?<=\w_)\w")
_LEVEL = r"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b"
_MACHINE = re.compile(
    rf"\W*(?:\d+[-/.]\d\d[-/.]\d\d[T ,]+)?\d\d:\d\d:\d\d|{_LEVEL}|\S+\s+\[?{_LEVEL}[\]:|]"
    r"|\s*(?:at \S+\(|File \"|\[(?!\[)|[{}<|>]|\$ |//|Traceback)"
)
_FAILED = re.compile(r"\s*(?:\w*(?:Error|Exception)\b|error\b|ERROR\b|Traceback\b|fatal:|[Ff]ailed\b)")


def priority_of(message: Message, *, is_first: bool = False) -> int:
    """From 1 (dropped first) to 10. The user's first message is the task, unless it only greets and brings nothing."""
    if message.compaction:
        return SUMMARY
    if message.role == "system":
        return TASK
    if message.role == "tool":
        return _of_results(message)
    if message.role == "assistant":
        return _of_reply(message)
    own = _of_user(message)
    return TASK if is_first and (own > CHATTER or len(message.blocks) > 1) else own


def sentence_priority(sentence: str) -> int:
    """The priority of one sentence on the same scale: binding, informative, normal or chatter."""
    cues = cues_in(sentence)
    if _is_binding(sentence, cues):
        return BINDING
    if "outcome" in cues or _is_fact(sentence, cues):
        return TELLING
    return CHATTER if _is_polite(sentence, cues) else NORMAL


def _of_results(message: Message) -> int:
    texts = [result.text for result in message.results] or [message.text]
    if any(result.is_error for result in message.results) or any(_FAILED.match(text) for text in texts):
        return SMALL
    return SMALL if sum(map(len, texts)) > _LONG_RESULT else MINOR


def _of_reply(message: Message) -> int:
    text = _examined(message.text)
    if not text.strip():
        return MINOR if message.calls else SMALL
    sentences = [(sentence, cues_in(sentence)) for sentence in _sentences(_FENCED.sub("\n\n", text))]
    if any("outcome" in cues or _is_binding(sentence, cues) for sentence, cues in sentences):
        return TELLING
    # numbers are everywhere in longer answers; a day or a month in a short one is news
    if len(text) <= 4 * SHORT and any("when" in cues and not _is_asked(sentence) for sentence, cues in sentences):
        return TELLING
    return _of_the_rest(text, sentences, SMALL)


def _of_user(message: Message) -> int:
    text = message.text.strip()
    if not _SAYS.search(text[:_EXAMINED]):
        return NOTHING if text or not message.blocks else NORMAL
    sentences = [(sentence, cues_in(sentence)) for sentence in _sentences(_own_words(text))]
    binding = sum(_is_binding(*sentence) for sentence in sentences)
    if binding:
        return BINDING if binding == 1 else BINDING + 1
    is_short = len(text) <= _EXAMINED
    if is_short and (any(_is_fact(*each) for each in sentences) or _HARD.search(text) or _HARD_NAME.search(text)):
        return TELLING
    return _of_the_rest(text, sentences, CHATTER)


def _of_the_rest(text: str, sentences: Sequence[CuedSentence], small_talk: int) -> int:
    """The priority of a text without decisive cues: small talk, a word or two, a reaction, or normal."""
    if not sentences or len(text) > 2 * SHORT:
        return NORMAL
    if all(_is_polite(*sentence) for sentence in sentences):
        return small_talk
    if _FEW_WORDS.fullmatch(text.strip()):
        return MINOR if _is_asked(text) else SMALL
    return MINOR if all(_is_reaction(*sentence) for sentence in sentences) else NORMAL


def _is_polite(sentence: str, cues: frozenset[str]) -> bool:
    return "chatter" in cues or ("courtesy" in cues and len(sentence) <= SHORT and not _goes_on(sentence))


def _goes_on(sentence: str) -> bool:
    """Whether more than courtesy follows a greeting: "Guten Tag, ich möchte meinen Termin verschieben"."""
    rest = sentence.partition(", ")[2]
    is_own = rest.count(" ") >= _MIN_WISH - 1 and not _OWN_WORDS.isdisjoint(words_of(rest))
    return is_own and cues_in(rest).isdisjoint(("courtesy", "chatter"))


def _is_reaction(sentence: str, cues: frozenset[str]) -> bool:
    """ "That sounds like fun!" """
    first = TOKEN.match(sentence.lower())
    return "chatter" in cues or (sentence.endswith("!") and first is not None and first[0] in SMALL_WORDS)


def _is_asked(sentence: str) -> bool:
    return sentence.rstrip("\"')*_ ").endswith(("?", "？"))


def _is_fact(sentence: str, cues: frozenset[str]) -> bool:
    return ("when" in cues or "number" in cues) and not _is_asked(sentence)


def _is_binding(sentence: str, cues: frozenset[str]) -> bool:
    return "binds even asked" in cues or (not _is_asked(sentence) and ("binds" in cues or "likely" in cues))


def _examined(text: str) -> str:
    return text if len(text) <= 2 * _EXAMINED else f"{text[:_EXAMINED]}\n\n{text[-_EXAMINED:]}"


def _own_words(text: str) -> str:
    """The text that the user wrote: of a pasted log or long document, only the paragraphs around it."""
    if len(text) <= SHORT:
        return text
    examined = _FENCED.sub("\n\n", _examined(text))
    if len(text) <= 2 * _EXAMINED and not _is_pasted(examined.splitlines()):
        return examined
    around = [part for part in _PARAGRAPH.split(examined) if part.strip()]
    return "\n".join(part for part in (around[0], around[-1]) if part.count("\n") < 3) if len(around) > 1 else ""


def _is_pasted(lines: list[str]) -> bool:
    """True for many lines that a machine wrote, or that mostly begin with the same word."""
    lines = [line for line in lines if line.strip()]
    if len(lines) <= _MANY_LINES:
        return False
    lines = [_BULLET.sub("", line) for line in lines]
    firsts = Counter(found[0] for line in lines if (found := _FIRST_WORD.search(line)))
    machine = sum(_MACHINE.match(line) is not None for line in lines)
    return len(lines) > _TOO_MANY_LINES or 2 * max(firsts.values(), default=0) > len(lines) or 3 * machine > len(lines)


def _sentences(text: str) -> list[str]:
    """Splits well enough to tell a question from a statement. A leading "No." stays with the sentence after it."""
    if text.startswith(("n", "N")):
        text = _REFUSAL.sub(r"\1, ", text, count=1)
    return [part for part in _BREAK.split(text) if part and not _MACHINE.match(part)]
