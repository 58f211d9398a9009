"""Which documents conversations use, counted from references."""

from recto.reports.document_stats import tally_documents, unnamed_documents
from recto.store.document_uses import DocumentTotal, sum_documents


def use(
    path: str, kind: str = "direct", conversation: str = "A", created: str = "2026-03-01T12:00:00.000Z"
) -> DocumentTotal:
    [total] = sum_documents([(conversation, "/v", path, int(kind == "direct"), created)])
    return DocumentTotal(**total)


USES = [
    use("a.md"),
    use("b.md", "search"),
    use("a.md", "search", "B", "2026-04-02T12:00:00.000Z"),
    use("c.md", created="2026-04-03T12:00:00.000Z"),
    use("a.md", created="2026-02-01T12:00:00.000Z"),
]


def test_the_most_used_comes_first_of_equals_the_last_used() -> None:
    assert [(each.name, each.uses, each.direct, each.search) for each in tally_documents(USES, "document")] == [
        ("a.md", 3, 2, 1),
        ("c.md", 1, 1, 0),
        ("b.md", 1, 0, 1),
    ]
    best = tally_documents(USES, "document")[0]
    assert (best.conversations, best.last) == (2, "2026-04-02T12:00:00.000Z")


def test_uses_are_counted_by_conversation_and_by_month() -> None:
    assert [(each.name, each.uses, each.documents) for each in tally_documents(USES, "conversation")] == [
        ("A", 4, 3),
        ("B", 1, 1),
    ]
    assert [(each.name, each.uses) for each in tally_documents(USES, "month")] == [
        ("2026-04", 2),
        ("2026-03", 2),
        ("2026-02", 1),
    ]


def test_what_was_only_found_and_what_was_never_used() -> None:
    alone = unnamed_documents(USES, ["a.md", "b.md", "d.md"])
    assert [(each.name, each.uses) for each in alone] == [("b.md", 1), ("d.md", 0)]
