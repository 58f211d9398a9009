"""The bench of the endpoint: its upstream and its clients understand each other, alone and with us between them."""

import asyncio
from pathlib import Path

import pytest
from bench.serve import recto, upstream
from bench.serve_load import Client, all_at_once, one_by_one
from bench.serve_upstream import PACED, QUICK, REPLY

pytestmark = pytest.mark.untraced
WORDS = 5


def test_clients_hear_the_upstream_whole_and_word_by_word() -> None:
    with upstream(WORDS, 0.001) as direct:

        async def talk() -> None:
            quick, paced = Client(direct.address(QUICK), []), Client(direct.address(PACED), [])
            (first, second) = await one_by_one([quick], 2)
            assert first.text.strip() == second.text.strip() == REPLY
            assert 0 < first.first_s <= first.whole_s
            ((whole,), took) = await all_at_once([quick], 1)
            assert whole.text == REPLY
            assert took > 0
            ((spoken,), _) = await all_at_once([paced], 1, stream=True)
            assert len(spoken.late_s) == WORDS
            assert len(quick.messages) == 6
            quick.close()
            paced.close()

        asyncio.run(talk())


@pytest.mark.slow
def test_a_managed_conversation_goes_through_the_endpoint(tmp_path: Path) -> None:
    with upstream(WORDS, 0.001) as direct, recto(tmp_path / "home", direct.port, "manage", "recto") as ours:

        async def talk() -> None:
            client = Client(ours.address(QUICK), [])
            heard = await one_by_one([client], 3)
            assert {each.text.strip() for each in heard} == {REPLY}
            client.close()

        asyncio.run(talk())
        assert ours.resident > 0
