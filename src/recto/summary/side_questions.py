"""Side questions: what the user asks beside the matter of the conversation, and the reply that settles it.

Told by topic and not by wording: nothing else in the conversation speaks of it, it is answered at once, and nobody
takes it up again. Knows the messages of a conversation in order; a question on the matter shares its words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice, pairwise

from msgspec import Struct, field

from recto.chat.cues import words_of
from recto.chat.priority import BINDING, CHATTER
from recto.summary.quotation import DANGLING_WORDS
from recto.summary.reference import leans_back, leans_on_another, refers_back
from recto.summary.sentences import IS_UNSPACED, is_question, rate_sentence, sentences, terms, word_set
from recto.summary.small_talk import FULL_NAME, SPECIFIC
from recto.summary.statements import accepts, answers, is_request, settles
from recto.summary.term_weights import CALENDAR
from recto.summary.worth import is_about_self
from recto.text import text_cache

# So much of a message is read for its words; a question that is longer than this brings matter of its own.
_MAX_READ, _MAX_TOOL_READ, _MAX_QUESTION, _MAX_ACCEPTED = 4000, 1000, 160, 90
# What else is said must be enough to tell what the conversation is about: so many messages of the user, so many words.
_MIN_OTHERS, _MIN_WORDS = 4, 40
# Where more of the user's messages than this share are such questions, they are the matter.
_MAX_SHARE = 0.6
# Of the words of a question and of its reply, so much may come up elsewhere by chance.
_MAX_SHARED, _MAX_SHARED_REPLY = 0.34, 0.5
# A question of fewer words than this is about what was said before; one with a pronoun names so many topics itself.
_MIN_QUESTION, _MIN_NAMED, _MIN_TOPIC = 3, 2, 4
# A word in so many other messages belongs to the matter; one of so many letters that comes up soon after takes it up.
_OFTEN, _MIN_TAKEN_UP, _SOON, _NEAR = 3, 5, 3, 12
_MIN_WORD, _STEM_LENGTH = 3, 6
_STEM = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,6}|\d[\d.,:]*\d|\d")
_UNSPACED_STEM = re.compile("[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2}|[a-z]{3,6}|\\d+")
_FIGURE = re.compile(r"\d")
_NAME = re.compile(r"(?<=[^\W\d_,] )[A-ZÄÖÜÉ][^\W\d_]{2,5}")
# What the user and others do, and figures that the user gives, belong to a case. "US" is a country.
_OF_CASE = re.compile(
    r"\d|\b(?:(?i:we|our|ours|he|she|they|him|her|his|them|wir|unser\w*|ihm|ihn|nosotr[oa]s|nuestr[oa]s?|él|ella|nous"
    r"|notre|elle|lui|wij|ons|onze|hij|hem|nasz\w*|nam|nas|ona)|us|uns)\b"
)
# "Why do we yawn": everybody.
_OF_ANYBODY = r"\b(?:(?:why|when) do we|warum \w+ wir|waarom \w+ we|pourquoi \w+[- ](?:on|nous))\b"
_POINTS = re.compile(r"\b(?:that|this|those|these|eso|esto|ça|cela)\b|それ|これ", re.IGNORECASE)
_TAG = r", (?:right|correct|ok(?:ay)?|oder|ne|gell|verdad|no|non|hein|toch|hè|prawda|nie)\s?\?"
# Questions without their mark, wherever a clause begins: "quick one, waarom zoemen bijen".
_ASKS = (
    r"(?:^|[,.;:!–—] ?|\b(?:and|but|und|y|et|en|a|i) )"
    r"(?:(?:so|also|btw|hey|ok(?:ay)?|sag mal|oye|dis|zeg|słuchaj)[, ]+)?"
    r"(?:how|what['’]?s?|why|where|when|who|which|whose|is|are|does|do|did|can|should|would|have you|has anyone"
    r"|wie|was|warum|wieso|wo|wann|wer|wem|welche[nrsm]?|kann man|gibt es|ist|sind"
    r"|[¿]?(?:qué|cómo|por qué|cuándo|cuánt[oa]s?|dónde|quién|cuál(?:es)?|se puede|es verdad|hay)"
    r"|comment|pourquoi|combien|quand|où|quel(?:le)?s?|qui|c['’]est quoi|qu['’]est-ce|est-ce|peut-on"
    r"|hoe|wat|waarom|waar|wanneer|welke?|kun je|kan je|mag je"
    r"|jak|dlaczego|czemu|co|kto|gdzie|kiedy|ile|czy|jaki[em]?|jaka|która|który)(?![\w'’])"
)
_WISHES = (
    r"(?:(?:hey|ok(?:ay)?|now|btw|und|y|et)[, ]+)?(?:give|tell|show|explain|recommend|suggest|teach|gib|sag|erzähl"
    r"|erklär|zeig|empfiehl|dame|dime|cuéntame|explícame|recomiéndame|donne|dis|raconte|explique|recommande|geef|vertel|leg"
    r"|podaj|powiedz|opowiedz|wyjaśnij|poleć)\b"
)
# Every question in plain letters without its mark has one of these words.
_ASK_WORDS = word_set(
    "how what whats why where when who which whose is are does do did can should would have has wie was warum wieso "
    "wo wann wer wem welche welchen welcher welches welchem kann gibt ist sind se es hay comment pourquoi combien "
    "quand quel quelle quels quelles qui c qu est peut hoe wat waarom waar wanneer welk welke kun kan mag jak dlaczego "
    "czemu co kto gdzie kiedy ile czy jaki jakie jakim jaka give tell show explain recommend suggest teach gib sag "
    "zeig empfiehl dame dime donne dis raconte explique recommande geef vertel leg podaj powiedz opowiedz could "
    "will please"
)
_NO_TOPIC = frozenset(
    word[:6]
    for word in DANGLING_WORDS
    | word_set(
        "have has had will would should could must can may might him them she all any then there here only just "
        "also around most more other further least now today really very quite almost every each some both "
        "roughly exactly does did do doing everything anything something things thing stuff good great nice "
        "thanks thank hello well already still yet again random question quick btw way ways why many much long "
        "often best better tell give show explain recommend please need want know think mean means work works "
        "working take takes make makes look like people time times day days year years use used using get gets "
        "got going come comes find help first last new usually mostly always never because since until during "
        "without within before after same different both enough little few several right wrong true sure maybe "
        "actually kind sort part lot lots too being been were was very wie warum wann wer welche welcher welches "
        "kann können man gibt sehr auch noch nicht aber oder wenn weil dass sich wird werden wurde sind haben "
        "habe hat einen einem einer keine mehr viel viele immer meist etwa über unter durch ohne gegen dann also "
        "hier dort mal eigentlich denn doch schon nur etwas alle alles beim zum zur als wieso cómo cuándo cuánto "
        "cuánta dónde quién cuál puede pueden hay muy más pero como este esta esto eso ese esa todo todos cada "
        "entre hasta desde sobre sin también porque tiene tienen hace hacer ser son está están unos unas comment "
        "pourquoi combien quand quel quelle qui peut peuvent fait faire avec sans plus moins très aussi mais donc "
        "comme cette ces tout tous toute chaque entre depuis chez être sont ont avoir leur leurs elle elles bien "
        "hoe wat waarom waar wanneer welke kan kun kunt moet niet ook maar want zijn wordt worden het een van "
        "voor met bij naar veel meer heel erg altijd meestal ongeveer door zonder dan hier daar nog wel geen alle "
        "deze dit die jak dlaczego czemu kto gdzie kiedy ile czy jaki jaka który która jest nie się oraz ale lub "
        "przez dla bez tak być było może można bardzo też tylko więcej zawsze każdy przed przy pod nad jako żeby"
    )
)


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """Compiled when first needed: few commands ever summarise."""
    return re.compile(words, re.IGNORECASE)


# Words of a short reply that the order has not: fewer only repeat it.
_MIN_DONE = 4


class Said(Struct, frozen=True):
    """A message, as far as it matters here."""

    role: str
    text: str
    is_working: bool = False
    """Whether it calls a tool."""


def find_side_questions(said: Iterable[Said], known: str = "") -> frozenset[int]:
    """The places of side questions and of the replies to them. `known` is what was told of the messages before."""
    return _find(tuple(said), known)


@text_cache(4)  # the summary and the ledger ask
def _find(said: tuple[Said, ...], known: str) -> frozenset[int]:
    asked = [at for at in range(not known, len(said) - 1) if said[at].role == "user" and _may_be_aside(said, at)]
    users = sum(message.role == "user" for message in said)
    if not asked or (users - len(asked) < _MIN_OTHERS and not known):
        return frozenset()
    counts = _count_stems("\n".join((known[:_MAX_READ], *map(_read, said))))
    if len(counts) < _MIN_WORDS:
        return frozenset()
    matter = _Matter(said, counts, Counter(_normal(message.text) for message in said if message.role == "user"))
    # what is said in one of them is no matter to which another could belong
    found = {at for at in asked if matter.lacks(at)}
    matter.leave_out(found)
    found |= {at for at in asked if at not in found and matter.lacks(at)}
    return frozenset(place for at in found for place in (at, at + 1) if len(found) <= _MAX_SHARE * users)


def _may_be_aside(said: Sequence[Said], at: int) -> bool:
    """Whether the user asks something that the assistant answers in one message, whereupon the user goes on."""
    question, reply = said[at], said[at + 1]
    if len(question.text) > _MAX_QUESTION or reply.role != "assistant" or reply.is_working:
        return False
    after = said[at + 2] if at + 2 < len(said) else None
    if (after and after.role != "user") or not asks_only(question.text) or not _is_done(question.text, reply.text):
        return False
    return after is None or not accepts(next(iter(sentences(after.text[:_MAX_ACCEPTED])), ""))


def _is_done(asked: str, reply: str) -> bool:
    """Whether a question was answered, or an order carried out: one that was only acknowledged is open."""
    if asked.rstrip().endswith(("?", "？")) or settles(reply) or not any(map(is_request, sentences(asked))):
        return answers(reply)
    return len(terms(reply) - terms(asked)) >= _MIN_DONE


@text_cache(4096)
def asks_only(text: str) -> bool:
    """Whether somebody asks something, and tells nothing that binds or belongs to a case."""
    if "?" not in text and text.isascii() and _ASK_WORDS.isdisjoint(words_of(text)):
        return False
    if _OF_CASE.search(_pattern(_OF_ANYBODY).sub("", text)) or SPECIFIC.search(text) or FULL_NAME.search(text):
        return False
    found = sentences(text)
    if any(rate_sentence(sentence) == BINDING or refers_back(sentence) for sentence in found) or _pattern(_TAG).search(
        text
    ):
        return False
    if text.isascii() and text.count(" ") + 1 < _MIN_QUESTION:
        return False
    return bool(found) and all(map(_is_asked, found))


def _is_asked(sentence: str) -> bool:
    is_asked = is_question(sentence) or is_request(sentence)
    return (
        is_asked
        or bool(_pattern(_ASKS).search(sentence) or _pattern(_WISHES).match(sentence))
        or rate_sentence(sentence) == CHATTER
    )


def _is_dated(sentence: str) -> bool:
    """ "30 November", "Monday, 17": what a reply dates belongs to a case."""
    if not _FIGURE.search(sentence):
        return False
    words = [word.strip(".,;:()") for word in sentence.lower().split()]
    return any(
        (one[:1].isdigit() and other[:7] in CALENDAR) or (other[:1].isdigit() and one[:7] in CALENDAR)
        for one, other in pairwise(words)
    )


class _Matter(Struct):
    """How often each word is said, in all."""

    said: Sequence[Said]
    counts: Counter[str]
    times: Counter[str]
    """How often the user says the same."""
    left_out: set[int] = field(default_factory=set)

    def lacks(self, at: int) -> bool:
        """Whether nothing but this question and its reply speaks of what they are about."""
        question, reply = _stems_of(self.said[at]), _stems_of(self.said[at + 1])
        times = self.times[_normal(self.said[at].text)]
        shared = [word for word in question if self._elsewhere(word, question, reply, times) > 0]
        own = question.keys() - shared
        if sum(map(_weight, shared)) > _MAX_SHARED * sum(map(_weight, question)) or not own:
            return False
        others = {word: self._elsewhere(word, question, reply, times) for word in (*question, *reply)}
        text = self.said[at].text
        is_leaning = leans_back(text) or leans_on_another(text) or _POINTS.search(text) is not None
        if is_leaning and sum(len(word) >= _MIN_TOPIC for word in own) < _MIN_NAMED:
            return False  # "And how long does it take to dry?"
        often = [word for word in reply if others[word] >= _OFTEN]
        is_known = any(others.get(name, 0) > 0 for name in _names(text))
        is_known = is_known or any(others.get(name, 0) >= _OFTEN for name in _names(self.said[at + 1].text))
        if is_known or len(often) > _MAX_SHARED_REPLY * len(reply) or self._is_taken_up(at, question, reply):
            return False
        said = sentences(self.said[at + 1].text[:_MAX_READ])
        return not any(is_about_self(one) or _is_dated(one) for one in said)

    def _elsewhere(self, word: str, question: Counter[str], reply: Counter[str], times: int) -> int:
        return self.counts.get(word, 0) - times * (question.get(word, 0) + reply.get(word, 0))

    def _is_taken_up(self, at: int, question: Counter[str], reply: Counter[str]) -> bool:
        """Whether the user soon speaks of it again. A single word of a long reply comes up by chance."""
        asked = _normal(self.said[at].text)
        places = (place for place in range(at + 2, min(at + 2 + _NEAR, len(self.said))) if place not in self.left_out)
        near = (self.said[place] for place in places if self.said[place].role == "user")
        near = (one for one in near if _normal(one.text) != asked)
        words = {word for one in islice(near, _SOON) for word in _stems_of(one) if len(word) >= _MIN_TAKEN_UP}
        taken = [word for word in words if (word in question or word in reply) and self.counts[word] < _OFTEN + 2]
        return any(word in question for word in taken) or len(taken) >= _MIN_NAMED

    def leave_out(self, found: Iterable[int]) -> None:
        for at in found:
            self.counts.subtract(_stems_of(self.said[at]))
            self.counts.subtract(_stems_of(self.said[at + 1]))
            self.times[_normal(self.said[at].text)] -= 1
            self.left_out.add(at)


def _weight(word: str) -> int:
    """Short words come up by chance."""
    return len(word) - 2 if word.isascii() else len(word) - 1


def _read(message: Said) -> str:
    return message.text[: _MAX_TOOL_READ if message.role == "tool" else _MAX_READ]


def _stems_of(message: Said) -> Counter[str]:
    return _count_short(_read(message))


@text_cache(4096)  # the summary and the ledger ask
def _count_short(text: str) -> Counter[str]:
    return _count_stems(text)


def _count_stems(text: str) -> Counter[str]:
    """Words are counted before they are cut to stems: most come up again."""
    found: dict[str, int] = {}
    for written, number in Counter(text.lower().split()).items():
        if written.isascii() and written.isalpha():
            if len(written) < _MIN_WORD:
                continue
            stem = written[:_STEM_LENGTH]
            found[stem] = found.get(stem, 0) + number
            continue
        is_unspaced = not written.isascii() and IS_UNSPACED.search(written) is not None
        for stem in (_UNSPACED_STEM if is_unspaced else _STEM).findall(written):
            found[stem] = found.get(stem, 0) + number
    return Counter({stem: number for stem, number in found.items() if stem not in _NO_TOPIC})


def _names(text: str) -> Iterable[str]:
    return (name.lower() for name in _NAME.findall(text))


def _normal(text: str) -> str:
    return " ".join(text.lower().split())
