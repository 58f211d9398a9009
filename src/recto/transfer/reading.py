"""A readable conversation: its messages in order, each reply with its context, then the other branches; also as
Markdown. Message text is kept verbatim; what is added around it is escaped."""

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from recto import wire
from recto.chat.blocks import (
    Block,
    Compaction,
    DocumentReference,
    File,
    Image,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.chat.compaction_words import archived_in_words, writer_in_words
from recto.chat.message import Message
from recto.errors import Altered, NotFound
from recto.sources.source import Pick
from recto.store.records import Record
from recto.store.store import Store

PAGE = 200
ROLES = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tools"}
# An underscore within a word has no meaning in Markdown.
_SPECIAL = re.compile(r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w))")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


class ReadMessage(Struct, frozen=True):
    message: Message
    context: str = ""
    """What was sent for a reply, as Markdown."""


class ConversationText:
    def __init__(self, store: Store, id: str) -> None:
        self._store = store
        self.conversation = store.tree.conversation(id)

    def facts(self) -> Iterator[tuple[str, str]]:
        home = self.conversation
        yield "Conversation", home.id
        yield "Begun", f"{home.created[:16].replace('T', ' ')} UTC"
        yield "Last used", f"{home.updated[:16].replace('T', ' ')} UTC"
        yield "Agent", home.agent
        for name in ("model", "strategy", "vault"):
            if value := home.details.get(name):
                yield name.capitalize(), " ".join(str(value).split())

    def parts(self) -> Iterator[ReadMessage | str]:
        """The messages of the path, oldest first; then the newest branch with its headline, and so on. Compactions at
        the end of a branch are not shown as a branch."""
        head, tree = self.conversation.head, self._store.tree
        if head is None:
            return
        ids = [message.id for message in self._up(head)][::-1]
        for start in range(0, len(ids), PAGE):
            yield from map(self._read, tree.messages(ids[start : start + PAGE]))
        for leaf in tree.leaves(self.conversation.id):
            if leaf.id == head:
                continue
            beside: list[Message] = []
            after = 0
            for message in self._up(leaf.id):
                if tree.is_on(head, message.id):
                    after = message.said
                    break
                beside.append(tree.message(message.id))
            if any(message.compaction is None for message in beside):
                yield f"Another branch, {f'after #{after}' if after else 'from the beginning'}"
                yield from map(self._read, reversed(beside))

    def _up(self, start: str) -> Iterator[Message]:
        at: str | None = start
        while at is not None:
            page = self._store.tree.bare_page(at, most=PAGE)
            yield from page
            at = page[-1].parent if page else None

    def _read(self, message: Message) -> ReadMessage:
        return ReadMessage(message, self._context(message, message.request) if message.request else "")

    def _context(self, message: Message, request: str) -> str:
        try:
            record = self._store.records.record(request)
        except (Altered, NotFound) as why:
            return f"> **Context:** {escaped(f'Its context can no longer be read: {why.message}')}"
        account = record.account
        notes = account.notes or ()
        ids = wire.ids_in([*notes, *(f"{pick.name} {pick.because}" for pick in account.picks())])
        names = {id: f"#{number}" for id, number in self._store.tree.numbers(ids, self.conversation.head).items()}
        lines = [f"> **Context:** {escaped(_line(record, message))}"]
        for section in account.sections or ():
            always = [_pick_name(pick, names) for pick in section.picks if pick.mode == "always"]
            told = f"{section.name} {section.tokens:,}" + (f": {', '.join(always)}" if always else "")
            lines.append(f"> - {escaped(told)}")
            for pick in section.picks:
                if pick.mode != "always":
                    lines.append(f">   - {escaped(_pick_name(pick, names))} ({escaped(_about(pick, names))})")
        lines += [f"> - note: {escaped(_numbered(note, names))}" for note in notes]
        return "\n".join(lines)


def _line(record: Record, message: Message) -> str:
    account, usage = record.account, message.usage
    counted = "" if account.exact else "about "
    size = f"{counted}{account.total:,} of {account.limit:,} tokens" if account.total and account.limit else ""
    made = f"compaction {account.compaction}" if account.compaction else ""
    cached = f", {usage.cache_read:,} from caches" if usage and usage.cache_read else ""
    reported = f"{usage.input:,} in{cached}, {usage.output:,} out" if usage and usage.reported else ""
    return " · ".join(part for part in (size, account.model, account.strategy, made, reported) if part)


def _pick_name(pick: Pick, names: dict[str, str]) -> str:
    return _numbered(f"{pick.server}:{pick.name}" if pick.server else pick.name, names)


def _about(pick: Pick, names: dict[str, str]) -> str:
    score = f" {pick.score:.2f}" if pick.score is not None and pick.mode == "agent" else ""
    parts = (f"{pick.mode}{score}", _numbered(pick.because, names), f"{pick.tokens:,} tokens" if pick.tokens else "")
    return "; ".join(part for part in parts if part)


def _numbered(text: str, names: dict[str, str]) -> str:
    return str(wire.with_ids(text, lambda known: names.get(known, known)))


# -- Markdown, which the HTML page is made from


class Part(Struct, frozen=True):
    text: str
    fold: str = ""
    """The title under which a page folds it."""


def markdown_chunks(store: Store, ids: Sequence[str]) -> Iterator[str]:
    for place, id in enumerate(ids):
        text = ConversationText(store, id)
        head = "\n---\n\n" if place else ""
        yield f"{head}# {escaped(text.conversation.title) or 'Conversation'}\n\n"
        yield "".join(f"- {name}: {escaped(value)}\n" for name, value in text.facts())
        for part in text.parts():
            if isinstance(part, str):
                yield f"\n# {part}\n"
            else:
                yield "\n" + "\n\n".join(each.text for each in message_parts(part)) + "\n"


def message_parts(entry: ReadMessage, image: Callable[[Image], str] = lambda block: "") -> Iterator[Part]:
    """`image` gives an image as Markdown; without one it is named."""
    message = entry.message
    if block := message.compaction:
        # pins do not write a summary of their own
        summary = "" if block.action in ("pin", "unpin") else block.summary
        quoted = "\n>\n" + _quoted(summary) if summary else ""
        yield Part(f"> **{escaped(_compaction_line(block))}**{quoted}")
        return
    yield Part(f"## {escaped(_headline(message))}")
    for each in message.blocks:
        yield from _block(each, image)
    if message.error:
        status = "Stopped" if message.status == "stopped" else "Failed"
        yield Part(f"*{escaped(f'{status}: {message.error}')}*")
    if entry.context:
        yield Part(entry.context, "Context")


def _headline(message: Message) -> str:
    """Who and when: `#12 Assistant · 2026-01-31 12:00 UTC · openai:gpt-5`."""
    when = f"{message.time[:16].replace('T', ' ')} UTC" if message.time else ""
    status = message.status if message.status in ("unfinished", "stopped", "error") else ""
    tokens = f"{message.tokens.own:,} tokens" if message.tokens.own is not None else ""
    parts = (f"#{message.said} {ROLES[message.role]}", when, status, message.model, tokens)
    return " · ".join(part for part in parts if part)


def _compaction_line(block: Compaction) -> str:
    archived = archived_in_words(block.messages_archived, block.context_size_before, block.context_size_after)
    parts = (f"Compaction {block.compaction_number}: {archived}", writer_in_words(block), block.because)
    return " · ".join(part for part in parts if part)


def _block(block: Block, image: Callable[[Image], str]) -> Iterator[Part]:
    match block:
        case Text(text=text) if text:
            yield Part(_closed(text))
        case Thinking(text=text) if text:
            yield Part(f"> *Thought:*\n>\n{_quoted(text)}", "Thought")
        case ToolCall():
            yield Part(f"**→ {escaped(block.name)}**\n\n{_fenced(block.arguments, 'json')}")
        case ToolResult():
            failed = " failed" if block.is_error else ""
            text = f"**← {escaped(block.name)}**{failed}\n\n{_fenced(block.text)}"
            yield Part(text, f"← {block.name}{failed}, {len(block.text):,} characters")
            for each in block.attachments:
                yield from _block(each, image)
        case File():
            text = f"\n\n{_fenced(block.text)}" if block.text else ""
            yield Part(f"**File {escaped(block.name)}** ({escaped(block.media_type)}){text}", f"File {block.name}")
        case Image():
            title = f"**Image {escaped(block.name or block.url)}** ({escaped(block.media_type)})"
            yield Part(image(block) or title)
        case References(references=references, quotes=quotes) if references or quotes:
            named = [f"- {escaped(_reference_words(each))}" for each in references]
            quoted = [f"> {escaped(quote.sentence)} — {escaped(quote.wikilink)}" for quote in quotes]
            yield Part("\n".join(["📚 Referenced documents", "", *named, *(["", *quoted] if quoted else [])]))


def _reference_words(reference: DocumentReference) -> str:
    if reference.relative_path is None:
        return f"{reference.wikilink} {reference.problem}"
    how = " (found)" if reference.reference_type == "search" else ""
    about = f": {reference.summary}" if reference.summary else ""
    return f"{reference.wikilink} {reference.relative_path}{how}{about}"


def escaped(text: object) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in _closed(text).splitlines())


def _closed(text: str) -> str:
    """Close an open fence, which would swallow all that follows."""
    open_fence = ""
    for found in _FENCE.finditer(text):
        fence = found[1]
        if not open_fence:
            open_fence = fence
        elif fence[0] == open_fence[0] and len(fence) >= len(open_fence):
            open_fence = ""
    return f"{text}\n{open_fence}" if open_fence else text


def _fenced(text: str, language: str = "") -> str:
    longest = max(map(len, re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
