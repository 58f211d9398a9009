"""Deck: chunks in memory, and which of them hold the words of a question. Nothing here is written anywhere."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from recto.choice.chunks import Chunk
from recto.vault.wording import stem_of, wording

# As if there were so many more chunks without any of the words: among three sources no word is common or rare.
UNSEEN = 100
# What people say whatever they want; it counts, but little.
_SAID_ANYWAY = """
    again also already another any anything ask back best better bit come day different else every everything example
    few get give go going good great have hello help hey hi idea kind know last let like little long look lot make many
    maybe mean much must need never new next nice now off ok okay old one only other out over own part people please
    put quick quickly really right same say see show something sorry start still stop such sure take tell thank thanks
    thing think three time today tomorrow try two up use user using want way week well work working would year yes
    yesterday bitte danke gern kannst könntest heute morgen machen mach gib zeig alle sobre hacer puedes gracias favor
    peux pouvez merci faire plait tout
    monday tuesday wednesday thursday friday saturday sunday weekend month months weeks days hour hours minute minutes
    january february march april june july august september october november december morning evening tonight noon
    zero four five six seven eight nine ten eleven twelve half first second third once twice late early soon always
    able ago all almost anybody anyone away bad become before begin being both bring call called change comes done down
    easy end enough ever exactly far fast feel find fine finish found full happen happens hard hold hope inside instead
    into just keep leave left less live made main more most nobody none nothing often online open perhaps place quite
    rather ready rest run seem simply since small so somebody someone sometimes somewhere tiny together told too turn
    until wait whole without word words world wrong"""
LIGHT = frozenset(stem_of(word) for word in _SAID_ANYWAY.split())
LIGHT_WEIGHT = 0.25
# How people shorten what names and descriptions write out.
_SHORT_FOR = {
    "repo": "repository", "repos": "repositories", "pr": "pull request", "prs": "pull requests", "db": "database",
    "mail": "email", "mails": "emails", "k8s": "kubernetes", "msg": "message", "dm": "direct message",
    "dir": "directory", "folder": "directory", "doc": "document", "docs": "documents", "config": "configuration",
    "env": "environment", "pic": "image", "picture": "image", "ticket": "issue", "website": "page", "site": "page",
    "ls": "list", "rm": "delete remove", "mkdir": "create directory", "ci": "workflow", "auth": "authentication",
    "login": "authentication", "pwd": "password", "vm": "machine", "todo": "task", "app": "application",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """The words of a question: each stem, and the word that it stands for."""

    stems: Mapping[str, str]


@dataclass(slots=True)
class Held:
    """What a chunk holds of a question, by weight."""

    mass: float = 0.0
    name: float = 0.0
    """How many words of its source's name are said."""
    words: list[str] = field(default_factory=list)


@lru_cache(maxsize=1024)  # earlier messages are compared with every new one
def asked(question: str) -> Asked:
    said = wording(question).stems
    more = [(short, long) for short, long in _SHORT_FOR.items() if stem_of(short) in said]
    return Asked(
        dict(said)
        | {stem_of(word): short for short, long in more for word in long.split() if stem_of(word) not in said}
    )


class Deck:
    def __init__(self) -> None:
        self._chunks: dict[int, Chunk] = {}
        self._holders: dict[str, set[int]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._chunks)

    def __getitem__(self, number: int) -> Chunk:
        return self._chunks[number]

    def put(self, chunk: Chunk) -> int:
        number, self._next = self._next, self._next + 1
        self._chunks[number] = chunk
        for stem in chunk.stems:
            self._holders.setdefault(stem, set()).add(number)
        return number

    def drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for stem in self._chunks.pop(number).stems:
                holders = self._holders[stem]
                holders.discard(number)
                if not holders:
                    del self._holders[stem]

    def held(self, question: Asked, among: set[int]) -> tuple[dict[int, Held], float]:
        """What each of these chunks holds of a question, those that hold anything; and what all of its words weigh."""
        found: dict[int, Held] = {}
        total = 0.0
        for word, forms in _words(question).items():
            holders = set(chain.from_iterable(self._holders.get(stem, ()) for stem in forms)) & among
            light = _lightness(forms)
            weight = _rareness(len(holders), len(among)) * light
            total += weight
            for number in holders:
                each = found.setdefault(number, Held())
                each.mass += weight
                each.words.append(word)
                each.name += light * len(self._chunks[number].name.intersection(forms))
        return found, total


def _words(question: Asked) -> dict[str, list[str]]:
    forms: dict[str, list[str]] = {}
    for stem, word in question.stems.items():
        forms.setdefault(word, []).append(stem)
    return forms


def _rareness(holders: int, size: int) -> float:
    """From 0 to 1: the rarer, the more a word tells."""
    return math.log((size + UNSEEN) / (holders + 1)) / math.log(size + UNSEEN)


def _lightness(forms: Iterable[str]) -> float:
    return LIGHT_WEIGHT if any(stem in LIGHT for stem in forms) else 1.0


@lru_cache(maxsize=16384)
def name_size(name: frozenset[str]) -> float:
    """How many words a name counts as."""
    return sum(LIGHT_WEIGHT if stem in LIGHT else 1.0 for stem in name)
