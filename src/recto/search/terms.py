"""Terms: a text as the index reads it, and the words of a question worth looking up.

Folding (case, accents, width) happens here for both, so that the database only splits at spaces and stems. Scripts
without spaces become overlapping pairs of characters; an emoji is a word of its own.
"""

import re
import unicodedata
from collections.abc import Iterator

# A question of ten thousand words is looked up by these many of them.
MOST_TERMS = 48

_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_PAIRED}]+")
_WORD = re.compile(r"[^\s]+")
_PLAIN = re.compile(r"[a-z0-9]+")
# Whoever writes ER or US means neither a German "he" nor "us"; but operators of other searches are no words at all.
_CAPITALS = re.compile(r"\b(?!(?:AND|OR|NOT)\b)[A-Z]{2,4}\b")

# Words that carry no topic, as folding leaves them. No more than the commonest, and none that means something in
# another of these languages: how often a word is said tells the rest, and "up", "after", "own" do tell topics apart.
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
STOP = frozenset(_FUNCTION_WORDS.split())


class _Table(dict[int, str]):
    """Character by character, looked up once: letters, marks and digits stay, symbols stand alone, the rest parts."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        kind = unicodedata.category(sign)
        if kind[0] in "LN":
            made = sign
        elif kind in ("Mn", "Me", "Cf"):
            # accents were taken apart before; what joins emoji or marks their colour says nothing to a search
            made = "" if code < 0x0590 or kind != "Mn" or 0xFE00 <= code <= 0xFE0F else sign
        elif kind == "Mc":
            made = sign
        elif kind == "So":
            made = f" {sign} "
        else:
            made = "" if 0x1F3FB <= code <= 0x1F3FF else " "
        self[code] = made
        return made


_TABLE = _Table()


def folded(text: str) -> str:
    """Words of lower-case letters and digits, parted by whatever stood between them; accents are gone."""
    if text.isascii():
        return text.lower()
    # taking apart may bring capitals to light, and folding what can be taken apart
    apart = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKD", apart).translate(_TABLE)


def _composed(text: str) -> str:
    # decomposing takes Hangul apart, which is put together again
    return unicodedata.normalize("NFC", text)


def indexed(text: str) -> str:
    """What the index is given: parted by spaces wherever a word ends."""
    folds = folded(text)
    if folds.isascii():
        return folds
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", _composed(folds))


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs, and the last character alone: so a single one is found as the beginning of a word."""
    for at in range(len(run) - 1):
        yield run[at : at + 2]
    yield run[-1]


def words(text: str) -> list[str]:
    """All words of a text as the index knows them, before stemming."""
    ready = indexed(text)
    return (_PLAIN if ready.isascii() else _WORD).findall(ready if ready.isascii() else _split(ready))


def _split(ready: str) -> str:
    return "".join(sign if not sign.isascii() or sign.isalnum() else " " for sign in ready)


def content(text: str) -> set[str]:
    """The words that carry a topic; their number is how long a text counts as."""
    return {word for word in words(text) if (word not in STOP and len(word) > 1) or not word.isascii()}


def query_terms(text: str, most: int = MOST_TERMS) -> list[str]:
    """What to look up, each once: words that carry a topic; all of them where none does. A lone character of a script
    without spaces ends in `*`: every word that begins with it."""
    said = list(dict.fromkeys(_asked(text)))
    capitals = set[str]() if text.isupper() else {word.lower() for word in _CAPITALS.findall(text)}
    telling = [term for term in said if term not in STOP or term in capitals]
    # the longer a word the rarer, as a rule; single letters and figures are looked up only where nothing else is there
    long = [term for term in telling if len(term) > 1 or not term.isascii()]
    chosen = long or telling or said
    if len(chosen) > most:
        kept = set(sorted(chosen, key=len, reverse=True)[:most])
        chosen = [term for term in chosen if term in kept]
    return chosen


def _asked(text: str) -> Iterator[str]:
    folds = folded(text)
    if not folds.isascii():
        folds = _composed(folds)
    for word in _WORD.findall(_split(folds)):
        yield from _terms(word)


def _terms(word: str) -> Iterator[str]:
    at = 0
    for run in _RUN.finditer(word):
        if word[at : run.start()]:
            yield word[at : run.start()]
        if len(run[0]) == 1:
            yield run[0] + "*"
        else:
            yield from (run[0][place : place + 2] for place in range(len(run[0]) - 1))
        at = run.end()
    if word[at:]:
        yield word[at:]
