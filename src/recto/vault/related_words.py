"""Related words: whether two words are forms of one, or one is a part of the other. By how they begin and end."""

from functools import lru_cache

_MIN_COMMON = 4
_ENDING_LIST = """
    s es e ed d r er ers or ors ing ings n en em est ly t te ten tes ment ments ung ungen ation ations al ic ie ies y
    ance ances ence ences
    ned ning ted ting ped ping led ling red ring ged ging med ming
    a o as os i ar ir ado ada ados adas ido ida idos idas an aron io ion iones ciones cion mente
    ee ees ez ent ait aient ant ions eur euse"""
_ENDINGS = frozenset(("", *_ENDING_LIST.split()))
_SHORT_ENDINGS = frozenset(("", "s", "es", "ses", "d", "ed", "ing", "e", "n", "en"))


@lru_cache(maxsize=16_384)
def is_same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one, told by how they begin: `planned` and `plan`, but not `plan` and `plank`."""
    if one == other:
        return True
    if one.isdigit() or other.isdigit():
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    # an ending may begin before the words differ: `insures` and `insurer`
    for stem in range(common, max(2, common - 2), -1):
        endings = _ENDINGS if stem >= _MIN_COMMON else _SHORT_ENDINGS
        if one[stem:] in endings and other[stem:] in endings:
            return True
    return False


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
