"""The sentence of the notes that answers a question, and questions of which no note speaks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.vault.asked_notes import ANSWERED, NOTES, UNANSWERED, Asked, asked_of

from recto.vault.question import leans_on_earlier


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked_of(tmp_path_factory.mktemp("asked"), NOTES) as asked:
        yield asked


@pytest.mark.parametrize("question", ANSWERED)
def test_the_sentence_that_answers_is_the_first_quote(notes: Asked, question: str) -> None:
    assert ANSWERED[question] in notes.quoted(question)[0]


@pytest.mark.parametrize("question", UNANSWERED)
def test_nothing_is_near_a_question_of_which_no_note_speaks(notes: Asked, question: str) -> None:
    assert notes.find(question).passages == ()


UNSPACED_NOTES = {
    "租房.md": "# 租房\n\n房东叫陈建国，电话138。房租每个月5200元。\n\n猫叫咪咪，三岁。\n",
    "会议.md": "# 会议\n\n下次会议在三楼举行。项目预算为八万元，由李娜负责。\n",
    "引っ越し.md": "# 引っ越し\n\n大家さんは田中太郎です。家賃は月八万円です。\n\n鍵は管理人室に預けた。\n",
    "이사.md": "# 이사\n\n집주인은 김민수이다. 월세는 70만 원이다.\n\n열쇠는 경비실에 맡겼다.\n",
}
UNSPACED_ANSWERED = {
    "我们的房东叫什么名字？": "陈建国",
    "房东是谁？": "陈建国",
    "新家的房租是多少？": "5200",
    "房租多少钱？": "5200",
    "我们的猫叫什么？": "咪咪",
    "下次会议在哪里举行呢？": "三楼",
    "项目的预算有多少？": "八万",
    "谁负责项目预算？": "李娜",
    "大家さんは誰ですか": "田中太郎",
    "家賃はいくらですか？": "八万円",
    "鍵はどこに預けましたか？": "管理人室",
    "집주인 이름이 뭐예요?": "김민수",
    "우리 집주인은 누구입니까?": "김민수",
    "월세가 얼마인가요?": "70만",
    "열쇠를 어디에 맡겼나요?": "경비실",
}
UNSPACED_UNANSWERED = (
    "法国的首都是哪里？",
    "谁发明了电灯？",
    "珠穆朗玛峰有多高？",
    "明天的天气怎么样？",
    "フランスの首都はどこですか？",
    "富士山の高さは何メートルですか？",
    "誰が電球を発明しましたか？",
    "프랑스의 수도는 어디입니까?",
    "전구를 누가 발명했나요?",
)


@pytest.fixture(scope="module")
def unspaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked_of(tmp_path_factory.mktemp("unspaced"), UNSPACED_NOTES) as asked:
        yield asked


@pytest.mark.parametrize("question", UNSPACED_ANSWERED)
def test_question_words_of_a_script_without_spaces_are_no_topic(unspaced: Asked, question: str) -> None:
    assert UNSPACED_ANSWERED[question] in (unspaced.quoted(question) or [""])[0]


@pytest.mark.parametrize("question", UNSPACED_UNANSWERED)
def test_question_words_of_a_script_without_spaces_are_no_answer(unspaced: Asked, question: str) -> None:
    assert unspaced.find(question).passages == ()


def test_a_question_that_is_written_in_a_note_answers_nothing(tmp_path: Path) -> None:
    with asked_of(tmp_path, {"Quiz.md": "# Quiz\n\n- Who feeds the owl at night?\n"}) as asked:
        assert asked.quoted("Who feeds the owl at night?") == []


def test_a_message_that_leans_is_looked_up_with_the_notes_in_use(notes: Asked) -> None:
    assert leans_on_earlier("And who planted it?")
    first, *_ = notes.quoted("And who feeds it?", earlier="What is the starter called?", in_use=("Bakery.md",))
    assert "Gustav" in first


def test_two_questions_in_one_message_are_both_answered(notes: Asked) -> None:
    found = " ".join(notes.quoted("When does the nightly backup run, and why did we choose PostgreSQL?"))
    assert "02:15" in found
    assert "the team knows it" in found


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    rows = ["Country sourdough | no", "Cinnamon knots | no", "Almond croissant | no", "Seeded loaf | yes"]
    table = "\n".join(f"| {row} |" for row in rows)
    notes = {
        "Allergens.md": f"# Allergens\n\n| Product | Sesame |\n|---|---|\n{table}\n",
        "Lease.md": "# Lease\n\nThe lease of the shop runs until 31 March 2029.\n",
        "Verein.md": "# Verein\n\nDer Verein wurde am 17. Mai 2009 gegründet.\n",
        "Stock.md": "# Stock\n\nWe stop buying flour when the stock is > 200 kg.\n",
    }
    with asked_of(tmp_path, notes) as asked:
        yield asked


def test_of_a_table_of_yes_and_no_the_rows_with_yes_come_first(asked: Asked) -> None:
    assert asked.quoted("Which products contain sesame?")[0] == "Seeded loaf · Sesame: yes"


def test_a_note_that_was_just_saved_is_found_with_what_it_says_now(asked: Asked) -> None:
    assert asked.quoted("Until when does the lease run?") == ["The lease of the shop runs until 31 March 2029."]
    note = asked.vault.root / "Lease.md"
    note.write_text("# Lease\n\nAs agreed, the lease of the shop runs until 2 May 2031.\n", "utf-8")
    assert asked.quoted("Until when does the lease run?") == ["As agreed, the lease of the shop runs until 2 May 2031."]


def test_a_property_at_the_top_of_a_note_finds_it_but_is_never_the_answer(asked: Asked) -> None:
    head = "---\nrole: head baker\nbirthday: 1987-03-14\ntags: [people]\n---\n"
    (asked.vault.root / "Marta Ruiz.md").write_text(f"{head}\n# Marta Ruiz\n\nMarta joined us in 2021.\n", "utf-8")
    asked.vault.refresh()
    for question in ("When is Marta's birthday?", "What role does the head baker Marta have?"):
        assert not any("1987" in each or "role:" in each for each in asked.quoted(question))
    assert asked.quoted("When did Marta, the head baker, join us?")[0] == "Marta joined us in 2021."


OTHER_WORDS = {
    "Dairy.md": "# Dairy\n\n- Milk comes from Hollins farm.\n- Butter: Ebbw Creamery\n",
    "Reise.md": "# Reise\n\nWir nehmen den Nachtzug, weil Tim gern schläft. Der Kontostand beträgt 310 Euro.\n",
    "Probe.md": "# Probe\n\nGeprobt wird freitags. Die Notenmappen bringt Frau Heine mit.\n",
    "Shed.md": "# Shed\n\nThe insurer of the shed is Marlow Mutual. The roof is made of larch.\n",
    "Leche.md": "# Lácteos\n\nLa leche viene de la granja Robledo.\n",
    "Ann.md": "# Ann\n\nAllergies: latex\n\nAnn sings.\n",
    "Numbers.md": "# Numbers\n\nThe phone of the ferry is 0117 496 0111. The blue drum holds waste oil.\n",
    "Rent.md": "# Rent\n\nThe rent is 640 pounds since 2024.\n",
}


@pytest.fixture(scope="module")
def other_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked_of(tmp_path_factory.mktemp("words"), OTHER_WORDS) as asked:
        yield asked


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who supplies the milk?", "Hollins"),
        ("Who makes our butter?", "Ebbw"),
        ("Warum nehmen wir den Nachtzug?", "Tim gern"),
        ("Wie hoch ist der Stand auf dem Konto?", "310 Euro"),
        ("Wann proben wir?", "freitags"),
        ("Who insures the shed?", "Marlow"),
        ("Which wood is the roof of the shed?", "larch"),
        ("¿Quién suministra la leche?", "Robledo"),
        ("What is Ann allergic to?", "latex"),
    ],
)
def test_an_answer_may_have_other_words_for_the_verb(other_words: Asked, question: str, answer: str) -> None:
    assert answer in other_words.quoted(question)[0]


@pytest.mark.parametrize(
    "question", ["Who invented the phone?", "Wer hat das Telefon erfunden?", "Which phone should I buy in Tokyo?"]
)
def test_a_missing_verb_needs_at_least_the_kind_of_answer_that_is_asked_for(other_words: Asked, question: str) -> None:
    assert other_words.quoted(question) == []


def test_a_question_about_another_year_than_the_notes_speak_of_is_not_answered(other_words: Asked) -> None:
    assert other_words.quoted("How much was the rent in 2015?") == []
    assert other_words.quoted("How much was the rent in 2024?") == ["The rent is 640 pounds since 2024."]


@pytest.mark.parametrize("question", ["Write a poem about milk", "Recommend a good roof", "Tell me a joke"])
def test_what_a_model_is_to_make_needs_more_than_one_word_of_the_notes(other_words: Asked, question: str) -> None:
    assert other_words.quoted(question) == []


DAYS = {
    "daily/2026-06-14.md": "Ned mended the gutter.\n",
    "daily/2025-06-14.md": "Snow in June.\n",
    "03.07.2026.md": "Wasps in the shed.\n",
    "Board.md": "---\ndate: 2026-09-02\n---\n# Board\n\nThe stove will be replaced.\n",
    "Log.md": "# Log\n\n## 2026-08-21\n\nIbex on the ridge.\n\n## 22 August 2026\n\nHome by ship.\n",
    "Pressure.md": "2026-08-01 138/88\n2026-08-15 131/84\n",
}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What happened on 2026-06-14?", "Ned mended"),
        ("What did we do on 14 June 2026?", "Ned mended"),
        ("What happened on June 14th, 2025?", "Snow"),
        ("Was war am 3.7.2026?", "Wasps"),
        ("What happened on 2 September?", "stove"),
        ("Was geschah am 21. August 2026?", "Ibex"),
        ("¿Qué pasó el 22 de agosto de 2026?", "Home by ship"),
        ("What was the pressure on 15 August?", "131/84"),
    ],
)
def test_a_day_in_any_form_finds_what_is_dated_so(tmp_path: Path, question: str, answer: str) -> None:
    with asked_of(tmp_path, DAYS) as asked:
        assert answer in asked.quoted(question)[0]
        assert asked.quoted("What happened on 5 May 2019?") == []


def test_a_follow_up_without_words_of_its_own_is_answered_with_those_of_the_last_question(tmp_path: Path) -> None:
    courses = """# Courses

## Wheels

Held by Suri in November. It costs 85 pounds.

## Winter care

One evening on 3 December 2026, free of charge.
"""
    notes = {"Courses.md": courses, "Bikes.md": "The Arrow carries 250 kg.\n\nThe small one takes 180 kg.\n"}
    with asked_of(tmp_path, notes) as asked:
        before = {"earlier": "What does the course about wheels cost?", "in_use": ("Courses.md",)}
        assert "November" in asked.quoted("And when is it?", **before)[0]
        weight = {"earlier": "How much does the Arrow carry?", "in_use": ("Bikes.md",)}
        assert asked.quoted("And the small one?", **weight)[0] == "The small one takes 180 kg."
        assert asked.quoted("And what is the capital of France?", **weight) == []


def test_what_denies_comes_after_what_does_not_and_is_quoted_where_it_stands_alone(tmp_path: Path) -> None:
    notes = {"Food.md": "# Food\n\nOskar must not eat shellfish.\n\nMaren may eat shellfish.\n"}
    with asked_of(tmp_path, notes) as asked:
        assert asked.quoted("Who may eat shellfish?")[0] == "Maren may eat shellfish."
        assert asked.quoted("Who must not eat shellfish?")[0] == "Oskar must not eat shellfish."
    with asked_of(tmp_path / "one", {"Food.md": "# Food\n\nOskar must not eat shellfish.\n"}) as asked:
        assert asked.quoted("Who eats shellfish?") == ["Oskar must not eat shellfish."]


ROOF = {
    "Dach.md": "# Dach\n\nAm Ende haben wir uns für Tonziegel entschieden, weil Blech zu laut ist.\n",
    "Garten.md": "# Garten\n\nDie Mauer ist aus Stein. Im Mai pflanzen wir Tomaten.\n",
}


def test_a_compound_is_a_kind_of_what_it_ends_with(tmp_path: Path) -> None:
    with asked_of(tmp_path, ROOF) as asked:
        assert "Tonziegel" in asked.quoted("Für welche Ziegel haben wir uns entschieden?")[0]
