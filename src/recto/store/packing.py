"""Packing: compresses small JSON texts and wire messages with dictionaries of their common parts.

The first byte says how a blob was packed. A shipped dictionary never changes, because old blobs need it. A request is
packed with the messages it quotes as a further dictionary: rewriting stored blocks requires repacking those requests.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, bindparam, or_, select

from recto.base.ids import varint
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.schema import messages
from recto.window.account import RequestAccount

RAW, WITH_DICTIONARY, WITH_MESSAGES = 0, 1, 2

# The most frequent parts last, as zlib recommends.
DICTIONARY = (
    b'","name":"read_document","parameters":{"type":"object","properties":{"arguments":"","tool_calls":[{"id":"call_'
    b'"role":"tool","tool_call_id":"","type":"function","function":{"description":"","error":null,"attempts":[],'
    b'"notes":["the window of is unknown: 8192 tokens are assumed and automatic compaction is off"],"compaction 1",'
    b'"kind":"tool","because":"offered with every message","kind":"document","linked as [[","mode":"manual","sha256":"'
    b'another branch","the instructions changed","the tools changed","rounds":["01","lifted":["01","kind":"rounds",'
    b'" tokens or more are over ; cut down to "left_out":{"first":"01","last":"01","count":,"tokens":},"because":"'
    b'"window_from":"genai-prices","window_from":"built in","window_from":"scripted file",,"temperature":0.'
    b'"model":"embedded:smollm2","model":"anthropic:claude-","model":"openai:gpt-","format":"anthropic",'
    b'{"model":"scripted:","format":"openai","parameters":{"max_tokens":},"limit":4096,"limit":8192,"reserve":512,'
    b'"total":,"free":,"exact":true,"strategy":"discard","sections":[{"name":"system","tokens":,"budget":,"picks":['
    b'{"kind":"system","name":"system prompt","tokens":,"because":"always first","mode":"always","score":null}]},'
    b'{"name":"tools","tokens":,{"name":"documents","tokens":,{"name":"history","tokens":,"budget":,"picks":[{"kind":'
    b'"messages","name":"01","tokens":,"because":" messages, said since compaction  messages, the whole chat","mode":'
    b'"always","score":null}]},{"name":"message","tokens":,"budget":,"picks":[{"kind":"message","name":"01","tokens":'
    b',"because":"the message that is answered","mode":"always","score":null}]}],"plan":{"strategy":"discard","kept":'
    b'{"first":"01","last":"01","count":,"tokens":},"left_out":{"first":null,"last":null,"count":0,"tokens":0},'
    b'"because":"everything fits"},"notes":[],"messages":{"first":"01","last":"01","count":,"lifted":[],"current":"01'
    b'","rounds":[]},"compaction":null,"meter":"o200k_base/chat","window_from":"scripted file","prefix":{"base":"01'
    b'","kept":,"of":,"broken_by":null}}'
    b" about  should  would  could  there  which  their  these  other  because  people  with the  in the  of the "
    b',{"role":"assistant","content":"I ,{"role":"user","content":"'
)

# Precedes the messages in their dictionary.
QUOTES = (
    b'{"name":"summary","tokens":,"picks":[{"kind":"summary","name":"compaction ","because":"stands for  archived '
    b'messages; ,{"name":"recalled","tokens":,"budget":,"picks":[,"not_picked":[{"kind":"message","name":"01'
    b'","tokens":,"because":"#, a part of it, 2026-01-01 12:00: holds ; near in meaning (0.'
    b')","mode":"agent","score":0.},{"kind":"message","name":"01","tokens":2,"because":"#1, 2026-1'
    b": stands beside what holds "
)


def pack(data: bytes) -> bytes:
    small = _compress(data, DICTIONARY)
    return bytes([WITH_DICTIONARY]) + small if len(small) < len(data) else bytes([RAW]) + data


def pack_with(data: bytes, *dictionaries: "PackDictionary") -> bytes:
    """Packs with the most effective dictionary, or without one; the first that helps much is taken."""
    tried = []
    for each in dict.fromkeys(dictionaries):
        if each.numbers:
            tried.append(_pack_quoting(data, each.numbers, each.data))
            if len(tried[-1]) * MUCH < len(data):
                return tried[-1]
    return min(pack(data), *tried, key=len) if tried else pack(data)


def _pack_quoting(data: bytes, numbers: Sequence[int], dictionary: bytes) -> bytes:
    names, last = bytearray(varint(len(numbers))), 0
    for number in numbers:
        names += varint(number - last)
        last = number
    # a changed dictionary may unpack to other bytes, which the checksum detects
    check = zlib.crc32(data).to_bytes(4, "big")
    return bytes([WITH_MESSAGES]) + check + bytes(names) + _compress(data, DICTIONARY + QUOTES + dictionary)


def unpack(blob: bytes, dictionary: Callable[[list[int]], bytes] | None = None) -> bytes:
    """The original data. Raises zlib.error if the blob is damaged. `dictionary` reads the messages by number."""
    if not blob:
        raise zlib.error("the blob is empty")
    how, rest = blob[0], blob[1:]
    if how == RAW:
        return rest
    if how == WITH_DICTIONARY:
        return _decompress(rest, DICTIONARY)
    if how == WITH_MESSAGES and dictionary:
        numbers, at = _numbers(rest[4:])
        data = _decompress(rest[4 + at :], DICTIONARY + QUOTES + dictionary(numbers))
        if zlib.crc32(data) != int.from_bytes(rest[:4], "big"):
            raise zlib.error("a message it was packed with was changed")
        return data
    raise zlib.error(f"unknown packing {how}")


def numbers_quoted(blob: bytes) -> list[int]:
    return _numbers(blob[5:])[0] if blob[:1] == bytes([WITH_MESSAGES]) else []


def _compress(data: bytes, dictionary: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return packer.compress(data) + packer.flush()


def _decompress(small: bytes, dictionary: bytes) -> bytes:
    opener = zlib.decompressobj(-15, dictionary)
    return opener.decompress(small) + opener.flush()


def _numbers(rest: bytes) -> tuple[list[int], int]:
    """The numbers, each stored as the difference from the previous one, and the offset after them."""
    count, at = _varint_at(rest, 0)
    numbers = [0]
    for _ in range(count):
        more, at = _varint_at(rest, at)
        numbers.append(numbers[-1] + more)
    return numbers[1:], at


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        at, shift = at + 1, shift + 7
    raise zlib.error("a number was cut off")


# No further dictionary is tried if the data shrinks below this fraction.
MUCH = 3
# In a long tool loop only the last rounds are new.
MAX_ROUNDS = 4
# zlib looks back 32 kilobytes.
MAX_MESSAGE_BYTES, MAX_DICTIONARY_BYTES = 3_000, 24_000


class PackDictionary(Struct, frozen=True):
    """The text of stored messages, used as a dictionary for a request that quotes them."""

    numbers: tuple[int, ...] = ()
    data: bytes = b""


_TEXT = select(messages.c.n, messages.c.id, messages.c.blocks)
_last = messages.alias("last")
_before = messages.c.n == select(_last.c.parent).where(_last.c.id == bindparam("last")).scalar_subquery()
_QUOTED = Statement(_TEXT.where(messages.c.status != "unfinished", or_(_before, in_list(messages.c.id, "ids"))))
_BY_NUMBERS = Statement(_TEXT.where(in_list(messages.c.n, "numbers")))


def quoted_messages(account: RequestAccount) -> list[str]:
    """The ids of the messages that were recalled, or found but left out."""
    picks = (*account.picks("recalled"), *account.not_picked)
    return list(dict.fromkeys(pick.name for pick in picks if pick.kind == "message"))


def new_messages(account: RequestAccount) -> list[str]:
    """The ids of messages that a request is the first to send: the last of the history and those of this turn."""
    sent = account.messages
    ids = (sent.last, sent.current, *sent.rounds[-MAX_ROUNDS:]) if sent else ()
    return [id for id in ids if id]


def make_dictionaries(connection: Connection, account: RequestAccount) -> tuple[PackDictionary, PackDictionary]:
    """Two dictionaries: the finished messages that a request is the first to send, with the one before; and those plus
    the ones it quotes. New text in a request mostly comes from them."""
    quoted, last = quoted_messages(account), account.messages.last if account.messages else None
    rows = _QUOTED(connection, ids=[*new_messages(account), *quoted], last=last or "").all()
    return _dictionary([row for row in rows if row.id not in quoted]), _dictionary(rows)


def _dictionary(rows: Sequence[Any]) -> PackDictionary:
    """As many of them as fit."""
    numbers, parts, left = [], [], MAX_DICTIONARY_BYTES
    for row in sorted(rows, key=lambda row: row.n):
        part = _part(row.id, row.blocks)
        if len(part) <= left:
            numbers.append(row.n)
            parts.append(part)
            left -= len(part)
    return PackDictionary(tuple(numbers), b"".join(parts))


def load_dictionary(connection: Connection, numbers: Iterable[int]) -> PackDictionary:
    """The dictionary as it was at packing. A missing message leaves a gap, and unpacking fails."""
    ordered = tuple(numbers)
    found = {row.n: _part(row.id, row.blocks) for row in _BY_NUMBERS(connection, numbers=list(ordered))}
    return PackDictionary(ordered, b"".join(found.get(number, b"") for number in ordered))


def _part(id: str, blocks: str) -> bytes:
    return id.encode() + blocks.encode()[:MAX_MESSAGE_BYTES]
