"""Texts: several short texts, each with the hash that its vector is kept by."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True, slots=True)
class Texts:
    said: tuple[str, ...] = ()
    hashes: tuple[bytes, ...] = ()

    @staticmethod
    def of(said: Iterable[str]) -> "Texts":
        # half a character, as a server's JSON may hold it, can be neither hashed nor embedded
        raw = [each.encode("utf-8", "replace") for each in said]
        return Texts(tuple(each.decode() for each in raw), tuple(hashlib.sha256(each).digest() for each in raw))

    @staticmethod
    def joined(every: Iterable["Texts"]) -> "Texts":
        told = list(every)
        said = chain.from_iterable(each.said for each in told)
        return Texts(tuple(said), tuple(chain.from_iterable(each.hashes for each in told)))

    def __len__(self) -> int:
        return len(self.said)


NO_TEXTS = Texts()
