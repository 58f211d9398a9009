"""Related words: whether two words are forms of one, or one is a part of the other, and XX"""

from functools import lru_cache

from recto.search.terms import word_forms

_MIN_COMMON = 4
_ENDING_LIST = """
    s es e ed d r er ers or ors ing ings n en em est ly t te ten tes ment ments ung ungen ation ations al ic ie ies y
    ance ances ence ences
    ned ning ted ting ped ping led ling red ring ged ging med ming
    a o as os i ar ir ado ada ados adas ido ida idos idas an aron io ion iones ciones cion mente
    ee ees ez ent ait aient ant ions eur euse"""
_ENDINGS = frozenset(("", *_ENDING_LIST.split()))
_SHORT_ENDINGS = frozenset(("", "s", "es", "ses", "d", "ed", "ing", "e", "n", "en"))
_AGAIN = ("re", "wieder", "um")


@lru_cache(maxsize=16_384)
def is_same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one, told by how they begin: `planned` and `plan`, but not `plan` and `plank`."""
    if one == other:
        return True
    if one.isdigit() or other.isdigit():
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if common < 3:
        return _is_participle(one, other) or _is_participle(other, one)
    # an ending may begin before the words differ: `insures` and `insurer`
    for stem in range(common, max(2, common - 2), -1):
        endings = _ENDINGS if stem >= _MIN_COMMON else _SHORT_ENDINGS
        if one[stem:] in endings and other[stem:] in endings:
            return True
    return False


def _is_participle(one: str, other: str) -> bool:
    """`geprobt` of `proben`."""
    is_long = len(one) > _MIN_COMMON + 2 and len(other) > _MIN_COMMON and one.endswith(("t", "en", "te", "ten"))
    return one.startswith("ge") and is_long and not other.startswith("ge") and is_same_word(one[2:], other)


# Shorter parts of a compound are too often something else.
_MIN_PART, _MIN_REST = 4, 4
# But what a long compound ends with it is a kind of, also behind a short word: `tonziegel`; not behind a prefix.
_MIN_HEAD, _MIN_BEFORE_HEAD = 5, 3
_PREFIXES = frozenset(("auf", "aus", "bei", "ein", "ent", "her", "hin", "los", "mit", "ver", "vor", "weg", "zer"))


@lru_cache(maxsize=16_384)
def is_part_of(one: str, other: str) -> bool:
    """Whether one word is a part of the other, as German builds words: `konto` and `kontostand`."""
    short, long = sorted((one, other), key=len)
    rest = len(long) - len(short)
    if len(short) >= _MIN_HEAD and rest >= _MIN_BEFORE_HEAD and long.endswith(short) and long[:rest] not in _PREFIXES:
        return True
    return len(short) >= _MIN_PART and rest >= _MIN_REST and (long.startswith(short) or long.endswith(short))


@lru_cache(maxsize=4096)
def related_forms(term: str) -> tuple[str, ...]:
    """The forms of a word, and what it says without "again": `renamed` is about a name."""
    again = (term[len(start) :] for start in _AGAIN if term.startswith(start) and len(term) - len(start) >= _MIN_COMMON)
    return (*word_forms(term), *again)


@lru_cache(maxsize=4096)
def related_starts(term: str) -> frozenset[str]:
    """How words must begin that are forms of a term, also without the beginning of a German participle."""
    forms = related_forms(term)
    return frozenset(form[:3] for form in (*forms, *(form[2:] for form in forms if form.startswith("ge"))))
