"""People: who is who, as somebody tells it: "Uwe is our treasurer", "the landlord is called Brandes".

A single name says nothing alone; with the role it is what a later message needs. Knows one sentence at a time.
"""

import re
from collections.abc import Iterator
from functools import cache

from recto.chat.cues import words_of
from recto.summary.facts import Fact, normalize_fact_text
from recto.summary.sentences import word_set
from recto.text import text_cache

_TITLE = (
    r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Herrn?|Frau|[Ss]ra?|[Ss]eñora?|Don|Doña|[Dd]octora?|M|Mme|[Mm]onsieur|[Mm]adame|[Mm]aître"
    r"|[Mm]eneer|[Mm]evrouw|dhr|mevr|[Ss]ignora?|[Ss]ig|[Pp]an(?:i|ią|ia)?|[Ss]enhora?|[Dd]ona|Dott|[Dd]ottor(?:essa)?)"
    r"\.? "
)
_NAME = r"[A-ZÀ-ÖØ-ÞŁŚŻŹĆ][^\W\d_]+(?:-[^\W\d_]+)?"
_OURS = (
    r"(?:my|our|his|her|their|the|meine?[rnms]?|unsere?[rnms]?|mi|nuestr[oa]|el|la|mon|ma|notre|le|mijn|onze?|de|il mio"
    r"|la mia|il nostro|la nostra|il|l['’]|mój|moja|nasz|nasza|o meu|a minha|o nosso|a nossa|o|a)"
)
_ROLE = r"[^\W\d_][\w-]{2,}"
_IS = r"(?:is|ist|es|est|è|jest|é)"
# In German every noun begins like a name: there it is "heißt", or a title before it.
_CALLED = (
    r"(?:is called|is named|heißt|se llama|s['’]appelle|heet|si chiama|nazywa się|ma na imię|chama-se|se chama|is"
    r"|es|est|è"
    rf"|é|to|ist (?={_TITLE}))"
)
_INTRODUCED = (
    rf"(?:{_TITLE})?({_NAME}) {_IS} {_OURS} ?{_ROLE}"
    rf"|(?:{_TITLE})?({_NAME}), (?:my|our|meine?|unsere?|mi|nuestr[oa]|mon|ma|notre|mijn|onze|il mio|la mia|il nostro"
    rf"|la nostra|mój|moja|nasz|nasza|o nosso|a nossa) {_ROLE}"
    rf"|(?:\b(?i:{_OURS}) ?|^){_ROLE}(?: {_ROLE}){{0,3}} {_CALLED} (?:{_TITLE})?({_NAME})"
    r"|[\u3040-\u30ff\u3400-\u9fff]{2,12}[はの][\u3400-\u9fff]{1,4}(?:さん|様|氏)"
)
# Every introduction has one of these words, or an honorific behind the name.
_LINKS = word_set(
    "is ist es est è jest é heißt llama appelle heet chiama nazywa imię chama to my our meine mein unsere unser mi "
    "nuestro nuestra mon ma notre mijn onze mio mia nostro nostra mój moja nasz nasza nosso nossa"
)
_HONORIFIC = re.compile("さん|様|氏")
_NAME_INSIDE, _NAME_FIRST = re.compile(" [A-Z]"), re.compile(rf"[A-Z]\S* {_IS} |[A-Z]\S*, ")
_NO_NAME = re.compile(
    r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|January|February|March|April|May|June|July|August"
    r"|September|October|November|December|It|This|That|There|Here|What|Who|He|She|The|Das|Es|Dies|Sie|Er|Todo|Esto|Eso"
    r"|Questo|Dit|Dat|Ce|Il|Elle|To)"
)
_MAX_LENGTH, _MIN_GAPS = 140, 2


# In lower case, what a title may be.
_TITLES = word_set(
    "mr mrs ms miss dr prof herr herrn frau sr sra señor señora don doña doctor doctora m mme monsieur madame maître "
    "meneer mevrouw dhr mevr signor signora sig pan pani panią pania senhor senhora dona dott dottor dottoressa"
)
_HEADED = re.compile(rf"[^\W\d_][\w -]{{2,24}}: {_NAME} [A-ZÀ-ÖØ-Þ]")


@cache
def _pattern() -> re.Pattern[str]:
    """Compiled when first needed: few commands ever summarise."""
    return re.compile(_INTRODUCED)


def introductions(sentence: str, start: int = 0) -> Iterator[Fact]:
    """Who is introduced in a sentence that starts at this place: the words with the name and the role."""
    if len(sentence) > _MAX_LENGTH or sentence.endswith(("?", "？")) or sentence.islower():
        return
    if _LINKS.isdisjoint(words_of(sentence)) and (sentence.isascii() or not _HONORIFIC.search(sentence)):
        return
    if sentence.isascii() and not (_NAME_INSIDE.search(sentence) or _NAME_FIRST.match(sentence)):
        return
    found = _pattern().search(sentence)
    if found and not _NO_NAME.fullmatch(found[1] or found[2] or found[3] or ""):
        yield Fact("name", found[0], normalize_fact_text(found[0]), start + found.start(), start + found.end())


def is_introduction(words: str) -> bool:
    """Whether these words are a name with its role, and no more."""
    if words.count(" ") < _MIN_GAPS and (words.isascii() or not _HONORIFIC.search(words)):
        return False
    return _pattern().fullmatch(words) is not None


@cache
def _titled() -> re.Pattern[str]:
    return re.compile(rf"\b{_TITLE}{_NAME}")


@text_cache(8192)  # asked for the promise of a sentence, and for its score
def names_role(sentence: str) -> bool:
    """Whether it says who somebody is, or names a person with a title."""
    if len(sentence) > _MAX_LENGTH or sentence.endswith(("?", "？")) or sentence.islower():
        return False
    if _HEADED.match(sentence) or (not _TITLES.isdisjoint(words_of(sentence)) and _titled().search(sentence)):
        return True
    return next(introductions(sentence), None) is not None
