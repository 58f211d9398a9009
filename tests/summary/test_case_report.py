"""What an assistant tells about the user's own matter is a fact; what is so in general is not."""

import pytest
from tests.summary.samples import quarter
from tests.summary.test_prohibitions import chat, ledger

from recto.summary.case_report import reports_case
from recto.summary.extractive_summary import extract
from recto.summary.worth import estimates, is_advice, is_worth_telling


@pytest.mark.parametrize(
    "text",
    [
        "I see that Mr Osei approved the credit of 60 € yesterday.",
        "Your tracking number is NL77120045.",
        "The courier now says Wednesday, 11 March, between 13:00 and 17:00.",
        "Your appointment was rescheduled to 9 April at 8:30.",
        "Die Gutschrift über 60 € wurde am Montag genehmigt.",
        "Ihre Vorgangsnummer lautet 88-4471.",
        "El reembolso de 60 € fue aprobado el lunes.",
        "Le remboursement de 60 € a été approuvé lundi, dossier 4471.",
        "De terugbetaling van 60 € is maandag goedgekeurd.",
        "Zwrot 60 zł został zatwierdzony, numer sprawy 4471.",
        "返金3,000円は昨日承認されました。",
        "Together that makes 1,240 € for the roof.",
        "Your bill comes to £312.50.",
        "The tank is at 41 % now.",
        "The passport expires on 19 August.",
        "Damit seid ihr bei 1.915 Euro.",
        "En total son 640 euros y te quedan 85.",
        "Le mobilier fait 4 800 euros.",
        "Samen komt dat op 930 euro.",
        "In totale sono 1.480 euro, restano 120.",
        "Razem to 2 310 zł.",
        "No total são 780 euros.",
        "合計は48,000円です。",
    ],
)
def test_what_becomes_of_the_users_matter_is_told(text: str) -> None:
    assert reports_case(text)
    assert is_worth_telling(text, is_assistant=True)
    assert not is_advice(text)
    assert not estimates(text)


@pytest.mark.parametrize(
    "text",
    [
        "Refunds are usually approved within 14 days.",
        "If the order was shipped, it takes 3 days.",
        "You should note your booking number and 2 photos.",
        "Was the refund of 40 € approved?",
        "Rückzahlungen werden meistens nach 14 Tagen genehmigt.",
        "In total you would need about 15 boards.",
        "Now install 3 packages.",
        "A tiler costs 45 € an hour.",
    ],
)
def test_what_is_so_in_general_is_no_report(text: str) -> None:
    assert not reports_case(text)


SUPPORT = chat(
    "Hello, my bicycle trailer has not arrived, order TR-5518.",
    "I am sorry. The trailer should reach you on Monday, 2 March.",
    "It did not come.",
    "I understand, that is annoying. The carrier now says Thursday, 5 March, between 8:00 and 12:00.",
    "and what about the 30 euros? nobody wrote to me",
    "I see that Ms Okafor approved a refund of 30 € on Friday. You can expect it within a few days.",
    "why are flamingos pink",
    "Flamingos get their colour from the algae and shrimps that they eat.",
    "thanks",
    "Your tracking number is DE00812277. Is there anything else?",
)


def test_the_latest_state_of_a_matter_is_told_and_the_former_is_not() -> None:
    told = extract(SUPPORT, 110, quarter)
    assert "Thursday, 5 March" in told
    assert "2 March" not in told
    assert "approved a refund of 30 €" in told
    assert "DE00812277" in told


def test_the_ledger_lists_what_an_assistant_reports_of_the_matter() -> None:
    said = enumerate(message.text for message in SUPPORT)
    lines = "\n".join(ledger(*(("assistant" if at % 2 else "user", text) for at, text in said)))
    for fact in ("approved a refund of 30 €", "DE00812277", "5 March"):
        assert fact in lines
    assert "2 March" not in lines
