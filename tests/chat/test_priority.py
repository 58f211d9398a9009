"""What a message is worth by itself: what binds is high, chatter is low, and most of what people say is neither."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Block, Compaction, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.chat.priority import priority_of, sentence_priority


def said(text: str, role: Literal["system", "user", "assistant", "tool"] = "user") -> Message:
    return Message("m", role, (Text(text),))


def result(text: str, is_error: bool = False) -> Message:
    return Message("m", "tool", (ToolResult("c", "run", text, is_error),))


BINDING = """
Don't touch the tests
we must ship on Friday
actually I meant the other file
no, use PostgreSQL
No. Use PostgreSQL.
let's go with option B
from now on answer in French
never use tabs
my budget is 400 €
remember that the server is in Berlin
I'm allergic to nuts
I’m vegetarian, what could I cook tonight?
Please don't change the public API.
You must not delete anything.
The output must be valid JSON
it must be under 5 MB
Always write the tests first.
make sure it works offline
Keep in mind that we support Windows
I've decided to take the train
We agreed on Tuesday
That's wrong, the capital is Canberra
scratch that, use the first one
I'd rather have it in blue
option B please
Option 2
The deadline is 3 May
at most 200 words
Avoid the passive voice.
Use Redis instead
Call me Anna
My name is Peter
I live in Lisbon
no, not that one
Nope, the other one
you misunderstood me
that's not what I asked for
Stop using emojis
only answer in English
on second thought, keep it
Revert that change
decision: we drop Python 3.9
please never push to main
[[Budget]] must stay below 400
lets use sqlite
dont commit anything
Ab jetzt bitte auf Deutsch
Nein, nimm PostgreSQL
Ich meinte die andere Datei
Wir müssen bis Freitag liefern
Fass die Tests nicht an
Ich bin allergisch gegen Nüsse
Auf keinen Fall löschen
Verwende niemals Tabs
À partir de maintenant réponds en français
Non, utilise PostgreSQL
Ne touche pas aux tests
Je suis allergique aux noix
On part sur l'option B
A partir de ahora responde en español
No, usa PostgreSQL
No toques los tests
Soy alérgico a las nueces
Vamos con la opción B
Nunca uses tabuladores
I decided we will go to Ghent.
I decided that the API stays at v2.
I have decided the colour will be blue.
We decided against Redis.
It was decided that Ada leads the team.
We agreed that Redis is out.
We agreed the kick-off is in May.
We've agreed on 4 %.
Actually, correction: the budget is 350 euros.
Correction: it is 350 euros.
Small correction: the room is 12.
I made a mistake: the code is 4711.
Sorry, I got that wrong: it is 14 May.
Remember: the staging database is at db:5432.
Remember, the password rotates every month.
Please remember the door code 4471.
Never call the hotel before 9:30.
You should never push to main.
We never deploy on Fridays.
Please don't call me before 9:30.
Do not get in touch with the client before 9:30.
Don't send anything to Marta before Thursday.
From now on use uv instead of pip.
As of today we only use uv.
The deadline is Friday 17:00.
The report is due on 14 March.
The report has to be in by 14 March.
I need the draft by Thursday.
Please send the slides by Friday noon.
We have to submit it before 15 April.
The task is to make the import idempotent.
Your task: write the migration.
The goal is to cut the start-up time in half.
Your job is to translate the manual.
Open question: who pays for the fireworks?
Still open: the licence.
It is still open who pays.
We still need to find out whether the hall is free.
We haven't decided yet whether to invite the press.
I don't know yet who will pay.
To be decided: the menu.
I prefer tea over coffee.
Under no circumstances may the data leave the EU.
Nobody may edit the live table.
The budget went up to 400 euros.
The meeting was moved to Tuesday.
The price is now 450 euros instead of 400.
It's not 300 but 350 euros.
Make that 14 rooms, not 12.
Wir haben vereinbart, dass Jonas die Musik macht.
Wir haben entschieden, dass wir PostgreSQL nehmen.
Ich habe beschlossen, dass wir nach Gent fahren.
Es wurde beschlossen, die Miete zu erhöhen.
Wir nehmen den Zug.
Was noch offen ist: Brauchen wir eine Genehmigung?
Offen ist noch, wer die Technik bezahlt.
Offene Frage: Wer zahlt?
Wir wissen noch nicht, wer zahlt.
Das ist noch nicht entschieden.
Bitte ruf nie vor 9:30 Uhr an.
Ruf mich bitte nicht vor 9:30 Uhr an.
Schick dem Kunden auf keinen Fall den Entwurf.
Der Entwurf darf nicht an den Kunden gehen.
Kein Deployment am Freitag!
Merke dir: Der Code ist 4711.
Denk daran, dass die Tür klemmt.
Ab jetzt bitte nur noch auf Deutsch antworten.
Ab sofort gilt der neue Tarif.
Korrektur: Das Budget liegt bei 14.000 €.
Ich habe mich geirrt, es sind 14 Räume.
Es sind nicht 300, sondern 350 Euro.
Die Abgabe ist am 14. März.
Abgabetermin ist der 14. März.
Der Bericht muss bis Freitag fertig sein.
Die Aufgabe ist, den Import zu reparieren.
Deine Aufgabe: den Bericht schreiben.
Mir ist Tee lieber als Kaffee.
Hemos decidido usar euros.
Decidí que vamos a Gante.
Acordamos que Jonás lleva la música.
Hemos acordado pagar la mitad.
Nunca envíes el borrador al cliente.
No llames antes de las 9:30.
Por favor, no me llames antes de las 9:30.
No se lo digas a nadie.
Corrección: el presupuesto es de 5.200 euros.
En realidad me equivoqué: el presupuesto es de 5.200 euros.
No son 300, sino 350 euros.
Recuerda: la reunión es el jueves.
Recuerda que la reunión es el jueves.
De ahora en adelante, responde en español.
A partir de hoy usamos uv.
La fecha límite es el 15 de abril.
El plazo termina el viernes.
Hay que entregarlo antes del viernes.
La tarea es preparar el informe.
Tu tarea: traducir el manual.
El objetivo es reducir el tiempo a la mitad.
Todavía no sabemos quién paga el viaje.
Queda por decidir quién paga.
Está pendiente la licencia.
Pregunta abierta: ¿quién paga?
El presupuesto es de 4.500 euros.
Prefiero respuestas cortas.
Nous avons décidé de partir à Gand.
J'ai décidé que nous irons à Gand.
On a décidé de garder Redis.
Nous avons convenu que Jonas fait la musique.
On s'est mis d'accord sur 4 %.
Ne m'appelle jamais avant 9h30.
N'appelle pas avant 9:30.
N'envoie jamais le brouillon au client.
Il ne faut pas toucher à la production.
Correction : le budget est de 350 euros.
En fait, je me suis trompé, c'est 350 euros.
Ce n'est pas 300 mais 350 euros.
Rappelle-toi : la réunion est jeudi.
N'oublie pas : le code est 4711.
À partir de maintenant, réponds en français.
À partir d'aujourd'hui, on utilise uv.
La date limite est le 15 avril.
Il faut rendre le rapport avant vendredi.
La tâche est de réparer l'import.
Ta tâche : traduire le manuel.
L'objectif est de réduire le temps.
Reste à décider qui paie.
On ne sait pas encore qui paie.
Question ouverte : qui paie ?
Le budget est de 300 euros.
Je préfère des réponses courtes.
"""
NORMAL = """
must be nice!
I must say that was great
must I restart it?
What must I do to get in?
You must be so proud!
That must have been hard.
I have to go now
I never knew that
I've always wanted to go to Japan
Don't know yet
No, I haven't tried it
No, not yet
what is the capital of France?
Can you explain how it works?
Write a poem about the sea
How do I always get the newest version?
Should I never use tabs?
I don't think so
Why don't you try it?
Don't you think it is too long?
She never called me back
You have to see that movie
Das muss toll sein
Muss ich neu starten?
Could you check it again?
We had no problem with it
Faut-il redémarrer ?
¿Debo reiniciar?
那个怎么用？
We met before the war.
The book is still open on my desk.
The shop is open until nine.
Das Fenster ist offen.
Ich habe das noch nie gesehen.
La ventana está abierta.
La porte est ouverte.
The task bar is grey.
"""
CHATTER = """
thanks!
ok
lol
great, go on
hi
Hello there!
Thank you so much!
cool
haha
continue
sounds good
good morning
never mind
don't worry
no problem
no worries
Thanks a lot for your help!
Hey Anna, how are you?
that's great!
got it, thanks
Thanks, that helps.
Danke, das hilft sehr!
Merci, ça aide beaucoup
see you later
danke!
vielen Dank
alles klar, danke
merci beaucoup
d'accord, merci
gracias
muy bien, gracias
"""


def rows(table: str) -> list[str]:
    return table.strip().split("\n")


@pytest.mark.parametrize("text", rows(BINDING))
def test_what_binds_is_high(text: str) -> None:
    assert 7 <= priority_of(said(text)) <= 8


@pytest.mark.parametrize("text", rows(NORMAL))
def test_what_only_sounds_so_is_normal(text: str) -> None:
    assert 4 <= priority_of(said(text)) <= 6


@pytest.mark.parametrize("text", rows(CHATTER))
def test_chatter_is_low(text: str) -> None:
    assert priority_of(said(text)) <= 2


@pytest.mark.parametrize("text", ["👍", "😂😂", "...", "?!", ""])
def test_what_has_no_word_is_lowest(text: str) -> None:
    assert priority_of(Message("m", "user", (Text(text),) if text else ())) == 1


@pytest.mark.parametrize("text", ["Docker", "blue one", "yes", "嗯"])
def test_a_word_or_two_are_small(text: str) -> None:
    assert priority_of(said(text)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "it weighs 12 kg",
        "the log is in /var/log/nginx/error.log",
        "see https://example.org/a",
        "run `make test`",
        "I saw him yesterday in town",
        "call read_document first",
        "Wir fahren am Montag los",
    ],
)
def test_what_can_be_looked_up_later_is_a_little_higher(text: str) -> None:
    assert priority_of(said(text)) == 6


def test_the_first_message_of_the_user_is_the_task() -> None:
    assert priority_of(said("Write a poem about the sea"), is_first=True) == 8
    assert priority_of(said("Write a poem about the sea")) == 5
    assert priority_of(said("How can I help?", "assistant"), is_first=True) < 5


def test_two_binding_sentences_weigh_more_than_one() -> None:
    assert priority_of(said("Never use tabs.")) == 7
    assert priority_of(said("Never use tabs. The deadline is Friday.")) == 8


def test_a_summary_outranks_everything_said() -> None:
    block = Compaction(1, "", "m", "All that was said.", 3, 100, 50, "summarize", "")
    assert priority_of(Message("m", "system", (block,))) == 9


def test_instructions_rank_with_the_task() -> None:
    assert priority_of(said("You are a careful editor.", "system")) == 8


def test_results_of_tools_rank_below_what_was_said() -> None:
    assert priority_of(result("3 files found")) == 4
    assert priority_of(result("no such file", is_error=True)) == 3
    assert priority_of(result("Traceback (most recent call last): …")) == 3
    assert priority_of(result("you must never stop\n" * 1000)) == 3
    assert priority_of(said("imported without a block", "tool")) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I've fixed the parser; all tests pass now.", 6),
        ("The root cause is a missing index.", 6),
        ("Here is my plan: first the schema, then the rows.", 6),
        ("I recommend a smaller window.", 6),
        ("We decided to drop the cache.", 6),
        ("Ich habe den Fehler behoben.", 6),
        ("Le problème vient du cache.", 6),
        ("He corregido el error.", 6),
        ("The train leaves on Monday.", 6),
        ("A list is ordered, a set is not.", 5),
        ("You're welcome! Let me know if you need anything else.", 3),
        ("Great question!", 3),
        ("I apologize for the confusion.", 3),
        ("Gern geschehen!", 3),
        ("", 3),
    ],
)
def test_replies_rank_by_what_they_tell(text: str, expected: int) -> None:
    assert priority_of(said(text, "assistant")) == expected


def test_a_reply_that_only_calls_a_tool_ranks_with_its_result() -> None:
    blocks: tuple[Block, ...] = (Thinking("I must look."), ToolCall("c", "find", "{}"))
    assert priority_of(Message("m", "assistant", blocks)) == 4


def test_a_message_of_files_only_is_normal() -> None:
    assert priority_of(Message("m", "user", (File("a.txt", "x"), Image("image/png", "aaaa")))) == 5


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01 10:00:{0:02} WARN you must restart, never mind {0}",
        "[{0}] the value must not be empty",
        "step {0}: the value must be set",
        "    at org.example.Main{0}(Main.java:{0}) must not be null",
    ],
)
def test_a_pasted_log_is_normal_whatever_it_says(line: str) -> None:
    log = "\n".join(line.format(number) for number in range(200))
    assert priority_of(said(log)) == 5
    assert priority_of(said(f"What does this mean?\n\n{log}")) == 5
    assert priority_of(said(f"Don't restart the server because of this:\n\n{log}")) == 7
    assert priority_of(said(f"{log}\n\nFrom now on send logs as files.")) == 7


def test_code_between_fences_does_not_bind() -> None:
    code = "# never call this twice, you must not\nassert x, 'must be set'"
    assert priority_of(said(f"What does it do, and why is it so slow?\n```python\n{code}\n```")) < 7
    assert priority_of(said(f"Never call it like this, it costs too much time:\n```python\n{code}\n```")) >= 7


def test_a_list_of_demands_is_not_a_paste() -> None:
    demands = "\n".join(
        f"- {verb} the thing in the {number}th room" for number, verb in enumerate("abcdefghijklmnopqrstuvwxyz")
    )
    assert priority_of(said(f"{demands}\n- it must run on Windows")) >= 7


def test_only_the_ends_of_a_long_message_are_looked_at() -> None:
    prose = "This went on and on for a while and nobody minded it. " * 400
    assert priority_of(said(prose + "Never use tabs. " + prose)) == 5
    assert priority_of(said(prose + "\n\nNever use tabs.")) == 7


roles = st.sampled_from(["system", "user", "assistant", "tool"])
phrases = st.lists(
    st.sampled_from(
        ["must", "never", "don't", "no", ",", ".", "?", "!", "\n", "```", "thanks", "use", "actually", "#", "^"]
    )
    | st.sampled_from(
        ["[", "2024-01-01 10:00:00", "budget", "is", "400", "€", "let's", "’", "|", "…", "/", "please", "¿"]
    )
).map(" ".join)


@given(phrases | st.text(), roles, st.booleans())
def test_any_text_has_a_priority_and_always_the_same(
    text: str, role: Literal["system", "user", "assistant", "tool"], is_first: bool
) -> None:
    found = priority_of(said(text, role), is_first=is_first)
    assert 1 <= found <= 10
    assert found == priority_of(said(text, role), is_first=is_first)
    assert sentence_priority(text) in (2, 5, 6, 7)


def test_a_sentence_is_weighed_on_the_same_scale() -> None:
    assert sentence_priority("Never use tabs.") == 7
    assert sentence_priority("The root cause is a missing index.") == 6
    assert sentence_priority("It rained yesterday.") == 6
    assert sentence_priority("The sea is blue.") == 5
    assert sentence_priority("Thanks a lot!") == 2


@pytest.mark.parametrize("greeting", ["hi", "Hello there!", "Guten Morgen", "bonjour", "hi, how are you?", "…"])
def test_a_greeting_is_not_the_task(greeting: str) -> None:
    assert priority_of(said(greeting), is_first=True) <= 2
    assert priority_of(said(f"{greeting}. Please plan our trip to Oslo."), is_first=True) == 8


def test_a_greeting_that_brings_a_picture_is_the_task() -> None:
    picture = Image("image/png", "", sha256="0" * 64)
    assert priority_of(Message("1", "user", (picture, Text("hi"))), is_first=True) == 8
