"""Marks: `[unverified]` after each fact of a summary that no evidence supports. Knows no message."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from recto.summary.decisions import find_decisions
from recto.summary.entities import LETTER
from recto.summary.evidence import Assertion, Evidence, assertions_of
from recto.summary.facts import Fact, find_facts, normalize_fact_text
from recto.summary.machine_output import PROSE, classify_lines
from recto.summary.quotation import fact_end
from recto.summary.sentences import sentence_positions

MARK = " [unverified]"
_MARKS = re.compile(r"^\[unverified\]\n| ?\[unverified\]", re.MULTILINE)
# Stands for the words of a mark where they are a quotation.
QUOTED_MARK, _WORDS_BEFORE = "\ue0f7\ue0f8", 3
_REST_OF_WORD = re.compile(rf"(?>(?:['’.@:/\\-]?[{LETTER}])*)")
# Kinds of facts that may contain others.
_OUTER_KINDS = ("quote", "command", "url", "path", "error")


def strip_marks(text: str) -> str:
    return _MARKS.sub("", text)


def count_marks(text: str) -> int:
    return len(_MARKS.findall(text))


def quote_marks(text: str, sources: Sequence[str]) -> str:
    """The text with another sign for each mark that is the user's own, by the words before it."""
    if MARK.strip() not in text or not sources:
        return text
    said = [normalize_fact_text(source) for source in sources]

    def sign(match: re.Match[str]) -> str:
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].split()[-_WORDS_BEFORE:]
        quoted = normalize_fact_text(" ".join([*before, MARK]))
        return match[0].replace(MARK.strip(), QUOTED_MARK) if any(quoted in each for each in said) else match[0]

    return _MARKS.sub(sign, text)


def mark_unsupported(text: str, known: Sequence[Evidence], unverified: Sequence[Fact] = ()) -> tuple[str, list[Fact]]:
    """The text with a mark after the first mention of each fact that no `known` evidence supports, and those facts.
    Facts that were `unverified` before are searched for by their words, wherever they are."""
    plain = strip_marks(text)
    unsupported = _find_unsupported(plain, known, unverified)
    lines = classify_lines(plain, author=PROSE)
    ends = set()
    for fact in unsupported:
        fence = lines.fence_at(fact.start)
        ends.add(_mark_position(plain, fact) if fence is None else fence[1])
    for end in sorted(ends, reverse=True):
        is_line_start = end and plain[end - 1] == "\n"
        plain = plain[:end] + (MARK.strip() + "\n" if is_line_start else MARK) + plain[end:]
    return plain, unsupported


def _find_unsupported(plain: str, known: Sequence[Evidence], unverified: Sequence[Fact]) -> list[Fact]:
    """Each fact once. A quotation or a path stands for the facts inside it; facts inside a decision stand for it."""
    found: dict[tuple[str, str], Fact] = {}
    for fact in (*find_facts(plain, author=PROSE), *find_decisions(plain), *_find_again(plain, unverified)):
        is_cut = "…" in plain[max(0, fact.start - 1) : fact.start] + plain[fact.end - 1 : fact.end + 1]
        if not fact.is_significant or is_cut or fact.key in found:
            continue
        if not any(evidence.supports(fact) for evidence in known):
            found[fact.key] = fact
    facts = [*found.values(), *(fact for fact in _find_assertions(plain) if _is_reversed(fact, known))]
    outer = [fact for fact in facts if fact.kind in _OUTER_KINDS]
    inner = [fact for fact in facts if fact.kind != "decision" and not any(_is_inside(fact, other) for other in outer)]
    decisions = [fact for fact in facts if fact.kind == "decision" and not any(_is_inside(one, fact) for one in inner)]
    return [*inner, *decisions]


def _find_assertions(plain: str) -> Iterator[Fact]:
    """Sentences that assert something. What was cut off might have denied it."""
    for start, sentence in sentence_positions(plain):
        if not sentence.endswith("…") and (found := assertions_of(sentence)):
            words = {word for assertion in found for word in assertion.words}
            yield Fact("decision", sentence, " ".join(sorted(words)), start, start + len(sentence))


def _is_reversed(fact: Fact, known: Sequence[Evidence]) -> bool:
    """Whether the sources say the opposite of something in it, and never the same. What they say word for word is
    theirs."""
    if any(evidence.says(fact.text) for evidence in known):
        return False
    return any(_is_opposed(assertion, known) for assertion in assertions_of(fact.text))


def _is_opposed(assertion: Assertion, known: Sequence[Evidence]) -> bool:
    is_opposed = False
    for stance in chain.from_iterable(evidence.stances(assertion) for evidence in known):
        if stance:
            return False
        is_opposed = True
    return is_opposed


def _find_again(plain: str, facts: Iterable[Fact]) -> Iterable[Fact]:
    for fact in facts:
        if match := re.search(rf"(?<!\w){re.escape(fact.text)}(?!\w)", plain):
            yield replace(fact, start=match.start(), end=match.end())


def _is_inside(fact: Fact, other: Fact) -> bool:
    return fact is not other and other.start <= fact.start and fact.end <= other.end and fact.text != other.text


def _mark_position(text: str, fact: Fact) -> int:
    """The first position after a fact that is in no word, path or code span."""
    end = fact_end(text, fact)
    rest = _REST_OF_WORD.match(text, end)
    end = rest.end() if rest else end
    line_start = text.rfind("\n", 0, fact.start) + 1
    if text.count("`", line_start, end) % 2:
        closing = text.find("`", end)
        end = closing + 1 if closing >= 0 else end
    return end


class ParsedMarks(Struct, frozen=True):
    """A marked summary: the text that is verified, and the facts that are not."""

    verified: str
    unverified: tuple[Fact, ...] = ()


def parse_marks(summary: str) -> ParsedMarks:
    if MARK.strip() not in summary:
        return ParsedMarks(summary)
    plain, positions = _strip_and_locate_marks(summary)
    facts = [*find_facts(plain, author=PROSE), *find_decisions(plain), *_find_assertions(plain)]
    keys = {fact.key for fact in facts if _mark_position(plain, fact) in positions}
    unverified = [fact for fact in facts if fact.key in keys]
    verified, end = "", 0
    for fact in sorted(unverified, key=lambda fact: fact.start):
        verified += plain[end : fact.start] + " … " if fact.start >= end else ""
        end = max(end, fact.end)
    return ParsedMarks(verified + plain[end:], tuple(unverified))


def _strip_and_locate_marks(summary: str) -> tuple[str, set[int]]:
    """The text without its marks, and where they were in it."""
    plain, positions, end = "", set(), 0
    for match in _MARKS.finditer(summary):
        plain += summary[end : match.start()]
        positions.add(len(plain))
        end = match.end()
    return plain + summary[end:], positions
