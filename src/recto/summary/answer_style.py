"""How the user wants to be answered, once and for all: "short answers please", "no emojis", "when you write amounts,
use kroner". Knows one sentence."""

import re

from recto.chat.cues import words_of
from recto.text import text_cache

_WORDS = """
answer answers answering reply replies respond response responses explain explanations write emoji emojis
bullet bullets bullet-points table tables antworte antworten antwort schreib schreibe erkläre stichpunkte
stichpunkten tabelle responde respondas respuesta respuestas contesta contéstame escribe escríbeme
explícame tabla réponds répondez réponse réponses écris écrivez explique tableau antwoord antwoorden
schrijf leg tabel rispondi rispondimi risposte risposta scrivi scrivimi spiega tabella odpowiadaj
odpowiedzi pisz tabeli emotikonów responda respostas escreva escreve tabela schreibst gibst nennst antwortest
escribas pongas donnes proposes schrijft geeft antwoordt noemt dai proponi piszesz podajesz odpowiadasz
escreveres escrever responderes responder quote list show give name suggest des tell
"""
_ANSWERING = frozenset(_WORDS.split())
_MANNER = (
    r"(?:short(?:er|ly)?|brief(?:ly)?|concise(?:ly)?|simple|simply|formal(?:ly)?|(?:short )?bullets?|bullet-points"
    r"|points"
    r"|tables?|steps?|metric|english|german|spanish|french|dutch|italian|polish|portuguese|japanese|kurz\w*|knapp\w*"
    r"|einfach|stichpunkte\w*|tabelle|deutsch|englisch|cort[oa]s?|breves?|brevemente|sencill\w+|tabla|español|inglés"
    r"|courtes?|courts?|bref|brièvement|simplement|tableau|français|anglais|kort\w*|bondig|simpel|tabel|nederlands"
    r"|brev[ei]|semplice|tabella|italiano|inglese|krótk\w+|prosto|tabeli|polsku|curt[ao]s?|simples|tabela|português)"
)
_ANSWER_STYLE = re.compile(
    r"\b(?:answers?|answering|repl(?:y|ies)|respon[ds]\w*|antwort\w*|respuestas?|contesta|contéstame|répon\w+"
    rf"|antwoord\w*|rispo\w+|odpowi\w+|respost\w+)\b[^.?!]{{0,40}}?\b{_MANNER}\b"
    # what one text is to be like is no rule: "explain wool briefly"
    r"|\b(?:write|explain|schreib\w*|erkläre?|escr[ií]b\w+|écri\w+|explique|schrijf|scriv\w+|spiega|pisz|escrev[ae])(?:-me)?"
    r"(?: (?:me|to me|mir|moi|mi|frases|sentences|sätze|only|always|please|bitte|immer|nur|siempre|solo|toujours|altijd"
    r"|sempre|zawsze|tylko|in"
    r"|auf"
    rf"|en|po|em|a|una|eine))* {_MANNER}\b"
    r"(?! (?!(?:que|weil|because|since|porque|parce|car|omdat|perché|bo)\b)[^\W\d_])"
    r"|\b(?:short(?:er)?|brief|concise|simple|kurze|knappe|cortas|breves|courtes|korte|brevi|krótkie|curtas)"
    r" (?:answers|replies|responses|antworten|respuestas|réponses|antwoorden|risposte|odpowiedzi|respostas)\b"
    r"|\b(?:no|without|keine|ohne|sin|nada de|pas d['’]|sans|geen|zonder|niente|senza|bez|sem) (?:emojis?|emoticonos"
    r"|emotikonów|emoticon)\b",
    re.IGNORECASE,
)
# "When you write amounts for me, use kroner": whenever it happens, something is to be done.
_WHENEVER = re.compile(
    r"\b(?:when(?:ever)? you|wenn du|cuando|quand tu|lorsque tu|als je|wanneer je|quando|kiedy|gdy) (?:\S+ ){0,5}?"
    r"(?:write|give|quote|list|show|tell|name|answer|reply|explain|suggest|schreibst|gibst|nennst|antwortest"
    r"|escribas|des|respondas|pongas|écris|donnes|réponds|proposes|schrijft|geeft|antwoordt|noemt|scrivi|dai|rispondi"
    r"|proponi|piszesz|podajesz|odpowiadasz|escreveres|escrever|deres|responderes|responder)\b[^.?!]{0,60}?\b(?:please"
    r"|always|never|only|use|put|keep|don['’]t|bitte|immer|nur|nie|nimm|verwende|benutze|por favor|siempre|nunca|usa"
    r"|utiliza|pon|s['’]il te pla[iî]t|toujours|jamais|utilise|mets|graag|altijd|nooit|gebruik|per favore|sempre|metti"
    r"|proszę|zawsze|nigdy|używaj|use|nunca)\b",
    re.IGNORECASE,
)
_MAX_STYLE = 120


@text_cache(8192)  # the summary and the ledger ask
def wants_answers_so(sentence: str) -> bool:
    """Whether the user says how to be answered, once and for all."""
    if len(sentence) > _MAX_STYLE or sentence.endswith(("?", "？")) or _ANSWERING.isdisjoint(words_of(sentence)):
        return False
    return _ANSWER_STYLE.search(sentence) is not None or _WHENEVER.search(sentence) is not None
