"""Slash commands that change what the model is sent: compact, take back, edit, pin, prioritise, choose a strategy."""

from typing import TYPE_CHECKING

from recto.chat.blocks import Compaction
from recto.cli import options
from recto.cli import strategy as strategies
from recto.cli.compaction import NO_SUMMARY, NOTHING_COMPACTED, block_in_words, in_force, numbers, undone_in_words
from recto.cli.editor import edited
from recto.cli.listen import Lines, follow
from recto.cli.markdown import Page
from recto.cli.picture import facts_table
from recto.cli.screen import Screen
from recto.cli.show import shortened, visible
from recto.errors import Invalid, NotFound

if TYPE_CHECKING:
    from recto.cli.ongoing import Chat

LAST = "last"


def compact(chat: "Chat", argument: str) -> None:
    is_screen = chat.console.is_terminal and not chat.console.is_dumb_terminal
    listener = Screen(chat.console, stopped=NOTHING_COMPACTED) if is_screen else Lines()
    follow(chat.talk.compacting(argument), listener, chat.watch)
    if block := chat.talk.compaction():
        chat.resized(block)


def uncompact(chat: "Chat", argument: str) -> None:
    before = chat.talk.compaction()
    block = chat.talk.uncompact()
    chat.resized(block)
    chat.tell(undone_in_words(before, block))


def summary(chat: "Chat", argument: str) -> None:
    if argument not in ("", "edit"):
        raise Invalid("/summary takes edit, or nothing")
    block = in_force(chat.talk)
    if argument:
        _edit(chat, block)
        return
    chat.console.print(facts_table(numbers(block)))
    chat.console.print()
    chat.console.print(Page(visible(block.summary) or NO_SUMMARY))


def _edit(chat: "Chat", block: Compaction) -> None:
    if not options.has_keyboard():
        raise Invalid("there is no keyboard to edit with; `recto context summary --text FILE` replaces a summary")
    text = edited(block.summary)
    if text is None:
        chat.tell("the summary is unchanged")
        return
    chat.tell(block_in_words(chat.talk.edit_summary(text)))


def pin(chat: "Chat", argument: str) -> None:
    if not argument:
        chat.offer("pin")
        chat.tell("/pin MESSAGE keeps one of them in every window, /pin last your last one")
        return
    message = _last(chat) if argument == LAST else argument
    chat.resized(chat.talk.pin(message))
    chat.tell(f"pinned, in every window from now on: {_text(chat, message)} (/unpin {message} ends that)")


def _last(chat: "Chat") -> str:
    found = next((message.id for message in chat.talk.path() if message.role == "user"), None)
    if found is None:
        raise Invalid("there is no message yet to pin")
    return found


def unpin(chat: "Chat", argument: str) -> None:
    if argument:
        chat.resized(chat.talk.unpin(argument))
        chat.tell(f"no longer pinned: {_text(chat, argument)}")
        return
    block = chat.talk.compaction()
    for message in block.pinned if block else ():
        chat.tell(f"{message}  {_text(chat, message)}")
    chat.tell("/unpin MESSAGE lets one of them go" if block and block.pinned else "nothing is pinned")


def priority(chat: "Chat", argument: str) -> None:
    message, _, number = argument.partition(" ")
    if not number.strip().isdecimal():
        raise Invalid("/priority takes a MESSAGE and a whole number from 1 to 10; /pin lists messages")
    if chat.desk.store.tree.owner(message) != chat.talk.id:
        raise NotFound(f"message {message} is not part of this conversation", id=message)
    chat.talk.prioritise(message, int(number))
    chat.tell(f"priority {int(number)}: {_text(chat, message)}")


def strategy(chat: "Chat", argument: str) -> None:
    if argument:
        strategies.choose(chat.talk, argument)
        # an option that the chat was begun with would win over the conversation's choice
        chat.strategy = None if argument == strategies.FOLLOWS_SETTINGS else argument
    used = strategies.in_force(chat.desk, chat.talk, chat.strategy)
    chat.tell(strategies.in_words(chat.talk.strategy, used) + ("" if argument else "; /strategy NAME changes that"))


def _text(chat: "Chat", message: str) -> str:
    return shortened(chat.desk.store.tree.message(message).text, 60) or message
