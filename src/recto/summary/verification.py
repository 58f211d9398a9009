"""Verifies a summary against the messages it covers: what it keeps, loses and invents.

Sentences that the fitted scorer considers needed are statements. Inventions are marked in the text; lost statements go
into the ledger while there is room. No I/O.
"""

import re
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import Compaction, File, Text, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.sentences.features import PlainMessage, read_conversation
from recto.sentences.scorer import BINDS, is_superseded, needed, scores
from recto.sentences.segments import is_question, readable, segments
from recto.summary.evidence import Evidence
from recto.summary.extractive_summary import FLOOR, SHORT_ANSWER
from recto.summary.figures import Value
from recto.summary.ledger import KeyStatement, parse_ledger, parse_place
from recto.summary.truncation import CountTokens
from recto.summary.values import find_values, plain_text

MARK = " [unverified]"
_MARKS = re.compile(r"^\[unverified\]\n| ?\[unverified\]", re.MULTILINE)
# Replaces the words of a mark that is part of a quotation.
QUOTED_MARK, _WORDS_BEFORE = "\ue0f7\ue0f8", 3
_REST_OF_WORD = re.compile(r"(?>(?:['’.@:/\\-]?[^\W\u0e00-\uffff]){0,200})")
# Kinds of values that may contain others.
_OUTER = ("quote", "code", "url", "path")
# Claims are compared only if the summary and its sources are in the same language.
_SAME_LANGUAGE = 0.4
# The most characters of a text that are read for statements: its beginning and its end.
_MAX_READ = 60_000
_MAX_PLACES, _MAX_STATEMENTS = 400, 20_000
# Statements with figures and at least this likelihood show whether a summary is good, if there are _LEAST_CHECKED of
# them.
_SURELY_NEEDED, _LEAST_CHECKED = 0.4, 4
_KEPT_BEFORE = 0.5


class CoveredMessages(Struct):
    with_marks: list[str] = field(default_factory=list)
    """Texts of the user that contain the words of a mark."""
    _messages: list[PlainMessage] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    """Texts not yet added to the evidence: a summary of original sentences needs none."""
    _evidence: Evidence = field(default_factory=Evidence)
    _statements: list[KeyStatement] | None = None

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            texts = _texts_of(message)
            self._waiting += texts
            if texts:
                self._messages.append(_plain(message, texts))
            if message.role == "user" and MARK.strip() in message.text:
                self.with_marks.append(message.text)
        self._statements = None

    @property
    def evidence(self) -> Evidence:
        for text in self._waiting:
            self._evidence.add(text)
        self._waiting = []
        return self._evidence

    @property
    def statements(self) -> list[KeyStatement]:
        if self._statements is None:
            self._statements = _current(self._messages)
        return self._statements

    def since(self, former: Sequence[KeyStatement]) -> list[KeyStatement]:
        """The former summary's statements that still hold, and the new ones."""
        if not former:
            return self.statements
        told = [PlainMessage(_ROLES.get(each.role, "user"), each.text, each.number, is_former=True) for each in former]
        asked = {each.key: each.question for each in former}
        found = _current([*told, *self._messages])[-_MAX_STATEMENTS:]
        return [replace(each, question=asked.get(each.key) or each.question) for each in found]


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


def _plain(message: Message, texts: Sequence[str]) -> PlainMessage:
    text = "\n".join(texts)
    shown = text if len(text) <= _MAX_READ else f"{text[: _MAX_READ // 2]}\n{text[-_MAX_READ // 2 :]}"
    is_call = not message.text and bool(message.calls)
    return PlainMessage(message.role, shown, message.said, is_call=is_call)


def _texts_of(message: Message) -> list[str]:
    found: list[str] = []
    for block in message.blocks:
        match block:
            case Text():
                found.append(block.text)
            case ToolCall():
                found.append(f"{block.name}\n{readable(block.arguments)}")
            case ToolResult() | File():
                found.append(f"{block.name}\n{readable(block.text)}")
    return [text for text in found if text.strip()]


def _current(messages: Sequence[PlainMessage]) -> list[KeyStatement]:
    """The sentences of messages worth including, without superseded ones."""
    said, rows = read_conversation(messages)
    likely, binding = needed(said, rows), scores(rows, BINDS)
    found = []
    for at, sentence in enumerate(said):
        message = messages[sentence.message]
        worth = max(likely[at], _KEPT_BEFORE) if message.is_former else likely[at]
        if worth < FLOOR or is_superseded(sentence, said, likely, FLOOR) or message.is_call:
            continue
        asked = _question_before(messages, sentence.message) if len(message.text) <= SHORT_ANSWER else None
        text = " ".join(sentence.segment.text.split())
        found.append(KeyStatement(message.number, message.role, text, worth, binding[at], asked))
    return found


def _question_before(messages: Sequence[PlainMessage], at: int) -> KeyStatement | None:
    """The assistant's question directly before a short answer of the user."""
    before = messages[at - 1] if at else None
    if before is None or messages[at].role != "user" or before.role != "assistant" or before.is_call:
        return None
    asked = [each.text for each in before.segments if is_question(each.text)]
    return KeyStatement(before.number, "assistant", asked[-1]) if asked else None


class FormerSummary(Struct, frozen=True):
    summary: str = ""
    ledger: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    """The statements of the summary, with the numbers of their messages."""
    has_marks: bool = True
    """Text that looks like a mark may be one."""

    @property
    def statements(self) -> list[KeyStatement]:
        told = [parse_place(place, number) for place, number in self.places.items()]
        return sorted([*parse_ledger(self.ledger), *told], key=lambda each: each.number)


def former_summary(block: Compaction | None) -> FormerSummary:
    if block is None:
        return FormerSummary()
    has_marks = block.checks.get("invented") != 0
    return FormerSummary(block.summary, block.ledger, block.places, has_marks)


class VerifiedSummary(Struct, frozen=True):
    """A summary with its marks, and the statements that it keeps and loses."""

    text: str
    kept: tuple[KeyStatement, ...]
    lost: tuple[KeyStatement, ...]
    invented: int

    def counts(self, ledger: Sequence[str]) -> dict[str, int]:
        """Count the former and new statements that are in the summary, only in the ledger, or only in the archive; and
        inventions."""
        in_ledger = len({each.key for each in parse_ledger(ledger)} - {each.key for each in self.kept})
        archived = len(split_stated("\n".join([self.text, *ledger]), self.lost)[1])
        return _counts(len(self.kept) + in_ledger + archived, len(self.kept), in_ledger, self.invented)

    @property
    def places(self) -> dict[str, int]:
        """The statements in the summary, with their message numbers; only the latest of many."""
        latest = sorted(self.kept, key=lambda each: each.number)[-_MAX_PLACES:]
        return {each.place: each.number for each in latest}


def verify_summary(
    text: str, covered: CoveredMessages, former: FormerSummary, allowed: Iterable[str] = (), *, mark: bool = True
) -> VerifiedSummary:
    """`allowed` texts may be used as well: the user's wish, messages still sent. Without `mark` the text is trusted,
    because it consists of sentences of the originals."""
    text = quote_marks(text, covered.with_marks if former.has_marks else [*covered.with_marks, former.summary])
    invented = count_marks(text)
    if mark:
        verified = verified_part(former.summary) if former.has_marks else former.summary
        beside = Evidence()
        for other in (verified, *former.ledger, *former.places, *allowed):
            beside.add(other)
        text, invented = mark_unsupported(text, (covered.evidence, beside))
    text = text.replace(QUOTED_MARK, MARK.strip())
    kept, lost = split_stated(text, covered.since(former.statements))
    return VerifiedSummary(text, tuple(kept), tuple(lost), invented)


def split_stated(text: str, statements: Iterable[KeyStatement]) -> tuple[list[KeyStatement], list[KeyStatement]]:
    """The statements that a text contains, and the others."""
    plain = strip_marks(text)
    flat = " ".join(plain.split())
    evidence = Evidence()
    evidence.add(plain)
    kept: list[KeyStatement] = []
    lost: list[KeyStatement] = []
    for each in statements:
        is_told = each.text.rstrip(".!。…") in flat or evidence.tells(each.text)
        (kept if is_told else lost).append(each)
    return kept, lost


class Checked(Struct, frozen=True):
    """The most needed statements with figures that a summary has room for: those it contains, and the others."""

    kept: list[KeyStatement]
    lost: list[KeyStatement]

    @property
    def is_poor(self) -> bool:
        return len(self.kept) < len(self.lost) and len(self.kept) + len(self.lost) >= _LEAST_CHECKED


def check_figures(text: str, statements: Iterable[KeyStatement], room: int, count: CountTokens) -> Checked:
    """Check a summary for the statements that take `room` tokens."""
    checked = []
    for each in sorted(statements, key=lambda each: -each.rank):
        if each.worth >= _SURELY_NEEDED and any(map(str.isdigit, each.text)):
            room -= count(each.text)
            if room < 0:
                break
            checked.append(each)
    return Checked(*split_stated(text, checked))


def recount_statements(text: str, block: Compaction) -> dict[str, int]:
    """The counts of a Compaction after the user rewrote its summary: the known statements in the text, and those only
    in its ledger."""
    former = former_summary(block)
    known = former.statements
    kept, _ = split_stated(text, known)
    listed = {each.key for each in parse_ledger(former.ledger)} - {each.key for each in kept}
    own = [] if former.has_marks else [former.summary]
    total = max(block.checks.get("facts", 0), len(known))
    return block.checks | _counts(total, len(kept), len(listed), count_marks(quote_marks(text, own)))


def only_archived(block: Compaction, covered: CoveredMessages) -> list[tuple[int, str, str]]:
    """What neither the summary nor the ledger of a Compaction contains, in order of time: message number, role and
    text."""
    return [(each.number, each.role, each.text) for each in lost_statements(block, covered.statements)]


def lost_statements(block: Compaction, archived: Iterable[KeyStatement]) -> list[KeyStatement]:
    """The statements of archived messages in neither the summary nor the ledger of a Compaction."""
    return split_stated("\n".join([block.summary, *block.ledger]), archived)[1]


def _counts(total: int, kept: int, in_ledger: int, invented: int) -> dict[str, int]:
    archive = max(0, total - kept - in_ledger)
    return {"facts": total, "kept": kept, "ledger": in_ledger, "archive": archive, "invented": invented}


# -- marks after what no evidence supports


def strip_marks(text: str) -> str:
    return _MARKS.sub("", text)


def count_marks(text: str) -> int:
    return len(_MARKS.findall(text))


def quote_marks(text: str, sources: Sequence[str]) -> str:
    """Protect the user's own marks, recognised by the words before them, with another sign."""
    if MARK.strip() not in text or not sources:
        return text
    said = [plain_text(source) for source in sources]

    def sign(match: re.Match[str]) -> str:
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].split()[-_WORDS_BEFORE:]
        quoted = plain_text(" ".join([*before, MARK]))
        return match[0].replace(MARK.strip(), QUOTED_MARK) if any(quoted in each for each in said) else match[0]

    return _MARKS.sub(sign, text)


def verified_part(summary: str) -> str:
    """The summary without its marked values and claims."""
    if MARK.strip() not in summary:
        return summary
    return "\n".join(map(_verified_part, (each.text for each in segments(summary))))


def _verified_part(sentence: str) -> str:
    plain, marked = strip_marks(sentence), list[int]()
    for match in _MARKS.finditer(sentence):
        marked.append(match.start() - sum(len(each[0]) for each in _MARKS.finditer(sentence, 0, match.start())))
    ends = {_mark_position(plain, value): value for value in find_values(plain)}
    if not all(end in ends for end in marked):
        return ""  # a claim
    for end in reversed(marked):
        plain = plain[: ends[end].start] + plain[end:]
    return plain


def mark_unsupported(text: str, known: Sequence[Evidence]) -> tuple[str, int]:
    """Add a mark after the first mention of each unsupported value and after each unsupported claim, and count them."""
    plain = strip_marks(text)
    ends = {_mark_position(plain, value) for value in _unsupported_values(plain, known)}
    spoken = [each for each in segments(plain) if each.kind in ("prose", "item")]
    shares = [max(each.share_known(one.text) for each in known) for one in spoken]
    if shares and median(shares) >= _SAME_LANGUAGE:
        for each in spoken:
            is_marked = any(each.start <= end <= each.end for end in ends)
            if not is_marked and not each.text.endswith("…") and _is_invented(_without_label(each.text), known):
                ends.add(_before_stop(plain, each.start, each.end))
    for end in sorted(ends, reverse=True):
        is_line_start = end and plain[end - 1] == "\n"
        plain = plain[:end] + (MARK.strip() + "\n" if is_line_start else MARK) + plain[end:]
    return plain, len(ends)


def _unsupported_values(plain: str, known: Sequence[Evidence]) -> list[Value]:
    """Each once. A quotation or a path includes the values inside it."""
    found: dict[tuple[str, str], Value] = {}
    for value in find_values(plain):
        is_cut = "…" in plain[max(0, value.start - 1) : value.start] + plain[value.end - 1 : value.end + 1]
        is_new = value.is_significant and not is_cut and value.key not in found
        if is_new and not any(evidence.supports(value) for evidence in known):
            found[value.key] = value
    outer = [value for value in found.values() if value.kind in _OUTER]
    return [
        value
        for value in found.values()
        if not any(value is not one and one.start <= value.start and value.end <= one.end for one in outer)
    ]


def _without_label(line: str) -> str:
    label, _, rest = line.partition(": ")
    return rest if rest and label.isalpha() else line


def _is_invented(claim: str, known: Sequence[Evidence]) -> bool:
    if not any(evidence.supports_claim(claim) for evidence in known):
        return True
    return any(evidence.denies(claim) for evidence in known) and not any(
        evidence.states_claim(claim) for evidence in known
    )


def _before_stop(text: str, start: int, end: int) -> int:
    return end - 1 if end - 1 > start and text[end - 1] in ".!。！" else end


def _mark_position(text: str, value: Value) -> int:
    """The first position after a value that is in no word, path or code span."""
    rest = _REST_OF_WORD.match(text, value.end)
    end = rest.end() if rest else value.end
    line_start = text.rfind("\n", 0, value.start) + 1
    if text.count("`", line_start, end) % 2:
        closing = text.find("`", end)
        end = closing + 1 if closing >= 0 else end
    return end
