"""VaultQuestion: what a message asks: the words and days that carry its topic, and the kind of answer it wants.

The kinds (a name, date, number, price or reason), requests, verbs and messages that lean on earlier ones are known in
English, German, Spanish and French. Patterns read text without capitals and accents.
"""

import unicodedata
from collections import Counter
from datetime import date
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from recto.search.terms import STOP_WORDS, normalize_text, query_terms, words
from recto.text import LazyPattern
from recto.vault.note_dates import Day, day_of_term, is_day_term, take_days
from recto.vault.unspaced_question import is_inflected, without_asking

AnswerKind = Literal["name", "date", "number", "money", "reason"]

# Words that say which kind of answer is wanted, not what it is about.
_ASKING_WORDS = """
    anyone anybody tell say know mean please give show find list name kind much many often let lets got get there here
    any some must shall may might each every all both everyone everybody us per since whom happen happened happens
    viel viele oft gibt welche welcher welches welchem welchen wieviel wieviele bitte sag zeig lautet heisst hat haben
    hatte die den von vom im am an auf aus bei fur mit nach vor war waren wird wurde wurden werden kann darf durfen
    jede jeder jedes jeden alle allen diesem diesen dieser dieses diese seit pro statt passiert passierte geschah
    geschieht warum wieso weshalb woher wohin womit
    cuanto cuanta cuantos cuantas quien quienes cual cuales donde dime hay es son fueron tiene al con cada todos todas
    este esta desde paso ocurrio
    combien quel quelle quels quelles quoi dis etait fait faut chaque tous toutes
    depuis passe pourquoi"""
_ASKING = frozenset(_ASKING_WORDS.split())
# They may stand in the answer ("10.4 metres long") as well as not ("80 minutes", "4.20 a loaf").
_MEASURE_WORDS = """
    long old far deep high tall wide big large fast heavy lang lange alt weit hoch tief gross breit schnell schwer
    largo alto lejos grande rapido pesado longtemps loin haut profond grand vite lourd
    cost costs charge charges charged pay paid money kostet kosten kostete geld cuesta cuestan costo dinero coute
    coutent argent"""
MEASURES = frozenset(_MEASURE_WORDS.split())
_NUMBER_ASKED = LazyPattern(
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
_MONEY_ASKED = LazyPattern(
    r"\b(?:costs?|price|charged?|pay|paid|spend|spent|fee|worth|kost\w*|preis|bezahl\w*|ausgegeben|cuesta\w*|costo|precio"
    r"|pag\w+|gast\w+|coute\w*|prix|pay\w*)\b"
)
_DATE_ASKED = LazyPattern(
    r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time)\b|\bwann\b|\bwelche[msnr]? (?:jahr|datum|tag|monat)\b"
    r"|\bcuando\b|\b(?:que|cual) (?:ano|dia|mes|fecha)\b|\bquand\b|\bquel(?:le)? (?:annee|date|jour|mois)\b"
)
_NAME_ASKED = LazyPattern(r"\bwho(?:m|se)?\b|\bwe(?:r|n|m|ssen)\b|\bquien(?:es)?\b|(?:^|\b(?:a|de|avec|pour) )qui\b")
_REASON_ASKED = LazyPattern(r"\bwhy\b|\bwhat for\b|\bwarum\b|\bwieso\b|\bweshalb\b|\bpor que\b|\bpourquoi\b")
_KINDS: dict[AnswerKind, LazyPattern] = {
    "number": _NUMBER_ASKED,
    "date": _DATE_ASKED,
    "name": _NAME_ASKED,
    "reason": _REASON_ASKED,
}
_ASKS = LazyPattern(
    r"[?？؟¿]|^\W*(?:(?:and|und|y|et) )?"
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|tell|explain|list|show|find"
    r"|wer|wen|wem|was|wann|wo|warum|wieso|welche\w*|wie|gibt|qui|quoi|quand|où|quel\w*|pourquoi|comment|combien"
    r"|quién\w*|qué|cuándo|dónde|cuál\w*|cómo|cuánt[oa]s?)\b"
)
# "I want to know who …", "Tell me about …": what follows is asked.
_REQUESTS = (
    r"(?:(?:can|could|would|will) you (?:please )?)?(?:tell|show|give|remind) (?:me|us)\b",
    r"i(?:'d| would)? (?:want|need|like|love|wish|have) to (?:know|see|hear|find out|learn)",
    r"i(?:'m| am)? (?:wonder|wondering|curious|interested)|do you know|any idea",
    r"(?:kannst|konntest|wurdest) du (?:mir|uns)|(?:sage?|erzahle?|zeige?|nenne?|gib|verrate?|erklare?) (?:mir|uns)",
    r"ich (?:mochte|will|wurde gerne?|wusste gerne?|muss)(?: gerne?)? (?:wissen|sehen|horen)|weisst du|ich wusste gern",
    r"dime|dinos|cuentame|muestrame|ensename|explicame|(?:me )?(?:puedes|podrias) (?:decir|contar|mostrar)(?:me)?",
    r"(?:quiero|quisiera|necesito|me gustaria) saber|sabes|je (?:veux|voudrais|aimerais) savoir|sais[- ]tu",
    r"(?:dis|dites|raconte|montre|parle|explique)[- ](?:moi|nous)",
)
_REQUEST = LazyPattern(rf"^\W*(?:(?:please|bitte|por favor|s'il (?:te|vous) plait)\W+)?(?:{'|'.join(_REQUESTS)})\b")
# What a model is to do, by itself or with what the notes say.
_TASK = LazyPattern(
    r"^\W*(?:(?:please|bitte|can you|could you|kannst du|puedes|peux-tu)\W+)*(?:"
    r"write|compose|draft|translate|summari[sz]e|recommend|suggest|invent|calculate|compute|solve|rewrite|imagine|brainstorm"
    r"|schreibe?|dichte|ubersetze?|fasse?|empfiehl|berechne|rechne|erfinde|schlage?|escribe|traduce|resume|recomienda|calcula"
    r"|inventa|ecris|ecrivez|traduis|resume[rz]?|recommande|calcule|propose)\b"
    r"|\b(?:joke|poem|haiku|limerick|witz|gedicht|chiste|poema|blague|poeme)\b"
)
# "17*23", "12% of 80".
_ARITHMETIC = LazyPattern(
    r"\d ?(?:[*×x^÷=]|\+|(?<= )-|(?<= )/|(?:times|plus|minus|mal|geteilt durch|divided by|por|fois) ) ?\(?\d"
    r"|\d ?(?:%|percent|prozent|por ciento|pour ?cent) (?:of|von|de) \d"
)
_ABOUT_NOTES = LazyPattern(
    r"\b(?:my|these|the|all|our|your|this|meine?[nr]?|unsere?[nr]?|alle|diese[rnm]?|der|den|die|mis|las|los|nuestras|este|esta"
    r"|mes|les|nos|ce|cette) (?:\w+ )?(?:notes?|vault|notizen|notiz|notas|apuntes|notes)\b"
)
# The verb of a question, which an answer may have another word for: "Who supplies the milk?", "Milk comes from …".
_VERBS = LazyPattern(
    r"\bwho (\w+)"
    r"|\b(?:do|does|did|can|could|may|must|should|will|would) (?:we|i|you|they|he|she|it|one|anyone|somebody) (\w+)"
    r"|\b(?:do|does|did) (?:(?:the|our|my|your|his|her|their|a|an) )?(?:\w+ ){1,2}(\w+)\W*$"
    r"|\bquien(?:es)? (?:(?:se|nos|me|le|lo|la|no|ha|han) )*(\w+)"
    r"|(?:^|[¿ ])(?:donde|cuando|como|por que) (?:(?:se|nos|me|le|lo|la|no|ha|han|hemos) )*(\w+)"
    r"|(?:^|\b(?:a|de|avec|pour) )qui (?:(?:se|nous|me|le|la|les|ne|a|ont) )*(\w+)"
    r"|\b(?:ou|quand|pourquoi) (?:(?:se|nous|on|a|ont|avons) )*(\w+)"
)
_CATEGORY = LazyPattern(r"\b(?:which|what|welche[mnrs]?|que|cual|quels?|quelles?)(?: kind of| sort of)? (\w+)")
# "last year" says when, and no note says it.
_SOME_TIME_AGO = LazyPattern(
    r"\b(?:last|this|next) (?:year|month|week)\b|\b(?:letzte|diese|nachste)[nrs]? (?:jahr|monat|woche)\b"
    r"|\b(?:ano|mes|semana) pasad[oa]\b|\b(?:annee|mois|semaine) (?:derniere?|passee?)\b"
)
# Who asks so wants to know what was before.
_PAST = LazyPattern(
    r"\b(?:before|earlier|previous(?:ly)?|former(?:ly)?|original(?:ly)?|first|used to|old|initially|vorher|fruher"
    r"|ursprunglich|zuerst|ehemal\w+|antes|original|primero|avant|ancien\w*|d'abord|premier)\b"
)
# Words of one of these languages that mean something in another.
_FOREIGN_STOP = {"de": frozenset(("man", "die", "war", "also"))}
_LEANS = LazyPattern(
    r"^\W*(?:and|und|y|et|but|aber|pero|mais|so|also|since when|seit wann|desde cuando|depuis quand|what about"
    r"|how about|was ist mit|que hay de|et pour)\b"
    r"|\b(?:she|he|her|his|him|hers|they|them|their|it|its|this|that|those|these|there|then"
    r"|er|ihr|ihre[mnrs]?|sein|seine[mnrs]?|ihm|ihn|ihnen|davon|dort|dazu|damals"
    r"|ella|ellos|ellas|eso|esa|ese|alli|il|elle|ils|elles|lui|leurs?|cela|ca)\b"
)
_ALL = LazyPattern(r"\b(?:each|every|everyone|everybody|all|jede[rsn]?|allen?|cada|tod[oa]s|chaque|tous|toutes)\b")
# The commonest words of a language that it shares with none of the others.
_COMMON_WORDS = {
    "en": "the of and is to were what which how who did does do we our for with when where why are been has had",
    "de": "der das und ist wie wer wo wir nicht mit von im bei zum zur haben hat wurde warum welche eine fur auf sind"
    " wann seit ich dem wem wen mein unser kann wird",
    "es": "el los las que y es cuanto cuanta por se del como cuando quien cual hay una con fue son este esta",
    "fr": "le les et est qui dans du des quand pourquoi combien quel quelle une avec sur ont sont cette aux par",
}
_LANGUAGES = {language: frozenset(listed.split()) for language, listed in _COMMON_WORDS.items()}
# Where one question of a message ends and the next begins.
_PARTS = LazyPattern(r"(?i)[,;?] (?:and|und|y|et|e) |\? ")
_LEAST_WORDS = 3
# Letters enough to tell a script.
_SAMPLE = 2_000
_WORDS = LazyPattern(r"[^\W\d_]+")
_SEVERAL = LazyPattern(
    r"\b(?:which|who|list|show|what are|welche|wer|zeige?|nenne?|liste|cuales|quienes|que \w+s|muestra|quels|quelles"
    r"|qui)\b"
)
_CALCULATING_WORDS = "times plus minus mal geteilt divided durch percent prozent equals sum calculate"
_CALCULATING = frozenset(_CALCULATING_WORDS.split())
_OVERVIEW_WORDS = """
    summary overview inside stand steht zusammen zusammenfassung uberblick contain contains enthalten inhalt geht
    resumen contenido dentro contenu sujet topic topics content contents everything say brief briefly kurz"""
_OVERVIEW = frozenset(_OVERVIEW_WORDS.split())


class VaultQuestion(Struct, frozen=True):
    text: str
    terms: tuple[str, ...]
    """The words that carry the topic, as the index writes them, and the days."""
    kinds: tuple[AnswerKind, ...] = ()
    is_only_kind: bool = False
    """Whether every part of it asks for one of these kinds."""
    wants_all: bool = False
    """Whether it asks about each of several."""
    asks: bool = False
    """Whether it is a question or a request to be told, and not something that the user tells."""
    verbs: frozenset[str] = frozenset()
    """Terms that an answer often has another word for."""
    category: str = ""
    """The term that says what kind of thing is asked for: "Which material …?". Answers often leave it out."""
    is_task: bool = False
    """Whether a model is to make something, such as a poem."""
    wants_several: bool = False
    """Whether the answer may be a list."""
    is_past: bool = False
    """Whether it asks for what was before."""
    language: str = ""
    compounds: frozenset[str] = frozenset()
    """Terms that count also as parts of longer words, and the other way round."""
    names: frozenset[str] = frozenset()
    """Terms with a capital inside of the question; none in German, where all nouns have one."""

    @property
    def days(self) -> tuple[Day, ...]:
        return tuple(day_of_term(term) for term in self.terms if is_day_term(term))

    @property
    def topics(self) -> frozenset[str]:
        """The terms that say what it is about, not what is done, or how much of it there is."""
        named = frozenset(self.terms) - self.verbs - MEASURES
        return named - {self.category} or named


def parse_question(text: str) -> VaultQuestion:
    return _parsed(text, date.today())


@lru_cache(maxsize=32)
def _parsed(text: str, today: date) -> VaultQuestion:
    plain = _plain(text)
    request = _REQUEST.match(plain)
    days, undated = take_days(plain[request.end() :] if request else text, today)
    undated = _SOME_TIME_AGO.sub(" ", _plain(undated)) if _SOME_TIME_AGO.search(plain) else undated
    language = language_of(text)
    terms = [term.removesuffix("*") for term in query_terms(without_asking(undated))]
    terms = [] if STOP_WORDS.issuperset(terms) else terms
    ignored = _ASKING | _FOREIGN_STOP.get(language, frozenset())
    topical = [term for term in terms if term not in ignored]
    topical += [day.term for day in days]
    parts = [_kinds(part) for part in _split(text)]
    return VaultQuestion(
        text,
        tuple(topical),
        tuple(dict.fromkeys(kind for part in parts for kind in part)),
        all(parts),
        _ALL.search(plain) is not None,
        request is not None or _ASKS.search(text.lower()) is not None,
        frozenset(_verbs(text, plain, language).intersection(topical)).union(filter(is_inflected, topical)),
        category[1] if (category := _CATEGORY.search(plain)) and category[1] in topical else "",
        _TASK.search(plain) is not None,
        _SEVERAL.search(plain) is not None,
        _PAST.search(plain) is not None,
        language,
        names=frozenset(_names(text) if language != "de" else ()).intersection(topical),
    )


def is_arithmetic(text: str) -> bool:
    """Whether a message asks for nothing but a calculation."""
    plain = " ".join(text.lower().split())
    named = {term for term in query_terms(plain) if not term.isdigit()} - _ASKING - _CALCULATING
    return _ARITHMETIC.search(plain) is not None and not named


def asks_for_overview(text: str) -> bool:
    """ "Summarize my notes": about all notes at once, and nothing else."""
    plain = _plain(text)
    if not _ABOUT_NOTES.search(plain) or not (
        _ASKS.search(text.lower()) or _REQUEST.match(plain) or _TASK.match(plain)
    ):
        return False
    return not set(query_terms(_TASK.sub(" ", _ABOUT_NOTES.sub(" ", plain)))) - _ASKING - _OVERVIEW - STOP_WORDS


def _plain(text: str) -> str:
    return " ".join(normalize_text(text).split())


def _verbs(text: str, plain: str, language: str) -> set[str]:
    """By its place in the question; in German by its small letter, because all nouns have capitals."""
    if language == "de":
        spelled = _WORDS.findall(text)
        if any(word[0].isupper() for word in spelled[1:]):
            return {part for word in spelled[1:] if word[0].islower() for part in words(word)}
    return {word for match in _VERBS.finditer(plain) for word in match.groups() if word} - STOP_WORDS


def _names(text: str) -> set[str]:
    return {part for word in _WORDS.findall(text)[1:] if word[0].isupper() for part in words(word)}


def question_parts(question: VaultQuestion) -> list[VaultQuestion]:
    """The questions that a message asks at once, where each has words of its own; else the whole."""
    parts = [replace(parse_question(part), compounds=question.compounds) for part in _split(question.text)]
    return parts if len(parts) > 1 and all(len(part.terms) > 1 for part in parts) else [question]


@lru_cache(maxsize=64)
def language_of(text: str) -> str:
    """One of four languages, by its commonest words; empty for any other and where too little is said."""
    found = Counter(words(text))
    counts = {language: sum(found[word] for word in common) for language, common in _LANGUAGES.items()}
    first, second = sorted(counts, key=lambda language: -counts[language])[:2]
    return first if counts[first] > counts[second] else ""


def written_in(text: str) -> str:
    """Its language if `language_of` knows that, else its script; empty for other languages in Latin letters."""
    letters = [sign for sign in text[:_SAMPLE] if sign.isalpha()]
    scripts = Counter(unicodedata.name(sign, "LATIN").split(" ", 1)[0] for sign in letters).most_common(1)
    return language_of(text) if not scripts or scripts[0][0] == "LATIN" else scripts[0][0]


def leans_on_earlier(text: str) -> bool:
    """Whether a message is understood only with what was said before it: "And when was she renamed?"."""
    question = parse_question(text)
    return _LEANS.search(normalize_text(text)) is not None or (len(question.terms) < 2 and not question.days)


def _split(text: str) -> list[str]:
    return [part for part in _PARTS.split(text) if len(part.split()) >= _LEAST_WORDS] or [text]


def _kinds(part: str) -> list[AnswerKind]:
    plain = " ".join(normalize_text(part).split())
    found = [kind for kind, pattern in _KINDS.items() if pattern.search(plain)]
    is_money = "number" in found and _MONEY_ASKED.search(plain)
    return ["money" if kind == "number" and is_money else kind for kind in found]
