"""`recto keys`: keys of providers, stored, listed by where they come from, and removed. No key is ever shown."""

import os
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from recto.base import locations
from recto.cli import options, show
from recto.errors import Invalid, NotFound

if TYPE_CHECKING:
    from recto.settings.keys import KeyStore

# No provider has a longer name, and every key is longer.
LONGEST_NAME = 32


@click.group()
def command() -> None:
    """Store keys of providers, list where they come from, remove them.

    Example: recto keys set openai
    """


def _store() -> "KeyStore":
    from recto.settings.keys import KeyStore  # only where keys are

    return KeyStore(locations.find_home())


def _variable(provider: str) -> str:
    """The variable of a provider's key. Raises NotFound, which repeats no key that was typed in place of a name."""
    from recto.providers.registry import key_variables  # all providers: a quarter of a second

    if len(provider) > LONGEST_NAME:
        raise Invalid("this is not a provider's name; `recto keys set NAME` asks for the key itself")
    known = key_variables(os.environ)
    if (name := provider.lower()) in known:
        return known[name]
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    raise NotFound(f"there is no provider {provider} that takes a key; {hint}", provider=provider)


@command.command("set")
@click.argument("provider")
@click.argument("more", nargs=-1, metavar="")
@options.as_json_option
def set_key(provider: str, more: tuple[str, ...], as_json: bool) -> None:
    """Store the key of a provider. Recto asks for it, or reads it from a pipe; it is never an argument.

    Recto puts it into the system's keyring, if the package keyring is installed and there is one, else into a file in
    RECTO_HOME that only you can read.

    Example: recto keys set openai
    """
    if more:
        raise click.UsageError("A key is never an argument, since others can read those: leave it out, and paste it.")
    variable = _variable(provider)
    place = _store().put(variable, _typed_key(provider))
    is_hidden = bool(os.environ.get(variable, "").strip())
    if as_json:
        show.emit({"provider": provider.lower(), "variable": variable, "from": place, "used": not is_hidden})
        return
    where = "the system's keyring" if place == "keyring" else f"{locations.find_home() / 'keys.json'}, for you alone"
    show.say(f"the key of {provider.lower()} is stored in {where}")
    if is_hidden:
        show.note(f"{variable} is set in the environment, and wins")


def _typed_key(provider: str) -> str:
    if options.has_keyboard():
        typed: str = click.prompt(f"Key of {provider} (it is not shown)", hide_input=True, err=True)
        return typed
    raw = sys.stdin.buffer.read(10_000) if sys.stdin else b""
    return raw.decode("utf-8", "replace")


@command.command("list")
@options.as_json_option
def list_keys(as_json: bool) -> None:
    """List the providers that have a key, and where it comes from. No part of a key is shown.

    Example: recto keys list
    """
    from recto.providers.registry import key_variables  # all providers: a quarter of a second

    places, found = _store().places(), False
    for provider, variable in key_variables(os.environ).items():
        set_here = [name for name in (f"RECTO_{variable}", variable) if os.environ.get(name, "").strip()]
        place = "environment" if set_here else places.get(variable)
        if place is None:
            continue
        found = True
        if as_json:
            show.emit({"provider": provider, "variable": variable, "from": place})
        else:
            also = f", not the one in the {places[variable]}" if set_here and variable in places else ""
            where = f"environment ({set_here[0]}){also}" if set_here else place
            show.say(f"{provider:<12}  {where}")
    if not found and not as_json:
        show.note("there is no key; `recto keys set NAME` stores one, or set a variable such as OPENAI_API_KEY")


@command.command("remove")
@click.argument("provider")
@options.as_json_option
def remove(provider: str, as_json: bool) -> None:
    """Remove the stored key of a provider.

    Example: recto keys remove openai
    """
    variable = _variable(provider)
    if not _store().remove(variable):
        raise NotFound(f"no key of {provider.lower()} is stored; `recto keys list` shows those that there are")
    if as_json:
        show.emit({"provider": provider.lower(), "variable": variable})
    else:
        show.say(f"the key of {provider.lower()} is removed")
    if os.environ.get(variable, "").strip():
        show.note(f"{variable} is still set in the environment")
