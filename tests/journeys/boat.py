"""A conversation of which nearly all is archived: the one that docs/search.md shows."""

import json
from pathlib import Path
from typing import Any

from recto.api.blocking import Desk, open_desk

SAID = (
    "The mast step was rotten. Harlan put in a new one of oak; his invoice was 340 €.",
    "We sail to Fowey on the second weekend of June, if the tide lets us.",
    "My sister Ada bakes rye bread every Thursday and brings two loaves aboard.",
    "The survey found a soft plank at frame nine, on the port side.",
    "Our insurance runs out on 14 March; the policy is MC-20931.",
    "The cat is called Minka and hates the outboard.",
    "I parked the trailer behind the old cinema.",
    "Paint the coach roof cream, never white again.",
    "The train to Lyon leaves at 7:42 from platform three.",
    "Which rope do we need for the mooring?",
)
ASKED = "What did the repair of the timber below the mast cost?"
REPLY = {"text": "I see, and will keep that in mind."}
SUMMARY = {
    "text": "The boat Sorrel is being made ready for a trip; the user told about repairs, family and plans.",
    "when": "summary",
}


def write_script(path: Path, *steps: dict[str, Any], limit: int = 2048) -> str:
    path.write_text(json.dumps({"limit": limit, "steps": [*steps, SUMMARY]}))
    return f"scripted:{path}"


def tell(home: Path, model: str) -> None:
    """All of it said and compacted, with the vectors that the settings allow."""
    with open_desk(home=home, model=model, settings={"context.recent_messages_to_keep": 2}) as desk:
        talk = desk.conversation()
        for text in SAID:
            talk.ask(text)
        talk.compact()
        desk.index(vectors=True)


def last_text(desk: Desk, request: str) -> str:
    """What the user's message was sent as."""
    messages = json.loads(desk.rebuild(request))["messages"]
    return next(str(each["content"]) for each in reversed(messages) if each["role"] == "user")
