"""What a file's bytes say as text: UTF-8, or what a mark of byte order says they are; binary files say nothing.

Knows bytes, not where they lie.
"""

import codecs

from recto.errors import Invalid
from recto.text import REPLACEMENT, clean

JUDGED = 8000
"""So much of the beginning tells whether it is text."""
# So many bytes of another encoding are no sign of anything, however short the file is.
_FEW = 10

# The mark of UTF-16 is the beginning of that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def text_of(raw: bytes, path: str) -> str:
    """The text without its mark of byte order, made safe. Invalid for what is none; `path` is only named there."""
    text, because = _read(raw)
    if because:
        raise Invalid(f"{path} is no text: {because}", path=path)
    return text


def why_no_text(head: bytes) -> str:
    """Why a file that begins so is no text; empty when it is one."""
    return _read(head)[1]


def _read(raw: bytes) -> tuple[str, str]:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            text = raw.decode(encoding, "replace")
            head = text[:JUDGED]
            return clean(text)[0], _because("\0" in head, head.count(REPLACEMENT), len(head), encoding)
    raw = raw.removeprefix(codecs.BOM_UTF8)
    text, bad = clean(raw)
    return text, _problem(raw[:JUDGED]) if bad else ""


def _problem(head: bytes) -> str:
    return _because(b"\0" in head, clean(head)[1], len(head), "UTF-8")


def _because(has_nul: bool, bad: int, size: int, encoding: str) -> str:
    if has_nul:
        return "it holds NUL bytes, as binary files do"
    # a text of another encoding has some bytes that are not valid here; what has many cannot be read
    return f"more than a fifth of it is not {encoding}" if bad > max(_FEW, size / 5) else ""
