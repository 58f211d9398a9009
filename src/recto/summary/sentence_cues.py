"""Sentence cues: whether a sentence decides, asks, announces or refers back, and its priority. Knows one at a time.

Decisions are recognised in four languages, wherever they are in a sentence: "so we went with SQLite", "SQLite it is".
They complete the cues of `recto.chat.priority`.
"""

import re
from functools import cache

from recto.chat.priority import BINDING, CHATTER, NORMAL, TELLING, sentence_priority
from recto.summary.sentences import word_set

_SUBJECT = re.compile(r"\b(?:we|i|they|you|he|she)(?: (?:all|both|then|just|finally|eventually|now))? $", re.IGNORECASE)
_NOT_COMPANY = (
    r"(?!(?:my|his|her|him|them|me|us|you|our|their|some|friends?|family|a friend)\b)"
    r"(?!\S+(?: \S+){0,2} (?:to|last|yesterday)\b)"
)
_DECISION_PHRASES = (
    rf"\bwent with {_NOT_COMPANY}",
    r"\b(?:ended up (?:with|using|choosing|taking|picking|going with)|opted (?:for|to|against)|settled (?:on|for))\b",
    r"\b(?:chose|picked)\b(?! up\b)(?! \w+ up\b)",
    r"\b(?:we're|we are|i'm|i am|we'll be) (?:sticking|staying|going) with\b",
    r"\blet's (?:do|take|have|make|say|meet|aim for|go for)(?! (?:it|this|that|so|a break|fun)\b)",
    r"\bmake it (?=\d)",
    r"\bthen (?:it's|we'll|i'll|we will|i will) (?:take|have|do|meet|keep|use)\b",
    r"\b(?:dann|also|doch|da) (?:nehmen|machen|bleiben|gehen|treffen|fahren) wir\b|\bbleibt es bei\b",
    r"\buns auf\b.{1,60}\bgeeinigt\b|\beinigten uns auf\b",
    r"\b(?:on a|nous avons|j'ai|ils ont) (?:finalement )?(?:pris|choisi|opté|retenu)\b|\bva pour\b|\bce sera\b",
    r"\b(?:optamos|nos decidimos|se decidieron) por\b|\bquedamos en\b|\bhemos (?:elegido|optado)\b|\belegimos\b",
)
_IT_IS = re.compile(
    r"(?:^|[,.;:!–—] ?|\b(?:ok|okay|fine|alright|so|then|well) )"
    r"((?:(?!(?:what|how|who|where|why|which|that|whatever|as|than|if|like|but|because)\b)[^\s,.;:!]+ ){1,4})it is"
    r"(?=(?: then)?\s*(?:[,.;!]|$))",
    re.IGNORECASE,
)
# Every match contains one of these words. Most sentences have none, and this test takes a tenth of the time.
_DECISION_HINTS = word_set(
    "went ended opted settled chose picked sticking staying going let's let’s make then wir bleibt wahl uns pris "
    "choisi opté retenu va sera reste por quedamos hemos elegimos"
)


@cache
def _decision_pattern() -> re.Pattern[str]:
    """Compiled when first needed: few commands ever summarise."""
    return re.compile("|".join(_DECISION_PHRASES), re.IGNORECASE)


def decision_start(sentence: str) -> int | None:
    """Where the words start that decide something; None for questions and for sentences without a decision."""
    lower = sentence.lower()
    is_likely = not _DECISION_HINTS.isdisjoint(lower.split()) or " it is" in lower
    if not is_likely or lower.rstrip("\"')*_ ").endswith(("?", "？")):
        return None
    text = sentence.replace("’", "'")
    if found := _decision_pattern().search(text):
        subject = _SUBJECT.search(text, max(0, found.start() - 24), found.start())
        return subject.start() if subject else found.start()
    found = _IT_IS.search(text)
    return found.start(1) if found else None


# Pronouns and conjunctions that refer to the sentence before.
_BACK_REFERENCE = re.compile(
    r"(?:(?:Yeah|Yes|Well|Oh|Ah|Thanks|Sure|Nice|Wow|Ja|Oui|Sí)[,!.] )?"
    r"(?:(?:(?i:It|This(?! (?:week|month|year|morning|time|summer|winter|spring|fall))|That|These|Those|They|He|She|Its"
    r"|Their|His|Her|Such|Both|So|But|And|Then|Also|Because|Which|Otherwise|Here(?:'s| is| are)|I mean|I meant)"
    r"|Das(?= [a-zäöü])|Dies\w*|Es|Er|Dort|Damit|Dafür|Daher|Deshalb|Dann|Aber|Und|Sonst|Beide|Ich meine|Ich meinte"
    r"|Ils?|Elles?|Ce|C['’]est|Cela|Ça|Cette|Ces|Mais|Et|Donc|Puis"
    r"|Es[eao]s?|Est[eao]s?|Él|Ellas?|Ellos|Pero|Y|Entonces|Además)\b"
    r"|这|那(?!么)|它|他|她|其|但|所以|因此|然后|不过|而且|これ|それ|あれ|その|この|そこ|しかし|でも|だから|그)"
)
_CLOSING = "\"'”’)]*_ 」』）"
_UNSPACED_QUESTION = re.compile(r"(?:吗|呢|ですか|ますか)[。.]?$")

# `recto.chat.priority` knows the cues of languages with spaces; these are for languages without.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED_BINDING = re.compile(
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
UNSPACED_NUMBER = re.compile(
    "[〇零一二三四五六七八九十百千万亿億两]{2,}|[二三四五六七八九十](?=[元円年月日号時时点分名人岁歳个個台間部杯%])|\\d"
)


def rate_sentence(sentence: str) -> int:
    """The priority of one sentence, in languages with and without spaces."""
    priority = sentence_priority(sentence)
    if priority in (BINDING, CHATTER):
        return priority
    if decision_start(sentence) is not None:
        return BINDING
    if sentence.isascii() or not _UNSPACED.search(sentence):
        return priority
    if _UNSPACED_SMALL_TALK.fullmatch(sentence):
        return CHATTER
    if _UNSPACED_BINDING.search(sentence) and not is_question(sentence):
        return BINDING
    return max(priority, TELLING if UNSPACED_NUMBER.search(sentence) else NORMAL)


def is_question(sentence: str) -> bool:
    end = sentence[-12:].rstrip(_CLOSING)
    return end.endswith(("?", "？", "؟")) or (not end.isascii() and _UNSPACED_QUESTION.search(end) is not None)


def is_heading(sentence: str) -> bool:
    """Whether it announces the sentence after it."""
    return sentence[-4:].rstrip(_CLOSING).endswith((":", "："))


def refers_back(sentence: str) -> bool:
    """Whether it starts with a word that refers to the sentence before."""
    return _BACK_REFERENCE.match(sentence) is not None
