"""Orders to a model: they are material, and no news. Knows those that nobody gives in earnest, those that only count
where they are not the user's own, in five languages; and lines in a form that only Recto writes.
"""

import re

from recto.summary.sentences import word_set
from recto.text import text_cache
from recto.window.window import is_framelike

_ALL_BEFORE = (
    r"(?:(?:all|any|every|the|your|my|these|those|of|previous|prior|above|earlier|preceding|former|existing|other|given"
    r"|original|system)\s+){1,5}"
)
_ORDER = re.compile(
    rf"\b(?:ignore|disregard|forget|override|bypass)\s+(?:{_ALL_BEFORE}(?:instructions?|prompts?|rules|guidelines|directions"
    r"|commands|orders|context|constraints)\b(?!\s+(?:about|regarding|for|on|in|of|concerning|from)\b)"
    r"|(?:everything|anything|all)\s+(?:\w+\s+){0,3}(?:above|before|said|told|written)\b)"
    r"|\b(?:ignorier\w*|vergiss|vergesst|vergessen\s+sie|missachte\w*)\s+(?:(?:(?:sie|allen?|die|deine|ihre"
    r"|sämtliche|bisherigen?"
    r"|vorherigen?|vorigen?|obigen?|früheren?|anderen)\s+){1,5}(?:\w*anweisung\w*|instruktion\w*|befehl\w*|vorgaben?"
    r"|regeln?"
    r"|prompts?)|alles\s+(?:\w+\s+){0,2}(?:oben|bisher\w*|davor|vorher\w*))\b"
    r"|\b(?:ignor\w+|olvid\w+|descart\w+)\s+(?:(?:todas?|las?|tus|sus|cualquier|otras|anteriores|previas)\s+){1,4}"
    r"(?:instrucci\w+|órdenes|indicaciones|reglas)\b"
    r"|\b(?:ignor\w+|oubli\w+)\s+(?:(?:toutes?|les|tes|vos|des|précédentes)\s+){1,4}(?:instructions?|consignes"
    r"|règles|ordres"
    r"|directives)\b"
    r"|(?:忽略|无视|忘记)[^。\n]{0,8}(?:指令|指示|提示|规则)"
    r"|\b(?:new|updated|neue|nuevas|nouvelles)\s+(?:system\s?)?(?:instructions?|anweisung\w*|instrucciones"
    r"|consignes)\s*:"
    r"|\b(?:note|message|instructions?|hinweis|anweisung|nota|consigne)\s+(?:to|for|an|al|para|pour|au)\s+(?:(?:the"
    r"|den|die|el|le)\s+)?"
    r"(?:summari[sz]\w+|zusammenfass\w+|resum\w+|résum\w+)"
    r"|\bsummary of (?:this|the|our) (?:conversation|chat) (?:must|should|shall|is to)\b"
    r"|<\|?/?(?:system|im_start|im_end)\b|\[/?INST\]|<<SYS>>",
    re.IGNORECASE,
)
# Every order has one of these. Most sentences have none, and this test takes a tenth of the time.
_HINTS = word_set(
    "ignor disregard forget override bypass vergiss vergess missacht olvid descart oubli 忽略 无视 忘记 instruc "
    "anweisung consigne summar zusammenfass resum résum <| <s </s [inst [/inst <<sys"
)
_HINTS_FROM_OTHERS = word_set(
    "only just exactly nothing nur ausschließlich solo sólo únicamente seulement uniquement you user nutzer usuario "
    "utilisateur system sistema système 系统"
)
SOMEBODY = ""
"""The speaker of words that are quoted without a name."""
_SYSTEM = ("system", "sistema", "système", "系统")
# In the words of others, whoever tells how to answer speaks to the model.
_ORDER_FROM_OTHERS = re.compile(
    r"\b(?:write|print|output|say|reply|respond|answer|return|repeat)\s+(?:with\s+)?(?:only|just|exactly"
    r"|nothing\s+but)\b"
    r"|\b(?:schreibe?|antworte|gib|sage?)\s+(?:nur|ausschließlich)\b|\b(?:escribe|responde|di)\s+(?:solo|sólo"
    r"|únicamente)\b"
    r"|\b(?:écri\w+|répond\w+|di[st]\w*)\s+(?:seulement|uniquement)\b|\byou are (?:now|no longer)\b"
    r"|\byou must (?:now|always)\b|\b(?:do not|don['’]t|never) (?:tell|inform) the user\b"
    r"|\b(?:sag|erzähl)\w* dem nutzer nicht|\bno le digas al usuario\b|\bne (?:dis|dites) pas à l['’]utilisateur"
    r"|^\W*(?:system|sistema|système|系统)\s*[:：]",
    re.IGNORECASE,
)
_FORGED = re.compile(
    r"\W*(?:summary so far|end of (?:the )?(?:summary|conversation|transcript|context|system)"
    r"|zusammenfassung bisher|ende der (?:zusammenfassung|unterhaltung)|resumen hasta ahora|fin del resumen"
    r"|résumé jusqu['’]ici|fin du résumé)\b[^.\n]{0,40}(?:[:\])]|$)",
    re.IGNORECASE,
)


_DUTY = r"\b(?:must|should|always|exactly|only|every|each)\b"
_PROMPT_FRAME = re.compile(
    rf"\b(?:tool|function)[ _-]?calls?\b.*{_DUTY}|{_DUTY}.*\b(?:tool|function)[ _-]?calls?\b"
    r"|\b(?:your|each|every) (?:response|reply|output|turn)s? (?:must|should|has to|needs to|will)\b"
    r"|\byou are an? (?:\w+ ){0,3}(?:assistant|agent|programmer|model)\b"
    r"|\byou have access to (?:the following|several|tools)\b"
    r"|\b(?:respond|reply|answer) (?:only )?(?:in|with) (?:the following format|valid json|json)\b"
)
_FRAME_HINTS = ("call", "response", "reply", "output", "turn", "you are a", "access to", "format", "json")


def is_order(sentence: str, *, speaker: str | None = None) -> bool:
    """Whether it tells a model to forget its orders, or how to sum up; in the words of a `speaker` who is not the
    author, also how to answer. So does a line in the form of those that only Recto writes."""
    if _is_order_of_anyone(sentence):
        return True
    if speaker is None:
        return False
    if speaker.lower() in _SYSTEM or is_framelike(sentence):
        return True
    lower = sentence.lower()
    return any(map(lower.__contains__, _HINTS_FROM_OTHERS)) and _ORDER_FROM_OTHERS.search(sentence) is not None


@text_cache(8192)  # sentences and facts are found in the same messages, one after the other
def _is_order_of_anyone(sentence: str) -> bool:
    lower = sentence.lower()
    return (any(map(lower.__contains__, _HINTS)) and _ORDER.search(sentence) is not None) or is_forged(sentence)


def is_forged(line: str) -> bool:
    """Whether it has the form of a line that only Recto writes. Many number their lists as a ledger does."""
    return _FORGED.match(line) is not None or (is_framelike(line) and not line.lstrip().startswith("#"))


def is_prompt_frame(text: str) -> bool:
    """Whether it tells a model how to answer, as in the prompts of programs."""
    lower = text.lower()
    return any(map(lower.__contains__, _FRAME_HINTS)) and _PROMPT_FRAME.search(lower) is not None
