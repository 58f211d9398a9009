"""Items: what a ledger's line says of one fact, in as few words as can still be understood by themselves. Pure."""

import re

from recto.summary.bindings import shortest
from recto.summary.facts import Fact
from recto.summary.figures import word_set
from recto.summary.shorten import cut

_LONGEST = 90
_BEFORE = 90
_WORDS, _CODE = 2, 4

DANGLING = word_set(
    "a an the of for per in on at to and or by with from than into onto over under about is are was were be been as "
    "if that which who what when where how you we they it i my your our their this these those not so but because "
    "while between der die das den dem ein eine und oder für mit von auf zu im am bei le la les un une des du de et "
    "ou pour dans sur avec el los las una y o para con en por que"
)
"""Words behind which something must follow."""
_EMPTY = DANGLING | word_set(
    "have has had will would should could must can may might its his her him them she he all any then there here only "
    "just also around most more other further least now today really very quite almost nearly total every each some "
    "both roughly approximately exactly us me did does do everything anything something things stuff it's that's "
    "there's here's he's she's bis est ist sind hat haben wird il elle nous"
)
_HANGS = word_set("of for in on at from with by to per von für in im am bei mit de du des pour dans en con por")
_RELATES = word_set("that which who where when")
_ARTICLES = word_set("the a an our my your their its his her this der die das den dem le la les el los las un une una")
_LIMITS = word_set("under over below above within until before after since by last next unter über bis vor nach seit")
_IS = word_set("is are was were be equals ist sind war waren est sont était es son era")
_HAS = word_set("has have had hat haben ont tiene")
_VERB = re.compile(
    r"(?:took|takes?|costs?|weighs?|pays?|paid|runs?|ran|needs?|lasts?|ends?|starts?|begins?|opens?|closes?|\w+ed)$",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^\W\d_][\w'’-]{2,24}")
_CLAUSE = re.compile(r"[.!?;:,]\s|\n|\s(?:but|because|which|and)\s")
_SENTENCE = re.compile(r"[.!?]\s+|\n")
_STANDS_FOR = re.compile(r"\s*(?:it|this|that|they|he|she|es|das|il|elle|ça)\b", re.IGNORECASE)
_WRAPPING = "\"'`*_()[],.:"
_NOUN = re.compile(r"[ \xa0]([a-z][a-z-]{2,})\b(?: ([a-z]{3,}s)\b)?")
_NO_NOUN = re.compile(r"(?:according|\w+ly|\w+ing)$")
_RATE = re.compile(r"\s?(?:(?:per|each|every|pro|par|por|an?)\s|/\s?)[a-zà-ÿ]{1,16}\b|/[月日年人時]", re.IGNORECASE)
_OF = re.compile(
    r" (?:of (?:the |all |our )?[a-z]{3,}|(?:slower|faster|more|less|fewer|higher|lower|cheaper|larger|smaller))\b"
)
_FOR = re.compile(r" (?:for|of) (?:(?:the|all|our|one|each|every|an?) )?[a-z]{3,}\b")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,16}$")
_FIGURES = ("number", "date", "time")


def item(fact: Fact, text: str) -> str:
    """A figure or a date comes with the words that it is about, and with what it is per."""
    if fact.kind == "decision":
        return _terse(shortest(fact.text))
    if fact.kind not in _FIGURES:
        return _terse(fact.text, is_prose=False)
    end = end_of(text, fact)
    written = fact.text + text[fact.end : end]
    if _noun(text, fact):
        return _terse(written)
    if unspaced := _UNSPACED.search(text, max(0, fact.start - 40), fact.start):
        return _terse(_from_edge(text, unspaced.start(), fact.start) + written)
    label = _label(text, fact.start)
    after = "" if label and label.lower() not in _LIMITS else _after(text, end, is_day=fact.kind == "date")
    return _terse(f"{label} {written}{after}")


def end_of(text: str, fact: Fact) -> int:
    """Where a fact ends with what it counts and is per: `14 blue boats`, `$1,200 per month`, `40 % of users`."""
    if fact.kind != "number":
        return fact.end
    end = fact.end + len(_noun(text, fact))
    if not _noun(text, fact) and fact.text.endswith("%"):
        found = _OF.match(text, end)
        end = found.end() if found and not _is_dangling(found[0]) else end
    rate = _RATE.match(text, end)
    return rate.end() if rate and not _is_dangling(rate[0]) else end


def _noun(text: str, fact: Fact) -> str:
    """What a bare figure counts: the words that follow it, with the space before them."""
    found = _NOUN.match(text, fact.end) if fact.text[-1:].isdigit() and fact.text[0] not in "$€£¥₹" else None
    if found is None or found[1] in _EMPTY or _NO_NOUN.match(found[1]):
        return ""
    has_two = found[2] and not found[1].endswith("s") and found[2] not in _EMPTY
    return found[0] if has_two else found[0][: 1 + len(found[1])]


def _is_dangling(words: str) -> bool:
    return words.split()[-1].lower() in DANGLING and len(words.split()) > 1


def _after(text: str, end: int, *, is_day: bool) -> str:
    """Where nothing is said before: "Last Friday: finished presentation", "563 MB for one message"."""
    rest = _SENTENCE.split(text[end : end + _BEFORE])[0]
    if (purpose := _FOR.match(rest)) and not _is_dangling(purpose[0]):
        return purpose[0]
    words = [word.strip(_WRAPPING) for word in rest.split()[:6]] if is_day else []
    found = [word for word in words if _says(word)][:_WORDS]
    return f": {' '.join(found)}" if found else ""


def _from_edge(text: str, start: int, end: int) -> str:
    """A run without spaces, unless it was too long to be taken whole."""
    is_whole = not start or not _UNSPACED.match(text, start - 1, start)
    return text[start:end] if is_whole else ""


def _label(text: str, start: int) -> str:
    """What a figure is about: the subject of "is", else the nearest words that say something; "It" is looked up."""
    before = text[max(0, start - _BEFORE) : start]
    if len(before) == _BEFORE:
        before = before.partition(" ")[2]
    *earlier, sentence = _SENTENCE.split(before)
    *_, clause = _CLAUSE.split(sentence)
    words = [word.strip(_WRAPPING) for word in clause.split()]
    found = _subject(words[:-1]) if words and words[-1].lower() in _IS else _nearest(words)
    if not found and earlier and _STANDS_FOR.match(clause):
        found = _first([word.strip(_WRAPPING) for word in earlier[-1].split()])
    return " ".join(found)


def _subject(words: list[str]) -> list[str]:
    """The last words that say something and do not hang on a preposition: `rent` in "the rent of the flat"."""
    words = words[: next((at for at, word in enumerate(words) if at and word.lower() in _RELATES), len(words))]
    found: list[str] = []
    for at in range(len(words) - 1, -1, -1):
        if _says(words[at]):
            found = [words[at], *found][-_WORDS:]
        elif words[at].lower() in _HANGS:
            found = []
        elif found and not (words[at].lower() in _ARTICLES and at and words[at - 1].lower() in _HANGS):
            break
    return found


def _first(words: list[str]) -> list[str]:
    """The first words that say something, up to one that says how they are meant."""
    found: list[str] = []
    for word in words:
        if _says(word):
            found.append(word)
        elif found:
            break
    return found[-_WORDS:]


def _nearest(words: list[str]) -> list[str]:
    limit = words[-1:] if words and words[-1].lower() in _LIMITS else []
    rest = words[: len(words) - len(limit)][-6:]
    said = [word for word in rest if _says(word) or word.lower() in _HAS]
    said = [word for word in said[:-1] if _says(word)] + said[-1:]
    if len(said) > 1 and _VERB.fullmatch(said[-1]):
        return [*said[-2:], *limit]
    return [*said[-1:], *limit]


def _says(word: str) -> bool:
    """A word, no pronoun with its verb, and no code that is a fact itself."""
    if _LABEL.fullmatch(word) is None or word.lower() in _EMPTY or (word[-1].isdigit() and len(word) > _CODE):
        return False
    return re.search(r"['’](?!s$)", word) is None


def _terse(words: str, *, is_prose: bool = True) -> str:
    """On one line, without the sign that parts items, and not ending in a word that leads on."""
    words = " ".join(words.split()).replace(";", ",").strip(" ,")
    short = cut(words, _LONGEST).strip(" ,")
    if not is_prose:
        return short
    bare, is_cut = short.removesuffix("…"), short != words
    kept = bare.split(" ")
    while is_cut and len(kept) > 1 and kept[-1].lower().strip(",") in DANGLING:
        kept.pop()
    return " ".join(kept).rstrip(" ,") + ("…" if is_cut else "")
