"""VaultQuestion: what a message asks: the words that carry its topic, and the kind of answer it wants.

The kinds (a name, date, number, price or reason) and messages that lean on earlier ones are known in English, German,
Spanish and French. Patterns read text without capitals and accents.
"""

import re
from typing import Literal

from msgspec import Struct

from recto.search.terms import normalize_text, query_terms, words

AnswerKind = Literal["name", "date", "number", "money", "reason"]

# Words that say which kind of answer is wanted, not what it is about.
_ASKING_WORDS = """
    anyone anybody tell say know mean please give show find list name kind much many often let lets got get there here
    any some must shall may might each every all both everyone everybody us
    viel viele oft gibt welche welcher welches welchem welchen wieviel wieviele bitte sag zeig lautet heisst hat haben
    hatte die den von vom im am an auf aus bei fur mit nach vor war waren wird wurde wurden werden kann darf durfen
    jede jeder jedes jeden alle allen diesem diesen dieser dieses diese
    cuanto cuanta cuantos cuantas quien quienes cual cuales donde dime hay es son fueron tiene al con cada todos todas
    este esta
    combien quel quelle quels quelles quoi dis etait fait faut chaque tous toutes"""
_ASKING = frozenset(_ASKING_WORDS.split())
# They may stand in the answer ("10.4 metres long") as well as not ("80 minutes").
_MEASURE_WORDS = """
    long old far deep high tall wide big large fast heavy lang lange alt weit hoch tief gross breit schnell schwer
    largo alto lejos grande rapido pesado longtemps loin haut profond grand vite lourd"""
MEASURES = frozenset(_MEASURE_WORDS.split())
_NUMBER_ASKED = re.compile(
    r"\bhow (?:many|much|long|often|old|far|deep|high|tall|wide|big|large|fast|heavy|hot|cold|late|early|soon)\b"
    r"|\b(?:what|which) (?:\w+ ){0,2}(?:number|speed|price|cost|size|length|weight|amount|distance|percentage|rate)\b"
    r"|\b(?:what|which) (?:\w+ ){0,2}(?:temperature|code|version|score|age|fee)\b"
    r"|\bwhat (?:does|did|do|is|was) .*\b(?:cost|charge|weigh|measure)|\bwieviele?\b|\bwas kostete?\b"
    r"|\bwie (?:viele?|lange?|oft|alt|weit|hoch|tief|gross|breit|schnell|schwer|teuer|heiss|kalt|spat)\b"
    r"|\bwelche \w*nummer|\bwie lautet .*nummer"
    r"|\bcuant[oa]s?\b|\b(?:que|cual es el) (?:numero|precio|tamano|velocidad)\b|\bcada cuanto\b"
    r"|\bcombien\b|\bquel(?:le)? (?:est )?(?:le |la )?(?:numero|prix|taille|vitesse|age|longueur|poids)\b"
)
# A number that is asked for with one of these is an amount of money.
_MONEY_ASKED = re.compile(
    r"\b(?:costs?|price|charged?|pay|paid|spend|spent|fee|worth|kost\w*|preis|bezahl\w*|ausgegeben|cuesta\w*|costo|precio"
    r"|pag\w+|gast\w+|coute\w*|prix|pay\w*)\b"
)
_DATE_ASKED = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time)\b|\bwann\b|\bwelche[msnr]? (?:jahr|datum|tag|monat)\b"
    r"|\bcuando\b|\b(?:que|cual) (?:ano|dia|mes|fecha)\b|\bquand\b|\bquel(?:le)? (?:annee|date|jour|mois)\b"
)
_NAME_ASKED = re.compile(r"\bwho(?:m|se)?\b|\bwe(?:r|n|m|ssen)\b|\bquien(?:es)?\b|(?:^|\b(?:a|de|avec|pour) )qui\b")
_REASON_ASKED = re.compile(r"\bwhy\b|\bwhat for\b|\bwarum\b|\bwieso\b|\bweshalb\b|\bpor que\b|\bpourquoi\b")
_KINDS: dict[AnswerKind, re.Pattern[str]] = {
    "number": _NUMBER_ASKED,
    "date": _DATE_ASKED,
    "name": _NAME_ASKED,
    "reason": _REASON_ASKED,
}
_ASKS = re.compile(
    r"[?？؟¿]|^\W*(?:(?:and|und|y|et) )?"
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|tell|explain|list|show|find"
    r"|wer|wen|wem|was|wann|wo|warum|wieso|welche\w*|wie|gibt|qui|quoi|quand|où|quel\w*|pourquoi|comment|combien"
    r"|quién\w*|qué|cuándo|dónde|cuál\w*|cómo|cuánt[oa]s?)\b"
)
_LEANS = re.compile(
    r"^\W*(?:and|und|y|et|but|aber|pero|mais|so|also|what about|how about|was ist mit|que hay de|et pour)\b"
    r"|\b(?:she|he|her|his|him|hers|they|them|their|it|its|this|that|those|these|there|then"
    r"|er|ihr|ihre[mnrs]?|sein|seine[mnrs]?|ihm|ihn|ihnen|davon|dort|dazu|damals"
    r"|ella|ellos|ellas|eso|esa|ese|alli|il|elle|ils|elles|lui|leurs?|cela|ca)\b"
)
_ALL = re.compile(r"\b(?:each|every|everyone|everybody|all|jede[rsn]?|allen?|cada|tod[oa]s|chaque|tous|toutes)\b")
# The commonest words of a language that it shares with none of the others.
_COMMON_WORDS = {
    "en": "the of and is to were what which how who did does do we our for with when where why are been has had",
    "de": "der das und ist wie wer wo wir nicht mit von im bei zum zur haben hat wurde warum welche eine fur auf sind",
    "es": "el los las que y es cuanto cuanta por se del como cuando quien cual hay una con fue son este esta",
    "fr": "le les et est qui dans du des quand pourquoi combien quel quelle une avec sur ont sont cette aux par",
}
_LANGUAGES = {language: frozenset(listed.split()) for language, listed in _COMMON_WORDS.items()}
# Where one question of a message ends and the next begins.
_PARTS = re.compile(r"[,;?] (?:and|und|y|et|e) |\? ", re.IGNORECASE)
_LEAST_WORDS = 3


class VaultQuestion(Struct, frozen=True):
    text: str
    terms: tuple[str, ...]
    """The words that carry the topic, as the index writes them."""
    kinds: tuple[AnswerKind, ...] = ()
    is_only_kind: bool = False
    """Whether every part of it asks for one of these kinds."""
    wants_all: bool = False
    """Whether it asks about each of several."""
    asks: bool = False
    """Whether it is a question, and not something that the user tells."""


def parse_question(text: str) -> VaultQuestion:
    terms = tuple(term.removesuffix("*") for term in query_terms(text))
    topical = tuple(term for term in terms if term not in _ASKING) or terms
    parts = [_kinds(part) for part in _split(text)]
    kinds = tuple(dict.fromkeys(kind for part in parts for kind in part))
    wants_all = _ALL.search(normalize_text(text)) is not None
    return VaultQuestion(text, topical, kinds, all(parts), wants_all, _ASKS.search(text.lower()) is not None)


def question_parts(question: VaultQuestion) -> list[VaultQuestion]:
    """The questions that a message asks at once, where each has words of its own; else the whole."""
    parts = [parse_question(part) for part in _split(question.text)]
    return parts if len(parts) > 1 and all(len(part.terms) > 1 for part in parts) else [question]


def language_of(text: str) -> str:
    """One of four languages, by its commonest words; empty for any other and where too little is said."""
    found = words(text)
    counts = {language: sum(word in common for word in found) for language, common in _LANGUAGES.items()}
    first, second = sorted(counts, key=lambda language: -counts[language])[:2]
    return first if counts[first] > counts[second] else ""


def leans_on_earlier(text: str) -> bool:
    """Whether a message is understood only with what was said before it: "And when was she renamed?"."""
    return _LEANS.search(normalize_text(text)) is not None or len(parse_question(text).terms) < 2


def _split(text: str) -> list[str]:
    return [part for part in _PARTS.split(text) if len(part.split()) >= _LEAST_WORDS] or [text]


def _kinds(part: str) -> list[AnswerKind]:
    plain = " ".join(normalize_text(part).split())
    found = [kind for kind, pattern in _KINDS.items() if pattern.search(plain)]
    is_money = "number" in found and _MONEY_ASKED.search(plain)
    return ["money" if kind == "number" and is_money else kind for kind in found]
