"""The lines that each command is called with; all of one command run one after the other, in one copy."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from recto.cli.main import recto

NOT_HERE = {
    "web": "a page in a browser: tests/web",
    "mcp": "a server that other programs start: tests/serve/test_mcp_server.py",
    "models pull": "looks for weights on the machine: tests/cli/test_models.py",
    "models use": "writes a setting: tests/cli/test_models.py",
}

WITH_NOTES = "--vault ../notes"


def both(*lines: str) -> list[str]:
    """For people, and as JSON."""
    return [shown for line in lines for shown in (line, f"{line} --json".strip())]


def over_notes(*lines: str) -> list[str]:
    return both(*(f"{line} {WITH_NOTES}".strip() for line in lines))


LINES: dict[str, list[str]] = {
    "ask": [
        *both("'Where is she?'", "'Who owns her?' -c Branches --show-context", "'Nothing' -c 99", "Hi --agent nobody"),
        f"'How tall is the mast of [[Sorrel]]?' -m scripted:models/reader.json {WITH_NOTES} --json",
        "'What is it?' -m scripted:models/eyes.json --attach dot.png --attach paste.txt --json",
        "-t log -p what=tides 'high at noon' --json",
        "'Note this.' -m scripted:models/small.json --thinking",
        "'Is anybody there?' -m scripted:models/lost.json",
        "'And now?' -c 'By a model' --strategy hybrid --json",
    ],
    "chat": [
        "-c 'By a model' <<< And what now?\\n/quit\\n",
        f"-c 'Tools and notes' {WITH_NOTES} --show-context <<< How tall is [[Sorrel]]?\\n",
    ],
    "conversations hide": both("Branches", "nothing"),
    "conversations delete": both("Branches"),
    "conversations empty-trash": both("--yes --older-than 30", "--yes"),
    "conversations fork": both("'#2' -c Branches", "'#99' -c Branches"),
    "conversations list": both("", "--limit 3", "--hidden", "--trash"),
    "conversations pin": both("'#1' -c Branches", "'#2' -c Branches"),
    "conversations priority": both("'#1' 9 -c Branches", "'#1' 11 -c Branches"),
    "conversations rename": both("Branches 'The cutter'", "'The cutter' ' '"),
    "conversations replay": ["Branches --at-once", "'Tools and notes' --at-once --show-context"],
    "conversations restore": both("'In the trash'", "Branches"),
    "conversations result": ["'#3' -c 'Tools and notes'", "'#2' -c 'Tools and notes'"],
    "conversations search": both(
        "euros Ada --limit 3",
        "pier -c Branches",
        "船の名前",
        "key --role user",
        "recipe --since 2026-03-03 --limit 2",
        "xyzzy",
    ),
    "conversations show": [
        *both(
            "",
            "Branches --branches",
            "'By a model' --limit 4",
            "'Revised by hand' --limit 6",
            "'Several models' --limit 3",
        ),
        *both("'Tools and notes' --limit 8", "'A goal reached'", "Attachments", "'Learned by a model'", "'The clerk'"),
        "13 --json",
        "'Tools and notes' --no-tools --no-system --limit 4",
        "'Is anybody there?' --json",
    ],
    "conversations unhide": both("'Hidden away'", "Branches"),
    "conversations undo": both("Branches", "'Where is the shed?'"),
    "conversations unpin": both("'#1' -c 'Revised by hand'", "'#2' -c Branches"),
    "context clear": both("Branches"),
    "context compact": both("7 --keep 'the prices'", "Branches", "'Revised by hand'"),
    "context cost": both(
        "",
        "'By a model'",
        "--all",
        "--all --by day",
        "--all --by model",
        "--all --by purpose",
        "--all --since 2026-03-06",
    ),
    "context export": [
        "'How long is she?'",
        "Branches --format markdown",
        "'Tools and notes' --format markdown",
        "'Chosen sentences' --format markdown",
        "'Attachments' --format html",
        "'A goal reached' -o talk.md",
    ],
    "context import": both("list.json", "nothing.json", "paste.txt", "golden.jsonl"),
    "context memory": both("", "Learned --message 'Where does Anna live?'", "'The clerk'"),
    "context set": both("threshold 0.7 -c Branches", "context.threshold 7 -c Branches", "model x -c Branches"),
    "context show": [
        *both(
            "",
            "'By a model'",
            "'Chosen sentences' --message 'What must we pay to Ada?'",
            "'Hybrid bands' --message 'And now?'",
        ),
        *both(
            "--new --message Hello",
            f"'Tools and notes' {WITH_NOTES} --message 'See [[Harbour]]'",
            "'The clerk' --message 'How do I test tides?'",
        ),
        "'Longer than the window' --message 'And?' --all",
        "'Old results' --json",
    ],
    "context stats": both(
        "", "'By a model'", "'A goal reached'", "'How long is she?'", "'Tools and notes'", "'Revised by hand' --by turn"
    ),
    "context summary": both(
        "'By a model'",
        "'Chosen sentences' --all",
        "'Revised by hand' --lost",
        "Discarded",
        "Branches",
        "'Revised by hand' --text paste.txt",
    ),
    "context uncompact": both("'By a model'", "Branches"),
    "context unset": both("prepare_at -c 'Prepared ahead'", "threshold -c Branches"),
    "context whatif": both(
        "'#9' -c 'By a model' --strategy discard",
        "'#9' -c 'By a model' --window 4000",
        "--all '#9' -c 'By a model'",
    ),
    "request rebuild": ["'#24'", "'#2' -o body.json", "99999"],
    "request show": both("", "'#24'", "previous", "'#2' --source rule:style"),
    "request verify": ["--all", "--all --json", "last", ""],
    "sources add": both(
        "rule:night -c 'The clerk'", "rule:nothing -c 'The clerk'", "ref:prices rule:night -c 'The clerk'"
    ),
    "sources ask": both("tool:tides/high -c 'The clerk'", "recto/read_document -c 'Tools and notes'"),
    "sources distrust": both("tides", "nothing"),
    "sources export": ["--since 2026-03-06T20:00", "--agent clerk", "--agent nobody"],
    "sources list": both("", "-c 'The clerk'", "-c 'The clerk' --kind rule", "--agent clerk --kind tool"),
    "sources mode": both("rule:night always --agent clerk", "rule:night sometimes --agent clerk", "tool:tides agent"),
    "sources remove": both("rule:night -c 'The clerk'", "rule:style -c Branches"),
    "sources stats": both("", "--agent clerk", "--since 2026-03-05"),
    "sources trust": both("tides", "nothing"),
    "agent config": both(
        "clerk",
        "clerk context.threshold",
        "clerk context.threshold 0.7",
        "clerk context.threshold --unset",
        "clerk nonsense 1",
        "nobody",
    ),
    "agent list": both(""),
    "agent new": both("pilot -d 'Guides ships in'", "pilot", "mate --project -m openai:gpt-4o"),
    "agent run": [
        f"'Find out which engine was chosen' -m scripted:models/worker.json {WITH_NOTES}",
        f"'Find out which engine was chosen' -m scripted:models/worker.json {WITH_NOTES} --json",
        f"'Find out' -m scripted:models/worker.json {WITH_NOTES} --max-steps 1 --json",
        f"--continue -c 'A goal out of steps' {WITH_NOTES} --max-steps 9 --json",
        "Talk --json",
        "--continue -c 'A goal reached' --json",
    ],
    "agent show": both("", "clerk", "nobody"),
    "vault backlinks": over_notes("Sorrel", "Nowhere"),
    "vault broken": over_notes("", "Welcome"),
    "vault graph": [*over_notes("", "--from Welcome --depth 1"), f"--format json -o - {WITH_NOTES}"],
    "vault index": over_notes("--no-vectors", "--no-vectors"),
    "vault links": over_notes("Welcome", "Sorrel"),
    "vault search": over_notes("'which engine did we choose'", "船の名前", "pier -n 1 --excerpts 1", "xyzzy"),
    "vault stats": over_notes("", "--by conversation", "--unused"),
    "vault status": [*over_notes(""), "--vault ../nowhere"],
    "vault suggest": over_notes("'Notes again'", "Branches --limit 2"),
    "memory add": both(
        "'The cat is called Miso' --kind other", "'Anna moved to Bremen'", "'I prefer short answers'", "''"
    ),
    "memory edit": both("3 'Anna moved to Kiel'", "5 --kind project", "5 --replaced-by 3", "99 x", "6 x"),
    "memory export": ["", "--format json", "-o facts.md"],
    "memory forget": both("5 --yes", "99 --yes"),
    "memory import": both("paste.txt", "facts.json", "nothing.md"),
    "memory list": both("", "--all", "--kind person", "--limit 2"),
    "memory relevance": both("--message 'Where does Anna live?'", "'Learned' --message 'What about nuts?'"),
    "memory search": both("where does Anna live", "Sorrel", "xyzzy"),
    "memory show": both("2", "1", "4", "6", "99"),
    "store accept": both(""),
    "store backup": both("../copy.db", "../copy.db"),
    "store check": both(""),
    "store copy": both("--to sqlite:///../other.db"),
    "store prune": both(
        "--older-than 2d --dry-run",
        "--older-than 2h --key laptop --yes",
        "--older-than 3d -c Branches --yes",
        "--older-than soon",
    ),
    "store restore": both("../copy.db", "../nothing.db"),
    "config distrust": both("", "model"),
    "config get": both("model", "context.strategy -c Discarded", "nonsense"),
    "config set": both("context.threshold 0.7", "context.threshold 7", "references.auto never --project", "nonsense 1"),
    "config show": both("", "max_prompt_tokens", "num_ctx", "search", "context.strategy -c 'Hybrid bands'"),
    "config trust": both("", "vault"),
    "config unset": both("context.prepare_at", "context.prepare_at", "context.recent_messages_to_keep --project"),
    "models list": ["", "'first mate' --json"],
    "models show": both(
        "scripted:models/small.json",
        "'First mate'",
        "openai:gpt-4o-mini",
        "anthropic:claude-sonnet-4-5",
        "nobody:nothing",
    ),
    "serve keys add": both("tablet --model openai:* --spend-day 2 --requests-per-minute 9", "laptop"),
    "serve keys list": both(""),
    "serve keys remove": both("phone", "phone"),
    "keys list": both(""),
    "keys remove": both("openai", "anthropic"),
    "keys set": [
        "openai <<< sk-golden-0123456789\\n",
        "openai --json <<< sk-golden-0123456789\\n",
        "'no such' <<< x\\n",
    ],
}


def _write(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / "project" / name).write_text(text)


def _asked(root: Path) -> None:
    """Requests are named by numbers in the conversation that was used last."""
    CliRunner().invoke(recto, ["ask", "And now?", "-c", "By a model"], catch_exceptions=False)


def _backup(root: Path) -> None:
    (root / "copy.db").write_bytes((root / "home/recto.db").read_bytes())
    os.utime(root / "copy.db", (1_770_000_000, 1_770_000_000))


def _trusting(root: Path) -> None:
    (root / "project/.recto/config.toml").write_text('model = "openai:gpt-4o"\n')


PREPARED: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(("request rebuild", "request show"), _asked),
    "context import": _write(
        "list.json", '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]'
    ),
    "memory import": _write("facts.json", '["The dinghy is red", "The oars are ash"]'),
    "store restore": _backup,
    "keys remove": lambda root: (root / "home/keys.json").write_text('{"OPENAI_API_KEY": "sk-golden-0123456789"}'),
    "vault index": lambda root: shutil.rmtree(root / "home/vaults"),
    "config trust": _trusting,
    "config distrust": _trusting,
}

# Hashes of a whole store, which holds the paths of this machine.
VARYING = {"store copy": re.compile(r"[0-9a-f]{64}")}
