"""Corrections: sentences that later ones take back, or repeat with another number. Does not know which are selected."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recto.summary.case_report import ARRIVAL
from recto.summary.sentences import IS_UNSPACED, terms, word_set
from recto.summary.source_lines import ScoredSentence, SentenceKey
from recto.summary.term_weights import CALENDAR, TermWeights, numeric_terms
from recto.text import text_cache

_CORRECTION = re.compile(
    r"\b(?:actually|instead|rather than|correct(?:ion|ed|s|ing)?|scratch that|wrong|mistake|misspoke|misread"
    r"|misc(?:ounted|alculated)|changed|moved"
    r"|postponed|no longer|on second thou?ght\w*|i meant?|not \w+,? but|no wait|wait|rescheduled|cancell?ed"
    r"|called off"
    r"|fell through|(?:rais|lower|increas|reduc|extend|shorten|mov|push|bump)\w* (?:\S+ ){0,6}(?:to|until|by)"
    r"|went (?:up|down) to|make (?:it|that) \d\S*|mach\w* \d\S* (?:draus|daraus)|que sean|mets-en|maak er"
    r"|stattdessen|doch lieber|doch|lieber|statt|korrektur|falsch|verschoben|geändert|nicht mehr"
    r"|sondern|ich meint?e|vertan|geirrt|quatsch|abgesagt|entfällt|planänderung|erhöht|gesenkt|gestiegen|verlängert"
    r"|(?:erhöh|senk|verschieb|verläng|kürz|änder)\w* .{0,60}\bauf"
    r"|plutôt|en fait|erreur|au lieu|finalement|reporté\w*|annulé\w*|je me suis trompée?"
    r"|passe(?:nt)? (?:de .{1,40} )?à"
    r"|foutje|correctie|rectificatie|vergist|verzet|verplaatst|toch (?:niet|maar)|niet (?:de )?\S+,? maar"
    r"|corrección|en realidad|en vez|en lugar|mejor|cambi\w+|equivo(?:c|qu)\w+|quise decir"
    r"|(?:sub|baj|aument|mov|aplaz|retras)\w+ a"
    r"|invece|anzi|correzione|spostat[oaie]|rimandat[oa]|annullat[oa]|slittan?o?|non più|sbagliat[oa]|zmiana|jednak"
    r"|zamiast|poprawka|pomyłka|przesuwa\w*|przesunię\w+|przełożon\w+|odwołan\w+|em vez|na verdade|aliás|correção"
    r"|mudança|mudou|adiad[oa]|cancelad[oa]|remarcad[oa]|afinal)\b"
    r"|\d[^.?!]{0,40}, (?:not|nicht|no|pas|non|nie|não|and not|und nicht|a nie|e não|non più)"
    r" (?:\w+ )?[€$£]?\d"
    r"|, (?:not|nicht|no|pas) (?:when|if|because|in|on|at|from|with|for|the|wenn|weil|im|am|mit|der|die|das|den"
    r"|cuando"
    r"|en|con|el|la|quand|avec|le|les)\b"
    r"|\d[^.?!]{0,24}, sorry\b|^sorry[,.:] |\d[^.?!]{0,30} after all\b|\bturns out\b|\bmixed \w+ up\b|\bverwechselt\b"
    r"|\bconfund\w+\b|\bconfondu\b|\bverwisseld\b|\bmeant to say\b|^ach nein\b"
    r"|\bi said [^.?!]{1,30} it['’]s \d|^perdón[,:] |\bal final (?:son|es|somos|será)\b|\btoch \d|\bhad het mis\b"
    r"|\b(?:earlier|later|sooner)\b[^.?!]{0,20}\d|\bbeen saying\b|\bswitch\w* (?:\S+ ){1,4}to\b|\bpasan? (?:al?|para)\b"
    r"|\bpassa (?:para|a|al|alle)\b|\bprzenos\w+\b"
    r"|\bpomyli\w+ się\b|\benganei-me\b|\b(?:and|und|y|et|e|a|en) (?:not|nicht|no|pas|non|nie|não|niet) \d|やっぱり"
    # "not the 9th, the 10th"
    r"|\b(?:not|nicht|no|pas|non|nie|niet|não)(?: é)? (?:the |am |el |le |il |de |dia |on )?\d[\w.]*,?"
    r" (?:but |sondern |sino |mais |ma |maar |mas |tylko |lecz )?(?:é )?(?:the |am |el |le |il |de |dia |on )\d"
    r"|^no[,.] |^nein[,.] |^non[,.] |改成|改为|改到|更正|不对|而是|其实|推迟|提前|取消|换成"
    r"|ではなく|じゃなくて|変更|変わり|訂正|아니라|변경"
)
# In ASCII, every correction has one of these terms. The pattern above takes longer than everything else here.
CORRECTION_TERMS = word_set(
    "actuall instead rather correct correcte scratch wrong mistake misspok changed moved postpon longer second "
    "meant mean wait not stattde lieber statt korrekt falsch verscho mehr sondern meinte meine fait erreur lieu "
    "finalem vez lugar mejor realida equivoc equivoq cambio cambia cambiar cambiad cambiam no nein non doch vertan "
    "geirrt quatsch abgesag gesenkt gestieg resched cancell cancele annul trompe trompee passe decir off through "
    "raise "
    "raised raising lower lowered increas reduce reduced reducin extend extende shorten move moves moving push "
    "pushed pushing bump bumped went senken senkt verschi sube subimos subir suben baja bajamos bajar bajan "
    "aumenta aumentar mover movemos mueve aplazam aplazar retrasa retrasam passent nicht pas miscoun miscalc "
    "make mach macht machen sean mets-en maak misread sorry foutje correct rectifi vergist verzet verplaa toch niet "
    "invece anzi correzi spostat spostata rimanda annulla slitta slittan sbaglia zmiana jednak zamiast poprawk nie "
    "przesuw verdade mudou adiado adiada cancela remarca afinal turns after ach said final mis pomyli enganei "
    "enganei-me mixed verwech confund confond verwiss earlier later sooner saying switch switche pasa pasan passa "
    "przenos"
)
# "Now" and "new" correct something only where another value of the same kind was said of the same.
_UPDATE = re.compile(
    r"\b(?:now|by now|new|updated?|final|latest|jetzt|nun|neue[rnms]?|endgültig\w*|aktuell\w*|ahora|nuev[oa]s?"
    r"|definitiv\w+|maintenant|désormais|nouve(?:au|lle|l)s?)\b|现在|新的|最终|最后",
    re.IGNORECASE,
)
# Words around a value that do not tell what it is a value of.
# "4 attempts then"
_THEN = re.compile(r"\b(?:then|dann|entonces|alors|dan|allora|então|wtedy)\b", re.IGNORECASE)
_MAX_THEN = 9
_VAGUE_TERMS = word_set(
    "keinen keine mehr weniger höchste mindest maximal máximo mínimo most least more than less cost costs price "
    "prices kosten kostet preis cuesta cuestan vale precio coûte coûtent prix must should need needs will would "
    "have been about around roughly total month months monat monats year years week weeks euros euro dollars "
    "dollar wird werden soll sollen muss müssen darf dürfen kann sein sind wurde wurden haben fall fürs dann also "
    "noch jetzt ahora mainten tiene tienen puede debe será sería être sera doit peut noted okay final finally "
    "that this with from there then instead actuall correct correcte correzi stattde sondern nicht raised lowered "
    "increas reduced extende changed moved erhöhen erhöht gesenkt verscho geändert cambio cambiar cambia only "
    "sorry decided agreed meeting "
    "just still already says said same time their they them your ours takes gets wait mean meant between zwische "
    "tussen"
)
_VALUE = re.compile(
    r"(?P<before>[€$£¥]\s?)?(?P<value>\d[\d.,:]*\d|\d)(?P<ordinal>st|nd|rd|th|e\b)?(?:\.?\s?(?P<unit>[€$£¥%]"
    r"|[^\W\d_]{1,16}))?"
    r"|(?P<day>(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|lunes"
    r"|martes"
    r"|miércoles|jueves|viernes|sábado|domingo|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|(?:maan|dins|woens|donder|vrij|zater|zon)dag"
    r"|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|poniedziałe?ku?|wtorek|środ[aęy]|czwartek|piątek"
    r"|sobot[aęy]|niedziel[aęi]|(?:segunda|terça|quarta|quinta|sexta)-feira)\b",
    re.IGNORECASE,
)
# "So 2,900, not 2,400"
_DENIED = re.compile(
    r"\d[^.?!]{0,24}, (?:and |und |y |et |en |a |e )?(?:not|nicht|no|pas|niet|nie|non|não) (?:o |più |las? "
    r"|às )?[€$£]?(\d[\d.,:]*\d|\d)"
)
_MIN_DENIED = 3
_HAS_VALUE = re.compile(
    r"\d|day\b|[td]ag\b|lunes|martes|jueves|viernes|domingo|mittwoch|di\b|dimanche|sabato|wtorek|sobota|-feira",
    re.IGNORECASE,
)
_TIME_UNITS, _DATE_UNITS = word_set("uhr am pm h heures horas 点 时 時"), word_set("may 月 日 号")
_WHEN = frozenset(("date", "time", "weekday"))
_KINDS_OF_ANYTHING = frozenset(("", "€", "$", "%", "date", "time", "weekday"))
_MONEY = {"€": "€", "euro": "€", "euros": "€", "eur": "€", "$": "$", "dollar": "$", "dollars": "$", "usd": "$"}
# Units of anything: of what, the sentence tells.
_MEASURES = word_set(
    "euro euros hours hour hour minut secon weeks week days month years year kilom meter metre liter litre gramm "
    "grams "
    "kilos stund minuten tage woche wochen monat jahre jahr prozen perce horas minuto días seman meses años heure "
    "jours "
    "mois anné uur dagen weken maand jaar"
)
_MIN_COUNTED = 4
_NO_UNIT = word_set(
    "it now so we i they he she instead please per from by as if jetzt nun ahora maintenant nu and or but to at in "
    "on for of is are with not then the a und oder aber bis am im um auf für von ist sind mit "
    "nicht y o pero a en con para que no et ou mais à au pour avec de e non più ma nie i o ale não mas"
)
_NAME = re.compile(r"(?<=[\w,;–-] )(?:[A-ZÄÖÜÉ][\w-]*)")
_NO_NAMES = CALENDAR | {"i", "may"}
# How much of its topic, by weight, a sentence must share with another one that corrects it.
_MIN_SHARED_TOPIC, _MIN_SHARED_WORDS, _MIN_SHARED_EXPLICIT = 0.35, 0.7, 0.4
_NEAR_LINES, _NEAR_BONUS, _NEXT_LINES, _OWN_NEXT_LINES = 6, 0.1, 3, 8
_MAX_SMALL_WORD = 3
# A sentence that differs in its numbers from this many others is part of a series, not a correction.
_MIN_SERIES, _CHANGES = 3, 2
_MAX_POSTINGS = 40
_MAX_INSPECTED = 240
_MAX_BARE_TOPIC = 2

Value = tuple[str, str]
"""What kind of value it is, as "€" or "date", and the value."""


class Claim(NamedTuple):
    """A sentence, its topic without numbers and small words, and the values in it."""

    key: SentenceKey
    speaker: str
    topic: frozenset[str]
    values: frozenset[Value]
    names: frozenset[str]
    weight: int
    is_explicit: bool
    is_update: bool
    denied: frozenset[str]


def find_corrections(
    pool: Sequence[ScoredSentence], weights: TermWeights, speakers: Mapping[int, str] | None = None
) -> dict[SentenceKey, ScoredSentence]:
    """For each corrected sentence the latest one that corrects it. `speakers` says who wrote each line."""
    found: dict[SentenceKey, ScoredSentence] = {}
    index: dict[str, list[Claim]] = {}
    recent: list[Claim] = []
    times: Counter[SentenceKey] = Counter()
    for sentence in pool:
        claim = _claim(sentence, weights, (speakers or {}).get(sentence.line, ""))
        corrected = _corrected_by(claim, index, recent, weights)
        found |= dict.fromkeys(corrected, sentence)
        # a value may change several times, and others repeat each change
        times.update(
            [*corrected, *[sentence.key] * len(corrected)] * (1 if claim.is_explicit or claim.is_update else _CHANGES)
        )
        _add_claim(claim, index, recent)
    return {key: later for key, later in found.items() if max(times[key], times[later.key]) < _MIN_SERIES * _CHANGES}


def _claim(sentence: ScoredSentence, weights: TermWeights, speaker: str) -> Claim:
    topic, values, names, is_explicit, is_update, denied = _claimed(sentence.text)
    weight = weights.total(topic) or 1
    return Claim(sentence.key, speaker, topic, values, names, weight, is_explicit, is_update, denied)


@text_cache(8192)
def _claimed(whole: str) -> tuple[frozenset[str], frozenset[Value], frozenset[str], bool, bool, frozenset[str]]:
    """What a sentence claims by its text alone: each is ranked several times."""
    text, found = whole[:_MAX_INSPECTED], terms(whole)
    has_values = not text.isascii() or _HAS_VALUE.search(text) is not None
    return (
        _subject_terms(found),
        values_in(text) if has_values else frozenset(),
        frozenset(name for name in _NAME.findall(text) if name.lower()[:7] not in _NO_NAMES),
        not (text.isascii() and CORRECTION_TERMS.isdisjoint(found)) and corrects(text),
        has_values and (_UPDATE.search(text) is not None or _concludes(text)),
        frozenset(_DENIED.findall(text.lower())) if has_values else frozenset(),
    )


def _concludes(text: str) -> bool:
    """Whether a few words say what follows from the talk, with a value."""
    return text.count(" ") < _MAX_THEN and _THEN.search(text) is not None


def _subject_terms(terms: frozenset[str]) -> frozenset[str]:
    """What a sentence is about: its terms without values, small words and words that go with any value."""
    numbers = numeric_terms(terms)
    return frozenset(
        term
        for term in terms - numbers
        if term not in _VAGUE_TERMS and (len(term) > _MAX_SMALL_WORD or not term.isascii() or term.isupper())
    )


@text_cache(4096)
def values_in(text: str) -> frozenset[Value]:
    """The values, each with what it counts or measures: "not 84 but 91 guests" and "91 guests, not 84" have
    two numbers of guests."""
    found: list[Value] = []
    for match in _VALUE.finditer(text):
        found.append((_kind_of_value(match), (match["day"] or match["value"]).lower().rstrip(".,")))
    before, following = [*found[:1], *found[:-1]], [*found[1:], *found[-1:]]
    return frozenset(
        (kind or after or earlier, value)
        for (kind, value), (after, _), (earlier, _) in zip(found, following, before, strict=True)
    )


def _kind_of_value(match: re.Match[str]) -> str:
    if match["day"]:
        return "weekday"
    unit = (match["before"] or match["unit"] or "").strip().lower()
    unit = unit[:1] if IS_UNSPACED.match(unit) else unit
    if ":" in match["value"] or unit in _TIME_UNITS:
        return "time"
    if match["ordinal"] or _is_day(match, unit):
        return "date"
    if unit[:7] in CALENDAR or unit in _DATE_UNITS or (unit == "de" and _DATE_REST.match(match.string, match.end())):
        return "date"
    return "" if unit in _NO_UNIT else _MONEY.get(unit, unit[:5])


# "am 22. sein", "el 26 es viernes"
_BEFORE_ORDINAL, _BEFORE_DAY = re.compile(r"\b(?:am|vom|bis|zum|den|ab) $"), re.compile(r"\b(?:el|le|du|au) $")


def _is_day(match: re.Match[str], unit: str) -> bool:
    """Whether it is the day of a month that is not named."""
    if not match["value"].isdigit() or len(match["value"]) > 2:
        return False
    before = match.string[max(0, match.start() - 5) : match.start()].lower()
    if match.string.startswith(".", match.end("value")) and _BEFORE_ORDINAL.search(before):
        return True
    return (not unit or unit in _NO_UNIT) and _BEFORE_DAY.search(before) is not None


_DATE_REST = re.compile(r" (?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|sept|oct|nov|dic)", re.IGNORECASE)


def _has_other_value(earlier: frozenset[Value], later: frozenset[Value]) -> bool:
    """Whether the later gives a value of a kind that the earlier gives too, and not the same."""
    if not earlier or not later or earlier == later:
        return False
    kinds = {kind for kind, _ in earlier - later}
    return any(kind in kinds for kind, _ in later - earlier)


def _add_claim(claim: Claim, index: dict[str, list[Claim]], recent: list[Claim]) -> None:
    """So that later ones find it, by its topic, by its values, and as one of the last."""
    for term in claim.topic | _value_terms(claim):
        index.setdefault(term, []).append(claim)
    recent.append(claim)
    del recent[:-_MAX_POSTINGS]


def _value_terms(claim: Claim) -> set[str]:
    found = {f"{value} {kind}" for kind, value in claim.values if kind}
    return found if claim.topic.isdisjoint(ARRIVAL) else found | {"arrival"}


def _corrected_by(
    later: Claim, index: Mapping[str, Sequence[Claim]], recent: Sequence[Claim], weights: TermWeights
) -> list[SentenceKey]:
    """Sentences on the same topic with other values; and the closest one if the later has words of a correction."""
    if not later.is_explicit and not later.values:
        return []
    related = {
        one.key: one
        for term in sorted(later.topic | _value_terms(later))
        for one in index.get(term, ())[-_MAX_POSTINGS:]
    }
    found: list[SentenceKey] = []
    closeness: list[tuple[float, SentenceKey]] = []
    for key, earlier in related.items():
        if not later.is_explicit and not _has_other_value(earlier.values, later.values):
            continue
        shared = weights.total(set(earlier.topic & later.topic))
        if _takes_place(earlier, later, shared):
            found.append(key)
        elif later.is_explicit and not (earlier.values and later.values):
            is_near = later.key[0] - key[0] <= _NEAR_LINES
            closeness.append((shared / earlier.weight + _NEAR_BONUS * is_near, key))
    if not found and closeness and max(closeness)[0] >= _MIN_SHARED_TOPIC:
        return [max(closeness)[1]]
    return found or list(_just_said(later, recent))


def _takes_place(earlier: Claim, later: Claim, shared: int) -> bool:
    """Whether a value takes the place of another one. Without a word of correction, the same speaker says nearly the
    same again."""
    if later.denied and any(value in later.denied for _, value in earlier.values):
        return shared > 0 or any(len(value) >= _MIN_DENIED for value in later.denied)
    repeated = {kind for kind, _ in earlier.values & later.values} if later.is_explicit else set()
    if any(kind in repeated for kind, _ in later.values - earlier.values):
        return shared > 0 or not repeated <= _KINDS_OF_ANYTHING  # "not 84 but 91 guests"
    is_bare = later.is_explicit and _is_bare_change(earlier, later)  # "the rent is 930 after all"
    if not (is_bare or _has_other_value(earlier.values, later.values)):
        return False
    if (later.is_explicit or later.is_update) and _is_new_arrival(earlier, later):
        return True
    if later.is_update and _counts_anew(earlier, later):
        return True
    if later.is_explicit:
        return shared >= max(1, _MIN_SHARED_EXPLICIT * min(earlier.weight, later.weight))
    if earlier.speaker != later.speaker and not later.is_update:
        return False
    if earlier.names - later.names and later.names - earlier.names:
        return False
    return shared >= _MIN_SHARED_WORDS * (min(earlier.weight, later.weight) if later.is_update else earlier.weight)


def _counts_anew(earlier: Claim, later: Claim) -> bool:
    """Whether the same speaker counts the same things again: "9 people", "it's 11 people now"."""
    if earlier.speaker != later.speaker or (earlier.names - later.names and later.names - earlier.names):
        return False
    counted = {kind for kind, _ in earlier.values} & {kind for kind, _ in later.values - earlier.values}
    return any(len(kind) >= _MIN_COUNTED and kind not in _MEASURES and kind not in _WHEN for kind in counted)


def _is_new_arrival(earlier: Claim, later: Claim) -> bool:
    """Whether it is another day of the same: "It reaches you on Monday", "The carrier now says Friday"."""
    if later.topic.isdisjoint(ARRIVAL) or earlier.topic.isdisjoint(ARRIVAL) or later.key[0] == earlier.key[0]:
        return False
    kinds = {kind for kind, _ in earlier.values} & {kind for kind, _ in later.values}
    return not kinds.isdisjoint(("date", "weekday")) and not later.topic - ARRIVAL - earlier.topic


def _just_said(later: Claim, recent: Sequence[Claim]) -> Iterator[SentenceKey]:
    """ "No wait, I mean 10 January" corrects the last value of its kind, if that was said just before."""
    if not later.is_explicit or not later.values or len(later.topic) > _MAX_BARE_TOPIC:
        return
    for earlier in reversed(recent):
        distance, is_own = later.key[0] - earlier.key[0], bool(later.speaker) and later.speaker == earlier.speaker
        if distance > (_OWN_NEXT_LINES if later.speaker else _NEXT_LINES):
            return
        if distance > _NEXT_LINES and not is_own:
            continue
        if _has_other_value(earlier.values, later.values) or _is_bare_change(earlier, later):
            yield earlier.key
            return


def _is_bare_change(earlier: Claim, later: Claim) -> bool:
    """Whether a number without a unit may stand for another number: "120 francs", "make it 90"."""
    kinds = {kind for kind, _ in later.values}
    return kinds == {""} and any(
        kind not in _WHEN and ("", value) not in later.values for kind, value in earlier.values
    )


@text_cache(8192)  # the summary and the ledger ask, of every sentence
def corrects(text: str) -> bool:
    """Whether it has words of a correction."""
    return _CORRECTION.search(text[:_MAX_INSPECTED].lower()) is not None
