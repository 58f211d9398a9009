"""The settings that a project may make, in its `.recto/config.toml` and its agents, and the user's trust in them.

A copied folder must not choose who receives the user's words, nor what a model gets to read.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.base.home_files import SETTINGS, TrustFile
from recto.errors import Invalid

# Every setting is in exactly one of these four; those only for agents are at the end of each.
NEEDS_TRUST = {
    "model": "who receives your messages",
    "context.summary_model": "who receives your messages",
    "search.embedder": "who receives your messages and notes",
    "vault": "what a model can read",
    "system_prompt_file": "what a model can read",
}
"""Settings that need trust in their values -> what they decide."""
ONLY_STRICTER = {
    "tools.enabled": False,
    "tools.allow_write": False,
    "references.outside": False,
    "references.gists": False,
    "references.auto": "never",
    "context.confirm": True,
    "context.memory_integration": False,
    "context.use_facts": False,
    "context.learn_facts": "off",
    "context.use_project_memory": False,
    "context.use_agent_memory": False,
    "context.use_user_memory": False,
    "store.backup": True,
}
"""Switches -> the only value that a project may set."""
CAPS = ("spend.conversation", "spend.day", "reply.max_characters", "tools.call_limit")
"""Limits, where 0 means none: a project may set or lower one."""
FREE = frozenset(
    (
        *("system_prompt", "embedded.window", "search.timeout_s", "references.enabled", "references.quotes"),
        *("reply.max_tokens", "reply.temperature", "reply.thinking_budget", "reply.timeout_s", "reply.tries"),
        *("serve.body_mb", "tools.step_limit", "tools.timeout_s", "tools.start_s", "tools.result_characters"),
        *("context.strategy", "context.enabled", "context.session"),
        *("context.threshold", "context.prepare_at", "context.low_water"),
        *("context.recent_messages_to_keep", "context.min_recent_messages_to_keep"),
        *("context.summary_ratio", "context.summary_tokens", "context.summary_style", "context.summary_timeout_s"),
        *("context.recall_ratio", "context.recall_tokens", "context.top_k", "context.top_n"),
        *("context.include_score", "context.min_score", "context.learn"),
        *("context.max_prompt_tokens", "context.reserved_response_tokens"),
        *("context.budgets.system", "context.budgets.tools", "context.budgets.messages"),
        "description",
    )
)
"""Harmless settings: like the project's rules, they affect replies and cost, and reach nothing outside it."""
PATHS = ("vault", "system_prompt_file")
USER_FILE = "config.toml"
LONGEST_SHOWN = 200


def project_file(project: Path) -> Path:
    return project / ".recto" / USER_FILE


class ProjectSetting(Struct, frozen=True):
    key: str
    value: Any
    file: str
    place: str = ""
    """The resolved path."""
    agent: str = ""

    @property
    def name(self) -> str:
        return f"{self.agent}/{self.key}" if self.agent else self.key

    @property
    def sha256(self) -> str:
        """The hash that the user trusts: it changes with the value and the target of a link."""
        import hashlib  # three milliseconds, and most projects set nothing of the kind
        import json

        return hashlib.sha256(json.dumps([self.key, self.place or self.value]).encode()).hexdigest()

    @property
    def asks(self) -> bool:
        """True if it needs trust: an empty value does not."""
        return self.key in NEEDS_TRUST and bool(self.value)

    @property
    def told(self) -> str:
        text = str(self.value).lower() if isinstance(self.value, bool) else repr(self.value)
        return f"{self.file}: {self.key} = {text if len(text) <= LONGEST_SHOWN else f'{text[:LONGEST_SHOWN]}…'}"


class ProjectAccess:
    def __init__(self, home: Path, project: Path) -> None:
        self._project, self._trust = project, TrustFile(home, SETTINGS)

    def setting(self, key: str, value: Any, file: Path | str, base: Path, agent: str = "") -> ProjectSetting:
        """A path is relative to `base`."""
        place = os.path.realpath(base / value) if key in PATHS and value else ""
        return ProjectSetting(key, value, str(file), place, agent)

    def forbidden(self, setting: ProjectSetting, below: Any = None) -> str:
        """Why the project may not set this at all, or empty. `below` is the value without the project."""
        key, value = setting.key, setting.value
        if not Path(os.path.realpath(setting.file)).is_relative_to(os.path.realpath(self._project)):
            return f"{setting.told} is ignored: the file itself is outside the project"
        if setting.place and not self._is_inside(setting):
            return f"{setting.told} points outside the project and is ignored; only you can set that{_ELSEWHERE}"
        if key in ONLY_STRICTER and value not in (ONLY_STRICTER[key], below):
            turn = "off" if ONLY_STRICTER[key] is True else "on"
            return f"{setting.told} is ignored: only you can switch {turn} {key}{_ELSEWHERE}"
        if key in CAPS and value != below and not 0 < value <= (below or value):
            return f"{setting.told} is ignored: only you can raise {key}{_ELSEWHERE}"
        return ""

    def refusal(self, setting: ProjectSetting, below: Any = None) -> str:
        """Why this is not in force, or empty."""
        problem = self.forbidden(setting, below)
        if problem or not setting.asks or setting.value == below or self.is_trusted(setting):
            return problem
        decides = NEEDS_TRUST[setting.key]
        return f"{setting.told} is ignored, because it decides {decides}: `recto config trust` accepts it"

    def is_trusted(self, setting: ProjectSetting) -> bool:
        return self._trust.is_trusted(setting.name, setting.sha256, self._project)

    def accept(self, settings: Sequence[ProjectSetting]) -> None:
        """Trust values that the user has seen or written. Raises Invalid, trusting none, if a project may not set one
        of them."""
        if problem := next(filter(None, map(self.forbidden, settings)), ""):
            raise Invalid(problem)
        if hashes := {each.name: each.sha256 for each in settings if each.asks}:
            self._trust.trust(hashes, self._project)

    def distrust(self, settings: Iterable[ProjectSetting]) -> None:
        self._trust.distrust([each.name for each in settings], self._project)

    def _is_inside(self, setting: ProjectSetting) -> bool:
        # to Python `~` is a folder of this name, to everybody else the user's home
        return not setting.value.startswith("~") and Path(setting.place).is_relative_to(os.path.realpath(self._project))


_ELSEWHERE = ", with an option or in the config.toml of RECTO_HOME"
