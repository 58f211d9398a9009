"""Which documents were used is kept with the messages, and can be counted."""

from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.blocks import DocumentReference, References, Text
from recto.chat.message import Message
from recto.store.store import Store

BUDGET = DocumentReference("[[Budget]]", "Money/Budget.md", summary="What we may spend.")
BROKEN = DocumentReference("[[Nowhere]]", None)


def said(store: Store, *references: DocumentReference, vault: str = "/notes") -> Message:
    home = store.tree.create().id
    message = store.tree.append(home, Message(new_id(), "user", (Text("about [[Budget]]"),))).message
    told = replace(message, blocks=(*message.blocks, References(references, "told", vault)))
    store.tree.refer(told)
    return told


def test_references_stay_with_their_message_and_its_text_stays_untouched(store: Store) -> None:
    told = said(store, BUDGET, BROKEN)
    kept = store.tree.message(told.id)
    assert kept.references == (BUDGET, BROKEN)
    assert kept.text == "about [[Budget]]"


def test_uses_are_told_by_vault_and_by_conversation(store: Store) -> None:
    first, second = said(store, BUDGET, BROKEN), said(store, BUDGET, vault="/other")
    assert [(use.path, use.wikilink, use.message) for use in store.document_uses.uses("/notes")] == [
        ("Money/Budget.md", "[[Budget]]", first.id),
        (None, "[[Nowhere]]", first.id),
    ]
    home = store.tree.owner(second.id)
    [use] = store.document_uses.uses(conversation=home)
    assert (use.vault, use.reference_type, use.conversation) == ("/other", "direct", home)
    assert len(store.document_uses.uses()) == 3


def test_uses_are_counted_by_document_and_by_conversation(store: Store) -> None:
    found = DocumentReference("[[Boat]]", "Boat.md", reference_type="search")
    one, two = said(store, BUDGET, BROKEN), said(store, BUDGET, found)
    said(store, BUDGET, vault="/other")
    store.tree.refer(replace(one, blocks=(Text("about it"), References((BUDGET,), vault="/notes"))))
    homes = [store.tree.owner(each.id) for each in (one, two)]
    budget, boat = store.document_uses.tally("/notes")
    assert (budget.name, budget.uses, budget.direct, budget.conversations) == ("Money/Budget.md", 2, 2, 2)
    assert (boat.name, boat.uses, boat.direct, boat.search) == ("Boat.md", 1, 0, 1)
    assert boat.last == store.tree.message(two.id).created
    by_home = store.document_uses.tally("/notes", "conversation")
    assert [(each.name, each.uses, each.documents) for each in by_home] == [(homes[1], 2, 2), (homes[0], 1, 1)]
