"""`recto memory`: facts that are remembered between conversations: add, list, search, change, forget, move."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recto.api.blocking import Desk
    from recto.memory.fact_memory import LearnedFact, RelevantFact
    from recto.store.fact import MemoryFact

KINDS = ("preference", "person", "project", "decision", "reference", "other")
kind_option = click.option("--kind", type=click.Choice(KINDS), help="What kind of fact it is.")
NOTHING: "Mapping[int, str]" = {}
NUMBER = click.argument("number", type=click.IntRange(1))


@click.group()
def command() -> None:
    """Remember facts between conversations. The relevant ones go with each message.

    Example: recto memory add "My sister Anna lives in Berlin"
    """


@command.command("add")
@click.argument("text")
@kind_option
@click.option("--replaces", type=click.IntRange(1), metavar="NUMBER", help="A fact that is no longer true.")
@options.as_json_option
def add(text: str, kind: Any, replaces: int | None, as_json: bool) -> None:
    """Remember a fact.

    Example: recto memory add "I prefer short answers" --kind preference
    """
    with options.open_desk() as desk:
        learned = desk.facts.learn(text, kind, replaces=replaces)
    if as_json:
        from recto.memory.fact_files import fact_to_json  # only where facts are

        older = [fact_to_json(fact) for fact in learned.contradicted]
        show.emit(fact_to_json(learned.fact) | {"is_new": learned.is_new, "may_contradict": older})
        return
    for line in learned_lines(learned):
        show.say(line)


def learned_lines(learned: "LearnedFact") -> Iterator[str]:
    fact = learned.fact
    if learned.is_new:
        yield f"remembered as {fact.number} ({fact.kind})"
    elif learned.before == fact.text:
        yield f"known already, as {fact.number}"
    else:
        before = show.shortened(learned.before, 60)
        yield f"known already, as {fact.number}, which said “{before}” and has your words now"
    for older in learned.contradicted:
        yield f"{fact.number} may contradict {older.number} of {older.day}: {show.shortened(older.text, 60)}"
    if learned.contradicted:
        numbers = learned.contradicted[0].number, fact.number
        yield "`recto memory edit {} --replaced-by {}` lets the newer one replace it".format(*numbers)


@command.command("list")
@kind_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many.")
@click.option("--all", "everything", is_flag=True, help="All of them, those that were replaced too.")
@options.as_json_option
def list_facts(kind: Any, limit: int, everything: bool, as_json: bool) -> None:
    """List facts, the newest first.

    Example: recto memory list --kind person
    """
    with options.open_desk() as desk:
        found = desk.facts.facts(kind, replaced=everything, limit=None if everything else limit)
        total, missing = desk.facts.count, missing_notes(desk, found)
    if as_json:
        from recto.memory.fact_files import fact_to_json  # only where facts are

        show.emit({"facts": [fact_to_json(fact) for fact in found], "total": total})
        return
    for line in fact_rows(found, missing):
        show.say(line)
    if not found:
        show.note("nothing is remembered yet; `recto memory add TEXT` begins")
    elif len(found) < total and not kind:
        more = "--all shows those that were replaced too" if len(found) < limit else "--limit N or --all shows more"
        show.note(f"{len(found)} of {total:,}; {more}")


def missing_notes(desk: "Desk", facts: Iterable["MemoryFact"]) -> "Mapping[int, str]":
    """By number, what is gone of the notes that facts are about."""
    return {fact.number: gone for fact in facts if (gone := desk.facts.missing(fact))}


def fact_rows(facts: Iterable["MemoryFact"], missing: "Mapping[int, str]" = NOTHING) -> Iterator[str]:
    for fact in facts:
        gone = missing.get(fact.number)
        more = f"  (replaced by {fact.replaced_by})" if fact.replaced_by else f"  ({gone})" if gone else ""
        yield f"{fact.number:>5}  {fact.day}  {fact.kind:<10}  {fact.marked_text}{more}"


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many.")
@options.as_json_option
def search(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find facts by words and meaning.

    Example: recto memory search where does Anna live
    """
    with options.open_desk() as desk:
        found, note = desk.facts.search(" ".join(words), limit)
        missing = missing_notes(desk, (each.fact for each in found))
    if as_json:
        show.emit({"facts": [_scored(each) for each in found], "note": note})
        return
    for each in found:
        show.say(f"{each.fact.number:>5}  {each.score:.2f}  {each.fact.marked_text}")
        gone = missing.get(each.fact.number)
        show.say(f"{'':>5}  {each.because}{f'; {gone}' if gone else ''}", dim=True)
    if not found:
        show.note("nothing was found")
    if note:
        show.note(note)


def _scored(each: "RelevantFact") -> dict[str, Any]:
    from recto.memory.fact_files import fact_to_json  # only where facts are

    older = [fact_to_json(fact) for fact in each.older]
    return fact_to_json(each.fact) | {"score": each.score, "because": each.because, "older": older}


@command.command("show")
@NUMBER
@options.as_json_option
def show_fact(number: int, as_json: bool) -> None:
    """Show a fact: where it came from, how often it was used, what it said before.

    Example: recto memory show 1
    """
    with options.open_desk() as desk:
        fact = desk.facts.fact(number)
        others = [other for other in desk.facts.about(fact) if other.number != number]
        gone = desk.facts.missing(fact)
        said = f"message {fact.message} of conversation {fact.conversation}" if fact.message else ""
        source = desk.conversation().numbered(said)
    if as_json:
        from recto.memory.fact_files import fact_to_json  # only where facts are

        show.emit(fact_to_json(fact) | {"same_topic": [other.number for other in others]})
        return
    for name, value in fact_facts(fact, others, source):
        show.say(f"{name:<12}{value}")
    if gone:
        show.note(gone)


def fact_facts(fact: "MemoryFact", others: Iterable["MemoryFact"], source: str) -> Iterator[tuple[str, str]]:
    """`source` is the message that it was learned from, by number."""
    yield f"fact {fact.number}", fact.text
    yield "kind", fact.kind
    by = fact.mark or f"by {'you' if fact.learned_by == 'user' else fact.learned_by}"
    learned = f"{show.when(fact.created)}, {by}"
    yield "learned", learned + (f", from {source}" if source else "")
    used = f"{show.counted(fact.uses, 'time')}, last {show.when(fact.last_used)}" if fact.last_used else "never"
    yield "used", used
    if fact.note:
        yield "vault", fact.note.vault
    if fact.confidence < 1:
        yield "confidence", f"{fact.confidence:.0%}"
    if fact.replaced_by:
        yield "replaced by", str(fact.replaced_by)
    for earlier in reversed(fact.history):
        yield "earlier", f"{earlier.text} (until {earlier.until[:10]})"
    for other in others:
        yield "see also", f"{other.number} of {other.day}: {other.marked_text}"


@command.command("edit")
@NUMBER
@click.argument("text", required=False)
@kind_option
@click.option("--replaced-by", type=click.IntRange(1), metavar="NUMBER", help="A newer fact that holds instead.")
@options.as_json_option
def edit(number: int, text: str | None, kind: Any, replaced_by: int | None, as_json: bool) -> None:
    """Change the text or kind of a fact, or let a newer one replace it. What it said before is kept.

    Example: recto memory edit 1 "My sister Anna lives in Hamburg"
    """
    if text is None and kind is None and replaced_by is None:
        raise click.UsageError("Give a TEXT, --kind or --replaced-by.")
    with options.open_desk() as desk:
        changed = desk.facts.edit(number, text, kind)
        if replaced_by is not None:
            changed = desk.facts.replace(number, replaced_by)
    if as_json:
        from recto.memory.fact_files import fact_to_json  # only where facts are

        show.emit(fact_to_json(changed))
        return
    for line in fact_rows([changed]):
        show.say(line)


@command.command("forget")
@click.argument("numbers", type=click.IntRange(1), nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.as_json_option
def forget(numbers: tuple[int, ...], yes: bool, as_json: bool) -> None:
    """Forget facts: no word of them stays among the facts. Requests that told them, and backups, keep what they hold.

    Example: recto memory forget 2 --yes
    """
    with options.open_desk() as desk:
        known = [desk.facts.fact(number) for number in dict.fromkeys(numbers)]
        if not yes:
            for line in fact_rows(known):
                show.say(line, err=True)
            if not sys.stdin.isatty():
                raise Invalid("nothing was forgotten: --yes confirms it")
            if not click.confirm(f"forget {show.counted(len(known), 'fact')} for good?", err=True):
                show.note("nothing was forgotten")
                return
        for fact in known:
            desk.facts.forget(fact.number)
    if as_json:
        show.emit({"forgotten": [fact.number for fact in known]})
    else:
        show.say(f"forgotten: {', '.join(str(fact.number) for fact in known)}")


@command.command("import")
@click.argument("path")
@kind_option
@options.as_json_option
def import_facts(path: str, kind: Any, as_json: bool) -> None:
    """Remember the facts of a Markdown or JSON file: items of lists, sentences, or what `export` wrote.

    Example: recto memory import @notes/Welcome.md
    """
    with options.open_desk() as desk:
        learned = desk.facts.import_file(Path(path.removeprefix("@")).expanduser(), kind)
    fresh = sum(each.is_new for each in learned)
    if as_json:
        show.emit({"read": len(learned), "learned": fresh, "known": len(learned) - fresh})
        return
    show.say(f"{show.counted(fresh, 'fact')} remembered, {len(learned) - fresh} known already")
    for each in learned:
        for line in list(learned_lines(each))[1:] if each.contradicted else ():
            show.say(line, dim=True)


@command.command("export")
@click.option("--format", "format", type=click.Choice(["json", "markdown"]), default="markdown", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else to stdout.")
def export_facts(format: str, output: Path | None) -> None:
    """Write all facts as Markdown to read, or as JSON with everything about them.

    Example: recto memory export --format json
    """
    with options.open_desk() as desk:
        text = desk.facts.export(format)
    if output is None:
        show.hand_over(text)
        return
    try:
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=str(output)) from why
    show.note(f"written to {output}")


@command.command("relevance")
@options.conversation_argument
@click.option("--message", default="", metavar="TEXT", help="For this message; else for your last one.")
@options.as_json_option
def relevance(id: str | None, message: str, as_json: bool) -> None:
    """Show which memory a conversation would get now, and why: files and facts, with tokens.

    Example: recto memory relevance --message "Where does Anna live?"
    """
    show_memory(id, message, as_json)


@click.command("memory")
@options.conversation_argument
@click.option("--message", default="", metavar="TEXT", help="For this message; else for your last one.")
@options.as_json_option
def context_memory(id: str | None, message: str, as_json: bool) -> None:
    """Show the memory that goes with the next message of a conversation: by file and fact, with tokens.

    Example: recto context memory
    """
    show_memory(id, message, as_json)


def show_memory(id: str | None, message: str, as_json: bool) -> None:
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id) if id or desk.latest(unsent=True) else desk.conversation()
        report = talk.memory(message)
    if as_json:
        show.emit(report.to_json())
        return
    for line in report.lines:
        show.say(line)
    for note in report.notes:
        show.note(note)
