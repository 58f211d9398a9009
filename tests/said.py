"""What people said: sentences of users, as many hands wrote them for the benchmarks. For tests that need a lot of talk
of which no two lines are alike."""

from functools import cache

from bench.summary_data import conversations

LEAST_WORDS, MOST_WORDS = 7, 24


@cache
def user_sentences() -> tuple[str, ...]:
    """English ones, each once."""
    found: dict[str, None] = {}
    for conversation in conversations():
        if conversation.language == "en":
            for message in conversation.messages:
                if message.role == "user":
                    found |= dict.fromkeys(" ".join(each.text.split()) for each in message.segments)
    return tuple(text for text in found if LEAST_WORDS <= len(text.split()) <= MOST_WORDS)
