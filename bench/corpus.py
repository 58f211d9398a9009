"""Texts to measure with, the same in every run: English words as often as they really are, code, JSON, CJK, base64."""

import base64
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
# LoCoMo's licence keeps it out of the project: it lies beside it, or where BENCH_DATA says.
DATA = Path(os.environ.get("BENCH_DATA") or ROOT.parent / "shared" / "data")
LOCOMO = DATA / "locomo" / "locomo_dev.json"
# About 35 tokens of o200k.
CHAT_WORDS = (14, 42)

CHINESE = (
    ("船长", "我们的会计", "新来的木匠", "港口的值班员", "她的姐姐", "昨天的客人", "整个委员会", "那位老师"),
    (
        "已经修好了",
        "还没有检查",
        "打算明年更换",
        "不小心弄丢了",
        "用三天时间画出",
        "终于找到了",
        "认真地记录了",
        "拒绝支付",
    ),
    (
        "右舷的栏杆",
        "去年的账单",
        "第十四号合同",
        "厨房里的水泵",
        "所有的航海图",
        "发动机的备件",
        "一封很长的信",
        "桅杆的图纸",
    ),
    ("。", "，因为天气不好。", "，所以会议推迟到星期五。", "，费用大约是三千二百元。", "，请尽快告诉我。"),
)
JAPANESE = (
    ("船長は", "新しい大工が", "昨日の客は", "会計係が", "港の当番は", "私たちの先生は", "姉は", "委員会は"),
    (
        "古い帆布を",
        "先月の請求書を",
        "台所のポンプを",
        "長い手紙を",
        "予備のエンジンを",
        "すべての海図を",
        "赤い扉の鍵を",
    ),
    (
        "もう修理しました",
        "まだ調べていません",
        "来年交換する予定です",
        "なくしてしまいました",
        "ていねいに記録した",
        "やっと見つけました",
    ),
    ("。", "が、費用は三千円ほどです。", "ので、会議は金曜日に延期されます。", "から、早めに知らせてください。"),
)


class Speaker:
    """Says sentences made of the words of Python's own manual, each as often as it stands there."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def message(self) -> str:
        """A short message of a chat."""
        return self._sentences(self._random.randint(*CHAT_WORDS))

    def text(self, characters: int) -> str:
        """About as many characters."""
        return self._sentences(round(characters / 5.9))

    def _sentences(self, words: int) -> str:
        said: list[str] = []
        while words > 0:
            length = min(words, self._random.randint(5, 16))
            said.append(self._sentence(length))
            words -= length
        return " ".join(said)

    def _sentence(self, length: int) -> str:
        chosen = self._random.choices(_vocabulary(), k=length)
        return " ".join(chosen).capitalize() + self._random.choice((".", ".", ".", "?", "!"))


@cache
def _vocabulary() -> list[str]:
    """Some 3,000 words, each as often as the manual has it: that is drawn from faster than words with weights."""
    from pydoc_data.topics import topics  # half a megabyte of manual

    return sorted(re.findall("[a-z]+", " ".join(topics.values()).lower()))


def chat(messages: int) -> Iterator[tuple[str, str]]:
    """A long conversation: role and text, user first."""
    speaker = Speaker(messages)
    for number in range(messages):
        yield ("assistant" if number % 2 else "user"), speaker.message()


def passage(kind: str, characters: int, random: Random) -> str:
    """About as many characters of one kind: English, JSON, CJK or base64."""
    if kind == "base64":
        return base64.b64encode(random.randbytes(characters * 3 // 4)).decode()
    if kind == "English":
        return Speaker(random.randrange(10**9)).text(characters)
    say, between = (_json, "\n") if kind == "JSON" else (_cjk, "")
    return between.join(say(random) for _ in range(1 + characters // 600))[:characters]


def kinds(characters: int) -> dict[str, list[str]]:
    """Messages of about 600 characters, by kind of text, `characters` of each kind in all."""
    amount = max(1, characters // 600)
    return {
        "English": _english(amount),
        "code": _code(amount),
        "JSON": [_json(Random(number)) for number in range(amount)],
        "CJK": [_cjk(Random(number)) for number in range(amount)],
        "base64": [base64.b64encode(Random(number).randbytes(450)).decode() for number in range(amount)],
    }


def _english(amount: int) -> list[str]:
    """What people said in LoCoMo, where that lies beside the project; else what our speaker says."""
    if not LOCOMO.is_file():
        speaker = Speaker(1)
        return [speaker.text(600) for _ in range(amount)]
    sessions = [talk["conversation"] for talk in json.loads(LOCOMO.read_bytes())]
    turns = (turn["text"] for talk in sessions for part in talk.values() if isinstance(part, list) for turn in part)
    return _cut("\n".join(turns), amount)


def _code(amount: int) -> list[str]:
    return _cut("\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))), amount)


def _cut(text: str, amount: int) -> list[str]:
    """Slices of 600 characters; from the start again, a little further on, where the text is too short."""
    starts = (number * 600 for number in range(amount))
    return [text[at : at + 600] for at in (start % len(text) + start // len(text) * 7 for start in starts)]


def _json(random: Random) -> str:
    """Rows such as a tool returns."""
    rows = [
        {
            "id": random.randrange(10**8),
            "name": f"part-{random.randrange(1000)}",
            "price": round(random.random() * 900, 2),
            "in_stock": random.random() < 0.5,
            "tags": random.sample(["mast", "sail", "engine", "galley", "paint", "rope"], 2),
        }
        for _ in range(6)
    ]
    return json.dumps(rows)


def _cjk(random: Random) -> str:
    said = ""
    while len(said) < 600:
        said += "".join(random.choice(part) for part in random.choice((CHINESE, JAPANESE)))
    return said
