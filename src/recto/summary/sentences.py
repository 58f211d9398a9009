"""Sentences: where one ends, and which terms it holds. Works for any script and any text; knows no message.

This is not a library because those need to know the language, and a chat mixes several with code and logs.

Sentence cues: whether a sentence decides, asks, announces or refers back, and its priority. Knows one at a time.

Decisions are recognised in four languages, wherever they are in a sentence: "so we went with SQLite", "SQLite it is".
They complete the cues of `recto.chat.priority`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from recto.chat.priority import BINDING, CHATTER, NORMAL, TELLING, sentence_priority
from recto.summary.answer_style import wants_answers_so
from recto.summary.deadlines import sets_deadline
from recto.summary.machine_output import FENCES
from recto.summary.prohibitions import permits_now, restricts
from recto.summary.statements import asks_unmarked, forbids
from recto.text import text_cache

# Scripts without spaces between words: pairs of characters serve as words there.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
# One character set at the very start keeps the scan fast; what follows the stop is inspected afterwards.
_STOP = re.compile(r"""[.!?…؟۔।॥։።。！？｡][.!?…؟۔।॥։።。！？｡]*+["'”’»)\]}*_`」』】）]*+""")
_EAST_ASIAN_STOP = re.compile(r"""[.!?…؟۔।॥։።]*[。！？｡]""")
_NEXT = re.compile(r"\s++(\S)")
_OPENING = "([{\"'„“‘«*_`"

# The sentences of a longer text are not kept in memory.
_SHORT = 4000
_MIN_WRAPPED_LINE = 50
_MAX_REJOINED = 1000
_CODE_CHARS = re.compile(r"[{}<>=|\\/_]")


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER_LAST = word_set(
    "dr mr mrs ms prof st rev gen sen gov capt lt sgt mt vs e.g i.e eg ie cf al ca approx est resp incl excl viz "
    "z.b d.h u.a o.ä s.o s.u i.d.r m.e v.a bzw evtl ggf inkl exkl vgl bspw sog hr fr frl mio mrd tel "
    "parz whg geb verh mwst zzgl abzgl einschl dept ul c.a "
    "p.ej ej sr sra srta dra ud uds ee av avda mme mlle mm p.ex ex réf ref tél"
)
_SELDOM_LAST = word_set("etc usw inc ltd co corp jr a.m p.m u.s u.k u.s.a u.s.w ph.d b.c a.d")
_BEFORE_NUMBERS = word_set(
    "no nos nr fig figs p pp vol art sec eq ch chap par abs núm num pág pag tab kap § v "
    "jan feb apr jun jul aug sep sept oct okt nov dec dez"
)
_DAY_AND_MONTH = re.compile(r"\d{1,2}\.\d{1,2}")
_GERMAN_MONTH = re.compile(r"\s+(?:Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahr)")
# "die 2. Variante", but "am 5. Bitte kommen"
_BEFORE_ORDINALS = word_set(
    "der die das den des dem im beim zur jede jeder jedes jeden ihre seine unsere meine deine eure"
)
# "am Samstag, den 11. weiter", "bis 14. oder 15."
_BEFORE_DAYS = _BEFORE_ORDINALS | word_set("am vom zum ab bis seit und oder")
# Words that seldom follow an abbreviation.
_OPENER = re.compile(
    r"\s+(?:don['’]?t|do not|not|no|never|nothing|and|but|so|also|please|only|i|we|he|she|they|you|it['’]?s|it"
    r"|that['’]?s|then|ok|nicht|keine?n?|bitte|und|aber|nur|ich|wir|das|pero|y|ojo|nada|pas|mais|et|on|je|niet|geen"
    r"|maar|en|ik|ale"
    r"|nie|tylko)\b"
)
_MIN_LAST = 3
# "z. B. Holz", "p. ej. pan", "i. d. R. morgens"
_SPACED_LETTERS = re.compile(r"\s+(?:[^\W\d_]|ej|ex)\.")


def sentences(text: str) -> list[str]:
    """The sentences in order, stripped; only whitespace lies between them.

    A line break ends a sentence, except in wrapped prose. A line of fenced code is one sentence.
    """
    return [*_split_short(text)] if len(text) <= _SHORT else [sentence for sentence, _ in _tag(text)]


@text_cache(2048)
def _split_short(text: str) -> Sequence[str]:
    return tuple([sentence for sentence, _ in _tag_short(text)])


def sentence_positions(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the offset where it starts."""
    offset = 0
    for sentence in sentences(text):
        start = text.find(sentence, offset)
        if start >= 0:
            yield start, sentence
            offset = start + len(sentence)


def tagged_sentences(text: str) -> Sequence[tuple[str, bool]]:
    """The sentences, each with whether it is a line of fenced code. The fences count as code."""
    return _tag_short(text) if len(text) <= _SHORT else _tag(text)


@text_cache(2048)  # the summary and the ledger read the same messages, one after the other
def _tag_short(text: str) -> Sequence[tuple[str, bool]]:
    return _tag(text)


def _tag(text: str) -> Sequence[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    for line, is_code in _unwrapped_lines(text):
        found += [(line, True)] if is_code else [(sentence, False) for sentence in _split_line(line)]
    return tuple(found)


def _unwrapped_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines that are not blank, stripped, with wrapped prose rejoined; and whether a line is code."""
    in_fence, pending = False, ""
    for line in text.splitlines():
        is_fence = line.lstrip().startswith(FENCES)
        if pending and not in_fence and not is_fence and _is_wrapped(pending, line):
            pending = f"{pending}\n{line.rstrip()}"
            continue
        if pending:
            yield pending, in_fence
        pending = line.strip()
        if is_fence:
            yield pending, True
            in_fence, pending = in_fence != (pending.count(pending[:3]) == 1), ""
    if pending:
        yield pending, in_fence


def _is_wrapped(line: str, following: str) -> bool:
    """Whether prose continues in the next line: a long line of words, then a lower-case letter in the first column."""
    if not following or not following[0].islower():
        return False
    if len(line) > _MAX_REJOINED:
        return False
    last = line[line.rfind("\n") + 1 :]
    if len(last) < _MIN_WRAPPED_LINE or not (last[-1].isalpha() or last[-1] in ",;") or last.count(" ") < 5:
        return False
    return not _CODE_CHARS.search(last) and not _CODE_CHARS.search(following)


def _split_line(line: str) -> tuple[str, ...]:
    found, start = list[str](), 0
    for stop in _STOP.finditer(line):
        if _ends_sentence(line, stop):
            found.append(line[start : stop.end()].strip())
            start = stop.end()
    rest = line[start:].strip()
    return (*found, rest) if rest else tuple(found)


def _ends_sentence(line: str, stop: re.Match[str]) -> bool:
    """East Asian full stops always end a sentence; for all others the following text decides."""
    marks, following = stop[0], _NEXT.match(line, stop.end())
    if not marks.isascii() and _EAST_ASIAN_STOP.match(marks):
        return True
    if following is None:
        return marks[-1] in "!?" and IS_UNSPACED.match(line, stop.end()) is not None
    if marks.rstrip("\"'”’»)]}*_`") == ".":
        return _is_full_stop(line, stop.start(), following)
    return not following[1].islower() or (marks[0] not in ".…" and marks[-1] in "!?")


def _is_full_stop(line: str, at: int, following: re.Match[str]) -> bool:
    before = line[max(0, at - 24) : at].split()
    written = before[-1].lstrip(_OPENING) if before else ""
    word = written.lower()
    if word in _NEVER_LAST or (len(word) == 1 and written.isupper()):
        return False
    if _DAY_AND_MONTH.fullmatch(word) and following[1].isdigit():  # "8.8. 11:26"
        return False
    if following[1].isdigit() and word in _BEFORE_NUMBERS:
        return False
    if word.isdigit() and (_is_numbering(before[:-1]) or _is_ordinal(before, line, following)):
        return False
    if len(word) == 1 and word.isalpha() and _is_spaced_abbreviation(before, line, following):
        return False
    if following[1].islower() and word[-1:].isdigit() and ("." in word or _BEFORE_DAYS.intersection(before[-2:-1])):
        return False
    # people who start a line in lower case start sentences in lower case too
    if following[1].islower() and word not in _SELDOM_LAST and not line[0].islower():
        # a phone writes the first letter of a message in upper case, and no other
        is_plain = len(word) >= _MIN_LAST and word.isalnum() and word not in _BEFORE_NUMBERS
        is_plain = is_plain or (
            word.isdigit() and not line.startswith(" und", following.start())
        )  # "am 12. und 13. Mai"
        return is_plain and _OPENER.match(line, following.start()) is not None
    return not following[1].islower() or (line[0].islower() and word not in _SELDOM_LAST)


def _is_numbering(before: Sequence[str]) -> bool:
    """Whether a number starts a sentence: "Plan: 1. Buy paint. 2. Paint." """
    return not before or (before[-1][-1] in ".:;!?" and before[-1].lower().rstrip(".") not in _BEFORE_NUMBERS)


def _is_ordinal(before: Sequence[str], line: str, following: re.Match[str]) -> bool:
    return _GERMAN_MONTH.match(line, following.start()) is not None or (
        len(before) > 1 and before[-2].lower() in _BEFORE_ORDINALS and following[1].isupper()
    )


def _is_spaced_abbreviation(before: Sequence[str], line: str, following: re.Match[str]) -> bool:
    """Whether a letter with a full stop stands beside another one; "5 p. m." may end a sentence."""
    is_after = len(before) > 1 and len(before[-2]) == 2 and before[-2][-1] == "." and before[-2][0].isalpha()
    is_time = is_after and before[-1].lower() == "m" and before[-2].lower() in ("a.", "p.")
    return _SPACED_LETTERS.match(line, following.start()) is not None or (is_after and not is_time)


_ASCII_WORD = re.compile(r"[a-z0-9_]++(?>(?:['.\-/:@][a-z0-9_]++)*)")
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+(?:['’.\-/:@][^\W{_UNSPACED}]+)*")
_TIMESTAMP = re.compile(r"\W*\d{2,4}[-/.:]\d\d[-/.:]\d\d\S*(?:\s+\d\d:\d\d\S*)?")
_MAX_INSPECTED = 400
_STEM_LENGTH = 7


@text_cache(8192)  # the summary and the ledger ask, and people repeat themselves
def terms(sentence: str) -> frozenset[str]:
    """The topic of a sentence: words cut to a stem, or pairs of characters in scripts without spaces.

    The timestamp at the start of a log line is left out: the same line a second later says the same.
    """
    start = sentence[:_MAX_INSPECTED].lower()
    if start[:1].isdigit() or start[:1] == "[":
        start = _TIMESTAMP.sub("", start, count=1) or start
    if start.isascii():
        words = _ASCII_WORD.findall(start)
    else:
        words = _WORD.findall(start)
        if IS_UNSPACED.search(start):
            words = [term for word in words for term in _character_pairs(word)]
    return frozenset(
        [word if len(word) <= _STEM_LENGTH or not word.isalpha() else word[:_STEM_LENGTH] for word in words]
    )


def _character_pairs(word: str) -> list[str]:
    if not IS_UNSPACED.match(word) or len(word) < 3:
        return [word]
    return [word[at : at + 2] for at in range(len(word) - 1)]


_SUBJECT = re.compile(r"\b(?:we|i|they|you|he|she)(?: (?:all|both|then|just|finally|eventually|now))? $")
_NOT_COMPANY = (
    r"(?!(?:my|his|her|him|them|me|us|you|our|their|some|friends?|family|a friend)\b)"
    r"(?!\S+(?: \S+){0,2} (?:to|last|yesterday)\b)"
)
_DECISION_PHRASES = (
    rf"\bwent with {_NOT_COMPANY}",
    r"\b(?:ended up (?:with|using|choosing|taking|picking|going with)|opted (?:for|to|against)|settled (?:on|for))\b",
    r"\b(?:chose|picked)\b(?! up\b)(?! \w+ up\b)",
    r"\b(?:we're|we are|i'm|i am|we'll be) (?:sticking|staying|going) with\b",
    r"\bwe(?:'ll| will)? (?:stay|stick|remain)(?: on| in| at| with| to)\b(?! (?:touch|bed|contact|shape|line)\b)",
    r"\b(?:we're|we are|i'm|i am) keeping\b(?! (?:in touch|going|up|an eye|fit|busy)\b)",
    r"\b(?:wir|ich) (?:bleiben?|behalten?|belassen) (?:wir |ich )?(?:bei|dabei|in|es|den|die|das|alles)\b",
    r"\b(?:bleibt|bleiben|se queda|se mantiene|stays|remains)(?: (?:dabei|unverändert|igual|así|unchanged))?[.!]*$",
    r"\blet's (?:do|take|have|make|say|meet|aim for|go for)(?! (?:it|this|that|so|a break|fun)\b)",
    r"\bmake it (?=\d)",
    r"\bthen (?:it's|we'll|i'll|we will|i will) (?:take|have|do|meet|keep|use)\b",
    r"\b(?:dann|also|doch|da) (?:nehmen|machen|bleiben|gehen|treffen|fahren|lassen|teilen) wir\b|\bbleibt es bei\b",
    r"\buns auf\b.{1,60}\bgeeinigt\b|\beinigten uns auf\b",
    r"\b(?:on a|nous avons|j'ai|ils ont) (?:finalement )?(?:pris|choisi|opté|retenu)\b|\bva pour\b|\bce sera\b",
    r"\b(?:optamos|nos decidimos|se decidieron) por\b|\bquedamos en\b|\bhemos (?:elegido|optado)\b|\belegimos\b",
)
_IT_IS = re.compile(
    r"(?:^|[^\w\s'’-] ?|\b(?:ok|okay|fine|alright|so|then|well) )"
    r"((?:(?!(?:what|how|who|where|why|which|that|whatever|as|than|if|like|but|because)\b)[^\s,.;:!]+ ){1,4})it is"
    r"(?=(?: then| lol| (?:ha){2,}h?)?\s*(?:[^\w\s]|$)| (?:for|as|in|on|at|with|from)\b)"
)
# Every match contains one of these words. Most sentences have none, and this test takes a tenth of the time.
_DECISION_HINTS = word_set(
    "no kein pas d'ici sin ohne sans without zero stay stick remain keeping bleibe bleiben behalte behalten belassen "
    "bleibt bleibt. queda mantiene queda. mantiene. stays remains stays. remains. "
    "went ended opted settled chose picked sticking staying going let's let’s make then wir bleibt wahl uns pris "
    "choisi opté retenu va sera reste por quedamos hemos elegimos"
)


@cache
def _decision_pattern() -> re.Pattern[str]:
    """Compiled when first needed: few commands ever summarise."""
    return re.compile("|".join(_DECISION_PHRASES))


def decision_start(sentence: str) -> int | None:
    """Where the words start that decide something; None for questions and for sentences without a decision."""
    lower = sentence.replace("İ", "I").lower()  # of the same length, and matched in half the time
    is_likely = not _DECISION_HINTS.isdisjoint(lower.split()) or " it is" in lower
    if not is_likely or lower.rstrip("\"')*_ ").endswith(("?", "？")):
        return None
    lower = lower.replace("’", "'")
    if found := _decision_pattern().search(lower):
        subject = _SUBJECT.search(lower, max(0, found.start() - 24), found.start())
        return subject.start() if subject else found.start()
    if forbids(lower):
        return 0
    found = _IT_IS.search(lower) if "it is" in lower else None
    return found.start(1) if found else None


_CLOSING = "\"'”’)]*_ 」』）"
_UNSPACED_QUESTION = re.compile(r"(?:吗|呢|ですか|ますか|でしょうか|ましょうか|ませんか|かな)[。.]?$")

# `recto.chat.priority` knows the cues of languages with spaces; these are for languages without.
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNSPACED_BINDING = re.compile(
    "必须|务必|不要|不能|不许|不准|禁止|一定要|绝对|决定|定为|定在|改成|改为|改到|更正|不是.+而是|只能|最多|至少|过敏|预算|截止"
    "|记得|别忘|不可|不得|请勿|取消|推迟|提前到|换成|就[订定选用买要住]|继续用|(?<![特区级分告个性类识差])别(?![人的处墅扭致名样])"
    "|絶対|必ず|決め|決まり|決定|変更|変わり|ではなく|じゃなくて|ないでください|ないでね|しないで|出さないで|使わないで|ことにし|にします(?!か)|にしました|までに|まで(?:です|の)|のほうがいい|の方がいい|がいいです|にしたい|短くし|短くお願い|短く答え|簡潔に|なしでお願い|なしにして|延期|中止|キャンセル|未定|まだ決|以内|予算|アレルギー|締め切り|訂正|반드시|절대|결정|변경|아니라|마세요|예산|까지"
)
_UNSPACED_SMALL_TALK = re.compile(
    r"(?:(?:谢谢|多谢|感谢|不客气|你好|您好|哈+|好的?|嗯+|是啊|是的|对的?|明白了?|知道了|没问题|再见|太好了|当然(?:可以)?|不错|了|你|您|啊|呀|吧"
    r"|ありがとう(?:ございま(?:す|した))?|こんにちは|こんばんは|おはよう(?:ございます)?|はい|ええ|わかりました|分かりました|承知(?:しました|です)"
    r"|了解(?:です|しました)?|いいですね|よかったです|すみません|もちろん(?:です)?|どういたしまして|それは|ね|よ|감사합니다|고맙습니다|안녕하세요|네|알겠습니다|좋아요)[\s，,！!。、.~～…]*)+"
)
# A set of characters at the very start keeps the scan fast.
UNSPACED_NUMBER = re.compile(
    "[\\d〇零一二三四五六七八九十百千万亿億两](?:(?<=\\d)|(?<!\\d)[〇零一二三四五六七八九十百千万亿億两]+"
    "|(?<=[二三四五六七八九十])(?=[元円年月日号時时点分名人岁歳个個台間部杯%]))"
)


_MAX_GREETING = 60
# "Cool, John.", "Yeah Maria, it's awesome!"
_VOCATIVE = re.compile(r",? [A-Z][^\W\d_]+(?=[!.]*$|[,!] )")
_GREETING = re.compile(
    r"(?:(?:hi|hey|hello|hallo|hola|salut|so|and|und|y|et)\b[^?!.]{0,20}[,!]? )?(?:¿ ?)?"
    r"(?:how (?:are|have) (?:you|things)(?: been| doing| going)?|how(?:['’]s| is) (?:it|everything|life)(?: going)?"
    r"|are you (?:al(?:l )?right|okay|ok|well)"
    r"|what(?:['’]s| is) (?:up|new)|how do you do|wie geht(?:['’]?s| es)(?: (?:dir|ihnen|euch))?"
    r"|was gibt(?:['’]?s| es) neues|alles (?:gut|klar)|qué tal|cómo (?:estás|está usted|están|te va)"
    r"|ça va|comment (?:ça va|vas-tu|allez-vous)|quoi de neuf)"
    r"(?: (?:today|lately|heute|hoy|so|bei dir))?(?:, \w+)? ?[?!.]*",
    re.IGNORECASE,
)


@text_cache(8192)  # facts and sentences of a summary are found in the same messages, one after the other
def rate_sentence(sentence: str) -> int:
    """The priority of one sentence, in languages with and without spaces."""
    priority = sentence_priority(sentence)
    if priority in (BINDING, CHATTER):
        return priority
    if len(sentence) < _MAX_GREETING and _GREETING.fullmatch(sentence):
        return CHATTER
    if (
        wants_answers_so(sentence)
        or decision_start(sentence) is not None
        or (
            (restricts(sentence) or permits_now(sentence) or (priority == TELLING and sets_deadline(sentence)))
            and not is_question(sentence)
        )
    ):
        return BINDING
    if priority == NORMAL and len(sentence) < _MAX_GREETING and (addressed := _VOCATIVE.search(sentence)):
        rest = sentence[: addressed.start()] + sentence[addressed.end() :]
        priority = min(priority, sentence_priority(rest.strip()))
    if sentence.isascii() or not _EAST_ASIAN.search(sentence):
        return priority
    if _UNSPACED_SMALL_TALK.fullmatch(sentence):
        return CHATTER
    if _UNSPACED_BINDING.search(sentence) and not is_question(sentence):
        return BINDING
    return max(priority, TELLING if UNSPACED_NUMBER.search(sentence) else NORMAL)


@text_cache(8192)
def is_question(sentence: str) -> bool:
    end = sentence[-12:].rstrip(_CLOSING)
    is_unspaced = not end.isascii() and _UNSPACED_QUESTION.search(end) is not None
    return end.endswith(("?", "？", "؟")) or is_unspaced or asks_unmarked(sentence)


def is_heading(sentence: str) -> bool:
    """Whether it announces the sentence after it."""
    return sentence[-4:].rstrip(_CLOSING).endswith((":", "："))
