import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.links import Link, find_all_links, find_links, mask_code

SIGNS = st.text(alphabet='[]()!|#^`~%<>-\\ \n"ab.md/é', max_size=60)


def test_links_are_found_in_order_with_their_parts() -> None:
    found = find_links("See [[Budget|the money]], [[ Plan # Goals ]] and [[Log^b1]] or ![[map.svg]]")
    assert found == [
        Link("[[Budget|the money]]", "Budget", caption="the money"),
        Link("[[ Plan # Goals ]]", "Plan", heading="Goals"),
        Link("[[Log^b1]]", "Log", block="b1"),
        Link("[[map.svg]]", "map.svg"),
    ]
    assert [link.embed for link in found] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("[[a#^b1]]", Link("[[a#^b1]]", "a", block="b1")),
        ("[[a#One#Two]]", Link("[[a#One#Two]]", "a", heading="One#Two")),
        ("[[#Goals]]", Link("[[#Goals]]", "", heading="Goals")),
        ("| [[a\\|b]] |", Link("[[a\\|b]]", "a", caption="b")),
        ("[[a [draft] b]]", Link("[[a [draft] b]]", "a [draft] b")),
        ("[[a [draft]]]", Link("[[a [draft]]]", "a [draft]")),
        ("[[[draft] a]]", Link("[[[draft] a]]", "[draft] a")),
        ("[[[a]]]", Link("[[a]]", "a")),
        ("[[a]]]", Link("[[a]]", "a")),
        ("[[a [[b]]", Link("[[b]]", "b")),
        ("[[The `foo` function]]", Link("[[The `foo` function]]", "The `foo` function")),
        ('---\nup: "[[a]]"\n---\n', Link("[[a]]", "a")),
        ("100 %% of [[a]]", Link("[[a]]", "a")),
        ("one ` tick\n\n[[a]] and another `", Link("[[a]]", "a")),
        ("\\` [[a]] `", Link("[[a]]", "a")),
        ("it is <!-- never closed [[a]]", Link("[[a]]", "a")),
    ],
)
def test_forms_of_links(text: str, link: Link) -> None:
    assert find_links(text) == [link]


@pytest.mark.parametrize(
    "text", ["[[]]", "[[ ]]", "[[open", "[[a\nb]]", "`[[code]]`", "```\n[[fence]]\n```", "``a ` [[x]] ``", "~~~\n[[y]]"]
)
def test_code_empty_and_unclosed_links_are_ignored(text: str) -> None:
    assert find_links(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "%% [[a]] %%",
        "%%\n\n[[a]]\n\n%%",
        "<!-- [[a]] -->",
        "\\[[a]]",
        "[[#]]",
        "[[|caption]]",
        "- ```\n  [[a]]\n  ```",
        "> ```\n> [[a]]\n> ```",
        "````\n```\n[[a]]\n````",
        "`two\nlines [[a]]`",
    ],
)
def test_comments_escapes_and_nested_code_hide_links(text: str) -> None:
    assert find_all_links(text) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[t](note.md)", ("note.md", None, None, "t", False)),
        ("[t](<my note.md#A b>)", ("my note.md", "A b", None, "t", False)),
        ("[t](my%20note.md#A%20b)", ("my note.md", "A b", None, "t", False)),
        ("![img](../pic.png 'a title')", ("../pic.png", None, None, "img", True)),
        ("[t](a_(b).md)", ("a_(b).md", None, None, "t", False)),
        ("[t](C%23.md#^b1)", ("C#.md", None, "b1", "t", False)),
        ("[](#here)", ("", "here", None, None, False)),
        ("[t](<re: you.md>)", ("re: you.md", None, None, "t", False)),
        ("[a [b] c](x.md)", ("x.md", None, None, "a [b] c", False)),
        ("[`](` c](x.md)", ("x.md", None, None, "`](` c", False)),
    ],
)
def test_markdown_links_to_files(text: str, parts: tuple[object, ...]) -> None:
    (link,) = find_all_links(text)
    assert (link.target, link.heading, link.block, link.caption, link.embed) == parts
    assert link.kind == "markdown"


@given(SIGNS)
def test_a_link_knows_its_place(text: str) -> None:
    links = find_all_links(text)
    assert [link for link in links if link.kind == "wikilink"] == find_links(text)
    assert links == sorted(links, key=lambda link: link.start)
    for link in links:
        assert text[link.start : link.end] == link.wikilink
        assert link.line == text.count("\n", 0, link.start) + 1
        assert link.embed == text[: link.start].endswith("!")
        assert link.target or link.heading or link.block


@pytest.mark.untraced
@pytest.mark.parametrize(
    "text",
    [
        "[[" * 120_000,
        "`" * 250_000,
        "`a " * 80_000 + "[[",
        " ".join("`" * size for size in range(1, 700)) + "[[",
        "[[" + "<!-- " * 50_000,
        "[a](" * 60_000,
        "[" * 50_000 + "](a.md)" * 25_000,
        "[[" + "[a" * 120_000,
        "[[x" + " " * 250_000,
    ],
    ids=range(9),
)
def test_a_long_hostile_text_is_read_in_time(text: str) -> None:
    assert len(find_all_links(text)) < 2


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a `b` c", "b"),
        ("```b``` c", "b"),
        ("```js\nb\n```\nc", "b"),
        ("~~~ a`b\nb\n~~~\nc", "b"),
        ("1. ~~~\n   b\n   ~~~\nc", "b"),
        ("%%b%% c", "b"),
        ("<!--b--> c", "b"),
        ("`%%` b `%%` c", "%"),
        ("%% ` %% c `", "x"),
    ],
)
def test_only_code_and_comments_are_masked(text: str, hidden: str) -> None:
    mask = mask_code(text)
    assert hidden not in mask
    assert ("c" in mask) == ("c" in text)
