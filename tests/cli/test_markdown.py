import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from recto.cli.screen import Growing, Page, last_lines
from recto.cli.show import visible

LINES = st.lists(
    st.sampled_from(
        [
            *("", "text", "- item", "  more", "1. one", "   deep", "# head", "```", "~~~py", "a | b", "--- | ---"),
            *(
                "> said",
                "---",
                "[x]: http://x",
                "<b>bold</b>",
                "<div>",
                "    code",
                "* star",
                "\ttab",
                "![[embed]]",
                "\\",
            ),
        ]
    ),
    max_size=12,
)


def told(blocks: list[str]) -> list[str]:
    return [line for block in blocks for line in block.split("\n") if line.strip()]


@given(LINES, st.integers(1, 9))
def test_every_line_is_handed_out_once_and_in_order(lines: list[str], size: int) -> None:
    text = "\n".join(lines)
    growing = Growing()
    blocks = [
        block for start in range(0, len(text), size) for block in growing.add(text[start : start + size])
    ] + growing.end()
    assert told(blocks) == [line for line in lines if line.strip()]
    assert growing.tail == ""


@given(LINES | st.lists(st.text(max_size=30), max_size=5))
def test_whatever_a_model_says_is_drawn_without_empty_lines_around_it(lines: list[str]) -> None:
    console = Console(file=io.StringIO(), width=60)
    console.print(Page(visible("\n".join(lines))), end="")
    drawn = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert not drawn or (drawn.strip("\n") == drawn.removesuffix("\n"))


def test_a_block_is_finished_only_when_the_next_one_has_begun() -> None:
    growing = Growing()
    assert growing.add("First.\n\n") == []
    assert growing.add("- one\n\n  more of one\n") == ["First.\n"]
    assert growing.add("- two\n\nSecond") == []
    assert growing.add(".\n") == ["- one\n\n  more of one\n- two\n"]
    assert growing.tail == "Second.\n"


def test_the_end_of_a_long_code_block_is_still_code() -> None:
    tail = "```py\n" + "\n".join(f"line {n}" for n in range(100))
    assert last_lines(tail, 3) == "```py\nline 97\nline 98\nline 99"
    assert last_lines("a\nb\nc", 2) == "b\nc"
    assert last_lines("a\nb", 2) == "a\nb"


def rows_of(text: str, width: int = 40) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(Page(text), crop=False)
    return [row.rstrip() for row in file.getvalue().splitlines()]


def test_code_is_drawn_line_by_line_as_it_was_written() -> None:
    code = ["def f(x):", '    return "' + "long " * 30 + '"', "", "    indented = 1   # and spaces"]
    assert rows_of("\n".join(["```python", *code, "```"])) == code


def test_text_beside_code_is_still_wrapped() -> None:
    rows = rows_of("word " * 30 + "\n\n```\n" + "x" * 90 + "\n```\n\n" + "more " * 20)
    assert "x" * 90 in rows
    assert max(len(row) for row in rows if "x" not in row) <= 40
    assert "".join(rows_of("- item\n\n  ```\n  " + "y" * 90 + "\n  ```")).count("y") == 90, "in a list too"
    tags = "use the <b> tag\n\n<div>block</div>\n\n[x]: http://x"
    assert rows_of(tags, 60) == tags.split("\n")


def test_a_narrow_table_loses_nothing() -> None:
    name = "a-very-long-identifier-that-does-not-fit"
    rows = rows_of(f"| name | value |\n|---|---|\n| {name} | 22222 |\n| b | {'x' * 50} |", 30)
    cells = "".join(rows)
    assert "…" not in cells
    assert cells.count("x") == 50
    column = "".join(row[: rows[0].index("value")].strip() for row in rows[2:])
    assert name in column
