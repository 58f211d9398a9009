"""`recto context export` and `import`: conversations into files and out of them."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from msgspec.structs import asdict

from recto.cli import options, show
from recto.cli.terminal import bar
from recto.transfer.report import EXPORT_FORMATS, IMPORT_FORMATS, ExportFormat, ImportFormat

if TYPE_CHECKING:
    from recto.transfer.report import ImportReport

# What a file is named like says which form it gets, where nobody says it otherwise.
SUFFIXES: dict[str, ExportFormat] = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}
OUTCOMES = {
    "added": "added",
    "extended": "went on",
    "unchanged": "here already",
    "kept apart": "under new ids",
    "empty": "empty",
}
MOST_NOTES = 10


@click.command("export")
@options.conversation_argument
@click.option("--all", "everything", is_flag=True, help="All conversations.")
@click.option(
    "--format", type=click.Choice(EXPORT_FORMATS), help="json is complete; the others are to read (default: json)."
)
@click.option("--output", "-o", "file", type=click.Path(path_type=Path), help="Write to FILE instead of stdout.")
def export_command(id: str | None, everything: bool, format: str | None, file: Path | None) -> None:
    """Write a conversation (by default the latest) as JSON lines that `import` reads, as Markdown or as a page.

    Example: recto context export 3 -o talk.html
    """
    if everything and id is not None:
        raise click.UsageError("Name a conversation or give --all, not both.")
    named = SUFFIXES.get(file.suffix.lower(), "json") if file else "json"
    form = cast(ExportFormat, format or named)
    with options.open_reader() as reader:
        if file is not None:
            written = reader.export_file(file, id, format=form, everything=everything)
            show.note(f"written to {written}")
            return
        for chunk in reader.export(id, format=form, everything=everything):
            show.hand_over(chunk.decode())


@click.command("import")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--from", "format", type=click.Choice(IMPORT_FORMATS), help="What wrote it, where FILE does not tell.")
@click.option("--as-new", is_flag=True, help="Store those under new ids whose ids other conversations have.")
@options.as_json_option
def import_command(files: tuple[Path, ...], format: str | None, as_new: bool, as_json: bool) -> None:
    """Store the conversations of files: exports of Recto, ChatGPT, Claude and LibreChat, message lists, llm's logs.db.

    A file that is damaged in any place is refused as a whole. What is in the store already is left as it is.

    Example: recto context import conversations.json
    """
    with options.open_desk() as desk:
        for file in files:
            with bar("importing") as tell:
                done = desk.import_file(file, format=cast("ImportFormat | None", format), as_new=as_new, progress=tell)
            if as_json:
                for each in done.conversations:
                    show.emit({"file": str(file), "format": done.format, **asdict(each)})
            else:
                _tell(file, done)


def _tell(file: Path, done: "ImportReport") -> None:
    counts = [(words, done.count(outcome)) for outcome, words in OUTCOMES.items()]  # type: ignore[arg-type]
    told = ", ".join(f"{count:,} {words}" for words, count in counts if count) or "nothing in it"
    show.say(f"{file} ({done.format}): {told}; {show.counted(done.messages, 'message')} stored")
    notes = [(each.title or each.id, note) for each in done.conversations for note in each.notes]
    for title, note in notes[:MOST_NOTES]:
        show.note(f"{show.shortened(title, 40)}: {note}")
    if len(notes) > MOST_NOTES:
        show.note(f"and {len(notes) - MOST_NOTES:,} more; --json shows all of them")
