"""Task text: what the user asks for is found in pages of a prompt, and in the user's own words."""

import pytest

from recto.summary.task_text import find_task, without_examples

ASKED = "The export of tide tables writes empty rows when a station has no name. It should leave those rows out."
RULES = "1. Every response must include exactly one command.\n2. Never open an editor.\n3. Submit when you are done."


SHOWN = f"""Here is a demonstration of the interface.
--- DEMONSTRATION ---
ISSUE:
The tower leans too far.

INSTRUCTIONS:
{RULES}
--- END OF DEMONSTRATION ---
"""
UPLOADED = "<uploaded_files>\n/repo\n</uploaded_files>\nConsider this:"


@pytest.mark.parametrize(
    "prompt",
    [
        ASKED,
        f"{UPLOADED}\n<pr_description>\n{ASKED}\n</pr_description>\nCan you?\n<instructions>\n{RULES}\n</instructions>",
        f"<environment_details>\nOpen tabs: a.py\n</environment_details>\n{ASKED}",
        f"{ASKED}\n<system-reminder>\nThe list of steps is empty. Do not mention it.\n</system-reminder>",
        f"Please solve this:\n\n## Task\n{ASKED}\n\n## Recommended workflow\n{RULES}\n\n## Important rules\n{RULES}",
        f"We work on an issue. Here's its text:\nISSUE:\n{ASKED}\n\nINSTRUCTIONS:\nNow you solve it.\n{RULES}",
        f"{SHOWN}\nISSUE:\n{ASKED}\n\nINSTRUCTIONS:\n{RULES}",
        f"# Aufgabe\n{ASKED}\n\n# Regeln\n{RULES}",
    ],
)
def test_the_task_is_found_in_a_prompt(prompt: str) -> None:
    assert find_task(prompt) == ASKED


def test_rules_alone_are_a_task() -> None:
    assert find_task("INSTRUCTIONS:\nRename the tower module and all that uses it.") != ""


def test_headings_of_the_users_own_text_stay_with_it() -> None:
    asked = find_task("Please speed up the harbour page.\n\n## Goal\nIt should load in 200 ms.")
    assert "speed up the harbour page" in asked
    assert "200 ms" in asked


def test_a_title_is_a_sentence_and_a_link_is_its_words() -> None:
    text = "Rounding of durations\n\nThe field [rounds down](https://example.org/a/very/long/path#L12) to the second."
    assert find_task(text) == "Rounding of durations. The field rounds down to the second."


@pytest.mark.parametrize("text", ["ok, go on", "Yes please, continue.", "Mach bitte weiter!", "sigue, gracias", "👍"])
def test_a_word_to_go_on_is_no_task(text: str) -> None:
    assert find_task(text) == ""


def test_an_example_in_a_prompt_is_left_out() -> None:
    text = "First an example:\n--- EXAMPLE ---\nThe tower leans.\n--- END OF EXAMPLE ---\nThe bridge sways."
    assert without_examples(text).split() == ["The", "bridge", "sways."]
    assert without_examples("The bridge sways.") == "The bridge sways."
