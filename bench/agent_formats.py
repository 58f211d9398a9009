"""Agent runs in the formats of other agents, made up: each knows at every point what was asked, changed and run. Pure.

Shell commands alone, commands between fences, editors' tools, patches, PowerShell with German comments, and a monorepo
in which 80 files change; most with the task inside pages of a prompt.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from bench.agent_work import TASKS, State
from bench.planted import words
from bench.runs import Round, Run, Turn
from bench.wire import Wire, weight

FORMATS = ("shell", "fenced", "editor", "patch", "windows", "monorepo")
SYSTEM = "You are a coding agent. Work on what the user asks, with the tools that you have."
# As many files as a monorepo's run changes before it changes some of them again.
MANY_FILES, FEW_FILES = 80, 7
_THINGS = words("en")["stem"]
GERMAN_TASKS = (
    "Bitte sorge dafür, dass der Export von {one} keine leeren Zeilen für {other} mehr schreibt.",
    "Beim Wechsel der Sprache zeigt die Seite {one} den falschen Wert für {other}. Bitte behebe die Ursache.",
    "Der nächtliche Lauf von {one} bricht ab, wenn {other} fehlt. Er soll stattdessen warnen und weitermachen.",
)
RULES = """- Work step by step and check each change before you go on to the next one.
- Never ask the user for help: nobody reads along while you work.
- Every response must include exactly one command, and its output comes back to you.
- Directory changes are not kept; write `cd folder && command` instead.
- Do not use editors that wait for keys, such as vim or nano.
- When you are done, submit your work with the command for it and nothing else."""
IN_TAGS = """<uploaded_files>
/repo
</uploaded_files>
I've uploaded a repository. Consider the following description:

<issue_description>
{task}
</issue_description>

Can you make the changes that it asks for?

<instructions>
{rules}
</instructions>"""
AFTER_EXAMPLE = """--- EXAMPLE ---
User: Rename the tower module.
Agent: sed -i 's/tower/spire/' src/tower.py
--- END OF EXAMPLE ---
{task}

RESPONSE FORMAT:
{rules}"""
PROMPTS = (
    IN_TAGS,
    AFTER_EXAMPLE,
    "Please solve this issue:\n\n## Task\n{task}\n\n## Recommended workflow\n{rules}\n\n## Important rules\n{rules}",
    "ISSUE:\n{task}\n\nINSTRUCTIONS:\n{rules}",
    "{task}",
)


@dataclass(frozen=True, slots=True)
class Step:
    """A call: what the agent says, what it calls, what comes back, and what that changes in the state."""

    said: str
    name: str
    arguments: dict[str, object]
    result: str
    changed: tuple[str, ...] = ()
    family: str = ""
    telling: tuple[str, ...] = ()


@dataclass(slots=True)
class FormatAgent:
    """Works in one format on one task after the other until the run is long enough."""

    format: str
    seed: int
    _random: Random = field(init=False)
    _files: list[str] = field(init=False)
    _place: int = 0
    _calls: int = 0
    _known: list[tuple[int, str, Step | None]] = field(default_factory=list)
    """After so many messages: a new task, or a step that was taken."""

    def __post_init__(self) -> None:
        self._random = Random(f"{self.format} {self.seed}")
        number = MANY_FILES if self.format == "monorepo" else FEW_FILES
        self._files = list(dict.fromkeys(self._path() for _ in range(number)))
        self._random.shuffle(self._files)

    def run(self, size: int) -> Run:
        turns: list[Turn] = []
        said = 0
        while said < size:
            for turn in self._turns():
                turns.append(turn)
                said += sum(map(weight, turn.wire()))
        return Run(SYSTEM, tuple(turns))

    def state(self, covered: int) -> State:
        """After so many messages."""
        task, files, outcomes = "", set(), dict[str, frozenset[str]]()
        for place, asked, step in self._known:
            if place > covered:
                break
            task = asked or task
            if step:
                files |= {path.replace("\\", "/").rpartition("/")[2] for path in step.changed}
                if step.family:
                    outcomes[step.family] = frozenset(step.telling)
        return State(task, frozenset(files), outcomes)

    # -- one task

    def _turns(self) -> Iterator[Turn]:
        one, other = self._random.sample(_THINGS, 2)
        tasks = GERMAN_TASKS if self.format == "windows" else TASKS
        task = self._random.choice(tasks).format(one=one, other=other)
        prompt = self._random.choice(PROMPTS).format(task=task, rules=RULES)
        made = list(self._steps(one, other))
        done = (
            f"{made[0].changed[0] if made[0].changed else 'It'} handles {other} now, and {self._number()} cases pass."
        )
        yield from (
            self._fenced(task, prompt, made, done)
            if self.format == "fenced"
            else [self._called(task, prompt, made, done)]
        )

    def _called(self, task: str, prompt: str, made: list[Step], done: str) -> Turn:
        self._know(1, task)
        rounds = []
        for step in made:
            self._calls += 1
            id = f"call_{self._calls}"
            arguments = json.dumps(step.arguments, ensure_ascii=False)
            call: Wire = {"id": id, "type": "function", "function": {"name": step.name, "arguments": arguments}}
            rounds.append(Round(step.said, (call,), {id: step.result}))
            self._know(2, step=step)
        self._place += 1
        return Turn(prompt, tuple(rounds), done)

    def _fenced(self, task: str, prompt: str, made: list[Step], done: str) -> Iterator[Turn]:
        """The output of each command is what the user's side says next."""
        question = prompt
        known: tuple[str, Step | None] = (task, None)
        for step in made:
            self._know(1, *known)
            yield Turn(question, (), f"THOUGHT: {step.said or 'Go on.'}\n\n```bash\n{step.arguments['command']}\n```")
            self._place += 1
            code = 1 if "rror" in step.result or "failed" in step.result else 0
            question = f"<returncode>{code}</returncode>\n<output>\n{step.result}\n</output>"
            known = ("", step)
        self._know(1, *known)
        yield Turn(question, (), done)
        self._place += 1

    def _know(self, more: int, task: str = "", step: Step | None = None) -> None:
        self._place += more
        self._known.append((self._place, task, step))

    def _steps(self, one: str, other: str) -> Iterator[Step]:
        paths = self._random.sample(self._files, 2)
        if self.format == "monorepo":  # every file once, then again
            self._files = self._files[6:] + self._files[:6]
            paths = self._files[:6]
        yield self._shell("Let me look around.", f"grep -rn '{other}' src | head", self._listing(one, other), "")
        for path in paths:
            yield self._edit(path, one, other)
        yield from self._checks(paths[0], one, other)

    def _checks(self, path: str, one: str, other: str) -> Iterator[Step]:
        number, seconds = self._number(), f"{self._random.randint(2, 40)}.{self._random.randint(11, 99)}"
        is_windows = self.format == "windows"
        tests = ("dotnet test", "dotnet test") if is_windows else ("python -m pytest -q", "pytest")
        name = f"test_{other}_{self._random.randint(100, 999)}"
        yield self._shell(
            "Now the tests.",
            tests[0],
            f"{'.' * 40}F\nFAILED tests/test_{one}.py::{name} - AssertionError: {other} is None\n"
            f"1 failed, {number} passed in {seconds}s",
            tests[1],
            (str(number), name),
        )
        yield self._edit(path, one, other)
        if self._random.random() < 0.7:
            seconds = f"{self._random.randint(41, 80)}.{self._random.randint(11, 99)}"
            yield self._shell("", tests[0], f"{'.' * 60}\n{number + 1} passed in {seconds}s", tests[1], (seconds,))
        sha = self._random.randbytes(4).hex()[:7]
        code = self._random.randint(2000, 2999)
        known: list[tuple[str, str, str, tuple[str, ...]]] = [
            (
                f"git commit -am 'Mend {one}'",
                f"[main {sha}] Mend {one}\n 2 files changed",
                "git commit",
                (sha, "files"),
            ),
            (
                "npm run build",
                f"src/{one}.ts({code % 90},3): error TS{code}: Type 'string'.\nFound 1 error.",
                "npm",
                (),
            ),
            ("ruff check src", f"{path}:{code % 90}:5: F841 unused {other}\nFound 1 error.", "ruff check", ("F841",)),
            ("docker compose up -d", f"Container {one}-db-1  Started", "docker compose", (f"{one}-db-1",)),
            (f"cargo build -p {one}", f"   Compiling {one}\n    Finished dev in {seconds}s", "cargo build", (seconds,)),
        ]
        for command, output, family, telling in self._random.sample(known, 2):
            yield self._shell("", command, output, family, telling or (str(code),))

    # -- the formats

    def _shell(
        self, said: str, command: str, result: str, family: str, telling: tuple[str, ...] = (), changed: str = ""
    ) -> Step:
        files = (changed,) if changed else ()
        if self.format == "patch":
            given: dict[str, object] = {"command": ["bash", "-lc", f"cd /repo && {command}"], "timeout": 60_000}
            packed = json.dumps({"output": result, "metadata": {"exit_code": int("failed" in result)}})
            return Step(said, "shell", given, packed, files, family, telling)
        return Step(
            said,
            "powershell" if self.format == "windows" else "bash",
            {"command": command},
            result,
            files,
            family,
            telling,
        )

    def _edit(self, path: str, one: str, other: str) -> Step:
        ways: dict[str, tuple[Callable[[str, str, str], Step], ...]] = {
            "shell": (self._by_sed, self._by_heredoc, self._by_python, self._by_tee, self._by_git_apply),
            "fenced": (self._by_sed, self._by_heredoc, self._by_python, self._by_git_apply),
            "editor": (self._by_str_replace, self._by_create, self._by_camel_case),
            "patch": (self._by_patch,),
            "windows": (self._by_set_content, self._by_camel_case),
            "monorepo": (self._by_str_replace, self._by_sed, self._by_camel_case),
        }
        return self._random.choice(ways[self.format])(path, one, other)

    def _by_sed(self, path: str, one: str, other: str) -> Step:
        return self._shell("I see it.", f"sed -i 's/{one}/{other}/g' {path}", "", "", changed=path)

    def _by_heredoc(self, path: str, one: str, other: str) -> Step:
        code = f"cd /repo && cat > {path} <<'EOF'\n{self._source(one, other)}\nEOF"
        return self._shell("", code, "", "", changed=path)

    def _by_python(self, path: str, one: str, other: str) -> Step:
        code = f"p = pathlib.Path('{path}')\ns = p.read_text()\np.write_text(s.replace('{one}', '{other}'))"
        return self._shell("", f"python - <<'PY'\nimport pathlib\n{code}\nPY", "", "", changed=path)

    def _by_tee(self, path: str, one: str, other: str) -> Step:
        return self._shell("", f"echo '{one} = {other}()' | tee -a {path}", f"{one} = {other}()", "", changed=path)

    def _by_git_apply(self, path: str, one: str, other: str) -> Step:
        diff = f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n-{one}\n+{other}"
        return self._shell("", f"git apply - <<'EOF'\n{diff}\nEOF", "", "", changed=path)

    def _by_str_replace(self, path: str, one: str, other: str) -> Step:
        given: dict[str, object] = {"command": "str_replace", "path": f"/repo/{path}", "old_str": one, "new_str": other}
        result = f"The file /repo/{path} has been edited. Here's the result of running `cat -n`:\n  1\t{other}()"
        return Step("I see it.", "str_replace_based_edit_tool", given, result, (path,))

    def _by_create(self, path: str, one: str, other: str) -> Step:
        given: dict[str, object] = {"command": "create", "path": f"/repo/{path}", "file_text": self._source(one, other)}
        return Step("", "str_replace_based_edit_tool", given, f"File created successfully at: /repo/{path}", (path,))

    def _by_camel_case(self, path: str, one: str, other: str) -> Step:
        given: dict[str, object] = {"filePath": path, "oldString": f"{one}()", "newString": f"{other}()"}
        return Step("", "replaceStringInFile", given, "The following files were successfully edited", (path,))

    def _by_patch(self, path: str, one: str, other: str) -> Step:
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{one}()\n+{other}()\n*** End Patch"
        given: dict[str, object] = {"command": ["apply_patch", patch]}
        return Step(
            "", "shell", given, json.dumps({"output": f"Success. Updated the following files:\nM {path}"}), (path,)
        )

    def _by_set_content(self, path: str, one: str, other: str) -> Step:
        command = f"(Get-Content {path}) -replace '{one}', '{other}' | Set-Content {path}  # {other} ergänzt"
        return self._shell("Ich ändere das.", command, "", "", changed=path)

    # -- what it works on

    def _path(self) -> str:
        one, other, third = self._random.sample(_THINGS, 3)
        if self.format == "windows":
            return rf"C:\Projekte\{one}\{other}{third.capitalize()}.cs"
        if self.format == "monorepo":
            folder = self._random.choice(
                ("packages/billing-core/src", "packages/web/src/pages", "services/api/handlers")
            )
            return f"{folder}/{one}_{other}.ts"
        return f"src/{one}/{other}_{third}.py"

    def _number(self) -> int:
        return self._random.randint(40, 900)

    def _listing(self, one: str, other: str) -> str:
        lines = sorted(self._random.sample(range(3, 400), self._random.randint(4, 14)))
        return "\n".join(
            f"src/{one}/{self._random.choice(_THINGS)}.py:{line}: def load_{other}(self):" for line in lines
        )

    def _source(self, one: str, other: str) -> str:
        made = [f"    {self._random.choice(_THINGS)} = {one}.{other}({self._number()})" for _ in range(30)]
        return "\n".join([f"def load_{other}({one}):", *made, "    return None"])
