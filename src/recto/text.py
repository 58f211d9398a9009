"""Cleans text from outside once, so that all later code sees valid UTF-8 without NUL."""

import re

_BAD = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str | bytes) -> tuple[str, int]:
    """The text with characters that cannot be stored or sent replaced by U+FFFD, and their number.

    Invalid bytes are decoded to surrogates first, so that they count like lone surrogates. Nothing else is changed: no
    normalising, no trimming.
    """
    if isinstance(text, bytes):
        try:
            valid = text.decode()
        except UnicodeDecodeError:
            text = text.decode("utf-8", "surrogateescape")
        else:
            # valid UTF-8 has no surrogates, and searching for NUL alone is ten times as fast
            return (valid, 0) if "\0" not in valid else (valid.replace("\0", REPLACEMENT), valid.count("\0"))
    return _BAD.subn(REPLACEMENT, text)
