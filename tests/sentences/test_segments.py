"""Segments: a text as sentences, items, headings, rows and lines of code; nothing is changed and nothing is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import texts

from recto.sentences.segments import readable, segments, sentences

pytestmark = pytest.mark.untraced


def kinds(text: str) -> list[tuple[str, str]]:
    return [(segment.kind, segment.text) for segment in segments(text)]


@given(texts, st.booleans())
def test_every_segment_is_cut_from_its_place_in_order(text: str, is_output: bool) -> None:
    at = 0
    for segment in segments(text, is_output=is_output):
        assert segment.start >= at
        assert text[segment.start : segment.end] == segment.text == segment.text.strip() != ""
        at = segment.end


@given(texts)
def test_outside_code_fences_no_word_is_lost(text: str) -> None:
    text = re.sub("```|~~~", "", text)
    left = list(text)
    for segment in segments(text):
        left[segment.start : segment.end] = " " * len(segment.text)
    assert re.findall(r"\w{2,}", re.sub(r"[_\d]+", " ", "".join(left))) == []


@pytest.mark.parametrize(
    "told",
    [
        ["The keel is 3.14 m long.", "Wait… what?", "See https://a.org/b.c?d=e.f for more.", "Then sail!"],
        ["Dr. Smith comes at 5 p.m. on Monday.", "Bring nails, screws etc. and the ladder.", "“Really?” she said."],
        ["Das ist z. B. Holz, d.h. teuer.", "Am 3. Mai kam Hans.", "Siehe Abb. 4 dazu.", "Gut?"],
        ["On part à midi.", "Vraiment ?", "Voir la p. 12 du bail.", "Bien !"],
        ["¿Cuándo salimos?", "¡Mañana!", "El Sr. Pérez paga 12,50 €.", "Vale…"],
        ["Счёт пришёл.", "Оплатить до 3 мая!", "Хорошо?"],
        ["Ona ma pięć lat.", "Jutro jedziemy do Gdańska!"],
        ["Toplantı 5 Mayıs'ta.", "Gelir misin?"],
        ["هل وصلت الشحنة؟", "نعم، وصلت أمس.", "شكرا!"],
        ["यह अच्छा है।", "हम कल मिलते हैं।"],
        ["어디예요?", "서울역입니다.", "알겠습니다!"],
    ],
    ids=lambda told: told[0][:12],
)
def test_sentences_end_where_a_reader_ends_them(told: list[str]) -> None:
    assert sentences(" ".join(told)) == told


@pytest.mark.parametrize(
    "told", [["今日は晴れです。", "散歩しますか？", "はい！"], ["船到了。", "什么时候走？", "他说：“好。”", "明天！"]]
)
def test_sentences_end_without_spaces(told: list[str]) -> None:
    assert sentences("".join(told)) == told


@pytest.mark.xfail(
    strict=True, reason="a word of two letters before a stop, or of four before a number, is taken for an abbreviation"
)
@pytest.mark.parametrize(
    "text",
    [
        "I paid for it. Then we left.",
        "We sail soon. 12 people come.",
        "Wir segeln so. Der Wind passt.",
        "Вот и я. Пора идти.",
    ],
)
def test_a_sentence_may_end_with_a_short_word(text: str) -> None:
    assert len(sentences(text)) == 2


def test_the_form_of_a_text_gives_each_segment_its_kind() -> None:
    text = """\
# Boat plan

The hull is oak. Sails are red.
Steps:
1. Buy paint
- [x] sand the keel
| part | price |
|------|-------|
| mast | 400 € |
> You wrote this. Is it true?
```python
print("One. Two.")
```
2024-05-01 10:00:01 ERROR disk full
rows = [{"a": 1}, {"b": 2}];
**Open questions**
Who sails?
"""
    assert kinds(text) == [
        ("heading", "Boat plan"),
        ("prose", "The hull is oak."),
        ("prose", "Sails are red."),
        ("heading", "Steps:"),
        ("item", "Buy paint"),
        ("item", "[x] sand the keel"),
        ("row", "| part | price |"),
        ("row", "| mast | 400 € |"),
        ("quote", "You wrote this."),
        ("quote", "Is it true?"),
        ("code", 'print("One. Two.")'),
        ("output", "2024-05-01 10:00:01 ERROR disk full"),
        ("output", 'rows = [{"a": 1}, {"b": 2}];'),
        ("heading", "**Open questions**"),
        ("prose", "Who sails?"),
    ]


@pytest.mark.xfail(strict=True, reason="a line that begins with a fence opens one, even if it closes it itself")
def test_a_fence_that_is_closed_on_its_line_hides_nothing() -> None:
    assert ("prose", "The boat is red.") in kinds("```make paint``` does it\nThe boat is red.")


@pytest.mark.xfail(strict=True, reason="a letter with a stop is taken for the sign of an item")
def test_an_initial_at_the_start_of_a_line_belongs_to_the_name() -> None:
    assert kinds("J. Tolkien wrote it.") == [("prose", "J. Tolkien wrote it.")]


def test_wrapped_prose_is_joined_and_other_lines_are_not() -> None:
    text = "The server was moved to another rack in the night and has\nbeen slow ever since. We looked.\nNew line"
    first = "The server was moved to another rack in the night and has\nbeen slow ever since."
    assert sentences(text) == [first, "We looked.", "New line"]


def test_a_quotation_over_several_lines_ends_with_its_paragraph_at_the_latest() -> None:
    letter = "Er schrieb: „Liebe Ada,\nich komme im Mai.\nDein Bob“\nDas war alles."
    assert [kind for kind, _ in kinds(letter)] == ["prose", "quote", "quote", "prose"]
    assert kinds("She said “never\n\nThe rest is mine.")[-1] == ("prose", "The rest is mine.")


def test_what_a_program_wrote_is_output_whatever_its_words() -> None:
    assert {each.kind for each in segments("All tests passed. Nothing failed.", is_output=True)} == {"output"}


def test_json_is_read_by_its_fields() -> None:
    assert readable('{"order": {"id": 7, "paid": true, "tags": ["a", "b"]}, "rows": [{"n": 1.5}, {"n": null}]}') == (
        "order.id: 7\norder.paid: true\norder.tags: a, b\nrows 1.n: 1.5\nrows 2.n: "
    )
    assert readable("[1, 2") == "[1, 2"
    assert readable('{"a":' * 600 + "1" + "}" * 600).startswith("a.a.a.")
