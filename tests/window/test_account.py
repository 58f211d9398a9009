"""Accounts of requests are read, and written again as they were."""

import json
from typing import Any

import pytest

from recto.sources.source import Pick, SourceId
from recto.window.account import PrefixReuse, RequestAccount, SentRange

PICK = {"kind": "rule", "name": "style", "tokens": 4, "because": "always", "mode": "always", "score": None}
TOOL = {"kind": "tool", "name": "create", "tokens": 9, "because": "near", "mode": "agent", "score": 0.8}
PREFIX = {"base": "01B", "kept": 3, "of": 4, "broken_by": "the tools changed"}
OPENING: dict[str, Any] = {
    "model": "openai:gpt-5",
    "format": "openai",
    "parameters": {"max_tokens": 512},
    "limit": 8192,
    "reserve": 512,
    "total": 13,
    "free": 7667,
    "exact": True,
    "strategy": "hybrid",
    "sections": [
        {"name": "rules", "tokens": 4, "budget": 100, "picks": [PICK]},
        {"name": "tools", "tokens": 9, "budget": 50, "picks": [{**TOOL, "server": "git", "sha256": "ab"}]},
    ],
    "plan": {"strategy": "hybrid", "because": "everything fits"},
    "notes": ["the window is assumed"],
}
RANGE = {"first": "01A", "last": "01C", "count": 3, "lifted": ["01L"], "current": "01D", "rounds": []}
REPLY = {
    **OPENING,
    "not_picked": [TOOL],
    "messages": {"first": None, "last": None, "count": 0, "lifted": [], "excerpts": ["01D"], "current": "01D"}
    | {"rounds": ["01E"]},
    "compaction": 2,
    "passing": True,
    "meter": "o200k_base/chat",
    "window_from": "built in",
    "prefix": PREFIX,
}
UNCUT = {**OPENING, "messages": RANGE, "compaction": None, "meter": "m", "window_from": "built in", "prefix": PREFIX}
SUMMARY = {**OPENING, "meter": "m", "window_from": "built in", "prefix": {**PREFIX, "broken_by": None}}


@pytest.mark.parametrize("stored", [REPLY, UNCUT, SUMMARY, {}])
def test_an_account_is_read_and_written_again_to_the_byte(stored: dict[str, Any]) -> None:
    account = RequestAccount.from_json(stored)
    assert json.dumps(account.to_json()) == json.dumps(stored)
    assert RequestAccount.from_json(account.to_json()) == account


def test_an_account_is_read_by_attributes() -> None:
    account = RequestAccount.from_json(REPLY)
    assert [pick.name for pick in account.picks()] == ["style", "create"]
    assert [pick.source for pick in account.picks("tools")] == [SourceId("tool", "create", "git")]
    assert account.not_picked == (Pick("tool", "create", "near", 9, "agent", 0.8),)
    assert account.messages == SentRange(excerpts=("01D",), current="01D", rounds=("01E",))
    assert account.prefix == PrefixReuse("01B", 3, 4, "the tools changed")
    assert account.broken_by == "the tools changed"


@pytest.mark.parametrize("stored", [{"sections": [7]}, {"sections": 7}, {"messages": [1]}, {"not_picked": ["x"]}])
def test_a_damaged_account_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        RequestAccount.from_json(stored)
