"""Evidence: what texts say, to verify facts against: do the texts support a fact, and do they state it?

Support is lenient: rounding, another spelling, a part of a name or of a path are no inventions. Stating is strict: the
fact itself must be in the texts.
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec import Struct, field

from recto.chat.cues import SMALL_WORDS
from recto.summary.corrections import corrects
from recto.summary.decisions import content_terms, shorten_decision
from recto.summary.entities import NUMBER_WORDS, implied_dates, normalize_number, thousands_value, values_and_unit
from recto.summary.facts import Fact, find_facts, normalize_fact_text
from recto.summary.sentences import word_set
from recto.text import text_cache

# After this many characters only the words of further texts are stored.
_MAX_STORED = 8_000_000
_STEM_LENGTH = 5
_ROUNDING_TOLERANCE = 0.05
_COUNTED = "# "
_FIGURE = re.compile(r"\d[\d.,'’]*")
_UNIT_LETTERS, _UNIT_STEM = re.compile(r"[^\W\d_]{3,}$"), 4
_ADVERBS = ("ly", "lich", "mente", "ment")
# Shares of a sentence's content: in one other sentence, in all texts together, and in a sentence that states it.
_MIN_SUPPORTED, _MIN_KNOWN, _MIN_STATED = 0.5, 0.6, 0.7
_WORD = re.compile(r"[^\W_]+")
# Stands for any word that forbids or denies.
_NEGATED = "¬"
# Verbs that decide for something or against it: what they decide is the content.
_ADOPTS = re.compile(
    r"\b(?:us(?:e[ds]?|ing)|adopt|accept|approv|cho[os]|select|pick|decid|agree|will|won['’]t|shall|go with|went with"
    r"|verwend|nutz|benutz|nehmen|entsch[ie]|beschl|werden|usa[rmn]|utiliz|utilis|decid|acord|acept|adopt|choisi|vamos)"
)
_REJECTS = re.compile(
    r"\b(?:reject|refus|declin|discard|abandon|dismiss|dropped|ruled out|decided against|abgelehnt|verworf"
    r"|entschieden gegen|rechaz|descart|rejet|écart)"
)
_DENIES = re.compile(r"n['’]t\b")
_NO_CONTENT = word_set(
    "user assistant team group decisio wurde werden kein keine nicht nunca und aber sino pero vamos not"
)
_LABEL = re.compile(r"^[\s*>#•-]*(?:[^\W\d_][\w ]{0,30}:\**\s+)?")
_CLAUSE_END = re.compile(
    r"[;()–—…]|[,:](?!\d)|\s-\s|\b(?:but|and|or|because|since|while|although|so|which|instead|rather|aber|sondern"
    r"|und|oder|weil"
    r"|obwohl|stattdessen|statt|pero|sino|porque|aunque|mais|parce|car)\b"
)
_SENTENCES = re.compile(r"[^.!?。！？]+(?:[.!?](?!\s)[^.!?。！？]*)*[.!?。！？]*")
_CONDITION = re.compile(r"\W*(?:if|unless|whether|wenn|falls|ob|si|cuando|quand)\b")
_MAX_ASSERTED, _MAX_MORE = 10, 2
_NEGATIONS = word_set(
    "not no never none without don't doesn't won't can't cannot mustn't avoid stop nothing nobody nicht kein keine "
    "keinen nie niemals ohne ne pas jamais sans ni nunca jamás sin nada nadie forbidden prohibited verboten interdit "
    "prohibido"
)
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE_END = re.compile(r"[.!?;]+\s+|[。！？\n]")


class Evidence(Struct):
    words: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)
    numbers: dict[str, set[float]] = field(default_factory=dict)
    """Values by unit; "" holds those without a unit, and "# boats" those of them that count boats."""
    _texts: list[str] = field(default_factory=list)
    _size: int = 0
    _joined: str | None = None
    _stems: set[str] | None = None
    _sorted: dict[str, list[float]] = field(default_factory=dict)
    _sentences: dict[str, list[int]] | None = None
    _written: list[str] | None = None

    def add(self, text: str, facts: Iterable[Fact] | None = None) -> None:
        """Adds a text; `facts` are its facts where they are known already."""
        plain = normalize_fact_text(text)
        self.words.update(found[0] for found in _WORD.finditer(plain))  # a list of them may take ten times the text
        for fact in find_facts(text) if facts is None else facts:
            self._add_fact(fact)
        if self._size <= _MAX_STORED:
            self._texts.append(plain)
            self._size += len(plain)
        self._joined = self._stems = self._sentences = self._written = None
        self._sorted.clear()

    def _add_fact(self, fact: Fact) -> None:
        key, is_new = fact.key, fact.key not in self.keys
        if not is_new and (fact.kind != "number" or not ("." in fact.text or fact.normal.isdigit())):
            return
        self.keys.add(key)
        if fact.kind == "date":
            self.dates |= implied_dates(fact.normal)
        elif fact.kind == "number":
            values, unit = values_and_unit(fact.normal)
            other = thousands_value(fact.text)
            if other is not None:
                values.append(other)
            self.numbers.setdefault(unit, set()).update(values)
            if not unit:
                self.numbers.setdefault(f"{_COUNTED}{_noun(fact.counts)}", set()).update(values)

    @property
    def text(self) -> str:
        if self._joined is None:
            self._joined = "\n".join(self._texts)
        return self._joined

    # -- support

    def supports(self, fact: Fact) -> bool:
        """Whether the texts say this, or something that it may fairly be derived from."""
        if fact.key in self.keys:
            return True
        match fact.kind:
            case "number":
                return self._supports_number(fact)
            case "date":
                return self._supports_date(fact.normal)
            case "decision" | "error":
                return self.says(fact.text) or self._supports_sentence(content_terms(fact.text))
            case "name":
                return all(map(self._has_word, _WORD.findall(fact.normal))) or fact.normal in self.text
            case "path":
                return self._supports_path(fact.normal)
            case "time":
                return fact.normal.removesuffix(":00") in self.text or fact.normal in self.text
            case "identifier" if fact.normal.isalpha():
                return self._has_word(fact.normal) or fact.normal in self.text
            case "identifier" | "version" | "url" if " " not in fact.normal:
                return fact.normal in self.text or fact.normal.replace("_", " ") in self.text
            case _:
                return self._supports_quotation(fact.normal)

    def _supports_sentence(self, content: set[str]) -> bool:
        """One sentence has half of its content, or all texts together have most of it. Its numbers are facts of their
        own."""
        words = {word for word in content if word.isalpha() and len(word) > 3}
        known = sum(self._has_word(word) for word in words)
        return known >= _MIN_KNOWN * len(words) or self._highest_share(content) >= _MIN_SUPPORTED

    def _has_word(self, word: str) -> bool:
        """The word, its singular or plural, or one that starts alike: Portugal for Portuguese."""
        if word in self.words or word.rstrip("s") in self.words or f"{word}s" in self.words:
            return True
        if len(word) <= _STEM_LENGTH:
            return False
        if self._stems is None:
            self._stems = {known[:_STEM_LENGTH] for known in self.words if len(known) >= _STEM_LENGTH}
        return word[:_STEM_LENGTH] in self._stems

    def _supports_quotation(self, normal: str) -> bool:
        if normal.strip("\"'`.,:;!? ") in self.text:
            return True
        words = _WORD.findall(normal)
        return len(words) > 1 and all(word in self.words for word in words)

    def _supports_number(self, fact: Fact) -> bool:
        """A figure with a unit needs one with this unit, or one that has no unit and counts nothing else."""
        values, unit = values_and_unit(fact.normal)
        if not values:
            return fact.normal in self.text
        units = self._compatible_units(fact, unit) if unit else list(self.numbers)
        other, written = thousands_value(fact.text), _FIGURE.findall(fact.text)
        if other is not None and self._supports_value(other, units):
            return True
        return all(
            self._supports_value(value, units) or self._spells_out(figure, fact, unit)
            for value, figure in zip(values, written if len(written) == len(values) else values, strict=True)
        )

    def _compatible_units(self, fact: Fact, unit: str) -> list[str]:
        counted = (known for known in self.numbers if known.startswith(_COUNTED))
        return [unit, *(known for known in counted if _counts_unit(known.removeprefix(_COUNTED), fact))]

    def _supports_value(self, value: float, units: Iterable[str]) -> bool:
        return any(value in self.numbers.get(unit, ()) or self._is_rounded(value, unit) for unit in units)

    def _spells_out(self, figure: str | float, fact: Fact, unit: str) -> bool:
        """Whether the texts have it as a word, and with a unit only where that word counts nothing else."""
        spelled = [word for word in self.words & NUMBER_WORDS.keys() if f"{NUMBER_WORDS[word]:g}" == str(figure)]
        if not spelled or not unit:
            return bool(spelled)
        found = re.finditer(rf"(?<!\w)(?:{'|'.join(spelled)})(?!\w)[ -]?([^\W\d_]*)", self.text)
        nouns = {_noun(match[1]) for match in found}
        return any(_counts_unit(noun, fact) or normalize_number(f"{figure} {noun}") == fact.normal for noun in nouns)

    def _is_rounded(self, value: float, unit: str) -> bool:
        """Whether this is a known value with fewer digits."""
        if unit not in self._sorted:
            self._sorted[unit] = sorted(self.numbers.get(unit, ()))
        known, tolerance = self._sorted[unit], min(_precision(value) / 2, abs(value) * _ROUNDING_TOLERANCE)
        at = bisect_left(known, value - tolerance)
        return at < len(known) and known[at] <= value + tolerance

    def _supports_date(self, normal: str) -> bool:
        if normal in self.dates or normal in self.words:
            return True
        year, _, rest = normal.partition("-")
        if year.isdigit() and len(rest) == 5:
            swapped = f"{year}-{rest[3:]}-{rest[:2]}"
            return (f"--{rest}" in self.dates and year in self.words) or swapped in self.dates
        return bool(year.isdigit() and f"--{rest}" in self.dates and year in self.words)

    def _supports_path(self, normal: str) -> bool:
        """As it is, as the end of a longer path, or made of a known file and known folders."""
        if normal in self.text:
            return True
        bare, _, line = re.sub(r"[:#]l?(?=\d+$)", "\0", normal).partition("\0")
        if line and line not in self.words:
            return False
        *folders, name = bare.replace("\\", "/").strip("/").split("/")
        return all(folder in self.text for folder in folders) and name in self.text

    # -- polarity

    def says(self, sentence: str) -> bool:
        """Whether the texts have this very sentence, without a label before it."""
        plain = _unlabelled(sentence).strip()
        return plain in self.text and any(plain == part.strip() for part in self._written_sentences)

    def stances(self, assertion: "Assertion") -> Iterator[bool]:
        """For each sentence of the texts with this content: whether it says the same, or else the opposite."""
        longest = max(assertion.words, key=len)
        for part in self._written_sentences:
            if longest in part and all(word in part for word in assertion.words):
                for other in filter(assertion.is_covered_by, _assertions(part)):
                    if other.is_negated == assertion.is_negated:
                        yield True
                    elif assertion.is_opposed_by(other):
                        yield False

    @property
    def _written_sentences(self) -> list[str]:
        if self._written is None:
            self._written = [part for text in self._texts for part in _SENTENCES.findall(text)]
        return self._written

    # -- statement

    def states(self, fact: Fact) -> bool:
        """Whether this very fact is in the texts, in any spelling."""
        if fact.key in self.keys:
            return True
        match fact.kind:
            case "number":
                values, unit = values_and_unit(fact.normal)
                return bool(values) and all(value in self.numbers.get(unit, ()) for value in values)
            case "date":
                return fact.normal in self.dates
            case "decision" | "request" | "question" | "statement":
                return self._states_sentence(fact.text)
            case "error":
                return self._highest_share(content_terms(fact.text)) >= _MIN_STATED
            case "time":
                return False
            case "quote" | "command" | "url" | "path" | "version":
                return fact.normal.strip("\"'`") in self.text
            case _:
                # compiling a pattern for each takes longer than everything else here, and most texts lack most facts
                return fact.normal in self.text and bool(
                    re.search(rf"(?<!\w){re.escape(fact.normal)}(?!\w)", self.text)
                )

    def _states_sentence(self, sentence: str) -> bool:
        """Whether one sentence of the texts has most of its content, and no other figure, and forbids if it forbids."""
        content, needed = _decided_terms(sentence)
        return self._most_shared(content, needed) >= _MIN_STATED * (len(content) or 1)

    def _highest_share(self, content: set[str]) -> float:
        """How much of a sentence's content the closest sentence of the texts has."""
        return self._most_shared(content) / (len(content) or 1)

    def _most_shared(self, content: Iterable[str], needed: Iterable[str] = ()) -> int:
        """How much of this content one sentence of the texts has, of those that have all that is needed of it."""
        by_term = self._sentences_by_term
        shared = Counter(chain.from_iterable(by_term.get(term, ()) for term in content))
        for term in needed:
            others = by_term.get(term, ())
            shared = Counter({sentence: shared[sentence] for sentence in others if sentence in shared})
        return max(shared.values(), default=0)

    @property
    def _sentences_by_term(self) -> dict[str, list[int]]:
        """The sentences of the texts, by the terms in them."""
        if self._sentences is None:
            self._sentences = {}
            parts = (part for text in self._texts for part in _SENTENCE_END.split(text))
            for number, part in enumerate(parts):
                for term in _sentence_terms(part):
                    self._sentences.setdefault(term, []).append(number)
        return self._sentences


class Assertion(Struct, frozen=True):
    """A clause by its content, and whether it denies that."""

    words: frozenset[str]
    is_negated: bool
    decides: bool

    def is_covered_by(self, other: "Assertion") -> bool:
        """Whether the other has its content; a single word is enough only where both decide about it."""
        return self.words <= other.words and (len(self.words) > 1 or other.decides)

    def is_opposed_by(self, other: "Assertion") -> bool:
        """Whether one with all of its content says nothing else; a decision may say a little more."""
        slack = min(_MAX_MORE, len(self.words)) if self.decides and other.decides else 0
        return len(other.words) <= len(self.words) + slack


def assertions_of(sentence: str) -> list[Assertion]:
    """What a sentence asserts, by clause; a question nothing. A single word is an assertion if the clause decides."""
    found = _assertions(_unlabelled(sentence))
    return [each for each in found if len(each.words) <= _MAX_ASSERTED and (len(each.words) > 1 or each.decides)]


def _unlabelled(sentence: str) -> str:
    text = normalize_fact_text(sentence)
    return text[label.end() :] if (label := _LABEL.match(text)) else text


@text_cache(1024)
def _assertions(sentence: str) -> tuple[Assertion, ...]:
    """Its clauses that have content, and all of them together where none denies."""
    if sentence.endswith(("?", "？")):
        return ()
    parts = [part for part in _CLAUSE_END.split(sentence) if part.strip() and not _CONDITION.match(part)]
    clauses = [clause for clause in map(_assertion, parts) if clause.words]
    if len(clauses) < 2 or any(clause.is_negated for clause in clauses):
        return tuple(clauses)
    words = frozenset[str]().union(*(clause.words for clause in clauses))
    return (*clauses, Assertion(words, False, any(clause.decides for clause in clauses)))


def _assertion(clause: str) -> Assertion:
    denies = not _NEGATIONS.isdisjoint(_WORDS.findall(clause)) or _DENIES.search(clause) is not None
    rejects = _REJECTS.search(clause) is not None
    words = {word for word in content_terms(clause) if not _has_no_content(word)}
    return Assertion(frozenset(words), denies != rejects, rejects or _ADOPTS.search(clause) is not None)


def _has_no_content(word: str) -> bool:
    return word in _NO_CONTENT or word in _NEGATIONS or bool(_ADOPTS.match(word) or _REJECTS.match(word))


def _noun(word: str) -> str:
    return "" if word in SMALL_WORDS or word.endswith(_ADVERBS) else word


def _counts_unit(noun: str, fact: Fact) -> bool:
    """Whether a figure before this noun may be one with the fact's unit: it counts nothing, or that unit in another
    spelling."""
    written = _UNIT_LETTERS.search(fact.text.lower())
    return not noun or (written is not None and noun.startswith(written[0][:_UNIT_STEM]))


@text_cache(4096)
def _term_corrects(term: str) -> bool:
    return corrects(term)


def _sentence_terms(sentence: str) -> set[str]:
    content = content_terms(sentence)
    return content | {_NEGATED} if content and not _NEGATIONS.isdisjoint(_WORDS.findall(sentence)) else content


@text_cache(4096)
def _decided_terms(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    """The content of a sentence, and what of it another must have that states the same: figures, and whether it
    forbids."""
    content = _sentence_terms(normalize_fact_text(shorten_decision(sentence)))
    content = {term for term in content if not _term_corrects(term)} or content
    needed = {term for term in content if term == _NEGATED or any(char.isdigit() for char in term)}
    return frozenset(content), frozenset(needed)


def _precision(value: float) -> float:
    """The value of one unit in the last digit that was written."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    digits = f"{abs(value):.10g}"
    if "e" in digits:
        return 0.0
    whole, _, fraction = digits.partition(".")
    return 10.0 ** -len(fraction) if fraction else 10.0 ** (len(whole) - len(whole.rstrip("0")))
