"""ReplyEnd: where the reply of a tiny model ends. It goes on where a larger model would stop: it says the same again in
a cycle of any length, writes a document of its own under a new heading, or the fences of ours.

Text passes through as it comes; only what may turn out to be a repetition or a fence is held back until that is known.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

# What the requests of Recto put around texts, and no reply has a use for.
FENCES = ("BEGIN DOCUMENT", "END DOCUMENT", "[Summary of the", "[End of the summary", "[The notes of the user")
# A sentence or line ends here.
_UNIT = re.compile(r"[^\n]*?(?:(?<![.!?…])[.!?…]++[\"'”’)*]*+(?=\s)|\n++)")
_WORDS = re.compile(r"\w+")
_HEADING = re.compile(r"#{1,6} |\*\*[^*\n]{1,80}\*\*:?\s*$|[A-Z][\w'-]*(?: [\w'-]+)?:\s*$|(?:-{3,}|={3,})\s*$")
# A shorter unit may be said twice: "Yes.", "1."
_FEWEST_WORDS = 3
# So many sentences may begin with the same three words, or with the same two.
_MOST_ALIKE, _MOST_PAIRS = 2, 4
# So many words in a row that brought nearly nothing new are a loop, and so are many clauses that begin alike.
_LOOKED_AT, _LEAST_NEW = 36, 0.35
_ALIKE_CLAUSES = 4
# From this share of the longest reply on, the next end of a sentence is the end.
_NEARLY_ALL = 0.75
_LONG, _LONGEST_HEADING = 200, 80
_GAP = re.compile(r"\n[ \t]*\n[ \t]*$")
_END_OF_PHRASE = re.compile(r"(?<![,;:\s(\"'*-])[,;:\s(\"'*-]++$")


class ReplyEnd:
    def __init__(self, max_tokens: int | None) -> None:
        self._room = int(max_tokens * _NEARLY_ALL) if max_tokens else None
        self._parts, self._held, self._ending = 0, "", ""
        self._line_ends = ""
        self._units = set[str]()
        self._starts, self._pairs = Counter[str](), Counter[str]()
        self._said: list[str] = []
        self._passed = ""
        """What has gone through of the unit that is not complete."""
        self.is_over = False

    def take(self, text: str) -> str:
        """What may be shown of the reply so far. Once it is over, nothing more."""
        if self.is_over:
            return ""
        self._parts += 1
        self._held += text
        shown = ""
        while not self.is_over and (unit := _UNIT.match(self._passed + self._held)):
            shown += self._judge(unit[0])
        return self._without_end(shown if self.is_over else shown + self._release())

    def rest(self) -> str:
        """What was still held back when the model ended by itself."""
        if self.is_over:
            return ""
        whole = self._passed + self._held
        is_end = self._ends_at(whole) is not None or self._is_said(whole)
        return "" if is_end else self._without_end(self._held)

    def _without_end(self, shown: str) -> str:
        """Line ends wait for what follows them."""
        whole = self._line_ends + shown
        kept = whole.rstrip("\n")
        self._line_ends = whole[len(kept) :]
        return kept

    def _judge(self, whole: str) -> str:
        """A complete sentence or line: goes through, or ends the reply."""
        new, at = whole[len(self._passed) :], self._ends_at(whole)
        if at == 0 and not self._said:  # a reply that begins with a fence may still say something after it
            self._held = self._held[len(whole) :]
            return ""
        if at is not None or self._is_said(whole):
            self.is_over = True
            return new[: max(0, (at or 0) - len(self._passed))].rstrip() if at else ""
        self._remember(whole)
        self._held, self._passed = (self._passed + self._held)[len(whole) :], ""
        self._ending = (self._ending + whole)[-40:]
        if self._is_full or _goes_round(self._said):
            self.is_over = True
            return new.rstrip()
        return new

    def _release(self) -> str:
        """Of what is not complete: as much as can be neither a repetition nor a fence."""
        whole = self._passed + self._held
        at = self._ends_at(whole)
        if at == 0 and not self._said:
            return ""
        if at is not None or (len(_words(whole)) > _FEWEST_WORDS and self._is_said(whole)):
            self.is_over = True
            return ""
        if self._may_end(whole):
            return ""
        is_endless = self._is_full and len(whole) > _LONG
        if is_endless or _clauses_alike(whole) or _goes_round([*self._said, *_words(whole)]):
            self.is_over = True
            return _END_OF_PHRASE.sub("", self._held) + "…"
        out, self._held, self._passed = self._held, "", whole
        return out

    @property
    def _is_full(self) -> bool:
        return self._room is not None and self._parts >= self._room

    @property
    def _is_after_gap(self) -> bool:
        """Whether a blank line came last, and words before it."""
        return bool(self._said) and _GAP.search(self._ending) is not None

    def _remember(self, whole: str) -> None:
        words = _words(whole)
        self._said += words
        if len(words) >= _FEWEST_WORDS:
            self._units.add(" ".join(words))
            self._starts[" ".join(words[:_FEWEST_WORDS])] += 1
            self._pairs[" ".join(words[:2])] += 1

    def _is_said(self, whole: str) -> bool:
        """Whether it was said before, or begins as two before it did: "The plan was …", again and again."""
        words = _words(whole)
        if self._pairs[" ".join(words[:2])] >= _MOST_PAIRS:
            return True
        return " ".join(words) in self._units or self._starts[" ".join(words[:_FEWEST_WORDS])] >= _MOST_ALIKE

    def _ends_at(self, whole: str) -> int | None:
        """Where a fence or an invented heading begins; None if there is none."""
        places = [at for fence in FENCES if (at := whole.find(fence)) >= 0]
        if self._is_after_gap and _HEADING.match(whole):
            places.append(0)
        return min(places, default=None)

    def _may_end(self, whole: str) -> bool:
        """Whether more text could make it a repetition, a fence or a heading."""
        words = " ".join(_words(whole))
        if not words or (self._is_after_gap and _may_be_heading(whole)):
            return True
        worn = [start for start, count in self._starts.items() if count >= _MOST_ALIKE]
        if any(known.startswith(words) for known in (*self._units, *worn)):
            return True
        tail = whole[-max(map(len, FENCES)) :]
        return any(fence.startswith(tail[at:]) for fence in FENCES for at in range(len(tail)) if tail[at] in "BE[")


def _goes_round(said: Sequence[str]) -> bool:
    """Whether the latest words say again what was said before, in whatever order."""
    if len(said) < 2 * _LOOKED_AT:
        return False
    pairs = list(pairwise(said))
    earlier = set(pairs[:-_LOOKED_AT])
    return sum(pair not in earlier for pair in pairs[-_LOOKED_AT:]) < _LEAST_NEW * _LOOKED_AT


def _may_be_heading(text: str) -> bool:
    if len(text) > _LONGEST_HEADING:
        return False
    return text.startswith(("#", "*", "-", "=")) or re.fullmatch(r"[A-Z][\w' -]{0,40}:?\s*", text) is not None


def _clauses_alike(whole: str) -> bool:
    """Whether a sentence goes on and on: "the boat's budget, the boat's rules, the boat's …"."""
    starts = [" ".join(_words(clause)[:2]) for clause in whole.split(",") if clause.strip()]
    latest = starts[-_ALIKE_CLAUSES:]
    return len(latest) == _ALIKE_CLAUSES and len(set(latest)) == 1 and " " in latest[0]


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())
