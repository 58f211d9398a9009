"""Pasted dialogue: which lines of a text are turns of a chat, by their labels and times, and who speaks.

Tells a dialogue from notes with headings: somebody speaks again after another, or two speak to each other.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from recto.summary.quoted_mail import TextLine, attribute, is_marked, own_ending, paragraph_end
from recto.summary.sentences import word_set

_STAMP = (
    r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?\s+)?(?:(?:um|at|à|a las)\s)?\d{1,2}[:.]\d\d(?:[:.]\d\d)?"
    r"(?:\s?[AaPp]\.?\s?[Mm]\b\.?)?(?:\sUhr)?"
)
_CLOCK = re.compile(r"\d[:.]\d\d")
_NAME = r"(\+?[^\W_][^\n:：,;!?\[\]<>|={}\"]{0,39}?)"
_STAMPED = re.compile(
    rf"(?:[\[(]\s?{_STAMP}\s?[\])]\s*[-–—]?\s*{_NAME}\s?:|{_STAMP}\s+[-–—]\s+{_NAME}\s?:"
    rf"|[\[(]?{_STAMP}[\])]?\s+<([^\s<>]{{1,24}})>)\s+"
)
_TIMED = re.compile(rf"(?:{_STAMP}\s+{_NAME}\s?:|{_NAME},?\s[\[(]?{_STAMP}[\])]?\s?:)\s+(?=\S)")
_DAY = r"(?:today|yesterday|heute|gestern|hoy|ayer|aujourd['’]hui|hier)"
_DATED = re.compile(rf"{_NAME}(?:\s+APP)?\s*[—–|·,-]?\s*{_DAY},?\s(?:\w+\s)?{_STAMP}\s*$", re.IGNORECASE)
_FULL_NAME = _NAME.replace(",;", ";")
_HEADED = re.compile(
    rf"(?:{_NAME}(?:\s+APP)?\s*(?:[—–|·,-]\s*|\s{{1,3}})[\[(]?\s?{_STAMP}[\])]?|[\[(]{_STAMP}[\])]\s+{_FULL_NAME})\s*$",
    re.IGNORECASE,
)
_PLAIN = re.compile(rf"(?:#{{1,4}}\s)?[*_]{{0,2}}{_NAME}[*_]{{0,2}}\s?(?::[*_]{{0,2}}(?:\s+|$)|：\s*)")
_ROLE = re.compile(
    r"(?:user|assistant|system|human|ai|bot|chatbot|chatgpt|claude|gemini|copilot|gpt-?\S*|nutzer(?:in)?"
    r"|benutzer(?:in)?"
    r"|assistent(?:in)?|mensch|ki|usuari[oa]|asistente|sistema|humano|utilisat(?:eur|rice)|assistante|système|humain"
    r"|用户|助手|系统|(?:you|chatgpt|claude|gemini) said|(?:du|sie) sagten?)$",
    re.IGNORECASE,
)
# What people write before a colon in notes of their own.
_FIELDS = word_set("""
note notes todo task tasks goal goals decision decisions question questions answer problem solution example pro pros
con cons plan idea summary update edit ps fyi re budget deadline title subject name names date time place location
status priority step option result results error warning info tip important reminder context background input output
expected actual fact facts rule rules order warnung notiz notizen aufgabe aufgaben ziel ziele entscheidung
entscheidungen frage fragen antwort lösung beispiel vorteil nachteil vorteile nachteile zusammenfassung titel betreff
datum uhrzeit zeit ort schritt ergebnis fehler hinweis wichtig hintergrund regel regeln erinnerung nota notas tarea
tareas objetivo meta decisión decisiones pregunta respuesta problema solución ejemplo ventaja desventaja resumen
presupuesto plazo título asunto nombre fecha hora lugar estado prioridad paso opción resultado aviso importante regla
recordatorio remarque tâche objectif but décision réponse problème exemple avantage inconvénient résumé titre objet nom
heure lieu statut étape résultat erreur rappel règle debug trace fatal warn fixme critical notice
""")
_PARTICLES = word_set("von van de del der den la le di da al el bin y und and")
_PERSONAL = re.compile(
    r"[?!¿¡？！]|\b(?:i|i['’](?:m|ll|ve|d)|we|we['’](?:re|ll|ve)|you|your|me|my|our|us|let['’]s|ich|wir|du|ihr|mir"
    r"|mich|dir|"
    r"dich|uns|euch|mein\w*|dein\w*|unser\w*|yo|tú|te|nos|mi|mis|nosotros|usted|vamos|je|tu|nous|vous|moi|toi|mon|mes|"
    r"notre|votre)\b|\bj['’]|^(?:yes|no|yeah|ok|okay|hi|hey|hello|thanks|sure|ja|nein|hallo|danke|klar|gut|sí|hola"
    r"|vale|"
    r"gracias|claro|oui|non|salut|merci|d['’]accord|bien)\b|[我你您们吗]",
    re.IGNORECASE,
)
_MAX_LABEL = 100
# Of two turns that answer each other, in lines.
_MAX_DISTANCE = 3
_MAX_NAME_WORDS, _MAX_UNSPACED_NAME = 4, 6
_MIN_SENTENCE_WORDS = 4


def _label(line: str) -> tuple[str, str, str] | None:
    """Kind, name and rest of a line that may say who speaks."""
    line = line.lstrip(" \t\u200e")
    if ":" not in line[:_MAX_LABEL] and "：" not in line[:_MAX_LABEL]:
        return None
    if _CLOCK.search(line) and (stamped := _stamped_label(line)):
        return stamped
    if found := _PLAIN.match(line):
        name = found[1].rstrip("*_ ")
        return "role" if _ROLE.match(name) else "plain", name, line[found.end() :]
    return None


def _stamped_label(line: str) -> tuple[str, str, str] | None:
    """The same of a line that tells the time."""
    if found := _STAMPED.match(line):
        return "stamped", found[found.lastindex or 1], line[found.end() :]
    if found := _TIMED.match(line):
        return "plain", found[found.lastindex or 1], line[found.end() :]
    is_short = len(line) <= _MAX_LABEL
    if is_short and (found := _DATED.match(line)):
        return "dated", found[1], ""
    if is_short and (found := _HEADED.match(line)):
        return "headed", found[1] or found[2], ""
    return None


def _is_name(label: str) -> bool:
    """Whether people are called like that: few words, each with a capital letter."""
    words = [word for word in re.split(r"[\s-]", label) if word]
    if not words or len(words) > _MAX_NAME_WORDS or any(char.isdigit() for char in label):
        return False
    if any(word.lower().strip(".,") in _FIELDS for word in words):
        return False
    if not words[0][0].isupper():
        return len(label) <= _MAX_UNSPACED_NAME and not words[0][0].islower()
    return all(word[0].isupper() or word[0] == "(" or word in _PARTICLES for word in words)


def _is_speaker(label: str) -> bool:
    """Whether it stands for somebody where a time stands beside it: not a level or a part of a program."""
    return label.lower() not in _FIELDS and not (label[0].islower() or label[0].isdigit())


def _is_spoken(text: str) -> bool:
    return _PERSONAL.search(text) is not None


def _is_sentence(text: str) -> bool:
    return text.count(" ") >= _MIN_SENTENCE_WORDS - 1


class _Turn(NamedTuple):
    """A line that begins what one speaker says."""

    at: int
    kind: str
    name: str
    text: str


def _find_turns(lines: Sequence[TextLine]) -> list[_Turn]:
    """The lines with a label of which the text shows that they are a dialogue and not notes with headings."""
    found = [_Turn(at, *label) for at, line in enumerate(lines) if not line.is_code and (label := _label(line.text))]
    if not found:
        return []
    turns = [turn for turn in found if turn.kind == "stamped" and _is_speaker(turn.name)]
    roles = [turn for turn in found if turn.kind == "role"]
    if len({turn.name.lower() for turn in roles}) > 1:
        turns += roles
    else:
        turns += [
            turn for turn in roles if _is_sentence(turn.text) and (_is_spoken(turn.text) or turn.text.endswith("."))
        ]
    above = [turn for turn in found if turn.at + 1 < len(lines) and lines[turn.at + 1].text.strip()]
    turns += [turn for turn in above if turn.kind == "dated"]
    headed = [turn for turn in above if turn.kind == "headed" and _is_name(turn.name)]
    said = [turn._replace(text=lines[turn.at + 1].text) for turn in headed]
    turns += headed if _is_dialogue(said) else ()
    plain = [turn for turn in found if turn.kind == "plain" and _is_name(turn.name) and turn.text]
    turns += plain if _is_dialogue(plain) else ()
    return sorted(turns)


def _is_dialogue(turns: Sequence[_Turn]) -> bool:
    """Somebody speaks again after another, mostly in sentences; or two speak to each other."""
    speakers = Counter(turn.name for turn in turns)
    if len(speakers) < 2:
        return False
    spoken = [turn for turn in turns if _is_spoken(turn.text)]
    if any(number > 1 for number in speakers.values()):
        whole = [turn for turn in turns if _is_spoken(turn.text) or _is_sentence(turn.text)]
        return 3 * len(spoken) >= len(turns) and 2 * len(whole) >= len(turns)
    is_close = all(later.at - earlier.at <= _MAX_DISTANCE for earlier, later in pairwise(turns))
    return is_close and len(spoken) == len(turns) and len(speakers) == len(turns)


def attribute_turns(lines: list[TextLine]) -> None:
    """Gives the lines of a dialogue their speakers. A line without a label goes on with what the one before says,
    unless the dialogue has no such lines and it stands apart."""
    turns = _find_turns(lines)
    if not turns:
        return
    gaps = [(turn, later.at) for turn, later in pairwise(turns)]
    unlabelled = sum(any(lines[at].text.strip() for at in range(turn.at + 1, end)) for turn, end in gaps)
    is_loose = 4 * unlabelled > len(turns) or any(turn.kind in ("headed", "dated") for turn in turns)
    for turn, end in gaps:
        _attribute_turn(lines, turn, end if is_loose else paragraph_end(lines, turn.at + 1, end))
    last, start = turns[-1], turns[-1].at + 1
    end = start if last.text and not (is_loose or unlabelled) else paragraph_end(lines, start)
    if last.kind == "role":  # answers of models have many paragraphs
        asks = own_ending(lines, start)
        end = asks if is_loose or asks < len(lines) else end
    _attribute_turn(lines, last, end)


def _attribute_turn(lines: list[TextLine], turn: _Turn, end: int) -> None:
    speaker = turn.name.strip()
    lines[turn.at] = lines[turn.at]._replace(text=turn.text, speaker=speaker)
    attribute(lines, turn.at + 1, end, speaker)


def is_labelled(line: str) -> bool:
    """Whether a single line shows that it is quoted."""
    label = _label(line)
    return is_marked(line) or (label is not None and _is_name(label[1]) and _is_spoken(label[2]))
