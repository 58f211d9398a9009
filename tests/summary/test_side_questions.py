"""What the user asks beside the matter, and what is answered at once, is told by neither summary nor ledger."""

import pytest
from tests.summary.samples import covered, quarter

from recto.chat.message import Role
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger import mark_corrections
from recto.summary.ledger_selection import ledger_lines
from recto.summary.side_questions import Said, find_side_questions

Exchange = tuple[str, str]

MATTER: dict[str, tuple[Exchange, ...]] = {
    "en": (
        ("I plan a greenhouse for the school garden, 24 m² on the south wall.", "Glass or polycarbonate?"),
        ("Polycarbonate, 16 mm, because of the football pitch next to it.", "Good choice for the greenhouse."),
        ("The headmaster Olaf Brandt pays 3,400 euros, nothing more.", "Noted, 3,400 euros from the school."),
        ("The foundation is done by the parents on 9 May.", "Then the frame can come the week after."),
        ("Never use pesticides in there, children eat the tomatoes.", "Understood, no pesticides."),
        ("Tomatoes left, cucumbers right, herbs at the door.", "A sensible order for the beds."),
    ),
    "de": (
        ("Ich baue ein Gewächshaus für den Schulgarten, 24 m² an der Südwand.", "Glas oder Kunststoff?"),
        ("Kunststoff, 16 mm, wegen des Fußballplatzes daneben.", "Gute Wahl für das Gewächshaus."),
        ("Der Rektor Olaf Brandt zahlt 3.400 Euro, mehr nicht.", "Notiert, 3.400 Euro von der Schule."),
        ("Das Fundament machen die Eltern am 9. Mai.", "Dann kann der Rahmen in der Woche darauf kommen."),
        ("Niemals Spritzmittel verwenden, die Kinder essen die Tomaten.", "Verstanden, keine Spritzmittel."),
        ("Tomaten links, Gurken rechts, Kräuter an der Tür.", "Eine sinnvolle Ordnung für die Beete."),
    ),
    "es": (
        ("Planeo un invernadero para el huerto del colegio, 24 m² en el muro sur.", "¿Vidrio o policarbonato?"),
        ("Policarbonato de 16 mm, por el campo de fútbol de al lado.", "Buena elección para el invernadero."),
        ("El director Olaf Brandt paga 3.400 euros, nada más.", "Anotado, 3.400 euros del colegio."),
        ("La cimentación la hacen los padres el 9 de mayo.", "Entonces el armazón llega la semana siguiente."),
        ("Nunca uses pesticidas, los niños comen los tomates.", "Entendido, sin pesticidas."),
        ("Tomates a la izquierda, pepinos a la derecha.", "Un orden sensato para los bancales."),
    ),
}
ASIDES = [
    (
        "en",
        "quick one, why do wasps exist",
        "They hunt flies and caterpillars, and some pollinate figs since 90 million",
    ),
    ("en", "who wrote Moby-Dick?", "Herman Melville wrote it in 1851, after years on whaling ships."),
    ("en", "why do we hiccup", "The diaphragm cramps, up to 60 times in a minute."),
    ("en", "tell me a riddle", "What has keys but opens no locks? A piano, with 88 of them."),
    ("en", "hoe zwaar is een olifant", "Een Afrikaanse olifant weegt tot 6000 kilo, een Aziatische 4000."),
    ("en", "jak daleko jest księżyc", "Księżyc krąży średnio 384 tysiące kilometrów od Ziemi."),
    (
        "de",
        "wie alt werden Schildkröten",
        "Riesenschildkröten werden bis zu 190 Jahre alt, Jonathan auf St. Helena noch älter.",
    ),
    ("de", "sag mal, wer hat den Reißverschluss erfunden", "Whitcomb Judson hat 1893 den ersten vorgestellt."),
    (
        "es",
        "por qué brillan las luciérnagas",
        "Por la luciferina, que al oxidarse emite luz fría con un 90 % de rendimiento.",
    ),
    (
        "en",
        "pourquoi la mer est-elle salée ?",
        "Les fleuves y portent les sels des roches depuis 4 milliards d'années.",
    ),
    ("en", "フラミンゴはなぜピンクなの？", "餌の藻類とエビに含まれるカロテノイドのためです。"),
]


def conversation(language: str, *asides: Exchange) -> list[tuple[Role, str]]:
    exchanges = list(MATTER[language])
    exchanges[3:3] = asides
    return [said for asked, answered in exchanges for said in (("user", asked), ("assistant", answered))]


def told(said: list[tuple[Role, str]]) -> str:
    return extract([PlainMessage(role, text) for role, text in said], 600, quarter)


def listed(said: list[tuple[Role, str]]) -> str:
    entries = mark_corrections(covered(tuple(said)).told())
    return "\n".join(ledger_lines(entries, 600, quarter))


@pytest.mark.parametrize(("language", "question", "answer"), ASIDES)
def test_a_side_question_and_its_answer_are_not_told(language: str, question: str, answer: str) -> None:
    said = conversation(language, (question, answer))
    for text in (told(said), listed(said)):
        assert question not in text
        assert answer[:20] not in text


@pytest.mark.parametrize("language", MATTER)
def test_what_the_conversation_is_about_stays_beside_side_questions(language: str) -> None:
    asides = [(question, answer) for known, question, answer in ASIDES if known == language]
    summary = told(conversation(language, *asides))
    assert "Olaf Brandt" in summary
    assert "16 mm" in summary
    assert "9" in summary
    assert MATTER[language][4][0] in summary


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("how thick must the polycarbonate be at the roof?", "For the roof take 20 mm, it carries 75 kg of snow."),
        ("does the greenhouse need a permit?", "Below 30 m² none is needed, the office of Wiesbach says."),
        ("how long does that take to dry?", "The concrete takes 28 days until it holds its full load."),
        ("do we need an anchor against storms?", "Four ground anchors of 60 cm are enough."),
        ("and when does the carpenter come?", "Lasse Rohde comes on Monday, 18 May."),
        ("can he bring a ladder of 4 m?", "A ladder of 4 m fits on his van."),
    ],
)
def test_a_question_on_the_matter_is_no_side_question(question: str, answer: str) -> None:
    said = [Said(role, text) for role, text in conversation("en", (question, answer))]
    assert find_side_questions(said) == set()


def test_what_is_taken_up_again_is_no_side_question() -> None:
    asked = ("is basil an annual?", "Mostly: sweet basil dies at frost, shrubby basil lives for years.")
    after = ("Then shrubby basil goes to the door.", "Noted.")
    said = [Said(role, text) for role, text in conversation("en", asked, after)]
    assert find_side_questions(said) == set()


def test_what_the_user_accepts_is_no_side_question() -> None:
    asked = ("what would be a funny name on a sign?", "Perhaps Glasshopper, since crickets will move in anyway.")
    said = [Said(role, text) for role, text in conversation("en", asked, ("perfect, take that", "Gladly."))]
    assert find_side_questions(said) == set()


def test_where_most_is_asked_at_random_the_questions_are_the_matter() -> None:
    asides = [(question, answer) for _, question, answer in ASIDES]
    said = [Said(role, text) for one in asides for role, text in (("user", one[0]), ("assistant", one[1]))]
    assert find_side_questions(said) == set()


def test_a_question_that_led_to_a_call_is_no_side_question() -> None:
    said = [Said(role, text) for role, text in conversation("en", ("how warm is the sea at Sylt", "I look it up."))]
    said[7] = Said("assistant", "I look it up.", is_working=True)
    assert find_side_questions(said) == set()


def test_an_order_that_was_only_acknowledged_is_no_side_question() -> None:
    asked = ("please prepare a short leaflet about lavender, any day this month is fine.", "Any day this month, good.")
    said = [Said(role, text) for role, text in conversation("en", asked)]
    assert find_side_questions(said) == set()
