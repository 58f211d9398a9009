"""What stays out of summary and ledger even where there is room, and what must not be lost with it."""

import json

import pytest
from tests.summary.samples import covered, quarter

from recto.chat.blocks import Text, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.chat.priority import BINDING, CHATTER
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger import mark_corrections
from recto.summary.ledger_selection import ledger_lines
from recto.summary.plain_messages import extraction_of
from recto.summary.sentences import rate_sentence
from recto.summary.statements import acknowledges
from recto.summary.worth import is_worth_telling

START: tuple[tuple[str, str], ...] = (
    ("user", "We plan the summer party of the rowing club at the lake."),
    ("assistant", "Gladly."),
    ("user", "We expect 180 guests on Saturday, 22 August, and the treasurer Gesine Oltmanns gives us 6,500 euros."),
    ("assistant", "Noted."),
    (
        "user",
        "Nobody may grill on the jetty, the harbour office has forbidden it in writing, and the music ends at ten.",
    ),
    ("assistant", "Noted."),
)


def told(*said: tuple[str, str]) -> str:
    return extract([PlainMessage(role, text) for role, text in (*START, *said)], 400, quarter)


def listed(*said: tuple[Role, str]) -> str:
    entries = mark_corrections(covered(said).entries.values())
    return "\n".join(ledger_lines(entries, 400, quarter))


@pytest.mark.parametrize(
    "text",
    [
        "Gute Besserung an Heiner Maring!",
        "Courage, demain est un autre jour !",
        "Keep at least 10 % back for surprises.",
        "If your budget is tight, a plain kettle does the job for 40.",
        "Il faut réserver une place pour le vélo (10 € par vélo).",
        "Je cherche donc des gîtes et des chambres d'hôtes.",
        "Plusieurs loueurs proposent des vélos, par exemple Roue Libre.",
        "Begrepen, de kast en de klok gaan met de eigen auto.",
        "Met 7.500 euro kun je een heel eind komen.",
        "Ich starte jetzt ein Backup von Hand.",
        "Bonjour, merci de nous avoir contactés.",
    ],
)
def test_cheers_advice_and_announcements_of_an_assistant_are_not_told(text: str) -> None:
    question = ("user", "What do you think?")
    assert text not in told(question, ("assistant", text), ("user", "The boats of Ada Lind are 9 m long."))


@pytest.mark.parametrize(
    ("remark", "reply"),
    [
        ("on crève de chaud dans ce bureau", "Courage, pensez à bien boire !"),
        ("lekker weertje hè vandaag", "Zeker, geniet ervan!"),
        ("ich hol mir erstmal nen kaffee", "Den hast du dir verdient!"),
        ("boah ist das heiß heute, 34 Grad im Büro", "Oje, da hilft nur ein Ventilator!"),
        ("Ruf ich morgen an", "Gute Idee."),
        ("ok doe ik volgende week", "Prima!"),
        ("estoy agotada, llevo 10 horas delante del ordenador", "Descansa un poco, te lo mereces."),
    ],
)
def test_what_a_reply_only_cheers_at_is_not_told(remark: str, reply: str) -> None:
    assert remark not in told(("user", remark), ("assistant", reply), ("user", "The boats are 9 m long."))


@pytest.mark.parametrize(
    ("plan", "reply"),
    [
        ("wir machen beides, Band von 15 bis 18 Uhr und Olli ab 20 Uhr", "Das klingt super! Dann habt ihr alles."),
        ("she won 😂 zellige it is", "Haha, a wise choice!"),
        ("Kettle it is lol", "A sensible choice!"),
        ("We doen het schilderen zelf met mijn broer Jelle", "Leuk, dat scheelt veel geld!"),
    ],
)
def test_a_plan_is_told_although_the_reply_cheers(plan: str, reply: str) -> None:
    assert plan in told(("user", plan), ("assistant", reply), ("user", "The boats are 9 m long."))


def test_an_answer_about_the_users_own_case_is_told_and_knowledge_is_not() -> None:
    summary = told(
        ("user", "Is 1.7 K a lot?"),
        ("assistant", "Even 1 K lowers the stress of a heat wave noticeably."),
        ("user", "And what does our tent of 40 m² cost?"),
        ("assistant", "A tent of 40 m² costs 1,390."),
        ("user", "How long does my contract run?"),
        ("assistant", "Your contract ends on 30 November."),
    )
    assert "Even 1 K" not in summary
    assert "A tent of 40 m² costs 1,390." in summary
    assert "Your contract ends on 30 November." in summary


def test_a_text_that_was_asked_for_is_not_told() -> None:
    paragraph = "Between 1730 and 1760 the price of wheat rose from 22 to 36 sueldos."
    order: tuple[Role, str] = ("user", "¿Puedes redactar un párrafo sobre el trigo?")
    assert paragraph not in told(order, ("assistant", paragraph), ("user", "The boats are 9 m long."))


def test_a_table_without_bars_is_no_line_of_summary_or_ledger() -> None:
    rows = ("Item Qty Rate Amount", "Rental  2  19.00  38.00", "Debit  912  0.9%  72.44", "Minimum  1  25.00  25.00")
    table = "\n".join(("Here is the invoice of Crumb & Co:", *rows))
    summary = told(("user", table), ("assistant", "I see."), ("user", "The boats are 9 m long."))
    assert "Item Qty" not in summary
    assert "72.44" not in summary
    assert "72.44" not in listed(("user", table), ("assistant", "I see."))


def test_that_an_order_was_done_is_told_by_the_order() -> None:
    order = "Next time please call me before blocking anything of Ada Lind."
    summary = told(("user", order), ("assistant", "I've added a remark to the notes of our desk."))
    assert order in summary
    assert "I've added" not in summary
    done = "I've moved the visit to 14 May."
    assert done in told(("user", "Please move the visit of Ada Lind."), ("assistant", done))


def test_a_number_of_an_order_is_told() -> None:
    assert "Merchant id CRB-55120." in told(("user", "Merchant id CRB-55120."), ("assistant", "Thanks."))


def test_that_the_other_is_right_is_not_told_alone() -> None:
    assert not is_worth_telling("good point.", is_assistant=False)
    assert not is_worth_telling("tienes razón", is_assistant=False)
    assert is_worth_telling("stimmt, Ole kann auch bis 20 Uhr grillen", is_assistant=False)


def test_a_figure_that_the_user_corrects_is_told_by_its_correction() -> None:
    summary = told(
        ("user", "What do the trees cost?"),
        ("assistant", "The plan of 1998 has 600 trees along the shore."),
        ("user", "Correction: the plan has 480 trees along the shore, not 600."),
    )
    assert "the plan has 480 trees" in summary
    assert "The plan of 1998" not in summary


def run(*said: Message) -> str:
    return extraction_of(said, quarter).within(400)


def message(number: int, role: Role, *blocks: Text | ToolCall | ToolResult) -> Message:
    return Message(str(number), role, blocks, said=number)


def test_what_an_agent_says_beside_a_call_is_told_only_if_it_is_a_result() -> None:
    command = json.dumps({"command": "pytest -q"})
    said = [message(1, "user", Text("Please fix the port fees. Never touch the folder of Ada."))]
    for number, text in ((2, "Now I run all of the 40 tests in one go."), (4, "The cause is the rounding of 3 fees.")):
        said.append(message(number, "assistant", Text(text), ToolCall(f"c{number}", "bash", command)))
        said.append(message(number + 1, "tool", ToolResult(f"c{number}", "bash", "40 passed")))
    summary = run(*said, message(6, "user", Text("Thanks, that was the last one for this week.")))
    assert "Assistant: Now I run all" not in summary
    assert "The cause is the rounding of 3 fees." in summary


def test_the_arguments_of_a_call_are_no_part_of_what_was_said() -> None:
    said = [message(at, "user", Text(f"The boat of Ada Lind is {at} m long.")) for at in range(1, 9)]
    call = ToolCall("c", "read_document", json.dumps({"name": "review.pdf"}))
    said.append(message(9, "assistant", Text("The survey of 1715 counts 40 boats."), call))
    summary = run(*said, message(10, "tool", ToolResult("c", "read_document", "Reading matter.")))
    assert "The survey of 1715 counts 40 boats." in summary
    assert "read_document" not in summary


@pytest.mark.parametrize(
    "text",
    [
        "Er mogen geen spullen van mijn oma in de vrachtwagen.",
        "Niet parkeren voor nummer 14.",
        "De bevestiging moet voor 1 september binnen zijn.",
        "We kiezen De Haan.",
        "Dan wordt het PVC.",
        "Oh wacht, foutje: de monteur komt niet de 12e maar de 14e.",
        "Bel me trouwens niet.",
        "Ik wil geen reparatie meer.",
        "We weten nog niet wie er op de kinderen past.",
        "Mijn dochter is allergisch voor noten.",
    ],
)
def test_decisions_prohibitions_and_corrections_in_dutch_bind(text: str) -> None:
    assert rate_sentence(text) == BINDING


@pytest.mark.parametrize("text", ["Dank je wel!", "top, bedankt", "Graag gedaan!", "Hoi!", "Fijne dag!"])
def test_courtesy_in_dutch_does_not_bind(text: str) -> None:
    assert rate_sentence(text) != BINDING
    assert rate_sentence(text) == CHATTER or not is_worth_telling(text, is_assistant=False)


@pytest.mark.parametrize("text", ["Begrepen, woensdag.", "Genoteerd.", "Dank u voor de foto's.", "Clear: no formulas."])
def test_acknowledgements_are_known(text: str) -> None:
    assert acknowledges(text)


def test_what_leans_on_a_name_from_long_before_is_told_if_it_says_much() -> None:
    said = ("user", "But she starts at the sailing school on 1 September and they take nobody without a vest.")
    assert "sailing school on 1 September" in told(
        ("user", "Our daughter Liv swims well."), ("assistant", "Nice!"), said
    )
    assert "watched it" not in told(("user", "I first watched it 3 years ago."), ("assistant", "Nice!"))


def test_an_answer_that_says_it_all_comes_without_its_question() -> None:
    question = ("assistant", "Do you already have a caterer?")
    assert "already have" not in told(question, ("user", "Yes, Van Dam Catering, they come on 22 August at 8."))
    assert "already have" in told(question, ("user", "Yes, since last year."))


def test_a_wish_after_a_greeting_is_told() -> None:
    wish = "Guten Tag, ich möchte einen Termin bei Frau Dr. Hellwig verschieben."
    assert rate_sentence(wish) > CHATTER
    assert rate_sentence("Guten Tag, Frau Hellwig!") == CHATTER


def test_a_tale_that_the_user_asked_for_is_no_news() -> None:
    wish = ("user", "Let's write a story together, about a lighthouse and its keeper Osric.")
    tale = "The wind came from the north that night, and Osric counted the steps by the sound of the rain."
    later = ("user", "The girl is called Wren and she steals the lens.")
    summary = told(wish, ("assistant", tale), later, ("assistant", "Your invoice 4711 was paid on 3 May by Ada Lind."))
    assert tale not in summary
    assert "Wren" in summary
    assert "invoice 4711" in summary


def test_advice_of_an_assistant_corrects_nothing() -> None:
    said = ("user", "We put Liv to bed at 19:30, with a bottle of 180 ml before.")
    advice = ("assistant", "You could try to move the bottle to before the bath at 18:30.")
    summary = told(said, advice, ("user", "The boats of Ada Lind are 9 m long."))
    assert "19:30" in summary
    assert "You could" not in summary


def test_rows_of_a_pasted_log_are_told_only_where_something_happened() -> None:
    rows = [f"2026-05-02 10:14:0{at} INFO req={at} path=/cart ms={90 + at}" for at in range(4)]
    error = "2026-05-02 10:14:04 ERROR db timeout after 5000 ms query=select_stock"
    log = "\n".join(["Our shop is slow, here is the log:", *rows, error])
    finding = "The select_stock query runs into its timeout of 5000 ms and blocks the whole pool."
    summary = told(("user", log), ("assistant", finding))
    assert error in summary
    assert finding in summary
    assert "INFO" not in summary


def test_the_words_of_two_speakers_are_not_joined() -> None:
    pasted = (
        "Here is what the others wrote:\nMira: I can't do Friday, Saturday works\nTom: yes Saturday 18:30\nMira: fine"
    )
    assert "wrote: I can't" not in told(("user", pasted))


def test_what_was_done_is_told_although_it_begins_with_done() -> None:
    reply = "Done: sharp is at 0.33.5 on chore/node22, and the build passes with node 22."
    assert reply in told(("user", "Upgrade sharp on a branch of its own."), ("assistant", reply))


def test_what_an_assistant_asks_for_is_no_question_to_be_told() -> None:
    asked = ("assistant", "Could you send us a photo?")
    summary = told(asked, ("user", "Attached. I want my money back, not a replacement."))
    assert "photo" not in summary
    assert "money back" in summary


def test_condolences_do_not_hide_what_was_done() -> None:
    wish = ("user", "Please stop sending the catalogue, my father died and it comes in his name, Anton Reuss.")
    reply = ("assistant", "I'm sorry for your loss. I've removed Anton Reuss from the list.")
    summary = told(wish, reply, ("user", "Thank you."))
    assert "stop sending the catalogue" in summary
    assert "removed Anton Reuss" in summary


def test_a_secret_binds() -> None:
    assert rate_sentence("And don't mention it to Olle, he can't keep his mouth shut.") == BINDING
    assert rate_sentence("Don't mention it!") != BINDING
    assert rate_sentence("Please stop sending me the catalogue.") == BINDING


@pytest.mark.parametrize(
    "text", ["Dann sollten Sie die übrigen 11 bald nachbestellen.", "Right, stick with the rules."]
)
def test_advice_in_another_order_of_words_is_not_told(text: str) -> None:
    assert text not in told(("user", "We get 12 keys."), ("assistant", text), ("user", "The boats are 9 m long."))


@pytest.mark.parametrize(
    "text",
    [
        "Wer gern plant, vergisst das Wetter, das hat sich bewährt.",
        "- Wer von außen schaut, behält die einfachen Dinge, egal was im Plan steht.",
        "Whoever has planned a party once, was surprised by the rain in the evening.",
    ],
)
def test_what_holds_for_anybody_is_no_report(text: str) -> None:
    assert text not in told(("user", "Was meinst du?"), ("assistant", text), ("user", "Die Boote sind 9 m lang."))


MEMBERS = [
    f"{name}, {name[0]}.; {name.lower()}@choir.example; {2010 + at}"
    for at, name in enumerate(
        ["Vogel", "Arends", "Brunner", "Castel", "Dorn", "Eklund", "Falk", "Groth", "Hansen", "Imhof", "Jansen", "Kern"]
    )
]


def test_a_pasted_list_with_semicolons_is_neither_told_nor_listed() -> None:
    pasted = "\n".join(["Here are our members:", *MEMBERS])
    after = ("user", "The boats are 9 m long.")
    summary = told(("user", pasted), ("assistant", "Twelve members, all with an address."), after)
    assert "choir.example" not in summary
    ledger = listed(("user", pasted), ("assistant", "Twelve members, all with an address."), ("user", after[1]))
    assert "choir.example" not in ledger
    assert "9 m" in ledger


def test_a_short_list_that_the_user_wrote_is_told() -> None:
    written = "\n".join(["Anna; drums; vegan", "Bo; bass; from Ghent", "Cleo; vocals; allergic to nuts"])
    assert "allergic to nuts" in told(("user", written), ("assistant", "Noted."))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How do you share the work?", "Ada rents the van, Piet books the hall."),
        ("Habt ihr schon einen Saal?", "Ja, den Saal im Gasthof Krone für 300 Euro"),
        ("Is the permit filed?", "the permit of the harbour office was filed on 3 May"),
        ("¿Cómo os repartís?", "Ada alquila la furgoneta, Piet reserva la sala"),
    ],
)
def test_an_answer_that_stands_alone_comes_without_its_question(question: str, answer: str) -> None:
    summary = told(("assistant", question), ("user", answer))
    assert answer in summary
    assert question not in summary


def test_a_bare_answer_still_comes_with_its_question() -> None:
    summary = told(("assistant", "How many boats do you have?"), ("user", "14"))
    assert "How many boats do you have?" in summary


FRIENDS: tuple[tuple[str, str], ...] = (
    ("user", "hii are you coming to the lake"),
    ("assistant", "yes! the 10:40 train, can you fetch me"),
    ("user", "sure. bring your swimsuit"),
    ("assistant", "will do. guess what, Nora is pregnant"),
    ("user", "nooo way"),
    ("assistant", "yes but don't tell mum before she does"),
    ("user", "promised"),
    ("assistant", "and I got the flat in Leith, from 1 May"),
    ("user", "amazing!! need help moving?"),
    ("assistant", "yes please, saturday 30 April, with your van"),
    ("user", "deal"),
    ("assistant", "Thomas leaves for Bergen in August, the boats go with him"),
)


def test_where_two_people_chat_both_are_told() -> None:
    summary = extract([PlainMessage(role, text) for role, text in FRIENDS], 400, quarter)
    for fact in (
        "Nora is pregnant",
        "don't tell mum",
        "flat in Leith",
        "saturday 30 April",
        "Thomas leaves for Bergen",
    ):
        assert fact in summary


@pytest.mark.parametrize(
    "text",
    [
        "The query was SELECT b.name FROM boats b JOIN berths k ON k.boat = b.id ORDER BY b.name",
        "MAXDEPTH > 14",
        "row 58",
    ],
)
def test_pieces_of_code_and_figures_that_nobody_can_place_are_not_listed(text: str) -> None:
    assert listed(("user", text), ("assistant", "I see.")) == ""


def test_a_command_and_a_figure_with_its_topic_stay_in_the_ledger() -> None:
    ledger = listed(("user", "Run `make boats` first. The jetty holds 14 boats."), ("assistant", "I see."))
    assert "make boats" in ledger
    assert "14 boats" in ledger


def test_a_call_without_what_came_of_it_is_not_told() -> None:
    call = 'fetch {"url": "https://harbour.example/berths"}'
    assert "fetch" not in told(("assistant", call), ("user", "The boats are 9 m long."))


def test_what_writes_files_is_no_writer_of_a_mail() -> None:
    said = "Our export fails since 9 June. It is a small service that writes files to disk 2. Here is the log:\n\n"
    told = extract([PlainMessage("user", said + "02:00:04 ERROR no space left")], 100, lambda text: len(text) // 4)
    assert "Our export fails" in told
    assert "quoting" not in told
