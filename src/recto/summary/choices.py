"""Choices: what a reply lists to choose from, and which of it the user takes by its place ("the second one"); and what
the user asks about ("train or car?") and then takes himself.

Knows a list and the sentence that answers it. An option that the sentence names counts before a place.
"""

import re
from collections.abc import Sequence

from recto.chat.cues import SMALL_WORDS
from recto.summary.sentences import IS_UNSPACED, is_question, sentences, terms, word_set
from recto.text import LazyPattern, text_cache

_ITEM = re.compile(r"^[ \t]*(?:\*\*)?(\d{1,2}[.)]|[A-H][.)]|[a-h]\)|[-*•])(?:\*\*)?[ \t]+(?=\S)(.*\S)", re.MULTILINE)
_MIN_OPTIONS, _MAX_OPTIONS = 2, 12
_ORDINALS = (
    r"first|1st|erste\w?|primer[oa]?|premi(?:er|ère)|eerste|pierwsz[aąey]\w?|prim[oa]|primeir[oa]",
    r"second[oa]?|2nd|zweite\w?|segund[oa]|deuxième|seconde|tweede|drug[aąi]",
    r"third|3rd|dritte\w?|tercer[oa]?|troisième|derde|trzeci[aą]?|terz[oa]|terceir[oa]",
    r"fourth|4th|vierte\w?|cuart[oa]|quatrième|vierde|czwart[aąy]|quart[oa]",
    r"fifth|5th|fünfte\w?|quint[oa]|cinquième|vijfde|piąt[aąy]",
)
_LAST = r"last|letzte\w?|últim[oa]|derni(?:er|ère)|laatste|ostatni[aą]?|ultim[oa]"
_ARTICLES = "the|die|der|das|den|dem|el|la|le|de|het|il|lo|o|a|ta|ten|tę|to|biorę|wybieram"
_OPTION = (
    r"one|options?|variante?|opci[oó]n|opcj[aę]|wariant|opzione|proposta|opção|optie|keuze|choix|propuesta|wersj[aę]"
)
_ORDINAL = rf"(?:({_LAST})|{'|'.join(f'({word})' for word in _ORDINALS)})\b"
_BY_ORDINAL = re.compile(
    rf"(?:\b(?:{_ARTICLES}) |^(?=\w+ (?:{_OPTION})\b|\w+[.!]*$)){_ORDINAL}",
    re.IGNORECASE,
)
_MIDDLE = re.compile(
    r"(?:\b(?:the|die|das|den|der) )(?:middle|mittlere\w?)\b|\bde middelste\b|\b(?:el|la) (?:de(?:l)?(?: en)? medio"
    r"|central)\b|\b(?:celle|celui|l['’]option) du milieu\b|\bquell[ao] (?:di|in) mezzo\b|\b[oa] do meio\b"
    r"|\bśrodkow[aąy]\b|真ん中",
    re.IGNORECASE,
)
_BY_NUMBER = re.compile(
    r"(?:\b(?:option|number|variant|plan|nummer|nr|variante|opción|número|numéro|optie|opcja|numer|opzione"
    r"|opção)\.? |#)"
    r"(\d|[A-H]\b)(?!\w|[.,:]\d)|(?<![\d十])([\d一二三四五])(?:番|つ目)",
    re.IGNORECASE,
)
_IT_IS = re.compile(r"(?<!\w)([1-9a-hA-H]) it is\b")
_OPENS = (
    r"(?:(?:hm+|ok(?:ay)?|so|yes|definitely|i['’]d (?:say|take)|let['’]s (?:do|take|go with)|ja|also|dann|nehmen wir"
    r"|sí"
    r"|pues|entonces|oui|donc|alors|dan|doe maar)[,.]? )?(?:(?:la|el|die|das|le|de|the) )?"
)
# a small "a" is an article, and "e" a conjunction
_PLACE = r"(?:\d|[A-H]|[bcfg])"
_LISTED = re.compile(
    rf"{_OPENS}({_PLACE}(?:(?:, ?| ?& ?| (?:and|und|y|et) ){_PLACE})*)"
    r"(?=[.,;!)]*$|[,;!)] |\. (?=\D)"
    r"| (?:only|please|then|sounds?|looks?|are|but|bitte|dann|nur|aber|solo|pero|seulement|mais"
    r"|por favor|per favore|proszę|graag)\b)"
)
_DECLINES = re.compile(
    r"(?:not|no|nicht|nein|pas|non|neither|anything but|definitely not|kein\w*|niet|geen|nie|não|ni)\b", re.IGNORECASE
)
# What is praised first and then refused is not taken: "the second is cheap but no".
_REFUSES = re.compile(
    r"\b(?:but|aber|pero|mais|maar|ale|ma|mas) (?:no|nein|non|nee|nie|not|too|zu|trop|te|za|troppo|não)\b",
    re.IGNORECASE,
)
_MAX_CHOICE = 120
_INLINE = re.compile(r"(?:(?<=[\s(])|^)(?:([1-9])[.)]|([A-Ha-h])\)) (?=[^\W\d_\"“„*])")
_SECOND_MARKS = ("2. ", "2) ", "b) ", "B) ")
_ITEM_END = re.compile(r"[.!?] |\n|$")
_BEFORE_NEXT = re.compile(r",? (?:or|oder|ou|o|of|lub|albo|and|und|y|et|e|en|i)$")
# What a reply offers beside its list has no place in it.
_BESIDE = LazyPattern(
    r"(?i)(?:another (?:option|way|idea)|alternatively|you could also|one more|or you could|eine weitere|alternativ"
    r"|(?:du|man|sie) könnte\w* auch|otra opción|también podrías|une autre|sinon|tu pourrais aussi|een andere"
    r"|je kunt ook"
    r"|inna opcja|możesz też)\b",
)
_EAST_ASIAN_DIGITS = "一二三四五"
_MIN_NAMING = 4
# Who names one option and says no more than this takes it.
_MAX_NAMED = 60
_TAKING = (
    SMALL_WORDS
    | word_set(
        "one option then take taking takes want choose pick with for go going let's we i i'll we'll we're i'd "
        "please like  rather prefer definitely  nehme nehmen nimm wir ich dann bitte lieber doch die den das "
        "der el la los las un una me nos quedo quedamos con  mejor prefiero cojo entonces le les l je on "
        "prends prend prenons préfère plutôt alors de het een we ik nemen neem  toch liever maar dan graag "
        "doe il lo i gli prendo prendiamo preferisco meglio allora per favore quella quello  a o os as fico "
        "ficamos quero prefiro então por favor to ten ta tę biorę bierzemy wolę wybieram proszę jednak  might "
        "actually well "
    )
) - word_set("no not never don't too kein")
_NAMED_TAIL = re.compile(r"(?:を|で|が|に|の方)?(?:お願いします|いいです|します|決めました|しましょう)?[。！!]*$")
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
    marks = list(_INLINE.finditer(text)) if any(mark in text for mark in _SECOND_MARKS) else []
    if len(marks) < _MIN_OPTIONS or [_place(mark[1] or mark[2]) for mark in marks] != list(range(len(marks))):
        return []
    ends = [mark.start() for mark in marks[1:]]
    last = _ITEM_END.search(text, marks[-1].end())
    ends.append(last.start() if last else len(text))
    return [_BEFORE_NEXT.sub("", text[mark.end() : end].strip(" ,;(")) for mark, end in zip(marks, ends, strict=True)]


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
    if _MIDDLE.search(reply):
        return (listed_in // 2,) if listed_in % 2 else ()
    places = [_ordinal(found, listed_in) for found in _BY_ORDINAL.finditer(reply)]
    places = places or [_place(found[1] or found[2]) for found in _BY_NUMBER.finditer(reply)]
    places = places or [_place(found[1]) for found in _IT_IS.finditer(reply)]
    # only options have capitals here: "Ok, B then", but not "A friend said so"
    said = reply[:1].lower() + reply[1:] if reply[1:2].islower() else reply
    if not places and (listed := _LISTED.match(said)):
        places = [_place(place) for place in re.findall(rf"\b{_PLACE}\b", listed[1])]
    if not places:
        return _only_named(reply, options)
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


def _only_named(reply: str, options: Sequence[str]) -> tuple[int, ...]:
    """The option that a short sentence names, if that is all it says: "the larch then"."""
    if len(reply) > _MAX_NAMED:
        return ()
    if not reply.isascii() and IS_UNSPACED.search(reply):
        core = _NAMED_TAIL.sub("", reply)
        held = [at for at, option in enumerate(options) if len(core) > 1 and core in option]
        return tuple(held) if len(held) == 1 else ()
    said = {word for word in terms(reply) if word not in _TAKING}
    held = [at for at, option in enumerate(options) if said and said <= terms(option)]
    is_named = any(len(word) >= _MIN_NAMING and word.isalpha() for word in said)
    return tuple(held) if is_named and len(held) == 1 else ()


def _ordinal(found: re.Match[str], options: int) -> int:
    return options - 1 if found[1] else next(at for at, word in enumerate(found.groups()[1:]) if word)


def _place(written: str) -> int:
    if written in _EAST_ASIAN_DIGITS:
        return _EAST_ASIAN_DIGITS.index(written)
    return int(written) - 1 if written.isdigit() else ord(written.upper()) - ord("A")


# -- between what the user himself has named

_OR = r"or|oder|o|ou|of|lub|albo|czy|oppure"
_HAS_OR = re.compile(rf"\b(?:{_OR})\b|それとも", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*[,;/]\s*(?:(?:{_OR})\s+)?|\s+(?:{_OR})\s+|、?それとも", re.IGNORECASE)
_MAX_ASKED, _MAX_TAKEN, _LAST_WORDS, _MIN_RUN = 160, 60, 2, 2
_QUESTION_END = re.compile(r"(?:がいい|ですか|ますか|か)?[?？\s]*$")


@text_cache(2048)  # the summary and the ledger ask
def asked_alternatives(text: str) -> tuple[str, tuple[str, ...]]:
    """The question of a text that names what to choose from, and that: "Paella or stew?"; empty if it has none."""
    for sentence in reversed(sentences(text)):
        if len(sentence) <= _MAX_ASKED and is_question(sentence) and _HAS_OR.search(sentence):
            found = _BETWEEN.split(_QUESTION_END.sub("", sentence.partition(": ")[2] or sentence))
            options = (" ".join(found[0].split()[-_LAST_WORDS:]), *found[1:])
            if all(options) and _MIN_OPTIONS <= len(options) <= _MAX_OPTIONS:
                return sentence, options
    return "", ()


def takes_alternative(reply: str, options: Sequence[str]) -> bool:
    """Whether a few words take one of the alternatives that the user asked about, and only one."""
    if len(reply) > _MAX_TAKEN or is_question(reply) or _DECLINES.match(reply) or _REFUSES.search(reply):
        return False
    if not reply.isascii() and IS_UNSPACED.search(reply):
        return sum(len(option) >= _MIN_RUN and option in reply for option in options) == 1
    said = terms(reply) - SMALL_WORDS
    found = [said & terms(option) for option in options]
    return sum(bool(words.difference(*found[:at], *found[at + 1 :])) for at, words in enumerate(found)) == 1
