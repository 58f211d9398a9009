"""What a usage costs: caches, reasoning, fees and tiers, as providers charge them."""

from pathlib import Path

import pytest

from recto.chat.message import Usage
from recto.providers.catalog import ModelCatalog
from recto.providers.model import Prices
from recto.providers.openai import OpenAIReader

MILLION = 1_000_000


def test_cached_input_has_a_price_of_its_own() -> None:
    usage = Usage(input=MILLION, output=100_000, cache_read=400_000, cache_write=200_000)
    assert Prices(2, 10, 0.5, 2.5).cost(usage) == pytest.approx(0.8 + 0.2 + 0.5 + 1.0)
    assert Prices(2, 10).cost(usage) == pytest.approx(3.0), "without one it is input"


def test_reasoning_is_output_unless_it_has_a_price_of_its_own() -> None:
    usage = Usage(input=0, output=MILLION, reasoning=400_000)
    assert Prices(1, 10).cost(usage) == pytest.approx(10)
    assert Prices(1, 10, reasoning=20).cost(usage) == pytest.approx(14)
    assert Prices(1, 10, reasoning=20).cost(Usage(output=10, reasoning=99)) == pytest.approx(10 * 20 / MILLION)


def test_a_fee_for_each_request_is_added() -> None:
    assert Prices(1, 1, requests=5).cost(Usage()) == pytest.approx(0.005)


def test_without_the_price_of_input_or_output_nothing_is_known() -> None:
    assert Prices(2).cost(Usage(1, 1)) is None
    assert Prices(output=2).at_most(1, 1) is None
    assert Prices(0, 0).cost(Usage(5, 5)) == 0


def test_more_from_the_cache_than_was_sent_costs_no_less_than_nothing() -> None:
    assert Prices(2, 10, 0).cost(Usage(input=10, cache_read=99)) == 0


def test_beyond_a_tier_all_tokens_cost_more() -> None:
    prices = Prices(1, 2, above=((100, Prices(10, 20)), (1000, Prices(100, 200))))
    assert prices.cost(Usage(100, 1)) == pytest.approx((100 + 2) / MILLION)
    assert prices.cost(Usage(101, 1)) == pytest.approx((1010 + 20) / MILLION)
    assert prices.at_most(2000, 1) == pytest.approx((200_000 + 200) / MILLION)


def test_at_most_means_all_written_to_the_cache_and_all_reasoning() -> None:
    assert Prices(2, 10, 0.5, 2.5, 20).at_most(MILLION, MILLION) == pytest.approx(22.5)
    assert Prices(2, 10, 0.5).at_most(MILLION, MILLION) == pytest.approx(12)


def test_tiers_of_the_price_data_are_read(tmp_path: Path) -> None:
    prices = ModelCatalog(tmp_path, None).find("anthropic", "claude-sonnet-4-5").prices
    assert prices is not None
    assert prices.cost(Usage(200_000)) == pytest.approx(0.6)
    assert prices.cost(Usage(200_001)) == pytest.approx(1.2, rel=1e-4)


def test_prices_of_ones_own_have_no_tiers(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('["anthropic:claude-sonnet-4-5"]\nprices = { input = 1, requests = 2 }\n')
    prices = ModelCatalog(tmp_path, None).find("anthropic", "claude-sonnet-4-5").prices
    assert prices == Prices(1.0, 15.0, 0.3, 3.75, requests=2.0)


def test_a_project_changes_no_price_that_is_known(tmp_path: Path) -> None:
    free = "prices = { input = 0, output = 0 }\n"
    (tmp_path / ".recto").mkdir()
    (tmp_path / ".recto" / "models.toml").write_text(f'["openai:gpt-4o"]\nwindow = 999\n{free}["work:new"]\n{free}')
    found = ModelCatalog(tmp_path / "home", tmp_path).find("openai", "gpt-4o")
    assert (found.window, found.prices_from) == (999, "genai-prices")
    assert found.prices is not None
    assert found.prices.input
    assert ModelCatalog(tmp_path / "home", tmp_path).find("work", "new").prices == Prices(0.0, 0.0)


def test_a_model_on_ones_own_server_costs_nothing(tmp_path: Path) -> None:
    model = ModelCatalog(tmp_path, None).find("ollama", "llama3.2")
    assert (model.prices, model.prices_from) == (Prices(0.0, 0.0), "your own server")


@pytest.mark.parametrize(
    ("usage", "output", "reasoning"),
    [
        ({"total_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 8}}, 20, 8),
        ({"total_tokens": 38, "completion_tokens_details": {"reasoning_tokens": 8}}, 28, 8),
        ({"total_tokens": 38}, 28, 8),
        ({"total_tokens": 5}, 20, 0),
        ({}, 20, 0),
    ],
)
def test_reasoning_that_only_the_total_tells_is_output(usage: dict[str, object], output: int, reasoning: int) -> None:
    told = {"prompt_tokens": 10, "completion_tokens": 20, **usage}
    reply = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}], "usage": told}
    found = OpenAIReader().whole(reply)[-1].usage  # type: ignore[union-attr]  # the last part is Done
    assert found == Usage(10, output, reasoning=reasoning)
