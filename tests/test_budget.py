"""The budget of the whole (`budget.toml`): what a stranger cannot read in a week is not finished. And its English."""

import io
import re
import tokenize
import tomllib
import warnings
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.untraced

SOURCE = Path(__file__).parents[1] / "src" / "recto"
BUDGET = tomllib.loads(Path(__file__).with_name("budget.toml").read_text())
PATTERN = re.compile(
    r"re\.compile|LazyPattern\(|\bre\.(?:search|match|fullmatch|sub|split|findall|finditer)\(\s*r?[\"']"
)
SMALL, LONG, TOO_LONG = 60, 600, 900
# A figure stays this close to what there is, so that it falls with it.
SLACK = 0.005


@cache
def texts() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


def lines(text: str) -> int:
    return text.count("\n")


def weights() -> dict[str, int]:
    found = texts()
    return {
        "lines": sum(map(lines, found.values())),
        "kilobytes": sum(len(text.encode()) for text in found.values()) // 1000,
        "files": len(found),
        "small_files": sum(lines(text) < SMALL for name, text in found.items() if not name.endswith("__init__.py")),
        "patterns": sum(len(PATTERN.findall(text)) for text in found.values()),
    }


@pytest.mark.parametrize("name", BUDGET)
def test_the_whole_weighs_no_more_than_its_budget(name: str) -> None:
    assert weights()[name] <= BUDGET[name]


@pytest.mark.parametrize("name", BUDGET)
def test_a_budget_falls_with_what_is_removed(name: str) -> None:
    assert BUDGET[name] <= weights()[name] * (1 + SLACK) + 1, f"tests/budget.toml: {name} can be {weights()[name]}"


@pytest.mark.filterwarnings("default")
def test_a_file_is_one_noun_that_can_be_read_in_a_sitting() -> None:
    long = {name: lines(text) for name, text in texts().items() if lines(text) > LONG}
    if long:
        warnings.warn(f"long files: {long}", stacklevel=1)
    assert {name: count for name, count in long.items() if count > TOO_LONG} == {}


# Words that give away a translated sentence, each with what it stands for.
TRANSLATED = re.compile(
    r"\b(?:(?:is|are|was) told|stands? (?!for\b|out\b|in for\b)|so many|whoever|anew|mend(?:s|ed)?)\b"
    r"|\bwhat (?:came|became) of\b"
    r"|(?<!there )\b(?:is|are) no (?!longer|more|one|faster|invention)[a-z]",
    re.IGNORECASE,
)
FIXED = (
    *("stands beside what holds", "left out anew with every request"),  # stored with requests
    *("stands before your summary", "exactly as they stand in the message"),
    *("only what stands under this heading", "the note that it stands in"),  # sent to models
    *('"anew"', "`anew`", "result of `anew`"),  # an argument
)
"""Texts that are stored or sent, and names."""


def prose(path: Path) -> str:
    text = path.read_text()
    if path.suffix != ".py":
        return text
    kinds = (tokenize.COMMENT, tokenize.STRING)
    return "\n".join(each.string for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type in kinds)


def test_prose_reads_as_english() -> None:
    root = SOURCE.parents[1]
    files = [*SOURCE.rglob("*.py"), *(root / "docs").glob("*.md"), root / "README.md"]
    found = []
    for path in files:
        text = " ".join(prose(path).split())
        for fixed in FIXED:
            text = text.replace(fixed, "")
        found += [
            f"{path.name}: {text[max(0, each.start() - 40) : each.end() + 30]}" for each in TRANSLATED.finditer(text)
        ]
    assert found == []
