"""Traces: what of a text can be recognised in another: its n-grams, and the weighted terms of each sentence."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from recto.search.terms import STOP_WORDS, word_forms, words

_COMMON = """
    ability able above according across actual add after again against ago agree ahead all allow allowed almost
    along already also am although always among amount another answer any anyone anything apart appear around ask
    asked available away back bad based become before begin behind below beside besides best better between beyond
    big bit book both bring build call called cannot care careful carry case certain chance change check choose
    clear close closed come common complete consider contain copy correct cost course create current cut data date
    day days deal decide default depend detail different difficult direct do does doing done down during each early
    easy either else end enough ensure especially even ever every everyone everything exact example except exist
    expect explain extra fact far fast feel few file fill final find fine finish first fit follow following form
    former forward found four free full further gain general get give given go goes going good great group grow had
    half hand handle happen happy hard having help here high hold home hope hour how however idea important include
    including increase indeed information inside instead into issue item itself job keep kind know known large last
    late later latest lead learn least leave left less let level life like likely line list little live long longer
    look lot low main make making many matter may maybe mean means might mind minute miss moment month more most
    move much must name near need needed needs never new next nice night none normal note nothing now number off
    often okay old once one only onto open option order other others otherwise out over own page part pass past
    people per perhaps person pick place plan please point possible present pretty probably problem process provide
    put question quick quickly quite rather read ready real really reason recommend remember remove request require
    rest result return right round run said same save say second see seem send sense separate set several shall
    shape short show side similar simple simply since single size slow small some someone something sometimes soon
    sorry sort start state stay step still stop such suggest support sure system take tell term test text thank
    thanks then there therefore thing things think though through time times today together told tomorrow tonight
    top total toward try turn type under understand unless until update upon use used useful user using usual
    usually value various version via view wait want way week welcome well whatever whenever whether while whole
    wide wish within without wonder word work works world worth write wrong year yes yet
    auch auf aus bei bis bitte dann denn doch dort durch erst etwa etwas fur ganz gern gibt gut haben habe hat hier
    immer ins jede jeden jeder jetzt kann kannst konnen lange mal man mehr mit muss nach nein neu noch nun nur ob
    ohne schon sehr sein seine seit so sollte uber um unter viel vom von vor war warum weil wenn werden wieder wird
    wollen zum zur
    alors apres aussi autre avant bien bonjour car cela chez comme comment deux donc elles encore entre etre faire
    fait faut ici jamais jour jours juste leurs meme merci moins nos notre peu peut plus pour pouvez quel quelle
    quoi sans selon sera si sous souvent suis tous tout toute toutes tres trop voici votre vos
    ademas ahora algo antes aqui asi aunque bien cada casi cual desde despues dia dias dos entonces entre eres es
    ese esos estan estar gracias hacer hasta hay hoy mas mejor menos mismo mucho muchas nada ni nos nuestro otra
    otro parece poco porque puede puedes pues quien sea ser si siempre sin sobre solo son tambien tan tanto tener
    tiene todo todos usted vez"""
_UNITS = """
    cent centimetre cm degree dollar euro foot gb gram hz inch kb kg kilo kilogram kilometre km litre mb metre meter mg
    mile millimetre ml mm ms percent pound sec seconds minutes hours days weeks months years tb ton watt
    minuten stunden tage wochen monate jahre euros minutes heures semaines mois minutos horas semanas meses"""
COMMON_WORDS = frozenset((_COMMON + _UNITS).split()) - STOP_WORDS

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_SMALL.split())} | {
    word: str(value) for value, word in zip(range(20, 110, 10), _TENS.split(), strict=True)
}
"""So that "thirty seconds" matches "30 seconds"."""

_FAMOUS = """
    github gitlab javascript typescript postgresql mysql sqlite mongodb graphql openai chatgpt youtube linkedin macos
    ios ipados iphone ipad ebay devops pypi numpy pytorch tensorflow latex readme.md package.json requirements.txt
    pyproject.toml dockerfile makefile index.html main.py __init__ __init__.py __repr__ __eq__ __main__ wi-fi user_id
    read_text node.js vue.js next.js asp.net oauth2 http/1.1 http/2 sha256 sha-256 utf-8 utf8 ipv4 ipv6 base64 mp3 mp4
    h264 3d 2d a4 b2b b2c covid-19 c++17 python3 e.g i.e a.m p.m u.s 1st 2nd 3rd 4th example.com http://localhost
    localhost --help --version --force --json --all --verbose --quiet --output --dry-run --yes"""
WELL_KNOWN_NAMES = frozenset(_FAMOUS.split())
"""Spelled like a special name, but known to everyone."""


NGRAM_SIZE = 6
"""This many shared words in a row are no coincidence, unless all of them are common."""
SPECIAL_WEIGHT = 2.5
"""The weight of a spelling that two texts hardly share by chance."""
ADDRESS_WEIGHT = 4.0
WORD_WEIGHT, NAME_WEIGHT, COMMON_WORD_WEIGHT, NUMBER_PAIR_WEIGHT = 1.0, 1.4, 0.3, 0.6

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_`]*\s+|(?<=[。！？])|\n+")
_TOKEN = re.compile(r"[^\s`\"'“”‘’«»()\[\]{}<>,;|*=!?…。！？、，：；「」]+(?:[,.:]\d+)*")
_NUMBER = re.compile(r"[€$£]?\d+(?:[.,:]\d+)*[€$£%]?")
_CODE_NAME = re.compile(r"[a-z][A-Z]|\w_\w|\w::\w|^--\w[\w-]+$|^[A-Z]{2,}-[A-Z0-9]+$|^#\w[\w-]+$")
_PATH = re.compile(r"^(?:~?\.?/)[\w.-]+|\w/[\w.-]+/\w|\w\.(?:py|md|toml|json|ya?ml|txt|csv|js|ts|sh|sql|html|cfg|ini)$")
_LITERAL = re.compile(r"[\"“«„]([^\"“”«»„\n]{4,80})[\"”»]|`([^`\s]+(?: [^`\s]+)+)`")
_KANA = re.compile("^[\u3040-\u30ff]+$")
_COMMON_PAIR = re.compile(
    "[的了是在我你他她它们这那有和不一个会可以您请很也都就为与或及吗呢吧啊]|니다|습니|합니|입니|에서|으로|해야|하는"
)
_THAI = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


class TracedSentence(Struct, frozen=True):
    text: str
    terms: Mapping[str, float]
    """The weight of each term."""
    weight: float
    is_joined: bool = False
    """It consists of two neighbouring sentences."""


class Traces(Struct, frozen=True):
    sentences: tuple[TracedSentence, ...]
    occurrences: Mapping[str, tuple[int, ...]]
    """The indexes of the sentences that contain a term."""
    ngrams: frozenset[str]
    literals: frozenset[str]
    """Texts in quotation marks or in code: a reply would repeat them verbatim."""


@lru_cache(maxsize=128)
def extract_traces(text: str) -> Traces:
    """Cached, because a source is in one window after another."""
    text_words = tuple(words(text))
    sentences = tuple(trace_sentences(text))
    occurrences: dict[str, list[int]] = {}
    for index, sentence in enumerate(sentences):
        for term in sentence.terms:
            occurrences.setdefault(term, []).append(index)
    literals = frozenset(" ".join(words(quoted or code)) for quoted, code in _LITERAL.findall(text))
    by_term = {term: tuple(indexes) for term, indexes in occurrences.items()}
    return Traces(sentences, by_term, frozenset(ngrams(text_words)), literals)


def ngrams(text_words: tuple[str, ...]) -> list[str]:
    return [" ".join(text_words[start : start + NGRAM_SIZE]) for start in range(len(text_words) - NGRAM_SIZE + 1)]


def trace_sentences(text: str) -> Iterator[TracedSentence]:
    for part in _SENTENCE_END.split(text):
        if part and (terms := weigh_terms(part)):
            yield TracedSentence(part.strip(), terms, sum(terms.values()))


def join_sentences(first: TracedSentence, second: TracedSentence) -> TracedSentence:
    terms = {**first.terms, **second.terms}
    return TracedSentence(f"{first.text} {second.text}", terms, sum(terms.values()), is_joined=True)


# -- terms and their weights


def weigh_terms(sentence: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    previous = ""
    for index, token in enumerate(_TOKEN.findall(sentence)):
        terms = _token_terms(token, index > 0 and token[:1].isupper())
        for term, weight in terms:
            if weight > weights.get(term, 0.0):
                weights[term] = weight
        first = terms[0][0] if terms else ""
        # "30 seconds" tells more than "30" and "seconds" apart
        if first and previous[:1].isdigit():
            weights[f"{previous} {first}"] = NUMBER_PAIR_WEIGHT
        previous = first
    return weights


@lru_cache(maxsize=16384)
def _token_terms(token: str, is_name: bool) -> tuple[tuple[str, float], ...]:
    bare = _strip_punctuation(token)
    special = {part.casefold(): weight for part in _split_dotted(bare) if (weight := _special_weight(part))}
    return tuple(special.items()) or tuple(_word_term(word, is_name) for word in words(bare))


def _strip_punctuation(token: str) -> str:
    return token.rstrip(".:") if token.startswith("--") else token.strip(".-").rstrip(":/")


def _split_dotted(token: str) -> list[str]:
    """Splits a qualified name such as `orders.due_on`: each part is a term of its own."""
    dotted = re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", token)
    return token.split(".") if dotted and not _PATH.search(token) else [token]


def _special_weight(token: str) -> float:
    """The weight of an address, a number or an unusual spelling; 0 for a word."""
    if "://" in token or re.fullmatch(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", token):
        return ADDRESS_WEIGHT if len(token) > 12 and token.casefold() not in WELL_KNOWN_NAMES else WORD_WEIGHT
    if _NUMBER.fullmatch(token):
        return _number_weight(token)
    if not token.isascii():
        return 0.0
    is_mixed = any(char.isdigit() for char in token) and any(char.isalpha() for char in token)
    if _CODE_NAME.search(token) or _PATH.search(token) or is_mixed:
        if token.casefold() in WELL_KNOWN_NAMES:
            return COMMON_WORD_WEIGHT
        return SPECIAL_WEIGHT if len(token) > 3 else WORD_WEIGHT
    return 0.0


def _number_weight(number: str) -> float:
    """More digits weigh more; years and round numbers less, because they are everywhere."""
    digits = sum(char.isdigit() for char in number)
    if any(char in ".:," for char in number[1:-1]):
        return 2.0 if digits > 2 else 1.5
    if digits >= 4:
        return 1.4 if re.match(r"(?:19|20)\d\d$", number) else 2.0
    return (0.2, 0.3, 0.7, 0.7 if number.endswith("0") else 1.2)[digits]


def _word_term(word: str, is_name: bool) -> tuple[str, float]:
    if not word.isascii() and (weight := _unspaced_weight(word)):
        return word, weight
    if word in STOP_WORDS or (len(word) == 1 and word.isascii()):
        return word, 0.0
    if word in NUMBER_WORDS:
        return NUMBER_WORDS[word], _number_weight(NUMBER_WORDS[word])
    if word.isdigit():
        return word, _number_weight(word)
    stem = rough_stem(word)
    if word in COMMON_WORDS or stem in _common_stems():
        return stem, COMMON_WORD_WEIGHT
    return stem, NAME_WEIGHT if is_name else WORD_WEIGHT


@lru_cache(maxsize=1)
def _common_stems() -> frozenset[str]:
    return frozenset(map(rough_stem, COMMON_WORDS))


def _unspaced_weight(pair: str) -> float:
    """The weight of a pair of characters in a script without spaces; 0 in scripts with spaces."""
    if _THAI.match(pair):
        return 0.25
    if "\u3040" <= pair[0] <= "\u30ff" or "\u3400" <= pair[0] <= "\u9fff" or "\uac00" <= pair[0] <= "\ud7af":
        return 0.05 if len(pair) == 1 else 0.15 if _KANA.match(pair) else 0.2 if _COMMON_PAIR.search(pair) else 0.6
    return 0.0


@lru_cache(maxsize=8192)
def rough_stem(word: str) -> str:
    """What the forms of a word have in common. Roughly: the stems of two texts are only compared with each other."""
    group = word_forms(word)
    if len(group) > 1:
        return min(group)
    for ending, replacement, min_length in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= min_length:
            return _undouble(word.removesuffix(ending) + replacement)
    return word.removesuffix("e") if len(word) > 3 else word


_ENDINGS = (
    ("ies", "y", 3),
    ("ied", "y", 3),
    ("sses", "ss", 2),
    ("ingly", "", 4),
    ("ings", "", 3),
    ("ing", "", 3),
    ("edly", "", 4),
    ("ed", "", 3),
    ("ss", "ss", 1),
    ("us", "us", 1),
    ("is", "is", 1),
    ("es", "", 3),
    ("s", "", 3),
    ("ly", "", 4),
)


def _undouble(stem: str) -> str:
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] in "bdgmnprt":
        return stem[:-1]
    return stem.removesuffix("e") if len(stem) > 3 else stem


def phrase_weight(phrase: tuple[str, ...]) -> float:
    """The weight of all different words."""
    return sum(_word_term(word, False)[1] for word in dict.fromkeys(phrase))


def is_common_phrase(phrase: tuple[str, ...]) -> bool:
    """Whether all words are common ones."""
    return all(word.isascii() and _word_term(word, False)[1] <= COMMON_WORD_WEIGHT for word in phrase)


def term_of(word: str) -> str:
    return _word_term(word, False)[0]
