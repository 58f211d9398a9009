"""`recto context`: what the model would be sent now, numbers over a conversation, and starting anew."""

import click

from recto import wire
from recto.cli import options, show
from recto.cli.listen import compaction_in_words


@click.group()
def command() -> None:
    """See what the model would be sent, or start it anew.

    Example: recto context show
    """


@command.command("show")
@options.conversation_argument
@options.settings_options
@click.option("--message", default="", metavar="TEXT", help="Plan for this message.")
@click.option("--new", is_flag=True, help="Plan for a new conversation.")
@options.as_json_option
def show_context(id: str | None, flags: dict[str, str], message: str, new: bool, as_json: bool) -> None:
    """Show the window of a conversation (by default the latest): every part, its tokens, and why.

    Example: recto context show --message "Compare [[Budget]] with last year"
    """
    if new and id:
        raise click.UsageError("Give an ID or --new, not both.")
    with options.open_desk(flags) as desk:
        talk = desk.conversation() if new or not (id or desk.latest()) else options.find_talk(desk, id)
        window = talk.window(message).to_json()
        if as_json:
            show.emit(window)
            return
        from recto.cli.picture import draw_window  # rich: a tenth of a second

        draw_window(show.console(), window)


@command.command("stats")
@options.conversation_argument
@options.as_json_option
def stats(id: str | None, as_json: bool) -> None:
    """Show numbers over a conversation: messages, tokens, compactions, requests, cost.

    Example: recto context stats
    """
    from recto.cli.stats import gather, in_words

    with options.open_desk() as desk:
        numbers = gather(desk, options.find_talk(desk, id))
        if as_json:
            show.emit(numbers)
            return
        for name, value in in_words(numbers):
            show.say(f"{name:<14}{value}")


@command.command("clear")
@options.conversation_argument
@options.as_json_option
def clear(id: str | None, as_json: bool) -> None:
    """Start anew for the model; everything said stays in the store.

    Example: recto context clear
    """
    with options.open_desk() as desk:
        talk = options.find_talk(desk, id)
        block = talk.clear()
        if as_json:
            show.emit({"conversation": talk.id, "head": talk.standing.head, "compaction": wire.block_to_json(block)})
        else:
            show.say(f"{talk.id}: {compaction_in_words(block.compaction_number, block.messages_archived, 0, 0)}")
