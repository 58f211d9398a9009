"""A plugin of llm with a model that answers at once: `bench/start.py` registers it in the peers' environment."""

from collections.abc import Callable, Iterator
from typing import Any

# the peers' packages are not in the environment that checks types
import llm  # type: ignore[import-not-found]


class Instant(llm.Model):  # type: ignore[misc]
    model_id = "instant"
    can_stream = True

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        yield "That is so."


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_models(register: Callable[[Any], None]) -> None:
    register(Instant())
