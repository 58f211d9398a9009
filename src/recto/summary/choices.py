"""Choices: what a reply lists to choose from, and which of it the user takes by its place ("the second one").

Knows a list and the sentence that answers it.
"""

import re
from collections.abc import Sequence

from recto.text import text_cache

_ITEM = re.compile(r"^[ \t]*(?:\*\*)?(\d{1,2}[.)]|[A-H][.)]|[-*•])(?:\*\*)?[ \t]+(?=\S)(.*\S)", re.MULTILINE)
_MIN_OPTIONS, _MAX_OPTIONS = 2, 12
_ORDINALS = (
    r"first|1st|erste\w?|primer[oa]?|premi(?:er|ère)",
    r"second|2nd|zweite\w?|segund[oa]|deuxième|seconde?",
    r"third|3rd|dritte\w?|tercer[oa]?|troisième",
    r"fourth|4th|vierte\w?|cuart[oa]|quatrième",
    r"fifth|5th|fünfte\w?|quint[oa]|cinquième",
)
_LAST = r"last|letzte\w?|últim[oa]|derni(?:er|ère)"
_BY_ORDINAL = re.compile(
    rf"\b(?:the|die|der|das|den|dem|el|la|le) (?:({_LAST})|{'|'.join(f'({word})' for word in _ORDINALS)})\b",
    re.IGNORECASE,
)
_BY_NUMBER = re.compile(
    r"(?:\b(?:option|number|variant|plan|nummer|variante|opción|número|numéro) |#)(\d|[A-H]\b)(?!\w|[.,:]\d)",
    re.IGNORECASE,
)
_OPENS = (
    r"(?:(?:hm+|ok(?:ay)?|so|yes|definitely|i['’]d (?:say|take)|let['’]s (?:do|take|go with)|ja|also|dann|nehmen wir|sí"
    r"|pues|entonces|oui|donc|alors)[,.]? )?"
)
_PLACE = r"(?:\d|[A-H])"
_LISTED = re.compile(
    rf"{_OPENS}({_PLACE}(?:(?:, ?| ?& ?| (?:and|und|y|et) ){_PLACE})*)"
    r"(?=[.,;!)]*$|[,;!)] |\. (?=\D)"
    r"| (?:only|please|then|sounds|looks|but|bitte|dann|nur|aber|solo|pero|seulement|mais)\b)"
)
_DECLINES = re.compile(r"(?:not|no|nicht|nein|pas|non|neither|anything but|definitely not)\b", re.IGNORECASE)
_MAX_CHOICE = 120


@text_cache(2048)  # the reply, the message before it and the ledger ask
def listed_options(text: str) -> tuple[str, ...]:
    """The items of a list that a reply proposes: the numbered ones, if there are some."""
    items = _ITEM.findall(text)
    marked = [item for marker, item in items if marker[0].isalnum()]
    found = marked if len(marked) >= _MIN_OPTIONS else [item for _, item in items]
    is_usable = _MIN_OPTIONS <= len(found) <= _MAX_OPTIONS and not any(item.endswith("?") for item in found)
    return tuple(found) if is_usable else ()


def chosen_options(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """Which options a sentence takes, by their indices; none for a question and a refusal."""
    if not options or len(reply) > _MAX_CHOICE or reply.endswith("?") or _DECLINES.match(reply):
        return ()
    places = [_ordinal(found, len(options)) for found in _BY_ORDINAL.finditer(reply)]
    places = places or [_place(found[1]) for found in _BY_NUMBER.finditer(reply)]
    # only options have capitals here: "Ok, B then", but not "A friend said so"
    said = reply[:1].lower() + reply[1:] if reply[1:2].islower() else reply
    if not places and (listed := _LISTED.match(said)):
        places = [_place(place) for place in re.findall(rf"\b{_PLACE}\b", listed[1])]
    return tuple(place for place in dict.fromkeys(places) if 0 <= place < len(options))


def _ordinal(found: re.Match[str], options: int) -> int:
    return options - 1 if found[1] else next(at for at, word in enumerate(found.groups()[1:]) if word)


def _place(written: str) -> int:
    return int(written) - 1 if written.isdigit() else ord(written.upper()) - ord("A")
