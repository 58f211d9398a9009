"""The tables of limits in docs/troubleshooting.md: from the constants and the settings that decide them."""

from pathlib import Path

from recto.agents import templates
from recto.api import suggestions
from recto.base import file_cache
from recto.compaction import summary_input
from recto.mcp import client, tool_list
from recto.providers import model
from recto.settings import settings
from recto.sources import documents, vault_tools
from recto.store import backup, database
from recto.transfer import formats
from recto.turn import context, source_picker
from recto.vault import folder, graph
from recto.window import count, plan

ROOT = Path(__file__).parents[2]
MB = 1_000_000
SIZES = (
    ("a note of the vault", folder.MAX_NOTE_BYTES, "Recto does not read a larger one"),
    ("a rule or a reference", file_cache.MAX_FILE_BYTES, "a larger one is ignored, with a note"),
    ("a template", templates.MAX_BYTES, "a larger one is refused"),
    ("an attached file", documents.LARGEST, "a larger one is refused"),
    ("the answer of an MCP server", client.MAX_MESSAGE_BYTES, "the call fails, and its result says so"),
    ("a picture in an imported archive", formats.MAX_FILE_BYTES, "a larger one is left out"),
    ("conversations in an imported zip file, unpacked", formats.MAX_UNPACKED_BYTES, "the file is refused"),
)
COUNTS = (
    ("window of a model that nobody knows", f"{model.ASSUMED_WINDOW:,} tokens", "`window` in models.toml"),
    ("smallest reserve for the reply", f"{plan.SMALLEST_RESERVE} tokens", "`context.reserved_response_tokens`"),
    ("longest summary", f"{context.LONGEST_SUMMARY:,} tokens", "`context.summary_tokens`"),
    ("text that one summary without a model reads", f"{summary_input.MOST_READ:,} characters", ""),
    ("smallest excerpt of a message that is too long", f"{count.SMALLEST_EXCERPT} tokens", ""),
    ("tools that one request offers", f"{source_picker.MOST_TOOLS}", ""),
    ("tools of one MCP server", f"{tool_list.MAX_LISTED_TOOLS:,}", ""),
    ("part of a document that one `read_document` returns", f"{vault_tools.PAGE_CHARS:,} characters", ""),
    ("notes in a drawn graph", f"{graph.MAX_NODES:,}", "`--from` and `--depth` draw a part"),
    ("files that `@` completion looks through", f"{suggestions.MOST_FILES:,}", ""),
    ("daily backups", f"{backup.KEPT_DAYS}", ""),
)
WAITS = ("reply.timeout_s", "context.summary_timeout_s", "tools.timeout_s", "tools.start_s", "search.timeout_s")
MOST = ("reply.tries", "reply.max_characters", "tools.step_limit", "tools.call_limit", "tools.result_characters")


def limit_parts() -> dict[str, str]:
    """The tables by their names."""
    sizes = "".join(f"| {what} | {_megabytes(most)} | {then} |\n" for what, most, then in SIZES)
    counts = "".join(f"| {what} | {most} | {by} |".replace("|  |", "| |") + "\n" for what, most, by in COUNTS)
    known = {spec.key: spec for spec in settings.specs()}
    waits = "".join(f"| {known[key].help} | {known[key].default:,g} | `{key}` |\n" for key in (*WAITS, *MOST))
    busy = f"| wait for another process that writes to the store, in seconds | {database.BUSY_TIMEOUT_S:g} | |\n"
    return {
        "sizes": f"| of | at most | beyond that |\n|---|---|---|\n{sizes}",
        "counts": f"| what | limit | changed by |\n|---|---|---|\n{counts}",
        "waits": f"| what | default | changed by |\n|---|---|---|\n{waits}{busy}",
    }


def _megabytes(size: int) -> str:
    return f"{size // MB:,} MB" if size % MB == 0 else f"{size >> 20:,} MiB"
