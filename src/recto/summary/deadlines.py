"""Deadlines: what is to be done by a day or an hour, and what will be on a day. Knows one sentence at a time."""

import re

_POLISH = (
    r"poniedział\w+|wtor(?:ek|ku)|środ[aęy]|czwart(?:ek|ku)|piąt(?:ek|ku)|sobot[aęy]|niedziel[aęi]|stycznia|lutego"
    r"|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada|grudnia|jutr[ao]"
)
_WEEKDAY_OR_MONTH = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|lunes"
    r"|martes"
    r"|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|tomorrow|tonight"
    r"|noon"
    r"|midnight|january|february|march|april|may|june|july|august|september|october|november|december|morgen|übermorgen"
    r"|heute|mittag|januar|jänner|februar|märz|mai|juni|juli|oktober|dezember|mañana|demain|midi|mediodía"
    r"|(?:maan|dins|woens|donder|vrij|zater|zon)dag|januari|februari|maart|mei|augustus|overmorgen"
    r"|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|domani|gennaio|febbraio|marzo|aprile|maggio|giugno"
    r"|luglio|settembre|ottobre|dicembre|amanhã|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|dezembro"
    rf"|(?:segunda|terça|quarta|quinta|sexta)-feira|{_POLISH}"
)
# "Anna does it by Friday"; "from Monday until Friday" and "was built by June" are none.
_DEADLINE = re.compile(
    r"(?<!from )\b(?:by|before|until|no later than|bis|vor|voor|uiterlijk|tot|antes del?|para|hasta|avant|d'ici|pour"
    r"|jusqu'(?:au|à)|entro|prima del|até|przed)"
    r" (?:the |next |this |spätestens |zum |zur |kommenden? |nächsten? |el |la |le |au |il |o |a |ao |às |dia )*"
    r"(?:end of |ende |fin de |finales de )?"
    rf"(?:(?:{_WEEKDAY_OR_MONTH})\b|\d{{1,2}}(?:st|nd|rd|th|er)?\.? (?:de )?[^\W\d_]{{3}}"
    r"|\d{1,2}(?::\d\d| ?[ap]\.?m\b| uhr)"
    r"|\d{1,2}\.\d{1,2}\.|\d{4}-\d\d-\d\d"
    r"|(?:week|month|year|woche|monats?|jahres|semana|mes|año|semaine|mois|settimana|mese|mês|ano)\b)"
    # "do" is a verb in English
    rf"|\bdo (?:\d{{1,2}}\.? )?(?:{_POLISH}|końca)\b",
    re.IGNORECASE,
)
_DEADLINE_PREPOSITIONS = (
    "by before until later bis vor voor uiterlijk tot antes para hasta avant d'ici pour jusqu'au jusqu'à entro prima "
    "do até przed"
)
_DEADLINE_WORDS = frozenset(_DEADLINE_PREPOSITIONS.split())
_PAST = re.compile(
    r"\b(?:was|were|had|did|been|from (?:mon|tues|wednes|thurs|fri|satur|sun)day|hatte|wurde|von|fue|era|había|desde"
    r"|war|était|avait|depuis)\b",
    re.IGNORECASE,
)
_MIN_DEADLINE_WORDS = 4


def sets_deadline(sentence: str) -> bool:
    """Whether something is to be done by a day or an hour. A greeting such as "bis morgen" is too short."""
    words = sentence.lower().split()
    if len(words) < _MIN_DEADLINE_WORDS or _DEADLINE_WORDS.isdisjoint(words):
        return False
    return _DEADLINE.search(sentence.replace("’", "'")) is not None and not _PAST.search(sentence)


_DAY = re.compile(
    rf"\b(?:{_WEEKDAY_OR_MONTH}|weekend|wochenende|fin de semana|week-end)\b|\b\d{{1,2}}(?:st|nd|rd|th|er)\b"
    r"|\b\d{1,2}\.\d{1,2}\.|\d{4}-\d\d-\d\d|\bel (?:día )?\d{1,2}\b|\ble \d{1,2}\b|\bam \d{1,2}\.",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:yesterday|last|ago|gestern|letzte\w*|ayer|pasad[oa]|hier|derni[eè]re?|went|got|came|saw|ate|haben|hat|habe"
    r"|hab|hemos|han|[a-z]{3,}ed|ge[a-zäöü]{3,}(?:t|en))\b",
    re.IGNORECASE,
)


def plans_for_day(sentence: str) -> bool:
    """Whether it says what will be on a day: "We sail to Fowey on the second weekend of June"."""
    days = {found[0].lower() for found in _DAY.finditer(sentence)} - {"heute", "tonight"}
    if not days or sentence.endswith(("?", "？")):
        return False
    return not (_PAST.search(sentence) or _HAPPENED.search(sentence))
