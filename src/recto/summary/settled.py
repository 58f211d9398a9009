"""Settled: where in a sentence something is settled: "so we went with SQLite", "SQLite it is", "let's do Tuesday".

Pure; four languages. Beside the cues of `priority`, which bind by how a sentence begins or by words that always bind.
"""

import re
from functools import cache

from recto.summary.figures import word_set

_WHO = re.compile(r"\b(?:we|i|they|you|he|she)(?: (?:all|both|then|just|finally|eventually|now))? $", re.IGNORECASE)
_COMPANY = (
    r"(?!(?:my|his|her|him|them|me|us|you|our|their|some|friends?|family|a friend)\b)"
    r"(?!\S+(?: \S+){0,2} (?:to|last|yesterday)\b)"
)
_PHRASES = (
    rf"\bwent with {_COMPANY}",
    r"\b(?:ended up (?:with|using|choosing|taking|picking|going with)|opted (?:for|to|against)|settled (?:on|for))\b",
    r"\b(?:chose|picked)\b(?! up\b)(?! \w+ up\b)",
    r"\b(?:we're|we are|i'm|i am|we'll be) (?:sticking|staying|going) with\b",
    r"\blet's (?:do|take|have|make|say|meet|aim for|go for)(?! (?:it|this|that|so|a break|fun)\b)",
    r"\bmake it (?=\d)",
    r"\bthen (?:it's|we'll|i'll|we will|i will) (?:take|have|do|meet|keep|use)\b",
    r"\b(?:dann|also|doch|da) (?:nehmen|machen|bleiben|gehen|treffen|fahren) wir\b|\bbleibt es bei\b",
    r"\buns auf\b.{1,60}\bgeeinigt\b|\beinigten uns auf\b",
    r"\b(?:on a|nous avons|j'ai|ils ont) (?:finalement )?(?:pris|choisi|opté|retenu)\b|\bva pour\b|\bce sera\b",
    r"\b(?:optamos|nos decidimos|se decidieron) por\b|\bquedamos en\b|\bhemos (?:elegido|optado)\b|\belegimos\b",
)
_IT_IS = re.compile(
    r"(?:^|[,.;:!–—] ?|\b(?:ok|okay|fine|alright|so|then|well) )"
    r"((?:(?!(?:what|how|who|where|why|which|that|whatever|as|than|if|like|but|because)\b)[^\s,.;:!]+ ){1,4})it is"
    r"(?=(?: then)?\s*(?:[,.;!]|$))",
    re.IGNORECASE,
)
# Words of which every match has one: most sentences have none, and are passed over at a tenth of the price.
_HINTS = word_set(
    "went ended opted settled chose picked sticking staying going let's let’s make then wir bleibt wahl uns pris "
    "choisi opté retenu va sera reste por quedamos hemos elegimos"
)


@cache
def _settles() -> re.Pattern[str]:
    """Made when first needed: few commands ever sum up."""
    return re.compile("|".join(_PHRASES), re.IGNORECASE)


def settles_at(sentence: str) -> int | None:
    """Where the words that settle something begin; None for questions and where nothing is settled."""
    lower = sentence.lower()
    is_likely = not _HINTS.isdisjoint(lower.split()) or " it is" in lower
    if not is_likely or lower.rstrip("\"')*_ ").endswith(("?", "？")):
        return None
    said = sentence.replace("’", "'")
    if found := _settles().search(said):
        who = _WHO.search(said, max(0, found.start() - 24), found.start())
        return who.start() if who else found.start()
    found = _IT_IS.search(said)
    return found.start(1) if found else None
