"""Success and failure as people tell them: "it fails with …", "fixed, runs green". Knows one sentence at a time."""

import re

from recto.summary.quotation import count_topic_words
from recto.summary.sentences import word_set
from recto.text import text_cache

_FAILS = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ing|ures?)?|exceptions?|traceback|denied|refused|not found|timed? ?out|crash\w*|stuck"
    r"|(?:does|do|did|is|was|can)(?:n['’]t| not) (?:work|start|run|load|connect|open|compile|defined|found|print)\w*"
    r"|still (?:leak|fail|hang|block|broken|down|slow|wrong|the same)\w*"
    r"|geht nicht|funktioniert nicht|fehler\w*|abgestürzt|klappt nicht|startet nicht|no funciona|fall[óa]|error(?:es)?"
    r"|werkt niet|doet het niet|foutmelding|kapot|err|ne (?:marche|fonctionne|démarre) pas|en panne|erreurs?"
    r"|plante)\b|[A-Z]\w+(?:Error|Exception)\b"
    r"|报错|失败|不行|打不开|エラー",
    re.IGNORECASE,
)
_WORKS = re.compile(
    r"\b(?:(?:works|worked|is working|runs|is running)(?: (?:now|great|fine|again|well|green))*(?=[.,!:;)]|$)"
    r"|works now|fixed|solved|resolved|runs green|all (?:\w+ )?tests pass\w*|\d+ passed|(?:geht|läuft) (?:jetzt|wieder"
    r"|nun)|funktioniert (?:jetzt|wieder|nun|alles)|(?:hat )?geklappt|behoben|gelöst|ya (?:funciona|va)|funciona (?:ya"
    r"|ahora|bien)|arreglado|solucionado|(?:marche|fonctionne)(?: (?:maintenant|enfin|bien|nickel))?(?=[.,!:;)]|$)"
    r"|réparée?s?|résolue?s?|corrigée?s?|werkt (?:nu|weer|goed)|opgelost|hersteld)\b"
    r"|(?:修|弄|搞)好了|解决了|可以了|直りました|動きました",
    re.IGNORECASE,
)
_NOT_YET = re.compile(
    r"\b(?:not|no|n['’]t|never|still|nicht|noch|kein\w*|todavía|aún|pas|jamais|encore|if|wenn|si|falls|until|should"
    r"|must|muss|debe|doit|needs?)\b|[1-9]\d* failed|[?？]",
    re.IGNORECASE,
)
# Every success and every failure has one of these, and looking for them takes a tenth of the time.
_WORKS_HINTS = tuple(
    word_set(
        "work runn runs fixed solved pass geht läuft funktioniert geklappt behoben gelöst funciona ya arregl solucion "
        "marche fonctionne répar résol corrig werkt opgelost hersteld 好了 解决 可以了 直り 動き"
    )
)
_FAILS_HINTS = tuple(
    word_set(
        "err fail xception traceback denied refused not n't n’t time crash stuck still nicht fehler abgest no fall "
        "pas panne plante 报错 失败 不行 打不开 エラー"
    )
)
_DIGIT = re.compile(r"\d")
_MAX_THIN, _MAX_SHORT = 3, 60


@text_cache(8192)
def tells_failure(text: str) -> bool:
    """Whether it says that something does not work."""
    if not any(map(text.lower().__contains__, _FAILS_HINTS)):
        return False
    return _FAILS.search(text) is not None and not works_now(text)


@text_cache(8192)
def works_now(text: str) -> bool:
    """Whether it says that something that was tried works."""
    if not any(map(text.lower().__contains__, _WORKS_HINTS)):
        return False
    return _WORKS.search(text) is not None and not _NOT_YET.search(text)


def is_thin_success(text: str) -> bool:
    """Whether it says that it works, and not what."""
    is_short = len(text) <= _MAX_SHORT and not _DIGIT.search(text)
    return is_short and works_now(text) and count_topic_words(text) <= _MAX_THIN
