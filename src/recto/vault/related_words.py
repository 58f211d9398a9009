"""Related words: whether two words are forms of one, or one is a part of the other, and what answers say in place of a
word of the question. By beginnings, endings and short lists, in English, German, Spanish and French."""

from functools import lru_cache

from recto.search.terms import word_forms
from recto.text import LazyPattern

_MIN_COMMON = 4
_ENDING_LIST = """
    s es e ed d r er ers or ors ing ings n en em est ly t te ten tes ment ments ung ungen ation ations al ic ie ies y
    ance ances ence ences
    ned ning ted ting ped ping led ling red ring ged ging med ming
    a o as os i ar ir ado ada ados adas ido ida idos idas an aron io ion iones ciones cion mente
    ee ees ez ent ait aient ant ions eur euse"""
_ENDINGS = frozenset(("", *_ENDING_LIST.split()))
_SHORT_ENDINGS = frozenset(("", "s", "es", "ses", "d", "ed", "ing", "e", "n", "en"))
_AGAIN = ("re", "wieder", "um")
# What is asked with one word and told with another, as the index writes them.
_ALIKE = """
choose decide agree pick vote decision, entscheid beschloss beschlossen wahl gewahlt, decidir decision elegir elegido,
decider choisir choisi decision, cost price pay charge paid, kosten preis bezahlt zahlen, costar precio pagar pagado,
couter prix payer, born birthday birth, geboren geburtstag, nacio cumpleanos nacimiento, ne anniversaire naissance,
phone telephone mobile tel, telefon handy tel, long length, hoch hohe, lang lange, live address, wohnt adresse, vive
direccion, eat allergic food, essen allergisch, comer alergico, manger allergique, begin start founded, end finish,
cheap price, own owner belong hold share, gehort besitzer eigentumer vermieter, shut close closed, lend loan borrow
lent, deliver supply come bring get buy, kaufen liefern kommt bringt bestellt besorgt, suministrar traer viene
comprar, fournir livrer vient acheter, fahren fahrt reise nehmen, zuruck ruckkehr ruckfahrt, collect pick fetch,
abholen abgeholt, broken break fail repair, kaputt defekt reparatur, attend present attendees, anwesend teilnehmer
dabei, asistir presentes asistentes, assister presents participants, age born,
bike bicycle, fahrrad rad, bicicleta bici, velo bicyclette, fridge refrigerator, flat apartment, photo photograph
picture, television tv, mother mum mom, father dad, kids children child, wifi wlan, doctor physician, sofa couch,
rubbish garbage trash, holiday vacation, petrol gasoline, tyre tire, colour color, grey gray, licence license, centre
center, auto wagen, coche carro, voiture auto, movil celular, ordenador computadora
"""
_GROUPS = dict[str, tuple[str, ...]]()
for _group in _ALIKE.split(","):
    _GROUPS |= {word: (*_GROUPS.get(word, ()), *_group.split()) for word in _group.split()}
_ORDINALS = """
first erste primer premier, second zweite segund deuxieme, third dritte tercer troisieme, fourth vierte cuart quatrieme
"""
for _number, _group in enumerate(_ORDINALS.split(","), 1):
    _GROUPS |= {
        f"{word}{ending}": (str(_number),) for word in _group.split() for ending in ("", "a", "n", "o", "r", "s")
    }

_BY_START = dict[str, list[str]]()
for _word in _GROUPS:
    _BY_START.setdefault(_word[:3], []).append(_word)


@lru_cache(maxsize=16_384)
def is_same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one, told by how they begin: `planned` and `plan`, but not `plan` and `plank`."""
    if one == other:
        return True
    if one.isdigit() or other.isdigit():
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if common < 3:
        return _is_participle(one, other) or _is_participle(other, one)
    # an ending may begin before the words differ: `insures` and `insurer`
    for stem in range(common, max(2, common - 2), -1):
        endings = _ENDINGS if stem >= _MIN_COMMON else _SHORT_ENDINGS
        if one[stem:] in endings and other[stem:] in endings:
            return True
    return False


def _is_participle(one: str, other: str) -> bool:
    """`geprobt` of `proben`."""
    is_long = len(one) > _MIN_COMMON + 2 and len(other) > _MIN_COMMON and one.endswith(("t", "en", "te", "ten"))
    return one.startswith("ge") and is_long and not other.startswith("ge") and is_same_word(one[2:], other)


# Shorter parts of a compound are too often something else.
_MIN_PART, _MIN_REST = 4, 4
# But what a long compound ends with it is a kind of, also behind a short word: `tonziegel`; not behind a prefix.
_MIN_HEAD, _MIN_BEFORE_HEAD = 5, 3
_PREFIXES = frozenset(("auf", "aus", "bei", "ein", "ent", "her", "hin", "los", "mit", "ver", "vor", "weg", "zer"))


@lru_cache(maxsize=16_384)
def is_part_of(one: str, other: str) -> bool:
    """Whether one word is a part of the other, as German builds words: `konto` and `kontostand`."""
    short, long = sorted((one, other), key=len)
    rest = len(long) - len(short)
    if len(short) >= _MIN_HEAD and rest >= _MIN_BEFORE_HEAD and long.endswith(short) and long[:rest] not in _PREFIXES:
        return True
    return len(short) >= _MIN_PART and rest >= _MIN_REST and (long.startswith(short) or long.endswith(short))


@lru_cache(maxsize=4096)
def related_forms(term: str) -> tuple[str, ...]:
    """The forms of a word, words that answers have in its place, and what it says without "again": `renamed` is about a
    name."""
    forms = word_forms(term)
    alike = {other for word in _BY_START.get(term[:3], ()) if is_same_word(term, word) for other in _GROUPS[word]}
    again = (term[len(start) :] for start in _AGAIN if term.startswith(start) and len(term) - len(start) >= _MIN_COMMON)
    alike.update(other for form in forms for other in _GROUPS.get(form, ()))
    return tuple(dict.fromkeys((*forms, *again, *sorted(alike))))


# What is measured, and the units that tell it: "Tyres: 3.5 bar" tells a pressure.
_MEASURED = r"""
pressure druck presion pression: bar psi kpa hpa mbar
weight gewicht peso poids: kg g lbs? oz t kilos? kilogram\w* grams? tonn\w+
temperature temperatur temperatura: °[cf]? degrees? grad grados degres
speed geschwindigkeit velocidad vitesse: km/h kmh mph kn knots? knoten nudos n(?:oe|œ)uds m/s
length height width depth distance: mm cm m km inch\w* ft feet foot met\w+ metros?
lange hohe breite tiefe abstand longitud altura anchura profundidad distancia: mm cm m km met\w+
longueur hauteur largeur profondeur: mm cm m km met\w+
capacity volume fassungsvermogen volumen capacidad capacite: m?l cl lit\w+ gal gallons?
power leistung potencia puissance: k?w hp ps cv watts?
voltage spannung voltaje tension: k?v volts? voltios
area flache superficie: m2 qm sqm quadratmeter square
duration dauer duracion duree: s min h sec\w* sek\w* minut\w+ hours? stunden? horas? heures?
"""
_UNITS = {
    word: LazyPattern(rf"\d ?(?:{'|'.join(units.split())})(?!\w)")
    for named, _, units in (line.partition(":") for line in _MEASURED.splitlines())
    for word in named.split()
}


@lru_cache(maxsize=4096)
def units_of(term: str) -> LazyPattern | None:
    """How a text without capitals and accents tells what is measured, if the term says that: `pressure`, `reifendruck`;
    not `ausdruck`."""
    compounds = (units for word, units in _UNITS.items() if term.endswith(word) and len(term) - len(word) >= _MIN_REST)
    return _UNITS.get(term) or next(compounds, None)


@lru_cache(maxsize=4096)
def related_starts(term: str) -> frozenset[str]:
    """How words must begin that are forms of a term, also without the beginning of a German participle."""
    forms = related_forms(term)
    return frozenset(form[:3] for form in (*forms, *(form[2:] for form in forms if form.startswith("ge"))))
