"""Stat: what is known of one source over many replies: how it was in, what it took, and what came of it."""

from dataclasses import dataclass
from typing import Literal

from recto.sources.pick import Mode
from recto.sources.source import SourceId

Sign = Literal["called", "quoted", "paraphrased", ""]
SIGNS: tuple[Sign, ...] = ("called", "quoted", "paraphrased", "")
"""The plainest first; empty says that the reply was looked at and shows none."""


@dataclass(frozen=True, slots=True)
class Stat:
    """A reply is one answer to one message of the user, however many rounds of tool calls it took."""

    id: SourceId
    agent: str
    mode: Mode
    """How it came in the last time."""
    replies: int
    """How many it was in."""
    always: int = 0
    manual: int = 0
    by_agent: int = 0
    """These three are the replies by how it came in."""
    tokens: int = 0
    """Over all requests, those of tool rounds too."""
    looked: int = 0
    """How many of the replies were looked at for signs of use."""
    called: int = 0
    quoted: int = 0
    paraphrased: int = 0
    conversations: int = 0
    added: int = 0
    """In how many of the conversations it came in by hand."""
    last_in: str = ""
    last_used: str = ""

    @property
    def used(self) -> int:
        return self.called + self.quoted + self.paraphrased


@dataclass(frozen=True, slots=True)
class Total:
    """What a source's numbers are compared with."""

    agent: str
    replies: int
    conversations: int
