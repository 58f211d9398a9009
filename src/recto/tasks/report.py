"""RunReport: what became of a run: outcome, plan, files, notes used, and what it took."""

from typing import Any

from msgspec import Struct, to_builtins

from recto.chat.blocks import DocumentReference
from recto.tasks.plan import TaskPlan
from recto.tasks.run import FileUse, RunStatus


class RunReport(Struct, frozen=True):
    run: str
    conversation: str
    goal: str
    outcome: RunStatus
    because: str
    """Why it ended so."""
    plan: TaskPlan
    steps: int
    max_steps: int
    text: str = ""
    """The last reply."""
    references: tuple[DocumentReference, ...] = ()
    """The notes that replies used."""
    files: tuple[FileUse, ...] = ()
    refused: tuple[str, ...] = ()
    """Tools that did not run because nobody allowed it."""
    input: int = 0
    """Tokens of all replies, those before a `--continue` included."""
    output: int = 0
    cache_read: int = 0
    cost_usd: float | None = None
    """Summaries included; None where a price is unknown."""
    duration_s: float = 0.0
    """Of this sitting."""

    @property
    def is_done(self) -> bool:
        return self.outcome == "done"

    def to_json(self) -> dict[str, Any]:
        said = to_builtins(self)
        files = [{"path": each.path, "changed": each.is_changed, "certain": each.is_certain} for each in self.files]
        usage = {name: said.pop(name) for name in ("input", "output", "cache_read")}
        order = ("run", "conversation", "goal", "outcome", "because", "plan", "text", "references", "files")
        said |= {"because": self.because or None, "plan": self.plan.to_json(), "files": files, "usage": usage}
        return {
            name: said[name] for name in (*order, "refused", "steps", "max_steps", "usage", "cost_usd", "duration_s")
        }
