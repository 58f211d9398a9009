"""Compares statements by their words: whether two say the same, and whether the newer may contradict the older.

Knows no store and no index.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from recto.search.terms import STOP_WORDS, stem_word, words
from recto.store.fact import FactKind

# -- kinds

_KIND_CUES: tuple[tuple[FactKind, re.Pattern[str]], ...] = (
    (
        "decision",
        re.compile(
            r"\b(?:decid\w+|agreed|settled on|we (?:will|chose|go with)|entschieden|beschlossen|einigten|vereinbart"
            r"|decid\w+|acordamos|hemos elegido)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "preference",
        re.compile(
            r"\b(?:prefer\w*|favou?rite|likes?|loves?|hates?|dislikes?|allergic|vegan|vegetarian|always use|never use"
            r"|call me|bevorzug\w*|lieblings\w*|mag|lieber|hasst?|allergisch|prefier\w*|favorit\w*|gusta\w*"
            r"|odi\w+|alérgic\w+)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "person",
        re.compile(
            r"\b(?:my (?:name|wife|husband|partner|son|daughter|mother|father|sister|brother|boss|manager|friend"
            r"|doctor"
            r"|dentist|neighbou?r|colleague|cat|dog)|birthday|mein\w* (?:name|frau|mann|sohn|tochter|mutter|vater"
            r"|schwester|bruder|chef\w*|freund\w*|arzt|ärztin)|geburtstag|mi (?:nombre|esposa|marido|hijo|hija|madre"
            r"|padre|hermana|hermano|jefe|jefa|amig\w+|médic\w+)|cumpleaños)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "project",
        re.compile(
            r"\b(?:project|deadline|release|repository|repo|milestone|budget|server|database|branch|projekt|frist"
            r"|termin"
            r"|datenbank|proyecto|plazo|presupuesto|servidor)\b",
            re.IGNORECASE,
        ),
    ),
)


def guessed_kind(text: str) -> FactKind:
    """By the first cue that a statement holds; a guess, which can be changed."""
    return next((kind for kind, cue in _KIND_CUES if cue.search(text)), "other")


# -- comparing

# Statements with this share of their words in common, and the same numbers, say the same.
SAME = 0.85
# The newer of two statements may contradict the older if the shorter shares this much of its words, or this much where
# it says itself that something has changed.
ABOUT_THE_SAME, SAID_TO_CHANGE = 0.5, 0.25
_CHANGED = re.compile(
    r"\b(?:now|anymore|no longer|not any ?more|instead|actually|correction|changed?|moved|switched|renamed|replaced"
    r"|updated?|from now on|since then|jetzt|nun|nicht mehr|stattdessen|geändert|umgezogen|gewechselt|künftig"
    r"|ab sofort"
    r"|ahora|ya no|en vez|en lugar|cambi\w+|mud[aó]\w*|traslad\w+|a partir de|maintenant|désormais|déménag\w+"
    r"|chang\w+"
    r"|ora|adesso|trasferit\w+|agora|mudou|теперь|переехал\w*|больше не)\b"
    r"|搬|改|现在|現在|不再|换|換|今は|引っ越|انتقل|الآن|이사|이제",
    re.IGNORECASE,
)
# Verbs of which many objects are true at once: who likes tea may like coffee.
_ADDING_WORDS = (
    "like likes love loves enjoy enjoys hate hates have has own owns use uses speak speaks know knows visit visited "
    "watch read play plays eat eats drink drinks buy bought want wants need needs call called name named mag mögen "
    "liebe haben hat spreche spricht esse trinke kenne besuche gusta gustan amo tengo tiene hablo habla como "
    "bebo conozco uso"
)
_ADDING = frozenset(map(stem_word, _ADDING_WORDS.split()))
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nothing|cannot|\w+n[’']t|nicht|kein\w*|nie|niemals|nunca|jamás|sin|pas|jamais|non|niet|geen"
    r"|nooit|não|nem|не|нет|никогда)\b|[不没沒]|ない|ません|않|못",
    re.IGNORECASE,
)
# How a model calls the user, who says "I".
THE_USER = re.compile(
    r"\b(?:the\s+)?(?:users?|(?:be)?nutzer(?:in)?s?|usuari[oa]s?|usuári[oa]s?|utilisat(?:eur|rice)s?|utente|gebruikers?"
    r"|użytkowni\w{1,4}|пользовател\w{1,3})(?:['’]s)?\b|用[户戶]|使用者|ユーザー|사용자|المستخدم",
    re.IGNORECASE,
)
# Whom a statement is about stands among its first words.
SUBJECT_WORDS = 4
_FULL_NAME = re.compile(r"\b[^\W\d_a-z]\w+(?:[ -][^\W\d_a-z]\w+)+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@lru_cache(maxsize=4096)
def fact_stems(text: str) -> frozenset[str]:
    """The words that a statement is about, in any form."""
    return frozenset(stem_word(word) for word in words(text) if word not in STOP_WORDS)


def says_same(one: str, other: str) -> bool:
    """Whether two statements say the same in nearly the same words."""
    if numbers_in(one) != numbers_in(other) or is_negated(one) != is_negated(other):
        return False
    ours, theirs = fact_stems(one), fact_stems(other)
    if not ours or not theirs:
        return one.casefold().strip(" .!") == other.casefold().strip(" .!")
    return len(ours & theirs) >= SAME * len(ours | theirs)


def may_contradict(newer: str, older: str) -> bool:
    """Whether two statements are about the same thing and say something else of it. Rather once too often: both are
    shown, and the user decides."""
    ours, theirs = _topic_stems(newer), _topic_stems(older)
    shared = len({*ours} & {*theirs})
    least = min(len(ours), len(theirs))
    if not shared or says_same(newer, older) or not may_share_subject(newer, older):
        return False
    if ours[0] not in theirs and theirs[0] not in ours:  # what a statement is about comes first in it
        return False
    return shared >= (SAID_TO_CHANGE if _CHANGED.search(newer) else ABOUT_THE_SAME) * least


def may_share_subject(one: str, other: str) -> bool:
    """Two statements with full names are about the same only if they share one: Anna Weber is not Bruno Weber."""
    ours, theirs = (full_names(" ".join(text.split()[:SUBJECT_WORDS])) for text in (one, other))
    return not ours or not theirs or bool(ours & theirs)


def is_about_others(text: str, names: Collection[str]) -> bool:
    """Whether a statement names somebody who shares a part of one of these full names, and nobody who may be meant. A
    capital at the beginning of a sentence may have made a name longer than it is."""
    if not names:
        return False
    asked, told = ([frozenset(re.split("[ -]", name)) for name in some] for some in (names, full_names(text)))
    pairs = [(one, other) for one in asked for other in told]
    may_be_meant = any(one <= other or other <= one for one, other in pairs)
    return not may_be_meant and any(one & other for one, other in pairs)


def full_names(text: str) -> set[str]:
    """Scripts without capitals have none."""
    found = _FULL_NAME.findall(text)
    return {name for name in found if all(word[0].isupper() for word in re.split("[ -]", name))}


@lru_cache(maxsize=4096)
def _topic_stems(text: str) -> tuple[str, ...]:
    """In their order, without numbers, which are what changes, and without the words that only say that it did."""
    found = (stem_word(word) for word in words(_CHANGED.sub(" ", text)) if word not in STOP_WORDS)
    topical = (stem for stem in found if stem not in _ADDING and not any(char.isdigit() for char in stem))
    return tuple(dict.fromkeys(topical))


def numbers_in(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def is_negated(text: str) -> bool:
    return _NEGATION.search(text) is not None
