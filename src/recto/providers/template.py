"""Shape: the text that a chat template writes around each message, learned from rendered examples.

Knows neither servers nor tokens. A template whose text for a message depends on its neighbours has no shape.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

TemplateMessage = tuple[str, str]
"""A role and its text."""
Render = Callable[[Sequence[TemplateMessage], bool], Awaitable[str | None]]
"""Renders a conversation, with or without the start of the reply; None where the template refuses it."""

ROLES = ("system", "user", "assistant")
# Characters that a template might escape, trim or remove.
PLAIN = 'Tea "for" two & {{ three }} <b>\\n</b>\n\n\té 日本 😀 done'
BLANK = "blank"
THINKING = "thinking"
ODD = {BLANK: " \n tea \n\n", THINKING: "<think>\nhm\n</think>\n\ntea"}


class Irregular(Exception):
    """The template has no shape; the message completes the sentence "its template …"."""


class Shape(Struct, frozen=True):
    opening: str
    """The text before any first message."""
    stand_in: str
    """The text after the opening when there is no system message: the template's own system prompt."""
    before: Mapping[str, str]
    after: Mapping[str, str]
    reply: str
    """The start of the reply."""
    changes: frozenset[tuple[str, str]] = frozenset()
    """(role, kind) of contents that the template changes."""

    def keeps(self, role: str, content: str) -> bool:
        """Whether the template renders this content unchanged."""
        return not any((role, kind) in self.changes for kind in kinds(content))

    def piece(self, role: str, content: str) -> str:
        return f"{self.before[role]}{content}{self.after[role]}"

    def render(self, messages: Sequence[TemplateMessage]) -> str:
        start = self.opening + ("" if messages[0][0] == "system" else self.stand_in)
        return start + "".join(self.piece(role, content) for role, content in messages) + self.reply


def kinds(content: str) -> Iterable[str]:
    """The kinds of content that a template may change."""
    if content == "" or content != content.strip():
        yield BLANK
    if "<think>" in content or "</think>" in content:
        yield THINKING


async def learn(render: Render) -> Shape:
    """The template's shape, checked for every position of a message."""
    shape = await _derive(render)
    for messages in _conversations(PLAIN):
        if (rendered := await render(messages, True)) is not None and rendered != shape.render(messages):
            raise Irregular("writes a message differently depending on its position")
    return await _with_changes(render, shape)


async def _derive(render: Render) -> Shape:
    messages = _marked("system", "user", "assistant", "user")
    start, system_user, user_assistant, assistant_user, end = _gaps(await render(messages, True), messages)
    after_user = _gaps(await render(messages, False), messages)[-1]
    first, *_ = _gaps(await render(messages[1:2], True), messages[1:2])
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
    """The text before a user's message, taken from two users in a row; where the template refuses those, the common end
    of all gaps before a user."""
    messages = _marked("system", "user", "user")
    if (rendered := await render(messages, True)) is not None:
        return _without_start(_gaps(rendered, messages)[2], after_user)
    shortest = min(gaps, key=len)
    ends = (shortest[at:] for at in range(len(shortest) + 1))
    return next(end for end in ends if all(gap.endswith(end) for gap in gaps))


async def _with_changes(render: Render, shape: Shape) -> Shape:
    """The shape with the kinds of content that the template changes."""
    changes = set()
    for kind, odd in ODD.items():
        for role in ROLES:
            messages = [(other, odd if other == role else PLAIN) for other in ("system", "user", "assistant", "user")]
            if await render(messages, True) != shape.render(messages):
                changes.add((role, kind))
    return replace(shape, changes=frozenset(changes))


def _marked(*roles: str) -> list[TemplateMessage]:
    return [(role, f"mark{number}mark") for number, role in enumerate(roles)]


def _conversations(content: str) -> Iterable[list[TemplateMessage]]:
    """The orders of messages that are really sent: at most one system message, at the start, and a user at the end."""
    for order in ("su", "suau", "suauau", "u", "uau", "suu", "sau", "suaau", "uu", "au"):
        roles = [role for letter in order for role in ROLES if role[0] == letter]
        yield [(role, f"{content} {number}") for number, role in enumerate(roles)]


def _gaps(rendered: str | None, messages: Sequence[TemplateMessage]) -> list[str]:
    """The texts before, between and after the contents."""
    if rendered is None:
        raise Irregular("refuses a plain conversation")
    gaps = []
    for _, content in messages:
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
