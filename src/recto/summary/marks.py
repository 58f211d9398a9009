"""Marks: `[unverified]` after each value or claim of a summary that no evidence supports. Knows no message."""

import re
from collections.abc import Sequence
from statistics import median

from recto.sentences.segments import segments
from recto.summary.evidence import Evidence
from recto.summary.figures import Value
from recto.summary.values import find_values, plain_text

MARK = " [unverified]"
_MARKS = re.compile(r"^\[unverified\]\n| ?\[unverified\]", re.MULTILINE)
# Stands for the words of a mark where they are a quotation.
QUOTED_MARK, _WORDS_BEFORE = "\ue0f7\ue0f8", 3
_REST_OF_WORD = re.compile(r"(?>(?:['’.@:/\\-]?[^\W\u0e00-\uffff]){0,200})")
# Kinds of values that may contain others.
_OUTER = ("quote", "code", "url", "path")
# Claims are compared only where a summary speaks the language of its sources.
_SAME_LANGUAGE = 0.4


def strip_marks(text: str) -> str:
    return _MARKS.sub("", text)


def count_marks(text: str) -> int:
    return len(_MARKS.findall(text))


def quote_marks(text: str, sources: Sequence[str]) -> str:
    """The text with another sign for each mark that is the user's own, by the words before it."""
    if MARK.strip() not in text or not sources:
        return text
    said = [plain_text(source) for source in sources]

    def sign(match: re.Match[str]) -> str:
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].split()[-_WORDS_BEFORE:]
        quoted = plain_text(" ".join([*before, MARK]))
        return match[0].replace(MARK.strip(), QUOTED_MARK) if any(quoted in each for each in said) else match[0]

    return _MARKS.sub(sign, text)


def verified_part(summary: str) -> str:
    """The summary without the values and the claims that have a mark."""
    if MARK.strip() not in summary:
        return summary
    return "\n".join(map(_verified_part, (each.text for each in segments(summary))))


def _verified_part(sentence: str) -> str:
    plain, marked = strip_marks(sentence), list[int]()
    for match in _MARKS.finditer(sentence):
        marked.append(match.start() - sum(len(each[0]) for each in _MARKS.finditer(sentence, 0, match.start())))
    ends = {_mark_position(plain, value): value for value in find_values(plain)}
    if not all(end in ends for end in marked):
        return ""  # a claim
    for end in reversed(marked):
        plain = plain[: ends[end].start] + plain[end:]
    return plain


def mark_unsupported(text: str, known: Sequence[Evidence]) -> tuple[str, int]:
    """The text with a mark after the first mention of each value and after each claim that no evidence supports, and
    how many these are."""
    plain = strip_marks(text)
    ends = {_mark_position(plain, value) for value in _unsupported_values(plain, known)}
    spoken = [each for each in segments(plain) if each.kind in ("prose", "item")]
    shares = [max(each.share_known(one.text) for each in known) for one in spoken]
    if shares and median(shares) >= _SAME_LANGUAGE:
        for each in spoken:
            is_marked = any(each.start <= end <= each.end for end in ends)
            if not is_marked and not each.text.endswith("…") and _is_invented(_without_label(each.text), known):
                ends.add(_before_stop(plain, each.start, each.end))
    for end in sorted(ends, reverse=True):
        is_line_start = end and plain[end - 1] == "\n"
        plain = plain[:end] + (MARK.strip() + "\n" if is_line_start else MARK) + plain[end:]
    return plain, len(ends)


def _unsupported_values(plain: str, known: Sequence[Evidence]) -> list[Value]:
    """Each once. A quotation or a path stands for the values inside it."""
    found: dict[tuple[str, str], Value] = {}
    for value in find_values(plain):
        is_cut = "…" in plain[max(0, value.start - 1) : value.start] + plain[value.end - 1 : value.end + 1]
        is_new = value.is_significant and not is_cut and value.key not in found
        if is_new and not any(evidence.supports(value) for evidence in known):
            found[value.key] = value
    outer = [value for value in found.values() if value.kind in _OUTER]
    return [
        value
        for value in found.values()
        if not any(value is not one and one.start <= value.start and value.end <= one.end for one in outer)
    ]


def _without_label(line: str) -> str:
    label, _, rest = line.partition(": ")
    return rest if rest and label.isalpha() else line


def _is_invented(claim: str, known: Sequence[Evidence]) -> bool:
    if not any(evidence.supports_claim(claim) for evidence in known):
        return True
    return any(evidence.denies(claim) for evidence in known) and not any(
        evidence.states_claim(claim) for evidence in known
    )


def _before_stop(text: str, start: int, end: int) -> int:
    return end - 1 if end - 1 > start and text[end - 1] in ".!。！" else end


def _mark_position(text: str, value: Value) -> int:
    """The first position after a value that is in no word, path or code span."""
    rest = _REST_OF_WORD.match(text, value.end)
    end = rest.end() if rest else value.end
    line_start = text.rfind("\n", 0, value.start) + 1
    if text.count("`", line_start, end) % 2:
        closing = text.find("`", end)
        end = closing + 1 if closing >= 0 else end
    return end
