"""Summaries in words: what a summariser is asked, how messages are told to it, and when its answer is worth keeping.

Pure; knows no model, no store, and counts nothing itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recto.chat.blocks import Block, File, Image, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.sources.tools import RECALL

SUMMARISER = "You sum up conversations for an assistant that goes on with them from your summary alone."
ORDER = """\
Sum up the conversation {where} so that it can go on from your summary alone.{former}
Write plain text under these headings, leaving out those that would be empty:
Task: what the user originally asked for, with every constraint and correction
Progress: what was done, the files and tools used with their results, problems and how they were solved, the state now
Facts: names, numbers, dates, paths, identifiers, snippets and tool results that may be needed again, word for word
Decisions: what was decided, and why
Open: questions without an answer, action items
Next: the next steps
Say only what was said above; invent nothing and drop what is outdated. Call no tools. Answer with the summary alone, \
in the language of the conversation, in at most {words} words.{keep}{style}"""
FORMER = " If it begins with an earlier summary, carry that over."
MERGE = """\
These are summaries of consecutive parts of one conversation, in order. Make one of them under the same headings: \
carry over every fact, decision and open point that still holds, names, numbers, dates and paths word for word. \
Invent nothing. Answer with the summary alone, in at most {words} words.{keep}{style}"""
# Counted on English prose; other languages take more tokens for a word, which only makes their summaries shorter.
WORDS_PER_TOKEN = 0.6

_ERROR = re.compile(
    r"\s*(?:<!doctype|<html|\{\s*\"error\"|(?:http |api )?error\s*[:\d(]|traceback \(most"
    r"|internal server error|bad gateway"
    r"|service unavailable|too many requests|rate limit|request timed out|an error (?:has )?occurred"
    r"|(?:i'?m |i am )?(?:very )?sorry,? (?:but )?(?:i|we)\b"
    r"|i (?:can'?t|cannot|am unable to) (?:help|assist|do|provide|comply|fulfil|complete|process|sum|write)\b"
    r"|as an ai\b)",
    re.IGNORECASE,
)
LONGEST_ERROR = 400
"""A long text that begins like an error may well be a summary about one."""
LEAST_REPEATED = 60
RUN = 4
LEAST_SAID, LEAST_READ = 12, 150


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the summary should be like."""

    tokens: int
    """As written, without its frame."""
    keep: str = ""
    style: str = ""


def order(wanted: Wanted, *, above: bool, has_former: bool, shorter: bool = False) -> str:
    """What a summariser is told, behind the conversation itself (`above`) or behind a transcript of it."""
    return ORDER.format(
        where="above" if above else "in the transcript above",
        former=FORMER if has_former else "",
        **_common(wanted, shorter),
    )


def merge_order(wanted: Wanted, *, shorter: bool = False) -> str:
    return MERGE.format(**_common(wanted, shorter))


def _common(wanted: Wanted, shorter: bool) -> dict[str, object]:
    words = max(20, int(wanted.tokens * WORDS_PER_TOKEN * (0.6 if shorter else 1)))
    return {
        "words": words,
        "keep": f"\nThe user wants this kept above all: {wanted.keep}" if wanted.keep else "",
        "style": f"\nStyle: {wanted.style}" if wanted.style else "",
    }


def told(message: Message) -> str:
    """A message as a transcript tells it; everything that can be told in words is in it."""
    return "\n".join(line for block in message.blocks if (line := _told(message.role, block)))


def _told(role: str, block: Block) -> str:
    match block:
        case Text(text=text) if text.strip():
            return f"{role.capitalize()}: {text}"
        case ToolResult(name=name) if name == RECALL:
            return ""  # what it brought back was summed up where it was said
        case ToolCall():
            return f"{role.capitalize()} calls {block.name} {block.arguments}"
        case ToolResult():
            return f"{'Error' if block.is_error else 'Result'} of {block.name}: {block.text}"
        case File():
            return f"{role.capitalize()} gives the file {block.name}:\n{block.text}"
        case Image():
            return f"{role.capitalize()} shows an image ({block.media_type})"
        case _:
            return ""


def slices(texts: Sequence[str], tokens: Sequence[int], room: int) -> list[list[str]]:
    """The texts in order, in runs that take at most `room`; one that is larger alone is a run of its own."""
    runs: list[list[str]] = []
    left = 0
    for text, size in zip(texts, tokens, strict=True):
        if not runs or size > left:
            runs.append([])
            left = room
        runs[-1].append(text)
        left -= size
    return runs


def halves(text: str) -> tuple[str, str]:
    """A text in two, at the end of a line or a word near its middle where there is one."""
    middle = len(text) // 2
    for mark in ("\n", " "):
        place = text.find(mark, middle, min(middle + max(1, len(text) // 4), len(text) - 1))
        if place > 0:
            return text[: place + 1], text[place + 1 :]
    return text[:middle], text[middle:]


@dataclass(frozen=True, slots=True)
class Source:
    """What an answer stands for, and what was asked about it."""

    tokens: int
    order: str
    transcript: str = ""


def fault(answer: str, source: Source, *, finish: str, called: bool, tokens: int, most: int) -> str | None:
    """Why an answer is not a summary to keep; None when it is."""
    said = answer.strip()
    if called:
        return "it called a tool"
    if not any(sign.isalnum() for sign in said):
        return "it is empty"
    if finish != "stop":
        return f"it did not finish ({finish})"
    if len(said) <= LONGEST_ERROR and _ERROR.match(said):
        return "it is an error text"
    if len(said) < LEAST_SAID and source.tokens > LEAST_READ:
        return "it says next to nothing"
    if _repeats(said, source):
        return "it repeats what it was asked"
    if tokens > most:
        return f"it is too long ({tokens} tokens, at most {most})"
    if tokens >= source.tokens:
        return f"it is not shorter than its source ({tokens} tokens for {source.tokens})"
    return None


def _repeats(said: str, source: Source) -> bool:
    """Whether the answer is the question again: half of it stands in the order, or it begins as the transcript does."""
    runs, asked = _runs_of_words(said), set(_runs_of_words(source.order))
    if runs and sum(run in asked for run in runs) * 2 >= len(runs):
        return True
    beginning = " ".join(source.transcript[: 2 * LONGEST_ERROR].split())[:LONGEST_ERROR]
    return len(beginning) > LEAST_REPEATED and " ".join(said.split()).startswith(beginning)


def _runs_of_words(text: str) -> list[tuple[str, ...]]:
    words = text.split()
    return [tuple(words[place : place + RUN]) for place in range(len(words) - RUN + 1)]
