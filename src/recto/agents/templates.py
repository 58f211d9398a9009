"""Templates: prompts with variables in files: the user's `templates/NAME.md`, and a project's
`.recto/templates/NAME.md`."""

from collections.abc import Mapping
from pathlib import Path
from string import Template as Pattern

from msgspec import Struct

from recto.errors import Invalid, NotFound
from recto.vault.decoding import decode_text
from recto.vault.document import Document

FOLDER, ENDING = "templates", ".md"
INPUT = "input"
"""The variable for the question and the piped input."""
MAX_BYTES = 1_000_000


class Template(Struct, frozen=True):
    name: str
    text: str
    description: str = ""
    system: str = ""
    model: str = ""
    """Empty for a project's template, since a project must not decide who receives the user's words."""
    defaults: Mapping[str, str] = {}
    note: str = ""

    @property
    def variables(self) -> list[str]:
        return [name for name in Pattern(self.text).get_identifiers() if name != INPUT]

    def fill(self, values: Mapping[str, str], given: str) -> str:
        """Fill in the prompt. The input goes last if the template does not place it. Raises Invalid for an unknown
        variable, or one without a value."""
        if unknown := [name for name in values if name not in self.variables]:
            known = ", ".join(self.variables)
            there_are = f"; it has: {known}" if known else f", nor any other: ${unknown[0]} would be one"
            raise Invalid(f"the template {self.name} has no variable {unknown[0]}{there_are}", name=unknown[0])
        known_values = {**self.defaults, **values}
        if missing := [name for name in self.variables if name not in known_values]:
            raise Invalid(f"the template {self.name} needs a value: -p {missing[0]}=…", name=missing[0])
        if INPUT in Pattern(self.text).get_identifiers():
            return Pattern(self.text).substitute({**known_values, INPUT: given})
        text = Pattern(self.text).substitute(known_values).strip()
        return f"{text}\n\n{given}" if given.strip() else text


def template_names(home: Path, project: Path | None) -> list[str]:
    found = {path.stem for folder in _folders(home, project) if folder.is_dir() for path in folder.glob(f"*{ENDING}")}
    return sorted(found)


def read_template(name: str, home: Path, project: Path | None) -> Template:
    """Read a template by name, the project's first."""
    for folder in _folders(home, project):
        path = folder / f"{name}{ENDING}"
        if "/" not in name and "\\" not in name and path.is_file():
            return _read(name, path, is_users=folder.parent == home)
    known = ", ".join(template_names(home, project))
    hint = f"there are: {known}" if known else f"a file {FOLDER}/{name}{ENDING} in {home} would be one"
    raise NotFound(f"there is no template {name}; {hint}", name=name)


def _folders(home: Path, project: Path | None) -> list[Path]:
    return [*([project / ".recto" / FOLDER] if project else []), home / FOLDER]


def _read(name: str, path: Path, *, is_users: bool) -> Template:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as why:
        raise Invalid(f"the template {name} cannot be read: {why.strerror}", path=str(path)) from why
    if len(data) > MAX_BYTES:
        raise Invalid(f"the template {name} has more than a megabyte", path=str(path))
    document = Document(path.name, decode_text(data, path.name))
    said = document.parsed.properties
    text = document.text[document.parsed.body_start :].strip()
    if not Pattern(text).is_valid():
        raise Invalid(f"the template {name} has a lone $: write $$ for a dollar sign", path=str(path))
    defaults, values = (
        said.get("defaults"),
        {key: str(value).strip() for key, value in said.items() if value is not None},
    )
    return Template(
        name,
        text,
        values.get("description", ""),
        values.get("system", ""),
        values.get("model", "") if is_users else "",
        {str(key): str(value) for key, value in defaults.items()} if isinstance(defaults, dict) else {},
        "" if is_users or "model" not in said else f"the template {name} is the project's: its model is ignored",
    )
