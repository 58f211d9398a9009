"""The files around the golden home: notes, a project, agents, and the scripts that its models answer from."""

import json
from base64 import b64decode
from itertools import count
from pathlib import Path
from typing import Any

Step = dict[str, Any]
PRICES = {"input": 2.0, "output": 8.0, "cache_read": 0.2}
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n%%EOF\n"

NOTES = {
    "Welcome.md": "# Welcome\n\nStart with [[Sorrel]] and [[Harbour]]. There is no [[Logbook]] yet.\n",
    "Sorrel.md": (
        "---\ntags: [boat]\naliases: [the boat]\n---\n# Sorrel\n\nSorrel is a gaff cutter, built in 1934 in Risør.\n\n"
        "## Rig\nThe mast is 9 m tall. The mainsail was made by Ratsey in 2019.\n\n## Engine\n"
        "We chose the Yanmar 1GM10 on 3 March 2026. See [[Budget#2026]].\n"
    ),
    "Harbour.md": "# Harbour\n\nThe berth is at pier 7, 20 euros a night. The harbour master is Ingrid Dahl.\n",
    "Budget.md": "# Budget\n## 2026\n| what | euros |\n|---|---|\n| engine | 4200 |\n| sails | 1900 |\n\n[[Sorrel]]\n",
    "plans/Winter.md": "# Winter\n\n- dry the sails\n- drain the pump\n- ask [[Harbour]] about the shed\n",
    "Log of 2025.md": "# Log\n\n"
    + ", ".join(f"week {week} with wind {week % 8} and {week * 31} miles" for week in range(1, 40))
    + ".\n",
    "日本語.md": "# 日本語のメモ\n\n船の名前はソレルです。[[Sorrel]]\n",
}
PROJECT = {
    "RECTO.md": "# This project\n\nThe parser is in src/tides.py. Keep the tests green.\n",
    "src/tides.py": "def read(text):\n    return [line.split() for line in text.splitlines()]\n",
    "paste.txt": "Gate 4 opens at 06:00.\nThe pilot is on channel 12.\n",
    ".mcp.json": json.dumps({"mcpServers": {"tides": {"command": "tides-server", "args": ["--stdio"]}}}),
    ".recto/config.toml": "[context]\nrecent_messages_to_keep = 4\n",
}
AGENT = {
    "agent.toml": 'description = "Keeps the log of the boat"\n\n[context]\nthreshold = 0.8\n',
    "memory.md": "Answer as a harbour clerk would.\n",
    "rules/style.md": "---\ndescription: How we write\ninclude: always\n---\nWrite short sentences.\n",
    "rules/tests.md": "---\ndescription: How to test a parser of tides\ninclude: agent\n---\nTest every table.\n",
    "rules/night.md": "---\ndescription: Only for the night watch\ninclude: manual\n---\nSpeak softly.\n",
    "references/prices.md": "---\ndescription: What a berth costs\n---\nThe winter shed at Grimstad costs 310 euros.\n",
}
HOME = {
    "config.toml": 'model = "scripted:models/mate.json"\n[context]\nprepare_at = 0.0\n[references]\ngists = false\n',
    "memory.md": "The user is Nora, who owns the boat Sorrel.\n",
    "models.toml": '["First mate"]\nprovider = "openai"\nid = "gpt-4o"\n\n["openai:gpt-4o"]\nwindow = 6000\n',
    "templates/log.md": "---\ndescription: One line for the log\n---\nWrite one line for the log about $what: $input\n",
    **{f"agents/clerk/{name}": text for name, text in AGENT.items()},
}
LONG = "Noted, thank you. " * 40  # so that compactions come soon
SUMMARY = (
    "Nora asked about the boat Sorrel. Decisions: the engine is a Yanmar 1GM10, 4200 euros. Open: who repairs the "
    "pump. Facts: pier 7; 20 euros a night; Ingrid Dahl; the mast is 9 m tall; pay 300 euros to Ada."
)


_numbers = count(1)


def call(name: str, **arguments: Any) -> Step:
    """With an id of its own: one that the model makes up would be counted as other tokens every time."""
    return {"tool_calls": [{"name": name, "arguments": arguments, "id": f"call_{next(_numbers)}"}]}


def plan(*steps: tuple[str, str], **more: Any) -> Step:
    return call("update_plan", steps=[{"text": text, "status": status} for text, status in steps], **more)


def said(*texts: str) -> list[Step]:
    return [{"text": text} for text in texts]


SCRIPTS: dict[str, Any] = {
    "mate": {"steps": [*said("Aye. She lies at pier 7."), {"when": "gist", "text": "The log of the summer of 2025."}]},
    "small": {
        "limit": 2400,
        "prices": PRICES,
        "steps": [
            {"text": LONG, "thinking": "Nora wants it noted."},
            {"text": LONG},
            {"when": "summary", "text": SUMMARY},
        ],
    },
    "ahead": {
        "limit": 4000,
        "steps": [{"text": "Noted, thank you. " * 16}, *({"when": p, "text": SUMMARY} for p in ("ahead", "summary"))],
    },
    "sentences": {"limit": 2400, "summarizes": False, "exact": False, "steps": said(LONG)},
    "failing": {"limit": 2400, "steps": [{"text": LONG}, {"when": "summary", "error": "rate_limited"}]},
    "reader": {
        "limit": 2400,
        "steps": [
            call("read_document", path="Sorrel.md"),
            {"text": "The mast is 9 m tall."},
            call("find_excerpts", query="berth pier"),
            {"text": "It is at pier 7."},
            call("read_document", path="No such note.md"),
            {"text": "There is no such note."},
            call("long_log"),
            {"text": "The log is long."},
            {"text": LONG},
            {"when": "summary", "text": SUMMARY},
        ],
    },
    "logs": {
        "limit": 8000,
        "steps": [
            *(step for _ in range(20) for step in (call("long_log"), {"text": "All is well."})),
            {"when": "summary", "text": SUMMARY},
        ],
    },
    "worker": {
        "prices": PRICES,
        "steps": [
            plan(("find what the notes say about the engine", "active"), ("answer", "pending")),
            call("read_document", path="Sorrel.md"),
            plan(
                ("find what the notes say about the engine", "done"),
                ("answer", "done"),
                outcome="done",
                because="the note names it",
            ),
            {"text": "It is the Yanmar 1GM10."},
            plan(("ask the harbour master", "blocked"), outcome="blocked", because="nobody answers"),
            {"text": "I cannot go on."},
            {"text": "I will look into it."},
            {"text": "I am still thinking."},
            call("read_document", path="Harbour.md"),
            {"text": "No more steps are left."},
        ],
    },
    "eyes": {"attachments": True, "steps": said("A small picture.", "A file.", "A text.")},
    "learner": {
        "steps": [
            {"text": "I will remember that."},
            call("remember", text="The spare key is under the blue pot."),
            {"text": "Remembered."},
            {"when": "facts", "text": '[{"quote": "My brother Per works as a pilot in Oslo", "kind": "person"}]'},
        ]
    },
    "clerk": {
        "limit": 2400,
        "steps": [
            *said("A night is 20 euros; the winter shed at Grimstad costs 310 euros."),
            {"when": "summary", "text": SUMMARY},
        ],
    },
    "served": {
        "limit": 2400,
        "prices": PRICES,
        "steps": [
            *said("Seven metres.", "Two metres.", "Half a metre."),
            {"tool_calls": [{"name": "depth", "arguments": {"at": "pier 7"}, "id": "call_depth"}]},
            *said("Three metres deep.", "Hello from the stern.", "Hello again.", "As you say."),
            {"text": LONG},
            {"when": "summary", "text": SUMMARY},
        ],
    },
    "lost": {"steps": [{"text": "This line breaks off here", "error": "unreachable"}]},
    "broken": {"steps": [{"text": "one two three four five six seven eight nine ten " * 40, "delay_s": 0.02}]},
}


def write_world(root: Path) -> None:
    """`home`, `project` (where commands run) and `notes`."""
    for folder, files in (("home", HOME), ("project", PROJECT), ("notes", NOTES)):
        for name, text in files.items():
            _write(root / folder / name, text)
    for name, script in SCRIPTS.items():
        _write(root / "project" / "models" / f"{name}.json", json.dumps(script, indent=1, ensure_ascii=False))
    (root / "project" / "dot.png").write_bytes(PNG)
    (root / "project" / "plan.pdf").write_bytes(PDF)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
