"""PlanPicker: what a run toward a goal needs in every window: how to work, the tool that changes the plan, and, once a
compaction has covered the calls that told them, the plan and the files word for word.

As long as no compaction came, the model's own calls are in the window: a copy in front of the message would cost twice,
and a copy that changes would break the cached prefix at every change. A compaction breaks it anyway, so that is when
the copy is made anew; what changes later is in the calls behind it.
"""

from recto.chat.conversation import View
from recto.sources.selection import OfferedTool, Selection, StablePicks
from recto.sources.source import Insert, Pick
from recto.tasks.plan import FOR_A_RUN, HOW_TO_WORK, plan_tool
from recto.tasks.run import TaskRun
from recto.turn.turn import Picker, Turn
from recto.window.compaction_block import PASSING


class PlanPicker(Picker):
    def __init__(self, turn: Turn) -> None:
        super().__init__()
        self._turn, self._run = turn, turn.session.run
        self._kept: Insert | None = None
        self._compaction: int | None = None

    async def stable(self) -> StablePicks:
        if self._run is None:
            return StablePicks()
        tool = plan_tool(self._run.rounds_left)
        return StablePicks(
            rules=(Selection(HOW_TO_WORK, "always", FOR_A_RUN),),
            tools=(OfferedTool(tool, Selection(tool.tool, "always", FOR_A_RUN)),),
        )

    def keep(self, view: View) -> Insert | None:
        block = view.compaction
        if self._run is None or block is None:
            return None
        if self._kept is None or block.action == PASSING or block.compaction_number != self._compaction:
            self._kept, self._compaction = self._insert(self._run), block.compaction_number
        return self._kept

    def _insert(self, run: TaskRun) -> Insert | None:
        message = self._turn.asked
        is_goal = message is not None and run.messages[:1] == [message.id]
        goal = "" if is_goal else f"The goal: {run.short_goal}"
        text = "\n\n".join(filter(None, (goal, run.text_within(self._turn.resolved.room))))
        if not text:
            return None
        because = f"as of step {run.steps}: a compaction covers the calls that told them"
        pick = Pick("plan", "plan and files of the run", because, 1)
        return Insert("memory", f"<plan>\n{text}\n</plan>", (pick,))
