"""What one key can reach on a shared server, whatever it names: its own conversations, and nothing of anybody else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Script

from recto.api.desk import new_desk
from recto.errors import Invalid, NotFound, RectoError, Refused, SpendLimit
from recto.serve.gateway import Gateway, KeyRefused, ServeOptions
from recto.serve.key_desk import KeyDesk, KeyTalk

pytestmark = [pytest.mark.untraced, pytest.mark.anyio]

SAID = "The combination of the harbour safe is 4711."
Keys = tuple[Gateway, KeyDesk, KeyDesk]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def keys(tmp_path: Path, script: Script) -> AsyncIterator[Keys]:
    """The desks of anna and of ben, at one gateway."""
    model = script({"text": "Noted."}, prices={"input": 1000, "output": 1000})
    desk = new_desk(home=tmp_path / "home", model=model, settings={"search.embedder": "none", "store.backup": "off"})
    async with desk:
        gateway = Gateway(desk, ServeOptions())
        anna, ben = (KeyDesk(gateway, desk.store.access_keys.add(name)[0]) for name in ("anna", "ben"))
        yield gateway, anna, ben


async def refused(work: Awaitable[Any], kind: type[RectoError] = NotFound) -> None:
    with pytest.raises(kind) as why:
        await work
    assert "4711" not in why.value.message


async def test_a_conversation_belongs_to_the_key_that_began_it(keys: Keys) -> None:
    gateway, anna, ben = keys
    talk = await anna.conversation()
    await talk.ask(SAID)
    assert talk.id
    assert gateway.store.client_messages.owner(talk.id) == "anna"
    assert [each.id for each in await anna.conversations()] == [talk.id]
    assert await ben.conversations() == []
    assert (await anna.conversation(talk.number)).id == talk.id
    assert (await ben.latest()) is None


async def test_the_page_spends_no_more_than_its_key_may(keys: Keys) -> None:
    gateway, _, _ = keys
    key, _ = gateway.store.access_keys.add("cara", spend_day=0.01)
    talk = await KeyDesk(gateway, key).conversation()
    await refused(talk.ask("Hello"), SpendLimit)
    assert gateway.store.charges.spent_today("cara") == 0.0


async def test_no_name_leads_to_another_keys_words(keys: Keys) -> None:
    _, anna, ben = keys
    talk = await anna.conversation()
    reply = await talk.ask(SAID)
    own = await ben.conversation()
    await own.ask("Hello")
    said, answered = await talk.messages(limit=None)
    assert talk.id
    assert answered.request
    for named in (talk.id, talk.id[:8], str(talk.number), f"#{talk.number}", "The combination", "safe"):
        await refused(ben.conversation(named))
    for change in (ben.hide, ben.unhide, ben.delete, ben.restore):
        await refused(change(talk.id))
    await refused(ben.rename(talk.id, "mine"))
    for name in (answered.id, answered.request):
        await refused(ben.rebuild(name))
        await refused(ben.verify([name]))
        await refused(ben.sent_pick(name, "message", 0))
        await refused(own.request(name))
        await refused(ben.compare(name, (await own.messages(limit=None))[-1].id))
    for name in ("last", "previous", "#1", answered.id[:10]):
        await refused(ben.rebuild(name), Invalid)
    for deed in (own.message, own.switch, own.pin, own.fork, own.what_if):
        await refused(deed(said.id))
    await refused(ben.attached(said.id, 0))
    await refused(own.take_back(said.id))
    assert list(await ben.search("harbour safe combination")) == []
    assert await ben.find_conversations("harbour") == []
    assert [each.conversation for each in await anna.search("harbour safe")][:1] == [talk.id]
    assert reply.text == "Noted."


async def test_settings_memory_sources_and_other_models_are_the_owners(keys: Keys, tmp_path: Path) -> None:
    gateway, anna, _ = keys
    await asyncio.to_thread(gateway.desk.facts.learn, "The owner keeps bees in the loft.")
    talk = await anna.conversation()
    await talk.ask("Who keeps bees in the loft?")
    await refused(talk.set_setting("context.memory_integration", True), Refused)
    await refused(talk.what_if("#1", settings={"context.memory_integration": True}), Refused)
    await refused(talk.remember_in_project("a line"), Refused)
    await refused(talk.open_document("note.md"), Refused)
    await refused(talk.add_source("rule:any"), Refused)
    await refused(talk.set_include("rule:any", "always"), Refused)
    await refused(talk.allow("recto/read_document"), Refused)
    await refused(talk.sources(), Refused)
    await refused(talk.use(f"scripted:{tmp_path / 'other.json'}"))
    await refused(talk.what_if("#1", model="scripted:/etc/hostname"))
    found = await talk.window("Who keeps bees in the loft?")
    assert not {"memory", "tools", "documents"} & {each.name for each in found.sections if each.tokens}


async def test_a_file_of_the_machine_that_a_message_names_is_not_read(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.txt").write_text("the anchor is gold")
    monkeypatch.chdir(tmp_path)

    gateway, anna, _ = keys
    talk = await anna.conversation()
    await talk.ask("What does @secret.txt say?")
    reply = (await talk.messages(limit=None))[-1]
    assert b"gold" not in await anna.rebuild(reply.id)
    whole = await gateway.desk.conversation()
    await whole.ask("What does @secret.txt say?")
    assert b"gold" in await gateway.desk.rebuild((await whole.messages(limit=None))[-1].id)


async def test_a_key_that_was_removed_asks_nothing_more(keys: Keys) -> None:
    gateway, anna, _ = keys
    talk = await anna.conversation()
    await talk.ask("Hello")
    gateway.store.access_keys.remove("anna")
    await refused(talk.ask("Still there?"), KeyRefused)
    await refused(anna.conversation(), KeyRefused)
    await refused(anna.search("Hello"), KeyRefused)


OPEN_TO_GUESTS = """
    alternatives archived ask branches clear compact compaction compactions edit edit_summary extend fork
    last_request last_run ledger lost_statements memory message messages numbered overrides path
    pin prepare queue record regenerate request_use run_goal set_priority stats stop_goal
    stored_head strategy_in_force stream stream_edit stream_goal stream_regenerate summary_block switch
    take_back tool_result transcript uncompact undo unpin use_strategy waiting wake window
"""
REFUSED_WITH_SOURCES = "add_source add_sources allow ask_again remove_source remove_sources set_include"
NOTHING_TO_READ = "suggest_documents watch_vault"


def test_a_new_method_of_a_conversation_is_open_to_guests_only_where_somebody_decides_so() -> None:
    decided = {*OPEN_TO_GUESTS.split(), *REFUSED_WITH_SOURCES.split(), *NOTHING_TO_READ.split()}
    public = {
        name
        for kind in KeyTalk.__mro__[:-1]
        for name, value in vars(kind).items()
        if callable(value) and not name.startswith("_")
    }
    assert public - {name for name in vars(KeyTalk) if not name.startswith("_")} == decided - vars(KeyTalk).keys()
