"""Which sources a message needs: laws of the choice, and the choice without vectors."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.pick_data import filled, groups, messages
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import examples

from recto.errors import NoVectors
from recto.search.embedder import Embedder
from recto.search.onnx_embedder import MiniLM
from recto.search.passages import split_sentences
from recto.sources import candidates as candidates_module
from recto.sources.candidates import SourceChunk, source_chunks
from recto.sources.chooser import MAX_BOOST, ChoiceLimits, Chooser, PastTurn
from recto.sources.source import Reference, Rule, Source, SourceId, Tool

SMALL_TALK = (
    "thanks, that was great",
    "ok go on",
    "yes",
    "Hello!",
    "👍",
    "Never mind.",
    "",
    "   \n",
    "Sorry, my mistake.",
)
FIFTY = groups(50)[0]
READ = Tool("read_file", "Read the contents of a file from disk.", {"type": "object"}, "agent", "filesystem")
MAIL = Tool("send_email", "Send an email to somebody.", {"type": "object"}, "agent", "email")
STYLE = Rule("python-style", "Type hints on every function.", "How Python code is written", "agent")
GARDEN = Reference("garden", "Tomatoes are watered at six.", "Running the greenhouse", "agent")
FEW: tuple[Source, ...] = (READ, MAIL, STYLE, GARDEN)


class Topics:
    """An embedder that knows a few topics, and which words belong to them."""

    name = key = "topics"
    topics = (
        "file disk folder document",
        "email letter post",
        "python code function",
        "tomato plant garden greenhouse",
    )

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.delay_s = 0.0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        time.sleep(self.delay_s * len(texts))
        self.may_go_on.wait()
        if self.error:
            raise self.error
        self.asked += texts
        rows = np.array([self._row(text.lower()) for text in texts], float)
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def _row(self, text: str) -> list[float]:
        topics = [float(any(word in text for word in topic.split())) for topic in self.topics]
        return [*topics, 0.5, *(text.count(letter) / 20 for letter in "aeiou")]

    def close(self) -> None: ...


Open = Callable[..., Chooser]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    every: list[Chooser] = []

    def make(embedder: Embedder | None = None, timeout_s: float = 60.0) -> Chooser:
        every.append(Chooser(tmp_path / "sources.db", lambda: embedder, timeout_s=timeout_s))
        return every[-1]

    yield make
    for each in every:
        each.close()


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chooser]:
    """The real thing, over fifty sources."""
    home = tmp_path_factory.mktemp("home")
    chooser = Chooser(home / "sources.db", MiniLM, timeout_s=60.0)
    yield chooser
    chooser.close()


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chooser]:
    """By words alone."""
    chooser = Chooser(tmp_path_factory.mktemp("words") / "sources.db", lambda: None, timeout_s=60.0)
    yield chooser
    chooser.close()


def names(chooser: Chooser, message: str, sources: Sequence[Source] = FEW) -> list[str]:
    return [each.source.name for each in chooser.choose(message, sources).chosen]


# -- what is chosen


def test_the_source_that_a_message_is_about_is_chosen_with_a_reason(words: Chooser) -> None:
    choice = words.choose("Please read the file notes.txt", FEW)
    assert [each.source.name for each in choice.chosen] == ["read_file"]
    assert choice.chosen[0].because == "holds file, read"
    assert choice.note == ""


def test_a_source_is_found_by_meaning_without_its_words(opened: Open) -> None:
    choice = opened(Topics()).choose("Why do my plants wither?", FEW)
    assert choice.chosen[0].source is GARDEN
    assert choice.chosen[0].because.startswith("near in meaning (")
    assert "to 'Why do my plants wither?'" in choice.chosen[0].because


def test_the_need_is_found_in_one_sentence_among_many(minilm: Chooser) -> None:
    sources = next(hand for hand in groups(50) if any(each.name == "slack__post_message" for each in hand))
    said = (
        "The deployment is through and all checks are green. I have looked at the dashboards for an hour, there is "
        "nothing unusual. Post a message to the Slack channel that we are done. I am off to lunch. See you later!"
    )
    choice = minilm.choose(said, sources)
    assert "slack__post_message" in [each.source.name for each in choice.chosen]
    best = next(each for each in choice.chosen if each.source.name == "slack__post_message")
    assert "Post a message" in best.because


@pytest.mark.parametrize("message", SMALL_TALK)
def test_small_talk_needs_nothing(minilm: Chooser, words: Chooser, message: str) -> None:
    for chooser in (minilm, words):
        assert chooser.choose(message, FIFTY).chosen == ()


def test_without_candidates_or_with_stop_words_alone_nothing_is_chosen(words: Chooser) -> None:
    assert words.choose("read a file", ()).chosen == ()
    assert words.scores("read a file", ()) == ({}, "")
    assert words.choose("what is it to the of and a", FEW).chosen == ()
    assert words.choose("how do you do it with all of them", FEW).chosen == ()


@pytest.mark.parametrize("kind", ["minilm", "words"])
def test_a_sources_own_first_sentence_finds_it_among_fifty(kind: str, request: pytest.FixtureRequest) -> None:
    chooser: Chooser = request.getfixturevalue(kind)
    for source in FIFTY:
        text = source.description if isinstance(source, Tool) else re.sub(r"(?m)^#.*$", "", source.text)
        first = split_sentences(text)[0]
        choice = chooser.choose(first, FIFTY, ChoiceLimits(min_score=0.3))
        assert source.id in [each.source.id for each in choice.chosen], first


def test_messages_that_name_what_they_need_find_it(minilm: Chooser) -> None:
    known = {source.id for source in FIFTY}
    asked = [each for each in messages() if each.sort == "words" and each.right <= known]
    assert len(asked) > 10
    for each in asked:
        chosen = [found.source.id for found in minilm.choose(each.text, FIFTY).chosen]
        assert set(chosen) & each.right, each.text


def test_a_long_reference_competes_by_its_best_section(words: Chooser) -> None:
    manual = next(each for each in filled(0) if each.name == "greenhouse-manual")
    (best, *_) = words.choose("What do we do against whitefly in the greenhouse?", (manual, READ)).chosen
    assert best.part is not None
    assert best.part.startswith("## Pests\nWhitefly")
    assert isinstance(manual, Reference)
    assert best.part in manual.text


def test_a_long_reference_that_is_named_as_a_whole_has_a_best_section_too(words: Chooser) -> None:
    manual = next(each for each in filled(0) if each.name == "greenhouse-manual")
    (best, *_) = words.choose("Show me the greenhouse manual", (manual, READ)).chosen
    assert best.source is manual
    assert best.part is not None
    assert best.part.startswith("#")


# -- laws


@given(
    st.integers(0, 25),
    st.integers(0, 8),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([m.text for m in messages()]),
)
@settings(max_examples=examples(60))
def test_limits_are_kept_whatever_they_are(
    words: Chooser, top_k: int, top_n: int, include: float, least: float, message: str
) -> None:
    choice = words.choose(message, FIFTY, ChoiceLimits(top_k, top_n, include, least))
    scores = [each.score for each in choice.chosen]
    assert scores == sorted(scores, reverse=True)
    assert len(choice.chosen) + len(choice.rejected) <= top_k
    assert all(score >= min(least, include) for score in scores)
    assert sum(score < include for score in scores) <= top_n
    assert all(each.score < include for each in choice.rejected)
    better = [each for each in choice.rejected if each.score >= least]
    assert not better or len(choice.chosen) >= top_n


@given(st.text(max_size=300))
@settings(max_examples=examples(60))
def test_any_message_can_be_chosen_for_and_the_same_way_twice(words: Chooser, message: str) -> None:
    first, second = words.choose(message, FIFTY), words.choose(message, FIFTY[::-1])
    assert first == second
    assert all(0 <= each.score <= 1 for each in (*first.chosen, *first.rejected))


def test_the_choice_is_the_same_today_and_tomorrow(opened: Open) -> None:
    before = opened(Topics())
    asked = [each.text for each in messages()[:40]]
    first = [before.choose(message, FIFTY) for message in asked]
    before.close()
    after = opened(Topics())
    assert [after.choose(message, FIFTY) for message in reversed(asked)] == first[::-1]


@pytest.mark.parametrize("kind", ["minilm", "words"])
def test_an_unrelated_source_changes_no_score_by_more_than_a_hair(kind: str, request: pytest.FixtureRequest) -> None:
    chooser: Chooser = request.getfixturevalue(kind)
    other = Reference("quark", "Gluons bind hadrons.", "Chromodynamics", "agent")
    for message in messages()[:300:10]:
        before, _ = chooser.scores(message.text, FIFTY)
        after, _ = chooser.scores(message.text, (*FIFTY, other))
        assert all(abs(after[id] - score) < 0.01 for id, score in before.items())


def test_scores_are_those_of_the_choice(words: Chooser) -> None:
    choice = words.choose("Search Slack messages from Anna about the invoice.", FIFTY)
    scores, note = words.scores("Search Slack messages from Anna about the invoice.", FIFTY)
    assert note == ""
    assert set(scores) == {source.id for source in FIFTY}
    for each in (*choice.chosen, *choice.rejected):
        assert scores[each.source.id] == each.score


# -- who was passed over


def test_a_rejected_source_says_why(words: Chooser) -> None:
    message = "Read the file, then send an email about the python code."
    choice = words.choose(message, FEW, ChoiceLimits(top_n=1, include_score=0.99, min_score=0.05))
    assert len(choice.chosen) == 1
    assert choice.rejected[0].because.startswith("1 other is better, and top_n is 1; holds ")
    choice = words.choose(message, FEW, ChoiceLimits(include_score=0.99, min_score=0.98))
    assert choice.chosen == ()
    assert "is below min_score 0.98" in choice.rejected[0].because


# -- learning


def test_sources_that_similar_messages_used_score_higher(words: Chooser) -> None:
    message = "Water the tomatoes"
    plain = words.choose(message, FEW, ChoiceLimits(min_score=0))
    past = [PastTurn("water the tomatoes please", frozenset({MAIL.id, GARDEN.id}))] * 2
    learned = words.choose(message, FEW, ChoiceLimits(min_score=0), past)
    before = {each.source.id: each.score for each in (*plain.chosen, *plain.rejected)}
    after = {each.source.id: each for each in (*learned.chosen, *learned.rejected)}
    assert before[GARDEN.id] < after[GARDEN.id].score <= before[GARDEN.id] + MAX_BOOST + 1e-9
    assert after[GARDEN.id].because.endswith("similar messages used it twice")
    assert after[READ.id].score == before[READ.id] if READ.id in before else READ.id not in after


@given(st.lists(st.tuples(st.sampled_from([m.text for m in messages()]), st.sampled_from(FIFTY)), max_size=20))
@settings(max_examples=examples(40))
def test_learning_never_lowers_and_is_bounded(words: Chooser, turns: list[tuple[str, Source]]) -> None:
    past = [PastTurn(question, frozenset({source.id})) for question, source in turns]
    every = ChoiceLimits(top_k=1000, top_n=1000, include_score=0, min_score=0)
    message = turns[0][0] if turns else "read a file"
    plain = {each.source.id: each.score for each in words.choose(message, FIFTY, every).chosen}
    learned = {each.source.id: each.score for each in words.choose(message, FIFTY, every, past).chosen}
    for id, score in learned.items():
        assert plain.get(id, 0.0) - 1e-9 <= score <= plain.get(id, 0.02) + MAX_BOOST + 1e-9


def test_a_paraphrase_of_an_earlier_message_counts(opened: Open) -> None:
    past = [PastTurn("My tomatoes look sad", frozenset({MAIL.id}))]
    choice = opened(Topics()).choose("The plants in the garden are dying", FEW, ChoiceLimits(), past)
    told = {each.source.id: each.because for each in (*choice.chosen, *choice.rejected)}
    assert told[MAIL.id].endswith("similar messages used it once")


@pytest.mark.parametrize(
    ("question", "used"),
    [("What is the weather in Oslo?", MAIL.id), ("read the file", SourceId("tool", "gone", "nowhere"))],
)
def test_other_messages_and_sources_that_are_gone_teach_nothing(words: Chooser, question: str, used: SourceId) -> None:
    past = [PastTurn(question, frozenset({used}))] * 9
    assert words.choose("read the file", FEW, ChoiceLimits(), past) == words.choose("read the file", FEW)


def test_the_reason_counts_earlier_uses(words: Chooser) -> None:
    past = [PastTurn("read the file", frozenset({READ.id}))] * 3
    assert words.choose("read the file", FEW, ChoiceLimits(), past).chosen[0].because.endswith("used it 3 times")


# -- what changes, and what fails


def test_only_a_changed_source_is_split_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def noted(source: Source) -> tuple[SourceChunk, ...]:
        taken.append(source.name)
        return source_chunks(source)

    monkeypatch.setattr(candidates_module, "source_chunks", noted)
    chooser = opened()
    chooser.choose("read", FEW)
    chooser.choose("read", [replace(each) for each in FEW])
    assert sorted(taken) == sorted(each.name for each in FEW)
    chooser.choose("read", [*FEW[:3], replace(GARDEN, description="All about plants")])
    chooser.choose("read", [*FEW[:3], replace(GARDEN, text="Peppers too.")])
    assert taken[4:] == ["garden", "garden"]


def test_a_new_description_is_found_at_once(opened: Open) -> None:
    chooser = opened()
    assert names(chooser, "how do we sail a boat?") == []
    changed = [*FEW[:3], replace(GARDEN, description="How to sail a boat")]
    assert names(chooser, "how do we sail a boat?", changed) == ["garden"]


def test_sources_that_are_no_longer_offered_are_dropped(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates_module, "MAX_UNUSED_SOURCES", 0)
    chooser = opened()
    for number in range(30):
        rule = Rule(f"rule-{number}", f"Text of rule {number}", include="agent")
        chooser.choose("text of a rule", [*FEW, rule])
    assert len(chooser._candidates._entries) <= 2 * (len(FEW) + 1) + 1
    assert names(chooser, "read the file") == ["read_file"]


@pytest.mark.parametrize("error", [NoVectors("it is down"), ValueError("a bug")])
def test_a_failing_embedder_leaves_words_and_a_note(opened: Open, words: Chooser, error: Exception) -> None:
    embedder = Topics()
    embedder.error = error
    choice = opened(embedder).choose("read the file", FEW)
    assert replace(choice, note="") == words.choose("read the file", FEW)
    assert str(error) in choice.note
    assert choice.note.endswith(": sources were chosen by words alone")


def test_words_are_used_until_vectors_are_ready_and_one_note_says_so(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Topics()
    chooser = opened(embedder)
    chooser.choose("read the file", FEW)
    monkeypatch.setattr(chooser.vectors, "_make_until", lambda *_: None)  # as if there were no time: in the background
    embedder.may_go_on.clear()
    many = (*FEW, *FIFTY)
    first = chooser.choose("read the file", many)
    assert re.fullmatch(r"sources are chosen by words only until vectors are ready: \d+ of \d+", first.note)
    assert READ in [each.source for each in first.chosen]
    assert chooser.choose("read the file", many).note == ""
    embedder.may_go_on.set()
    assert chooser.vectors.settle(60)
    assert chooser.choose("Why do my plants wither?", many).note == ""
    assert len(embedder.asked) == len(set(embedder.asked))


def test_many_can_choose_at_once(opened: Open) -> None:
    chooser = opened(Topics())
    expected = chooser.choose("Send a letter by post", FIFTY)
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(chooser.choose("Send a letter by post", FIFTY))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_lone_surrogates_and_duplicates_do_no_harm(opened: Open) -> None:
    odd = Tool("odd", "Reads half a \ud800 character.", {"type": "object"}, "agent", "filesystem")
    for embedder in (None, Topics()):
        choice = opened(embedder).choose("read half a \udc00 character", [odd, READ, READ])
        assert odd in [each.source for each in choice.chosen]


def test_an_enormous_message_is_read_at_both_ends(words: Chooser) -> None:
    message = "Nothing here. " * 100_000 + "Read the file."
    assert names(words, message) == ["read_file"]
