"""`recto completion`: a script for the shell, and the names that it completes. Imports nothing heavy."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from recto.cli import show
from recto.errors import RectoError

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_RECTO_COMPLETE"
TITLE_WIDTH = 60
# Most conversations offered.
MOST = 50

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script that lets your shell complete commands, options and names.

    bash: put `eval "$(recto completion bash)"` into ~/.bashrc. zsh: the same with zsh into ~/.zshrc, below compinit.
    fish: recto completion fish > ~/.config/fish/completions/recto.fish

    Example: recto completion bash
    """
    known = get_completion_class(shell)
    assert known is not None
    script = known(click.Command("recto"), {}, "recto", VARIABLE)
    # not source(), which starts a bash to learn its version
    text = script.source_template % script.source_vars()
    show.hand_over(_for_names(text) if shell == "bash" else text)


def _for_names(script: str) -> str:
    """Patch the bash script, which would split model names at their colon and insert titles without quotes."""
    quoted = script.replace("COMPREPLY+=($value)", """COMPREPLY+=("$(printf '%q' "$value")")""")
    return quoted.replace("read type value", "read -r type value") + "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n"


def _offering(find: Callable[[], Iterable[tuple[str, str]]]) -> Complete:
    """Complete with names and a word about each. Failures offer nothing: the command itself reports them."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(RectoError, OSError):
            return [
                CompletionItem(name, help=show.shortened(about, TITLE_WIDTH) or None)
                for name, about in find()
                if name.lower().startswith(incomplete.lower()) and name.isprintable()
            ]
        return []

    return complete


def _conversations() -> Iterable[tuple[str, str]]:
    from recto.api.conversation_list import latest_conversations
    from recto.base import locations  # only to complete, as everything below

    store = locations.find_store(locations.find_home())
    found = latest_conversations(MOST) if isinstance(store, str) or store.is_file() else []
    yield from ((str(each.number), each.title) for each in found)
    yield from ((each.title, f"#{each.number}") for each in found if each.title)


def _agents() -> Iterable[tuple[str, str]]:
    from recto.agents.agents import Agents
    from recto.base import locations

    home = locations.find_home()
    return [(name, "") for name in Agents(home, locations.find_project(Path.cwd(), home)).names()]


def _models() -> Iterable[tuple[str, str]]:
    from recto.base import locations
    from recto.providers.catalog import ModelCatalog

    return [(name, "") for name in ModelCatalog(locations.find_home(), locations.find_project(Path.cwd())).described()]


def _settings() -> Iterable[tuple[str, str]]:
    from recto.settings.settings import specs

    return [(spec.key, spec.help) for spec in specs()]


def _assignments() -> Iterable[tuple[str, str]]:
    return [(f"{key}=", help) for key, help in _settings()]


def _strategies() -> Iterable[tuple[str, str]]:
    from recto.settings.strategy import STRATEGIES

    return [(name, "") for name in STRATEGIES]


conversations, agents, models = _offering(_conversations), _offering(_agents), _offering(_models)
settings, assignments, strategies = _offering(_settings), _offering(_assignments), _offering(_strategies)
