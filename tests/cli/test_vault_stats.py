"""Which documents conversations use: counted from references, told with bars."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, rows
from tests.cli.test_vault import at, boat
from tests.conftest import Script

from recto.cli.vault_stats import left_alone, tallied
from recto.store.references import Use

__all__ = ["boat"]


def use(path: str, kind: str = "direct", conversation: str = "A", created: str = "2026-03-01T12:00:00.000Z") -> Use:
    assert kind in ("direct", "search")
    return Use("/v", path, f"[[{path}]]", "direct" if kind == "direct" else "search", conversation, "M", created)


USES = [
    use("a.md"),
    use("b.md", "search"),
    use("a.md", "search", "B", "2026-04-02T12:00:00.000Z"),
    use("c.md", created="2026-04-03T12:00:00.000Z"),
    use("a.md", created="2026-02-01T12:00:00.000Z"),
]


def test_the_most_used_comes_first_of_equals_the_last_used() -> None:
    assert [(each.name, each.uses, each.direct, each.search) for each in tallied(USES, "document")] == [
        ("a.md", 3, 2, 1),
        ("c.md", 1, 1, 0),
        ("b.md", 1, 0, 1),
    ]
    best = tallied(USES, "document")[0]
    assert (best.conversations, best.last) == (2, "2026-04-02T12:00:00.000Z")


def test_uses_are_counted_by_conversation_and_by_month() -> None:
    assert [(each.name, each.uses, each.documents) for each in tallied(USES, "conversation")] == [
        ("A", 4, 3),
        ("B", 1, 1),
    ]
    assert [(each.name, each.uses) for each in tallied(USES, "month")] == [
        ("2026-04", 2),
        ("2026-03", 2),
        ("2026-02", 1),
    ]


def test_what_was_only_found_and_what_was_never_used() -> None:
    alone = left_alone(USES, ["a.md", "b.md", "d.md"])
    assert [(each.name, each.uses) for each in alone] == [("b.md", 1), ("d.md", 0)]


@pytest.fixture
def talked(run: Run, script: Script, boat: Path) -> Path:
    """Two conversations over the vault: one names two documents, the other one of them twice."""
    model = script({"text": "Yes."})
    assert run("ask", "-m", model, *at(boat), "What of [[Budget]], [[Engine]] and [[Nowhere]]?").exit_code == 0
    for _ in range(2):
        assert run("ask", "-m", model, *at(boat), "And [[Budget]]?").exit_code == 0
    return boat


def test_stats_over_real_conversations(run: Run, talked: Path) -> None:
    first, second = rows(run("vault", "stats", *at(talked), "--json"))
    assert list(first) == ["path", "uses", "direct", "search", "conversations", "last"]
    assert (first["path"], first["uses"], first["direct"], first["conversations"]) == ("Budget.md", 3, 3, 3)
    assert second["path"] == "parts/Engine.md"
    told = run("vault", "stats", *at(talked)).stdout.splitlines()
    assert told[0].startswith(f"3 {'█' * 20} Budget.md  3 named, in 3 conversations, last 20")
    assert told[1].startswith(f"1 {'█' * 7} ")


def test_stats_by_conversation_and_month(run: Run, talked: Path) -> None:
    first, *others = rows(run("vault", "stats", *at(talked), "--by", "conversation", "--json"))
    assert list(first) == ["conversation", "title", "uses", "direct", "search", "documents", "last"]
    assert (first["uses"], first["documents"], len(others)) == (2, 2, 2)
    assert first["title"].startswith("What of [[Budget]]")
    (month,) = rows(run("vault", "stats", *at(talked), "--by", "month", "--json"))
    assert (month["uses"], month["documents"], month["conversations"]) == (4, 2, 3)
    assert "(What of [[Budget]]" in run("vault", "stats", *at(talked), "--by", "conversation").stdout


def test_what_is_not_used_can_be_seen(run: Run, talked: Path) -> None:
    unused = {row["path"]: row["uses"] for row in rows(run("vault", "stats", *at(talked), "--unused", "--json"))}
    assert unused == dict.fromkeys(["Odd.md", "Welcome.md", "parts/Notes.md", "people/Notes.md"], 0)
    assert "never used" in run("vault", "stats", *at(talked), "--unused").stdout
    assert "--unused is about documents" in failure(run("vault", "stats", *at(talked), "--unused", "--by", "month"), 2)


def test_no_more_are_shown_than_asked_for_and_the_rest_is_said(run: Run, talked: Path) -> None:
    done = run("vault", "stats", *at(talked), "--limit", "1", "--json")
    assert len(rows(done)) == 1
    assert done.stderr == "note: and 1 more: --limit shows them\n"


def test_a_vault_that_nobody_used_yet(run: Run, boat: Path) -> None:
    done = run("vault", "stats", *at(boat))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "note: no document of this vault was used in a conversation yet\n"
