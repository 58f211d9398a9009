"""Whatever a text from elsewhere says, reading it takes time that grows with its length alone."""

import re

import pytest
from tests.compiled_patterns import SOURCE, UsedPattern, find_patterns
from tests.foreign_readers import READERS, SUMMARY_READERS, fresh
from tests.hostile_texts import ALL_UNITS, FEW_UNITS, READER_UNITS, HostileText, Read, growth, hostile_texts, own_units

pytestmark = pytest.mark.untraced
ROOMS = sorted({path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")})
# Drawing takes so long for each character that a quick test has no room for it.
DRAWN = {"page", "reply on the page in parts", "code on the page", "terminal", ".gitignore", "imported file"}
QUICK = sorted(READERS.keys() - DRAWN)
_POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+")


def reads(used: UsedPattern) -> Read:
    method, pattern = getattr(used.pattern, used.method), used.pattern.pattern
    given = method if isinstance(pattern, str) else lambda text: method(text.encode("utf-8", "surrogatepass"))
    return (lambda text: sum(1 for _ in given(text))) if used.method == "finditer" else given


def slow_on(used: UsedPattern, units: tuple[str, ...]) -> HostileText | None:
    """The first text that a pattern is too slow on."""
    return next((text for text in hostile_texts(units) if growth(reads(used), text)), None)


def slow_units(read: Read, units: tuple[str, ...]) -> list[str]:
    return [unit for unit in units if growth(fresh(read), HostileText(unit))]


def patterns_of(room: str) -> list[UsedPattern]:
    return [each for each in find_patterns().used if f"{each.name}.".startswith(f"recto.{room}.")]


def test_patterns_are_known_safe_and_read_the_worst_texts_in_time_that_grows_with_their_length() -> None:
    """In one test, since finding them takes seconds.

    Python before 3.11.5 skips what the last, failed round of a possessive group has read. An atomic group works.
    """
    patterns = find_patterns()
    assert (patterns.missing, patterns.unneeded) == (frozenset(), frozenset()), "what a function makes has an example"
    assert {str(used) for used in patterns.used if _POSSESSIVE_GROUP.search(_bare(used.pattern.pattern))} == set()
    found = [(used, slow_on(used, FEW_UNITS)) for used in patterns.used]
    assert {f"{used}: {text.unit!r}" for used, text in found if text} == set()


def _bare(pattern: str | bytes) -> str:
    """A pattern without its escaped characters and character classes."""
    return re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern if isinstance(pattern, str) else pattern.decode())


def test_readers_read_the_worst_texts_in_time_that_grows_with_their_length() -> None:
    assert {name: slow for name in QUICK if (slow := slow_units(READERS[name], FEW_UNITS[:3]))} == {}


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_patterns_read_every_hostile_text_in_time_that_grows_with_its_length(room: str) -> None:
    found = [(used, slow_on(used, (*ALL_UNITS, *own_units(str(used.pattern.pattern))))) for used in patterns_of(room)]
    assert {f"{used}: {text.unit!r}" for used, text in found if text} == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_readers_read_every_hostile_text_in_time_that_grows_with_its_length(name: str) -> None:
    assert slow_units(READERS[name], READER_UNITS) == []


@pytest.mark.parametrize("name", SUMMARY_READERS)
def test_readers_of_summaries_read_the_worst_texts_in_time_that_grows_with_their_length(name: str) -> None:
    assert slow_units(SUMMARY_READERS[name], FEW_UNITS) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMMARY_READERS)
def test_readers_of_summaries_read_every_hostile_text_in_time_that_grows_with_its_length(name: str) -> None:
    assert slow_units(SUMMARY_READERS[name], READER_UNITS) == []
