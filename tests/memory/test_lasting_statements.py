"""Of what people say of themselves, what lasts, in four languages; most is about the work at hand, or the day."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.memory.fact_proposals import supported_facts
from recto.memory.lasting_statements import time_sense

LASTING = """
I keep bees behind the house.
My daughter Mia starts school in September 2027.
I take metformin every evening.
I have two cats called Pip and Nora.
We chose PostgreSQL for the booking system.
My grandfather was a lighthouse keeper.
I don't eat shellfish.
I'm originally from Ghana.
Ich spiele seit zwölf Jahren Cello.
Meine Steuerberaterin ist Frau Kern.
Wir haben uns für die Wärmepumpe entschieden.
Ich habe eine Nussallergie.
Ich bevorzuge kurze Antworten.
Wir haben 2016 in Lissabon geheiratet.
Mi cumpleaños es el 12 de octubre.
No como carne.
Soy alérgica a los frutos secos.
Toco la guitarra desde los diez años.
Nuestra oficina está en la quinta planta.
Ma femme vient du Québec.
Je prends du ramipril tous les matins.
J'habite à Nantes avec mes deux filles.
Nous avons acheté une maison à Brest en 2021.
Je suis végétarienne depuis 2009.
""".strip().splitlines()
PASSING = """
I get a segmentation fault when the loop reaches the last row.
My code compiles but the output is empty.
I need a list of ten synonyms.
My wife is at the dentist.
I'm preparing a presentation on solar panels.
I use tabs in this snippet.
We have ten minutes before the meeting starts.
I prefer the blue one.
Mein Text ist zu lang für das Formular.
Ich habe den Befehl zweimal ausgeführt.
Meine Tochter weint.
Ich trinke meinen dritten Kaffee.
Wir benutzen die alte Vorlage für Seite zwei.
Ich suche ein anderes Wort für schnell.
Me sale un error al compilar el programa.
Mi mujer está en el dentista.
Uso la función de arriba.
Estoy de acuerdo con el último punto.
Mis hijos tienen hambre.
Je ne comprends pas le deuxième paragraphe.
Mon chat est sur le clavier.
J'ai installé la mise à jour.
Je parle du graphique plus haut.
Nous attendons la réponse du service client.
""".strip().splitlines()


def is_kept(sentence: str) -> bool:
    return bool(supported_facts(json.dumps([{"quote": sentence, "fact": sentence}]), sentence))


@pytest.mark.parametrize("sentence", LASTING)
def test_what_lasts_is_kept_if_a_model_points_to_it(sentence: str) -> None:
    assert is_kept(sentence)


@pytest.mark.parametrize("sentence", PASSING)
def test_what_passes_is_not_kept_even_if_a_model_points_to_it(sentence: str) -> None:
    assert not is_kept(sentence)


@pytest.mark.parametrize("sentence", ["Mam dwa koty i psa.", "我住在柏林，是一名护士。", "Asun Turussa."])
def test_nothing_is_known_of_a_language_without_words(sentence: str) -> None:
    assert time_sense(sentence) is None


@given(st.text(max_size=700))
def test_any_sentence_can_be_judged(text: str) -> None:
    assert time_sense(text) in ("lasting", "passing", "unknown", None)


def test_a_long_sentence_takes_no_longer_than_its_length() -> None:
    assert time_sense("I work " + "and my own team is there " * 2000) in ("lasting", "passing", "unknown")
