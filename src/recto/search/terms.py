"""Terms: texts as the index reads them, the words of a query worth looking up, and irregular English forms."""

import re
import unicodedata
from collections.abc import Iterator

# A longer query is looked up by this many of its words.
MAX_TERMS = 48

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(r"[^\s]+")
_PLAIN = re.compile(r"[a-z0-9]+")
# ER and US in capitals mean neither the German "er" nor "us"; but operators of other search engines are not words.
_CAPITALS = re.compile(r"\b(?!(?:AND|OR|NOT)\b)[A-Z]{2,4}\b")

# Words without a topic, as normalizing leaves them. Only the most common, and none that means something in another of
# these languages: frequency decides about the rest, and "up", "after", "own" do tell topics apart.
_FUNCTION_WORDS = """
    a about an and are at be been being but by can could d did do does for from had has have he her him his how i if in
    is it its just ll m me my no not o of on or our re s she should so t than that the their them these they this those
    to too us ve very was we were what when where which who whom whose why will with would you your
    aber das dass dem der des ein eine einem einen einer er es ich ihr ist mein meine mir nicht oder
    sich sie sind und uns wann was wer wie wir wo zu
    au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur lui mais mes moi mon ne nous ou pas
    qu que quand qui se ses sont sur ta tu un une vous
    como cuando del donde el ella ellos en eso esta este fue ha la las lo los mi mis muy para pero por que se su
    sus te un una y yo"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


class _CharacterTable(dict[int, str]):
    """Maps each character once: letters, marks and digits stay, symbols stand alone, the rest becomes a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind[0] in "LN":
            mapped = character
        elif kind in ("Mn", "Me", "Cf"):
            # decomposed accents, emoji joiners and emoji colours do not matter to a search
            mapped = "" if code < 0x0590 or kind != "Mn" or 0xFE00 <= code <= 0xFE0F else character
        elif kind == "Mc":
            mapped = character
        elif kind == "So":
            mapped = f" {character} "
        else:
            mapped = "" if 0x1F3FB <= code <= 0x1F3FF else " "
        self[code] = mapped
        return mapped


_CHARACTERS = _CharacterTable()


def normalize_text(text: str) -> str:
    """Lower case without accents; outside ASCII also without punctuation."""
    if text.isascii():
        return text.lower()
    # decomposing may reveal capitals, and case folding may reveal what can be decomposed
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKD", decomposed).translate(_CHARACTERS)


def _compose(text: str) -> str:
    # decomposing splits Hangul syllables, which are put together again
    return unicodedata.normalize("NFC", text)


def index_text(text: str) -> str:
    """The text for the index: words separated by spaces, and scripts without spaces as pairs of characters."""
    normalized = normalize_text(text)
    if normalized.isascii():
        return normalized
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", _compose(normalized))


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs, and the last character alone, so that a single character is found as a prefix."""
    for at in range(len(run) - 1):
        yield run[at : at + 2]
    yield run[-1]


def words(text: str) -> list[str]:
    """All words of a text as the index knows them, before stemming."""
    prepared = index_text(text)
    if prepared.isascii():
        return _PLAIN.findall(prepared)
    return _WORD.findall(_blank_ascii_punctuation(prepared))


def _blank_ascii_punctuation(prepared: str) -> str:
    return "".join(character if not character.isascii() or character.isalnum() else " " for character in prepared)


def topic_words(text: str) -> set[str]:
    """The words that carry a topic. Their number is the length of a text in scores."""
    return {word for word in set(words(text)) - STOP_WORDS if len(word) > 1 or not word.isascii()}


def query_terms(text: str, limit: int = MAX_TERMS) -> list[str]:
    """The words to look up, each once: those that carry a topic, or all if none does. A lone character of a script
    without spaces ends in `*` and matches as a prefix."""
    found = list(dict.fromkeys(_all_terms(text)))
    capitals = set[str]() if text.isupper() else {word.lower() for word in _CAPITALS.findall(text)}
    topical = [term for term in found if term not in STOP_WORDS or term in capitals]
    # single letters and digits are looked up only if there is nothing else
    long = [term for term in topical if len(term) > 1 or not term.isascii()]
    chosen = long or topical or found
    if len(chosen) > limit:
        longest = set(sorted(chosen, key=len, reverse=True)[:limit])
        chosen = [term for term in chosen if term in longest]
    return chosen


def _all_terms(text: str) -> Iterator[str]:
    normalized = normalize_text(text)
    if not normalized.isascii():
        normalized = _compose(normalized)
    for word in _WORD.findall(_blank_ascii_punctuation(normalized)):
        yield from _terms(word)


def _terms(word: str) -> Iterator[str]:
    at = 0
    for run in _RUN.finditer(word):
        if word[at : run.start()]:
            yield word[at : run.start()]
        if len(run[0]) == 1:
            yield run[0] + "*"
        else:
            yield from (run[0][start : start + 2] for start in range(len(run[0]) - 1))
        at = run.end()
    if word[at:]:
        yield word[at:]


_GROUPS = """
begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, choose chose chosen,
come came, deal dealt, draw drew drawn, drink drank drunk, drive drove driven, eat eaten, fall fell fallen,
feed fed, feel felt, fight fought, find found, fly flew flown, forget forgot forgotten, freeze froze frozen,
give gave given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
know knew known, lead led, learn learnt, leave left, lend lent, lose lost, make made, mean meant, meet met, pay paid,
ride rode ridden, ring rang rung, rise rose risen, run ran, say said, see saw seen, sell sold, send sent, shoot shot,
show shown, sing sang sung, sink sank sunk, sit sat, sleep slept, speak spoke spoken, spend spent, stand stood,
steal stole stolen, swim swam swum, take took taken, teach taught, tell told, think thought, throw threw thrown,
understand understood, wake woke woken, wear wore worn, win won, write wrote written, child children, man men,
woman women, person people, foot feet, tooth teeth, mouse mice, life lives, wife wives, good better best,
bad worse worst
"""

_FORMS = {form: tuple(group.split()) for group in _GROUPS.split(",") for form in group.split()}

_ENDINGS = (("", ""), ("s", ""), ("es", ""), ("ing", ""), ("ing", "e"), ("ning", ""), ("ting", ""))


def word_forms(term: str) -> tuple[str, ...]:
    """The term, followed by the other forms of the same word."""
    for ending, replacement in _ENDINGS:
        if term.endswith(ending) and (group := _FORMS.get(term.removesuffix(ending) + replacement)):
            return (term, *(form for form in group if form != term))
    return (term,)
