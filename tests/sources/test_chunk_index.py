"""ChunkIndex: which words of a question a chunk contains, and their weight."""

from hypothesis import given
from hypothesis import strategies as st

from recto.sources.candidates import ChunkIndex, SourceChunk, name_weight, question_stems, text_stems


def chunk(name: str, text: str) -> SourceChunk:
    return SourceChunk((text,), text_stems(name), text_stems(f"{name} {text}"))


def indexed(*texts: str) -> tuple[ChunkIndex, set[int]]:
    index = ChunkIndex()
    return index, {index.add(chunk("", text)) for text in texts}


def test_words_match_in_any_form() -> None:
    index, numbers = indexed("Deletes files for good.", "Sent an email.")
    matches, total = index.match(question_stems("delete the file"), numbers)
    assert set(matches) == {0}
    assert set(matches[0].words) == {"delete", "file"}
    assert matches[0].weight == total
    assert set(index.match(question_stems("send emails"), numbers)[0]) == {1}


def test_a_rare_word_weighs_more() -> None:
    index, numbers = indexed(*["open the page"] * 20, "open the invoice")
    matches, _ = index.match(question_stems("page invoice"), numbers)
    assert matches[20].weight > matches[0].weight


def test_common_words_weigh_little() -> None:
    index, numbers = indexed("get weather", "get going")
    matches, _ = index.match(question_stems("get the weather"), numbers)
    assert matches[0].weight > 3 * matches[1].weight


def test_stop_words_do_not_match() -> None:
    index, numbers = indexed("of the and to it is", "what is the weather")
    matches, _ = index.match(question_stems("the of and to it is sunny"), numbers)
    assert matches == {}


def test_abbreviations_match_the_full_word() -> None:
    index, numbers = indexed("Opens a pull request.", "Lists the rows of a database.")
    assert set(index.match(question_stems("merge my pr"), numbers)[0]) == {0}
    assert set(index.match(question_stems("look into the db"), numbers)[0]) == {1}


def test_only_the_given_chunks_are_searched() -> None:
    index, numbers = indexed("tall mast", "tall tower")
    matches, alone = index.match(question_stems("tall"), {1})
    assert set(matches) == {1}
    assert alone > index.match(question_stems("tall"), numbers)[1]


def test_a_removed_chunk_is_not_found() -> None:
    index, numbers = indexed("tall mast", "tall tower")
    index.remove([0])
    assert set(index.match(question_stems("tall"), numbers)[0]) == {1}
    assert len(index) == 1


def test_rare_words_of_a_name_weigh_more() -> None:
    assert name_weight(frozenset({"get", "weather"})) < name_weight(frozenset({"sunny", "weather"}))


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=60))
def test_no_match_weighs_more_than_the_question(texts: list[str], question: str) -> None:
    index, numbers = indexed(*texts)
    matches, total = index.match(question_stems(question), numbers)
    assert set(matches) <= numbers
    assert all(0 <= each.weight <= total + 1e-9 for each in matches.values())
