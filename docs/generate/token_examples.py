"""The tables of docs/tokens.md: a conversation over the example vault that the real engine holds, and what it counted.

The model is scripted: nothing is sent, and its replies have the same length in every run.
"""

import base64
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from docs.generate.limits import ROOT
from msgspec import Struct

from recto.api.blocking import Desk, Talk, open_desk
from recto.chat.blocks import Compaction
from recto.chat.message import Usage
from recto.providers.attachments import PDF_PAGE, anthropic_image_tokens, openai_image_tokens
from recto.providers.catalog import ModelCatalog
from recto.settings import settings
from recto.turn.planned_request import LEAST_CACHED
from recto.window.window import Window

LIMIT = 32_768
PROVIDER, PRICED = "anthropic", "claude-sonnet-4-5"
# Recall and summaries ahead depend on how far work in the background has come; the rest is the same in every run.
QUIET = {
    "search.embedder": "none",
    "store.backup": False,
    "context.prepare_at": 0,
    "context.recall_ratio": 0,
}
QUESTION = "Which reef goes in when? See [[Rigging#Reefing]]."
ANSWER = "The survey found a soft plank at frame nine, and Harlan puts in a new one before the launch. " * 45
SUMMARY = "They went through the survey, the budget and the plan of the season, plank by plank."
SHOWN = (1, 2, 3, 10, 20)
SIDE = 1024
"""Of a photo, in pixels."""


class HeldTurn(Struct, frozen=True):
    number: int
    window: Window
    output: int
    cached: int
    """Tokens that a cache holds from the turn before."""


def token_parts() -> dict[str, str]:
    """The tables by their names."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.json")
        steps = [{"text": ANSWER}, {"text": SUMMARY, "when": "summary"}]
        script.write_text(json.dumps({"limit": LIMIT, "steps": steps}))
        name, notes = f"scripted:{script}", ROOT / "examples" / "vault"
        with open_desk(home=Path(folder, "home"), model=name, vault=notes, settings=QUIET) as desk:
            talk = desk.conversation()
            turns = _until_compacted(talk)
            block = talk.compaction()
            assert block is not None
            return {
                "budget": _budget(desk.conversation().window(QUESTION)),
                "costs": _costs(desk),
                "compaction": _compaction(turns, block),
                "cache": _cache(turns),
            }


def _budget(window: Window) -> str:
    rows = [
        ("the window of the model", "", window.limit),
        ("− reserve for the reply", "`context.reserved_response_tokens`", window.reserve),
        ("= room", "", window.limit - window.reserve),
        *(
            (f"{name}: {part.used:,} used of", f"`context.budgets.{name}`", part.budget)
            for name, part in window.components.items()
        ),
        ("sent now", "", window.total),
        ("free", "", window.free),
    ]
    return _table(("", "set by", "tokens"), rows)


def _costs(desk: Desk) -> str:
    def sections(message: str) -> dict[str, int]:
        return {section.name: section.tokens for section in desk.conversation().window(message).sections}

    short, linked = sections("Which reef?"), sections("Which reef? [[Rigging#Reefing]]")
    whole = sections("Which reef? @boat/Rigging.md")
    offered = next(each for each in desk.conversation().window("Hi").sections if each.name == "tools")
    tools = [pick.tokens for pick in offered.picks]
    photo = f"{openai_image_tokens(_photo())} (OpenAI), {anthropic_image_tokens(_photo(), PRICED):,} (Anthropic)"
    named = whole["message"] - short["message"]
    rows: list[tuple[object, ...]] = [
        ("the default system prompt", short["system"], "every request"),
        ("the message `Which reef?`", short["message"], "every request, until it is archived"),
        (f"the {len(tools)} tools of a vault, {min(tools)} to {max(tools)} each", sum(tools), "every request"),
        ("`[[Rigging#Reefing]]`, a section of a note", linked["documents"], "this turn"),
        ("`@boat/Rigging.md`, the whole note", whole["documents"], "this turn"),
        ("`@boat/Rigging.md` in the message, with the line that names the document", named, "as long as the message"),
        (f"a photo of {SIDE:,} × {SIDE:,} pixels", photo, "as long as the message"),
        ("a page of a PDF", f"up to {PDF_PAGE:,}", "as long as the message"),
    ]
    return _table(("what", "tokens", "sent with"), rows)


def _photo() -> str:
    """The beginning of a PNG, which tells its size."""
    size = SIDE.to_bytes(4)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4) + b"IHDR" + size + size + bytes(5)).decode()


def _until_compacted(talk: Talk) -> list[HeldTurn]:
    turns: list[HeldTurn] = []
    while talk.compaction() is None:
        reply = talk.ask(f"Question {len(turns) + 1}: what is still open?")
        cached = _cached(turns[-1].window, reply.window, is_new=talk.compaction() is not None) if turns else 0
        turns.append(HeldTurn(len(turns) + 1, reply.window, reply.usage.output, cached))
    return turns


def _cached(before: Window, now: Window, *, is_new: bool) -> int:
    """What both requests begin with: all of the former, or after a compaction system prompt and tools. Providers cache
    no shorter beginning than LEAST_CACHED."""
    same = sum(each.tokens for each in now.sections if each.name in ("system", "tools")) if is_new else before.total
    return same if same >= LEAST_CACHED else 0


def _compaction(turns: Sequence[HeldTurn], block: Compaction) -> str:
    threshold = settings.Settings().context.threshold
    rows: list[tuple[object, ...]] = [
        (f"turn {each.number}", each.window.total, f"{each.window.total / LIMIT:.0%}")
        for each in turns
        if each.number in SHOWN
    ]
    last = turns[-1]
    rows += [
        (
            f"turn {last.number}, before the compaction",
            block.context_size_before,
            f"{block.context_size_before / LIMIT:.0%}",
        ),
        (f"turn {last.number}, as it is sent", last.window.total, f"{last.window.total / LIMIT:.0%}"),
    ]
    return (
        f"{_table(('', 'tokens of the window', 'of the limit'), rows)}\n"
        f"The threshold is {threshold:.0%} of {LIMIT:,} tokens, which is {int(LIMIT * threshold):,}. "
        f"Turn {last.number} would go over it.\n"
        f"Recto summarises the {block.messages_archived} oldest messages, and the window shrinks to "
        f"{last.window.total:,} tokens.\n"
    )


def _cache(turns: Sequence[HeldTurn]) -> str:
    prices = ModelCatalog(Path(), None).find(PROVIDER, PRICED).prices
    assert prices is not None
    rows: list[tuple[object, ...]] = []
    sums = [0.0, 0.0]
    for each in turns:
        total = each.window.total
        written = total - each.cached if total >= LEAST_CACHED else 0
        plain = prices.cost(Usage(total, each.output)) or 0
        cached = prices.cost(Usage(total, each.output, each.cached, written)) or 0
        sums = [sums[0] + plain, sums[1] + cached]
        if each.number in (*SHOWN, turns[-1].number):
            name = f"{each.number}, compacted" if each is turns[-1] else each.number
            rows.append((name, total, each.cached, f"{plain:.4f}", f"{cached:.4f}"))
    rows.append((f"all {len(turns)}", "", "", *(f"{each:.4f}" for each in sums)))
    head = ("turn", "input", "of it from the cache", "US dollars without a cache", "with it")
    told = (
        f"`{PROVIDER}:{PRICED}` costs {prices.input:g} US dollars for a million tokens of input, "
        f"{prices.cache_write:g} if they are written to\nthe cache, "
        f"{prices.cache_read:g} if they are read from it, and {prices.output:g} for output. "
        f"Each reply here has {turns[0].output:,} tokens.\n\n"
    )
    return told + _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_shown, line))} |\n" for line in lines)


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
