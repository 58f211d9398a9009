"""What a sentence is worth in a summary, by itself: its terms, its facts, what it binds, who said it.

Knows one sentence and how terms are weighed in the whole, not what else is chosen.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from recto.chat.priority import BINDING, CHATTER, NORMAL, TELLING, weigh
from recto.summary.lines import ASSISTANT, TOOL, USER, Line, Part
from recto.summary.sentences import is_noise
from recto.summary.settled import settles_at

NOISE = 0.0001
LEAST = 0.02
"""Below it a sentence says nothing: noise, or small talk. It is taken only where nothing else is."""

# What a sentence is worth: tuned by eye on chats and agent runs, the order of the numbers matters more than they do.
_CUES = {BINDING: 0.8, TELLING: 0.4}
_FACTS = (0.0, 0.25, 0.4, 0.5)
_LEAD, LEADING = 1.6, 3
_SMALL_TALK = 0.01
_MACHINE_MADE = 0.5
_LISTED = 0.35
_HEADING, _PROMISE = 0.5, 0.85
_INTENT = 0.7
_LEANING, _LOOSE = 0.85, 0.55
_ASKED = {USER: 0.8, ASSISTANT: 0.4}
_OFTEN = 3
_ROW = 6
_LOOKED_AT, _SHORT = 400, 40

_NAME = re.compile("[A-Z](?<=[a-z,] [A-Z])")
_FULL_NAME = re.compile("[A-Z][a-z]+ [A-Z][a-z]")
_EVENT = re.compile(r"\b(?:error|fail|exception|warning|pass|success|found|total|result)", re.IGNORECASE)
_CODE_SIGN = re.compile(r"[{}\[\]()<>=;|\\]")
_NUMBERED = re.compile(r"\d+:")
_MACHINE = re.compile(
    r"\W*(?:\d{2,4}[-/.]\d\d[-/.]\d\d[T ,]+)?\d\d:\d\d:\d\d|\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL)\b"
    r"|\d+:\s|\s*(?:at \S+\(|File \"|Traceback \(|\[(?:\*|x|\+|-|File:)|[{}<|>]|\(\w+ \w+: )"
)
_INTENDED = re.compile(
    r"(?:(?:now|next|first|then|so|okay|ok|great|perfect)[,!.:]? )?"
    r"(?:let's|let me|let us|i'll|i will|we'll|we will|we can now|i'm going to|ich werde|lass uns|je vais|voy a"
    r"|我会|我来|我将|では|それでは)",
    re.IGNORECASE,
)
_CLOSING = "\"'”’)]*_ 」』）"
_ASKS = re.compile(r"(?:吗|呢|ですか|ますか)[。.]?$")

# Sentences that stand on the one before: pronouns and conjunctions to begin with.
_LEANS = re.compile(
    r"(?:(?:Yeah|Yes|Well|Oh|Ah|Thanks|Sure|Nice|Wow|Ja|Oui|Sí)[,!.] )?"
    r"(?:(?:(?i:It|This(?! (?:week|month|year|morning|time|summer|winter|spring|fall))|That|These|Those|They|He|She|Its"
    r"|Their|His|Her|Such|Both|So|But|And|Then|Also|Because|Which|Otherwise|Here(?:'s| is| are)|I mean|I meant)"
    r"|Das(?= [a-zäöü])|Dies\w*|Es|Er|Dort|Damit|Dafür|Daher|Deshalb|Dann|Aber|Und|Sonst|Beide|Ich meine|Ich meinte"
    r"|Ils?|Elles?|Ce|C['’]est|Cela|Ça|Cette|Ces|Mais|Et|Donc|Puis"
    r"|Es[eao]s?|Est[eao]s?|Él|Ellas?|Ellos|Pero|Y|Entonces|Además)\b"
    r"|这|那(?!么)|它|他|她|其|但|所以|因此|然后|不过|而且|これ|それ|あれ|その|この|そこ|しかし|でも|だから|그)"
)

# The cues of `priority` are phrases of spaced languages; these stand for them where words are not spaced.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED_BINDS = re.compile(
    "必须|务必|不要|不能|不许|不准|禁止|一定要|绝对|决定|定为|定在|改成|改为|改到|更正|不是.+而是|只能|最多|至少|过敏|预算|截止"
    "|絶対|必ず|決め|決まり|決定|変更|変わり|ではなく|じゃなくて|しないで|出さないで|使わないで|までに|以内|予算|アレルギー|締め切り|訂正"
    "|반드시|절대|결정|변경|아니라|마세요|예산|까지"
)
_UNSPACED_SMALL_TALK = re.compile(
    r"(?:(?:谢谢|多谢|感谢|不客气|你好|您好|哈+|好的?|嗯+|是啊|是的|对的?|明白了?|知道了|没问题|再见|太好了|当然(?:可以)?|不错|了|你|您|啊|呀|吧"
    r"|ありがとう(?:ございま(?:す|した))?|こんにちは|こんばんは|おはよう(?:ございます)?|はい|ええ|わかりました|分かりました|承知(?:しました|です)"
    r"|了解(?:です|しました)?|いいですね|よかったです|すみません|もちろん(?:です)?|どういたしまして|それは|ね|よ"
    r"|감사합니다|고맙습니다|안녕하세요|네|알겠습니다|좋아요)[\s，,！!。、.~～…]*)+"
)
_NUMBER = re.compile("[\\d〇零二三四五六七八九十百千万亿億]|一[年月日号点时時]|[年月]一")


def _words(table: str) -> frozenset[str]:
    return frozenset(table.split())


# Days and months in four languages, as far as terms go; "may" is more often a verb.
_CALENDAR = _words("""
monday tuesday wednesd thursda friday saturda sunday january februar march april june july august septemb october
novembe decembe jan feb apr jun jul aug sep sept oct nov dec montag diensta mittwoc donners freitag samstag sonntag
januar märz juni juli oktober dezembe lundi mardi mercred jeudi vendred samedi dimanch janvier février avril juin
juillet août octobre lunes martes miércol jueves viernes sábado domingo enero febrero marzo abril mayo junio julio
agosto octubre noviemb diciemb
""")
_UNSPACED_NUMBER = re.compile(
    "[〇零一二三四五六七八九十百千万亿億两]{2,}|[二三四五六七八九十](?=[元円年月日号時时点分名人岁歳个個台間部杯%])|\\d"
)


class Weights(dict[str, int]):
    """What a term counts, up to 1000. Whole numbers: their sum does not depend on the order of a set."""

    def __missing__(self, term: str) -> int:
        return 300

    def of(self, about: set[str]) -> int:
        return sum(map(self.__getitem__, about))


def term_weights(found: Sequence[set[str]]) -> Weights:
    """Most where a term comes back, but not everywhere. No list of stop words."""
    seen = Counter(chain.from_iterable(found))
    weights = {term: math.sqrt(math.log1p(times)) * math.log((len(found) + 1) / times) for term, times in seen.items()}
    top = max(weights.values(), default=1.0)
    return Weights({term: round(1000 * weight / top) for term, weight in weights.items()})


def often_said(texts: Iterable[str]) -> frozenset[str]:
    """What stands there again and again, word for word: of a machine, that is its frame and not its news."""
    return frozenset(text for text, times in Counter(texts).items() if times >= _OFTEN)


def worth(part: Part, line: Line, weights: Weights, often: frozenset[str] = frozenset()) -> float:
    """What the sentence is worth as one of this line."""
    text = part.text
    if is_noise(text):
        return NOISE * line.favour
    start = text[:_LOOKED_AT]
    label = TOOL if line.label != TOOL and is_machine_made(start) else line.label
    facts = _facts(part, start)
    # the 3 keeps a lone word from being the most central of all
    value = 0.2 + weights.of(part.terms) / 1000 / (len(part.terms) + 3) + _FACTS[facts or 0]
    value = _reported(value, start, text in often) if label == TOOL else _spoken(value, start, label)
    value *= _form(part, start, facts, line.is_wanted and label != TOOL)
    if label != line.label:
        value *= _MACHINE_MADE
    return line.favour * value / math.sqrt(max(1.0, len(text) / 240))


def _facts(part: Part, start: str) -> int | None:
    """How many names, numbers, paths and the like it has, up to three; None for a row of figures, which tell nothing
    without their heads."""
    facts = sum([not term.isalpha() for term in part.terms])
    if len(part.terms) >= _ROW and 2 * facts > len(part.terms):
        return None
    facts += len(_NAME.findall(start)) + (_FULL_NAME.match(start) is not None)
    if not start.isascii():
        facts = max(facts, len(_UNSPACED_NUMBER.findall(start)))
    return min(facts, len(_FACTS) - 1)


def _reported(value: float, start: str, is_often: bool) -> float:
    """Of what a machine has written, what has happened comes first."""
    value = value + 0.3 if _EVENT.search(start) else 0.6 * value
    return 0.5 * value if is_often else value


def _spoken(value: float, start: str, label: str) -> float:
    weight = weight_of(start)
    if weight == CHATTER:
        return _SMALL_TALK * value
    if label == ASSISTANT and _INTENDED.match(start):
        return _INTENT * value
    value += _CUES.get(weight, 0.0)
    return value * _ASKED.get(label, 1.0) if is_question(start) else value


def _form(part: Part, start: str, facts: int | None, is_wanted: bool) -> float:
    """What its form takes away or adds: a listing, a heading, a sentence that leans, how a task begins."""
    value = _LEAD if is_wanted and part.place < LEADING else 1.0
    if part.is_code or _NUMBERED.match(start) or len(_CODE_SIGN.findall(start)) * 12 > len(start):
        value *= _LISTED
    if facts is None:
        value *= _LISTED
    if is_heading(start):
        value *= _HEADING if len(start) < _SHORT else _PROMISE
    if leans(start):
        value *= _LEANING if part.place or facts else _LOOSE
    return value


def weight_of(sentence: str) -> int:
    """On the scale of priorities, in spaced languages and others."""
    weight = weigh(sentence)
    if weight in (BINDING, CHATTER):
        return weight
    if settles_at(sentence) is not None:
        return BINDING
    if sentence.isascii() or not _UNSPACED.search(sentence):
        return weight
    if _UNSPACED_SMALL_TALK.fullmatch(sentence):
        return CHATTER
    if _UNSPACED_BINDS.search(sentence) and not is_question(sentence):
        return BINDING
    return max(weight, TELLING if _UNSPACED_NUMBER.search(sentence) else NORMAL)


def numbers(about: set[str]) -> set[str]:
    """The terms that are numbers or have one, in figures or signs of East Asia, and those of the calendar."""
    # most terms are plain words, which need no search
    return {
        term
        for term in about
        if term in _CALENDAR or (not (term.isascii() and term.isalpha()) and _NUMBER.search(term))
    }


def is_question(sentence: str) -> bool:
    end = sentence[-12:].rstrip(_CLOSING)
    return end.endswith(("?", "？", "؟")) or (not end.isascii() and _ASKS.search(end) is not None)


def is_heading(sentence: str) -> bool:
    """Something is to follow."""
    return sentence[-4:].rstrip(_CLOSING).endswith((":", "："))


def is_machine_made(sentence: str) -> bool:
    return _MACHINE.match(sentence) is not None


def leans(sentence: str) -> bool:
    """Whether it begins with a word that points back."""
    return _LEANS.match(sentence) is not None
