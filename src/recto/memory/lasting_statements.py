"""Whether a sentence in which users speak of themselves tells something that lasts: who they are, whom and what they
have, what they do again and again, what they like, what they decided.

A model that points to a sentence is not believed alone: most of what people say of themselves is about the work at hand
or the day. What is asked for is a sign that it lasts, and none that it passes. The words are in lasting_words.toml.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from recto.vault.question import language_of

TimeSense = Literal["lasting", "passing", "unknown"]
_FILE = Path(__file__).with_name("lasting_words.toml")
_FEW = r"(?:[\w'’.-]+ ){0,3}?"
_NAMED = re.compile(r"<(\w+)>")


class LanguageCues(Struct, frozen=True):
    persons: re.Pattern[str]
    """Words that nearly every sentence of a person in this language has one of."""
    lasting: re.Pattern[str]
    passing: re.Pattern[str]


@cache
def _cues() -> dict[str, LanguageCues]:
    """By language. Read at the first use: compiling the patterns takes longer than the start of a command may."""
    told = tomllib.loads(_FILE.read_text("utf-8"))
    return {
        language: LanguageCues(
            re.compile(each["persons"], re.IGNORECASE),
            _pattern(each["lasting"], each),
            _pattern(each["passing"], each),
        )
        for language, each in told.items()
    }


def _pattern(patterns: Sequence[str], lists: Mapping[str, Any]) -> re.Pattern[str]:
    def words(named: re.Match[str]) -> str:
        if named[1] == "few":
            return _FEW
        return "(?:" + "|".join(lists[named[1]].split()).replace("_", " ") + ")"

    return re.compile("|".join(rf"\b(?:{_NAMED.sub(words, each)})" for each in patterns), re.IGNORECASE)


def time_sense(text: str) -> TimeSense | None:
    """What a sentence says of how long it holds; None for one in a language whose words are not known."""
    languages = _languages(text)
    cues = [_cues()[language] for language in languages or _cues()]
    passing = [bool(each.passing.search(text)) for each in cues]
    if any(each.lasting.search(text) and not passes for each, passes in zip(cues, passing, strict=True)):
        return "lasting"
    if not languages:
        return None
    return "passing" if any(passing) else "unknown"


def _languages(text: str) -> list[str]:
    """Those that it can be in, of the ones that are known."""
    if language := language_of(text):
        return [language]
    return [language for language, cues in _cues().items() if cues.persons.search(text)]
