"""What a summary tells at all: what binds, what holds a fact, what is about the speaker. Room is no reason for more."""

import pytest
from tests.summary.samples import covered, quarter

from recto.chat.message import Role
from recto.chat.priority import BINDING, CHATTER
from recto.summary.choices import chosen_options, listed_options
from recto.summary.deadlines import plans_for_day
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.facts import is_passing
from recto.summary.ledger import mark_corrections, parse_ledger
from recto.summary.ledger_selection import ledger_lines
from recto.summary.message_lines import message_lines
from recto.summary.sentence_pool import build_pool
from recto.summary.sentence_selection import SentenceRanking
from recto.summary.sentence_series import without_passing_series
from recto.summary.sentences import rate_sentence
from recto.summary.small_talk import is_platitude
from recto.summary.source_lines import ScoredSentence
from recto.summary.statements import is_empty_offer
from recto.summary.worth import is_worth_telling, needs_context, stands_alone


@pytest.mark.parametrize(
    "text",
    [
        "The ferry leaves on 3 May at 8:15.",
        "Lea hates buffets.",
        "You will get a call from Ilse Maring.",
        "The leaflets are due on 3 June at noon, the printer is strict about that",
        "By the way, when you write lengths for me, please use fathoms, I can't think in anything else.",
        "It's 202 chairs.",
        "It turns out the library has a bug.",
        "My mother can't stand buckwheat, so the menu should go without it if possible.",
        "We will never take the bus.",
        "Die Heizung wurde am 7.12.2029 geprüft.",
        "Mi pasaporte caduca el 10/1/2027.",
        "Who pays for the insurance of the boat?",
        "我们最多花三千元。",
    ],
)
def test_what_a_user_states_is_told(text: str) -> None:
    assert is_worth_telling(text, is_assistant=False)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "Yes please.",
        "Hmm, let me think about it.",
        "haha, that is how it always goes",
        "Where were we?",
        "Could you explain how that works again?",
        "Kannst du das noch einmal erklären?",
        "Here is the next list:",
    ],
)
def test_small_talk_and_what_is_not_understood_is_not(text: str) -> None:
    assert not is_worth_telling(text, is_assistant=False)


def test_a_question_is_told_as_long_as_it_is_open() -> None:
    asked = "What would you cook for 12 people on a Friday?"
    assert is_worth_telling(asked, is_assistant=False)
    assert not is_worth_telling(asked, is_assistant=False, is_settled=True)
    assert is_worth_telling("I am allergic to nuts, is that known?", is_assistant=False, is_settled=True)
    assert is_worth_telling("When you write amounts, please use zloty.", is_assistant=False, is_settled=True)
    assert is_worth_telling("Open question: should the minutes be public?", is_assistant=False, is_settled=True)


@pytest.mark.parametrize(
    "text",
    [
        "I ran a charity race last Saturday.",
        "The slow query comes from src/orders/list.py.",
        "The p95 was 3.47 ms with 400 clients.",
        "Ada Lovelace lives in London near Hyde Park.",
        "You must not restart the pump before Monday.",
    ],
)
def test_an_assistant_is_told_with_facts_and_what_it_says_of_itself(text: str) -> None:
    assert is_worth_telling(text, is_assistant=True)


@pytest.mark.parametrize(
    "text",
    [
        "A careful reader likes a bit of order, whatever the plan says.",
        "Elena once needed 18 attempts for that.",
        "In Turku they have done it that way for 20 years.",
        "It took Mei 4 days and about 38 sheets of paper.",
        "In Thun macht man das seit 32 Jahren so, egal was im Plan steht.",
        "En Zamora lo hacen así desde hace 17 años.",
        "Wer die Arbeit macht, erzählt ein wenig Ordnung, solange es Kaffee gibt.",
        "Ein guter Anfang für einen Montag.",
        "That is a nice start for Sunday.",
        "I'll keep that on the list of open points.",
        "I would measure it from outside before changing anything.",
        "Should I go on with the next part?",
        "Noted, thanks.",
        "Then we no longer need the large printer.",
    ],
)
def test_advice_in_general_terms_is_not(text: str) -> None:
    assert not is_worth_telling(text, is_assistant=True)


@pytest.mark.parametrize(
    "text", ["It leaves at 8:15.", "Somebody told me it takes 12 weeks.", "this is from last night"]
)
def test_what_leans_on_another_sentence_needs_it(text: str) -> None:
    assert needs_context(text)
    assert not stands_alone(text)


def test_padding_does_not_fill_the_room() -> None:
    padding = [
        PlainMessage("assistant", f"A careful reader likes order {word}, whatever the plan says. It took them days.")
        for word in ("here", "there", "now", "then", "often", "always", "again", "early", "late", "twice")
    ]
    said = [PlainMessage("user", f"The {noun} costs {cost} euros.") for noun, cost in (("boat", 900), ("tent", 120))]
    told = extract(
        [PlainMessage("user", "Help me plan a week on the lake."), *padding[:5], *said, *padding[5:]], 400, quarter
    )
    assert told.splitlines() == [
        "User: Help me plan a week on the lake.",
        "User: The boat costs 900 euros.",
        "User: The tent costs 120 euros.",
    ]


def test_where_there_is_hardly_anything_else_the_best_of_the_rest_is_told() -> None:
    told = extract(
        [
            PlainMessage("user", "Why is the sky blue?"),
            PlainMessage("assistant", "Short waves scatter more than long ones."),
        ],
        200,
        quarter,
    )
    assert "Short waves scatter" in told


def test_of_what_an_assistant_says_again_and_again_only_the_latest_is_told() -> None:
    said = [PlainMessage("assistant", f"A tent for {people} people is enough for a start.") for people in (12, 24, 31)]
    told = extract([PlainMessage("user", "We hired Aisha Brandt as stage manager."), *said], 60, quarter)
    assert "31 people" in told
    assert "12 people" not in told
    assert "24 people" not in told


def test_of_passing_remarks_of_one_kind_only_the_latest_is_told() -> None:
    people = ("Ada", "Mei", "Ben")
    remarks = [f"I saw that {who} got {count} replies already." for who, count in zip(people, (7, 9, 12), strict=True)]
    lockers = [f"{who} has locker {key} in the hall." for who, key in zip(people, ("A17", "B20", "C31"), strict=True)]
    moved = [f"Item {number} was moved to box {number + 7}." for number in (3, 4, 5)]
    said = [PlainMessage("user", text) for text in ("We plan a fair.", *remarks, *lockers, *moved)]
    told = extract(said, 200, quarter)
    assert "Ben got 12" in told
    assert "Ada got 7" not in told
    assert all(text in told for text in (*lockers, *moved))


def test_a_later_remark_of_the_same_kind_takes_the_place_of_those_in_the_former_summary() -> None:
    said = [f"I saw that {who} got {count} replies already." for who, count in (("Ada", 7), ("Mei", 9), ("Ben", 12))]
    told = ""
    for text in ("The boat Marlin costs 900 euros.", *said):
        told = extract([PlainMessage("user", text)], 200, quarter, told)
    assert told.splitlines() == ["User: The boat Marlin costs 900 euros.", f"User: {said[-1]}"]


def test_what_stands_between_quotation_marks_is_material() -> None:
    text = 'Make this less stiff: "The boat costs much. It has 14 seats. Nobody knows why." The harbour opens at 7:30.'
    told = extract([PlainMessage("user", "Help me write."), PlainMessage("user", text)], 200, quarter)
    assert "The harbour opens at 7:30." in told
    assert "Nobody knows why" not in told


def test_the_ledger_leaves_out_what_is_not_worth_its_line() -> None:
    messages: tuple[tuple[Role, str], ...] = (
        ("user", "The ferry to Elba costs 84 euros."),
        ("assistant", "Elena once needed 18 attempts for that. It took Mei 39 days and about 28 sheets of paper."),
        ("assistant", "Should I go on with the next part?"),
        ("user", "Yes please"),
    )
    lines = ledger_lines(list(covered(messages).entries.values()), 400, quarter)
    assert list(lines) == ["#1: The ferry to Elba costs 84 euros"]


def test_what_the_user_took_is_told_with_the_words_that_proposed_it() -> None:
    said = "Of the three, **Casa do Conto** is the quietest. It has a garden. Torel is on a busy street with bars."
    told = extract(
        [
            PlainMessage("user", "Which hotel in Porto would you take?"),
            PlainMessage("assistant", said),
            PlainMessage("user", "ok take that then"),
            PlainMessage("assistant", "Everyone involved forgets what can be undone, which is seldom a problem."),
            PlainMessage("user", "My sister Anjali lived near the funicular of Viana."),
            PlainMessage("user", "We fly on 19 September from Edinburgh, with two large suitcases."),
        ],
        200,
        quarter,
    )
    assert "Casa do Conto" in told
    assert "Everyone involved" not in told


def test_what_an_assistant_knows_is_not_told_and_what_was_done_is() -> None:
    told = extract(
        [
            PlainMessage("user", "Help me with biology, I have a test."),
            PlainMessage("assistant", "Gladly."),
            PlainMessage("user", "Do plants respire only at night?"),
            PlainMessage("assistant", "Plants respire all the time. The seeds in your photo were watered too late."),
            PlainMessage("user", "My brother Ben has the same teacher."),
        ],
        70,
        quarter,
    )
    assert "Plants respire all the time." not in told
    assert "The seeds in your photo were watered too late." in told


@pytest.mark.parametrize("text", ["No llames nunca al doctor Ibarra.", "No seafood for Priya Nair on 3 May."])
def test_a_no_is_never_cut_off(text: str) -> None:
    lines = ledger_lines(list(covered((("user", text),)).entries.values()), 200, quarter)
    assert lines
    assert all(line.startswith("#1: No ") for line in lines)


def test_a_remark_that_is_said_again_word_for_word_stays_with_what_stands_beside_it() -> None:
    remark = "User: I saw that Ada got 7 replies already."
    assert without_passing_series([remark, "User: The tent costs 120 euros.", remark, remark])[-1] == remark
    beside = [f"{remark} Lea hates buffets.", f"{remark} Ben sings.", f"{remark} Mei left."]
    assert without_passing_series(beside) == beside


def test_of_two_passing_remarks_of_the_same_form_the_latest_is_told() -> None:
    lines = [f"User: I saw that {name} got {n} replies already." for name, n in (("Ada", 7), ("Ben", 9))]
    assert without_passing_series([*lines, "User: We hired Bruno Dumont."]) == [
        lines[-1],
        "User: We hired Bruno Dumont.",
    ]
    prices = ["User: The tent of Ada costs 120 euros.", "User: The tent of Ben costs 140 euros."]
    assert without_passing_series(prices) == prices


def test_an_assistants_passing_remark_is_not_worth_telling() -> None:
    assert not is_worth_telling("Before that Ada needed 34 attempts and coffee.", is_assistant=True)
    assert is_worth_telling("Ada needs 34 attempts at most, so we stay with her.", is_assistant=True)
    assert not is_worth_telling("mmm, I have to think about prices", is_assistant=False)


def test_an_assistant_that_uses_some_of_the_users_words_for_something_general_is_not_told() -> None:
    said = [
        PlainMessage("user", "We hired Aisha Brandt as stage manager, visitors get their coffee from her."),
        PlainMessage("assistant", "Average visitors forgive slow evenings whenever people serve strong coffee early."),
        PlainMessage("user", "The hall holds 320 people."),
    ]
    assert "Average visitors" not in extract(said, 60, quarter)


def test_a_sentence_about_somebody_is_no_context_of_another_about_somebody() -> None:
    said = [
        PlainMessage("user", "Help me to plan the fair."),
        PlainMessage("assistant", "Everyone involved starts with long lists when there is no hurry."),
        PlainMessage("user", "Right, talked it through with everyone at lunch: we're taking Tandem for the tickets."),
    ]
    told = extract(said, 120, quarter)
    assert "Tandem" in told
    assert "long lists" not in told


def test_a_letter_that_the_user_liked_is_past() -> None:
    letter = PlainMessage("assistant", "Dear parents, our school moves to 27 Castle Street on 25 August.")
    plan = PlainMessage("assistant", "The school could move to 27 Castle Street on 25 August.")
    weights = [message_lines([said, PlainMessage("user", "Perfect")], False)[0].weight for said in (letter, plan)]
    assert 10 * weights[0] <= weights[1]


def test_of_a_figure_that_changes_only_the_latest_is_told() -> None:
    said = [PlainMessage("user", f"A customer wrote that the page took {n} seconds to load.") for n in (10, 37, 14, 24)]
    told = extract([PlainMessage("user", "Help me with the IT of a small practice."), *said], 200, quarter)
    assert "24 seconds" in told
    assert told.count("seconds") == 1
    assert is_passing("Svenja hat schon 25 Antworten auf die Umfrage.")
    assert not is_passing("Anna earns 300 euros.")


def test_what_is_quoted_to_be_rephrased_is_not_what_the_two_talk_about() -> None:
    said = [
        PlainMessage("user", "We hired Aisha Brandt as stage manager, she starts on 4 May with the lights."),
        PlainMessage("assistant", "A newcomer forgets small surprises and makes coffee early."),
        PlainMessage("user", 'Please rephrase this: "A newcomer forgets coffee, and small surprises help early."'),
        PlainMessage("assistant", "Sure: new people forget."),
    ]
    assert "A newcomer forgets small surprises and makes" not in extract(said, 60, quarter)


def test_what_an_assistant_said_with_another_figure_takes_the_place_of_the_former() -> None:
    lines = [f"Assistant: A tent for {number} people is enough for a start." for number in (9, 5, 29)]
    assert without_passing_series([*lines, "User: We hired Bruno Dumont."]) == [
        lines[-1],
        "User: We hired Bruno Dumont.",
    ]


def test_a_summary_repeats_no_line() -> None:
    assert without_passing_series(["User: It says no.", "User: Yes.", "User: It says no."]) == [
        "User: Yes.",
        "User: It says no.",
    ]


LISTED = (
    "Here are some titles:\n\n1. **The Quiet Oar**: about the ferryman\n2. **What the Sea Returns**: about the wreck\n"
    "3. **Salt**: short and plain\n\nWhich one do you like?"
)


@pytest.mark.parametrize("reply", ["The second one!", "Hm, I like the second.", "Number 2 please.", "2", "option 2"])
def test_a_choice_brings_the_option_that_was_taken(reply: str) -> None:
    said = [
        PlainMessage("user", "I am writing a novel about a wreck near Brest and need a title."),
        PlainMessage("assistant", LISTED),
        PlainMessage("user", reply),
        PlainMessage("assistant", "Lovely!"),
        *[PlainMessage("user", f"Chapter {number} takes place in {town}.") for number, town in enumerate(TOWNS, 1)],
    ]
    told = extract(said, 120, quarter)
    assert "What the Sea Returns" in told
    assert "The Quiet Oar" not in told
    assert "Salt" not in told


TOWNS = ("Morlaix", "Roscoff", "Quimper", "Vannes")


@pytest.mark.parametrize(
    ("listed", "reply", "taken"),
    [
        ("Zwei Wege:\n- mit der Bahn über Gera\n- mit dem Bus über Jena\nWas passt besser?", "Also die erste.", "Gera"),
        ("Hay dos:\n1. Hotel Miramar\n2. Pensión Lola\n¿Cuál?", "La segunda, que es más barata.", "Lola"),
        ("Deux titres :\n- *Le Sel*\n- *La Rame*\nLequel ?", "Le deuxième !", "Rame"),
        ("Plans:\n- walk\n- take the late ferry", "the last one", "ferry"),
        ("Boards:\nA) a hex map\nB) one track\nC) four lanes", "C, but ships can switch lanes", "lanes"),
        ("Ways:\n1. map them\n2. keep them empty", "2 only. Tomek built on it", "empty"),
    ],
)
def test_options_are_counted_in_four_languages(listed: str, reply: str, taken: str) -> None:
    options = listed_options(listed)
    (chosen,) = chosen_options(reply, options)
    assert taken in options[chosen]


@pytest.mark.parametrize(
    "reply",
    [
        "Is the second one dearer?",
        "Not the second one.",
        "the ninth one",
        "At first I did not see it.",
        "20 people",
        "2 people come.",
        "A friend said so.",
        "definitely not 2, we lost orders that way",
    ],
)
def test_a_question_a_refusal_and_a_place_that_is_not_listed_choose_nothing(reply: str) -> None:
    assert not chosen_options(reply, listed_options(LISTED))


def test_several_options_can_be_taken() -> None:
    options = listed_options("Cards:\n1. Storm\n2. Tide\n3. Hermit\n4. Fog")
    assert chosen_options("1, 2 and 4. the hermit is boring", options) == (0, 1, 3)
    assert chosen_options("the first and the third", options) == (0, 2)


def test_a_list_of_questions_is_nothing_to_choose_from() -> None:
    assert listed_options("Tell me:\n- Where do you live?\n- How old are you?") == ()


def test_the_ledger_tells_which_option_was_taken() -> None:
    talk = covered((("assistant", LISTED), ("user", "The second one!")))
    lines = ledger_lines(mark_corrections(talk.entries.values()), 200, quarter)
    assert any("What the Sea Returns" in line for line in lines)
    assert any("The second one" in line for line in lines)
    assert not any("Quiet Oar" in line for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "Priya is allergic to shellfish.",
        "Mein Vater verträgt keine Laktose.",
        "Y no tolera la codeína, vomita.",
        "Ma sœur est allergique aux noix.",
        "Oui, mais pas plus de vingt chapitres, et je ne veux aucun flash-back.",
        "Nicht mehr als 20 Seiten bitte.",
        "No me cambies nada de la lista sin que lo diga un médico.",
        "We signed the lease.",
        "Wir haben zugesagt.",
        "Hemos firmado.",
        "On a réservé la salle.",
    ],
)
def test_what_must_be_observed_and_what_is_agreed_binds(text: str) -> None:
    assert rate_sentence(text) == BINDING


@pytest.mark.parametrize(
    "text",
    [
        "Einen schönen Tag und alles Gute für Ihren Mann!",
        "Have a lovely weekend!",
        "Que tengas un buen día.",
        "Bonne continuation !",
        "Good call!",
        "Excellent choix !",
    ],
)
def test_wishes_and_praise_are_small_talk(text: str) -> None:
    assert rate_sentence(text) == CHATTER


def test_a_short_outcome_comes_with_the_sentence_before_it() -> None:
    said = [
        PlainMessage("user", "We want to buy a house in Celle and are negotiating."),
        PlainMessage("assistant", "Offer 180,000 first."),
        PlainMessage("user", "He came down to 195,500! We accepted."),
    ]
    assert "He came down to 195,500! We accepted." in extract(said, 200, quarter)


def test_what_was_agreed_to_comes_with_the_yes() -> None:
    said = [
        PlainMessage("user", "I was offered the lead of the type team and I am not sure."),
        PlainMessage("assistant", "That is hard. One option is to ask for a design day in writing, as a condition."),
        PlainMessage("user", "Good point, I'll ask for that in writing."),
        PlainMessage("assistant", "Great! Would you like to practise the talk?"),
    ]
    told = extract(said, 200, quarter)
    assert "Good point, I'll ask for that in writing." in told
    assert "ask for a design day in writing" in told


def test_a_result_in_bold_is_told_although_it_looks_like_a_formula() -> None:
    said = [
        PlainMessage("user", "My mother is 78 and weighs 58 kilos, her creatinine is 1.4."),
        PlainMessage("assistant", "With Cockcroft-Gault: (140 − 78) × 58 × 0.85 / (72 × 1.4) = **30.3 ml/min**."),
    ]
    assert "**30.3 ml/min**" in extract(said, 200, quarter)


def test_a_plan_that_sums_up_stands_alone() -> None:
    assert is_worth_telling("Then: Porto 19–23, Guimarães 23–26, Porto 26–27.", is_assistant=True)


def test_advice_yields_to_what_the_user_says() -> None:
    said = [
        PlainMessage("user", "We want to buy a house in Celle."),
        *[
            message
            for day, town in enumerate(TOWNS, 2)
            for message in (
                PlainMessage("assistant", f"You could offer {170 + day},000 euros in {town} and see what happens."),
                PlainMessage("user", f"My uncle in {town} lends us something on the {day}th."),
            )
        ],
    ]
    told = extract(said, 80, quarter)
    assert told.count("User: ") > told.count("Assistant: ")


def test_a_context_is_not_told_without_the_sentence_that_needs_it() -> None:
    kept = ScoredSentence(0, 0, "The boat costs 900 euros.", frozenset({"boat"}), 1.0)
    context = ScoredSentence(1, 0, "We did.", frozenset({"did"}), 0.01)
    cut_off = ScoredSentence(1, 1, "He says 199 now.", frozenset({"199"}), 1.0)
    ranking = SentenceRanking([kept, context, cut_off], {cut_off.key: [context.key]}, frozenset())
    assert ranking.understandable([kept, context]) == [kept]
    assert ranking.understandable([kept, context, cut_off]) == [kept, context, cut_off]


@pytest.mark.parametrize("text", ["Cool, John.", "Yeah Maria, it's awesome!", "Nice one, Ben!"])
def test_small_talk_that_names_the_other_is_small_talk(text: str) -> None:
    assert rate_sentence(text) == CHATTER


@pytest.mark.parametrize("text", ["I'm really proud of you for taking part.", "I totally agree, Mel.", "Time flies."])
def test_praise_and_agreement_are_not_told(text: str) -> None:
    assert not is_worth_telling(text, is_assistant=False)


def ledger_of(*messages: tuple[Role, str], limit: int = 200) -> tuple[str, ...]:
    return ledger_lines(mark_corrections(covered(messages).entries.values()), limit, quarter)


def test_a_short_sentence_is_quoted_whole_in_the_ledger() -> None:
    assert ledger_of(("user", "Ok nur Flur und Wohnzimmer, 700 extra.")) == ("#1: nur Flur und Wohnzimmer, 700 extra",)


def test_what_an_assistant_advises_ranks_below_what_it_states() -> None:
    said = "You could set aside 2,000 pounds for flowers. The register office takes 3,000 pounds for a room."
    entries = covered((("assistant", said),)).entries.values()
    advised, stated = (next(entry for entry in entries if word in entry.text) for word in ("flowers", "room"))
    assert advised.rank < stated.rank


@pytest.mark.parametrize(
    "text",
    [
        "she'd do it for 1,500",
        "der schaut am Samstag",
        "Ils en donnent 15",
        "Que lo mande para el 20 de mayo",
        "Non, ne le faites surtout pas",
    ],
)
def test_a_subject_that_nobody_knows_needs_its_context(text: str) -> None:
    assert not stands_alone(text)


@pytest.mark.parametrize("text", ["Der alte Kessel ist kaputt.", "Il faut garder la caisse.", "Die Miete steigt."])
def test_a_noun_behind_an_article_is_known(text: str) -> None:
    assert stands_alone(text)


@pytest.mark.parametrize(
    "question",
    ["Soll ich einen Entwurf machen?", "Souhaitez-vous une proposition de rédaction ?", "Shall I draft it?"],
)
def test_an_offer_to_go_on_is_not_worth_its_answer(question: str) -> None:
    assert is_empty_offer(question)


def test_a_word_that_opens_a_message_comes_with_what_follows() -> None:
    said = [
        PlainMessage("user", "Our nightly load into the warehouse has been failing since Tuesday."),
        PlainMessage("assistant", "Remove the join and run it again."),
        PlainMessage("user", "deployed. It took 47 minutes this time."),
    ]
    assert "deployed. It took 47 minutes" in extract(said, 200, quarter)


def test_an_answer_counts_for_more_than_a_remark() -> None:
    asked = [PlainMessage("assistant", "Which boat goes to Vannes?"), PlainMessage("user", "The small green one goes.")]
    remarked = [PlainMessage("assistant", "The sea was calm."), PlainMessage("user", "The small green one goes.")]
    answer, remark = (
        next(found.score for found in build_pool(message_lines(said, is_beginning=False), 400).sentences if found.line)
        for said in (asked, remarked)
    )
    assert answer > remark


@pytest.mark.parametrize(
    "text",
    ["BatiFlow éliminé.", "oil cubes are out", "Pas plus de dix pages.", "ok decided: run walk at every aid station"],
)
def test_what_is_ruled_out_or_settled_binds(text: str) -> None:
    assert rate_sentence(text) == BINDING


def test_a_correction_that_is_announced_comes_with_it() -> None:
    said: tuple[tuple[Role, str], ...] = (
        ("user", "Numbers so far: 214 readers, 60 of them by post."),
        ("assistant", "That is a good basis for the application."),
        ("user", "Oh wait, I must correct. It was 204 readers, not 214. Joanna counted ten twice."),
    )
    assert "204 readers" in extract([PlainMessage(*message) for message in said], 60, quarter)
    assert any("204 readers" in line for line in ledger_of(*said))


def test_the_day_of_a_german_date_is_no_number_of_a_list() -> None:
    assert ledger_of(("user", "14. bis 18. Mai, also über Himmelfahrt.")) == (
        "#1: 14. bis 18. Mai, also über Himmelfahrt",
    )


def test_passing_remarks_are_no_weighty_facts() -> None:
    assert not ledger_of(("user", "I saw that Mei got 17 replies to the survey already."))


def test_a_sentence_of_a_document_about_nobody_knows_what_yields() -> None:
    read = "They also appear to have had 8 internal organs. The Warsaw Stock Exchange had 374 companies in 2012."
    told = extract([PlainMessage("user", "Read the next document for me."), PlainMessage("tool", read)], 40, quarter)
    assert "Warsaw Stock Exchange had 374" in told
    assert "They also appear" not in told


def test_a_correction_goes_before_the_figure_that_it_corrects_in_other_words() -> None:
    said: tuple[tuple[Role, str], ...] = (
        ("user", "281, I counted them this morning."),
        ("assistant", "Good."),
        ("user", "I miscounted the chairs btw. It's 516 chairs."),
    )
    entries = covered(said).entries.values()
    wrong, right = (next(entry for entry in entries if value in entry.text) for value in ("281", "516"))
    assert right.rank > wrong.rank
    wrong, right = parse_ledger([f"#1: {wrong.text}", f"#3: {right.text}"])
    assert right.rank > wrong.rank, "from a former ledger too"


@pytest.mark.parametrize("said", ["perdu 3-0 lol", "finalement il a raison de... non je rigole", "we lost 3-0 haha"])
def test_a_joke_is_not_worth_telling(said: str) -> None:
    assert not is_worth_telling(said, is_assistant=False)


def test_an_answer_of_few_words_brings_its_question() -> None:
    said = [
        PlainMessage("assistant", "Good. How is the pain at the moment?"),
        PlainMessage("user", "like 3 in the day, 6 at night"),
    ]
    told = extract(said, 60, quarter)
    assert told.splitlines() == [
        "Assistant: How is the pain at the moment?",
        "User: like 3 in the day, 6 at night",
    ]


def test_the_start_of_a_short_message_brings_what_it_is_about() -> None:
    told = extract([PlainMessage("user", "went weighing on Saturday. Hive 1 has 41 kg, hive 2 only 31")], 60, quarter)
    assert told == "User: went weighing on Saturday. Hive 1 has 41 kg, hive 2 only 31"


@pytest.mark.parametrize(
    "text",
    [
        "Family time means a lot to me.",
        "Yeah Maria, making memories with family is priceless!",
        "Wow, nature can be so beautiful!",
        "Together we can make a real difference.",
        "Freundschaft bedeutet mir sehr viel.",
        "La salud no tiene precio.",
    ],
)
def test_what_anybody_could_say_is_not_told(text: str) -> None:
    assert is_platitude(text)
    assert not is_worth_telling(text, is_assistant=False)


@pytest.mark.parametrize(
    "text",
    [
        "I went to a support group yesterday and talking is so important.",
        "The order of the columns is key for `import.py`.",
        "Making 40 copies is key.",
        "My goal is to give children a home.",
    ],
)
def test_what_somebody_did_or_wants_is_no_platitude(text: str) -> None:
    assert not is_platitude(text)


@pytest.mark.parametrize(
    "text",
    [
        "Mustard yellow sounds adorable!",
        "Prima, dann seid ihr mittags in Passau und könnt noch die Altstadt ansehen.",
        "Of course, British English from now on.",
        "Thanks for the correction of the deadline, that is two days less.",
        "Je regarde d'abord les journaux du serveur.",
        "Ein Parallelbetrieb der alten Melder ist ratsam.",
    ],
)
def test_a_compliment_or_announcement_of_the_assistant_is_not_told(text: str) -> None:
    assert not is_worth_telling(text, is_assistant=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We sail to Fowey on the second weekend of June.", True),
        ("Die Paten kommen am Freitag aus Kiel.", True),
        ("We sailed to Fowey on the second weekend of June.", False),
        ("Hab heute 3 Stunden im Stau gestanden.", False),
        ("It is cold here.", False),
    ],
)
def test_a_plan_names_a_day_that_is_to_come(text: str, expected: bool) -> None:
    assert plans_for_day(text) is expected


def test_sympathy_does_not_settle_a_plan() -> None:
    facts = covered((("user", "We sail to Fowey on the second weekend of June."), ("assistant", "Enjoy the trip!")))
    lines = ledger_lines(mark_corrections(facts.entries.values()), 100, quarter)
    assert lines == ("#1: We sail to Fowey on the second weekend of June",)


def test_of_outcomes_that_differ_in_figures_the_latest_is_told() -> None:
    lines = ["Tool: 180 passed in 6s", "User: Run them again.", "Tool: 343 passed in 9s"]
    assert without_passing_series(lines) == lines[1:]


def test_of_an_assistants_remarks_of_one_form_the_latest_is_told() -> None:
    lines = ["Assistant: Im Herbst geht es schneller.", "User: Mag sein.", "Assistant: Im Sommer geht es schneller."]
    assert without_passing_series(lines) == lines[1:]


def test_what_we_have_is_no_passing_remark() -> None:
    assert not is_passing("We only have licences for 30 copies of the Rutter.")
    assert is_passing("I saw that Mei got 9 replies.")


@pytest.mark.parametrize(
    "text",
    [
        "Dann lassen wir den Ruhetag.",
        "And I react badly to codeine.",
        "No le digáis nada del marcapasos.",
        "Acordamos los hermanos que cada uno llama un día.",
        "So separate logins, and no scanned scores online.",
    ],
)
def test_such_sentences_bind(text: str) -> None:
    assert rate_sentence(text) == BINDING


def test_a_german_pronoun_that_follows_its_noun_leans_on_nothing_else() -> None:
    assert stands_alone("Wir fahren bis Ybbs im Süden und danach im Norden.")
    assert not stands_alone("Ilse brauchte dafür ewig.")


def test_a_yes_does_not_come_along_as_context() -> None:
    said = [
        PlainMessage("user", "Help me plan the concert of our choir."),
        PlainMessage("assistant", "You could share access with Dennis. Shall I draft a timeline?"),
        PlainMessage("user", "Yes please. The concert is on 28 June and tickets must be on sale by 1 May."),
    ]
    assert "Yes please" not in extract(said, 100, quarter)


def test_instructions_of_an_assistant_yield_to_what_was_done() -> None:
    said = [
        PlainMessage("user", "My server in the attic cannot be reached from outside since Tuesday."),
        PlainMessage("assistant", "Install the tunnel with `apt install wireguard` on both machines."),
        PlainMessage("user", "done, the tunnel has the address 10.8.0.2"),
        PlainMessage("assistant", "Now forward port 443 with `nft` on the other machine."),
        PlainMessage("user", "The name now points to 49.12.88.201, and port 443 goes to the attic."),
        PlainMessage("user", "The backup runs every night at 3:15 to the disk of Lena Moor in Graz."),
    ]
    told = extract(said, 400, quarter)
    assert "Install the tunnel" not in told
    assert "Now forward" not in told
    assert "49.12.88.201" in told
