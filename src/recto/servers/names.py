"""What a model calls a tool of a server: a name that depends on nothing but the two names, shared by no other pair."""

import hashlib
import json
import re

LONGEST = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9-]+")


def name_of(server: str, tool: str) -> str:
    """`server__tool` where both are plain; else what can be read of them, and a hash.

    A plain name holds two underscores in a row exactly once, and one with a hash never does:
    so the two kinds never meet.
    """
    plain = f"{server}__{tool}"
    if _is_plain(server) and _is_plain(tool) and len(plain) <= LONGEST:
        return plain
    told = json.dumps([server, tool]).encode()
    hash = hashlib.sha256(told).hexdigest()[:8]
    readable = _OTHER.sub("_", f"{server}_{tool}").strip("_")[: LONGEST - len(hash) - 1].rstrip("_")
    return f"{readable}_{hash}" if readable else hash


def _is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and "__" not in name and name.strip("_") == name
