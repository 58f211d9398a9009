"""Chain: where a client's list of messages continues a stored path. Pure: knows prints of messages, no store.

A print is a hash of what a message says. Replies of ours that a client sends back are the anchors: what it says after
the last of them is new, and what differs before it is a rewording, such as another time in a reminder.
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
    """One message of a chain: who said it, and its print."""

    role: Role
    print: Print
    id: str = ""
    """Of a stored message."""


class Continuation(Struct, frozen=True):
    """How a list of messages goes on from a stored path."""

    at: int
    """How many of the path's messages come before what is new."""
    new: int
    """How many of the list are stored already: the others are new."""
    reworded: tuple[tuple[int, int], ...] = ()
    """Places in the list and on the path of messages that differ, with replies of ours behind them."""
    cut: int = 0
    """How many messages of the path, before the last one that was found, the list leaves out."""


def print_of(role: Role, blocks: Iterable[Block]) -> Print:
    """White space around a text, thinking and the order of keys do not count: clients change them."""
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
    """For each message a hash of the whole chain up to and with it."""
    found = []
    for link in links:
        before = sha256(before + link.print).digest()[:PRINT_BYTES]
        found.append(before)
    return found


def continuation(given: Sequence[ChainLink], path: Sequence[ChainLink], known: int = 0) -> Continuation:
    """How a list goes on from a path that it is known to belong to.

    With one of the path's replies in it, everything up to the last one is known. Without any, or where the list holds
    something in between that the path does not have, only the beginning that is the same is known. `known`: so
    many are known, and the last of them is the end of the path.
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
    """The last reply of the list that the path has, and its place there: of several, the one with the longest run of
    same messages before it, then the one at the same place, then the newest."""
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
    """Rewordings before an anchor, and how many messages of the path are left out; None where the list has a message
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
