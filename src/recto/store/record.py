"""Record: a request as it is kept, all about it but its bytes."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """`rebuild` gives the bytes."""

    id: str
    conversation: str
    message: str | None
    purpose: str
    created: str
    sha256: str
    size: int
    pieces: int
    account: dict[str, Any]
    outcome: dict[str, Any]
