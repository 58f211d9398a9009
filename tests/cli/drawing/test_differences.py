"""What two requests differ in, as people see it."""

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from recto.cli.drawing.requests import draw_difference
from recto.store.comparison import (
    ComparedPick,
    Difference,
    PickChange,
    SentMessage,
    SharedPrefix,
)

STYLE = ComparedPick("rules", "rule", "style", sha256="a")
API = ComparedPick("sources", "reference", "api", mode="agent", score=0.87, tokens=38, because="holds minute")
SAME = Difference("01A", "01B", (), (), (), (), (), (), (), SharedPrefix(4, 3, 1200, 300, None, None))


def drawn(found: Difference, *, whole: bool = False, width: int = 80) -> list[str]:
    out = StringIO()
    draw_difference(Console(file=out, width=width), found, whole=whole)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_what_came_in_and_went_out_has_its_badge_and_tokens() -> None:
    tool = ComparedPick("tools", "tool", "create_issue", "github", "manual", tokens=90, because="you added it")
    said = tuple(SentMessage(f"m{n}", n, "user") for n in range(1, 31))
    recalled = ComparedPick("recalled", "message", "01M", mode="agent", score=0.5, because="#3, holds mast", tokens=7)
    shown = drawn(replace(SAME, came_in=(API, recalled), went_out=(tool,), said_in=said[:2], said_out=said))
    assert [" ".join(line.split()) for line in shown[1:8]] == [
        "came in",
        "+ 2 messages (#1 #2)",
        "+ reference api [Agent 0.87] holds minute +38",
        "+ recalled #3, holds mast +7",
        "went out",
        "- 30 messages (#1 #2 #3 #4 … #30)",
        "- tool github:create_issue [Manual] you added it -90",
    ]


def test_changes_show_the_lines_and_texts_come_before_scores() -> None:
    scored = PickChange(API, replace(API, score=0.9), ("score",))
    text = ("@@ -1 +1 @@", "-Write short.", "+Write \x1blong.")
    written = PickChange(STYLE, replace(STYLE, sha256="b"), ("text",), text)
    shown = drawn(replace(SAME, changed=(scored, written)))
    assert shown[1:7] == [
        "changed",
        "  ~ rule style [Always] another text",
        "      @@ -1 +1 @@",
        "      -Write short.",
        "      +Write �long.",
        "  ~ reference api [Agent 0.90] score was 0.87",
    ]


def test_long_lists_and_long_texts_are_folded_unless_all_is_asked_for() -> None:
    text = tuple(f"+line {n}" for n in range(60))
    changes = tuple(PickChange(STYLE, STYLE, ("text",), text) for _ in range(12))
    many = replace(SAME, came_in=tuple(replace(API, name=f"api{n}") for n in range(20)), changed=changes)
    shown, whole = drawn(many), drawn(many, whole=True)
    assert "  and 12 more; --all shows them" in shown
    assert "      … 36 lines more; --all shows them" in shown
    assert not any("--all" in line for line in whole)
    assert sum("+line 59" in line for line in whole) == 12
