"""Shape: what a chat template writes around each message, learned by looking at what it renders.

Knows neither servers nor tokens. A template whose text for a message depends on its neighbours has no shape.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

Said = tuple[str, str]
"""A role and what it said."""
Render = Callable[[Sequence[Said], bool], Awaitable[str | None]]
"""What the template makes of a conversation, with the reply primed or not; None where it refuses it."""

ROLES = ("system", "user", "assistant")
# Whatever a template might be tempted to escape, to trim or to take out.
PLAIN = 'Tea "for" two & {{ three }} <b>\\n</b>\n\n\té 日本 😀 done'
BLANK = "blank"
THINKING = "thinking"
ODD = {BLANK: " \n tea \n\n", THINKING: "<think>\nhm\n</think>\n\ntea"}


class Irregular(Exception):
    """The template has no shape; the message finishes the sentence "its template …"."""


@dataclass(frozen=True, slots=True)
class Shape:
    opening: str
    """Comes before the first message, whatever that is."""
    stand_in: str
    """Comes besides when the first message is not the system's: a system prompt of the template's own."""
    before: Mapping[str, str]
    after: Mapping[str, str]
    reply: str
    """Primes the reply."""
    changes: frozenset[tuple[str, str]] = frozenset()
    """(role, kind) of contents that do not come through as they are."""

    def keeps(self, role: str, content: str) -> bool:
        """Whether this content comes through as it is."""
        return not any((role, kind) in self.changes for kind in kinds(content))

    def piece(self, role: str, content: str) -> str:
        return f"{self.before[role]}{content}{self.after[role]}"

    def render(self, said: Sequence[Said]) -> str:
        start = self.opening + ("" if said[0][0] == "system" else self.stand_in)
        return start + "".join(self.piece(role, content) for role, content in said) + self.reply


def kinds(content: str) -> Iterable[str]:
    """What about a content may make a template change it."""
    if content == "" or content != content.strip():
        yield BLANK
    if "<think>" in content or "</think>" in content:
        yield THINKING


async def learn(render: Render) -> Shape:
    """The template's shape, checked at all places where a message may stand."""
    shape = await _derive(render)
    for said in _conversations(PLAIN):
        if (rendered := await render(said, True)) is not None and rendered != shape.render(said):
            raise Irregular("writes a message differently depending on where it stands")
    return await _with_changes(render, shape)


async def _derive(render: Render) -> Shape:
    said = _marked("system", "user", "assistant", "user")
    start, system_user, user_assistant, assistant_user, end = _gaps(await render(said, True), said)
    after_user = _gaps(await render(said, False), said)[-1]
    first, *_ = _gaps(await render(said[1:2], True), said[1:2])
    before_user = await _before_user(render, after_user, (first, system_user, assistant_user))
    after = {
        "system": _without_end(system_user, before_user),
        "user": after_user,
        "assistant": _without_end(assistant_user, before_user),
    }
    opening = _without_end(first, before_user)
    # an opening that a system message replaces is the template's own system prompt
    shared = opening if start.startswith(opening) else ""
    before = {
        "system": start[len(shared) :],
        "user": before_user,
        "assistant": _without_start(user_assistant, after_user),
    }
    return Shape(shared, opening[len(shared) :], before, after, _without_start(end, after_user))


async def _before_user(render: Render, after_user: str, gaps: Sequence[str]) -> str:
    """Told by two users in a row; a template that refuses them is told by what all gaps before a user end with."""
    said = _marked("system", "user", "user")
    if (rendered := await render(said, True)) is not None:
        return _without_start(_gaps(rendered, said)[2], after_user)
    shortest = min(gaps, key=len)
    ends = (shortest[at:] for at in range(len(shortest) + 1))
    return next(end for end in ends if all(gap.endswith(end) for gap in gaps))


async def _with_changes(render: Render, shape: Shape) -> Shape:
    """The shape with the contents that the template does not let through as they are."""
    changes = set()
    for kind, odd in ODD.items():
        for role in ROLES:
            said = [(each, odd if each == role else PLAIN) for each in ("system", "user", "assistant", "user")]
            if await render(said, True) != shape.render(said):
                changes.add((role, kind))
    return replace(shape, changes=frozenset(changes))


def _marked(*roles: str) -> list[Said]:
    return [(role, f"mark{number}mark") for number, role in enumerate(roles)]


def _conversations(content: str) -> Iterable[list[Said]]:
    """The orders that may really be sent: a system message first or none, and a user at the end."""
    for order in ("su", "suau", "suauau", "u", "uau", "suu", "sau", "suaau", "uu", "au"):
        roles = [role for letter in order for role in ROLES if role[0] == letter]
        yield [(role, f"{content} {number}") for number, role in enumerate(roles)]


def _gaps(rendered: str | None, said: Sequence[Said]) -> list[str]:
    """What stands before, between and after the contents."""
    if rendered is None:
        raise Irregular("refuses a plain conversation")
    gaps = []
    for _, content in said:
        gap, found, rendered = rendered.partition(content)
        if not found:
            raise Irregular("leaves out messages or changes their order")
        gaps.append(gap)
    return [*gaps, rendered]


def _without_start(text: str, start: str) -> str:
    if not text.startswith(start):
        raise Irregular("ends a user's message differently depending on what follows")
    return text[len(start) :]


def _without_end(text: str, end: str) -> str:
    if not text.endswith(end):
        raise Irregular("begins a user's message differently depending on what precedes")
    return text[: len(text) - len(end)]
