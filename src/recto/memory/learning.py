"""What of a message is worth remembering by itself: sentences in which users tell lasting things about themselves,
their people, their work and their wishes. Rather too little: junk is worse than nothing. Knows no store."""

import re
from collections.abc import Iterator

from msgspec import Struct

from recto.search.passages import split_sentences
from recto.search.terms import UNSPACED_RUN
from recto.vault.links import mask_code
from recto.vault.question import language_of

# What is longer was pasted, or is a task.
MAX_CHARS, MAX_LINES = 700, 4
MIN_WORDS, MAX_WORDS = 3, 32
_GREETING = re.compile(
    r"^(?:(?:hi|hello|hey|by the way|btw|fyi|also|hallo|übrigens|hola|por cierto)\b[\s,:]*)+", re.IGNORECASE
)
_ASKED = re.compile(
    r"^\s*(?:please\s+|bitte\s+|por favor\s+)?(?:remember|keep in mind|note|don[’']t forget|for the record"
    r"|n[’']oublie[sz]? pas|merk(?:e)? dir|denk daran|vergiss nicht|recuerda|no olvides|ten en cuenta)"
    r"(?:(?: that|,? dass| que|\s*:)\s+(?P<said>\S.+)|,?\s+(?P<own>(?:my|our|I|we|the|mein|unser|ich|wir|mi"
    r"|nuestr|yo)\b.+))",
    re.IGNORECASE,
)
_PERSON = (
    r"(?:name|wife|husband|partner|girlfriend|boyfriend|son|daughter|kids?|child(?:ren)?|mother|father|mum|mom"
    r"|dad|parents"
    r"|sister|brother|aunt|uncle|cousin|grandmother|grandfather|boss|manager|colleague|co-?worker|flatmate|roommate"
    r"|neighbou?r|friend|doctor|dentist|landlord|cat|dog|horse|team|company|employer|birthday|address|e-?mail"
    r"|phone number"
    r"|time ?zone|native language|mother tongue|blood type|favou?rite \w+|home ?town|job|degree|diet|car|bike"
    r"|laptop|editor)"
)
_PERSON_DE = (
    r"(?:name|frau|mann|partner(?:in)?|freund(?:in)?|sohn|tochter|kind(?:er)?|mutter|vater|eltern|schwester"
    r"|bruder|tante"
    r"|onkel|oma|opa|chef(?:in)?|kolleg(?:e|in)|nachbar(?:in)?|arzt|ärztin|zahnarzt|vermieter(?:in)?|katze|hund"
    r"|team|firma|arbeitgeber|geburtstag|adresse|telefonnummer|muttersprache|lieblings\w+|beruf|auto|fahrrad)"
)
_PERSON_ES = (
    r"(?:nombre|esposa|mujer|marido|novi[oa]|pareja|hij[oa]s?|madre|padre|padres|herman[oa]|t[ií][oa]|prim[oa]"
    r"|abuel[oa]"
    r"|jef[ea]|compañer[oa]|vecin[oa]|amig[oa]|médic[oa]|dentista|caser[oa]|gat[oa]|perr[oa]|equipo|empresa"
    r"|cumpleaños|dirección|teléfono|lengua materna|trabajo|coche|bici|\w+ favorit[oa])"
)
_NEAR = r"(?: [\w'’.-]+){0,3}? "
_TOLD = re.compile(
    rf"\b(?:my|our) (?:\w+ )?{_PERSON}\b{_NEAR}(?:is|are|was born|lives?|works?|has|have|had|likes?"
    rf"|hates?|speaks?|studies"
    r"|plays|moved|turns|uses?|runs?|starts?|ends?)\b"
    r"|\bI(?:[’']m| am) (?:allergic|intolerant|vegetarian|vegan|diabetic|married|divorced|single|pregnant|retired"
    r"|left-handed|colou?r-?blind|deaf|from|based in|\d{1,3} years old|an? (?!bit|little|lot|fan|idiot|fool|mess"
    r"|huge|big)\w+)|\bI (?:live|work|study|teach|grew up|was born|come) (?:in|at|as|for|on|from)\b"
    r"|\bI (?:prefer|avoid|always (?:use|want|write|take|drink|eat|order|travel)|never (?:use|want|eat|drink|work"
    r"|fly|drive)"
    r"|can[’']t stand|don[’']t (?:eat|drink|use|drive|speak)|speak|own|play the|usually (?:use|work|write|eat"
    r"|drink|travel))\b|\b(?:call|address) me\b"
    r"|\b[Ww]e (?:have )?(?:decided|agreed|chose|settled on|use|host|deploy|ship|release|meet)\b"
    r"|\b(?:the|our) (?:deadline|budget|release|launch|due date|repo(?:sitory)?|server|database|stack)\b"
    rf"{_NEAR}(?:is|are|runs|costs)\b"
    rf"|\b(?:mein|meine|unser|unsere) (?:\w+ )?{_PERSON_DE}\b{_NEAR}(?:ist|sind|heißt|heißen|wohnt"
    rf"|lebt|arbeitet|hat|mag|hasst|spricht|studiert|spielt)\b"
    r"|\b[Ii]ch (?:wohne|arbeite|studiere|komme|lebe) (?:in|als|bei|aus|an)\b|\b[Ii]ch (?:heiße|bevorzuge"
    r"|esse (?:kein|nie)|trinke (?:kein|nie)|mag (?:kein|am liebsten)|spreche|benutze immer)\b"
    r"|\b[Ii]ch bin (?:allergisch|vegetarier|veganer|verheiratet|geschieden|\d{1,3} jahre|linkshänder)"
    r"|\b[Ww]ir (?:haben (?:uns )?(?:beschlossen|entschieden|vereinbart)|benutzen|verwenden)\b"
    rf"|\b(?:mi|mis|nuestr[oa]s?) (?:\w+ )?{_PERSON_ES}\b{_NEAR}(?:es|son|se llama|vive|viven|trabaja|tiene|odia"
    rf"|habla|estudia|toca)\b"
    r"|\b(?:vivo|trabajo|estudio|nac[ií]) (?:en|de|como|para)\b|\b(?:me llamo|prefiero|no (?:como|bebo|uso)"
    r"|soy (?:alérgic|vegetarian|vegan|de\b))|\b(?:hemos decidido|decidimos|acordamos|usamos)\b",
    re.IGNORECASE,
)
# What passes, is only thought or asked, leans on something else, or is about the conversation itself.
_PASSING = re.compile(
    r"\b(?:today|tonight|yesterday|tomorrow|this (?:morning|afternoon|evening|week|weekend|month)|last (?:night|week)"
    r"|next (?:week|weekend)|right now|at the moment|just now|lately|recently|going to|about to|trying to|want to"
    r"|need to"
    r"|would like|wondering|feeling|tired|hungry|busy|sick|late|back|ready|sure|sorry|glad|happy|afraid|stuck"
    r"|confused"
    r"|been|still|just|so|super|really|excited|amazing|awesome|great|crazy|wild|tough|okay|ok|think|guess|hope"
    r"|feels?|felt|again|sometimes"
    r"|reminds?|maybe|perhaps|might|could|would|should|if|suppose|imagine|pretend|let[’']s say|for example|e\.g\."
    r"|as if|you|your"
    r"|heute|gestern|morgen früh|gerade|wieder|vielleicht|wenn|falls|möchte|müsste|könnte|würde|glaube|denke|hoffe"
    r"|dein\w*|sie mir"
    r"|hoy|ayer|mañana|ahora mismo|otra vez|quizás?|tal vez|si|quisiera|querría|podría|creo|pienso|espero|usted|tu|tus"
    r"|aujourd[’']hui|hier|demain|peut-être|crois|pense|espère|oggi|ieri|domani|forse|credo|penso|spero"
    r"|hoje|ontem|amanhã|talvez|acho)\b",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"^\W*(?:it|this|that|these|those|they|he|she|there|here|also|and|but|so|because|then|which|or|well|anyway"
    r"|yes|ok|okay|es|das|dies\w*|er|auch|und|aber|weil|dann|ja|nein|eso|esto|y|pero|también|sí"
    r"|thanks?|cheers|danke|gracias|merci|grazie|obrigad[oa])\b"
    # what is spoken of is told elsewhere: "I love it"
    r"|^\W*\w+\W+\w+\W+(?:it|this|that|them|these|those|das|eso|esto)\b",
    re.IGNORECASE,
)
# Words that another language has too: there they say something else.
_YOU_IN_GERMAN, _IT_IN_GERMAN = re.compile(r"\bdu\b", re.IGNORECASE), re.compile(r"^\W*\w+\W+\w+\W+es\b", re.IGNORECASE)
_NO_IN_ENGLISH = re.compile(r"^\W*no\b(?! \w+o\b)", re.IGNORECASE)
# An order to the model speaks of the user's things without telling them.
_ORDERS = re.compile(
    r"^\W*(?:fix|translate|write|rewrite|explain|tell|give|make|show|summari[sz]e|find|list|check|help|create|add"
    r"|remove|delete"
    r"|update|change|build|run|test|compare|describe|draft|send|use|imagine|pretend|consider|assume|look|read|let"
    r"|can|could|will|would|should|do|does|did|is|are|was|what|who|where|when|why|how|which|übersetz\w*|schreib\w*"
    r"|erklär\w*|zeig\w*|gib|mach"
    r"|such\w*|prüf\w*|hilf|traduc\w*|escrib\w*|explic\w*|muestr\w*|dame|haz|busc\w*|revis\w*|ayúda\w*)\b"
    # what stands after a colon is told, not meant
    r"|:\s+\w",
    re.IGNORECASE,
)
_NOT_PROSE = re.compile(r"\w\(|^\s*(?:[>|#]|[-*+]\s|\d+[.)]\s|\w+:\s*$|https?://)|[{}<>|=]|\t| {4}")


class UserStatement(Struct, frozen=True):
    """A sentence of a user's message that is the user's own and may be worth remembering."""

    text: str
    is_asked: bool
    """Whether the user asks for it to be remembered."""

    @property
    def leans(self) -> bool:
        """Whether it cannot be understood alone."""
        language = language_of(self.text)
        elsewhere = (_IT_IN_GERMAN, _NO_IN_ENGLISH) if language != "es" else ()
        return any(pattern.match(self.text) for pattern in (_LEANS, *elsewhere))

    @property
    def is_lasting(self) -> bool:
        """Whether nothing in it says that it is an order, passes, or is only thought."""
        if "!" in self.text or (language_of(self.text) != "fr" and _YOU_IN_GERMAN.search(self.text)):
            return False
        return not _PASSING.search(self.text) and not _ORDERS.search(self.text)

    @property
    def tells(self) -> bool:
        """Whether it tells something lasting, and begins with it: what comes later in one is said in passing."""
        return self.is_lasting and _TOLD.match(_GREETING.sub("", self.text)) is not None


def own_statements(text: str) -> Iterator[UserStatement]:
    """The user's own sentences: no questions, no code, tables or quotations, nothing of a text that was pasted."""
    if len(text) > MAX_CHARS or text.count("\n") >= MAX_LINES or '"' in text or "“" in text or "„" in text:
        return
    for line in mask_code(text).splitlines():
        if _NOT_PROSE.search(line):
            continue
        for sentence in split_sentences(line):
            said = without_request(sentence)
            if MIN_WORDS <= _word_count(said) <= MAX_WORDS and not said.endswith(("?", "？", "…", ":")):
                yield UserStatement(said[0].upper() + said[1:], is_asked=said != sentence)


def without_request(sentence: str) -> str:
    """What the user asks to remember: "remember that I am Ada" is "I am Ada". Other sentences stay as they are."""
    asked = _ASKED.match(sentence)
    return (asked.group("said") or asked.group("own")).strip() if asked else sentence


def _word_count(text: str) -> int:
    """Scripts without spaces have about two characters to a word."""
    return len(text.split()) + sum(map(len, UNSPACED_RUN.findall(text))) // 2


def learnable(text: str) -> Iterator[str]:
    """The statements of a user's message that are worth remembering, word for word."""
    for each in own_statements(text):
        if not each.leans and (each.is_asked or each.tells):
            yield each.text
