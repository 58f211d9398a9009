from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.vault.document import Document, block_text, parse_note, section_text

NOTE = """---
title: "Trip: north"
aliases: [North, 2024]
tags: [travel/sea, '#plan']
date: 2024-05-01
---
Before all. #idea `#code` [[x #y]] #1984

# Top ##
Text of the top. ^b1

- first ^i1
- second
  wraps ^i2

> said
> twice

^said

Underlined
==========
```
# no heading
```
## A: b!
### Deep `code`
y

Second
------
z
"""


def test_a_note_is_parsed() -> None:
    parsed = parse_note(NOTE)
    assert parsed.title == "Trip: north"
    assert parsed.aliases == ("North", "2024")
    assert parsed.tags == ("travel/sea", "plan", "idea")
    assert [(each.level, each.text, each.line) for each in parsed.headings] == [
        (1, "Top", 9),
        (1, "Underlined", 21),
        (2, "A: b!", 26),
        (3, "Deep `code`", 27),
        (2, "Second", 30),
    ]
    assert NOTE[parsed.body_start :].startswith("Before all.")
    assert parsed.problem is None


def test_sections_include_their_subsections() -> None:
    sections = parse_note(NOTE).sections
    assert [each.heading_path for each in sections] == [
        (),
        ("Top",),
        ("Underlined",),
        ("Underlined", "A: b!"),
        ("Underlined", "A: b!", "Deep `code`"),
        ("Underlined", "Second"),
    ]
    assert NOTE[sections[3].start : sections[3].end] == "## A: b!\n### Deep `code`\ny\n\n"
    assert NOTE[sections[0].start : sections[0].end].startswith("Before all.")


@pytest.mark.parametrize(
    ("heading", "begins"),
    [
        ("top", "# Top"),
        ("a b", "## A: b!"),
        ("Underlined#A b", "## A: b!"),
        ("underlined # deep CODE", "### Deep"),
        ("Top#A b", None),
        ("no heading", None),
        ("", None),
    ],
)
def test_a_section_is_found_as_obsidian_finds_it(heading: str, begins: str | None) -> None:
    found = section_text(Document("a.md", NOTE), heading)
    assert found is None if begins is None else found and found.startswith(begins)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ("b1", "Text of the top."),
        ("i1", "- first"),
        ("I2", "- second\n  wraps"),
        ("said", "> said\n> twice"),
        ("none", None),
    ],
)
def test_a_block_is_a_paragraph_or_an_item(block: str, text: str | None) -> None:
    assert block_text(Document("a.md", NOTE), block) == text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: 42\n---\n# H", "42"),
        ("---\ntitle: ''\n---\n# H", "H"),
        ("## Two\n# One", "One"),
        ("One\n===", "One"),
        ("no heading", "My note"),
        ("", "My note"),
        ("#nospace", "My note"),
    ],
)
def test_the_title_is_the_property_or_the_first_heading_or_the_name(text: str, title: str) -> None:
    assert Document("folder/My note.md", text).title == title


@pytest.mark.parametrize(
    ("front", "problem"),
    [
        ("title: a: b", "not valid YAML, line 2"),
        ("- a\n- b", "not a list of properties"),
        ("just text", "not a list of properties"),
        ("a: &a [x]\nb: [*a, *a]", "uses aliases"),
        ("a: " + "[" * 50_000, "nested too deeply"),
        ("a: " + "{a: " * 10_000, "nested too deeply"),
        ("- " * 20_000, "nested too deeply"),
        ("a:\n" + "".join(" " * depth + "- \n" for depth in range(300)), "nested too deeply"),
        ("a: " + "x" * 70_000, "longer than 64 kB"),
        ("a: " + "9" * 50_000, "not valid YAML"),
        ("a: !!python/object/apply:os.system [x]", "not valid YAML"),
        ("? [a]\n: b", "not valid YAML"),
        ("a: \x07", "not valid YAML"),
        ("<<: 5", "not valid YAML"),
    ],
)
def test_broken_or_hostile_front_matter_is_reported_and_the_note_still_read(front: str, problem: str) -> None:
    parsed = parse_note(f"---\n{front}\n---\n# Title\n\ntext #tag")
    assert parsed.problem is not None
    assert problem in parsed.problem
    assert (parsed.properties, parsed.body_start, parsed.title, parsed.tags) == ({}, 0, "Title", ("tag",))


@pytest.mark.parametrize(
    ("front", "aliases", "tags"),
    [
        ("aliases: One\ntags: a, b", ("One",), ("a", "b")),
        ("alias: [One, [x], null, One]\ntag: a b", ("One",), ("a", "b")),
        ("aliases: One, Two ,, One\nalias: Three,Four", ("One", "Two", "Three", "Four"), ()),
        ('aliases: ["Smith, John", Two]', ("Smith, John", "Two"), ()),
        ("aliases: 2024-05-01", ("2024-05-01",), ()),
        ("aliases:\ntags:", (), ()),
        ("aliases: {a: b}\ntags: 5", (), ("5",)),
    ],
)
def test_names_and_tags_are_read_in_every_form(front: str, aliases: tuple[str, ...], tags: tuple[str, ...]) -> None:
    parsed = parse_note(f"---\n{front}\n---\n")
    assert (parsed.aliases, parsed.tags) == (aliases, tags)


MARKDOWN = st.text(alphabet="#-=`~^ \n\r>a1|[]:", max_size=80)


@example("#\n=")
@given(MARKDOWN)
def test_sections_are_made_of_the_text(text: str) -> None:
    parsed = parse_note(text)
    flat = [each for each in parsed.sections if each.level in (0, 1)]
    assert len(parsed.sections) == len(parsed.headings) + any(each.level == 0 for each in parsed.sections)
    for section in parsed.sections:
        assert parsed.body_start <= section.start < section.end <= len(text)
    for one, other in pairwise(flat):
        assert one.end <= other.start
    for heading in parsed.headings:
        assert heading.line == text.count("\n", 0, heading.start) + 1
        assert heading.start == 0 or text[heading.start - 1] == "\n"
    for start, end in parsed.blocks.values():
        assert 0 <= start <= end <= len(text)


@pytest.mark.untraced
@pytest.mark.parametrize(
    "text",
    ["# a\n" * 20_000, "a\n-\n" * 20_000, "a ^a\n" * 20_000, "# " + " " * 250_000 + "x", " #a" * 80_000, "^" * 250_000],
    ids=range(6),
)
def test_a_hostile_text_is_parsed_in_time(text: str) -> None:
    assert parse_note(text).problem is None
