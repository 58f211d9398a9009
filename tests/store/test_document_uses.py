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
