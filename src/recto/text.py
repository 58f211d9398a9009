"""Text from outside, made safe once: everything behind this point is valid UTF-8 without NUL."""

import re

_BAD = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str | bytes) -> tuple[str, int]:
    """The text with what cannot be stored or sent replaced by U+FFFD, and how many places that were.

    Bytes are decoded by surrogates first, so that invalid ones count like lone surrogates do. Nothing else is changed:
    no normalising, no trimming.
    """
    if isinstance(text, bytes):
        try:
            valid = text.decode()
        except UnicodeDecodeError:
            text = text.decode("utf-8", "surrogateescape")
        else:
            # valid bytes hold no surrogates, and to look for NUL alone is ten times as fast
            return (valid, 0) if "\0" not in valid else (valid.replace("\0", REPLACEMENT), valid.count("\0"))
    return _BAD.subn(REPLACEMENT, text)
