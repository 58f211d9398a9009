"""Standing: where a front end stands in a conversation: its own head, its model, what it has been told."""

from dataclasses import dataclass, field

from recto.walk.scale import Scale
from recto.walk.turn import Loaded


@dataclass(slots=True)
class Standing:
    """The head here is what this front end has seen. The store's head may have moved on: then we are on a branch."""

    conversation: str
    head: str | None
    model: str
    branched: bool = False
    request: str | None = None
    """The last request made from here: the next is stored as what it adds."""
    told: set[str] = field(default_factory=set)
    loaded: dict[Scale, Loaded] = field(default_factory=dict)
    """What the last window was made of, by what weighed it: the next one adds to it."""

    def tell_once(self, text: str) -> bool:
        fresh = text not in self.told
        self.told.add(text)
        return fresh

    def stands_at(self, head: str, moved: bool) -> bool:
        """We stand at `head` now; True when this is the moment at which we came to be on a branch."""
        fresh = not moved and not self.branched
        self.head, self.branched = head, not moved
        return fresh
