"""Packing: small JSON texts and wire messages made smaller with what they nearly all contain.

The first byte says how a blob was packed. A dictionary, once shipped, never changes: old blobs need it for ever.
"""

import zlib

RAW, WITH_DICTIONARY = 0, 1

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


def pack(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    small = packer.compress(data) + packer.flush()
    return bytes([WITH_DICTIONARY]) + small if len(small) < len(data) else bytes([RAW]) + data


def unpack(blob: bytes) -> bytes:
    """The data again; zlib.error when the blob was damaged."""
    if not blob:
        raise zlib.error("nothing is there")
    how, rest = blob[0], blob[1:]
    if how == RAW:
        return rest
    if how == WITH_DICTIONARY:
        opener = zlib.decompressobj(-15, DICTIONARY)
        return opener.decompress(rest) + opener.flush()
    raise zlib.error(f"unknown packing {how}")
