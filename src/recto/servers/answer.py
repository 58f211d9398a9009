"""Answers that we give in a server's place: to a call whose result cannot be read, or that cannot be sent, so that who
waits is told at once. Imported only with a server at hand."""

import json
import re
from dataclasses import dataclass
from typing import Self

from mcp.shared.message import SessionMessage
from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError

OURS = "recto"
"""The mark of such an answer."""
UNFIT = "the answer of the server does not follow its protocol"
UNSENT = "the arguments hold what cannot be sent as JSON, or are nested too deeply"
ENDS = 4_096
"""So many bytes at each end of a line are looked at for its id."""

_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*'
_OUTCOME = rb'"(?:result|error)"\s*:'
# an id within a result belongs to something else: only where it must be the answer's own does it count
_IN_FRONT = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b,\s*(?:%b,\s*)?%b" % (_VERSION, _ID, _VERSION, _OUTCOME))
_BEGINS = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b" % (_VERSION, _OUTCOME))
_BEHIND = re.compile(rb",\s*%b(?:,\s*%b)?\}\s*\Z" % (_ID, _VERSION))


@dataclass(slots=True)
class Long:
    """The two ends of a line that is not kept."""

    head: bytes
    tail: bytes
    size: int

    @classmethod
    def of(cls, line: bytes | bytearray) -> Self:
        return cls(bytes(line[:ENDS]), bytes(line[-ENDS:]), len(line))

    def __len__(self) -> int:
        return self.size

    def extend(self, more: bytes) -> None:
        self.tail = (self.tail + more[-ENDS:])[-ENDS:]
        self.size += len(more)


def failed(id: int | str, why: str) -> SessionMessage:
    return SessionMessage(
        JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=INTERNAL_ERROR, message=why, data=OURS))
    )


def answered(line: Long, why: str) -> SessionMessage | None:
    """An error in the place of a result that is not read; None where it cannot be told whose it is."""
    found = _IN_FRONT.match(line.head)
    if found is None and _BEGINS.match(line.head):
        found = _BEHIND.search(line.tail)
    return failed(json.loads(found[1]), why) if found else None
