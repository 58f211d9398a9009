"""Documents that a message refers to: each once, and as the model reads of them."""

from hypothesis import given
from hypothesis import strategies as st

from recto import wire
from recto.chat.blocks import DocumentReference, References, reference_list, unique_references

REFERENCES = st.builds(
    DocumentReference,
    st.sampled_from(["[[a]]", "[[b]]", "[[c]]"]),
    st.sampled_from([None, "a.md", "b.md"]),
    st.sampled_from(["direct", "search"]),
    st.none() | st.text(max_size=5),
    st.none() | st.text(max_size=5),
)


def test_the_first_mention_of_a_document_wins() -> None:
    first, second = DocumentReference("[[A]]", "a.md"), DocumentReference("[[x/a]]", "a.md")
    assert unique_references([first, second]) == (first,)


def test_a_direct_reference_takes_the_place_of_one_by_search() -> None:
    found, named = DocumentReference("[[a]]", "a.md", "search"), DocumentReference("[[a]]", "a.md", "direct")
    other = DocumentReference("[[b]]", "b.md", "search")
    assert unique_references([found, other, named]) == (named, other)
    assert unique_references([named, found]) == (named,)


def test_two_different_broken_links_stay_two() -> None:
    broken = [DocumentReference("[[x]]", None), DocumentReference("[[y]]", None), DocumentReference("[[x]]", None)]
    assert unique_references(broken) == tuple(broken[:2])


@given(st.lists(REFERENCES))
def test_each_document_is_there_once_and_none_is_lost(references: list[DocumentReference]) -> None:
    kept = unique_references(references)
    assert unique_references(kept) == kept
    keys = [each.relative_path or each.wikilink for each in kept]
    assert len(keys) == len(set(keys))
    assert {each.relative_path or each.wikilink for each in references} == set(keys)


@given(st.lists(REFERENCES, min_size=1).map(tuple), st.text(max_size=5), st.text(max_size=5))
def test_a_block_of_references_is_the_same_after_json(
    references: tuple[DocumentReference, ...], text: str, vault: str
) -> None:
    block = References(references, text, vault)
    assert wire.block_from_json(wire.loads(wire.dumps(wire.block_to_json(block)))) == block


def test_the_model_is_told_path_summary_what_is_broken_and_the_tool_that_reads() -> None:
    text = reference_list(
        [
            DocumentReference("[[Budget]]", "Money/Budget.md", summary="What we may spend."),
            DocumentReference("[[x]]", None),
        ],
        "read_document",
    )
    assert text.splitlines()[1:] == [
        "- [[Budget]] (Money/Budget.md): What we may spend.",
        "- [[x]]: not found",
        "read_document reads them.]",
    ]
    assert "reads" not in reference_list([DocumentReference("[[x]]", None)], "read_document")
    assert reference_list([], "read_document") == ""
