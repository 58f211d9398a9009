"""Whole numbers as few bytes: seven bits in each, the lowest first; nothing here is negative."""


def varint(value: int) -> bytes:
    head = bytearray()
    while value > 127:
        head.append(value & 127 | 128)
        value >>= 7
    return bytes([*head, value])
