"""The ledger: quotations that can be understood alone, by rank within a limit, carried over from one to the next."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import covered, pieces

from recto.chat.blocks import Block, Text, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.summary.ledger import ledger_items, ledger_quotations, parse_ledger
from recto.summary.ledger_selection import ledger_lines
from recto.summary.quotation import DANGLING_WORDS
from recto.summary.tool_use import readable_arguments
from recto.summary.verification import CoveredFacts, FormerSummary, verify_summary

Said = tuple[Role, str]


def gathered(*said: Said) -> CoveredFacts:
    found = CoveredFacts()
    found.add([Message(str(at), role, (Text(text),), said=at) for at, (role, text) in enumerate(said, 1)])
    return found


def items(text: str, role: Role = "user") -> set[str]:
    return {entry.text for entry in gathered((role, text)).entries.values()}


def ledger(*said: Said, limit: int = 200, summary: str = "Nothing.", former: FormerSummary | None = None) -> list[str]:
    found = verify_summary(summary, gathered(*said), former or FormerSummary())
    return list(ledger_lines(found.lost, limit, lambda text: len(text) // 4 + 1))


# -- quotations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The rent is $1,200 per month.", "The rent is $1,200 per month"),
        ("The cache handles 900 requests per second.", "The cache handles 900 requests per second"),
        ("The upload took 188 seconds today.", "The upload took 188 seconds today"),
        ("I told everybody on the team about it, and the hall has 214 seats.", "the hall has 214 seats"),
        ("The invoice is not paid. It is about 5,250 euros.", "The invoice is not paid. It is about 5,250 euros"),
        ("The upload took 188 s, which is 69 % slower.", "The upload took 188 s, which is 69 % slower"),
        ("Last Friday, I finished the presentation.", "Last Friday, I finished the presentation"),
        ("Our IBAN is DE89 3704 0044 0532 0130 00.", "Our IBAN is DE89 3704 0044 0532 0130 00"),
        ("The server is 192.168.4.17:8443.", "The server is 192.168.4.17:8443"),
        ("Use db.internal:5432 for tests.", "Use db.internal:5432 for tests"),
        ("Run `cd a; make test` first.", "Run `cd a; make test` first"),
        ("来年のサーバー予算は3000円です。", "来年のサーバー予算は3000円です"),
        ("费用大约是3000元。", "费用大约是3000元"),
    ],
)
def test_a_fact_is_quoted_with_the_words_that_tell_it(text: str, expected: str) -> None:
    assert expected in items(text)


def test_of_a_long_sentence_only_the_topic_of_a_figure_is_quoted() -> None:
    text = (
        "After a long discussion with everybody who has ever worked there it turned out that the yearly costs of the "
        "heating in the old wing come to 12,400 € and nobody knew about that"
    )
    (item,) = (item for item in items(text) if "12,400" in item)
    assert "heating" in item
    assert len(item) < 70


@pytest.mark.parametrize(
    "text",
    [
        "See ya Nate", "Hey Mel!", "Thanks, Caroline!", "Glad it helped ya, Melanie!", "We did.", "-1", "7", "Life!",
        "Wow, Mel! Great.", "ok", "LIST of ALL",
    ],
)  # fmt: skip
def test_greetings_and_words_without_a_topic_are_no_items(text: str) -> None:
    assert items(text) == set()


def test_machine_output_gives_lines_that_tell_a_result_and_paths_but_no_words() -> None:
    found = CoveredFacts()
    output = "7 lines\nField keys `values`\n12 passed, 3 failed in 4.52s\nsee /srv/app/run.log\n-1"
    found.add([Message("1", "tool", (ToolResult("c", "shell", output),), said=1)])
    assert {entry.text for entry in found.entries.values()} == {
        "12 passed, 3 failed in 4.52s",
        "see /srv/app/run.log",
    }


def test_arguments_of_a_call_are_quoted_as_a_person_reads_them() -> None:
    found = CoveredFacts()
    arguments = json.dumps({"command": 'cd /srv && grep "a;b" x\nls', "n": 3})
    found.add([Message("1", "assistant", (ToolCall("c", "bash", arguments),), said=1)])
    assert 'cd /srv && grep "a;b" x' in {entry.text for entry in found.entries.values()}


WORDS = "we pay 400 € per the for 12 boats a of and must never on May 1 rent is"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=40))
def test_no_item_is_cut_behind_a_dangling_word(words: list[str]) -> None:
    for item in items(" ".join(words)):
        if item.endswith("…"):
            assert item.removesuffix("…").split()[-1] not in DANGLING_WORDS


def test_a_long_decision_is_cut_at_the_end_of_a_word() -> None:
    text = "必ず" + "テストサーバーで確認してから" * 20 + "ください。"
    (item,) = {item for item in items(text) if item.startswith("必ず")}
    assert len(item) <= 161
    assert item.removesuffix("…").endswith(("テストサーバー", "で", "から"))


# -- the law: what is quoted was said

SPOKEN = """
we must never|; DROP TABLE a;| · |#12: x|DE89 3704 0044 0532 0130 00|192.168.4.17:8443|budget is 300 euros|src/a.py:12
`cd a; ls`|"b; c"|Ada Lovelace|on May 1|Actually, correction:|, which is|because|\n|\t|. It is|?|\n- |
Who pays for it?|+49 30 1234567|12,000 €|…|error: no such file|don't call before 9:30|a;b|
https://a.example/x;y|\u00a0|ok|14. März
"""
fragments = st.lists(
    st.sampled_from(SPOKEN.strip("\n").split("|")) | pieces | st.text(max_size=4), min_size=1, max_size=14
).map(" ".join)
blocks: st.SearchStrategy[tuple[Role, Block]] = st.one_of(
    st.tuples(st.sampled_from(["user", "assistant"]), fragments.map(Text)),
    st.tuples(st.just("tool"), fragments.map(lambda text: ToolResult("c", "run", text))),
    st.tuples(
        st.just("assistant"),
        st.dictionaries(st.sampled_from(["command", "path", "text"]), fragments).map(
            lambda arguments: ToolCall("c", "run", json.dumps(arguments))
        ),
    ),
)


def readable(block: Block) -> str:
    if isinstance(block, ToolCall):
        return " ".join(readable_arguments(block.arguments).split())
    assert isinstance(block, Text | ToolResult)
    return " ".join(block.text.split())


@given(st.lists(blocks, max_size=6))
def test_every_item_is_a_part_of_the_message_it_names(said: list[tuple[Role, Block]]) -> None:
    found = CoveredFacts()
    found.add([Message(str(at), role, (block,), said=at) for at, (role, block) in enumerate(said, 1)])
    lines = ledger_lines(verify_summary("Nothing.", found, FormerSummary()).lost, 4000, len)
    for number, item in ledger_items(lines):
        text = readable(said[number - 1][1])
        assert item in text or item.removesuffix("…") in text


@given(st.lists(blocks, max_size=6))
def test_a_ledger_can_be_read_again(said: list[tuple[Role, Block]]) -> None:
    found = CoveredFacts()
    found.add([Message(str(at), role, (block,), said=at) for at, (role, block) in enumerate(said, 1)])
    lost = verify_summary("Nothing.", found, FormerSummary()).lost
    lines = ledger_lines(lost, 4000, len)
    wanted = {(entry.number, text) for entry in lost for text in (entry.text, entry.short)}
    wanted |= {entry.question[:2] for entry in lost if entry.question}
    assert set(ledger_items(lines)) <= wanted
    again = {(entry.number, entry.text) for entry in parse_ledger(lines)}
    asked = {entry.question[:2] for entry in parse_ledger(lines) if entry.question}
    assert again | asked == set(ledger_items(lines))


def test_a_ledger_of_an_older_version_is_still_read() -> None:
    assert ledger_items(("#3 src/zip.py; deploy 2024-05-01", "#9 Grace Hopper")) == [
        (3, "src/zip.py"), (3, "deploy 2024-05-01"), (9, "Grace Hopper"),
    ]  # fmt: skip


# -- what comes first

CUSTOMERS = "\n".join(f"Anna Schmidt {at}, Berlin, +49 30 {at:07}, {at * 7} €" for at in range(150))
LOG = "\n".join(f"2024-03-01 10:{at % 60:02}:11 INFO worker request {at * 37} took {at} ms" for at in range(150))
NAMES = "\n".join(f"- Clara Meyer{chr(97 + at % 26)} knows the old harbour master well" for at in range(150))
KEY: tuple[Said, ...] = (
    ("user", "My budget is 300 euros."),
    ("user", "I decided we will go to Ghent."),
    ("user", "The order number is 4711-AX-09."),
    ("user", "Never call the hotel before 9:30."),
)


@pytest.mark.parametrize("pasted", [CUSTOMERS, LOG, f"```\n{LOG}\n```", NAMES, CUSTOMERS.replace(", ", "\t")])
def test_what_is_pasted_does_not_push_out_what_was_said(pasted: str) -> None:
    told = "\n".join(ledger(*KEY, ("user", f"Here is the list:\n{pasted}\nWho owes us most?"), limit=120))
    for words in ("budget is 300 euros", "Ghent", "4711-AX-09", "Never call the hotel before 9:30"):
        assert words in told


def test_one_message_does_not_take_all_the_room() -> None:
    rules = " ".join(f"You must never touch the file number{chr(97 + at)} here." for at in range(26))
    told = "\n".join(ledger(("user", rules), ("user", "Ada Lovelace looks after the music."), limit=120))
    assert "Ada Lovelace looks after the music" in told
    assert "You must never touch" in told


def test_what_binds_comes_before_figures_and_figures_before_names() -> None:
    said: tuple[Said, ...] = (
        ("user", "The hall in the old town has 214 seats."),
        ("user", "My colleague Kofi likes the old harbour."),
        ("user", "We agreed that Redis is out."),
    )
    assert ledger(*said, limit=16) == ["#3: We agreed that Redis is out"]
    assert [line[:2] for line in ledger(*said)] == ["#1", "#3"], "a first name alone is no line, whatever the room"


def test_a_figure_that_a_summary_loses_is_in_the_ledger_while_there_is_room() -> None:
    told = ledger(("user", "Hello! My budget is 300 euros."), summary="The user has a budget in euros.")
    assert told == ["#1: My budget is 300 euros"]


def test_a_prohibition_that_a_summary_turns_round_is_lost() -> None:
    told = ledger(
        ("user", "Never deploy the harbour site on Friday."), summary="They deploy the harbour site on Friday."
    )
    assert told == ["#1: Never deploy the harbour site on Friday"]


@pytest.mark.parametrize(
    ("value", "correction"),
    [
        ("My budget is 300 euros.", "Actually, correction: the budget is 350 euros."),
        ("The budget is 300 euros.", "The budget is 350 euros."),
        ("Das Budget liegt bei 12.000 €.", "Korrektur: Das Budget liegt bei 14.000 €."),
        ("El presupuesto es de 4.500 euros.", "En realidad me equivoqué: el presupuesto es de 5.200 euros."),
        ("Le budget est de 300 euros.", "Correction : le budget est de 350 euros."),
        ("The opening is on 12 May.", "The opening was moved to 19 May."),
        ("Das Catering darf höchstens 6.000 € kosten.", "Dann erhöhen wir die Grenze fürs Catering auf 6.500 €."),
        ("Es kommen 84 Gäste.", "Ich habe mich vertan: Es sind nicht 84, sondern 91 Gäste."),
        ("La visita es el 11 de julio.", "Perdona, me equivoqué, la visita es el 12 de julio."),
        ("The workshop is in Kaunas.", "Actually the workshop is in Bergen."),
    ],
)
def test_a_value_that_was_corrected_is_not_in_the_ledger(value: str, correction: str) -> None:
    (line,) = ledger(("user", value), ("assistant", "Noted."), ("user", correction))
    assert line.startswith("#3: ")
    first = ledger(("user", value))
    former = FormerSummary("Nothing.", tuple(first))
    later = [("assistant", "Noted.")] * 5 + [("user", correction)]
    assert [line[:3] for line in ledger(*later, former=former)] == ["#6:"]  # type: ignore[arg-type]


def test_a_line_says_who_spoke_unless_it_was_the_user_and_that_is_carried_over() -> None:
    said: tuple[Said, ...] = (("assistant", "The upload took 188 seconds."), ("user", "The hall has 214 seats."))
    lines = ["#1 assistant: The upload took 188 seconds", "#2: The hall has 214 seats"]
    assert ledger(*said) == lines
    assert ledger(("user", "ok"), former=FormerSummary("", tuple(lines))) == lines
    kept = verify_summary("The upload took 188 seconds. The hall has 214 seats.", gathered(*said), FormerSummary())
    assert ledger(("user", "ok"), former=FormerSummary("", (), kept.places)) == lines


def test_what_is_said_again_of_others_yields_to_what_is_said_once() -> None:
    names = ("Ada", "Bob", "Eve", "Ivo", "Kai", "Leo")
    series = [("user", f"Somebody said that {name} needed {at + 11} attempts.") for at, name in enumerate(names)]
    told = "\n".join(ledger(("user", "The freezer holds 581 litres."), *series, limit=60))  # type: ignore[arg-type]
    assert "The freezer holds 581 litres" in told


def test_the_same_figure_of_two_things_is_two_facts() -> None:
    lines = ledger(("user", "The hall costs 300 euros."), ("user", "The catering comes to 300 euros."))
    assert len(lines) == 2


def test_what_the_user_asks_for_is_an_item() -> None:
    text = "Bitte vergleiche später die Angebote von Papyra und Buchwerk."
    assert ledger(("user", text)) == [f"#1: {text.rstrip('.')}"]


def test_values_of_different_things_correct_nothing() -> None:
    said: tuple[Said, ...] = (("user", "Room A costs 400 €."), ("user", "Room B costs 300 €."))
    assert len(ledger(*said)) == 2


def test_a_short_answer_comes_with_its_question_also_from_a_former_ledger() -> None:
    said: tuple[Said, ...] = (("assistant", "Fine. Who looks after the speakers?"), ("user", "Marta Okafor."))
    lines = ledger(*said)
    assert lines == ["#1 assistant: Who looks after the speakers? → #2: Marta Okafor"]
    assert ledger(("user", "ok"), former=FormerSummary("", tuple(lines))) == lines


@pytest.mark.parametrize("text", ["OK, 14 then.", "no, I meant 41", "leave it", "Nein, lieber die andere."])
def test_what_says_nothing_alone_comes_with_what_it_answers_or_not_at_all(text: str) -> None:
    assert ledger(("user", text)) == []
    lines = ledger(("assistant", "I will book a table for 12 people in the hall."), ("user", text))
    assert [line.partition(" → ")[0] for line in lines] == [
        "#1 assistant: I will book a table for 12 people in the hall"
    ]
    assert ledger(("user", "ok"), former=FormerSummary("", tuple(lines))) == lines


def test_what_was_asked_and_done_is_not_in_the_ledger_and_what_is_open_is() -> None:
    request = "Please compare the offers of Papyra and Buchwerk."
    done = "Papyra is cheaper in the first year, Buchwerk later on, and both deliver within a week."
    assert not any(line.startswith("#1") for line in ledger(("user", request), ("assistant", done)))
    assert ledger(("user", request), ("assistant", "I will do that tomorrow."))[0] == f"#1: {request.rstrip('.')}"
    question = "Who pays for the cleaning after the party?"
    assert ledger(("user", question), ("assistant", "No idea, let us leave it open.")) == [f"#1: {question}"]
    assert ledger(("user", f"{question} Nobody could tell me.")) == [f"#1: {question} Nobody could tell me"]


def test_a_condition_is_quoted_with_what_holds_then() -> None:
    text = "If the label printer hangs again, `make printer-reset` gets it going."
    assert ledger(("user", text), limit=90) == [f"#1: {text.rstrip('.')}"]


def test_room_that_is_left_is_no_reason_to_list_remarks() -> None:
    assert ledger(("user", "Lea hates buffets."), ("user", "My colleague Kofi likes the old harbour.")) == []


def test_the_assistant_repeating_the_user_is_no_item() -> None:
    said: tuple[Said, ...] = (
        ("user", "Never run Redis and Postgres on the same host."),
        ("assistant", "Understood: never Redis and Postgres on the same host."),
    )
    assert [line[:3] for line in ledger(*said)] == ["#1:"]


# -- lines


def test_a_line_names_its_message() -> None:
    found = verify_summary("Nothing.", covered(), FormerSummary())
    lines = ledger_lines(found.lost, 1000, len)
    assert lines[0].startswith("#1: ")
    assert "The budget is 12,000 €" in lines[0]
    assert [int(re.findall(r"\d+", line)[0]) for line in lines] == [1, 2, 4]


def test_a_ledger_is_carried_over_and_yields_only_to_better_lines() -> None:
    former = FormerSummary("", ("#3: we deploy on 2024-05-01", "#9: Grace Hopper knows the code"))
    found = verify_summary("Nothing.", covered((("tool", "12 passed"),)), former)
    lines = ledger_lines(found.lost, 1000, len)
    assert set(ledger_items(former.ledger)) <= set(ledger_items(lines))
    assert ledger_lines(found.lost, 75, len) == former.ledger


@given(st.integers(0, 400))
def test_a_ledger_never_exceeds_its_limit(limit: int) -> None:
    found = verify_summary("Nothing.", covered(), FormerSummary())
    assert len("\n".join(ledger_lines(found.lost, limit, len))) <= limit


def test_every_item_of_the_assistant_is_marked_also_where_the_user_said_the_same() -> None:
    said: list[Said] = [
        ("user", "The budget is 12,000 euros and Ada Lovelace leads it."),
        ("assistant", "Noted: the budget is 12,000 euros. The `blue-green` rollout was set for 2031-05-04."),
        ("assistant", "As said, Ada Lovelace leads it, and the server is db7.example.com."),
    ]
    lines = ledger(*said, limit=400)
    for number, speaker, item in ledger_quotations(lines):
        assert speaker == said[number - 1][0]
        assert item.rstrip("…") in said[number - 1][1]
    assert any(line.startswith("#1: ") and "12,000 euros" in line for line in lines)
    assert any(line.startswith("#2 assistant: ") for line in lines)


def test_the_first_words_of_a_longer_reply_come_with_the_question_that_they_answer() -> None:
    told = ledger(
        ("assistant", "Done. How long may an abstract be?"),
        ("user", "300 words. In Spanish, Portuguese or English, as nobody on the committee can judge French papers"),
    )
    assert told[0].startswith("#1 assistant: How long may an abstract be? → #2: 300 words")


def test_a_figure_with_few_words_in_a_short_message_comes_with_the_sentence_before() -> None:
    (line,) = ledger(("user", "he is going to a startup in Gdańsk. Last day is 14 November"))
    assert line == "#1: he is going to a startup in Gdańsk. Last day is 14 November"


def test_a_figure_that_takes_what_the_assistant_said_comes_with_it() -> None:
    told = ledger(
        ("assistant", "Then a systemd timer anonymises the accounts every night."), ("user", "good, at 03:30 then")
    )
    assert told == ["#1 assistant: Then a systemd timer anonymises the accounts every night → #2: at 03:30 then"]


def test_a_count_stays_with_what_it_counts() -> None:
    (line,) = ledger(("user", "6 years dispatcher, 2 years as trainer for new staff at the control room in Leeds"))
    assert line.startswith("#1: 6 years dispatcher")


def test_a_question_that_the_summary_tells_comes_again_with_an_answer_that_it_lost() -> None:
    asked = "How long may an abstract be?"
    told = ledger(("assistant", asked), ("user", "300 words"), summary=f"Assistant: {asked}")
    assert told == [f"#1 assistant: {asked} → #2: 300 words"]


def test_a_new_value_comes_with_the_sentence_that_says_of_what() -> None:
    said: tuple[Said, ...] = (("user", "exam 19 jan"), ("user", "exam got moved!! its 24 jan now, 10 am, hall B"))
    assert ledger(*said) == ["#2: exam got moved!! its 24 jan now, 10 am, hall B"]
    (line,) = ledger(("user", "Termin verschoben! jetzt 22.4. weil Dämmtec Material fehlt"))
    assert line == "#1: Termin verschoben! jetzt 22.4. weil Dämmtec Material fehlt"


@pytest.mark.parametrize(
    ("remark", "reply"),
    [
        ("did you know that croissants have 27 layers", "That's a neat fact! Three folds of three layers."),
        ("Hab heute 3 Stunden im Stau gestanden, A7 wieder dicht", "Das klingt nervig. Die A7 ist oft ein Problem."),
        ("por cierto qué calor hace, aquí 38 grados y sin aire", "¡Uf! Bebe mucha agua."),
        ("le match hier, 3-2 à la dernière minute", "Je ne peux pas regarder les matchs, dommage !"),
        ("back. had 2 sad sandwiches, the pizza place was closed", "Oh no. Shall we open the report of Ines?"),
    ],
)
def test_what_the_reply_takes_for_small_talk_is_no_line(remark: str, reply: str) -> None:
    assert ledger(("user", remark), ("assistant", reply)) == []


def test_what_the_reply_pities_and_takes_up_is_a_line() -> None:
    said = "movers rang, they moved us from the 14th to the 17 March"
    assert ledger(("user", said), ("assistant", "Oh no. So the move is on 17 March now."))[0] == f"#1: {said}"


def test_a_letter_that_the_assistant_drafts_and_the_order_for_it_are_no_lines() -> None:
    letter = "Sehr geehrter Herr Naumann, ab Februar mindere ich die Miete um 15 Prozent, bis der Mangel beseitigt ist."
    order = "schreib das bitte dem Naumann, sachlich, ohne Drohung"
    assert ledger(("user", order), ("assistant", letter)) == []


def test_an_assistant_is_listed_with_what_it_reports_not_with_what_it_knows() -> None:
    said = "After-school clubs are usually £10 to £16. I found the form in docs/form.pdf. The test took 14 seconds."
    (line,) = ledger(("assistant", said))
    assert "docs/form.pdf" in line
    assert "14 seconds" in line
    assert "£10" not in line


def test_what_stays_open_is_listed_only_with_what_it_is() -> None:
    assert ledger(("user", "queda pendiente")) == []
    (line,) = ledger(("user", "Alles raus: Wanne, Fliesen, Heizung, nur das Klo bleibt"))
    assert line == "#1: Alles raus: Wanne, Fliesen, Heizung, nur das Klo bleibt"


def test_items_of_a_message_that_overlap_are_one() -> None:
    lines = ledger(("user", "Booked it. Confirmation QX7L2P. Return on 22 May."))
    assert "\n".join(lines).count("QX7L2P") == 1


def test_a_deadline_of_somebody_names_him_where_room_is_scarce() -> None:
    said = "Levan Beridze can drive us on 13 May. He must know by 1 April."
    assert "#1: He must" not in "\n".join(ledger(("user", said), limit=30))


def test_what_the_user_leaves_open_is_not_settled_by_the_next_reply() -> None:
    for asked in (
        "Is the 2019 survey by Natuurpunt public? nobody could tell me so far",
        "Qui s'occupe de l'accordage après le déménagement ? On ne sait pas encore",
    ):
        said = ledger(("user", f"{asked}."), ("assistant", "You might write to them directly, they answer quickly."))
        assert said == [f"#1: {asked}"]


def test_an_open_question_that_was_told_before_stays_open() -> None:
    [entry, *_] = parse_ledger(["#7: Who pays for the cards? I don't know yet, have to ask Petra"])
    assert entry.is_open


def test_a_short_answer_with_words_of_its_own_comes_with_its_question() -> None:
    asked = "How much wood does the stove of the chapel burn?"
    assert ledger(("assistant", asked), ("user", "14,500 kWh last winter")) == [
        f"#1 assistant: {asked} → #2: 14,500 kWh last winter"
    ]


def test_an_announcement_and_a_success_of_the_assistant_are_not_listed() -> None:
    listed = "\n".join(
        ledger(
            ("user", "Please make the search in src/find.ts faster."),
            ("assistant", "I'll add a small `useDelay` hook for src/box.ts. All 118 tests pass in tests/box.test.ts."),
            ("assistant", "The slow part is in `rank_all` of src/rank.ts."),
        )
    )
    assert "useDelay" not in listed
    assert "118 tests" not in listed
    assert "rank_all" in listed


def test_files_that_tools_were_called_with_are_left_to_the_work_log() -> None:
    call = ToolCall("c1", "read_file", '{"path": "docs/plan.md"}')
    found = CoveredFacts()
    found.add([Message("1", "assistant", (call,), said=1)])
    assert not ledger_lines(verify_summary("Nothing.", found, FormerSummary()).lost, 400, len)


def test_a_figure_is_not_cut_out_of_a_sentence_with_a_word_or_two() -> None:
    said = "We looked at the ferry by Tallink for 180 and at the one by Viking for 140 but with 9 hours of waiting"
    for limit in range(20, 120, 10):
        assert all("ferry by Tallink" in line for line in ledger(("user", said), limit=limit) if "9 hours" in line)


def test_what_works_now_and_what_leans_on_a_possessive_are_not_listed() -> None:
    listed = "\n".join(
        ledger(("user", "ping 10.8.0.2 works"), ("user", "Our uncle Joost brings his two, and Ada mine"))
    )
    assert "10.8.0.2" not in listed
    assert "mine" not in listed


@pytest.mark.parametrize(
    ("question", "answer", "verdict"),
    [
        ("What does the medulla make?", "adrenaline and noradrenaline", "Correct! Next question."),
        ("In welchem Jahr fiel die Mauer in Berlin?", "1989", "Richtig, weiter so."),
        ("Which river flows through Rouen?", "the Loire", "Not quite: it is the Seine."),
        ("¿Cuál es la capital de Australia?", "Sídney", "Casi: es Canberra."),
    ],
)
def test_questions_of_an_exercise_are_not_listed(question: str, answer: str, verdict: str) -> None:
    said: tuple[Said, ...] = (
        ("user", "The oral exam is on 4 June with Dr. Kessler."),
        ("assistant", question),
        ("user", answer),
        ("assistant", verdict),
    )
    lines = ledger(*said)
    assert not any(answer in line for line in lines)
    assert any("Dr. Kessler" in line for line in lines)


def test_what_somebody_says_of_themselves_is_listed_although_the_reply_confirms_it() -> None:
    lines = ledger(
        ("assistant", "Which size does your tank have?"),
        ("user", "240 litres"),
        ("assistant", "Right, 240 litres. Then you need two heaters."),
    )
    assert any("240 litres" in line for line in lines)


def test_the_items_of_a_message_stand_as_they_were_said() -> None:
    said = (
        "Frau Petersen hört am 30.6. als Kassenwartin auf, das steht fest. Never pay out more than 200 euros in cash. "
    )
    (line,) = ledger(("user", said), ("assistant", "Gut."))
    assert line.index("Petersen") < line.index("Never pay")
