"""Condensed texts: what is sent for a message or tool result that is larger than its room in the window.

Beginning and end are verbatim. The middle consists of sentences that bear on the user's question and the most important
others. The original stays in the store, and the recall tool searches all of it."""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from recto.chat.blocks import File, Image, Text, ToolResult
from recto.chat.message import Message
from recto.compaction.summary_input import sampled
from recto.search.terms import topic_words
from recto.sentences.segments import is_question, readable, sentences
from recto.summary.extractive_summary import Extraction, PlainMessage
from recto.summary.truncation import CountTokens, cut_text, cut_to_fit, excerpt, leading_lines, trailing_lines
from recto.turn.planned_request import PlannedRequest
from recto.turn.token_cache import TokenCache
from recto.window.plan import Cut
from recto.window.planner import LINE
from recto.window.request import Entry
from recto.window.window import is_framelike

MOST_TRIES = 8
# The share of the beginning, and of the end; the middle gets the rest.
END_SHARE = 0.25
# With less room, in tokens, there is no middle.
SMALLEST_MIDDLE = 48
# People ask at the beginning or end of a long message, within about this many characters.
ASKING_PART = 600
# The share of the middle for sentences that bear on the question, and the longest of them in characters.
LED_SHARE, LONGEST_SENTENCE = 0.4, 400
# Words match by this many first letters; a stem in every twelfth sentence is common.
STEM, COMMON = 6, 12
# The middle is chosen from in parts of about this many characters, so that each has a chance.
PART = 1200


class Division(Struct, frozen=True):
    """A long text in three parts; the ends are sent verbatim."""

    beginning: str
    middle: str
    end: str

    @property
    def size(self) -> int:
        return len(self.beginning) + len(self.middle) + len(self.end)


def divide(text: str, size: int) -> Division:
    """Ends of at most `size` characters each, in whole lines or sentences if they are short enough."""
    text = text.rstrip()
    beginning, end = leading_lines(text, size), trailing_lines(text, size)
    return Division(beginning, text[len(beginning) : len(text) - len(end)].strip(), end)


def question_in(text: str) -> str:
    """The user's question: the questions near the ends of a long message, or else the text there."""
    near = [*sentences(text[:ASKING_PART])[:4], *sentences(text[-ASKING_PART:])[-4:]] if text else []
    asked = list(filter(is_question, near)) or [*near[:1], *near[-1:]]
    return cut_text("\n".join(dict.fromkeys(asked)), ASKING_PART)


def extract_middle(text: str, question: str, limit: int, count: CountTokens, about: int) -> str:
    """Sentences of a text, within `limit` tokens: those that bear on the question, in at most `about` tokens, then the
    most important others."""
    if limit <= 0:
        return ""
    text = sampled(text)
    led = sentences_about(text, question, min(limit, about), count)
    left = limit - sum(count(sentence) + 1 for sentence in led)
    others = Extraction(_parts(text), count).texts(max(0, left))
    flat = _plain(text)
    places = {line: flat.find(_plain(line).removesuffix("…")[:80]) for line in map(_plain, (*led, *others))}
    return "\n".join(sorted(places, key=lambda line: places[line]))


def _plain(text: str) -> str:
    """The text on one line, without control characters and invisible ones."""
    text = " ".join(text.split())
    return text if text.isprintable() else "".join(char for char in text if char.isprintable())


def _parts(text: str) -> list[PlainMessage]:
    parts: list[list[str]] = [[]]
    for sentence in sentences(text):
        if sum(map(len, parts[-1])) > PART:
            parts.append([])
        parts[-1].append(sentence)
    return [PlainMessage("user", "\n".join(part)) for part in parts]


def sentences_about(text: str, question: str, limit: int, count: CountTokens) -> list[str]:
    """The sentences that share the rarest words with a question, with their context, as many as fit."""
    wanted = _stems(question)
    found = sentences(text)
    shared = [_stems(sentence) & wanted for sentence in found]
    times = Counter(stem for stems in shared for stem in stems)
    # a word in many sentences does not distinguish them
    rarity = {stem: math.log(1 + len(found) / n) for stem, n in times.items() if n * COMMON <= max(COMMON, len(found))}
    scores = [sum(rarity.get(stem, 0.0) for stem in stems) for stems in shared]
    chosen: dict[int, str] = {}
    for at in sorted(range(len(found)), key=lambda at: (-scores[at], at)):
        shown = {place: cut_text(found[place], LONGEST_SENTENCE) for place in _with_context(found, at)}
        is_new = found[at] not in chosen.values()
        if scores[at] <= 0 or (is_new and (limit := limit - sum(count(line) + 1 for line in shown.values())) < 0):
            break
        chosen |= shown if is_new else {}
    return list(dict.fromkeys(chosen[at] for at in sorted(chosen)))


def _with_context(found: Sequence[str], at: int) -> range:
    """A question brings its answer, an announcement what it announces."""
    last = at + (is_question(found[at]) or found[at].endswith((":", "：")))
    return range(at, min(last + 1, len(found)))


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in topic_words(text)}


# -- the texts of a cut


async def condensed_texts(planned: PlannedRequest, cut: Cut, *, can_recall: bool) -> tuple[dict[str, str], list[str]]:
    """Excerpts that are still sent after the cut, and those it asks for, each within its tokens; and notes for the
    user."""
    view, current = planned.loaded.view, planned.current.message
    _, stays = view.split(cut.last)
    still = {message.id for message in stays} | {*cut.lifted, current.id}
    before = view.compaction.excerpts if view.compaction else {}
    made = {key: text for key, text in before.items() if key.partition("/")[0] in still}
    made |= {key: await result_line(planned.token_cache, view.tail, key) for key in cut.lines}
    here = {message.id: message for message in (*view.tail, *view.lifted, current)}
    question, notes = question_in(current.text), list[str]()
    for key, most in cut.excerpts.items():
        id, _, call = key.partition("/")
        text = LongText(whole_text(here[id], call), id, question, can_recall)
        made[key] = await text.within(most, planned.token_cache, call)
        if _RESUMED in made[key]:
            search = "; the model can search all of it" if can_recall else ""
            what = "a tool result" if call else "your message"
            notes.append(f"the middle of {what} is shortened to chosen sentences{search}")
    return made, notes


_BRACKETS = "\"'}] "
_QUOTES = str.maketrans("“”", '""')


async def result_line(token_cache: TokenCache, messages: Sequence[Message], key: str) -> str:
    """The line for an old tool result: what it was, its size, its last line, and how to retrieve it."""
    id, _, called = key.partition("/")
    message = next(message for message in messages if message.id == id)
    result = next(result for result in message.results if result.call_id == called)
    before = messages[: messages.index(message)]
    calls = [call for each in before for call in each.calls if call.id == called]
    asked = _plain(f"{result.name} {calls[-1].arguments if calls else ''}")
    text = readable(result.text)
    lines = [line for line in map(_plain, text.splitlines()) if any(char.isalnum() for char in line)]
    size = f"{len(text):,} characters in {len(lines):,} lines"
    label, told = (
        "failed" if result.is_error else "ends",
        lines[-1].rstrip(_BRACKETS).translate(_QUOTES) if lines else "",
    )
    for length in (100, 60, 30, 0):
        quoted = f"; {label}: “{cut_text(told, length)}”" if told and length else ""
        shown = cut_text(asked, max(length, 20))
        line = f"[{shown}: {size}{quoted}; recall #{message.said} returns it]"
        if await _tokens(token_cache, line, called) <= LINE:
            break
    return line


class LongText(Struct, frozen=True):
    text: str
    message: str
    question: str
    """The user's question, which decides what is kept of the middle."""
    can_recall: bool = False
    """True if the model has the recall tool."""

    async def within(self, most: int, token_cache: TokenCache, call: str) -> str:
        """Cut by the text's own token density, then counted."""
        overhead, whole = await _tokens(token_cache, ".", call), await _tokens(token_cache, self.text, call)
        density = (whole - overhead) / max(1, len(self.text))
        aim, middle = most, ""
        for _ in range(MOST_TRIES):
            made, middle = await asyncio.to_thread(
                self.condensed, max(1, aim - overhead), lambda part: round(len(part) * density), middle
            )
            tokens = await _tokens(token_cache, made, call)
            if tokens <= most:
                return made
            aim = min(aim - 1, int(aim * most / tokens * 0.95))
        return self.text[: max(1, (most - overhead) // 4)]

    def condensed(self, limit: int, count: CountTokens, middle: str = "") -> tuple[str, str]:
        """The text, without a middle if there is no room, and its middle. A given middle is cut."""
        if count(self.text) > limit and (parts := divided(self.text, limit, count)):
            room = limit - sum(count(line) + 1 for line in (parts.beginning, parts.end, self._notice(parts), _RESUMED))
            about = int(room * LED_SHARE)
            middle = middle or _harmless(extract_middle(parts.middle, self.question, room, count, about))
            if told := cut_to_fit(middle, room, count):
                lines = (parts.beginning, self._notice(parts), told, _RESUMED, parts.end)
                return "\n".join(line for line in lines if line), middle
        return excerpt(self.text, limit, count, self.message), ""

    def _notice(self, parts: Division) -> str:
        left_out = f"{len(parts.middle)} of {parts.size} characters are left out here"
        search = ", and the recall tool searches all of it" if self.can_recall else ""
        return f"[… {left_out} and condensed to these lines; the original is kept as message {self.message}{search} …]"


def _harmless(middle: str) -> str:
    """Escapes lines that look like the frame."""
    lines = middle.splitlines()
    return "\n".join(f"> {line}" if line.lstrip().startswith("[…") or is_framelike(line) else line for line in lines)


_RESUMED = "[… from here on the message is as it was written …]"


def divided(text: str, limit: int, count: CountTokens) -> Division | None:
    """Returns None if there is no room for a middle."""
    if limit * (1 - 2 * END_SHARE) < SMALLEST_MIDDLE:
        return None
    return divide(text, int(len(text) * limit * END_SHARE / max(1, count(text))))


def whole_text(message: Message, call: str = "") -> str:
    """The text of a message, or of the result of one of its calls."""
    if call:
        return "".join(result.text for result in message.results if result.call_id == call)
    texts = [block.text for block in message.blocks if isinstance(block, Text | File | ToolResult)]
    return "\n\n".join(texts) or "".join(block.media_type for block in message.blocks if isinstance(block, Image))


async def _tokens(token_cache: TokenCache, text: str, call: str) -> int:
    """Counted as it is sent: results carry the id of their call."""
    entry = Entry("tool", (ToolResult(call, "", text),)) if call else Entry("user", (Text(text),))
    return (await token_cache.count([entry]))[0].count.tokens
