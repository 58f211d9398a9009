"""Whatever a text from elsewhere says, reading it takes time that grows with its length alone."""

import pytest
from tests.compiled_patterns import UsedPattern, find_patterns
from tests.hostile_texts import ALL_UNITS, FEW_UNITS, HostileText, Read, growth, hostile_texts, own_units

pytestmark = pytest.mark.untraced
SUMMARY = "recto.summary."


def test_every_pattern_that_a_function_makes_has_an_example() -> None:
    assert (find_patterns().missing, find_patterns().unneeded) == (frozenset(), frozenset())


def reads(used: UsedPattern) -> Read:
    method, pattern = getattr(used.pattern, used.method), used.pattern.pattern
    given = method if isinstance(pattern, str) else lambda text: method(text.encode("utf-8", "surrogatepass"))
    return (lambda text: sum(1 for _ in given(text))) if used.method == "finditer" else given


def slow_on(used: UsedPattern, units: tuple[str, ...]) -> HostileText | None:
    """The first text that a pattern is too slow on."""
    return next((text for text in hostile_texts(units) if growth(reads(used), text)), None)


def patterns_of(room: str) -> list[UsedPattern]:
    return [each for each in find_patterns().used if f"{each.name}.".startswith(f"recto.{room}.")]


ROOMS = sorted({each.name.split(".")[1] for each in find_patterns().used} - {"summary"})


def test_patterns_read_the_worst_texts_in_time_that_grows_with_their_length() -> None:
    slow = {
        f"{used}: {text.unit!r}" for room in ROOMS for used in patterns_of(room) if (text := slow_on(used, FEW_UNITS))
    }
    assert not slow


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_patterns_read_every_hostile_text_in_time_that_grows_with_its_length(room: str) -> None:
    slow = {
        f"{used}: {text.unit!r}"
        for used in patterns_of(room)
        if (text := slow_on(used, (*ALL_UNITS, *own_units(str(used.pattern.pattern)))))
    }
    assert not slow
