"""docs/commands.md and docs/commands/: every command as it describes itself, and the commands of the chat."""

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

import click

from recto.cli.main import COMMANDS, recto
from recto.cli.slash import COMMANDS as SLASH_COMMANDS

EXAMPLE = re.compile(r"^Example: (.*)$", re.MULTILINE)
MORE = {
    "chat": ("chat.md",),
    "web": ("page.md",),
    "ask": ("chat.md", "models.md"),
    "conversations": ("chat.md", "search.md"),
    "context": ("compaction.md", "tokens.md", "transfer.md"),
    "request": ("sources.md",),
    "sources": ("sources.md",),
    "agent": ("sources.md", "agent-mode.md"),
    "vault": ("vault.md",),
    "store": ("troubleshooting.md",),
    "config": ("settings.md",),
    "models": ("models.md",),
    "keys": ("models.md",),
    "serve": ("serve.md", "models.md"),
    "mcp": ("serve.md", "vault.md", "memory.md"),
}
"""The pages that explain what a command works on."""
INDEX = """\
# Commands

`make docs` writes this page and the pages of `docs/commands/` from the code. `recto COMMAND --help` prints the same.
Every example on these pages is run by a test.

| command | what it does |
|---|---|
{rows}

`recto "QUESTION"`, `recto @AGENT "QUESTION"` and `recto --model NAME "QUESTION"` mean `recto ask`.

| option before the command | meaning |
|---|---|
{options}

## Exit codes
| code | meaning |
|---|---|
| 0 | the command did what it says |
| 1 | an error: one sentence on stderr says what happened and what to do; also a check that found something wrong |
| 2 | a wrong option, argument or command |
| 130 | stopped with Ctrl-C; the part received is kept |

With `--json`, stdout has JSON only, one object a line, and an error is `{{"error": {{"type", "message"}}}}` on stderr.
The types are those of [python.md](python.md), `Usage` for code 2, and `Bug`.

## In the chat
[commands/slash.md](commands/slash.md) lists the commands that you type in the chat.
"""
SLASH = """\
# Commands in the chat

A line that begins with `/` is a command; `//` sends a message that begins with a slash. `/help` prints this list.
MESSAGE is a number that `/history` lists, such as `#12` or `12`, or an id. The same commands work in a pipe:
```sh
printf 'Which boat is it?\\n/history\\n/cost\\n/quit\\n' | recto chat
```

| command | what it does | examples |
|---|---|---|
{rows}

[chat.md](../chat.md) explains conversations and branches, [compaction.md](../compaction.md) summaries and pins,
[sources.md](../sources.md) rules, references and tools, and [models.md](../models.md) models and costs.
"""


class Described(NamedTuple):
    """A command with the words that call it."""

    words: str
    command: click.Command

    @property
    def text(self) -> str:
        """The help text without its examples."""
        return re.sub(r"\n{2,}", "\n\n", EXAMPLE.sub("", inspect.cleandoc(self.command.help or ""))).strip()

    @property
    def examples(self) -> list[str]:
        return EXAMPLE.findall(inspect.cleandoc(self.command.help or ""))

    @property
    def context(self) -> click.Context:
        return click.Context(self.command, info_name=self.words)


def all_commands() -> Iterator[Described]:
    """Those that do something, group by group."""
    for name in COMMANDS:
        yield from described(name)


def described(name: str) -> Iterator[Described]:
    command = recto.get_command(click.Context(recto), name)
    assert command is not None
    yield from _inner(f"recto {name}", command)


def _inner(words: str, command: click.Command) -> Iterator[Described]:
    """The command itself where it does something, and those below it."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield Described(words, command)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from _inner(f"{words} {name}", found)


def command_pages() -> dict[str, str]:
    """The texts by their paths below docs/."""
    pages = {f"commands/{name}.md": _page(name) for name in COMMANDS}
    return {"commands.md": _index(), "commands/slash.md": _slash()} | pages


def _index() -> str:
    rows = "\n".join(f"| [recto {name}](commands/{name}.md) | {help} |" for name, help in COMMANDS.items())
    return INDEX.format(rows=rows, options=_options(Described("recto", recto)))


def _slash() -> str:
    rows = (
        f"| `/{name}` | {_cell(each.help)} | {', '.join(f'`{_cell(line)}`' for line in each.examples)} |"
        for name, each in SLASH_COMMANDS.items()
    )
    return SLASH.format(rows="\n".join(rows))


def _page(name: str) -> str:
    group = recto.get_command(click.Context(recto), name)
    assert group is not None
    parts = [f"# recto {name}\n"]
    found = list(described(name))
    if isinstance(group, click.Group):
        rows = (f"| [{each.words}](#{each.words.replace(' ', '-')}) | {_first(each)} |" for each in found)
        parts.append(
            f"{Described(name, group).text}\n\n| command | what it does |\n|---|---|\n" + "\n".join(rows) + "\n"
        )
        parts += [f"## {each.words}\n{_body(each)}" for each in found]
    else:
        parts.append(_body(found[0]))
    pages = ["[all commands](../commands.md)", *(f"[{page}](../{page})" for page in MORE.get(name, ()))]
    end = f"See also: {', '.join(pages)}. Exit codes are [the same for all commands](../commands.md#exit-codes).\n"
    return "\n".join([*parts, end])


def _first(each: Described) -> str:
    """The first sentence of a description."""
    return _cell(re.split(r"(?<=\.)\s", " ".join(each.text.split()))[0])


def _body(each: Described) -> str:
    usage = " ".join([each.words, *each.command.collect_usage_pieces(each.context)])
    examples = "\n".join(each.examples)
    options = _options(each)
    table = f"\n| option | meaning |\n|---|---|\n{options}\n" if options else ""
    return f"{each.text}\n\n```\n{usage}\n```\n{table}\nExample:\n```sh\n{examples}\n```\n"


def _options(each: Described) -> str:
    context = each.context
    records = [param.get_help_record(context) for param in each.command.get_params(context)]
    told = [(names, help) for names, help in filter(None, records) if help and "--help" not in names]
    return "\n".join(f"| `{names}` | {_cell(help)} |" for names, help in told)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
