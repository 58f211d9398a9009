"""Statements that bind without a verb of deciding: nouns with a "no", and what is to be done by a day or an hour.

They complete the decisions of `recto.summary.sentences`, in English, German, Spanish and French. Knows one at a time.
"""

import re


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Prohibitions without a verb: "no phones at the table", "ohne Zwiebeln bitte", "pas de vin".
_NO_NOUN = re.compile(
    r"(?:^|[,;:.!(–—] ?|\b(?:and|but|also|please|und|aber|y|et|mais|pero) )(?:"
    r"no (?!(?:problems?|worry|worries|idea|need|one|rush|way|doubt|matter|wonder|clue|thanks?|longer|more|kidding|big"
    r"|luck|offen[cs]e|pressure|hurry|point|reason|time|chance|jok|sign|difference|body|not|but|sé|puedo|tengo|quiero|creo|hay"
    r"|es|está|fue|era|soy|estoy|voy|va|me|te|se|lo|la|le|importa|pasa|gracias|hard|harm|question|news|change|comment"
    r"|surprise|excuse|regrets|good|great|sir|ma'am)s?\b)[a-z][\w'-]+(?: [a-z][\w'-]+)?"
    r"(?=\s*(?:[,.;!)]|$)| (?:on|in|at|before|after|during|for|with|without|or|from|inside|please|whatsoever)\b)"
    r"|pas d(?:e |')(?!(?:problème|souci|quoi|chance|panique|doute|raison|mal|nouvelle)s?\b)\w+"
    r"|(?:ohne|sin|sans|without|zero) (?!(?:embargo|dud|problem|más|prisa|frage|zweifel|worte|weitere|dout|souci)\w*\b)"
    r"[\w-]+(?: [\w-]+)?(?:,? (?:bitte|please|por favor|s'il \w+ pla[iî]t))?[.!]*$)",
    re.IGNORECASE,
)
_WEEKDAY_OR_MONTH = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|lunes|martes"
    r"|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|tomorrow|tonight|noon"
    r"|midnight|january|february|march|april|may|june|july|august|september|october|november|december|morgen|übermorgen"
    r"|heute|mittag|januar|jänner|februar|märz|mai|juni|juli|oktober|dezember|mañana|demain|midi|mediodía"
)
# "Anna does it by Friday"; "from Monday until Friday" and "was built by June" are none.
_DEADLINE = re.compile(
    r"(?<!from )\b(?:by|before|until|no later than|bis|vor|antes del?|para|hasta|avant|d'ici|pour|jusqu'(?:au|à))"
    r" (?:the |next |this |spätestens |zum |zur |kommenden? |nächsten? |el |la |le |au )*"
    r"(?:end of |ende |fin de |finales de )?"
    rf"(?:(?:{_WEEKDAY_OR_MONTH})\b|\d{{1,2}}(?:st|nd|rd|th|er)?\.? (?:de )?[^\W\d_]{{3}}"
    r"|\d{1,2}(?::\d\d| ?[ap]\.?m\b| uhr)"
    r"|\d{1,2}\.\d{1,2}\.|\d{4}-\d\d-\d\d|(?:week|month|year|woche|monats?|jahres|semana|mes|año|semaine|mois)\b)",
    re.IGNORECASE,
)
_DEADLINE_WORDS = _words("by before until later bis vor antes para hasta avant d'ici pour jusqu'au jusqu'à")
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


def forbids(sentence: str) -> bool:
    return _NO_NOUN.search(sentence) is not None
