"""Facts that a model proposes: what it is asked about a message, and which of its answers hold.

A model may only point to what the user said: the sentence is kept as it stands. Where a sentence cannot be understood
alone, the model's wording is taken if it has no word that the message lacks. Knows no store and no provider.
"""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from recto.memory.learning import MAX_WORDS, UserStatement, own_statements
from recto.memory.statements import THE_USER, fact_stems, is_negated, numbers_in
from recto.store.fact import FACT_KINDS, FactKind

ORDER = """\
Below is a message that a user wrote to an assistant. Which lasting facts does the user state in it about themselves, \
their people, their work, their decisions or their preferences, that would help in a conversation months from now? \
Leave out questions, tasks, quotations, pasted text, examples, guesses, plans for today, moods, and what the message \
only mentions.
Answer with JSON alone: a list of objects with "quote" (the user's own words, exactly as they stand in the message), \
"fact" (the same as one statement that can be understood alone, in the language of the message, with no word of \
content that the message lacks) and "kind" (one of {kinds}). Most messages state none: answer [].

<message>
{message}
</message>"""
# More from one message are no facts but a text.
MOST = 5


class ProposedFact(Struct, frozen=True):
    text: str
    kind: FactKind | None = None


def proposal_order(message: str) -> str:
    return ORDER.format(kinds=", ".join(FACT_KINDS), message=message)


def is_worth_asking(message: str) -> bool:
    """Whether a message holds a sentence that a model may point to; one that leans on another needs another."""
    said = list(own_statements(message))
    return any(_may_be_kept(each) and (len(said) > 1 or not each.leans) for each in said)


def _may_be_kept(statement: UserStatement) -> bool:
    """Only what shows that it lasts: most of what a message says is about the work, the world or the day."""
    if statement.is_asked or statement.passes:
        return False
    if statement.leans:
        return statement.names > 0
    return statement.tells or (statement.is_own and statement.is_likely)


def supported_facts(answer: str, message: str) -> list[ProposedFact] | None:
    """Of what a model answered, what the user's own words support; None where the answer is no list."""
    listed = answer[max(answer.find("["), 0) : answer.rfind("]") + 1]
    try:
        items = json.loads(listed) if listed.startswith("[") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(items, list):
        return None
    found = {fact.text: fact for item in items[:MOST] if isinstance(item, dict) for fact in _supported(item, message)}
    return list(found.values())


def _supported(item: dict[str, Any], message: str) -> Iterator[ProposedFact]:
    quote, fact, kind = item.get("quote"), item.get("fact"), item.get("kind")
    if not isinstance(quote, str) or not (quoted := _plain(quote)):
        return
    known: FactKind | None = next((each for each in FACT_KINDS if each == kind), None)
    for each in own_statements(message):
        said = _plain(each.text)
        if not _may_be_kept(each) or not (quoted in said or said in quoted):
            continue
        if not each.leans:
            yield ProposedFact(each.text, known)
        elif isinstance(fact, str) and _is_said(fact, each.text, message):
            yield ProposedFact(" ".join(fact.split()), known)


def _is_said(fact: str, sentence: str, message: str) -> bool:
    """Whether a statement has its words from the message, most of them from the sentence, and its numbers too."""
    stems, said = fact_stems(THE_USER.sub(" ", fact)), fact_stems(sentence)
    if not stems or not stems <= fact_stems(message) or 2 * len(stems & said) < len(said) or "?" in fact:
        return False
    can_stand = len(fact.split()) <= MAX_WORDS and not UserStatement(fact, is_asked=False).leans
    return can_stand and numbers_in(fact) <= numbers_in(sentence) and is_negated(fact) == is_negated(sentence)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!'\"“”‘’")
