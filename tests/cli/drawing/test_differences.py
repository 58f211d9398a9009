"""What two requests differ in, as people see it."""

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from recto.cli.drawing.requests import draw_difference
from recto.store.comparison import (
    ComparedPick,
    Difference,
    PickChange,
)
from recto.window.account import PrefixReuse

STYLE = ComparedPick("rules", "rule", "style", sha256="a")
API = ComparedPick("sources", "reference", "api", mode="agent", score=0.87, tokens=38, because="holds minute")
SAME = Difference("01A", "01B", (), (), (), (), (), PrefixReuse("01A", 3, 4, "the tools changed"))


def drawn(found: Difference, *, whole: bool = False, width: int = 80) -> list[str]:
    out = StringIO()
    draw_difference(Console(file=out, width=width), found, whole=whole)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_what_came_in_went_out_and_changed_has_its_badge_and_tokens() -> None:
    tool = ComparedPick("tools", "tool", "create_issue", "github", "manual", tokens=90, because="you added it")
    recalled = ComparedPick(
        "recalled", "message", "01M", mode="agent", score=0.5, because="#3, holds \x1bmast", tokens=7
    )
    moved = PickChange(API, replace(API, mode="manual", score=None, section="references"), ("mode", "score", "section"))
    scored, written = PickChange(API, API, ("score",)), PickChange(STYLE, STYLE, ("text",))
    found = replace(SAME, came_in=(API, recalled), went_out=(tool,), changed=(scored, written, moved))
    assert [" ".join(line.split()) for line in drawn(found)[1:]] == [
        "came in",
        "+ reference api [Agent 0.87] holds minute +38",
        "+ recalled #3, holds �mast +7",
        "went out",
        "- tool github:create_issue [Manual] you added it -90",
        "changed",
        "~ rule style another text",
        "~ reference api [Agent 0.87] → [Manual], from sources to references",
        "prefix: 3 of 4 stable pieces of 01A kept; broken by the tools changed",
    ]


def test_long_lists_are_folded_unless_all_is_asked_for() -> None:
    many = replace(SAME, came_in=tuple(replace(API, name=f"api{n}") for n in range(20)))
    shown, whole = drawn(many), drawn(many, whole=True)
    assert any("and 12 more; --all shows them" in line for line in shown)
    assert not any("--all" in line for line in whole)
    assert any("api19" in line for line in whole)
