"""Worth: which sentences are told at all. Room that is left over is no reason to tell the others.

What the user says is told unless it is small talk, settled, or not understood. What an assistant says is told if it
binds, holds a fact, is about the speaker or about what the user speaks of; advice in general terms can be had again.
Knows one sentence at a time.
"""

import re

from recto.chat.cues import cues_in, words_of
from recto.chat.priority import BINDING, CHATTER, NORMAL, sentence_priority
from recto.summary.case_report import reports_case
from recto.summary.facts import is_passing
from recto.summary.prohibitions import has_prohibition
from recto.summary.quotation import count_topic_words
from recto.summary.reference import leans_back, leans_on_another
from recto.summary.relative_dates import is_german
from recto.summary.sentences import decision_start, is_heading, is_question, rate_sentence, word_set
from recto.summary.small_talk import (
    FULL_NAME,
    SPECIFIC,
    concedes,
    is_exclamation,
    is_platitude,
    is_reaction,
    is_remark,
    muses,
)
from recto.summary.statements import (
    accepts,
    acknowledges,
    agrees,
    asks_for_text,
    is_announcement,
    is_request,
    leaves_open,
    says_little,
)
from recto.text import text_cache

# A subject that stands for something in another sentence: "That is a nice start", "Das hat Mei erzählt".
_POINTS_BACK = re.compile(
    r"(?:[-*•] )?(?:(?i:(?:it|this|that|these|those|they|he|she)(?:['’](?:s|re|ll|d|ve)\b| (?=[a-z])(?!(?:is|was) "
    r"(?:\w+ )?(?:to|that|time|possible|important)\b)(?!(?:week|month|year|morning|evening|afternoon|time|day|summer"
    r"|winter|spring|autumn|fall|one|turns out|seems|appears|looks like|rains|happens)\b)))"
    r"|(?:Das|Dies(?:e[rs]?)?) (?:ist|sind|war\w*|hat|haben|wird|werden|kann|könn\w+|geht|klingt|macht|sieht|sollte\w*"
    r"|dürfte\w*|müsste\w*|reicht|passt)\b"
    r"|(?:Es[eao]s?|Est[eao]s?) (?:es|son|era\w*|fue\w*|está\w*|va|puede\w*|suena)\b"
    r"|(?:C['’]est|Ça|Cela|Ceci) "
    r"|(?i:der|die|das|er|sie) [a-zäöüß]{2,}t\b"
    # "il" is an article in Italian
    r"|(?i:ils?|elles?) (?!(?:faut|y|est (?:important|possible|temps))\b)(?!.*\b(?:è|ha|hanno|sono|dell[ao]|del|di|per"
    r"|che|nel|si chiama|costa|pesa)\b)[a-zé]['’a-zé]+"
    r"|[Qq]ue (?:l[oae]s?|eran?|son|es) )"
)
# Such a sentence names what it is about: "It's 795 chairs".
_COUNTS = re.compile(r"(?:it['’]s|it is|es sind|son) (?:\w+ )?\d", re.IGNORECASE)
# "Then: Porto from the 19th" sums up, and needs nothing from before.
_RECAPS = re.compile(r"(?:then|so|dann|also|entonces|donc|alors) ?[:–—] ?", re.IGNORECASE)
_DONE_SO = re.compile(
    r"\b(?:that|this|the same) way\b|\b(?:do|does|did|done|doing|like) (?:that|this)\b"
    r"|\b(?:keep|use|note|add|put|take|remember|check|try) (?:that|this) (?:on|in|to|for|as|with|then|later)\b"
    r"|\b(?:es|das)\b[^,.]* so\b"
    r"|\b(?:mine|yours|ours|theirs|meins|deins|seins|ihrs|el suyo|la suya|lo suyo|le sien|la sienne)\b"
    r"|\bso (?:gemacht|getan|gehalten)\b|\bauf diese (?:weise|art)\b|\basí\b|\bde es[ea] (?:manera|forma)\b"
    r"|\bcomme ça\b|\bde cette (?:manière|façon)\b|\bit (?:takes?|took|costs?|lasts?|needs?|helps?)\b(?!.* to\b)"
    r"|\bes (?:dauerte?|kostete?|brauchte?)\b|\b(?:le|la) (?:faites|fais|faire)\b|\b(?:lo|la) (?:hagas?|hagan)\b"
)
# Every sentence that leans so has one of these.
_DONE_SO_WORDS = word_set(
    "way that this so mine yours ours theirs meins deins seins ihrs suyo suya sien sienne diese así ese esa ça cette "
    "it dauert dauerte kostet kostete braucht brauchte faites fais faire haga hagas hagan"
)
_SPEAKS_OF_SELF = re.compile(
    r"\b(?:i|i['’](?:m|ve)|we|we['’](?:re|ve)|my|our|ich|wir|mein\w*|unser\w*|yo|mi|mis|nuestr\w+|nous|mon|ma|mes"
    r"|notre|ik|wij|mijn|onze?)\b|\bj['’]|我"
)
_SELF_WORDS = word_set("i we my our ich wir yo mi mis nous mon ma mes notre ik wij mijn onze onz j je")
_SELF_STEMS = ("mein", "unser", "nuestr", "我")
# "Je" is I in French, and you in Dutch.
_JE = re.compile(r"\bje\b")
_DUTCH = re.compile(r"\b(?:het|een|niet|bij|naar|ook|wordt|voor|hebt|kunt?|kan|moet|jullie|geen|maar|zijn|van)\b")
# What an assistant says of itself when it advises, offers or waits.
_ADVISES = re.compile(
    r"\bi (?:\w+ )?(?:understand|apologi[sz]e)\b"
    r"|\b(?:i|we)(?:['’](?:d|ll)| (?:would|could|can|can['’]t|cannot|think|guess|hope|see|understand|agree|don['’]t"
    r"|do not|will|should|may|might|believe|suggest))\b|\bi['’]m (?:glad|happy|sorry|sure|not sure|here|afraid)\b"
    r"|\bwe(?:['’]re| are| were| have been) \w+ing\b|\b(?:advisable|ratsam|recomendable|aconsejable|conseillé)\b"
    r"|\bwürde ich\b|\bich (?:würde|denke|glaube|hoffe|kann|könnte|sehe|verstehe|weiß|werde|bin mir)\b"
    r"|\bwir (?:könn\w+|soll\w+)\b"
    r"|\b(?:creo|espero|entiendo|puedo|podría|podemos|diría) \b|\bje (?:pense|crois|peux|vois|[^\W\d_]{3,}rais)\b"
    r"|\bik (?:denk|zou|kan|hoop|begrijp|help|ben blij)\b|\b(?:help|zou|kan) ik\b|\bwe (?:kunnen|zouden|nemen)\b"
    r"|\bje (?:n['’]ai pas|ne sais pas)\b|\bich habe (?:dazu )?keine\b|\bno (?:tengo|sé)\b|\bik (?:heb"
    r"|weet) (?:\w+ )?geen\b"
)
_PROPOSES = re.compile(
    r"\bplease [a-z]+(?:['’]t)?\b|\bwe (?:usually )?recommend\b|\byou['’]d [a-z]+\b"
    r"|\b(?:some|a few) (?:possibilities|ideas|options|suggestions|tips)\b"
    r"|\byou(?:['’]ll)? need (?:to|an?|the)\b"
    r"|\b(?:you|one|it) (?:could|can|should|might|may|would)\b|\b(?:usually|typically|generally|probably)\b"
    r"|\b(?:can|may|might|could) be\b|\b(?:tends?|try) to\b|\bit['’]s (?:best|better|wise|worth)\b"
    r"|\b(?:sie|du|man) (?:sollten?|solltest|könnten?|könntest|kannst|kann)\b"
    r"|\b(?:sollten?|solltest|könnten?|könntest|kannst) (?:sie|du|man|ihr)\b"
    r"|\b(?:meistens|normalerweise|wahrscheinlich)\b"
    r"|\b(?:puedes|podrías|deberías|conviene|convendría|normalmente|hay que|tienes que)\b"
    r"|\b(?:tu peux|vous pouvez|on peut|on pourrait|il fau(?:t|dra(?:it)?) [^\W\d_]+[eio]i?re?|vous devez)\b"
    r"|\b(?:man|du|sie) (?:muss|müssen)\b"
    r"|\b(?:kun|kan|kunt|moet|hoef|zou) (?:je|u|jullie)\b|\b(?:je|u|jullie) (?:kunt?|kan|moet|zou|hoeft)\b"
    r"|\b(?:misschien|meestal|waarschijnlijk|eventuell|vielleicht|perhaps|maybe|quizás|peut-être)\b"
)
# The same where a sentence begins with it.
_PROPOSES_FIRST = re.compile(
    r"(?:[-*•] |\d+[.)] )?(?:[a-zäöü]+e?n sie\b|make sure|remember|consider|pack|keep in mind|bring|avoid|try"
    r"|use|check|ask|keep|order|leave|measure|wait|don['’]t|start|begin|take|look for|think about|tell|call|claim"
    r"|compare|include|send|write|put"
    r"|plan|set|show|choose|pick|install|test with|add|forward|enable|restart|(?:now|first|then) (?:install|forward|add"
    r"|run|open|create|set|test|restart)"
    r"|(?:achte|denk|frag|sag|prüf|notier|zeig|fordere|zahl|schau|rechne|teil|nehm|leg|plan|lass|stell|kläre?|halte?"
    r"|räum)(?:e|t|et)? "
    r"|(?:nimm|gib|hilf|ruf|sprich|vergiss) "
    r"|(?:pide|pregunta|guarda|prepara|confirma|mira|usa|adjunta|avisa|bebe|evita|ten|haz|pon|lleva|declara"
    r"|decláralo|compara|comunícaselo"
    r"|mejor|conviene) "
    r"|(?:pensez|prévoyez|demandez|n['’]oubliez|évitez|donnez|mentionnez|ajoutez|vérifiez|pense|prévois|demande"
    r"|vérifie) "
    r"|te (?:recomiendo|recomendaría|sugiero)|je te (?:conseille|recommande)|(?:plan|zorg|denk|vraag|kijk|reken|maak"
    r"|controleer|neem|noteer|probeer|let) "
    r"|(?:if|wenn|falls|si|als) [^\W\d_]+"
    r"|(?:très bien|d['’]accord|parfait|ensuite|puis|alors)?[,:]? ?[a-zéèê]{3,}ez (?!vous)[a-zà]+)\b"
)
_ESTIMATES = re.compile(
    r"\b(?:usually|typically|generally|normally|often|most people|as a rule|expect (?:about|around|between)|around"
    r"|roughly|approximately|about"
    r"|between|some|üblich\w*|meistens?|in der regel|normalerweise|oft|etwa|rund|circa|ca\.|ungefähr|zwischen"
    r"|suelen?|normalmente"
    r"|habitual\w*|unos|unas|alrededor de|aproximadamente|entre|environ|en général|généralement|souvent|comptez"
    r"|compter|à peu près|ongeveer|rond|meestal|gemiddeld|tussen)"
    r" (?:[^\W\d_]+ ){0,3}?[€$£]?(?!(?:1[5-9]|20)\d\d\b)\d|\b(?:desde|from|ab|vanaf"
    r"|à partir de) [€$£]?\d[\d.,]* ?(?:€|euros?)"
    r"|[€$£]?\d[\d.,]* ?(?:to|bis|a|à|–|-|oder|or) ?[€$£]?\d(?:[\d.,]*\d)? ?"
    r"(?:[€$£%]|[^\W\d_]+)|\bas a rule\b"
    r"|\b(?:usually|typically|generally|üblich|meistens|in der regel|normalerweise|suelen?|normalmente|en général"
    r"|généralement)\b"
)
# A clause with "what was" tells of nothing that happened.
_REPORTS = re.compile(
    r"\b(?<!what )(?<!which )(?<!who )(?<!that )(?:was|were|took|had|been|found|failed|passed|ran|measured|returned"
    r"|showed|counted|came to|wurden?|waren?"
    r"|hatten?|dauerte"
    r"|is (?:now )?(?:pushed|merged|deployed|installed|fixed|open|live)"
    r"|ergab|fue|fueron|tardó|dio|estaba|était|étaient|(?:a|ont|avait) été|a (?:pris|donné|coûté)"
    r"|werd|duurde|bleek)\b"
)
_REPORTS_FIRST = re.compile(
    r"(?:the|der|die|das|el|la|le|de|het) (?:[^\W_]+ ){1,3}(?:says|argues|shows|concludes|besagt|zeigt|ergibt|dice"
    r"|muestra|montre|indique|dit|zegt|toont)\b"
)
# What holds for whoever does something happened to nobody: "Wer gern plant, vergisst das Wetter".
_ANYBODY = re.compile(
    r"(?:[-*•] )?(?:wer|whoever|anyone who|everyone who|those who|people who|quien(?:es)?|el que|los que|qui|ceux qui"
    r"|celui qui|wie) [^.?!]{3,60}?, [^\d]*$"
)
_WHAT = re.compile(r"\bwas\b")  # in German
_BOLD_FIGURE = re.compile(r"\*\*[^*\n]{0,40}\d")
_DONE = re.compile(r"(?:done|fixed|erledigt|hecho|listo|fait|c['’]est fait|klaar|gedaan)[:,–-]+ ", re.IGNORECASE)
# Names that stand for others of their kind.
_INSTANCE = re.compile(
    r"\b(?:for example|for instance|such as|e\.g\.|zum beispiel|z\. ?b\.|etwa|beispielsweise|por ejemplo|como por"
    r"|par exemple|comme|bijvoorbeeld|zoals)\b",
    re.IGNORECASE,
)
# "De claim is goedgekeurd", "Die Sperre ist entfernt".
_PARTICIPLE = re.compile(
    r"\b(?:is|ist|sind|zijn|heeft|hebben|hat|haben|wurden?|werd) (?:[^\W\d_]+ ){0,6}"
    r"(?:ge|ver|ont|ent|be(?!tween|en\b|hind|yond|st\b))[^\W\d_]{3,}(?:t|d|en)\b"
)
# An assistant that begins so repeats what the user has told, with a compliment.
_COMPLIMENTS = re.compile(
    r"(?:prima|perfekt|super|toll|mooi|fijn|heel fijn|handig|leuk|goed om|graag|goede (?:keuze|idee)|wie schön"
    r"|sehr schön|gute (?:idee|wahl)|perfect|great|excellent|wonderful|fantastic"
    r"|lovely|how (?:nice|lovely|exciting)|perfecto|estupendo|genial|qué (?:bien|bueno)|muy bien|parfait|très bien"
    r"|excellente?|magnifique|quelle? (?:belle|bonne))\b",
    re.IGNORECASE,
)
_SEEMS = ("sound", "look", "must be", "klingt", "suena")
_SEEMS_GOOD = re.compile(
    r"\b(?:sounds?|looks?|must be|klingt|suena) (?:\w+ ){0,2}(?:adorable|lovely|great|fantastic|fascinating"
    r"|wonderful|delicious|amazing|exciting|perfect|fun|gut|toll|super|genial|bien)\b"
)
_FOLLOWS = re.compile(
    r"(?i:then|so|otherwise|and|but|because|which|also)\b|Dann|Und|Aber|Sonst|Deshalb|Entonces|Pero|Y |Donc|Mais|Et "
    r"|Dan|Dus|Maar|En "
)
_PLEASE = re.compile(r"\b(?:please|bitte|por favor|s['’]il (?:te|vous) pla[iî]t)\b")
# A wish for all that follows is not settled by the first reply.
_LASTS = re.compile(
    r"\b(?:when(?:ever)?|each time|every time|from now on|in future|for me|always) .*\b(?:please|use|write|give|call)\b"
    r"|\bplease (?:always|use|keep|call|remember)\b|\b(?:immer|künftig|ab jetzt|in zukunft)\b|\bbitte (?:nur|stets)\b"
    r"|\b(?:siempre|a partir de ahora)\b|\b(?:toujours|désormais)\b"
)
# A request that is understood only beside what it is about: "Could you explain how that works again?"
_ASKS_ABOUT_THAT = re.compile(
    r"\b(?:this|that|it)(?= (?:works?|again|so|for me|please|in|into|to|be|is|was)\b|[?.!,]|$)"
    r"|\b(?:das|dies|es) (?:noch|bitte|nochmal|etwas|mal|so|nicht)\b|\b(?:das|es|eso|esto|ça|cela)[?.!]*$"
    r"|\b\w{3,}(?:ar|er|ir|ícal|ábel|íbel|ícam)(?:lo|la|melo)\b|\b(?:eso|esto|lo)\b(?= \w+)"
)
# "genial, actívalo": what was asked for stands elsewhere.
_DO_SO = re.compile(r"\b[^\W\d_]*[áéíóú][^\W\d_]*[aei](?:lo|la|los|las|melo|selo)[.!]*$")
# A set of characters at the very start keeps the scan fast; which of them it was is looked at afterwards.
_OF_CASE = re.compile(
    r"[€$£\d*A-Z](?:(?<=[€$£]) ?\d|(?<=\d)(?: ?[€$£]| (?:euros?|dollars|pounds)\b|\d{3})"
    r"|(?<=\d)(?<!\w\d)\d?[.:]\d\d\b|(?<=[A-Z])(?<!\w[A-Z])[A-Z]{0,3}-?\d{2}|(?<=\*)\*)"
)
_YOURS = re.compile(r"\b(?:yours?|dein\w*|ihre?[mnrs]?|tus?|sus?|ton|tes|votre|vos|uw|jouw|jullie) ", re.IGNORECASE)
# A call of a tool, without what came of it: `fetch {"url": …}`.
_CALL = re.compile(r'[a-z_][\w.-]* \{(?:"|\})')
# The number of an order, a file, a customer.
_NUMBERED = re.compile(r"\b(?:[A-Z]{1,5}[-/]?\d[\w/-]*\d|\d{2,}-\d{2,}[\d-]*)\b")
_DIGIT = re.compile(r"\d")
# A cry that says how something ended: "PASSED!!!!", "GEACCEPTEERD 374.500"
_ENDED = re.compile(
    r"\b(?:passed|accepted|approved|granted|rejected|bestanden|angenommen|genehmigt|abgelehnt|aprobad[oa]|aceptad[oa]"
    r"|acceptée?|refusée?|geslaagd|geaccepteerd|afgewezen|promoss[oa]|accettat[oa]|zdał[ae]m|zaakceptowan\w+"
    r"|aprovad[oa]|aceite)\b|合格|審査通り",
    re.IGNORECASE,
)
_MIN_TOPIC, _MIN_EXPLAINED, _RICH_TOPIC, _MAX_THIN = 2, 3, 3, 3


def is_worth_telling(
    text: str,
    *,
    is_assistant: bool,
    is_settled: bool = False,
    is_quoted: bool = False,
    is_accepted: bool = False,
) -> bool:
    """Whether a reader of the summary would miss it. `is_settled` says that what it asks was done, `is_accepted` that
    the user took what an assistant proposes."""
    priority = rate_sentence(text)
    if is_assistant and (
        is_quoted or _CALL.match(text) or not (SPECIFIC.search(text) or stands_alone(text) or reports_case(text))
    ):
        return False
    if is_assistant and not _is_news(text):
        return False
    if priority == CHATTER or agrees(text) or (is_settled and asks_for_text(text)) or is_platitude(text):
        return False
    if is_assistant:
        return is_accepted or not estimates(text)
    if priority == BINDING:
        is_rule = has_prohibition(text) or _DIGIT.search(text) or _ENDED.search(text)  # "haha ok, no dogs then"
        is_light = is_remark(text) and not is_rule and count_topic_words(text) <= _MAX_THIN
        return not is_light or decision_start(text) is not None  # "Kettle it is lol"
    if is_question(text) or is_request(text) or _PLEASE.search(text.lower()):
        is_settled = is_settled and not (leaves_open(text) or _LASTS.search(text.lower()))
        is_open = not (is_settled or is_quoted or _ASKS_ABOUT_THAT.search(text.lower()))
        return is_open and count_topic_words(text) >= _MIN_TOPIC
    if _ENDED.search(text) and not is_quoted:
        return True
    if is_remark(text) or is_heading(text) or (is_quoted and (priority == NORMAL or not stands_alone(text))):
        return False
    topics = count_topic_words(text)
    if topics and priority == NORMAL and _NUMBERED.search(text):
        return True
    if concedes(text) or (not text.isascii() and _DO_SO.search(text)):
        return topics >= _RICH_TOPIC
    if says_little(text) or accepts(text):
        return True
    if priority == NORMAL:
        is_vague = topics < _RICH_TOPIC and not (stands_alone(text) or SPECIFIC.search(text))
        return topics >= _MIN_TOPIC and not (is_vague or muses(text) or is_reaction(text))
    return topics >= 1


@text_cache(8192)  # the summary and the ledger ask
def stands_alone(text: str) -> bool:
    """Whether it names what it is about."""
    text = _RECAPS.sub("", text) if any(mark in text for mark in ":–—") else text
    if _COUNTS.match(text):
        return True
    if _POINTS_BACK.match(text) or leans_on_another(text) or leans_back(text):
        return False
    return _DONE_SO_WORDS.isdisjoint(words_of(text)) or not _DONE_SO.search(text.lower())


def needs_context(text: str) -> bool:
    """Whether it cannot be told without the sentence that it answers or speaks of."""
    return says_little(text) or not (stands_alone(text) or SPECIFIC.search(text))


@text_cache(8192)  # the summary and the ledger ask
def is_advice(text: str) -> bool:
    """Whether an assistant proposes something, rather than to tell what is or what was done."""
    if reports_case(text):
        return False
    lower = text.lower()
    return bool(_PROPOSES_FIRST.match(lower) or _PROPOSES.search(lower) or _ADVISES.search(lower))


@text_cache(8192)
def estimates(text: str) -> bool:
    """Whether an assistant says what something usually is or costs: it can be asked again."""
    return _ESTIMATES.search(text.lower()) is not None and not (SPECIFIC.search(text) or reports_case(text))


@text_cache(8192)  # the summary and the ledger ask
def reports(text: str) -> bool:
    """Whether an assistant tells what was done, found or measured, or what happened to it."""
    if "outcome" in cues_in(text) or is_about_self(text) or reports_case(text):
        return True
    lower = text.lower()
    if _ANYBODY.match(lower):
        return False
    if "was" in words_of(text) and is_german(text):
        lower = _WHAT.sub("", lower)
    if _REPORTS_FIRST.match(lower) or _REPORTS.search(lower) or ("**" in lower and _BOLD_FIGURE.search(lower)):
        return True
    return " " in lower and _PARTICIPLE.search(lower) is not None


def is_result(text: str) -> bool:
    """Whether somebody who works with tools tells what he found, rather than what he does next."""
    return sentence_priority(text) == BINDING or "outcome" in cues_in(text)


def is_of_case(text: str) -> bool:
    """Whether it tells what is so for the user, rather than for everybody: a price, an hour, a number of a file."""
    if _OF_CASE.search(text) or SPECIFIC.search(text) or _YOURS.search(text) or FULL_NAME.search(text):
        return True
    return reports(text)


@text_cache(8192)  # the summary and the ledger ask
def is_about_self(text: str) -> bool:
    """Whether somebody tells of himself, as both do where two people chat."""
    lower = text.lower()
    if _SELF_WORDS.isdisjoint(words_of(text)) and not any(map(lower.__contains__, _SELF_STEMS)):
        return False
    is_self = _SPEAKS_OF_SELF.search(lower) or (_JE.search(lower) and not _DUTCH.search(lower))
    return bool(is_self) and _ADVISES.search(lower) is None


@text_cache(8192)  # the summary and the ledger ask
def _is_news(text: str) -> bool:
    """Whether an assistant's sentence holds more than advice, knowledge and praise: a figure, a name, what was done."""
    text = _DONE.sub("", text, count=1) if _DONE.match(text) else text
    priority = rate_sentence(text)
    is_plan = priority < BINDING and is_announcement(text) and not reports_case(text)
    if is_question(text) or is_plan or acknowledges(text) or says_little(text):
        return False
    if SPECIFIC.search(text) or reports_case(text):
        return True
    has_figure = _DIGIT.search(text) is not None
    if priority < BINDING and not has_figure and (is_compliment(text) or is_cheering(text)):
        return False
    topics, follows = count_topic_words(text), _FOLLOWS.match(text) is not None
    if priority == BINDING or has_figure:
        return topics >= _MIN_TOPIC + follows and not (priority < BINDING and is_passing(text))
    if topics < _MIN_EXPLAINED or is_reaction(text) or follows:
        return False
    if is_about_self(text):
        return True
    return not is_advice(text) and (
        reports(text) or (FULL_NAME.search(text) is not None and not _INSTANCE.search(text))
    )


def is_cheering(text: str) -> bool:
    """Whether an assistant only cheers or comforts, rather than to tell of itself."""
    return is_exclamation(text) and not is_about_self(text)


def is_compliment(text: str) -> bool:
    if _COMPLIMENTS.match(text):
        return True
    first_line = text.partition("\n")[0].lower()
    return any(map(first_line.__contains__, _SEEMS)) and _SEEMS_GOOD.search(first_line) is not None
