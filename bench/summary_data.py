"""Conversations by many hands and what of them matters, for fitting and judging what a summary tells.

`bench/summary_data/*.txt` are the conversations, `labels/a` and `labels/b` two readings of each by people who saw
neither the other reading nor this code: README.md there has the briefs.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from recto.chat.message import Role
from recto.sentences.segments import Segment, readable, segments

FOLDER = Path(__file__).parent / "summary_data"
_OPENS = re.compile(r"^=== (user|assistant|call|tool)\b ?(.*)$")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d$")


class Said(Struct, frozen=True):
    """A message of a conversation."""

    number: int
    role: Role
    text: str
    time: str = ""
    tool: str = ""
    """The tool that was called, or that answers."""

    @property
    def is_call(self) -> bool:
        return self.role == "assistant" and bool(self.tool)

    @property
    def read(self) -> str:
        return readable(self.text) if self.role == "tool" else self.text

    @property
    def segments(self) -> tuple[Segment, ...]:
        return segments(self.read, is_output=self.role == "tool" or self.is_call)


class Conversation(Struct, frozen=True):
    name: str
    author: str
    language: str
    messages: tuple[Said, ...]


def parse(path: Path) -> Conversation:
    head, messages, lines = dict[str, str](), list[Said](), list[str]()
    current: tuple[str, str] | None = None

    def close() -> None:
        if current is None:
            return
        kind, rest = current
        text = "\n".join(lines).strip()
        number = len(messages) + 1
        if kind == "call":
            tool, _, arguments = rest.partition(" ")
            messages.append(Said(number, "assistant", arguments or text, tool=tool))
        elif kind == "tool":
            messages.append(Said(number, "tool", text, tool=rest))
        else:
            time = rest if _TIME.match(rest) else ""
            messages.append(Said(number, "user" if kind == "user" else "assistant", text, time))

    for line in path.read_text("utf-8").splitlines():
        if opens := _OPENS.match(line):
            close()
            current, lines = (opens[1], opens[2].strip()), []
        elif current is None and ":" in line:
            key, _, value = line.partition(":")
            head[key.strip()] = value.strip()
        else:
            lines.append(line)
    close()
    return Conversation(path.stem, path.stem.partition("-")[0], head["language"], tuple(messages))


@cache
def conversations(folder: Path = FOLDER) -> tuple[Conversation, ...]:
    return tuple(parse(path) for path in sorted(folder.glob("*.txt")))


def numbered(conversation: Conversation) -> Iterator[str]:
    """The conversation as labellers read it: each message with its number, each segment with one of its own."""
    for said in conversation.messages:
        what = f"calls {said.tool}" if said.is_call else f"tool {said.tool}" if said.role == "tool" else said.role
        yield f"\n#{said.number} {what} {said.time}".rstrip()
        for place, segment in enumerate(said.segments, 1):
            yield f"  {said.number}.{place} {segment.text}"


# -- labels

_SPACES = re.compile(r"\s+")
# So much of the beginning of a sentence tells that it is told.
_TELLING = 40
SIDES = ("a", "b")


class Label(Struct, frozen=True):
    """What one reader says of one sentence."""

    message: int
    verdict: str
    """needed, same or superseded."""
    of: str
    """The unit that says the same, or the number of the message that supersedes it."""
    flags: frozenset[str]
    text: str
    unit: str

    def is_of(self, segment: str) -> bool:
        own, other = plain(self.text), plain(segment)
        return own in other or (other in own and len(other) > len(own) // 3)


class Reading(Struct, frozen=True):
    """A conversation as one reader labelled it."""

    labels: tuple[Label, ...]
    priorities: tuple[int, ...]

    @property
    def keys(self) -> list[list[str]]:
        """What is needed: for each, the texts of which one is enough."""
        found = {label.unit: [label.text] for label in self.labels if label.verdict == "needed"}
        for label in self.labels:
            if label.verdict == "same" and label.of in found:
                found[label.of].append(label.text)
        return list(found.values())

    @property
    def outdated(self) -> list[str]:
        return [label.text for label in self.labels if label.verdict == "superseded"]


def plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().lower()


def readings(conversation: Conversation, folder: Path = FOLDER) -> list[Reading]:
    paths = [folder / "labels" / side / f"{conversation.name}.tsv" for side in SIDES]
    return [_reading(path) for path in paths if path.exists()]


def _reading(path: Path) -> Reading:
    first, *rest = path.read_text("utf-8").splitlines()
    labels = []
    for line in rest:
        unit, verdict, flags, text = line.split("\t", 3)
        kind, _, of = verdict.partition(" ")
        labels.append(Label(int(unit.partition(".")[0]), kind, of, frozenset(flags.split()), text, unit))
    return Reading(tuple(labels), tuple(map(int, first.partition("\t")[2].split())))


def is_told(text: str, told: str) -> bool:
    """Whether a summary, already `plain`, tells this sentence."""
    return plain(text)[:_TELLING] in told
