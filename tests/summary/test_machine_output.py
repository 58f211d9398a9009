"""Machine output and encoded data are told from words."""

import pytest

from recto.summary.machine_output import MACHINE, OUTCOME, PROSE, ROW, classify_lines, is_noise, readable_output


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
def test_brackets_fences_and_encoded_data_are_noise(noise: str) -> None:
    assert is_noise(noise)


@pytest.mark.parametrize(
    "text",
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
def test_words_are_not_noise(text: str) -> None:
    assert not is_noise(text)


def test_each_line_has_its_kind() -> None:
    rows = "\n".join(f"{n} root 20 0 {n}.5m S kworker" for n in range(4))
    text = f"Here is the log.\n```\n{rows}\n3 tests failed\nimport os\n```\nWhat now?"
    kinds = classify_lines(text)
    assert kinds.kinds == (PROSE, MACHINE, *[ROW] * 4, OUTCOME, MACHINE, MACHINE, PROSE)
    assert kinds.at(text.index("What")) == PROSE
    fence = kinds.fence_at(text.index("root"))
    assert fence == (text.index("```"), text.index("What"))
    assert kinds.fence_at(0) is None


def test_texts_in_json_have_their_line_breaks() -> None:
    assert (
        readable_output('{"text": "# Winch\\n\\nIt was bought for 1139 euros."}').splitlines()[2].startswith("It was")
    )
    assert readable_output("C:\\new\\n") == "C:\\new\\n", "only JSON"
