"""Verification: what nobody said is marked, once, and what a summary loses is known and counted."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.summary.samples import covered, quarter, roles, texts

from recto.chat.message import Role
from recto.summary.ledger import ledger_items, ledger_lines
from recto.summary.verification import (
    MARK,
    FormerSummary,
    VerifiedSummary,
    count_marks,
    only_archived,
    recount_statements,
    strip_marks,
    verify_summary,
)
from recto.window.compaction_block import WrittenSummary, next_block

pytestmark = pytest.mark.untraced


def verified(summary: str, *said: str, former: FormerSummary | None = None, allowed: str = "") -> str:
    known = covered(tuple(("user", text) for text in said)) if said else covered()
    return verify_summary(summary, known, former or FormerSummary(), [allowed]).text


# -- what is marked


@pytest.mark.parametrize(
    "marked",
    [
        "It is due in 90 days [unverified].",
        "Here Grace Hopper [unverified] helps.",
        "Ada asked Bob Zorbax's [unverified] team.",
        "See `src/zip.py` [unverified] for it.",
        "There are 77 [unverified] boats. 77 boats!",
        "Run `cargo fly --high` [unverified] now.",
        'He said "hello moon" [unverified] twice.',
        "Read https://example.net/x [unverified].",
        "It ships on 2031-07-08 [unverified].",
        "The budget is 12,000 $ [unverified].",
        "Am 7. August [unverified] ist src/app.py fertig.",
        "Le budget est de 15.000 € [unverified], pas plus.",
        "Всё готово 7 августа [unverified], бюджет 12.000 €.",
        "预算：15,000 € [unverified]。",
        "We ship src/app.py. The cook was dismissed after a loud quarrel [unverified].",
    ],
)
def test_what_nobody_said_is_marked_once_after_it(marked: str) -> None:
    assert verified(strip_marks(marked)) == marked
    assert verified(marked) == marked
    assert verify_summary(marked, covered(), FormerSummary()).invented == 1


@pytest.mark.parametrize(
    "summary",
    [
        "Ada leads it, with a budget of 12k € until 1 May 2024.",
        "The app (app.py) took about 3.5 ms. PostgreSQL 16.2.1 is used.",
        "12 tests passed. It ships on 01.05.2024, in May 2024.",
        "Lovelace runs `make test`; 4.5 s in all.",
        "The user decided to deploy on Friday and never on weekends.",
        "src/app.py goes to /srv/app. The budget: 12000 EUR.",
        "Twelve passed, and 3 failed tests remain.",
    ],
)
def test_rounding_other_spellings_and_parts_are_not_marked(summary: str) -> None:
    assert verified(summary) == summary


TRIP = (
    "We sail to Lisbon on 3 May 2024 with 12 people, and the budget is 12,000 €.",
    "The crew sleeps in the old harbour. Ada Lovelace never allows smoking on board.",
)


@pytest.mark.parametrize(
    "summary",
    [
        "Am 3. Mai 2024 segeln 12 Leute los. Ada Lovelace erlaubt an Bord nie das Rauchen, und die Kasse hat 12.000 €.",
        "Le 3 mai 2024 on part à 12. Ada Lovelace interdit de fumer, il y a 12.000 €. Tous dorment au port.",
        "Navegamos el 3 de mayo de 2024, somos 12. Ada Lovelace no permite fumar a bordo, jamás. Hay: 12.000 €.",
        "Плывём 3 мая 2024, нас 12. Команда спит в старой гавани. Курить нельзя никому и никогда.",
        "Płyniemy 3 maja 2024 w 12 osób. Załoga śpi w starym porcie. Palenie jest zawsze zabronione.",
        "3 Mayıs 2024 tarihinde 12 kişiyle gidiyoruz. Mürettebat eski limanda uyuyor. Sigara içmek yasak.",
        "2024年5月3日出发，船员睡在旧港口。船上任何人都不准抽烟。",
        "2024年5月3日に出発する。乗組員は古い港で眠る。船内は禁煙だ。",
    ],
)
def test_a_summary_in_another_language_is_not_marked_as_a_whole(summary: str) -> None:
    assert verified(summary, *TRIP) == summary


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("We will not use Redis for the cache.", "We will use Redis for the cache."),
        ("The board approved the merger with Fern.", "The board never approved the merger with Fern."),
        ("Wir verwenden kein Redis für die Sitzungen.", "Wir verwenden Redis für die Sitzungen."),
        ("Non useremo Redis per le sessioni.", "Useremo Redis per le sessioni."),
        ("Usaremos Redis para las sesiones.", "No usaremos Redis para las sesiones."),
        ("Мы не будем использовать Redis для сессий.", "Мы будем использовать Redis для сессий."),
        ("Nie używamy czerwonego żagla.", "Używamy czerwonego żagla."),
        ("لن نستخدم الشراع الأحمر في الرحلة.", "نستخدم الشراع الأحمر في الرحلة."),
        ("我们不用红色的帆去里斯本。", "我们用红色的帆去里斯本。"),
        ("私たちは赤い帆を使わない。", "私たちは赤い帆を使う。"),
    ],
)
def test_a_claim_that_reverses_a_sentence_is_marked(said: str, summary: str) -> None:
    assert verified(summary, "The sails are red.", said) == f"{summary[:-1]}{MARK}{summary[-1]}"
    assert verified(summary, said, summary) == summary, "somebody said it, too"


RANGES = [f"5{dash}10 days" for dash in ("–", "-", " – ", "−", "—", " — ", "‑", "‒", " to ")]


@pytest.mark.parametrize("summary", RANGES)
@pytest.mark.parametrize("said", RANGES)
def test_a_range_is_the_same_with_any_dash(said: str, summary: str) -> None:
    assert verified(f"It will take: {summary}.", f"It may last {said} then.") == f"It will take: {summary}."
    assert MARK in verified("It will take: 5–12 days.", f"It may last {said} then.")


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("Es dauert 90 Minuten.", "Dauer: 90 min."),
        ("It weighs: 3 to 4 kg.", "Weight: 3–4 kg."),
        ("It takes two hours.", "Duration: 2 hours."),
        ("Der Kurs dauert zwei Stunden.", "Dauer: 2 Std."),
        ("Prix : 12 000 €.", "Price: 12,000 €."),
        ("Preis: 1.250.000 €.", "Price: 1,250,000 €."),
        ("Beginn: 14:30 Uhr.", "Start: 14.30 Uhr."),
        ("It weighs 5−10 kg.", "It weighs: 5–10 kg."),
        ("We met Ada in Paris, and Ada left later.", "Later Ada left. In Paris we met."),
    ],
)
def test_these_are_not_marked(said: str, summary: str) -> None:
    assert verified(summary, said) == summary


def test_a_mark_goes_before_the_stop_after_a_date() -> None:
    assert verified("It ships on 8 July.") == "It ships on 8 July [unverified]."


@pytest.mark.parametrize("summary", ["It costs 1900 euros.", "We use Python 3.12.", "Budget 50 €", "Take 77-88 kg"])
def test_an_invented_number_after_a_word_is_marked(summary: str) -> None:
    assert MARK in verified(summary, "It costs 1200 euros, and we use Python 3.11 for the budget.")


@pytest.mark.parametrize(
    ("said", "marked"),
    [
        (
            "We rented the barn for 3 weeks from 12 June 2026 at $1,250 a week. Call Marta Quill at 2:30 pm.",
            "Barn: 21 days from June 12, 2026 for US$1250. Call Marta Quill at 14:30. Fee: 350 dollars [unverified].",
        ),
        (
            "Die Küche kostet 12.400 €, Lieferung am 8. Juli 2026 zwischen 9 und 11 Uhr, Aufbau zwei Tage.",
            "Küche: 12400 Euro am 08.07.2026, 9–11 Uhr, Aufbau 2 Tage. Frau Petra Lindholm [unverified] zahlt alles.",
        ),
        (
            "Le devis Morvan est de 12 500 € pour 45 heures. Rendez-vous le 3 mars à 14h30, poids 1,2 tonne.",
            "Morvan : 12.500 euros, 45 h, 1200 kg. Rendez-vous le 03/03 à 14:30. Acompte : 2 300 € [unverified].",
        ),
        (
            "Смета — 300 тысяч рублей, срок 6 недель. Олег Савин придёт 5 марта.",
            "Смета 300 000 руб., срок 42 дня. Олег Савин: 5 марта, Глеб Ножкин [unverified]: 17 апреля [unverified].",
        ),
        ("预算是3万元，每台16GB内存。下午3点上线。", "预算30000元，16 GB，15:00上线，8月9日 [unverified]验收。"),
        ("예산은 12,000원이고 5월 3일 오후 2시에 만나요.", "예산 12000원, 5월 3일 14:00. 벌금 5,000원 [unverified]."),
        ("الميزانية ١٢٬٥٠٠ ريال والموعد ٣ مايو.", "الميزانية 12500 ريال والموعد 3 مايو، 700 [unverified] ريال."),
        ("Budżet 12 tys. zł, spotkanie 3 maja o 9:30.", "Budżet 12 000 zł, 3 maja, 9.30. Kara 450 zł [unverified]."),
        (
            "Deploy 2.4.1 on 2026-07-10; it takes 3 h.",
            "Deploy 2.4.1 on Friday, 10 July 2026; 180 minutes, not 4 h [unverified].",
        ),
    ],
)
def test_what_is_invented_is_marked_beside_what_is_true_in_another_spelling(said: str, marked: str) -> None:
    assert verified(strip_marks(marked), said) == marked


def test_a_claim_in_other_words_is_not_marked() -> None:
    said = (
        "The harbour master wants the fee of the berth until Friday.",
        "Please book the band for our party in June.",
    )
    for summary in ("The fee of the berth is for the harbour master.", "The user wants to book a band for the party."):
        assert verified(summary, *said) == summary


# -- marks through time


MARKED = FormerSummary("We asked Zorbax [unverified]; he has 400 boats. They are red.")


def test_a_mark_stays_until_somebody_says_it() -> None:
    assert verified("We asked Zorbax. They are red.", former=MARKED) == "We asked Zorbax [unverified]. They are red."
    assert verified("We asked Zorbax [unverified].", "The man is Zorbax.", former=MARKED) == "We asked Zorbax."


def test_what_was_verified_beside_a_mark_stays_verified() -> None:
    assert verified("There are 400 boats.", former=MARKED) == "There are 400 boats."


def test_the_former_summary_its_ledger_and_what_is_allowed_support_a_claim() -> None:
    former = FormerSummary("We and Grace Hopper help.", ("#3: src/zip.py · it takes 90 days",))
    assert verified("We and Grace Hopper have src/zip.py for 90 days.", former=former) == (
        "We and Grace Hopper have src/zip.py for 90 days."
    )
    assert verified("We and Grace Hopper help.", allowed="who Grace Hopper is") == "We and Grace Hopper help."


@example("00\n", "")
@given(texts, texts)
def test_marks_are_the_only_change_and_none_doubles(text: str, said: str) -> None:
    known = covered((("user", said),))
    found = verify_summary(text, known, FormerSummary())
    assert strip_marks(found.text) == strip_marks(text)
    assert count_marks(found.text) == found.invented
    again = verify_summary(found.text, known, FormerSummary())
    assert (again.text, again.invented) == (found.text, found.invented)


SAID = """\
The budget is 12,000 €, never more. | Ada meets Bob Miller at 14:30 on May 1, 2024. | Run `make test` in src/app.py.
Wir zahlen höchstens 3.200,50 € bis zum 3. Mai. | Ruf nie vor 9:30 Uhr bei Firma Behnke an!
Ne réservez pas l'hôtel à 120 € la nuit. | On part le 9 mai avec 12 amis, d'accord ?
¿Quién paga los 900 € del depósito? | No llames antes de las 9:30.
Никогда не звони Петрову раньше 9:30. | Смета — 300 000 рублей без НДС.
Nie dzwoń przed 9:30, proszę! | Bütçe en fazla 12.000 lira, asla aşma.
لا تتصل قبل الساعة ٩ صباحا. | बजट 12,000 रुपये से ज़्यादा नहीं।
预算不能超过12000元。 | 请在5月3日之前完成！ | 予算は12,000円までです。 | 예산은 12,000원을 넘지 마세요.
Non chiamare mai prima delle 9:30. | Não pague mais de 900 €. | Betaal nooit meer dan 5–10 % vooraf."""
said = st.sampled_from([text.strip() for line in SAID.splitlines() for text in line.split(" | ")])


@given(st.lists(st.tuples(roles, st.lists(said, min_size=1, max_size=4)), min_size=1, max_size=8), st.data())
def test_sentences_of_the_originals_are_never_marked(
    messages: list[tuple[Role, list[str]]], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from([text for _, told in messages for text in told]), min_size=1))
    known = covered(tuple((role, " ".join(told)) for role, told in messages))
    for gap in (" ", "\n- ", "\n"):
        assert verify_summary(gap.join(chosen), known, FormerSummary()).invented == 0


# -- what is kept and lost

TOLD: tuple[tuple[Role, str], ...] = (
    ("user", "Plan the party in the town hall for 80 guests on 14 June, please."),
    ("assistant", "Which of the guests must not eat nuts or gluten?"),
    ("user", "Ruben and Ayşe, never any nuts"),
    ("user", "Never use the kitchen after 22:00. The caterer Fern must not cost more than 3,000 €."),
    ("assistant", "Die Halle kostet 940 € Miete, zahlbar bis zum 3. Mai."),
)


def adds_up(counts: dict[str, int]) -> bool:
    return counts["facts"] == counts["kept"] + counts["ledger"] + counts["archive"] and min(counts.values()) >= 0


def generations(*summaries: str) -> list[tuple[VerifiedSummary, tuple[str, ...], dict[str, int]]]:
    """One compaction after another, the first of all messages and the later ones of none."""
    made, former = list[tuple[VerifiedSummary, tuple[str, ...], dict[str, int]]](), FormerSummary()
    for at, summary in enumerate(summaries):
        found = verify_summary(summary, covered(() if at else TOLD), former)
        lines = ledger_lines(found.lost, 200, quarter)
        counts = found.counts(lines)
        former = FormerSummary(found.text, lines, found.places)
        made.append((found, lines, counts))
    return made


def test_what_a_summary_does_not_tell_is_lost_and_goes_into_the_ledger() -> None:
    ((found, lines, counts),) = generations("Never use the kitchen after 22:00.")
    assert "Never use the kitchen after 22:00." in [each.text for each in found.kept]
    assert {"#4: The caterer Fern must not cost more than 3,000 €."} <= set(lines)
    assert {each.key for each in found.lost} <= {each.key for each in ledger_items(lines)}
    assert counts["kept"] == 1
    assert adds_up(counts)


def test_what_a_later_summary_drops_comes_back_and_the_counts_add_up() -> None:
    first, second, third = generations("Never use the kitchen after 22:00.", "Nothing.", "Nothing at all.")
    assert any("kitchen" in each.text for each in second[0].lost)
    assert any("kitchen" in line for line in second[1])
    assert any("3,000 €" in line for line in third[1])
    for found, _, counts in (first, second, third):
        assert adds_up(counts)
        assert counts["facts"] >= len(found.kept) + len(found.lost)


def test_a_question_in_the_ledger_is_no_fact_of_its_own() -> None:
    ((found, lines, counts),) = generations("Nothing.")
    assert any(" → " in line for line in lines)
    assert counts["facts"] == counts["ledger"] == len(found.lost)


def test_an_answer_keeps_its_question_through_generations() -> None:
    first, second = generations("Nothing.", "Nothing.")
    assert any(" → #3: Ruben" in line for line in first[1])
    assert any(" → #3: Ruben" in line for line in second[1])


def test_a_statement_that_a_later_one_corrects_is_not_lost() -> None:
    known = covered((("user", "The budget for the hall is 3,000 €."), ("user", "The budget for the hall is 4,500 €.")))
    assert [each.number for each in verify_summary("Nothing.", known, FormerSummary()).lost] == [2]


def test_an_edited_summary_is_counted_against_all_known_statements() -> None:
    ((found, lines, counts),) = generations("Never use the kitchen after 22:00.")
    written = WrittenSummary(found.text, "model", checks={"covered": 5} | counts, ledger=lines, places=found.places)
    block = next_block(None, written)
    edited = recount_statements("We asked Zorbax [unverified] cook.", block)
    complete = recount_statements(" ".join([found.text, *lines]), block)
    assert (edited["kept"], edited["invented"], edited["covered"]) == (0, 1, 5)
    assert complete["kept"] > counts["kept"]
    assert adds_up({key: value for key, value in edited.items() if key != "covered"})
    assert adds_up(complete)


def test_what_is_only_archived_is_listed_once_in_order_of_time() -> None:
    block = next_block(None, WrittenSummary("Never use the kitchen after 22:00.", "model"))
    found = only_archived(block, covered(TOLD))
    assert [number for number, _, _ in found] == sorted(number for number, _, _ in found)
    assert len(set(found)) == len(found) > 1
    assert not any("kitchen" in text for _, _, text in found)
