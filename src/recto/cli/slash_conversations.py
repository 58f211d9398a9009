"""Slash commands about conversations: find one, switch to it, branch, rename, put away; edit a message, reply again."""

import re
from pathlib import Path
from typing import cast

from recto.cli import options
from recto.cli.agent_run import follow_run
from recto.cli.chat_state import ChatState
from recto.cli.drawing.plans import plan_tree
from recto.cli.drawing.transcripts import branch_in_words
from recto.cli.listener import follow
from recto.cli.questions import said_yes
from recto.cli.show import counted, shortened, when
from recto.cli.terminal import edited
from recto.cli.transfer import SUFFIXES
from recto.cli.trash import titled
from recto.errors import Invalid, NotFound
from recto.transfer.report import EXPORT_FORMATS, ExportFormat

# Messages, and conversations, that are listed where nobody says how many.
MESSAGES, CONVERSATIONS = 20, 15
# Of a title, in the name of an exported file.
LONGEST_NAME = 60
JSON_SUFFIXES = (".json", ".jsonl")


def history(chat: ChatState, argument: str) -> None:
    if argument and not (argument.isdecimal() and argument.isascii() and int(argument) > 0):
        raise Invalid("/history takes how many messages to list, or nothing")
    chat.offer("list", int(argument) if argument else MESSAGES)


def conversations(chat: ChatState, argument: str) -> None:
    with chat.console.status("searching…"):
        found = (
            chat.desk.find_conversations(argument, limit=CONVERSATIONS)
            if argument
            else chat.desk.conversations(limit=CONVERSATIONS)
        )
    width = max((len(f"#{each.number}") for each in found), default=0)
    for each in found:
        mark = "*" if each.number == chat.talk.number else " "
        head = f"{mark} {f'#{each.number}':>{width}}  {when(each.updated)}  {each.messages:>5}  "
        chat.tell_row(head, titled(each))
    if found:
        chat.tell("/switch NAME continues one of them, by its number or title")
    else:
        chat.tell("no conversation was found" if argument else "there is no conversation yet")


def switch(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/switch takes the number or title of a conversation; /conversations lists them")
    found = chat.desk.conversation(argument, as_left=True)
    if found.id == chat.talk.id:
        raise Invalid(f"this is {found.name} already")
    chat.switch(found)
    chat.tell(chat.greeting())
    chat.recall_end()


def branches(chat: ChatState, argument: str) -> None:
    ends = chat.talk.branches()
    if not ends:
        raise NotFound("there is no branch yet: the conversation has no message")
    if argument:
        place = int(argument) if argument.isdecimal() else 0
        if not 0 < place <= len(ends):
            raise NotFound(f"there is no branch {argument}; there are {len(ends)}: /branches lists them")
        end = ends[place - 1].message
        chat.talk.fork(end.id)
        chat.tell(f"the next message follows #{end.said}: {shortened(branch_in_words(end), 60)}")
        return
    for number, each in enumerate(ends, 1):
        mark, leaf = "*" if each.is_head else " ", each.message
        chat.tell_row(f"{mark} {number:>2}  {when(leaf.created)}  #{leaf.said:<3}  ", branch_in_words(leaf))
    if len(ends) > 1:
        chat.tell("/branches N continues at the end of one of them")


def edit(chat: ChatState, argument: str) -> None:
    named, _, text = argument.partition(" ")
    if not named:
        chat.offer("edit")
        chat.tell("/edit MESSAGE changes one of yours; TEXT behind it replaces its text at once")
        return
    message = chat.talk.message(named)
    wanted = text.strip() or (_from_editor(message.text) if message.role == "user" else message.text)
    if wanted is None:
        chat.tell("the message is unchanged")
        return
    listener = chat.listener()
    events = chat.talk.stream_edit(message.id, wanted, can_ask=listener.answers, strategy=chat.strategy)
    follow(events, listener, chat.watch)


def _from_editor(text: str) -> str | None:
    if not options.has_keyboard():
        raise Invalid("there is no keyboard to edit with: /edit MESSAGE TEXT gives the new text")
    return edited(text)


def regenerate(chat: ChatState, argument: str) -> None:
    listener = chat.listener()
    model = argument or None
    events = chat.talk.stream_regenerate(model=model, can_ask=listener.answers, strategy=chat.strategy)
    follow(events, listener, chat.watch)


def goal(chat: ChatState, argument: str) -> None:
    """Works toward a goal; alone, shows the plan of the last one."""
    if argument == "stop":
        _stop_goal(chat)
    elif argument:
        if chat.is_at_terminal:
            chat.ask_trust()
        listener = chat.listener()
        going_on = re.fullmatch(r"continue(?:\s+(\d{1,5}))?", argument)
        steps = int(going_on[1]) if going_on and going_on[1] else None
        text = None if going_on else argument
        events = chat.talk.stream_goal(text, max_steps=steps, can_ask=listener.answers, strategy=chat.strategy)
        follow_run(events, listener, chat.talk, chat.watch)
    elif run := chat.talk.last_run():
        for line in plan_tree(run.goal, run.plan):
            chat.tell(line)
        because = f": {run.because}" if run.because else ""
        status = "interrupted" if run.status == "running" else run.status
        chat.tell(f"{status}{because}; {run.steps} of {run.max_steps} steps used")
    else:
        chat.tell("there is no goal yet: /goal TEXT begins to work toward one")


def _stop_goal(chat: ChatState) -> None:
    """A run that is going on is stopped by `ChatState.take`: this command would come after it."""
    run = chat.talk.last_run()
    if run is None or run.status == "done":
        raise Invalid("no goal is being worked on")
    chat.tell(f"no run is going on; the last one is {run.status}: /goal continue goes on with it")


def export(chat: ChatState, argument: str) -> None:
    """Writes the conversation to a file, by default as Markdown and named by its title."""
    first, _, rest = argument.partition(" ")
    format, named = (first, rest.strip()) if first in EXPORT_FORMATS else ("", argument)
    file = Path(named).expanduser() if named else _export_name(chat, format or "markdown")
    form = cast(ExportFormat, format or _form_of(named, file))
    if file.is_dir():
        raise Invalid(f"{file} is a folder: name a file in it", path=str(file))
    if file.exists() and not _may_replace(chat, file):
        chat.tell(f"{file} is left as it is; /export FILE takes another name")
        return
    chat.tell(f"written to {chat.desk.export(file, _stored(chat), format=form)}")


def _form_of(named: str, file: Path) -> str:
    """The form that a file's name asks for; Invalid where it may be meant as a form that there is not."""
    suffix = file.suffix.lower()
    is_known = suffix in SUFFIXES or suffix in JSON_SUFFIXES or file.is_dir()
    if not is_known and (suffix or (file.name == named and " " not in named)):
        forms = ", ".join(EXPORT_FORMATS)
        raise Invalid(f"there is no format {suffix[1:] or named}: /export takes {forms}, and behind it any FILE")
    return SUFFIXES.get(suffix, "json")


def _export_name(chat: ChatState, format: str) -> Path:
    suffix = {"markdown": ".md", "html": ".html", "json": ".jsonl"}[format]
    words = re.findall(r"\w+", chat.talk.title or f"conversation {chat.talk.number}")
    return Path("-".join(words)[:LONGEST_NAME] + suffix)


def _may_replace(chat: ChatState, file: Path) -> bool:
    if not chat.is_at_terminal:
        raise Invalid(f"{file} exists already: /export FILE takes another name", path=str(file))
    return said_yes(chat.console, f"{file} exists already. Replace it? [y]es / [N]o ")


def rename(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/rename takes the new title of this conversation")
    chat.tell(f"{chat.talk.name} is now called {chat.desk.rename(_stored(chat), argument).title}")


def archive(chat: ChatState, argument: str) -> None:
    chat.desk.archive(_stored(chat))
    chat.tell(f"{chat.talk.name} is archived: no longer listed, still searched; a new message brings it back")


def delete(chat: ChatState, argument: str) -> None:
    """Moves the conversation to the trash, and begins a new one."""
    if argument:
        raise Invalid("/delete takes nothing: it is about this conversation; /switch goes to another one")
    deleted = chat.desk.delete(_stored(chat))
    chat.switch(chat.desk.conversation(agent=chat.talk.agent.name))
    how = f"`recto conversations restore {deleted.number}` brings it back"
    chat.tell(f"conversation #{deleted.number} ({counted(deleted.messages, 'message')}) is in the trash; {how}")
    chat.tell("this is a new conversation")


def _stored(chat: ChatState) -> str:
    if chat.talk.id is None:
        raise Invalid("this conversation is new: there is nothing in it yet")
    return chat.talk.id
