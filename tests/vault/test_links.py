import pytest

from recto.vault.links import Link, find_links


def test_links_are_found_in_order_with_their_parts() -> None:
    found = find_links("See [[Budget|the money]], [[ Plan # Goals ]] and [[Log^b1]] or ![[map.svg]]")
    assert found == [
        Link("[[Budget|the money]]", "Budget", caption="the money"),
        Link("[[ Plan # Goals ]]", "Plan", heading="Goals"),
        Link("[[Log^b1]]", "Log", block="b1"),
        Link("[[map.svg]]", "map.svg"),
    ]


@pytest.mark.parametrize(
    "text", ["[[]]", "[[ ]]", "[[open", "[[a\nb]]", "`[[code]]`", "```\n[[fence]]\n```", "``a ` [[x]] ``", "~~~\n[[y]]"]
)
def test_code_empty_and_unclosed_links_are_no_links(text: str) -> None:
    assert find_links(text) == []


def test_text_after_a_fence_is_read_again() -> None:
    assert [link.target for link in find_links("```\n[[a]]\n```\n[[b]] `[[c]]` [[d]]")] == ["b", "d"]
