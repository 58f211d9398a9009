"""Statements of a note: sentences, list items and table rows, as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.document import Document
from recto.vault.note_statements import NoteStatement, note_statements, plain_text

NOTE = """---
tags: [garden]
---

# Garden

The pear tree is **forty** years old. It was planted by [[people/Ines|Ines]]. ^pear

## Beds

| Bed | Crop | Water |
|---|---|---:|
| 1 | Beans | 8 l |
| North | Leeks | 5 l |

- [ ] Mend the *fence*. See [[Tools#Hammer]].
2. Cut the hedge
   in August

> [!note] Nobody walks on the beds.

```
water --bed 2
```

Setext heading
--------------

Snails hate [copper](https://example.org).
"""


def of(text: str) -> list[NoteStatement]:
    document = Document("Garden.md", text)
    return note_statements(document, 0, len(text))


def test_a_note_is_read_sentence_by_sentence_item_by_item_and_row_by_row() -> None:
    assert [(each.kind, each.heading, each.text) for each in of(NOTE)] == [
        ("sentence", "Garden", "The pear tree is forty years old."),
        ("sentence", "Garden", "It was planted by Ines."),
        ("row", "Beds", "Bed: 1 · Crop: Beans · Water: 8 l"),
        ("row", "Beds", "North · Crop: Leeks · Water: 5 l"),
        ("item", "Beds", "Mend the fence."),
        ("item", "Beds", "See Tools › Hammer."),
        ("item", "Beds", "Cut the hedge in August"),
        ("sentence", "Beds", "Nobody walks on the beds."),
        ("sentence", "Beds", "water --bed 2"),
        ("sentence", "Setext heading", "Snails hate copper."),
    ]


def test_a_short_table_of_two_columns_is_told_as_a_whole_too() -> None:
    table = "| Who | Hours |\n|---|---|\n| Ann | 3 |\n| Ben | 5 |\n"
    assert [(each.kind, each.text) for each in of(table)] == [
        ("row", "Ann · Hours: 3"),
        ("row", "Ben · Hours: 5"),
        ("table", "Hours: Ann 3 · Ben 5"),
    ]


def test_a_part_of_a_table_brings_all_its_rows_with_the_names_of_their_columns() -> None:
    start = NOTE.index("| North")
    rows = note_statements(Document("Garden.md", NOTE), start, start + 5)
    assert [row.text for row in rows] == ["Bed: 1 · Crop: Beans · Water: 8 l", "North · Crop: Leeks · Water: 5 l"]
    assert {row.table for row in rows} == {NOTE.index("| Bed")}


def test_a_list_of_short_items_is_also_told_as_a_whole() -> None:
    assert ("list", "rope · tent · two lamps") in [
        (each.kind, each.text) for each in of("- rope\n- tent\n- two lamps\n")
    ]
    long = f"- rope\n- {'a tent for the whole family ' * 3}\n"
    assert "list" not in [each.kind for each in of(long)]


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("**In force**, and *kept*.", "In force, and kept."),
        ("![[picture.png]] a `code` b", "a code b"),
        ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
        ("[[Note#Part|caption]] and [[Note#Part]]", "caption and Note › Part"),
    ],
)
def test_markdown_is_read_as_a_person_reads_it(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


@given(st.text(alphabet="ab. |-#>*`\n[]!^?:1", max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_any_note_can_be_read_and_statements_lie_where_they_say(text: str, one: int, other: int) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    for each in note_statements(Document("a.md", text), start, end):
        assert each.start < end
        assert each.end > start
        assert each.line == text.count("\n", 0, each.start) + 1
        assert "\n" not in each.text
