"""Revealed: a text in which every sign can be seen, for what a user has to judge before it happens."""


def revealed(text: str, but: str = "") -> str:
    """With a number for each sign that a terminal would obey, that turns the line around or cannot be seen; `but`
    these."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in but else _number(sign) for sign in text)


def _number(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"
