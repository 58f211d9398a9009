"""Decodes files: UTF-8, or the encoding of a byte order mark. Rejects binary files.

Does not guess encodings: a wrong guess would be written back.
"""

import codecs

from recto.base.text import REPLACEMENT, clean
from recto.errors import Invalid

SNIFFED_BYTES = 8000
"""The bytes that decide whether a file is text."""
# Invalid bytes tolerated in any file, however short.
_TOLERATED = 10

# Longer marks first: the UTF-16 mark is a prefix of the UTF-32 one.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def decode_text(raw: bytes, path: str) -> str:
    """The cleaned text without its byte order mark. Raises Invalid for a binary file; `path` is for its message."""
    text, reason = _decode(raw)
    if reason:
        raise Invalid(f"{path} is not text: {reason}", path=path)
    return text


def decoded(path: str, raw: bytes | str) -> tuple[str, str]:
    """The text of a file, and the problem where there is none; `raw` may itself say why it cannot be read."""
    if isinstance(raw, str):
        return "", raw
    try:
        return decode_text(raw, path), ""
    except Invalid as why:
        return "", why.message


def why_not_text(head: bytes) -> str:
    """Why a file that begins like this is not text; empty if it is."""
    return _decode(head)[1]


def _decode(raw: bytes) -> tuple[str, str]:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            text = raw.decode(encoding, "replace")
            head = text[:SNIFFED_BYTES]
            return clean(text)[0], _reason("\0" in head, head.count(REPLACEMENT), len(head), encoding)
    raw = raw.removeprefix(codecs.BOM_UTF8)
    text, invalid = clean(raw)
    return text, _problem(raw[:SNIFFED_BYTES]) if invalid else ""


def _problem(head: bytes) -> str:
    return _reason(b"\0" in head, clean(head)[1], len(head), "UTF-8")


def _reason(has_nul: bool, invalid: int, size: int, encoding: str) -> str:
    if has_nul:
        return "it contains NUL bytes, as binary files do"
    # text in another encoding has some invalid bytes; with many it is unreadable
    return f"more than a fifth of it is not {encoding}" if invalid > max(_TOLERATED, size / 5) else ""
