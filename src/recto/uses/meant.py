"""Meant: sentences of a reply that say what a source says in other words, found by meaning where few words are shared.

Vectors take their time: this is for behind the reply, and for sources that show no sign by their words.
"""

from collections.abc import Sequence
from typing import NamedTuple

from recto.search.embedder import Embedder
from recto.uses.traces import Sentence, traces
from recto.uses.used import Given, Known, Seen, Use, shortened

SHARED = 1.5
"""What two sentences must share beyond what was known, before their meaning is looked at."""
NEAR = 0.68
"""Their cosine by all-MiniLM-L6-v2; of those that have nothing to do with each other none came above 0.62."""
MOST_PAIRS = 24


class Close(NamedTuple):
    shared: float
    place: int
    """Of the source."""
    said: Sentence
    other: Sentence


def by_meaning(reply: str, given: Sequence[Given], known: str, embedder: Embedder) -> list[Use]:
    """One for each source, in their order. NoVectors rises from an embedder that cannot be used."""
    close = sorted(_close(reply, given, known), key=lambda each: (-each.shared, each.place))[:MOST_PAIRS]
    texts = list(dict.fromkeys(text for each in close for text in (each.said.text, each.other.text)))
    vectors = dict(zip(texts, embedder.embed(texts), strict=True)) if texts else {}
    found: dict[int, tuple[float, str]] = {}
    for each in close:
        near = float(vectors[each.said.text] @ vectors[each.other.text])
        if near >= NEAR:
            found[each.place] = max(found.get(each.place, (0.0, "")), (near, each.said.text))
    return [
        Use(one.id, "paraphrased", shortened(found[place][1])) if place in found else Use(one.id, "")
        for place, one in enumerate(given)
    ]


def _close(reply: str, given: Sequence[Given], known: str) -> list[Close]:
    """Pairs of sentences with something in common; of scripts that the model hardly knows none."""
    written = {place: traces(each.text) for place, each in enumerate(given) if each.id.kind != "tool"}
    seen = Seen(reply, Known(known), list(written.values()))
    found: list[Close] = []
    for place, source in written.items():
        new = {mark: worth for mark, worth in seen.new(source).items() if mark.isascii()}
        for said, other, shared in seen.close(source, new):
            if shared >= SHARED and not said.is_joined:
                found.append(Close(shared, place, said, other))
    return found
