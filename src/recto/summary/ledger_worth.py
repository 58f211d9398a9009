"""Which entries are worth a line of the ledger: those that a reader understands who goes on tomorrow.

No talk in passing, no machine output, no piece of a list, a program or a dialogue. A question is quoted only where its
answer is too short to be understood alone. Knows one entry at a time, in whatever message it stands.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date

from msgspec.structs import replace

from recto.summary.corrections import corrects
from recto.summary.facts import Fact
from recto.summary.ledger import FIGURES, LedgerEntry, has_marks_of_lines, topic_terms
from recto.summary.machine_output import PROSE, LineKinds, has_code_punctuation, is_machine_made
from recto.summary.past_plans import is_only_plan, is_over
from recto.summary.prohibitions import has_prohibition
from recto.summary.quotation import count_topic_words, is_topic_word
from recto.summary.sentences import IS_UNSPACED, terms, word_set
from recto.summary.side_questions import asks_only
from recto.summary.small_talk import FULL_NAME, SPECIFIC, is_platitude, is_remark
from recto.summary.statements import accepts, agrees, asks_politely, makes_offer, says_little
from recto.summary.term_weights import CALENDAR
from recto.summary.worth import is_advice, stands_alone
from recto.text import text_cache

OF_TOOLS = ("error", "url")
"""What of a tool's output may be listed."""
# These are understood by themselves, and are no pieces of something.
_WHOLE = ("command", "path", "url", "error")
_BINDING = ("decision", "question", "request")
_MAX_BARE = 2
_CODE_PIECE = re.compile(
    r"\b(?:SELECT|FROM|WHERE|(?:LEFT |INNER |OUTER )?JOIN|GROUP BY|ORDER BY|HAVING|INSERT INTO|VALUES) [\w*(]"
    r"|^\W*[\w.$]+ ?(?:[<>]=?|[=!]==?|:=|=>|->|::) ?[\w.$'\"]+\W*$|^\W*(?:def|class|return|import|const|let"
    r"|var) \w+[(;:=]|^\W*[\w.$]+ = [\w.$]+[\[(.]"
)
# "Execution Time: 781.2 ms", "Buffers: shared hit=2211": a program tells a measure, with no verb and no article.
_MEASURE = re.compile(
    r"(?:[A-Z][\w-]*(?: [A-Z][\w-]*){0,2}|[a-z]+_\w+): (?:[\w ]*=)?[\d.,]+ ?(?:ms|µs|s|[KMG]i?B|rows)?$"
)
_ASSIGNED = re.compile(r"\w=\d")
_FIGURE = re.compile(r"\d")
_FIGURES = re.compile(r"\d[^\s]*\s[^\d]*\s[€$£]?\d")
# Units and words that only compare are no topic of a figure: "310 each so 9,920".
_NO_TOPIC = word_set(
    "euro euros dollar dollars pound pounds quid francs zł złotych yen percent prozent cent cents minute minutes "
    "minuten "
    "minutos minuti hour hours stunde stunden hora horas heures ore uur second seconds sekunden day days tag tage "
    "tagen "
    "días jours giorni dagen dni week weeks woche wochen semana semanas semaines settimane weken month months monat "
    "monate "
    "monaten meses mes mois mesi maanden year years jahr jahre jahren años ans anni jaar piece pieces stück stuks "
    "sztuk "
    "each same again plus like left less instead meer mehr weniger más menos moins più meno więcej dann then dan "
    "quindi "
    "alors bad done says gives makes comes"
)
# A subject that is named with an article or as somebody's own, or the one who speaks.
_NAMED_SUBJECT = re.compile(
    r"(?:(?:i|we|ich|wir|je|nous|on|ik|wij|io|noi|eu|nós)(?:['’]\w+)? \S+ \S+ |(?:the|my|our|his|her|their|der|die"
    r"|das|mein\w*|unser\w*|el|la|los|las|mi|mis|nuestr\w+|le|les|mon|ma|mes|notre|nos"
    r"|il|lo|gli|i|mio|mia|nostr\w+|de|het|mijn|onze?|o|a|os|as|meu|minha|nosso|nossa|mój|moja|moje"
    r"|nasz\w*) [^\W\d_]{3,}"
    r"[^,.;:]* )",
    re.IGNORECASE,
)
# "Loan is …", "Mattresses: …"
_IS = re.compile(
    r"[^\W\d_]+(?: [^\W\d_]+){0,2}: |(?:[^\W\d_]+ ){1,4}(?:is|are|was|ist|sind|war|es|son|est|sont|è|sono|zijn"
    r"|jest|są|é|são) ",
    re.IGNORECASE,
)
# "It's 968 chairs": what is counted is named, and may correct what was said before.
_COUNTS = re.compile(
    r"\b(?:it['’]s|it is|there are|es sind|son|ce sont|c['’]est|il y a|het zijn|sono|są|jest|são)"
    r" (?:\w+ )?\d[\d.,]* [^\W\d_]{4,}",
    re.IGNORECASE,
)
# "I've got this in …", "never do that": what it is about stands elsewhere.
_POINTS_AWAY = re.compile(
    r"\b(?<!on )(?<!of )(?<!in )(?<!with )(?:this|that|it|those|these|das|dies|es|eso|esto|ça|cela|dat|dit|questo"
    r"|quello|ciò|tego|isso|isto)"
    r"(?: ones?)?(?= (?:in|on|at|from|there|now|again|here|in|im|aus|en|dans|da|w|z) |\W*$)",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no|never|don['’]t|nicht|kein\w*|nie|ne|pas|non|niet|geen|sin|nunca|jamais|mai|nie|não)\b", re.IGNORECASE
)
# What is said to hold is understood with fewer words: "Weeks should start on Monday".
_HOLDS = re.compile(
    r"\b(?:should|must|only|always|never|at (?:most|least|the latest)|max\.?|soll\w*|muss|müssen|darf|nur|immer"
    r"|spätestens|höchstens"
    r"|debe\w*|solo|siempre|como máximo|doi(?:t|vent)|toujours|moet\w*|alleen|altijd|uiterlijk|dev(?:e|ono)|sempre"
    r"|entro|massimo|musi|zawsze|tylko|najpóźniej|deve\w*|até)\b",
    re.IGNORECASE,
)
_IT = re.compile(r"(?:it|that|this|das|dies|es|eso|esto|ça|c['’]est|cela|dat|dit|questo|quello)\b", re.IGNORECASE)
# What comes next in the talk is no decision about the matter.
_TURNS_TO = re.compile(
    r"(?:[\w ]{1,12}[,:.] )?(?:let['’]s (?:talk|look|discuss|start|begin|continue|go on|move on|turn|get back|see)\b"
    r"|(?:lass uns|lasst uns)? ?(?:reden|sprechen|machen|schauen) wir\b.*\b(?:über|weiter|an)\b|weiter mit\b"
    r"|hablemos de"
    r"|pasemos a|sigamos|parlons de|passons à|continuons|laten we (?:het hebben|verder|kijken|beginnen)|parliamo di"
    r"|passiamo a"
    r"|pogadajmy|przejdźmy|vamos falar|passemos)\b[^\d]*$",
    re.IGNORECASE,
)
# Questions without their mark, and moods: a figure in them is none of the case.
_ASKS_OR_FEELS = re.compile(
    r"(?:why|how (?:much|many|long|do|can|is)|what(?:['’]s| is| are| do| does)|who (?:is|has)|warum|wieso"
    r"|wie (?:viele?|lange"
    r"|kann|hoch)|por qué|cuánt[oa]s?|pourquoi|combien|waarom|hoeveel|hoe (?:lang|kan)|perché|quant[oaie]|dlaczego|ile"
    r"|i (?:hate|love)|ich (?:hasse|liebe)|odio|je déteste|ik haat|nienawidzę)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:something like|e\.g\.|for example|so etwas wie|etwa so|algo como|quelque chose comme|iets als|qualcosa come"
    r"|coś (?:jak|w stylu)|algo como)\b",
    re.IGNORECASE,
)
_THAT_ONE = re.compile(
    r"\b(?:that|this|those|these|diese[rsnm]?|es[ae]s?|cette|quest[ao]|quell[ao]|deze|essa|esse)\b", re.IGNORECASE
)
_MAIL_HEADER = re.compile(
    r"(?:> ?)?(?:From|To|Cc|Date|Sent|Subject|Von|An|Datum|Gesendet|Betreff|De|Para|Fecha|Asunto|À|Objet|Van|Aan"
    r"|Onderwerp"
    r"|Da|Oggetto|Od|Do|Temat): "
)
# A short answer that begins so is a part of the sentence that its question begins.
_PART = re.compile(
    r"\W*(?:\d|[€$£]|(?:at|in|on|for|from|until|till|about|around|by|to|with|of|since|after|before|am|im|bei|beim"
    r"|ab|von|vom"
    r"|bis|für|um|seit|nach|vor|zum|zur|aus|en|desde|hasta|por|para|con|à|au|aux|dans|pour|depuis|avec|chez|op|om"
    r"|tot|bij"
    r"|voor|al|alle|dal|dalle|per|da|w|we|na|do|od|z|dla|em|no|até|yes|no|ja|nein|sí|oui|non|sì|tak|nie|because|weil"
    r"|porque|parce)\b)",
    re.IGNORECASE,
)
_LISTS = re.compile(
    r"(?:[^,.;!?\n]+,){2}[^.;!?\n]*,? (?:and|or|und|oder|y|o|et|ou|en|of|e|i|lub) |:[^.!?\n]*,[^.!?\n]*,"
)
_MAX_LISTED = 160
_MAX_PART, _MIN_SENTENCE, _MIN_ALONE = 8, 6, 2
_MIN_PROPOSED, _MIN_ERROR, _MIN_TOPIC, _MIN_POINTED, _MIN_RUN = 3, 2, 2, 3, 8
_ERROR_NAME = re.compile(r"^[\w.]*(?:Error|Exception|Warning|Failure)\b:? ?")


def is_worth_a_line(entry: LedgerEntry) -> bool:
    text, kind = entry.text, entry.fact.kind
    if (entry.question is None and says_little(text)) or is_platitude(text) or has_marks_of_lines(text):
        return False
    if (kind != "decision" and is_remark(text)) or _TURNS_TO.match(text) or _MAIL_HEADER.match(text):
        return False
    if entry.question and not _is_answer(entry):
        return False
    if entry.role == "assistant" and kind != "question" and text.endswith(("?", "？")):
        return False
    return not (_is_machine_text(entry) or _is_fragment(entry))


# -- answers


def without_needless_question(entry: LedgerEntry) -> LedgerEntry:
    """The entry without the question that it answers, where it is understood alone."""
    if entry.question is None or entry.is_correction or not entry.question.text.endswith(("?", "？")):
        return entry
    if answers_in_part(entry.text, entry.question.text):
        return entry
    return replace(entry, question=None, lowered=entry.lowered - 1)  # it is still an answer


def answers_in_part(answer: str, question: str) -> bool:
    """Whether an answer is too short to stand alone: "May 2024", "at the door, bottom left"."""
    if says_little(answer) or IS_UNSPACED.search(answer):
        return len(answer) < _MIN_RUN * 2 or says_little(answer)
    if _IT.match(answer):  # "that'd be Yuki, she's the head of it"
        return True
    words = len(answer.split())
    if words < _MIN_SENTENCE or (words < _MAX_PART and _PART.match(answer)):
        return not (words >= _MIN_SENTENCE - 2 and _names_topic_of(answer, question))
    return _count_topics(answer) < _MIN_ALONE or answer[0].isdigit()


def answers_with_list(reply: str) -> bool:
    """Whether a reply lists something: that is an answer, even with something open in it."""
    return _LISTS.search(reply, 0, _MAX_LISTED) is not None and not reply.endswith(("?", "？"))


def _names_topic_of(answer: str, question: str) -> bool:
    """Whether it says itself what was asked: "Rent is 900 euros"."""
    shared = {term for term in terms(answer) & terms(question) if len(term) > 3}
    return bool(shared) and not _PART.match(answer)


def _is_answer(entry: LedgerEntry) -> bool:
    """Whether question and answer together tell something: what was agreed to is named, what is asked is."""
    assert entry.question is not None
    asked = entry.question.text
    if entry.fact.kind not in _BINDING and asks_only(entry.text):  # who is asked asks something else
        return False
    is_named = _FIGURE.search(asked) or SPECIFIC.search(asked) or FULL_NAME.search(asked)
    if agrees(entry.text):
        return bool(is_named) or (_count_topics(asked) >= _MIN_PROPOSED and not makes_offer(asked))
    if asked.endswith(("?", "？")):
        if _THAT_ONE.search(asked) and not (is_named or _FIGURE.search(entry.text)):  # of what was spoken before
            return False
        return count_topic_words(asked) > 0 or entry.fact.kind in _WHOLE
    # what somebody says of a statement is talk, unless he takes it, corrects it or has a figure for it
    if _FIGURE.search(entry.text) or accepts(entry.text) or entry.is_correction:
        return True
    is_denied = _POINTS_AWAY.search(entry.text) is not None and _DENIES.search(entry.text) is not None
    return bool(is_named or entry.fact.kind == "decision") and not is_denied


# -- machine output and pieces


def _is_machine_text(entry: LedgerEntry) -> bool:
    """Whether a program wrote it: a line of a log, a measure, an assignment, an error without words."""
    kind, text = entry.fact.kind, entry.text
    if kind == "error":
        return count_topic_words(_ERROR_NAME.sub("", text)) < _MIN_ERROR or is_machine_made(text)
    if kind in ("command", "url", "question", "request"):
        return False
    if kind == "decision" and not is_machine_made(text):
        return False
    return bool(
        is_machine_made(text)
        or _MEASURE.match(text)
        or _ASSIGNED.search(text)
        or (kind != "path" and "`" not in text and has_code_punctuation(text) and _count_topics(text) < _MIN_PROPOSED)
    )


def _is_fragment(entry: LedgerEntry) -> bool:
    """Whether it is a piece of a program, or a figure that nobody can place: "row 58", "SELECT b.name"."""
    text, kind = entry.text, entry.fact.kind
    if entry.question or entry.is_correction or (entry.role == "user" and corrects(text)):
        return False
    if kind == "decision":
        if _FIGURE.search(text):  # "480 MB now"
            return not (_count_topics(text) or SPECIFIC.search(text) or has_prohibition(text))
        is_empty = _count_topics(text) < _MIN_POINTED and not SPECIFIC.search(text)
        return is_empty and _POINTS_AWAY.search(text) is not None
    if kind in ("command", "url", "error", "question", "request"):
        return False
    topics = _count_topics(text.replace(entry.fact.text, " ", 1))
    if entry.role == "user":
        is_leaning = _POINTS_AWAY.search(text) is not None or not stands_alone(text)
        if is_leaning and (topics < _MIN_POINTED or _IT.match(text)):
            return True
        if kind in FIGURES and _ASKS_OR_FEELS.match(text):
            return True
        if _VAGUE.match(text) or (text.endswith(("?", "？", "…")) and asks_politely(text)):
            return True
    if kind == "identifier" and entry.fact.text.startswith("-") and "`" not in text:  # an option of a command
        return True
    if entry.role == "assistant" and kind in ("identifier", "version") and is_advice(text):
        return True
    if kind == "path":
        return False
    is_bare = kind in FIGURES and len(text.split()) <= _MAX_BARE and count_topic_words(text) < _MIN_TOPIC
    if is_bare or _CODE_PIECE.search(text):
        return True
    return (
        kind in FIGURES
        and topics < _MIN_TOPIC
        and not _places_figure(text, topics, is_day=kind != "number" and entry.role == "user")
    )


def _places_figure(text: str, topics: int, *, is_day: bool) -> bool:
    """Whether one word is enough to know what a figure is of: "The chain has 6,400 km on it"."""
    if IS_UNSPACED.search(text):
        return len(text) >= _MIN_RUN
    if FULL_NAME.search(text) or not topics:
        return topics > 0
    if is_day or _NAMED_SUBJECT.match(text) or _HOLDS.search(text) or _COUNTS.search(text):
        return True
    return _FIGURES.search(text) is not None and _IS.match(text) is not None


@text_cache(8192)
def _count_topics(text: str) -> int:
    """Words with a meaning, without units and days."""
    if IS_UNSPACED.search(text):
        return len(text) // 4
    words = (word.strip("\"'`*_()[],.:;!?–-") for word in text.split())
    return sum(
        is_topic_word(word) and word.lower() not in _NO_TOPIC and word.lower()[:7] not in CALENDAR for word in words
    )


# -- lists

_BULLET = re.compile(r"\s*(?:(?:[-*•–]|\d{1,2}[.)]|[a-zA-Z][.)]) |\*\*[^*\n]{1,40}\*\*)")
_LABEL = re.compile(r"[^:.!?]{1,30}: ")
_ENDS = re.compile(r"[.!?。！？][\"'”’)*_]*$")
_MIN_ROWS, _MAX_ROW, _ROW_TOPIC = 3, 90, 4


def list_rows(text: str, lines: LineKinds) -> Sequence[tuple[int, int]]:
    """Where the rows of a list or plan begin and end: short lines in a row that end no sentence, or with bullets."""
    if len(lines.starts) < _MIN_ROWS:
        return ()
    rows: list[tuple[int, int]] = []
    run: list[tuple[int, int]] = []
    ends = (*lines.starts[1:], len(text))
    for start, end, kind in (*zip(lines.starts, ends, lines.kinds, strict=True), (len(text), len(text), "")):
        line = text[start:end].rstrip()
        is_marked = _BULLET.match(line) is not None
        is_short = 0 < len(line) <= _MAX_ROW and not (_ENDS.search(line) or line.endswith(":"))
        if kind == PROSE and (is_marked or is_short):
            run.append((start, end))
            continue
        is_last = kind == PROSE and len(line) <= _MAX_ROW and _LABEL.match(line) is not None
        rows += [*run, *([(start, end)] if is_last else [])] if len(run) >= _MIN_ROWS else ()
        run = []
    return rows


def is_torn(item: str, fact: Fact, rows: Sequence[tuple[int, int]], *, is_user: bool) -> bool:
    """Whether a fact stands in a row that says nothing without its list, as all rows of an assistant's plan do. A day
    needs fewer words: "Meeting: 4 May"."""
    is_row = any(start <= fact.start < end for start, end in rows)
    return is_row and (not is_user or _count_topics(item) < _ROW_TOPIC - (fact.kind == "date"))


# -- days that hold no longer

# "on 29 June instead of 15 June"
_DENIED = re.compile(
    r"\b(?:not|instead of|rather than|nicht|statt|anstatt|no|en vez del?|en lugar del?|pas|au lieu d[eu]|plutôt que"
    r"|niet|in plaats van|non(?: più)?|invece d[ie]l?|nie|zamiast|não|em vez d[eo])\s+"
    r"(?:(?:the|on|am|den|dem|vom|el|del|de|le|du|op|il|o|em)\s+)?(?=\d)",
    re.IGNORECASE,
)
_DAY_AND_MONTH, _MIN_WORD, _STEM = 5, 5, 3


def without_denied(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """The entries without those with a day that the user denies later, of the same matter."""
    dated = [entry for entry in entries if entry.fact.kind == "date"]
    past: set[tuple[int, str]] = set()
    for later in dated:
        if later.role == "user" and _denies(later):
            day, matter = later.fact.normal[-_DAY_AND_MONTH:], _stems(later.text)
            past |= {
                (entry.number, entry.text)
                for entry in dated
                if entry.number < later.number
                and entry.fact.normal.endswith(day)
                and not matter.isdisjoint(_stems(entry.text))
            }
    # "the budget is 14,000 and we start on 7 May" still tells the budget
    past -= {(entry.number, entry.text) for entry in entries if entry.fact.kind == "number"} if past else set()
    return [entry for entry in entries if (entry.number, entry.text) not in past] if past else list(entries)


def without_past(entries: Sequence[LedgerEntry], days: Mapping[int, date]) -> list[LedgerEntry]:
    """The entries without what was to be on a day that is over by the last message. `days` tells when each message was
    said; what a former ledger lists was said before them."""
    first, today = min(days.values(), default=None), max(days.values(), default=None)

    def is_past(entry: LedgerEntry) -> bool:
        said = days.get(entry.number)
        is_planned = entry.role != "tool" and is_over(entry.text, said or first, today, is_former=said is None)
        return is_planned and is_only_plan(entry.text)

    return [entry for entry in entries if not is_past(entry)]


def _denies(entry: LedgerEntry) -> bool:
    return any(entry.text.startswith(entry.fact.text, found.end()) for found in _DENIED.finditer(entry.text))


def _stems(text: str) -> set[str]:
    """The beginnings of its words, without articles that are tied to them: "l'ouverture"."""
    plain = text.replace("’", " ").replace("'", " ")
    return {term[:_STEM] for term in topic_terms(plain) if len(term) >= _MIN_WORD}
