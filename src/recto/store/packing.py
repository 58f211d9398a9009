"""Packing: small JSON texts and wire messages made smaller with what they nearly all contain.

The first byte says how a blob was packed. A dictionary, once shipped, never changes: old blobs need it for ever.
"""

import zlib
from collections.abc import Callable, Sequence

from recto.varint import varint

RAW, WITH_DICTIONARY, BESIDE = 0, 1, 2

# The most frequent last, as zlib wants it.
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

# In front of what a blob is packed beside.
QUOTES = (
    b'{"name":"summary","tokens":,"picks":[{"kind":"summary","name":"compaction ","because":"stands for  archived '
    b'messages; ,{"name":"recalled","tokens":,"budget":,"picks":[,"not_picked":[{"kind":"message","name":"01'
    b'","tokens":,"because":"#, a part of it, 2026-01-01 12:00: holds ; near in meaning (0.'
    b')","mode":"agent","score":0.},{"kind":"message","name":"01","tokens":2,"because":"#1, 2026-1'
    b": stands beside what holds "
)


def pack(data: bytes) -> bytes:
    small = _small(data, DICTIONARY)
    return bytes([WITH_DICTIONARY]) + small if len(small) < len(data) else bytes([RAW]) + data


def pack_beside(data: bytes, numbers: Sequence[int], beside: bytes) -> bytes:
    """With what is stored elsewhere under these rising numbers as a dictionary; alone where that is as small."""
    alone = pack(data)
    names, last = bytearray(varint(len(numbers))), 0
    for number in numbers:
        names += varint(number - last)
        last = number
    # a dictionary that was changed may give other words: the check says so
    check = zlib.crc32(data).to_bytes(4, "big")
    together = bytes([BESIDE]) + check + bytes(names) + _small(data, DICTIONARY + QUOTES + beside)
    return together if numbers and len(together) < len(alone) else alone


def unpack(blob: bytes, beside: Callable[[list[int]], bytes] | None = None) -> bytes:
    """The data again; zlib.error when the blob was damaged. `beside` gives what is stored under numbers."""
    if not blob:
        raise zlib.error("nothing is there")
    how, rest = blob[0], blob[1:]
    if how == RAW:
        return rest
    if how == WITH_DICTIONARY:
        return _large(rest, DICTIONARY)
    if how == BESIDE and beside:
        numbers, at = _numbers(rest[4:])
        data = _large(rest[4 + at :], DICTIONARY + QUOTES + beside(numbers))
        if zlib.crc32(data) != int.from_bytes(rest[:4], "big"):
            raise zlib.error("what it was packed beside was changed")
        return data
    raise zlib.error(f"unknown packing {how}")


def _small(data: bytes, dictionary: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, dictionary)
    return packer.compress(data) + packer.flush()


def _large(small: bytes, dictionary: bytes) -> bytes:
    opener = zlib.decompressobj(-15, dictionary)
    return opener.decompress(small) + opener.flush()


def _numbers(rest: bytes) -> tuple[list[int], int]:
    """The numbers, each told by how much it is more than the last, and where they end."""
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
