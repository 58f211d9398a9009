"""Steps of a turn that take long: a front end is told what they do. A quick turn has no event more."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from recto.events import Event, Working

if TYPE_CHECKING:
    from recto.vault.open_vaults import OpenVaults
    from recto.vault.vault import Vault

# A step that takes longer is told.
PATIENCE_S = 0.5


async def told_if_slow(step: asyncio.Future[Any], tell: Callable[[], Working]) -> AsyncGenerator[Event, None]:
    """Waits for a step, and says what it does once that takes long. Whoever leaves early ends the step."""
    try:
        done, _ = await asyncio.wait([step], timeout=PATIENCE_S)
        if not done:
            yield await asyncio.to_thread(tell)
            await asyncio.wait([step])
    finally:
        if not step.done():
            step.cancel()
            await asyncio.wait([step])


def choice_of_sources(vaults: "OpenVaults", vault: "Vault | None") -> Working:
    """What takes long while sources are chosen: notes that are not indexed yet, or the choice itself."""
    status = vaults.search(vault).status if vault else None
    left = status.documents - status.indexed if status else 0
    return Working("notes", notes=left) if left else Working("sources")
