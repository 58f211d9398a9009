"""`recto memory`: facts remembered between conversations. Some commands are in the table of actions."""

from typing import Any

import click

from recto.cli import options, show
from recto.cli.actions import add_commands
from recto.store.fact import FACT_KINDS

kind_option = click.option("--kind", type=click.Choice(FACT_KINDS), help="The kind of fact.")


@click.group()
def command() -> None:
    """Remember facts between conversations. The relevant ones go with each message.

    Example: recto memory add "My sister Anna lives in Berlin"
    """


@command.command("list")
@kind_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Show at most N.")
@click.option("--all", "everything", is_flag=True, help="Show all of them, including those that were replaced.")
@options.as_json_option
def list_facts(kind: Any, limit: int, everything: bool, as_json: bool) -> None:
    """List facts, the newest first.

    Example: recto memory list --kind person
    """
    from recto.cli.drawing.results import fact_rows  # only where facts are
    from recto.memory.fact_files import fact_to_json

    with options.open_desk() as desk:
        found = desk.facts.facts(kind, replaced=everything, limit=None if everything else limit)
        total, rows = desk.facts.count, [*fact_rows(found, desk.facts.missing)]
    if as_json:
        show.emit({"facts": [fact_to_json(fact) for fact in found], "total": total})
        return
    for line in rows:
        show.say(line)
    if not found:
        show.note("nothing is remembered yet; `recto memory add TEXT` begins")
    elif len(found) < total and not kind:
        more = "--all includes those that were replaced" if len(found) < limit else "--limit N or --all shows more"
        show.note(f"{len(found)} of {total:,}; {more}")


@command.command("edit")
@click.argument("number", type=click.IntRange(1))
@click.argument("text", required=False)
@kind_option
@click.option("--replaced-by", type=click.IntRange(1), metavar="NUMBER", help="A newer fact that replaces it.")
@options.as_json_option
def edit(number: int, text: str | None, kind: Any, replaced_by: int | None, as_json: bool) -> None:
    """Change the text or kind of a fact, or let a newer one replace it. The earlier text is kept.

    Example: recto memory edit 1 "My sister Anna lives in Hamburg"
    """
    from recto.cli.drawing.results import fact_rows  # only where facts are
    from recto.memory.fact_files import fact_to_json

    if text is None and kind is None and replaced_by is None:
        raise click.UsageError("Give a TEXT, --kind or --replaced-by.")
    with options.open_desk() as desk:
        changed = desk.facts.edit(number, text, kind)
        if replaced_by is not None:
            changed = desk.facts.replace(number, replaced_by)
    show.answer(fact_to_json(changed) if as_json else next(fact_rows([changed])))


@command.command("forget")
@click.argument("numbers", type=click.IntRange(1), nargs=-1, required=True)
@options.yes_option
@options.as_json_option
def forget(numbers: tuple[int, ...], is_sure: bool, as_json: bool) -> None:
    """Forget facts completely. Earlier requests and backups keep them.

    Example: recto memory forget 2 --yes
    """
    from recto.cli.drawing.results import fact_rows  # only where facts are

    with options.open_desk() as desk:
        known = [desk.facts.fact(number) for number in dict.fromkeys(numbers)]
        question = f"Forget {show.counted(len(known), 'fact')} for good?"
        if not is_sure and not options.is_confirmed(
            question, fact_rows(known), "nothing was forgotten: --yes confirms it"
        ):
            show.note("nothing was forgotten")
            return
        for fact in known:
            desk.facts.forget(fact.number)
    show.answer(
        {"forgotten": [fact.number for fact in known]}
        if as_json
        else f"forgotten: {', '.join(str(fact.number) for fact in known)}"
    )


@command.command("export")
@click.option("--format", type=click.Choice(["json", "markdown"]), default="markdown", show_default=True)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write to this file instead of stdout.")
def export_facts(format: str, output: str | None) -> None:
    """Write all facts as Markdown to read, or as JSON with everything about them.

    Example: recto memory export --format json
    """
    with options.open_desk() as desk:
        text = desk.facts.export(format)
    show.write(output, text, is_private=True)
    if output is not None:
        show.note(f"written to {output}")


add_commands(command, "memory")
