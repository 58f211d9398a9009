"""The table of actions: what a user can do with a conversation, its window, its sources, and the memory.

An action names the method of a desk or a talk: the command line builds its commands and slash commands from this table,
and a page can build its menus. A new action is one entry, and if its result has a new shape, one drawing function per
door (`cli/drawing/results.py`). An action without `method` (asking first, streaming, a bar) has a function of its own
in each door.

Methods and results are names, so that reading the table imports nothing."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

from recto.chat.blocks import Compaction
from recto.chat.compaction_words import block_in_words
from recto.chat.message import Message
from recto.errors import Invalid
from recto.settings.strategy import STRATEGIES
from recto.sources.source import INCLUDES
from recto.store.fact import FACT_KINDS

Target = Literal["conversation", "next", "message", "named", "option", "session", "desk"]
"""The object of an action: a conversation (the latest unless one is named), that or a new one, a message of one, a
conversation that the method itself takes by name, one by an option, that or an agent by options, or nothing."""
Door = Literal["command", "slash", "page"]
FOLLOWS_SETTINGS = "default"
"""Makes a conversation follow agent, model and settings again."""


class Argument(Struct, frozen=True):
    name: str
    help: str = ""
    option: tuple[str, ...] = ()
    """The option of a command; without one the argument is positional."""
    kind: Literal["text", "number", "file"] = "text"
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    default: str | int | None = None
    metavar: str = ""
    takes: Literal["one", "words", "several"] = "one"


class Slash(Struct, frozen=True):
    help: str
    usage: str = ""
    """Capitals are values that the user chooses."""
    arguments: tuple[str, ...] = ("",)
    """For the examples, one each."""
    words: tuple[str, ...] = ()
    """Possible arguments, for completion."""


class Action(Struct, frozen=True):
    name: str
    """The group and the name; the last word is the slash command."""
    method: str = ""
    """`talk.pin`, `desk.rename`; empty if each door has its own function."""
    target: Target = "conversation"
    arguments: tuple[Argument, ...] = ()
    help: str = ""
    """The first paragraph says what it does."""
    example: str = ""
    shown: str = ""
    said: str = ""
    """A sentence with fields of the result in braces."""
    opens_vault: bool = False
    fixed: dict[str, Any] = {}
    slash: Slash | None = None

    @property
    def group(self) -> str:
        return self.name.rpartition(" ")[0]

    @property
    def word(self) -> str:
        return self.name.rpartition(" ")[2]

    @property
    def doors(self) -> set[Door]:
        """The page has the slash commands about the conversation it shows."""
        on_page = self.method and self.slash and self.target in ("conversation", "message")
        doors: dict[Door, object] = {"command": self.method, "slash": self.slash, "page": on_page}
        return {door for door, offers in doors.items() if offers}

    def typed(self, words: str) -> dict[str, Any]:
        """The last argument takes the rest of what was typed."""
        names = ["message"] * (self.target == "message") + [each.name for each in self.arguments]
        parts = words.split(maxsplit=len(names) - 1) if names else []
        numbers = [each.name for each in self.arguments if each.kind == "number"]
        given: dict[str, Any] = dict(zip(names, parts, strict=False))
        if len(given) < len(names) or (words and not names) or not all(given[each].isdecimal() for each in numbers):
            usage = self.slash.usage if self.slash else ""
            raise Invalid(f"/{self.word} takes {usage or 'nothing'}; /help {self.word} shows how to use it")
        return given | {each: int(given[each]) for each in numbers}

    def perform(self, desk: Any, talk: Any, given: dict[str, Any]) -> "Done":
        own = {argument.name: given[argument.name] for argument in self.arguments} | self.fixed
        named = {"message": ("message",), "named": ("conversation",)}.get(self.target, ())
        done = Done(self, desk, talk, given)
        done.result = attrgetter(self.method)(done)(*(given[name] for name in named), **own)
        return done


class Done(Struct):
    action: Action
    desk: Any
    talk: Any
    given: dict[str, Any]
    result: Any = None

    def sentence(self, message: Message | None, shortened: Callable[[str], str]) -> str:
        """`message` is the object of the action."""
        fields = self.given | {"talk": self.talk.name}
        if isinstance(self.result, Compaction):
            fields["compaction"] = block_in_words(self.result)
        if message:
            fields |= {"number": message.said, "text": shortened(message.text) or "the clear"}
        return self.action.said.format(**fields)


CHANGES = "[add NAME | remove NAME | mode NAME MODE | all]"
CHANGE_WORDS = ("add", "remove", "mode", "all")
KEY, VALUE = Argument("key"), Argument("value")
SOURCES = (Argument("names", metavar="ID...", takes="several"),)
KIND = Argument("kind", "The kind of fact.", ("--kind",), choices=FACT_KINDS)
FOR_MESSAGE = (
    Argument("text", "For this message (default: your last one).", ("--message",), default="", metavar="TEXT"),
)

ACTIONS = (
    Action("help", slash=Slash("list these commands", "[COMMAND]", ("", "pin"))),
    Action("context", slash=Slash("show what your next message would send, and why", "[TEXT]", ("", "Who owns her?"))),
    Action(
        "compact",
        slash=Slash("summarize all but the latest messages now; KEEP says what to keep", "[KEEP]", ("", "the prices")),
    ),
    Action(
        "context uncompact",
        "talk.uncompact",
        help="Take the newest compaction back: the messages it covered are in the window again, and later ones stay.",
        shown="undone compaction",
        slash=Slash("take back the newest compaction"),
    ),
    Action(
        "summary",
        slash=Slash(
            "show the summary of archived messages; edit changes it, lost lists what it leaves out",
            "[edit | lost]",
            ("", "lost"),
            ("edit", "lost"),
        ),
    ),
    Action(
        "conversations pin",
        "talk.pin",
        "message",
        help="Keep a message in every window from now on, however long the conversation gets.",
        example="57",
        shown="compaction",
        said="#{number} is pinned, in every window of {talk} from now on: {text}",
        slash=Slash("keep a MESSAGE in every window", "MESSAGE", ("1",)),
    ),
    Action(
        "conversations unpin",
        "talk.unpin",
        "message",
        help="Let a pinned message be archived like any other.",
        example="57",
        shown="compaction",
        said="#{number} is no longer pinned in {talk}: {text}",
        slash=Slash("let a pinned MESSAGE be archived again", "MESSAGE", ("1",)),
    ),
    Action(
        "conversations priority",
        "talk.set_priority",
        "message",
        (Argument("priority", kind="number", metavar="N"),),
        help="Set how much a message matters to the strategy hybrid, from 1 to 10.",
        example="57 9",
        shown="priority",
        said="#{number} has priority {priority} in {talk}: {text}",
        slash=Slash("MESSAGE N: how much a message matters to hybrid, from 1 to 10", "MESSAGE N", ("1 9",)),
    ),
    Action(
        "strategy",
        slash=Slash(
            "show what happens when the window is full; NAME changes it",
            "[NAME]",
            ("", "hybrid", FOLLOWS_SETTINGS),
            (*STRATEGIES, FOLLOWS_SETTINGS),
        ),
    ),
    Action(
        "context set",
        "talk.set_setting",
        "option",
        (KEY, VALUE),
        help="""Keep a context setting with a conversation (by default the latest), over your own and its agent's.

`context.` can be left out. Options such as --set still win.""",
        example="threshold 0.7",
        shown="setting",
        slash=Slash(
            "KEY VALUE: keep a setting with this conversation; alone, list its settings",
            "[KEY [VALUE]]",
            ("", "context.threshold 0.7", "context.threshold"),
        ),
    ),
    Action(
        "context unset",
        "talk.set_setting",
        "option",
        (KEY,),
        help="Let a conversation follow your own settings and its agent's again.",
        example="threshold",
        shown="setting",
        fixed={"value": None},
        slash=Slash("KEY: follow your own settings again", "KEY", ("context.threshold",)),
    ),
    Action(
        "history",
        slash=Slash("list the latest messages of this conversation by number; N says how many", "[N]", ("", "5")),
    ),
    Action(
        "conversations",
        slash=Slash("list conversations; WORDS search their titles and messages", "[WORDS]", ("", "boat")),
    ),
    Action("switch", slash=Slash("continue another conversation, by its number or title", "NAME", ("1",))),
    Action("search", slash=Slash("find messages by words and meaning, in all conversations", "WORDS", ("boat",))),
    Action(
        "rules",
        slash=Slash(
            "list rules; add, remove or mode NAME changes them",
            CHANGES,
            ("", "remove style", "add style", "mode style manual"),
            CHANGE_WORDS,
        ),
    ),
    Action(
        "references",
        slash=Slash(
            "the same for references, and list documents of the last turn; all: of all turns",
            CHANGES,
            ("", "all", "add prices"),
            CHANGE_WORDS,
        ),
    ),
    Action(
        "tools",
        slash=Slash(
            "the same for tools, as SERVER/NAME, and their servers; ask NAME takes an always back",
            CHANGES.replace("all]", "ask NAME | all]"),
            ("", "remove harbour/berth", "add harbour/berth", "ask harbour/berth"),
            (*CHANGE_WORDS, "ask"),
        ),
    ),
    Action(
        "sources add",
        "talk.add_sources",
        "option",
        SOURCES,
        help="""Add sources to a conversation.

Whatever their mode, they go with each of its messages until they are removed. If one cannot be added, none is.""",
        example="rule:style tool:github/create_issue",
        shown="sources",
        said="{source} is included from the next message on, in {talk}",
        opens_vault=True,
    ),
    Action(
        "sources remove",
        "talk.remove_sources",
        "option",
        SOURCES,
        help="""Remove sources from a conversation.

The agent keeps them: those that it always includes stay in other conversations. If one cannot be removed, none is.""",
        example="ref:api",
        shown="sources",
        said="{source} is no longer included, in {talk}",
        opens_vault=True,
    ),
    Action(
        "sources mode",
        "talk.set_include",
        "session",
        (Argument("named", metavar="ID"), Argument("mode", choices=INCLUDES)),
        help="""Change how a source is included, in its agent's file.

It is included always, by hand (manual), or when a message needs it (agent). tool:SERVER means all its tools.""",
        example="tool:github agent",
        shown="include",
        opens_vault=True,
    ),
    Action(
        "sources ask",
        "talk.ask_again",
        "option",
        (Argument("tool", metavar="TOOL"),),
        help="""Ask again before a tool runs.

Takes back an "always" that you gave in a conversation (by default the latest), for tool:SERVER/NAME or for all tools of
a SERVER.""",
        example="tool:github/create_issue",
        shown="approval",
        opens_vault=True,
    ),
    Action(
        "memory",
        slash=Slash(
            "show the memory that goes with your next message; add TEXT, forget N or WORDS to search",
            "[add TEXT | forget N | WORDS]",
            ("", "add I prefer short answers", "short answers", "forget 1"),
            ("add", "forget"),
        ),
    ),
    Action(
        "memory add",
        "desk.facts.learn",
        "desk",
        (
            Argument("text"),
            KIND,
            Argument("replaces", "The fact that it replaces.", ("--replaces",), "number", least=1, metavar="NUMBER"),
        ),
        help="Remember a fact.",
        example='"I prefer short answers" --kind preference',
        shown="learned",
    ),
    Action(
        "memory search",
        "desk.facts.search",
        "desk",
        (
            Argument("text", takes="words", metavar="WORDS..."),
            Argument("limit", "Show at most N.", ("--limit",), "number", 1, 100, default=10),
        ),
        help="Find facts by words and meaning.",
        example="where does Anna live",
        shown="facts found",
    ),
    Action(
        "memory show",
        "desk.facts.fact",
        "desk",
        (Argument("number", kind="number", least=1),),
        help="Show a fact: where it came from, how often it was used, what it said before.",
        example="1",
        shown="fact",
    ),
    Action(
        "memory import",
        "desk.facts.import_file",
        "desk",
        (Argument("file", kind="file", metavar="PATH"), KIND),
        help="Remember the facts of a Markdown or JSON file: items of lists, sentences, or what `export` wrote.",
        example="@notes/Welcome.md",
        shown="facts read",
    ),
    Action(
        "memory relevance",
        "talk.memory",
        "next",
        FOR_MESSAGE,
        help="Show which memory a conversation would get now, and why: files and facts, with tokens.",
        example='--message "Where does Anna live?"',
        shown="memory",
    ),
    Action(
        "context memory",
        "talk.memory",
        "next",
        FOR_MESSAGE,
        help="Show the memory that goes with the next message of a conversation: files and facts, with tokens.",
        shown="memory",
    ),
    Action(
        "document",
        slash=Slash(
            "send a note with every message: PATH, or none to close it",
            "[PATH | none]",
            ("", "Welcome.md", "none"),
            ("none",),
        ),
    ),
    Action(
        "attach",
        slash=Slash(
            "send an image, a PDF or a text FILE with your next message; none clears",
            "[FILE | none]",
            ("notes/Welcome.md", "", "none"),
            ("none",),
        ),
    ),
    Action(
        "conversations undo",
        "talk.undo",
        help="Take back the last message and its reply; both stay in the store.",
        shown="undone",
        said="taken back in {talk}: {text}",
        slash=Slash("take back your last message and its reply"),
    ),
    Action(
        "conversations fork",
        "talk.fork",
        "message",
        help="""Continue from an earlier message: the next one starts a branch there.

`recto conversations show --branches` lists the ends of branches, by id.""",
        example="4",
        shown="head",
        said="the next message of {talk} follows #{number}: {text}",
        slash=Slash("continue from an earlier MESSAGE, on a new branch", "MESSAGE", ("1",)),
    ),
    Action("branches", slash=Slash("list the ends of all branches; N continues at one of them", "[N]", ("", "1"))),
    Action(
        "edit",
        slash=Slash(
            "change a MESSAGE of yours and send it again, on a new branch; TEXT replaces it",
            "MESSAGE [TEXT]",
            ("1 Who owns the boat?",),
        ),
    ),
    Action("regenerate", slash=Slash("get another reply to your last message, by MODEL if you name one", "[MODEL]")),
    Action(
        "goal",
        slash=Slash(
            "work toward a goal by itself, over many steps; alone, show its plan",
            "[TEXT | continue [STEPS] | stop]",
            ("", "List the boats of my notes"),
            ("continue", "stop"),
        ),
    ),
    Action(
        "conversations rename",
        "desk.rename",
        "named",
        (Argument("title", takes="words", metavar="TITLE..."),),
        help="Give a conversation another title.",
        example="3 The new mast",
        shown="conversation",
        said="conversation #{number} is now called {title}",
        slash=Slash("give this conversation another TITLE", "TITLE", ("The boat",)),
    ),
    Action(
        "conversations hide",
        "desk.hide",
        "named",
        help="""Hide a conversation: it is no longer listed, but still searched.

`recto conversations list --hidden` lists them. A new message brings a conversation back.""",
        example="3",
        shown="conversation",
        said="conversation #{number} is hidden; `recto conversations unhide {number}` brings it back: {title}",
        slash=Slash("no longer list this conversation; it is still searched"),
    ),
    Action(
        "conversations unhide",
        "desk.unhide",
        "named",
        help="List a hidden conversation again.",
        example="3",
        shown="conversation",
        said="conversation #{number} is listed again: {title}",
    ),
    Action(
        "conversations delete",
        "desk.delete",
        "named",
        help="""Move a conversation to the trash: it is not listed, not searched and not continued.

`recto conversations list --trash` lists the trash. Nothing is removed before `empty-trash`.""",
        example="3",
        shown="conversation",
        said="conversation #{number} is in the trash; `recto conversations restore {number}` brings it back: {title}",
        slash=Slash("move this conversation to the trash, and start a new one"),
    ),
    Action(
        "conversations restore",
        "desk.restore",
        "named",
        help="Bring a conversation back from the trash.",
        example="3",
        shown="conversation",
        said="conversation #{number} is back: {title}",
    ),
    Action(
        "export",
        slash=Slash(
            "write this conversation to a FILE: .md or .html to read, .jsonl to import again",
            "[FILE]",
            ("", "talk.html", "talk.jsonl"),
        ),
    ),
    Action("model", slash=Slash("show which model answers; NAME changes it", "[NAME]", ("", "embedded:smollm2"))),
    Action(
        "context clear",
        "talk.clear",
        help="Start over with an empty window; every message stays in the store.",
        shown="compaction",
        said="{talk}: {compaction}",
        slash=Slash("start with an empty window; nothing is deleted"),
    ),
    Action("request", slash=Slash("show what was sent last, or for a MESSAGE, and why", "[MESSAGE]", ("", "2"))),
    Action(
        "waiting",
        slash=Slash(
            "list messages typed while a reply came that were not sent; drop takes back the last",
            "[drop]",
            ("", "drop"),
            ("drop",),
        ),
    ),
    Action("cost", slash=Slash("show what this conversation and today have cost")),
    Action(
        "thinking",
        slash=Slash(
            "on or off: show the model's thinking before it answers", "[on | off]", ("on", "off"), ("on", "off")
        ),
    ),
    Action("quit", slash=Slash("leave the chat")),
)
BY_NAME = {action.name: action for action in ACTIONS}


def offered(door: Door, group: str | None = None) -> Iterator[Action]:
    return (each for each in ACTIONS if door in each.doors and group in (None, each.group))
