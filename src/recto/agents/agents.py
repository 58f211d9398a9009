"""Agents: read from their folders, in the user's home and in the project, at every turn: what has not changed is not
read again, and nothing that is wrong in one file ends a chat."""

import os
import threading
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from recto import settings as configuration
from recto import toml_file
from recto.agents.agent import DEFAULT, Agent
from recto.agents.agent_file import PROMPTS, SILENT, AgentFile, check, read_agent_file, read_mcp_file, spec_of
from recto.agents.agent_text import meant, with_include, with_setting, without_setting
from recto.agents.built_in import BUILT_IN
from recto.agents.front import key_of, read_sheet
from recto.agents.layers import Layer, assemble
from recto.agents.place import ALLOWED, FOLDER, SHARED, Place, Sight, check_name, is_name
from recto.agents.readings import Entry, Readings, entry_of
from recto.agents.suiting import laid, suited
from recto.errors import Invalid, NotFound
from recto.settings import Settings
from recto.sources.source import INCLUDES, OWN, Include, Reference, Rule, SourceId
from recto.vault.decoding import text_of

FILE = "agent.toml"


def apply(settings: Settings, agent: Agent) -> Settings:
    """The settings with the agent's context on top; what was given by option still wins, and what does not suit them
    is left out."""
    return laid(settings, suited(settings, agent))


class Agents:
    """Those of a home and a project, over these settings. May be asked from several threads."""

    def __init__(self, home: Path, project: Path | None, settings: Settings | None = None) -> None:
        self.home, self.project = home, project
        self._settings = settings or Settings()
        self._readings = Readings()
        self._known: dict[str, tuple[tuple[Sight, ...] | None, Agent]] = {}
        self._lock = threading.Lock()

    @property
    def places(self) -> tuple[Place, ...]:
        """The weakest first. A home that lies in the project is still the home."""
        yours = Place(self.home, self.home, True)
        if self.project is None or os.path.realpath(self.project / ".recto") == os.path.realpath(self.home):
            return (yours,)
        return (yours, Place(self.project / ".recto", self.project, False))

    # -- which there are

    def names(self) -> list[str]:
        """`default` first, the others by name."""
        found = {name for place in self.places for name in place.names() if is_name(name)}
        return [DEFAULT, *sorted(found - {DEFAULT})]

    def strays(self) -> list[str]:
        """Folders among the agents whose names nobody could say, a sentence each."""
        found = [(place, name) for place in self.places for name in place.names()]
        return [
            f"{place.agent(name)} is no agent: in its name {ALLOWED}"
            for place, name in found
            if not is_name(name) and not name.startswith(".")
        ]

    def check(self, name: str) -> None:
        """NotFound unless there is such an agent; `default` is there without any file."""
        check_name(name)
        if name != DEFAULT and not self.folders(name):
            near = get_close_matches(name, self.names(), 1)
            hint = f"did you mean {near[0]}?" if near else f"it would be in {FOLDER}/{name}/{FILE}"
            raise NotFound(f"there is no agent {name}: {hint}", name=name)

    def folders(self, name: str) -> list[tuple[Place, Path]]:
        """Where it has one, the weakest first."""
        return [(place, place.agent(name)) for place in self.places if place.has(name)]

    # -- reading

    def read(self, name: str) -> Agent:
        """As its files say now. NotFound or Invalid for the name alone; whatever is wrong in the files is a note."""
        self.check(name)
        with self._lock:
            seen = tuple(self._look(place, name) for place in self.places)
            before, agent = self._known.get(name, (None, Agent(name)))
            if seen != before:
                is_settled = all(entry.is_settled for sight in seen for entry in sight.entries)
                layers = [self._layer(place, sight) for place, sight in zip(self.places, seen, strict=True)]
                agent = suited(self._settings, assemble(name, layers))
                self._known[name] = (seen if is_settled else None, agent)
            return agent

    def last(self, name: str) -> Agent:
        """The same, for a conversation that goes on: an agent that is gone is as it was last read here, or bare."""
        try:
            return self.read(name)
        except (Invalid, NotFound) as why:
            known = self._known.get(name)
            agent = known[1] if known else Agent(name)
            gone = f"the agent {name} is gone" if isinstance(why, NotFound) else why.message
        return replace(agent, notes=(*agent.notes, f"{gone}: {self._goes_on(name, bool(known))}"))

    def _goes_on(self, name: str, is_known: bool) -> str:
        """How a conversation whose agent is gone goes on, and where the agent may be."""
        wanted = " or ".join(str(place.agent(name)) for place in self.places)
        if is_known:
            return f"it goes on as it was; its folder would be {wanted}"
        return (
            f"the conversation goes on without its rules, references and tools, and {self._settings.model} answers "
            f"unless a model was chosen for it; its folder would be {wanted}, or in another project: then run it from "
            "there"
        )

    def said(self, name: str) -> dict[str, tuple[Any, str]]:
        """What its agent.toml files say by dotted key, as it is written there, each with the file that counts."""
        self.check(name)
        found: dict[str, tuple[Any, str]] = {}
        for place in self.places:
            entry = entry_of(place.agent(name) / FILE)
            values = self._agent_file(place, entry).values if entry else {}
            if any(key in values for key in PROMPTS):
                found = {key: value for key, value in found.items() if key not in PROMPTS}
            found |= {key: (value, str(place.agent(name) / FILE)) for key, value in values.items()}
        return found

    def whose(self, path: str | Path) -> str:
        """`user` or `project`: where a file of an agent lies."""
        theirs = self.places[-1]
        is_theirs = Path(path).is_relative_to(theirs.folder) or Path(path) == theirs.root / SHARED
        return "project" if is_theirs and not theirs.is_yours else "user"

    def _look(self, place: Place, name: str) -> Sight:
        folder, notes = place.agent(name), list[str]()
        file, shared = entry_of(folder / FILE), entry_of(place.root / SHARED)
        prompt = self._prompt(place, folder, file, notes) if file else None
        rules, references = (place.sheets(folder / part, notes) for part in ("rules", "references"))
        return Sight(file, shared, prompt, rules, references, tuple(notes))

    def _prompt(self, place: Place, folder: Path, file: Entry, notes: list[str]) -> Entry | None:
        said = self._agent_file(place, file).values.get("system_prompt_file")
        if not said:
            return None
        path = folder / os.path.expanduser(said)
        if not place.holds(path):
            notes.append(f"{file.path}: system_prompt_file leads out of the project: {path} is not read")
            return None
        entry = entry_of(path)
        if entry is None:
            notes.append(f"{file.path}: cannot read the system prompt file {path}: there is no such file")
        return entry

    def _layer(self, place: Place, sight: Sight) -> Layer:
        of = self._readings.of
        notes = list(sight.notes)
        shared = partial(read_mcp_file, is_yours=place.is_yours)
        return Layer(
            file=self._agent_file(place, sight.file) if sight.file else SILENT,
            shared=of(sight.shared, SHARED, shared) if sight.shared else SILENT,
            prompt=_noted(of(sight.prompt, "prompt", _prompt_text), notes) if sight.prompt else None,
            rules=tuple(of(entry, Rule.kind, partial(read_sheet, Rule)) for entry in sight.rules),
            references=tuple(of(entry, Reference.kind, partial(read_sheet, Reference)) for entry in sight.references),
            notes=tuple(notes),
        )

    def _agent_file(self, place: Place, entry: Entry) -> AgentFile:
        return self._readings.of(entry, FILE, partial(read_agent_file, is_yours=place.is_yours))

    # -- writing

    def set_include(self, name: str, id: SourceId | str, include: Include) -> Path:
        """Writes how a source of the agent comes in, and says where: a source by its id, a server by its name alone."""
        agent = self.read(name)
        if include not in INCLUDES:
            raise Invalid(f"{include!r} is not allowed; it takes {' or '.join(INCLUDES)}", include=include)
        servers = {OWN, *(server.name for server in agent.servers)}
        id = SourceId("tool", "", id) if isinstance(id, str) and id in servers else id
        id = meant(id, servers) if isinstance(id, str) else id
        path = self.file(name, self._home_of(agent, id))
        toml_file.write(path, with_include(configuration.file_text(path), path, id, include, servers))
        return path

    def set_value(self, name: str, key: str, value: Any) -> Path:
        """Writes a setting of the agent, checked alone and together with the others, and says where."""
        agent, path = self.read(name), self.file(name)
        key, typed = check(key, value, str(path))
        text = with_setting(configuration.file_text(path), path, key, typed)
        if key.startswith("context."):
            below = configuration.load(self.home, self.project)
            context, origins = {**suited(below, agent).context, key: typed}, {**agent.origins, key: str(path)}
            laid(below, replace(agent, context=context, origins=origins))
        toml_file.write(path, text)
        return path

    def unset(self, name: str, key: str) -> Path:
        """Takes a setting out of the file that says it, the strongest first, and says which."""
        self.check(name)
        key = spec_of(key, f"the agent {name}").key
        for place in reversed(self.places):
            path = place.agent(name) / FILE
            text = without_setting(configuration.file_text(path), path, key)
            if text is not None:
                toml_file.write(path, text)
                return path
        raise NotFound(f"the agent {name} does not say {key}: there is nothing to take out", key=key)

    def _home_of(self, agent: Agent, id: SourceId) -> str:
        """The file that a source comes from; NotFound when the agent has none of this name."""
        noun = id.kind if id.kind != "tool" or _is_own(id) else "server"
        if _is_own(id):
            known, wanted = dict.fromkeys(BUILT_IN, _origin_of_own(agent)), id.name
        elif id.kind == "tool":
            known = {OWN: "", **{server.name: server.origin for server in agent.servers}}
            wanted = id.server
        else:
            known = {each.name: each.path for each in (*agent.rules, *agent.references) if each.kind == id.kind}
            wanted = next((name for name in known if key_of(name) == key_of(id.name)), id.name)
        if wanted not in known:
            near = get_close_matches(wanted, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise NotFound(f"the agent {agent.name} has no {noun} {wanted}{hint}", name=wanted)
        return known[wanted]

    def file(self, name: str, source: str = "") -> Path:
        """Where changes go: the project's agent.toml where that is there already, or the source is, or the agent is in
        the project alone; else the user's."""
        yours, theirs = self.places[0].agent(name), self.places[-1].agent(name)
        is_alone = self.places[-1].has(name) and not self.places[0].has(name)
        is_theirs = bool(source) and self.whose(source) == "project"
        return (theirs if os.path.isfile(theirs / FILE) or is_alone or is_theirs else yours) / FILE


def _is_own(id: SourceId) -> bool:
    return id.kind == "tool" and id.server == OWN and bool(id.name)


def _origin_of_own(agent: Agent) -> str:
    own = agent.server(OWN)
    return own.origin if own else ""


def _prompt_text(path: str, raw: bytes | str) -> tuple[str | None, str]:
    """The text, or what is wrong with it."""
    if isinstance(raw, str):
        return None, raw
    try:
        return text_of(raw, path).strip(), ""
    except Invalid as why:
        return None, why.message


def _noted(read: tuple[Any, str], notes: list[str]) -> Any:
    value, problem = read
    notes += [problem] if problem else []
    return value
