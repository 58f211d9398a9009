"""Words of a question in chunks: which are held, and what they weigh."""

from hypothesis import given
from hypothesis import strategies as st

from recto.choice.chunks import Chunk, stems
from recto.choice.deck import Deck, asked, name_size


def chunk(name: str, text: str) -> Chunk:
    return Chunk((text,), stems(name), stems(f"{name} {text}"))


def dealt(*texts: str) -> tuple[Deck, set[int]]:
    deck = Deck()
    return deck, {deck.put(chunk("", text)) for text in texts}


def test_words_are_held_in_whatever_form() -> None:
    deck, among = dealt("Deletes files for good.", "Sent an email.")
    held, total = deck.held(asked("delete the file"), among)
    assert set(held) == {0}
    assert set(held[0].words) == {"delete", "file"}
    assert held[0].mass == total
    assert set(deck.held(asked("send emails"), among)[0]) == {1}


def test_a_rare_word_weighs_more() -> None:
    deck, among = dealt(*["open the page"] * 20, "open the invoice")
    held, _ = deck.held(asked("page invoice"), among)
    assert held[20].mass > held[0].mass


def test_what_people_say_anyway_weighs_little() -> None:
    deck, among = dealt("get weather", "get going")
    held, _ = deck.held(asked("get the weather"), among)
    assert held[0].mass > 3 * held[1].mass


def test_function_words_are_no_words() -> None:
    deck, among = dealt("of the and to it is", "what is the weather")
    held, _ = deck.held(asked("the of and to it is sunny"), among)
    assert held == {}


def test_short_forms_mean_what_they_are_short_for() -> None:
    deck, among = dealt("Opens a pull request.", "Lists the rows of a database.")
    assert set(deck.held(asked("merge my pr"), among)[0]) == {0}
    assert set(deck.held(asked("look into the db"), among)[0]) == {1}


def test_only_what_is_on_offer_counts() -> None:
    deck, among = dealt("tall mast", "tall tower")
    held, alone = deck.held(asked("tall"), {1})
    assert set(held) == {1}
    assert alone > deck.held(asked("tall"), among)[1]


def test_what_is_dropped_is_not_found() -> None:
    deck, among = dealt("tall mast", "tall tower")
    deck.drop([0])
    assert set(deck.held(asked("tall"), among)[0]) == {1}
    assert len(deck) == 1


def test_a_name_counts_by_its_telling_words() -> None:
    assert name_size(frozenset({"get", "weather"})) < name_size(frozenset({"sunny", "weather"}))


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=60))
def test_no_chunk_holds_more_than_the_question_says(texts: list[str], question: str) -> None:
    deck, among = dealt(*texts)
    held, total = deck.held(asked(question), among)
    assert set(held) <= among
    assert all(0 <= each.mass <= total + 1e-9 for each in held.values())
