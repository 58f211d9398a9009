"""Where sentences end, in prose, lists, code and scripts without spaces; and that nothing is lost on the way."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.summary.sentences import beginning, first_lines, is_noise, last_lines, sentences, terms

# pieces that make ends, false ends, fences and wrapped lines likely
pieces = (
    st.sampled_from(
        [". ", "! ", "? ", "... ", "…", "。", "！", "? 你", "e.g. ", "Dr. ", "3.14", "1. ", "z.B. ", "U.S. "]
    )
    | st.sampled_from(["\n", "\r\n", "\n\n", "\u2028", "\x1c", "```\n", "```python\n", "~~~", "- ", '"', ")", "😀"])
    | st.sampled_from(["a", "Word ", "word ", "https://a.b/c?d ", "你好", "नमस्ते। ", "goes on here\n"])
    | st.just("a long line of plain words that somebody has wrapped at a column\n")
)
texts = st.lists(pieces, max_size=30).map("".join) | st.text()


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(texts)
def test_only_whitespace_is_lost_and_the_order_stays(text: str) -> None:
    found = sentences(text)
    assert squeezed("".join(found)) == squeezed(text)
    assert all(sentence and sentence == sentence.strip() for sentence in found)


@given(texts)
def test_every_sentence_stands_in_the_text_as_it_is(text: str) -> None:
    at = 0
    plain = "\n".join(text.splitlines())
    for sentence in sentences(text):
        lines = [re.escape(line.strip()) for line in sentence.splitlines()]
        found = re.compile(r"\s*\n\s*".join(lines)).search(plain, at)
        assert found, sentence
        at = found.end()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        (
            "Dr. Smith met Mrs. Jones, e.g. at 5 p.m. on Monday.",
            ["Dr. Smith met Mrs. Jones, e.g. at 5 p.m. on Monday."],
        ),
        ("Das ist z.B. gut, d.h. fertig. Am 3. Mai kam er.", ["Das ist z.B. gut, d.h. fertig.", "Am 3. Mai kam er."]),
        ("Pi is 3.14. We run 1.2.3 now.", ["Pi is 3.14.", "We run 1.2.3 now."]),
        ("See https://a.org/b.c?d=e.f for more. Then go.", ["See https://a.org/b.c?d=e.f for more.", "Then go."]),
        ("Open main.py. It is in src/app.", ["Open main.py.", "It is in src/app."]),
        ("Well... maybe. Wait… What?", ["Well... maybe.", "Wait…", "What?"]),
        ("See fig. 3 and No. 5. No. Use the other.", ["See fig. 3 and No. 5.", "No.", "Use the other."]),
        ('"Really?" she said. "Yes." He left.', ['"Really?" she said.', '"Yes."', "He left."]),
        ("J. R. Tolkien wrote it. I read it.", ["J. R. Tolkien wrote it.", "I read it."]),
        ("i went home. it was late! then i slept", ["i went home.", "it was late!", "then i slept"]),
        ("1. First one. And more\n2. Second\n- a bullet", ["1. First one.", "And more", "2. Second", "- a bullet"]),
        ("first line\nsecond line", ["first line", "second line"]),
        ("**Bold.** Next.", ["**Bold.**", "Next."]),
        ("今日は晴れです。散歩しますか？はい！", ["今日は晴れです。", "散歩しますか？", "はい！"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("好!走吧", ["好!", "走吧"]),
        ("यह अच्छा है। हाँ।", ["यह अच्छा है।", "हाँ।"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_end_here(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_line_of_code_is_one_sentence() -> None:
    text = 'Look. Here:\n```python\nprint("One. Two.")\n\n    return 1. \n```\nThen. Done.'
    code = ["```python", 'print("One. Two.")', "return 1.", "```"]
    assert sentences(text) == ["Look.", "Here:", *code, "Then.", "Done."]


def test_prose_that_was_wrapped_is_joined_again() -> None:
    text = "The server was moved to another rack in the night and has\nbeen slow ever since. We looked at it.\nNew line"
    assert sentences(text) == [
        "The server was moved to another rack in the night and has\nbeen slow ever since.",
        "We looked at it.",
        "New line",
    ]


def test_terms_are_stems_numbers_and_pairs() -> None:
    assert terms("Deploying the deployment") == {"deployi", "deploym", "the"}
    assert terms("v1.2.3 in src/app.py costs 400") == {"v1.2.3", "in", "src/app.py", "costs", "400"}
    assert terms("東京都") == {"東京", "京都"}
    assert terms("👍") == set()


def test_the_same_log_line_a_second_later_has_the_same_terms() -> None:
    assert terms("2024-05-01 10:00:01 disk is full") == terms("2024-05-01 10:00:02 disk is full")


@pytest.mark.parametrize(
    "noise",
    [
        "}",
        "});",
        "-----",
        "```json",
        "👍",
        "aGVsbG8gd29ybGQsIHRoaXMgaXMgYSBsb25nIGxpbmUgb2YgYmFzZTY0IGRhdGEgMTIzNDU2Nzg5MA==",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "00000010: 7f45 4c46 0201 0100 0000 0000 0000 0000 0300 3e00 0100 0000",
    ],
)
def test_noise_is_told_from_words(noise: str) -> None:
    assert is_noise(noise)


@pytest.mark.parametrize(
    "said",
    [
        "Yes",
        "B",
        "42",
        "是的",
        "src/recto/window/a/path/that/is/really/quite/long/and_goes_on.py",
        "the-title-of-a-page-in-an-address-that-is-longer-than-any-word",
        "Hottentottenpotentatentantenattentat",
        "Commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b broke the build on Friday.",
    ],
)
def test_words_are_not_noise(said: str) -> None:
    assert not is_noise(said)


@given(texts, st.integers(-2, 200))
def test_ends_are_parts_of_the_text_and_short_enough(text: str, size: int) -> None:
    size = min(size, len(text))
    for part in (beginning(text, size), first_lines(text, max(size, 0))):
        assert len(part) <= max(size, 0)
        assert text.startswith(part)
    last = last_lines(text, max(size, 0))
    assert len(last) <= max(size, 0)
    assert text.rstrip().endswith(last)


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("one two three", 9, "one two"),
        ("one two three", 7, "one two"),
        ("one two three", 99, "one two three"),
        ("incomprehensibilities", 5, "incom"),
        ("我们明天去北京", 3, "我们明"),
        ("cafe\u0301 au lait", 4, "caf"),
        ("👍🏽👍🏽", 3, "👍🏽"),
        ("👩\u200d👩\u200d👧 family", 2, ""),
    ],
)
def test_a_beginning_ends_with_a_word(text: str, size: int, expected: str) -> None:
    assert beginning(text, size) == expected


def test_first_and_last_lines_are_whole_where_they_can_be() -> None:
    text = "line one\nline two\nline three\nline four"
    assert first_lines(text, 22) == "line one\nline two"
    assert last_lines(text, 22) == "line three\nline four"
    prose = "It began well. Then it rained. Nobody came."
    assert first_lines(prose, 34) == "It began well. Then it rained."
    assert last_lines(prose, 22) == "Nobody came."
