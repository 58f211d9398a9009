"""The signs of use in a reply: those found are right, and most are found."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.used import CASES, FRESH, Turn

from recto.sources.advice import SIGNS
from recto.sources.source import SourceId
from recto.sources.use_detection import MAX_DETAIL_CHARS, SentSource, UseEvidence, detect_uses

ISSUE = SourceId("tool", "create_issue", "github")


def source(name: str, text: str) -> SentSource:
    return SentSource(SourceId("rule" if name.startswith("r_") else "reference", name), text)


def only(reply: str, text: str, known: str = "") -> UseEvidence:
    (use,) = detect_uses(reply, (), [source("s", text)], known)
    return use


def rates(turns: Sequence[Turn], texts: Mapping[str, str], *, among_all: bool = False) -> tuple[float, float]:
    """Of what is said to be used, how much was; of what was used, how much is said to be."""
    said = right = used = 0
    for turn in turns:
        names = list(texts) if among_all else [*turn.used, *turn.unused]
        for use in detect_uses(turn.reply, (), [source(name, texts[name]) for name in names], turn.asked):
            said += bool(use.sign)
            right += bool(use.sign) and use.id.name in turn.used
        used += len(turn.used)
    return right / said, right / used


def test_the_set_is_large_and_mostly_near_misses() -> None:
    turns = (*CASES.turns, *FRESH.turns)
    assert sum(len(turn.used) for turn in turns) >= 80
    assert sum(len(turn.unused) for turn in turns) >= 300
    assert not any(set(turn.used) & set(turn.unused) for turn in turns)


@pytest.mark.parametrize("among_all", [False, True])
def test_detection_is_precise_and_finds_most_uses(among_all: bool) -> None:
    precision, recall = rates(CASES.turns, CASES.sources, among_all=among_all)
    assert precision >= 0.98
    assert recall >= 0.95


@pytest.mark.parametrize("among_all", [False, True])
def test_detection_holds_for_texts_that_were_not_used_for_tuning(among_all: bool) -> None:
    texts = {**CASES.sources, **FRESH.sources} if among_all else FRESH.sources
    precision, recall = rates(FRESH.turns, texts, among_all=among_all)
    assert precision >= 0.95
    assert recall >= 0.8


def test_a_tool_is_used_when_it_was_called_and_not_when_a_reply_talks_of_it() -> None:
    about = "Opens a new issue in a repository with title, body and labels of your choice"
    tools = [
        SentSource(ISSUE, about, "github_create_issue"),
        SentSource(SourceId("tool", "x", "y"), "{}", "x"),
        SentSource(SourceId("tool", "unnamed", "y"), "{}"),
    ]
    signs = [use.sign for use in detect_uses(about, ["github_create_issue", ""], tools, "")]
    assert signs == ["called", "", ""]
    assert detect_uses(about, ["other"], tools[:1], "") == [UseEvidence(ISSUE, "")]


def test_a_quote_is_shown_as_the_reply_writes_it() -> None:
    use = only("As agreed, **Receipts** are due _within_ 30 days of the purchase.", CASES.sources["expenses"])
    assert (use.sign, use.detail) == ("quoted", "Receipts** are due _within_ 30 days of the purchase")


def test_case_punctuation_markdown_and_accents_make_no_difference() -> None:
    text = "Visitors tie up at the eastern pontoon and pay at the kiosk."
    assert only("> VISITORS, tie up at the *eastern* `pontoon`!", text).sign == "quoted"
    assert only("les articles soldes ne sont ni repris ni echanges", CASES.sources["french"]).sign == "quoted"


def test_words_known_before_are_no_quote() -> None:
    said = "Receipts are due within 30 days of the purchase."
    assert only(said, CASES.sources["expenses"]).sign == "quoted"
    assert only(said, CASES.sources["expenses"], known=f"I know:\n{said}\nWhat else?").sign == ""


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        ("See https://wiki.example/boats/sorrel for more.", "https://wiki.example/boats/sorrel"),
        ("Ask harbour.master@example.org about it.", "harbour.master@example.org"),
        ("Set `max_retry_count` to a lower value.", "max_retry_count"),
        ("It is in src/engine/boiler.py somewhere.", "src/engine/boiler.py"),
        ("Call order.getShippingQuote now.", "getshippingquote"),
        ("Add --no-cache-dir to it.", "--no-cache-dir"),
        ("The part is a KX-4471B.", "kx-4471b"),
    ],
)
def test_a_special_spelling_is_a_quote_by_itself(reply: str, detail: str) -> None:
    text = (
        "The wiki is at https://wiki.example/boats/sorrel, mail to harbour.master@example.org. "
        "max_retry_count is 3, see src/engine/boiler.py or getShippingQuote. Use --no-cache-dir. Part KX-4471B fits."
    )
    use = only(reply, text)
    assert (use.sign, use.detail) == ("quoted", detail)


@pytest.mark.parametrize("famous", ["GitHub", "JavaScript", "`__init__`", "UTF-8", "README.md", "--help"])
def test_well_known_names_are_no_quote(famous: str) -> None:
    assert only(f"You could try {famous} for that.", f"We host on {famous} and like it.").sign == ""


def test_a_literal_of_a_rule_is_found() -> None:
    use = only("Done. Fair winds, captain!", 'End with "Fair winds, Captain".')
    assert (use.sign, use.detail) == ("quoted", "Fair winds, captain")


def test_number_words_are_numbers() -> None:
    text = "Prove the dough for ninety minutes and bake it for fifteen."
    assert only("Prove your dough for 90 minutes, then bake 15.", text).sign
    assert (
        only("Prove your dough for 90 minutes, then bake 15.", text, known="Prove dough ninety or fifteen?").sign == ""
    )


@pytest.mark.parametrize("rule", ["r_french", "r_metric", "r_short", "r_question", "r_tables", "r_polite"])
def test_a_rule_about_manner_leaves_no_signs(rule: str) -> None:
    reply = "C'est à 384 400 kilomètres en moyenne. Que voulez-vous savoir de plus ?\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    (use,) = detect_uses(reply, (), [source(rule, CASES.sources[rule])], "How far is the moon?")
    assert use.sign == ""


def test_phrases_that_everyone_uses_are_no_quotes() -> None:
    text = "Please let me know if you need anything else. I am happy to help with any other question that you may have."
    assert only("Please let me know if you need anything else, I am happy to help.", text).sign == ""


def test_a_word_that_many_sources_share_tells_little_about_each() -> None:
    texts = [f"Zanzibar and Quixote at Fernweh are matter number {n} here." for n in range(12)]
    one = only("Zanzibar, Quixote and Fernweh it is.", texts[0])
    many = detect_uses(
        "Zanzibar, Quixote and Fernweh it is.", (), [source(f"s{n}", each) for n, each in enumerate(texts)], ""
    )
    assert one.sign
    assert not any(use.sign for use in many)


def test_scripts_without_spaces_are_quoted_too() -> None:
    use = only("您好，商品签收后三十天内可以申请退货。", CASES.sources["chinese"])
    assert (use.sign, use.detail) == ("quoted", "商品签收后三十天内可以申请退货")


def test_a_long_detail_is_shortened() -> None:
    text = "Every " + " ".join(f"hull{n}word" for n in range(60)) + " counts."
    assert len(only(text, text).detail) <= MAX_DETAIL_CHARS


def test_the_order_is_that_of_the_sources_and_none_is_missing() -> None:
    names = ["boat", "api", "harbour"]
    uses = detect_uses("Nothing of it.", (), [source(name, CASES.sources[name]) for name in names], "")
    assert [use.id.name for use in uses] == names


WILD = st.text(max_size=300) | st.sampled_from([*CASES.sources.values()])


@given(WILD, WILD, WILD)
def test_any_texts_can_be_compared(reply: str, text: str, known: str) -> None:
    use = only(reply, text, known)
    assert use.sign in SIGNS
    assert bool(use.sign) == bool(use.detail)


@given(st.sampled_from([*CASES.sources.values()]), WILD)
def test_a_reply_that_only_repeats_what_was_known_shows_nothing(text: str, other: str) -> None:
    assert only(text, text, known=f"{other}\n{text}").sign == ""


@given(st.sampled_from([name for name in CASES.sources if not name.startswith("r_")]))
def test_a_reference_read_out_is_quoted(name: str) -> None:
    assert only(f"Here it is:\n{CASES.sources[name]}", CASES.sources[name]).sign == "quoted"
