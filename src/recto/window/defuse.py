"""Defuses text that a tokenizer would read as control tokens. Pure; knows no model."""

import re
from functools import lru_cache

ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"

# Turn markers of common local models. <s> and </s> are left out on purpose: they are HTML too, and no turn can be
# forged with them alone; a llama.cpp server that has them as tokens reports them.
COMMON_CONTROL = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|start|>",
    "<|end|>",
    "<|channel|>",
    "<|message|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "[INST]",
    "[/INST]",
)


def defuse(text: str, control: tuple[str, ...]) -> str:
    """Inserts a zero width space after the first character of every control text, overlapping ones included.

    The result holds no control text, so applying it twice changes nothing. Control texts of a single character cannot
    be split and are left alone.
    """
    if not any(word in text for word in control):
        return text
    pattern = _openings(control)
    return text if pattern is None else pattern.sub(lambda found: found[0] + ZERO_WIDTH_SPACE, text)


@lru_cache(maxsize=32)
def _openings(control: tuple[str, ...]) -> re.Pattern[str] | None:
    """Matches the first character of each occurrence; the rest is a lookahead, so that overlaps match as well."""
    words = [re.escape(word) for word in control if len(word) > 1]
    return re.compile(f"(?=(?:{'|'.join(words)})).", re.DOTALL) if words else None
