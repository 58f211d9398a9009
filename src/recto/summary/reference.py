"""Reference: whether a sentence speaks of something that another one names. Knows one sentence at a time."""

import re

from recto.chat.cues import words_of
from recto.summary.sentences import word_set

# Pronouns and conjunctions that refer to the sentence before.
_BACK_REFERENCE = re.compile(
    r"(?:(?:Yeah|Yes|Well|Oh|Ah|Thanks|Sure|Nice|Wow|Ja|Oui|Sí)[,!.] )?"
    r"(?:(?:(?i:It|This(?! (?:week|month|year|morning|time|summer|winter|spring|fall))|That|These|Those|They|He|She"
    r"|Its"
    r"|Their|His|Her|Such|Both|So|But|And|Then|Also|Because|Which|Otherwise|Here(?:'s| is| are)|I mean|I meant)"
    r"|Das(?= [a-zäöü])|Dies\w*|Es|Er|Dort|Damit|Dafür|Daher|Deshalb|Dann|Aber|Und|Sonst|Beide|Ich meine|Ich meinte"
    r"|Ils?|Elles?|Ce|C['’]est|Cela|Ça|Cette|Ces|Mais|Et|Donc|Puis"
    r"|Es[eao]s?|Est[eao]s?|Él|Ellas?|Ellos|Pero|Y|Entonces|Además)\b"
    r"|这|那(?!么)|它|他|她|其|但|所以|因此|然后|不过|而且|これ|それ|あれ|その|この|そこ|しかし|でも|だから|그)"
)
# Pronouns inside a sentence, as terms, and what may be the noun that they stand for if it comes first.
PRONOUNS = word_set(
    "it it's it’s them him they he she there those ihn ihm es davon dazu daran darauf darüber dafür dagegen dort "
    "lo eso esto allí ahí ella ellos ça cela lui eux là-bas l'ai l'as l'a l'avons l'ont l’ai l’as l’a l’avons l’ont"
)
_PRONOUN = re.compile(
    r"\b(?:it|them|him|they|he|she|there|those|ihn|ihm|davon|dazu|daran|darauf|darüber|dafür|dagegen|dort"
    r"|lo(?= [^\W\d_]+)(?! (?:que|más|mejor|mismo|siento|antes)\b)|eso|esto|allí|ahí|ella|ellos|ça|cela|lui|eux"
    r"|là-bas"
    r"|es(?= (?:war|hat|wird|kostet|läuft|liegt)\b)|l['’](?=(?:ai|as|a|avons|avez|ont)\b))\b"
)
# Every match of it has one of these words.
_PRONOUN_WORDS = word_set(
    "it them him they he she there those ihn ihm davon dazu daran darauf darüber dafür dagegen dort lo eso esto allí "
    "ahí ella ellos ça cela lui eux là es l"
)
_IMPERSONAL = re.compile(
    r"it(?:['’]s| is| was| would be| will be) (?:\w+ )?(?:to|that|for|time|possible|important|clear|likely)\b"
    r"|there(?:['’]s| is| are| was| were| will| has| have| should)\b|it (?:takes|seems|looks like|rains|turns out)\b"
)
ANTECEDENT = re.compile(
    r"\b(?i:the|an?|my|our|your|his|her|their|this|these|some|any|every|each|no|all|der|die|das|den|dem|ein\w*"
    r"|mein\w*"
    r"|unser\w*|el|la|los|las|una?|mi|nuestr[oa]s?|le|les|une|mon|ma|notre|nos|ce|cette) [^\W\d_]{2}"
    r"|(?<=[^.!?] )[A-ZÄÖÜÉ]\w|\d|`|\w/\w"
)
# "The files are due on Friday, the printer is strict about that": the clause before names it.
_CLAUSE_MARKS = (",", ";", ":", "–", "—")


def refers_back(sentence: str) -> bool:
    """Whether it starts with a word that refers to the sentence before."""
    return _BACK_REFERENCE.match(sentence) is not None


# What it starts with can be searched for fast; what stands before that is looked at afterwards.
_LEANING = re.compile(
    r" (?:(?=[ti])(?:(?<=\bof )|(?<=\bby )|(?<=\bfor )|(?<=\bwith )|(?<=\babout )|(?<=\bafter )|(?<=\bbefore )"
    r"|(?<=\bwithout ))(?:that|this|it|them|those)\b(?! [^\W\d_]+(?:ed|ing|ion|s)\b)"
    r"|(?=e)(?:(?<=\bde )|(?<=\bcon )|(?<=\bpor )|(?<=\bpara )|(?<=\bsobre ))(?:eso|esto|ello)\b"
    r"|(?=[çc])(?:(?<=\bde )|(?<=\bpour )|(?<=\bavec )|(?<=\bsans ))(?:ça|cela)\b)"
    r"|da(?<!\wda)(?:für|von|mit|ran|rauf|rin|raus|rüber|nach|bei|zu)\b"
)


_LEANING_WORDS = word_set(
    "that this it them those eso esto ello ça cela dafür davon damit daran darauf darin daraus darüber danach dabei "
    "dazu"
)


def leans_on_another(sentence: str) -> bool:
    """Whether it speaks of something that another sentence names: "Ilse needed 35 attempts for that"."""
    found = None if _LEANING_WORDS.isdisjoint(words_of(sentence)) else _LEANING.search(sentence.lower())
    if found is None:
        return False
    before = sentence[: found.start()]
    if found[0][0] != "d":  # "bis Ybbs im Süden und danach im Norden" names it, "18 attempts for that" does not
        before = before[: max(before.rfind(mark) for mark in _CLAUSE_MARKS) + 1]
    return not ANTECEDENT.search(before)


def leans_back(sentence: str) -> bool:
    """Whether a pronoun in it stands for something that it does not name itself: "I first watched it in May"."""
    if _PRONOUN_WORDS.isdisjoint(words_of(sentence)):
        return False
    lower = sentence.replace("İ", "I").lower()  # of the same length
    pronoun = _PRONOUN.search(lower)
    if pronoun is None or _IMPERSONAL.match(lower, pronoun.start()):
        return False
    return ANTECEDENT.search(sentence[: pronoun.start()].removeprefix("I ")) is None


# Who cheers, thanks or laughs names nothing that the next sentence could be about.
_CHEERING = word_set(
    "great good nice amazing awesome love lovely beautiful perfect wonderful cool super happy excited yay wow omg "
    "wtf lol "
    "haha congrats congratulations cheers best fun crazy incredible fantastic brilliant exactly thanks thank sorry "
    "sure yes "
    "no please ok okay welcome luck right wait help hello hi toll schön super klasse danke genau bitte gut prima "
    "endlich "
    "genial gracias bien claro bueno vamos bravo merci super parfait dank bedankt leuk mooi fijn goed top dzięki "
    "świetnie "
    "super brawo so such what how"
)
_MIN_EVENT_WORDS, _MAX_EVENT = 2, 60


def names_event(sentence: str) -> bool:
    """Whether an exclamation says what the facts after it are about: "they offered!! 39,000, start in May"."""
    if not sentence.endswith("!") or len(sentence) > _MAX_EVENT or sentence.count(" ") + 1 < _MIN_EVENT_WORDS:
        return False
    return _CHEERING.isdisjoint(words_of(sentence))
