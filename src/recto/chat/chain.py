"""Chain: finds where a client's list of messages continues a stored path. Pure: knows prints of messages, no store.

A print is a hash of what a message says. Our replies in the client's list are the anchors: messages after the last of
them are new, and differences before it are rewordings, such as another time in a reminder.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from json.encoder import encode_basestring_ascii

from msgspec import Struct

from recto.chat.blocks import Block, File, Image, Text, ToolCall, ToolResult
from recto.chat.message import Role

Print = bytes
PRINT_BYTES = 16
# json.dumps would make an encoder for every message
_encode = json.JSONEncoder(sort_keys=True).encode


class ChainLink(Struct, frozen=True):
    role: Role
    print: Print
    id: str = ""
    """Set for a stored message."""


class Continuation(Struct, frozen=True):
    """How a list of messages continues a stored path."""

    at: int
    """The number of the path's messages before the new ones."""
    new: int
    """The index in the list of the first message that is not stored yet."""
    reworded: tuple[tuple[int, int], ...] = ()
    """Index pairs (list, path) of messages that differ and are followed by replies of ours."""
    cut: int = 0
    """The number of messages of the path, before the last one found, that the list omits."""


def print_of(role: Role, blocks: Iterable[Block]) -> Print:
    """Ignores surrounding white space, thinking and the order of keys, because clients change them."""
    blocks = list(blocks)
    text = "".join([block.text for block in blocks if isinstance(block, Text)]).strip()
    more = [what for block in blocks if not isinstance(block, Text) and (what := _said(block)) is not None]
    # the same JSON in a quarter of the time: a client sends hundreds of texts with every request
    said = _encode([role, text, *more]) if more else f'["{role}", {encode_basestring_ascii(text)}]'
    return sha256(said.encode()).digest()[:PRINT_BYTES]


def _said(block: Block) -> list[object] | None:
    if isinstance(block, ToolCall):
        return ["call", block.id, block.name, _arguments(block.arguments)]
    if isinstance(block, ToolResult):
        return ["result", block.call_id, block.text.strip()]
    if isinstance(block, Image | File):
        return [block.type, _content(block), block.text.strip() if isinstance(block, File) else ""]
    return None


def _arguments(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _content(block: Image | File) -> str:
    if block.base64:
        return sha256(b64decode(block.base64)).hexdigest()
    return block.sha256 or block.url


def chained(links: Iterable[ChainLink], before: Print = b"") -> list[Print]:
    """For each message, a hash of the chain up to and including it."""
    found = []
    for link in links:
        before = sha256(before + link.print).digest()[:PRINT_BYTES]
        found.append(before)
    return found


def continuation(given: Sequence[ChainLink], path: Sequence[ChainLink], known: int = 0) -> Continuation:
    """How a list continues a path that it is known to belong to.

    If it has one of the path's replies, everything up to the last one is known. If not, or if the list has an extra
    message in between, only their common beginning is known. `known` gives the number of known messages, the last of
    which ends the path.
    """
    anchor = (known - 1, len(path) - 1) if known and path else _anchor(given, path)
    aligned = _aligned(given, path, *anchor) if anchor else None
    if anchor is None or aligned is None:
        same = _same(given, path, 0, 0)
        return Continuation(same, same)
    new = anchor[0] + 1
    more = _same(given, path, new, anchor[1] + 1)
    return Continuation(anchor[1] + 1 + more, new + more, *aligned)


def _same(given: Sequence[ChainLink], path: Sequence[ChainLink], first: int, at: int) -> int:
    pairs = list(zip(given[first:], path[at:], strict=False))
    return next((n for n, (one, other) in enumerate(pairs) if one.print != other.print), len(pairs))


def _anchor(given: Sequence[ChainLink], path: Sequence[ChainLink]) -> tuple[int, int] | None:
    """The last reply of the list that is on the path, and its index there: of several, the one with the longest run of
    equal messages before it, then the one at the same index, then the newest."""
    for at in range(len(given) - 1, -1, -1):
        if given[at].role != "assistant":
            continue
        places = [place for place, link in enumerate(path) if link.print == given[at].print]
        if places:
            return at, max(places, key=lambda place: (_run(given, path, at, place), place == at, place))
    return None


def _run(given: Sequence[ChainLink], path: Sequence[ChainLink], at: int, place: int) -> int:
    length = 0
    while length <= min(at, place) and given[at - length].print == path[place - length].print:
        length += 1
    return length


def _aligned(
    given: Sequence[ChainLink], path: Sequence[ChainLink], at: int, place: int
) -> tuple[tuple[tuple[int, int], ...], int] | None:
    """The rewordings before an anchor, and the number of omitted messages of the path; None if the list has a message
    that the path has in no form."""
    reworded: list[tuple[int, int]] = []
    left_out = place - at
    at, place = at - 1, place - 1
    while at >= 0:
        if place < 0:
            return None
        if given[at].print != path[place].print:
            earlier = next((n for n in range(place - 1, -1, -1) if path[n].print == given[at].print), None)
            if earlier is not None:
                place = earlier
            elif given[at].role == path[place].role:
                reworded.append((at, place))
            else:
                return None
        at, place = at - 1, place - 1
    return tuple(reversed(reworded)), left_out
