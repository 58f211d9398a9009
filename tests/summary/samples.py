"""Token counters, texts and messages that several tests of summaries use."""

from collections.abc import Sequence

from hypothesis import strategies as st

from recto.chat.blocks import Text, ToolResult
from recto.chat.message import Message, Role
from recto.summary.extractive_summary import Extraction, PlainMessage
from recto.summary.truncation import CountTokens
from recto.summary.verification import CoveredMessages


def quarter(text: str) -> int:
    return len(text) // 4 + 1


def words(text: str) -> int:
    return len(text.split())


def two_bytes(text: str) -> int:
    """Like a tokenizer that takes more for text that is not ASCII."""
    return (len(text.encode("utf-8", "replace")) + 1) // 2


counters = st.sampled_from([len, quarter, words, two_bytes])
LONGER = "A sentence that is a little longer than all of the others here. "
fragments = st.lists(
    st.sampled_from(["We must ship on Friday. ", "The port is 8080. ", LONGER, "thanks! ", "ok ", "e.g. ", "User: hi "])
    | st.sampled_from(
        ["src/app.py ", "```\n", "}\n", "x" * 90, "aGVsbG8gd29ybGQ1" * 6, "2024-05-01 10:00:01 INFO up\n"]
    )
    | st.sampled_from(["你好，世界。", "。", "😀", "…", "\n", "\u2028", "\x1c"]),
    max_size=12,
).map("".join)
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
roles: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool"])
conversations = st.lists(
    st.builds(PlainMessage, roles, fragments | st.text(max_size=80), st.integers(0, 10)), max_size=14
)
MESSAGES: tuple[tuple[Role, str], ...] = (
    ("user", "Please build the app in src/app.py. The budget is 12,000 €. We must ship by May 1, 2024."),
    ("assistant", "Ada Lovelace leads it. The p95 was 3.47 ms with PostgreSQL 16.2.1; run `make test` first."),
    ("tool", "12 passed, 3 failed in 4.52s"),
    ("user", "We decided to deploy on Friday, never on weekends. Write it to /srv/app."),
)


def covered(messages: tuple[tuple[Role, str], ...] = MESSAGES) -> CoveredMessages:
    found = CoveredMessages()
    for number, (role, text) in enumerate(messages, 1):
        block = ToolResult("c", "shell", text) if role == "tool" else Text(text)
        found.add([Message(str(number), role, (block,), said=number)])
    return found


def extract(messages: Sequence[PlainMessage], limit: int, count: CountTokens, former: str = "") -> str:
    return Extraction(messages, count, former).within(limit)
