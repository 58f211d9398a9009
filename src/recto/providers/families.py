"""What the name of a model tells: which vocabulary counts, how closely, whether a temperature may be asked for.

Knows names only; loads no vocabulary.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counting:
    """As the fields of the same names in Model."""

    tokenizer: str
    factor: float = 1.0
    exact: bool = False


OPENAI_TALKER = re.compile(r"(chatgpt-4o|gpt-4o|gpt-4\.1|gpt-4\.5)")
OPENAI_EARLIER = re.compile(r"gpt-(4|3\.5)")
# These are rendered by rules that OpenAI keeps to itself: of o4-mini and gpt-5 usage was seen that is one token below
# what its rule for chats gives, so they are near, but not exact.
OPENAI_REASONER = re.compile(r"(gpt-[5-9]|gpt-oss|gpt-chat|codex|computer-use|o[1-9](-|$))")

# Of the gpt-5 family only the first one for chats takes a temperature whatever else is asked; 5.1 and 5.2 may take one,
# but only while they do not reason.
OPENAI_FIXED = re.compile(r"(?!gpt-5-chat)(gpt-[5-9]|codex|o[1-9](-|$))")

# A distilled model counts as what it was distilled into, hence llama and qwen before deepseek.
OTHERS = (
    (re.compile(r"llama"), "llama3"),
    (re.compile(r"qwen|qwq"), "qwen3"),
    (re.compile(r"deepseek"), "deepseek_v3"),
    (re.compile(r"mistral|ministral|mixtral|codestral|devstral|magistral|pixtral"), "mistral_v3"),
    (re.compile(r"gemini|gemma"), "gemma4"),
)
# Claude's vocabulary is not public. Against o200k: 1.14 (English) to 1.27 (code) up to 4.6, about 1.6 from 4.7 on; a
# ceiling to start from, until reported usage says better.
CLAUDE_UNTIL_4_6 = Counting("o200k_base", 1.3)
CLAUDE_SINCE_4_7 = Counting("o200k_base", 1.8)
UNKNOWN = Counting("o200k_base", 1.1)


def counting(provider: str, id: str) -> Counting:
    """How the tokens of a model are counted, by its name alone."""
    name = _bare(id)
    if "claude" in name:
        return CLAUDE_UNTIL_4_6 if claude_version(name) <= (4, 6) else CLAUDE_SINCE_4_7
    if OPENAI_TALKER.match(name):
        return Counting("o200k_base", exact=provider == "openai")
    if OPENAI_REASONER.match(name):
        return Counting("o200k_base")
    if OPENAI_EARLIER.match(name):
        return Counting("cl100k_base", exact=provider == "openai")
    found = (Counting(vocabulary) for pattern, vocabulary in OTHERS if pattern.search(name))
    return next(found, UNKNOWN)


def has_fixed_temperature(id: str) -> bool:
    """Whether a model is known to refuse any temperature but 1: OpenAI's that reason, and Claude from 4.7 on."""
    name = _bare(id)
    return claude_version(name) > (4, 6) if "claude" in name else OPENAI_FIXED.match(name) is not None


def _bare(id: str) -> str:
    """What openai/gpt-4o, accounts/fireworks/models/llama-v3p1 and ft:gpt-4o-mini:me::x say behind their beginnings."""
    return id.lower().rsplit("/", 1)[-1].removeprefix("ft:")


def claude_version(name: str) -> tuple[int, int]:
    """(4, 5) of claude-sonnet-4-5-20250929 and of claude-4.5-sonnet; a name without a number is taken as the newest."""
    found = re.search(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)
