"""Choices: what a reply lists to choose from, and which of it the user takes by its place ("the second one").

Knows a list and the sentence that answers it. An option that the sentence names counts before a place.
"""

import re
from collections.abc import Sequence

from recto.summary.sentences import sentences, terms, word_set
from recto.text import LazyPattern, text_cache

_ITEM = re.compile(r"^[ \t]*(?:\*\*)?(\d{1,2}[.)]|[A-H][.)]|[-*•])(?:\*\*)?[ \t]+(?=\S)(.*\S)", re.MULTILINE)
_MIN_OPTIONS, _MAX_OPTIONS = 2, 12
_ORDINALS = (
    r"first|1st|erste\w?|primer[oa]?|premi(?:er|ère)|eerste|pierwsz[aąey]\w?",
    r"second|2nd|zweite\w?|segund[oa]|deuxième|seconde?|tweede|drug[aąi]",
    r"third|3rd|dritte\w?|tercer[oa]?|troisième|derde|trzeci[aą]?",
    r"fourth|4th|vierte\w?|cuart[oa]|quatrième|vierde|czwart[aąy]",
    r"fifth|5th|fünfte\w?|quint[oa]|cinquième|vijfde|piąt[aąy]",
)
_LAST = r"last|letzte\w?|últim[oa]|derni(?:er|ère)|laatste|ostatni[aą]?"
_ARTICLES = "the|die|der|das|den|dem|el|la|le|de|het|ta|ten|tę|to|biorę|wybieram"
_BY_ORDINAL = re.compile(
    rf"(?:\b(?:{_ARTICLES}) |^(?=\w+ one\b))(?:({_LAST})|{'|'.join(f'({word})' for word in _ORDINALS)})\b",
    re.IGNORECASE,
)
_BY_NUMBER = re.compile(
    r"(?:\b(?:option|number|variant|plan|nummer|nr|variante|opción|número|numéro|optie|opcja|numer)\.? |#)"
    r"(\d|[A-H]\b)(?!\w|[.,:]\d)|(?<!\d)(\d)(?:番|つ目)",
    re.IGNORECASE,
)
_OPENS = (
    r"(?:(?:hm+|ok(?:ay)?|so|yes|definitely|i['’]d (?:say|take)|let['’]s (?:do|take|go with)|ja|also|dann|nehmen wir"
    r"|sí"
    r"|pues|entonces|oui|donc|alors|dan|doe maar)[,.]? )?(?:(?:la|el|die|das|le|de|the) )?"
)
_PLACE = r"(?:\d|[A-H])"
_LISTED = re.compile(
    rf"{_OPENS}({_PLACE}(?:(?:, ?| ?& ?| (?:and|und|y|et) ){_PLACE})*)"
    r"(?=[.,;!)]*$|[,;!)] |\. (?=\D)"
    r"| (?:only|please|then|sounds?|looks?|are|but|bitte|dann|nur|aber|solo|pero|seulement|mais)\b)"
)
_DECLINES = re.compile(r"(?:not|no|nicht|nein|pas|non|neither|anything but|definitely not)\b", re.IGNORECASE)
# What is praised first and then refused is not taken: "the second is cheap but no".
_REFUSES = re.compile(
    r"\b(?:but|aber|pero|mais|maar|ale) (?:no|nein|non|nee|nie|not|too|zu|trop|te|za)\b", re.IGNORECASE
)
_MAX_CHOICE = 120
_INLINE = re.compile(r"(?:(?<=[\s(])|^)([1-9])[.)] (?=[^\W\d_\"“„*])")
_ITEM_END = re.compile(r"[.!?] |\n|$")
# What a reply offers beside its list has no place in it.
_BESIDE = LazyPattern(
    r"(?i)(?:another (?:option|way|idea)|alternatively|you could also|one more|or you could|eine weitere|alternativ"
    r"|(?:du|man|sie) könnte\w* auch|otra opción|también podrías|une autre|sinon|tu pourrais aussi|een andere"
    r"|je kunt ook"
    r"|inna opcja|możesz też)\b",
)
_MIN_NAMING = 4
_PLAIN = word_set(
    "first second third fourth fifth last option another would could that this with from have like sounds"
)


@text_cache(2048)  # the reply, the message before it and the ledger ask
def listed_options(text: str) -> tuple[str, ...]:
    """The items of a list that a reply proposes: the numbered ones, if there are some."""
    items = _ITEM.findall(text)
    marked = [item for marker, item in items if marker[0].isalnum()]
    found = marked if len(marked) >= _MIN_OPTIONS else [item for _, item in items]
    found = found if len(found) >= _MIN_OPTIONS else _listed_inline(text)
    is_usable = _MIN_OPTIONS <= len(found) <= _MAX_OPTIONS and not any(item.endswith("?") for item in found)
    if not is_usable:
        return ()
    beside = [one for one in sentences(text) if _BESIDE.match(one)] if _BESIDE.search(text) else []
    return (*found, *(one for one in beside if one not in found and not one.endswith("?")))


def _listed_inline(text: str) -> list[str]:
    """The items of a list in one line: "Two singers: 1. Mira Holm 2. Duo Kante"."""
    marks = list(_INLINE.finditer(text)) if "2. " in text or "2) " in text else []
    if len(marks) < _MIN_OPTIONS or [int(mark[1]) for mark in marks] != list(range(1, len(marks) + 1)):
        return []
    ends = [mark.start() for mark in marks[1:]]
    last = _ITEM_END.search(text, marks[-1].end())
    ends.append(last.start() if last else len(text))
    return [text[mark.end() : end].strip(" ,;(") for mark, end in zip(marks, ends, strict=True)]


def chosen_options(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """Which options a sentence takes, by their indices; none for a question and a refusal."""
    if (
        not options
        or len(reply) > _MAX_CHOICE
        or reply.endswith("?")
        or _DECLINES.match(reply)
        or _REFUSES.search(reply)
    ):
        return ()
    listed_in = sum(not _BESIDE.match(option) for option in options)
    places = [_ordinal(found, listed_in) for found in _BY_ORDINAL.finditer(reply)]
    places = places or [_place(found[1] or found[2]) for found in _BY_NUMBER.finditer(reply)]
    # only options have capitals here: "Ok, B then", but not "A friend said so"
    said = reply[:1].lower() + reply[1:] if reply[1:2].islower() else reply
    if not places and (listed := _LISTED.match(said)):
        places = [_place(place) for place in re.findall(rf"\b{_PLACE}\b", listed[1])]
    if len(places) == 1 and (named := _named(reply, options)) and places[0] not in named:
        return named
    return tuple(place for place in dict.fromkeys(places) if 0 <= place < listed_in)


def _named(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """The options of which a sentence has a word that no other option has; the one with most of them."""
    said = {term for term in terms(reply) if len(term) >= _MIN_NAMING and term.isalpha()} - _PLAIN
    found = [said & terms(option) for option in options]
    own = [len(words.difference(*found[:at], *found[at + 1 :])) for at, words in enumerate(found)]
    most = max(own, default=0)
    return tuple(at for at, number in enumerate(own) if number == most) if most else ()


def _ordinal(found: re.Match[str], options: int) -> int:
    return options - 1 if found[1] else next(at for at, word in enumerate(found.groups()[1:]) if word)


def _place(written: str) -> int:
    return int(written) - 1 if written.isdigit() else ord(written.upper()) - ord("A")
