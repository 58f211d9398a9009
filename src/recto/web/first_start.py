"""FirstStart: an empty conversation: choose a folder of notes, set a key or a model, try three questions.

A key goes from its field to the key store only: it is neither shown nor logged.
"""

import asyncio
import os
from pathlib import Path

from markupsafe import Markup

from recto.api.desk import AsyncDesk
from recto.api.talk import AsyncTalk
from recto.base.text import counted
from recto.errors import Invalid, RectoError
from recto.providers.embedded import NAME as EMBEDDED
from recto.providers.registry import key_variables, model_overview
from recto.settings.keys import KeyStore
from recto.settings.settings import set_setting
from recto.vault.folder import NoteFolder, folders_like, look_at_folder
from recto.vault.vault import Vault
from recto.web.built_in_models import choices_html
from recto.web.components import Handler
from recto.web.documents import questions_to_try
from recto.web.templates import fill

# The most common providers first.
USUAL_PROVIDERS = ("anthropic", "openai", "gemini")
MOST_MODELS = 60
FAR_AWAY = "A key is taken only on a page that listens on this machine alone: the connection is not encrypted."


class FirstStart:
    def __init__(self, desk: AsyncDesk, *, takes_keys: bool) -> None:
        self._desk, self.takes_keys = desk, takes_keys
        self.typed = ""
        self.found: NoteFolder | None = None
        self.offered: list[str] = []
        self.models: list[str] = []
        self.told, self.failure = "", ""
        self._questions: dict[Path, list[str]] = {}

    async def tried(self, handle: Handler) -> bool:
        """Do one of the following, showing a failure here. True if the settings of new conversations changed."""
        self.told, self.failure = "", ""
        try:
            return bool(await handle())
        except RectoError as why:
            self.failure = why.message
            return False

    async def do_look_folder(self, value: str) -> None:
        """Look at a folder while it is typed."""
        self.typed = value
        self.offered = await asyncio.to_thread(folders_like, value)
        self.found = await asyncio.to_thread(look_at_folder, value) if value.strip() else None

    async def do_use_folder(self, folder: str) -> bool:
        found = await asyncio.to_thread(look_at_folder, folder)
        if found.problem:
            raise Invalid(found.problem)
        await self._desk.use(vault=found.path)
        await asyncio.to_thread(set_setting, "vault", str(found.path), home=self._desk.home)
        self.typed, self.found, self.offered = "", None, []
        self.told = f"Recto reads {counted(found.notes, 'note')} in {found.path} from now on."
        return True

    async def do_set_key(self, provider: str, key: str) -> None:
        if not self.takes_keys:
            raise Invalid(FAR_AWAY)
        variable = key_variables(os.environ).get(provider)
        if variable is None:
            raise Invalid("choose the provider that the key belongs to")
        place = await asyncio.to_thread(KeyStore(self._desk.home).put, variable, key)
        where = "the system's keyring" if place == "keyring" else "a file that only you can read"
        self.told = f"The key of {provider} is in {where}. Now choose a model."
        await self._read_models(f"{provider}:")

    async def do_choose_model(self) -> None:
        await self._read_models(":")

    async def _read_models(self, first: str) -> None:
        """The models available now; those that begin with the typed text first."""
        found = await model_overview(self._desk.home, self._desk.project, os.environ)
        names = [model.name for model in found.usable if model.provider != EMBEDDED]
        if not names:
            raise Invalid("no other model can be asked yet: set a key of a provider, or start a server such as Ollama")
        self.models = sorted(names, key=lambda name: not name.startswith(first))[:MOST_MODELS]

    async def do_use_model(self, model: str) -> bool:
        await self._desk.use(model=model)
        await asyncio.to_thread(set_setting, "model", model, home=self._desk.home)
        self.models, self.told = [], f"{model} answers from now on."
        return True

    async def html(self, talk: AsyncTalk) -> str:
        vault = talk.vault
        return fill(
            "empty",
            far_away=FAR_AWAY,
            vault=vault.root if vault else None,
            notes=(await asyncio.to_thread(look_at_folder, str(vault.root))).notes if vault else 0,
            model=talk.model,
            builtin=talk.model.startswith(f"{EMBEDDED}:"),
            built_in=Markup(choices_html(talk.model)),
            start=self,
            providers=sorted(key_variables(os.environ), key=lambda name: (name not in USUAL_PROVIDERS, name)),
            questions=await self._questions_for(vault),
        )

    async def _questions_for(self, vault: Vault | None) -> list[str]:
        if vault is None:
            return questions_to_try(None)
        if vault.root not in self._questions:
            self._questions[vault.root] = await asyncio.to_thread(questions_to_try, vault)
        return self._questions[vault.root]


class SharedStart:
    """The version for guests of a shared server: notes, keys and models belong to its owner."""

    async def html(self, talk: AsyncTalk) -> str:
        return fill("empty_shared", model=talk.model, questions=questions_to_try(None))
