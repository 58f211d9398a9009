"""Slash commands about the window: show it, compact, take back, edit, pin, set priorities, choose a strategy."""

from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.cli import options
from recto.cli.chat_state import ChatState
from recto.cli.drawing.compactions import (
    NO_SUMMARY,
    NOTHING_COMPACTED,
    block_in_words,
    compaction_facts,
    undone_in_words,
)
from recto.cli.drawing.plans import FOLLOWS_SETTINGS, outlook, strategy_in_words
from recto.cli.drawing.windows import draw_window, facts_table
from recto.cli.listener import Lines, follow
from recto.cli.markdown import Page
from recto.cli.screen import Screen
from recto.cli.show import shortened, visible
from recto.cli.terminal import edited
from recto.errors import Invalid

LAST = "last"


def show_window(chat: ChatState, argument: str) -> None:
    with chat.console.status("counting…"):
        window = chat.talk.window(argument, strategy=chat.strategy, attachments=tuple(chat.attachments))
    drawn = chat.talk.numbered(window.to_json())
    draw_window(chat.console, drawn, outlook=outlook(chat.talk.context_settings, window.plan))


def compact(chat: ChatState, argument: str) -> None:
    is_screen = chat.console.is_terminal and not chat.console.is_dumb_terminal
    listener = Screen(chat.console, stopped=NOTHING_COMPACTED) if is_screen else Lines()
    follow(chat.talk.stream_compaction(argument), listener, chat.watch)
    if block := chat.talk.compaction():
        chat.resized(block)


def uncompact(chat: ChatState, argument: str) -> None:
    before = chat.talk.compaction()
    block = chat.talk.uncompact()
    chat.resized(block)
    chat.tell(undone_in_words(before, block))


def clear(chat: ChatState, argument: str) -> None:
    block = chat.talk.clear()
    chat.resized(block)
    chat.tell(f"{block_in_words(block)}; the model starts anew, nothing is deleted")


def summary(chat: ChatState, argument: str) -> None:
    if argument not in ("", "edit"):
        raise Invalid("/summary takes edit, or nothing")
    block = chat.talk.summary_block()
    if argument:
        _edit(chat, block)
        return
    chat.console.print(facts_table(chat.talk.numbered(list(compaction_facts(block)))))
    chat.console.print()
    chat.console.print(Page(visible(block.summary) or NO_SUMMARY))


def _edit(chat: ChatState, block: Compaction) -> None:
    if not options.has_keyboard():
        raise Invalid("there is no keyboard to edit with; `recto context summary --text FILE` replaces a summary")
    text = edited(block.summary)
    if text is None:
        chat.tell("the summary is unchanged")
        return
    chat.tell(block_in_words(chat.talk.edit_summary(text)))


def pin(chat: ChatState, argument: str) -> None:
    if not argument:
        chat.offer("pin")
        chat.tell("/pin MESSAGE keeps one of them in every window, /pin last your last one")
        return
    message = _last(chat) if argument == LAST else chat.talk.message(argument)
    chat.resized(chat.talk.pin(message.id))
    chat.tell(f"pinned, in every window from now on: {_text(message)} (/unpin #{message.said} ends that)")


def _last(chat: ChatState) -> Message:
    found = next((message for message in chat.talk.path() if message.role == "user"), None)
    if found is None:
        raise Invalid("there is no message yet to pin")
    return found


def unpin(chat: ChatState, argument: str) -> None:
    if argument:
        message = chat.talk.message(argument)
        chat.resized(chat.talk.unpin(message.id))
        chat.tell(f"no longer pinned: {_text(message)}")
        return
    block = chat.talk.compaction()
    pinned = [chat.talk.message(id) for id in block.pinned] if block else []
    for message in pinned:
        chat.tell(f"#{message.said}  {_text(message)}")
    chat.tell("/unpin MESSAGE unpins one of them" if pinned else "nothing is pinned")


def priority(chat: ChatState, argument: str) -> None:
    named, _, number = argument.partition(" ")
    if not number.strip().isdecimal():
        raise Invalid("/priority takes a MESSAGE and a whole number from 1 to 10; /pin lists messages")
    message = chat.talk.message(named)
    chat.talk.set_priority(message.id, int(number))
    chat.tell(f"priority {int(number)}: {_text(message)}")


def strategy(chat: ChatState, argument: str) -> None:
    if argument:
        chat.talk.use_strategy(None if argument == FOLLOWS_SETTINGS else argument)
        # the option that the chat was started with would win over the conversation's choice
        chat.strategy = None if argument == FOLLOWS_SETTINGS else argument
    used = chat.talk.strategy_in_force(chat.strategy)
    chat.tell(strategy_in_words(chat.talk.strategy, used) + ("" if argument else "; /strategy NAME changes that"))


def _text(message: Message) -> str:
    return shortened(message.text, 60) or f"#{message.said}"
