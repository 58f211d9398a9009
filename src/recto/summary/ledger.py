"""Ledger: facts that a summary lost, in terse lines by message number: `#57 src/app.py:42; 12,000 €`.

Facts compete for room by kind, speaker, frequency and age; entries of a former ledger compete with new ones. Describes
each fact in as few words as can be understood alone.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recto.summary.decisions import find_decisions, shorten_decision
from recto.summary.facts import Fact, find_facts
from recto.summary.machine_output import PROSE
from recto.summary.sentences import word_set
from recto.summary.truncation import CountTokens, cut_text

ITEM_SEPARATOR = "; "
_LINE = re.compile(r"#(\d+) (.+)")
# A decision binds later turns; a quotation mostly illustrates.
_KIND_WEIGHTS = {
    "decision": 1.6, "date": 1.2, "number": 1.0, "path": 1.0, "command": 1.0, "url": 1.0, "version": 1.0, "name": 0.9,
    "identifier": 0.9, "error": 0.9, "quote": 0.7, "time": 0.8,
}  # fmt: skip
_ROLE_WEIGHTS = {"user": 1.4, "assistant": 1.0, "tool": 0.7}
# An entry of the former ledger has won its place before, and yields only to clearly better ones.
_LISTED_WEIGHT = 1.2


class LedgerEntry(NamedTuple):
    """A fact that may go into the ledger."""

    fact: Fact
    text: str
    """How the ledger describes it."""
    number: int
    """The number of the last message that says it."""
    mentions: int = 1
    role: str = "assistant"
    is_listed: bool = False
    """Whether it is in the former ledger."""

    def merge(self, other: "LedgerEntry") -> "LedgerEntry":
        """The same fact said twice: in the wording of the later message, with the role that weighs more."""
        newer = self if self.number >= other.number else other
        role = max(self.role, other.role, key=lambda role: _ROLE_WEIGHTS.get(role, 1.0))
        is_listed = self.is_listed or other.is_listed
        return LedgerEntry(newer.fact, newer.text, newer.number, self.mentions + other.mentions, role, is_listed)

    def score(self, newest: int) -> float:
        recency = 0.8 + 0.4 * min(1.0, self.number / max(1, newest))
        frequency = 1 + 0.25 * math.log2(self.mentions)
        weight = _KIND_WEIGHTS.get(self.fact.kind, 1.0) * _ROLE_WEIGHTS.get(self.role, 1.0)
        return weight * recency * frequency * (_LISTED_WEIGHT if self.is_listed else 1)


def parse_ledger(lines: Iterable[str]) -> list[LedgerEntry]:
    """The entries of a ledger's lines."""
    found = []
    for line in lines:
        if match := _LINE.fullmatch(line):
            found += [parse_item(item, int(match[1])) for item in match[2].split(ITEM_SEPARATOR)]
    return found


def parse_item(item: str, number: int) -> LedgerEntry:
    return LedgerEntry(_fact_of_item(item), item, number, is_listed=True)


def _fact_of_item(item: str) -> Fact:
    """The decision that it states, or its longest fact."""
    if decisions := find_decisions(item):
        return decisions[0]
    facts = [fact for fact in find_facts(item, author=PROSE) if fact.is_significant]
    longest = max(facts, key=lambda fact: len(fact.text), default=None)
    if longest and 2 * len(longest.text) + 16 > len(item):
        return longest
    return Fact("quote", item, item.lower(), 0, len(item))


def ledger_lines(entries: Sequence[LedgerEntry], limit: int, count: CountTokens) -> tuple[str, ...]:
    """The best entries as lines in order of time, which take at most `limit` tokens together."""
    chosen: dict[int, dict[str, set[tuple[str, str]]]] = {}
    stated: set[tuple[str, str]] = set()
    for entry, cost in _rank_entries(entries, count):
        if entry.fact.key in stated:
            continue
        if entry.number not in chosen:
            cost += count(f"#{entry.number} ") + 1
        if cost > limit:
            continue
        keys = {entry.fact.key, *(fact.key for fact in find_facts(entry.text, author=PROSE))}
        line = chosen.setdefault(entry.number, {})
        # an item replaces those whose facts it contains
        for item in [item for item, item_keys in line.items() if item_keys <= keys]:
            limit += count(item) + 2
            del line[item]
        line[entry.text] = keys
        stated |= keys
        limit -= cost
    return tuple(f"#{number} {ITEM_SEPARATOR.join(items)}" for number, items in sorted(chosen.items()))


def _rank_entries(entries: Sequence[LedgerEntry], count: CountTokens) -> list[tuple[LedgerEntry, int]]:
    """Entries with their cost, the best for their cost first."""
    newest = max((entry.number for entry in entries), default=1)

    def order(priced: tuple[LedgerEntry, int]) -> tuple[float, int, str]:
        entry, cost = priced
        return -entry.score(newest) / (cost + 4), -entry.number, entry.text

    return sorted(((entry, count(entry.text) + 2) for entry in entries), key=order)


# -- descriptions

_MAX_ITEM = 90
_MAX_BEFORE = 90
_MAX_TOPIC_WORDS = 2
# A longer word that ends in a digit is a code, and a fact of its own.
_MAX_NUMBERED_WORD = 4
_NUMERIC_KINDS = ("number", "date", "time")
DANGLING_WORDS = word_set(
    "a an the of for per in on at to and or by with from than into onto over under about is are was were be been as "
    "if that which who what when where how you we they it i my your our their this these those not so but because "
    "while between der die das den dem ein eine und oder für mit von auf zu im am bei le la les un une des du de et "
    "ou pour dans sur avec el los las una y o para con en por que"
)
"""Words that cannot end a phrase."""
_NO_TOPIC = DANGLING_WORDS | word_set(
    "have has had will would should could must can may might its his her him them she he all any then there here only "
    "just also around most more other further least now today really very quite almost nearly total every each some "
    "both roughly approximately exactly us me did does do everything anything something things stuff it's that's "
    "there's here's he's she's bis est ist sind hat haben wird il elle nous"
)
_PREPOSITIONS = word_set("of for in on at from with by to per von für in im am bei mit de du des pour dans en con por")
_RELATIVE_PRONOUNS = word_set("that which who where when")
_ARTICLES = word_set("the a an our my your their its his her this der die das den dem le la les el los las un une una")
_LIMIT_WORDS = word_set(
    "under over below above within until before after since by last next unter über bis vor nach seit"
)
_TO_BE = word_set("is are was were be equals ist sind war waren est sont était es son era")
_TO_HAVE = word_set("has have had hat haben ont tiene")
_VERB = re.compile(
    r"(?:took|takes?|costs?|weighs?|pays?|paid|runs?|ran|needs?|lasts?|ends?|starts?|begins?|opens?|closes?|\w+ed)$",
    re.IGNORECASE,
)
_TOPIC_WORD = re.compile(r"[^\W\d_][\w'’-]{2,24}")
_CLAUSE_END = re.compile(r"[.!?;:,]\s|\n|\s(?:but|because|which|and)\s")
_SENTENCE_END = re.compile(r"[.!?]\s+|\n")
_PRONOUN = re.compile(r"\s*(?:it|this|that|they|he|she|es|das|il|elle|ça)\b", re.IGNORECASE)
_PUNCTUATION = "\"'`*_()[],.:"
_COUNTED_NOUN = re.compile(r"[ \xa0]([a-z][a-z-]{2,})\b(?: ([a-z]{3,}s)\b)?")
_NOT_A_NOUN = re.compile(r"(?:according|\w+ly|\w+ing)$")
_RATE = re.compile(r"\s?(?:(?:per|each|every|pro|par|por|an?)\s|/\s?)[a-zà-ÿ]{1,16}\b|/[月日年人時]", re.IGNORECASE)
_OF_WHAT = re.compile(
    r" (?:of (?:the |all |our )?[a-z]{3,}|(?:slower|faster|more|less|fewer|higher|lower|cheaper|larger|smaller))\b"
)
_FOR_WHAT = re.compile(r" (?:for|of) (?:(?:the|all|our|one|each|every|an?) )?[a-z]{3,}\b")
_UNSPACED_BEFORE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,16}$")


def describe_fact(fact: Fact, text: str) -> str:
    """The fact in few words. A number or a date comes with its topic, and with what it is per."""
    if fact.kind == "decision":
        return _shorten(shorten_decision(fact.text))
    if fact.kind not in _NUMERIC_KINDS:
        return _shorten(fact.text, is_prose=False)
    end = fact_end(text, fact)
    written = fact.text + text[fact.end : end]
    if _counted_noun(text, fact):
        return _shorten(written)
    if before := _UNSPACED_BEFORE.search(text, max(0, fact.start - 40), fact.start):
        return _shorten(_whole_run(text, before.start(), fact.start) + written)
    topic = _topic_before(text, fact.start)
    needs_more = not topic or topic.lower() in _LIMIT_WORDS
    after = _topic_after(text, end, is_day=fact.kind == "date") if needs_more else ""
    return _shorten(f"{topic} {written}{after}")


def fact_end(text: str, fact: Fact) -> int:
    """Where a fact ends with what it counts and is per: `14 blue boats`, `$1,200 per month`, `40 % of users`."""
    if fact.kind != "number":
        return fact.end
    noun = _counted_noun(text, fact)
    end = fact.end + len(noun)
    if not noun and fact.text.endswith("%"):
        found = _OF_WHAT.match(text, end)
        end = found.end() if found and not _is_dangling(found[0]) else end
    rate = _RATE.match(text, end)
    return rate.end() if rate and not _is_dangling(rate[0]) else end


def _counted_noun(text: str, fact: Fact) -> str:
    """The noun that a bare number counts, with the space before it."""
    found = _COUNTED_NOUN.match(text, fact.end) if fact.text[-1:].isdigit() and fact.text[0] not in "$€£¥₹" else None
    if found is None or found[1] in _NO_TOPIC or _NOT_A_NOUN.match(found[1]):
        return ""
    has_two = found[2] and not found[1].endswith("s") and found[2] not in _NO_TOPIC
    return found[0] if has_two else found[0][: 1 + len(found[1])]


def _is_dangling(words: str) -> bool:
    return words.split()[-1].lower() in DANGLING_WORDS and len(words.split()) > 1


def _topic_after(text: str, end: int, *, is_day: bool) -> str:
    """Where there is no topic before: "Last Friday: finished presentation", "563 MB for one message"."""
    rest = _SENTENCE_END.split(text[end : end + _MAX_BEFORE])[0]
    if (purpose := _FOR_WHAT.match(rest)) and not _is_dangling(purpose[0]):
        return purpose[0]
    words = _strip_words(rest)[:6] if is_day else []
    found = [word for word in words if _is_topic_word(word)][:_MAX_TOPIC_WORDS]
    return f": {' '.join(found)}" if found else ""


def _whole_run(text: str, start: int, end: int) -> str:
    """A run without spaces, unless it is longer than what was matched."""
    is_whole = not start or not _UNSPACED_BEFORE.match(text, start - 1, start)
    return text[start:end] if is_whole else ""


def _topic_before(text: str, start: int) -> str:
    """The topic of a number: the subject of "is", otherwise the nearest words with a meaning; "It" is looked up."""
    before = text[max(0, start - _MAX_BEFORE) : start]
    if len(before) == _MAX_BEFORE:
        before = before.partition(" ")[2]
    *earlier, sentence = _SENTENCE_END.split(before)
    *_, clause = _CLAUSE_END.split(sentence)
    words = _strip_words(clause)
    found = _subject(words[:-1]) if words and words[-1].lower() in _TO_BE else _nearest_words(words)
    if not found and earlier and _PRONOUN.match(clause):
        found = _first_words(_strip_words(earlier[-1]))
    return " ".join(found)


def _strip_words(text: str) -> list[str]:
    return [word.strip(_PUNCTUATION) for word in text.split()]


def _subject(words: list[str]) -> list[str]:
    """The last meaningful words that do not depend on a preposition: `rent` in "the rent of the flat"."""
    words = words[
        : next((at for at, word in enumerate(words) if at and word.lower() in _RELATIVE_PRONOUNS), len(words))
    ]
    found: list[str] = []
    for at in range(len(words) - 1, -1, -1):
        if _is_topic_word(words[at]):
            found = [words[at], *found][-_MAX_TOPIC_WORDS:]
        elif words[at].lower() in _PREPOSITIONS:
            found = []
        elif found and not (words[at].lower() in _ARTICLES and at and words[at - 1].lower() in _PREPOSITIONS):
            break
    return found


def _first_words(words: list[str]) -> list[str]:
    """The first run of meaningful words."""
    found: list[str] = []
    for word in words:
        if _is_topic_word(word):
            found.append(word)
        elif found:
            break
    return found[-_MAX_TOPIC_WORDS:]


def _nearest_words(words: list[str]) -> list[str]:
    limit = words[-1:] if words and words[-1].lower() in _LIMIT_WORDS else []
    rest = words[: len(words) - len(limit)][-6:]
    found = [word for word in rest if _is_topic_word(word) or word.lower() in _TO_HAVE]
    found = [word for word in found[:-1] if _is_topic_word(word)] + found[-1:]
    if len(found) > 1 and _VERB.fullmatch(found[-1]):
        return [*found[-2:], *limit]
    return [*found[-1:], *limit]


def _is_topic_word(word: str) -> bool:
    """A word with a meaning: no contraction such as "we'll", and no code that is a fact itself."""
    is_code = word[-1:].isdigit() and len(word) > _MAX_NUMBERED_WORD
    if _TOPIC_WORD.fullmatch(word) is None or word.lower() in _NO_TOPIC or is_code:
        return False
    return re.search(r"['’](?!s$)", word) is None


def _shorten(words: str, *, is_prose: bool = True) -> str:
    """On one line, without the separator of items, and not ending in a dangling word."""
    words = " ".join(words.split()).replace(";", ",").strip(" ,")
    short = cut_text(words, _MAX_ITEM).strip(" ,")
    if not is_prose:
        return short
    bare, is_cut = short.removesuffix("…"), short != words
    kept = bare.split(" ")
    while is_cut and len(kept) > 1 and kept[-1].lower().strip(",") in DANGLING_WORDS:
        kept.pop()
    return " ".join(kept).rstrip(" ,") + ("…" if is_cut else "")
