"""Statements that bind without a verb of deciding: nouns with a "no".

They complete the decisions of `recto.summary.sentences`, in several languages. Knows one at a time.
"""

import re

from recto.chat.cues import words_of
from recto.text import text_cache


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Prohibitions without a verb: "no phones at the table", "ohne Zwiebeln bitte", "pas de vin".
_NO_NOUN = re.compile(
    r"(?:^|[,;:.!(–—] ?|\b(?:and|but|also|so|please|und|aber|also|y|et|mais|pero) )(?:"
    r"no (?!(?:problems?|worry|worries|idea|need|one|rush|way|doubt|matter|wonder|clue|thanks?|longer|more|kidding|big"
    r"|luck|offen[cs]e|pressure|hurry|point|reason|time|chance|jok|sign|difference|body|not|but|sé|pued[eo]n?|tengo"
    r"|quiero|creo|hay"
    r"|es|está|fue|era|soy|estoy|voy|va|me|te|se|lo|la|le|importa|pasa|gracias|hard|harm|question|news|change|comment"
    r"|surprise|excuse|regrets|good|great|sir|ma'am)s?\b)"
    r"(?![^,.;!]{0,30}\b(?:needed|necessary|required|found|left|reported|detected|yet)\b)"
    r"(?!(?:pain|leak|swelling|fever|cough|error|warning|symptom|complaint|result|effect|trouble|delay|internet|signal"
    r"|answer|reply|response|bleeding|infection|rash|reaction|crash|crashe|failure|bug|damage|injurie)s?\b)"
    r"[a-z][\w'-]+(?: [a-z][\w'-]+){0,2}"
    r"(?=\s*(?:[,.;!)]|$)| (?:on|in|at|before|after|during|for|with|without|or|from|inside|please|whatsoever)\b)"
    r"|pas d(?:e |')(?!(?:problème|souci|quoi|chance|panique|doute|raison|mal|nouvelle|fièvre|douleur"
    r"|réponse|fuite|erreur)s?\b)\w+"
    r"|(?:ohne|sin|sans|without|zero) (?!(?:embargo|dud|problem|dolor|fiebre|respuest|schmerz|fieber"
    r"|antwort|douleur|fièvre|pain|más|prisa|frage|zweifel|worte|weitere|dout|souci)\w*\b)"
    r"[\w-]+(?: [\w-]+)?(?:,? (?:bitte|please|por favor|s'il \w+ pla[iî]t))?[.!]*$)",
    re.IGNORECASE,
)
_NO_HINTS = ("no ", "pas d", "ohne ", "sin ", "sans ", "without ", "zero ")


def forbids(sentence: str) -> bool:
    lower = sentence.lower()
    return any(hint in lower for hint in _NO_HINTS) and _NO_NOUN.search(sentence) is not None


# -- requests and questions, and whether a reply settles them

_ASKS = re.compile(
    r"(?:(?:ok|okay|so|and|now|then|also|und|y|et|jetzt|ahora)[,.]? )?"
    r"(?:please|pls|bitte|graag|alsjeblieft|kun(?:nen|t)? (?:je|u|jullie)|zou(?:den)? (?:je|u)|por favor"
    r"|s['’]il (?:te|vous) pla[iî]t|i need you to|i want you to|remind me|"
    r"(?:can|could|would|will) you|k(?:a|ö)nn(?:st|test|en|ten) (?:du|sie)|puedes?|podr[ií]as?"
    r"|peux-tu|pou(?:v|rr)\w+[- ]\w+|puoi|potresti|per favore|może(?:sz|cie)|mógłbyś|mogłabyś|proszę|pode(?:s|ria)?)\b"
)
_ORDERS = re.compile(
    r"(?:(?:ok|okay|so|and|now|then|also|und|y|et|jetzt|ahora)[,.]? )?"
    r"(?:explain|tell|show|describe|summari[sz]e|list|give|write|help|elaborate|compare|translate|draft|find|check"
    r"|suggest"
    r"|recommend|continue|define|read|look|run|fix|add|make|create|rewrite|rephrase|shorten|expand|go on|describe|do"
    r"|erklär\w*|erzähl\w*|zeig\w*|schreib\w*|gib|hilf|nenn\w*|fass\w*|übersetz\w*|vergleich\w*|such\w*|mach\w*"
    r"|explica\w*|cuénta\w*|muéstra\w*|dime|dame|escribe|ayúda\w*|resume|traduce|compara|busca|haz"
    r"|explique\w*|raconte\w*|montre\w*|dis-moi|donne\w*|écris|aide\w*|résume\w*|traduis|compare\w*|cherche\w*"
    r"|rédige\w*|redacta\w*|formulier\w*|verfass\w*|schrijf\w*|spiega\w*|scrivi\w*|dimmi|fammi|aiutami|cercami"
    r"|napisz|wyjaśnij|pokaż|powiedz|pomóż|znajdź|sprawdź|policz|escreve\w*|mostra\w*|diz-me|ajuda\w*|procura)\b"
)
_UNSPACED_ORDER = re.compile("^(?:请|帮我|告诉我|给我|介绍|解释|教えて|説明)")
_LEAVES_OPEN = re.compile(
    r"\b(?:(?:don't|do not|doesn't|didn't|can't|couldn't) (?:really )?(?:know|say|tell|find out)|no (?:idea|clue)"
    r"|not sure yet|nobody (?:knows|could)|no one knows|unclear|undecided|to be (?:decided|clarified)|remains? open"
    r"|leave (?:it|that|this) open|open (?:point|question|issue)s?|come back to (?:it|that|this)|have to ask"
    r"|we(?:'ll| will) see|find out (?:whether|if|who|how|when|what)|weiß (?:ich )?(?:noch )?(?:nicht|niemand|keiner)"
    r"|keine ahnung|(?:noch )?offen|klären|herausfinden|nachfragen|mal sehen|no (?:lo )?s(?:é|abemos)|ni idea"
    r"|nadie (?:lo )?sabe|pendiente|averiguar|habrá que|ya veremos|sai[st] pas|savons pas|aucune idée|on verra|à voir"
    r"|personne ne sait|en suspens|(?:weet|weten) (?:ik |we |het )*(?:nog )?niet|geen idee|nog (?:open|niet (?:zeker"
    r"|duidelijk))|moet (?:ik|ik nog|nog) (?:vragen|uitzoeken)"
    r"|non (?:lo |si )?(?:so|sappiamo|sa)|da (?:decidere|chiarire|definire)|vedremo|devo chiedere"
    r"|nie (?:wiem|wiemy|wiadomo)|do ustalenia|zobaczymy|muszę zapytać|não (?:sei|sabemos|se sabe)|vamos ver"
    r"|em aberto|por decidir|a definir|tenho de perguntar"
    r"|(?:sin quedar|no me queda|no está|não (?:é|está)) claro|(?:noch )?nicht klar|pas (?:encore )?clair|non è chiaro"
    r"|niet duidelijk|niejasne"
    # nobody has answered yet
    r"|(?:has|have)n't (?:yet )?(?:answered|replied|responded|decided|confirmed|given|called back|got back"
    r"|come back)|you haven't (?:told|said|mentioned)|still (?:no (?:answer|reply|word|news)|waiting)"
    r"|waiting (?:for|on) (?:\S+ ){0,3}(?:answer"
    r"|reply|decision|quote|confirmation|approval)|no (?:answer|reply|response|word|news) (?:\S+ ){0,3}yet"
    r"|noch keine (?:antwort|zusage|rückmeldung|entscheidung)|warten? noch auf|hast du mir nicht gesagt"
    r"|(?:todavía|aún) no (?:ha|han|hay)|no me lo has dicho|(?:n'a|n'ont|n'ai|n'avons) pas encore"
    r"|(?:ha|hanno|abbiamo|ho) ancora (?:non )?(?:risposto|deciso|confermato|dato)|ancora nessuna risposta"
    r"|(?:nie \w+ jeszcze|jeszcze nie) (?:odpowie\w+|potwierdz\w+|zdecydowa\w+)|nie odpowie\w+ jeszcze|brak odpowiedzi"
    r"|ainda não (?:respond\w+|confirm\w+|decid\w+|deram|deu)|nog (?:niet (?:geantwoord|beslist|bevestigd)"
    r"|geen antwoord))\b"
    r"|^(?:still |noch |nog )?(?:open(?: [^\W\d_]+)?|offen|abierto|aperto|otwarte) ?:"
    r"|まだ(?:返事|回答|連絡)|不知道|不清楚|待定|再说"
    r"|未定|まだ(?:決|わか|分か|知ら)|(?:わか|分か)りません|検討中|確認中"
)
# Every match has one of these words, or is Chinese.
_OPEN_WORDS = _words(
    "know say tell find idea clue yet nobody knows unclear undecided decided clarified open back ask see weiß ahnung "
    "offen klären herausfinden nachfragen sehen sé sabemos nadie pendiente averiguar habrá veremos sais sait savons "
    "idée verra voir personne suspens weet weten geen nog moet non "
    "decidere chiarire definire vedremo wiem wiemy wiadomo ustalenia zobaczymy muszę sei sabemos ver aberto decidir "
    "definir "
    "perguntar hasn haven still waiting noch warten warte gesagt todavía aún dicho encore ancora jeszcze brak "
    "ainda abierto aperto otwarte claro klar clair chiaro duidelijk niejasne"
)
_UNSPACED_OPEN = re.compile("不知道|不清楚|待定|再说|未定|まだ|りません|検討中|確認中")
_PUTS_OFF = re.compile(
    r"(?:i['’]ll|i will|will do|noted|sure|okay|ok|understood|alright|all right|fine|good|yes|got it|happy to|gladly"
    r"|ik zal|genoteerd|begrepen|prima|komt goed|(?:das )?mach(?:e)? ich|ich werde|notiert|gern\w*|klar|verstanden"
    r"|in ordnung|alles klar|gut"
    r"|lo haré|voy a|anotado|apuntado|claro|vale|de acuerdo|entendido|je vais|noté|d['’]accord|bien sûr|compris"
    r"|va bene|capito|certo|segnato|d['’]accordo|dobrze|jasne|rozumiem|zapisane|zanotowane|está bem|combinado|anotado"
    r"|好的?|明白|已记下)\b",
    re.IGNORECASE,
)
_MAX_ACKNOWLEDGEMENT, _MAX_PUT_OFF = 60, 160


_OFFER = re.compile(
    r"(?:(?:so|and|now|then|also|ok|okay)[, ]+)?(?:should|shall|may|can) (?:i|we)\b|(?:would|do) you (?:like|want)\b"
    r"|(?:is there |can i \w+ you with |do you need |was there )?anything else\b"
    r"|(?:gibt es |haben sie |hast du )?(?:noch|sonst) (?:etwas|was|fragen)\b"
    r"|[¿ ]*(?:hay |necesitas? |puedo ayudarte en )?algo más\b"
    r"|(?:y a-t-il|avez-vous|as-tu) (?:encore )?(?:autre chose|d['’]autres questions)|还有(?:什么|别的)"
    r"|want me to\b|soll(?:en)? (?:ich|wir)\b|möchte(?:n sie|st du)\b|willst du\b|wollen sie\b"
    r"|[¿ ]*(?:quieres?|desea[s]?|te gustaría) que\b|[¿ ]*(?:sigo|continúo)\b|(?:veux-tu|voulez-vous) que\b"
    r"|zal ik\b|wil(?:t u| je)\b|(?:heeft u|heb je) nog\b|(?:dois-je|je continue)\b|souhaite(?:s-tu|z-vous)\b"
    r"|voulez-vous\b|veux-tu\b|¿?te (?:preparo|hago|escribo)\b",
    re.IGNORECASE,
)
_ANNOUNCEMENT = re.compile(
    r"(?:(?:now|next|first|then|so|okay|ok|great|perfect|thanks|gut|danke|gracias)[,!.:]? )?"
    r"(?:let's|let me|let us|i'll|i will|we'll|we will|we can now|i'm going to|(?<=next )i [a-z]+|(?<=now )i [a-z]+"
    r"|(?:vielen dank, )?ich (?:lasse|vermerke|richte|melde|leite|kümmere|veranlasse)|ich (?:werde|sehe mir|schaue"
    r"|ändere|prüfe|verwende|füge|starte|trage|lösche|suche|notiere|schicke|lege|setze)"
    r"|(?:dann|jetzt) (?:lösche|starte|ändere|prüfe|trage|suche|schicke) ich|lass uns"
    r"|je (?:vais|regarde|vérifie|lance|modifie|corrige|cherche|prépare|transmets|retiens|reviens|note|pose|ajoute"
    r"|mets)"
    r"|(?:dan )?ik (?:zal|ga|noteer|pas|zet|zoek|stuur|kijk|start|voeg|regel)|(?:lo |la |te |le )?(?:añado|anoto|busco"
    r"|preparo|avisaremos|enviaré)|voy a|我会|我来|我将|では|それでは)",
    re.IGNORECASE,
)
# German nouns have capitals.
_SOLL = re.compile(r"(?:soll|möchte|willst|wollen)", re.IGNORECASE)
_NAMED_GERMAN = re.compile(r"\d|[`\"“„«/]")
_NAMED = re.compile(r"\d|(?<=[^.!?] )[A-Z][^\W\d_]|[`\"“„«/]")


def makes_offer(sentence: str) -> bool:
    return _OFFER.match(sentence) is not None


def is_empty_offer(question: str) -> bool:
    """Whether it offers to go on, and names nothing that a yes would settle: "Shall I go on with the next part?"."""
    named = _NAMED_GERMAN if _SOLL.match(question) else _NAMED
    return makes_offer(question) and named.search(question) is None


_OF_UNNAMED = re.compile(
    r"(?:does|would|is) (?:that|this) (?:work|okay|ok|fine|suit)|passt (?:das|dir|ihnen)|(?:past|schikt|is) (?:dat|dit)"
    r"|¿?(?:te|le|os) (?:va|viene|parece) bien|(?:ça|cela) (?:te|vous) (?:va|convient)"
    r"|(?:[^\W\d_]+(?:['’]t)? )?(?:it|they|he|she|er|es|ihn)\b|[^\W\d_]+-(?:ils?|elles?|t-ils?|t-elles?)\b",
    re.IGNORECASE,
)


def asks_of_unnamed(question: str) -> bool:
    """Whether nobody knows what it asks about: "Was it granted?", "Funktioniert er noch?"."""
    return _OF_UNNAMED.match(question) is not None


def is_announcement(text: str) -> bool:
    """Whether it says what the speaker does next."""
    return _ANNOUNCEMENT.match(text) is not None


# In chats people leave the mark out: "what do I need to tell the council", "y cuánto cuesta".
_UNMARKED = re.compile(
    r"(?:(?:ok|okay|so|and|also|but|now|und|also|aber|y|pero|e|et|mais|donc|btw)[, ]+)*(?:"
    r"(?:wat|wie|waar|wanneer|waarom|welke|hoe(?:veel| lang)?) (?:is|zijn|was|heeft|kan|kunnen|moet|kost|doe|ga|komt) "
    r"|(?:what|who|where|when|why|which|how)(?:['’]s| (?:is|are|was|do|does|did|can|could|should|would|will|about"
    r"|much|many|long|one)\b)|how [a-z]+ (?:is|are|was|were|do|does|did|can|will)\b"
    r"|(?:is|are|do|does|did|can|could|should|shall|would|will) (?:it|that|this|they|we|i|you|he|she|there|the|my) "
    r"|(?:was|wer|wo|wann|warum|wieso|welche[rsnm]?|wie(?: ?viele?| lange?| oft)?) (?:ist|sind|war|hat|haben|kann"
    r"|können|soll|sollen|muss|wird|kostet|macht|braucht|mach|heißt|geht|gibt|ich|wir|man)\b"
    r"|(?:was|wer|wo|wann|warum|wieso|wie) [^\W\d_]+ (?:denn|eigentlich)\b"
    r"|(?:antes de |desde |para |de |a |con )?(?:qué|quién(?:es)?|cuánt[oa]s?|cuándo|dónde|cómo|cuál(?:es)?)\b"
    r"(?! va\b)[^,]*$"
    r"|est[- ]ce que\b|(?:qu['’]est|combien|pourquoi|comment|où|qui (?:fait|s['’]en|va|prend)|il faut quoi|lequel"
    r"|laquelle)\b)",
    re.IGNORECASE,
)
_MAX_UNMARKED = 80


@text_cache(8192)  # asked again and again of the same sentence, as the next one
def asks_unmarked(sentence: str) -> bool:
    """Whether it is a question without its mark."""
    return len(sentence) <= _MAX_UNMARKED and sentence[-1:] not in ".:!" and _UNMARKED.match(sentence) is not None


# "When we are done with all this, write …"
_WHEN_DONE = re.compile(
    r"(?:when|once|after|as soon as|wenn|sobald|cuando|en cuanto|quand|dès que|als|zodra|quando|appena|gdy|kiedy)\b"
    r"[^,.?!]{0,40}\b(?:done|finished|ready|over|through|fertig|erledigt|vorbei|durch|acab\w+|termin\w+|fini\w*|klaar"
    r"|finit\w+|skończ\w+)\b[^,.?!]{0,30}, "
)


@text_cache(8192)
def is_request(sentence: str) -> bool:
    """Whether it asks the other to do something, politely or not. A plain question is none."""
    lower = _WHEN_DONE.sub("", sentence.lower().lstrip("¿¡ "), count=1)
    return bool(_ASKS.match(lower) or _ORDERS.match(lower) or (not lower.isascii() and _UNSPACED_ORDER.match(lower)))


def asks_politely(sentence: str) -> bool:
    """Or for later: "when we are done, write …"."""
    lower = sentence.lower()
    return _ASKS.match(lower) is not None or (_WHEN_DONE.match(lower) is not None and is_request(sentence))


@text_cache(4096)  # both the summary and the ledger ask
def leaves_open(text: str) -> bool:
    """Whether somebody says that something is not known or not settled yet."""
    if _OPEN_WORDS.isdisjoint(words_of(text)) and (text.isascii() or not _UNSPACED_OPEN.search(text)):
        return False
    return _LEAVES_OPEN.search(text.lower().replace("’", "'")) is not None


def answers(reply: str) -> bool:
    """Whether a reply to a question says something, rather than to ask back or to leave it open."""
    reply = _without_offer(reply)
    return bool(reply) and not reply.endswith(("?", "？")) and not leaves_open(reply[:_MAX_PUT_OFF])


def settles(reply: str) -> bool:
    """Whether a reply does what was asked, rather than to acknowledge it, to ask back, or to leave it open."""
    reply = _without_offer(reply)
    if len(reply) <= _MAX_ACKNOWLEDGEMENT or reply.endswith(("?", "？")):
        return False
    return len(reply) > _MAX_PUT_OFF or not (_PUTS_OFF.match(reply) or leaves_open(reply))


def _without_offer(reply: str) -> str:
    """Models often end what they say with a question: whether to go on, or what else there is. It takes nothing back
    of a longer text before it."""
    reply = reply.strip()
    if not reply.endswith(("?", "？")):
        return reply
    start = max(reply.rfind(stop, 0, -1) for stop in (". ", ".\n", "! ", "!\n", "\n", "。", "！")) + 1
    question = reply[start:].strip()
    return reply[:start].strip() if start > _MAX_PUT_OFF or (start and is_empty_offer(question)) else reply


# -- texts that one writes for the other

_SALUTATION = re.compile(
    r"(?:subject|betreff|asunto|objet)\s?:|(?:dear|to whom) |(?:hi|hello|hey)(?: [^\W\d_]+){1,3},|sehr geehrte"
    r"|guten tag (?:frau|herr)|lieber? [^\W\d_]+"
    r"|beste [^\W\d_]+,|geachte |hallo(?: [^\W\d_]+){1,3},|estimad[oa]s?\b|querid[oa]s?\b|¡?hola (?:a tod"
    r"|[^\W\d_]+[,:!])|muy señor|madame[, ]"
    r"|monsieur[, ]|ch(?:er|ère)s?\b|(?:bonjour|salut) (?:à tous|[^\W\d_]+ ?[,!])|je soussigné|yo, |hiermit ",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"\b(?:schrij[fv]\w*|opstellen|berichtje|write|draft|rewrite|rephrase|compose|reply|schreib\w*|formulier\w*|entwirf"
    r"|verfass\w*|redact\w+|escrib\w+|rédig\w+|écri[st]\w*"
    r"|(?:make|do|give|hacer?|haz|mach\w*|fais|faites)(?:-moi)? (?:me |mir |us )?(?:an? |una? |un |ne "
    r"|eine[nr]? )?(?:\w+ )?"
    r"(?:mail|e-?mail|letter|text|texto|list|liste|lista|message|mensaje|brief|courrier|note|notice))\b"
)


def is_draft(text: str) -> bool:
    """Whether it is a letter or a message that one has written for the other."""
    return _SALUTATION.match(text.lstrip('*"“„«> \n')) is not None


def asks_for_text(sentence: str) -> bool:
    """Whether it asks the other to write something. Once written, how it was to be written is past."""
    return is_request(sentence) and _WRITES.search(sentence.lower()) is not None


# -- words that say nothing alone

_LITTLE = _words(
    "uhr erst pm am "
    "ok okay yes no yep nope yeah nah ja nein doch sí si oui non the a an that this one ones both all either "
    "neither none any first second third last former latter other then it them those these i we you he she they "
    "meant mean wanted want say said take leave keep do does did let's go with make only just please thanks fine "
    "good right alright again too also so is are was be not don't never der die das den dem ein eine einen beide "
    "beides alle keine kein erste zweite dritte letzte andere dann es nimm nehmen wir ich du mach machen lass "
    "lassen bitte gut genau nur nicht lieber meine meinte el la los las lo un una ese esa este esta esos ambos "
    "ambas todos primero segundo primera segunda último otra otro entonces mejor vale bueno quiero digo dije por "
    "favor le les une celui celle ceux ça tous deux premier première deuxième dernier autre alors je veux prends "
    "d'accord bien plutôt sure wait actually ah oh hm wrong and und et dan de het tweede eerste derde "
    "il gli quella quello prima seconda terza ultima sì va bene allora druga pierwsza trzecia ostatnia opcja tak "
    "nie ta ten "
    "tę to tylko dobrze wolę biorę primeira terceira essa esse sim não então só o opção"
)
_MAX_LITTLE = 60
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_UNIT = re.compile(r"(?:[kmcn]?[gmls]|mi?n|min|h|[kmgt]i?b|kwh?|px|eur|usd)\.?")
_ALONE_WORD = re.compile(r"[^\W_][\w'’.:-]*")


_AGREES = _words(
    "ok okay yes yep yeah ja sí si oui the then it do go with please thanks fine good right alright sure bitte gut "
    "genau vale bueno bien favor por d'accord alors dann ah oh so also too mach entonces claro klar is goed prima "
    "graag "
    "hoor dan doe maar zeker natuurlijk sì certo va bene perfetto grazie allora tak dobrze jasne proszę sim claro "
    "certo "
    "está bem pode"
)


_SAYS_YES = re.compile(
    r"(?:ok(?:ay)?|yes|yep|yeah|fine|ja|gut|goed|vale|sí|oui|sì|va bene|tak|dobrze|sim)\b[,.!:]? *", re.IGNORECASE
)
# After a mere yes, what shows that something is taken: "ok the flat one then", but not "ok let me ask my sister".
_TAKES = re.compile(
    r"\b(?:take|use|do (?:it|that|so)|keep|go (?:for|with|ahead)|book|buy|then|it is|please|that one|works|deal|nehm\w*"
    r"|nimm|mach(?:en?)?|dan|graag|is goed|dann|behalt\w*|bleib\w*|buch\w*|bitte|passt|prends?|prenons|garde|fais"
    r"|faisons|alors|va pour|coge"
    r"|cogemos|usa|usamos|haz|hacemos|entonces|quédate|por favor|me quedo|prend(?:o|iamo)|facciamo|allora|bierz\w*"
    r"|biorę"
    r"|róbmy|zrób|fic(?:o|amos)|então)\b",
    re.IGNORECASE,
)
_ACCEPTS = re.compile(
    r"(?:perfect|great|exactly|sounds good|let['’]?s|i['’]ll (?:do|take|go)|go with"
    r"|take (?:that|the)|i like|love (?:it|that)|deal|agreed|the (?:first|second|third|last)"
    r"|good(?: (?:point|idea|call)|(?=,))|(?:that )?makes sense|you['’]re right|genau|passt|stimmt|gute idee"
    r"|perfekt|so machen wir|machen wir|nehmen wir|einverstanden|die (?:erste|zweite|dritte)|perfecto"
    r"|exacto|de acuerdo|tienes razón|buena idea|me gusta|el (?:primero|segundo)"
    r"|parfait|exactement|on (?:garde|prend|fait)|magnifique|d['’]accord|tu as raison|bonne idée"
    r"|le (?:premier|deuxième|second)|doe maar|doen we|prima|goed idee|klopt|akkoord|de (?:eerste|tweede|derde)"
    r"|perfetto|buona idea|facciamo così|d['’]accordo|mi piace|dobry pomysł|zgoda|podoba mi się|bierzemy|perfeito"
    r"|boa ideia|combinado|gosto)\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(r"\b(?:but|no|not|aber|nein|nicht|pero|mais|non|pas)\b|[?？]", re.IGNORECASE)


def accepts(reply: str) -> bool:
    """Whether the user takes what was proposed: "ok take that then", "Magnifique, on prend ça"."""
    if len(reply) > _MAX_LITTLE:
        return False
    yes = _SAYS_YES.match(reply)
    start = yes.end() if yes else 0
    is_taken = _ACCEPTS.match(reply, start) or (yes and _TAKES.search(reply, start))
    return bool(is_taken) and not (agrees(reply) or _REFUSES.search(reply))


_ACKNOWLEDGES = re.compile(
    r"(?:(?:bonjour|hello|hi|hallo|hola|guten tag|goedemiddag)[^,.!]{0,20}[,.!] )?"
    r"(?:(?:i (?:\w+ )?understand|(?:dat )?begrijp ik|begrepen|genoteerd|duidelijk|natuurlijk|excuses|clear"
    r"|ich verstehe|verständlich|(?:lo )?entiendo|je comprends"
    r"|noted|understood|got it|all right|alright|okay|ok|sure|will do|fine|done|agreed|notiert|verstanden"
    r"|alles klar|in ordnung|gut|no (?:harm|problem)\b.{0,8}|anotado|apuntado|entendido|de acuerdo|vale|noté|compris"
    r"|d['’]accord|va bene|capito|segnato|dobrze|rozumiem|zapisane"
    r"|zanotowane|zapamiętam|jasne|está bem|anotado|combinado)\b|(?:right|exactly|genau|richtig|exacto|exactement"
    r"|precies|klopt)(?=[,.!])"
    r"|(?:thanks|thank you|danke|gracias|merci|dank|bedankt) (?:for|für|por|pour|de|voor|u|je)\b"
    r"|(?:of course|certainly|natürlich|selbstverständlich|por supuesto|bien sûr|uiteraard|akkoord|dat spreekt)\b"
    r"|.{0,40}[,:–—] (?:noted|understood|got it|notiert|verstanden|anotado|entendido|noté|compris)[.!]*$)",
    re.IGNORECASE,
)


def acknowledges(text: str) -> bool:
    """Whether it says that something was heard or done, and little more: "Understood, to Ada"."""
    return _ACKNOWLEDGES.match(text) is not None


def agrees(text: str) -> bool:
    """Whether a short answer says yes and no more."""
    return len(text) <= _MAX_LITTLE and all(
        word[0].rstrip(".:") in _AGREES for word in _ALONE_WORD.finditer(text.lower().replace("’", "'"))
    )


@text_cache(8192)  # the summary and the ledger ask
def says_little(text: str) -> bool:
    """Whether it is understood only with what it answers: "OK, 14 then", "that one", "no, I meant 41"."""
    if len(text) > _MAX_LITTLE or _UNSPACED.search(text):
        return False
    words = _ALONE_WORD.finditer(text.lower().replace("’", "'"))
    return all(word[0].rstrip(".:") in _LITTLE or word[0][0].isdigit() or _UNIT.fullmatch(word[0]) for word in words)
