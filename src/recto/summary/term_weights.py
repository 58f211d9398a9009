"""Term weights: how much each term of a conversation matters to a summary of it, and which terms are values."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from recto.summary.sentences import word_set

HAS_NUMBER = re.compile("[\\d〇零二三四五六七八九十百千万亿億]|一[年月日号点时時]|[年月]一")
# Days and months in eight languages, cut to the length of terms; "may" is more often a verb.
CALENDAR = word_set("""
monday tuesday wednesd thursda friday saturda sunday january februar march april june july august septemb october
novembe decembe jan feb apr jun jul aug sep sept oct nov dec montag diensta mittwoc donners freitag samstag sonntag
januar märz juni juli oktober dezembe lundi mardi mercred jeudi vendred samedi dimanch janvier février avril juin
juillet août octobre lunes martes miércol jueves viernes sábado domingo enero febrero marzo abril mayo junio julio
agosto octubre noviemb diciemb maandag dinsdag woensda donderd vrijdag zaterda zondag maart mei
lunedì martedì mercole giovedì venerdì sabato domenic
gennaio febbrai aprile maggio giugno luglio settemb ottobre novembr dicembr poniedz wtorek środa środę czwarte piątek
sobota sobotę niedzie styczni lutego marca kwietni maja czerwca lipca sierpni wrześni paździe listopa grudnia janeiro
feverei março maio junho julho setembr outubro dezembr
""")


class TermWeights(dict[str, int]):
    """The weight of each term, up to 1000. Integers, so that a sum does not depend on the order of a set."""

    def __missing__(self, term: str) -> int:
        return 300

    def total(self, terms: AbstractSet[str]) -> int:
        return sum(map(self.__getitem__, terms))


def term_weights(sentences: Sequence[AbstractSet[str]]) -> TermWeights:
    """Terms that recur weigh most, but not those that are everywhere. Needs no list of stop words."""
    counts = Counter(chain.from_iterable(sentences))
    weights = {term: math.sqrt(math.log1p(n)) * math.log((len(sentences) + 1) / n) for term, n in counts.items()}
    top = max(weights.values(), default=1.0)
    return TermWeights({term: round(1000 * weight / top) for term, weight in weights.items()})


def numeric_terms(terms: AbstractSet[str]) -> set[str]:
    """The terms that are or contain a number, in digits or East Asian characters, and names of days and months."""
    # most terms are plain words, which need no search
    return {
        term
        for term in terms
        if term in CALENDAR or (not (term.isascii() and term.isalpha()) and HAS_NUMBER.search(term))
    }
