"""Small talk: reactions, moods, jokes and platitudes, which nobody misses in a summary. Knows one at a time."""

import re
from functools import cache

from recto.summary.quotation import count_topic_words
from recto.summary.relative_dates import is_german
from recto.summary.statements import makes_offer
from recto.text import text_cache

_REACTION = re.compile(
    r"(?:(?:(?:ha|ja|hi){2,}|yeah|wow|oh|ah|aw+|lol|ja|oui|sí)\w*(?: \w{2,12}(?=[,!]))?[ ,!.]+)?"
    r"(?:that (?:would|must|sounds)\b|that['’]d be"
    r"|you(?:['’]\w+|r)?\b|such\b|what an? |so (?:proud|happy|glad|cool|nice|cute|sweet|true|good|great|excited"
    r"|beautiful|lovely|sorry|jealous|funny|much|many|special|awesome|amazing|kind|fun|well)\b"
    r"|thank|love\b|that(?:['’]s| is) so|sounds?\b|wish|enjoy|congrat"
    r"|check out|i(?:['’]m| am) (?:so |really |super |very )?(?:thank|proud|happy|glad|lucky|excited|grateful)"
    r"|here(?:['’]s| is)|great|nice|super|danke|du bist|deine? |was für|leuk|mooi|fijn|heel fijn|wat een? |prima"
    r"|gracias|qué |eres |merci|quelle? |bravo)"
)
# Praise and agreement, wherever they stand.
_PRAISES = re.compile(
    r"\b(?:proud of|happy for|stoked for|excited for|thrilled for|rooting for|sorry for) you\b|\bi (?:\S+ )?agree\b"
    r"|\bi wish i (?:had|could)\b|\btime flies\b|\bstolz auf dich\b|\bfreue? mich für dich\b"
    r"|\borgullos[oa] de ti\b|\bme alegro (?:mucho )?por ti\b|\bfi[eè]re? de toi\b|\bcontente? pour toi\b"
)
# Amusement and pity; praise is no sign, since people also praise what matters.
_SYMPATHIZES = re.compile(
    r"[¡\W]*(?:oh[,!]? (?:no|je|nein|non|dear|wow)|ouch|oof|uf+|a+w+|(?:ha|ja|he){2,}h?|lol|vaya|ay|zut|mince|poor "
    r"|pobre |das tut mir leid"
    r"|(?:i['’]m |so )?sorry\b|lo siento|désolée?|gute besserung|enjoy|enjoy!|glück gehabt|dommage|qué (?:pena"
    r"|lástima|divertido|rico)|quel dommage|mejor así|umso besser|take care|hope (?:you|she|he|they) feel"
    r"|(?:that|this)(?:['’]s| is| was| must be| must have been)? (?:a |an |so |such an? |really |pretty |quite |very )*"
    r"(?:sounds?|early|hard|tough|rough|annoying|intense|funny|neat|cute|sweet|lovely|fun|awful|terrible|exhausting"
    r"|stressful)"
    r"|(?:das klingt|suena|(?:dat )?klinkt) (?:[^\W\d_]+ )?(?:nervig|anstrengend|stressig|hart|schlimm|übel|duro|fatal"
    r"|horrible|agotador|vervelend|zwaar)|wie (?:schön|ärgerlich|nervig)|ça (?:devait|doit|a l['’]air)|oje|ach"
    r"|courage|ánimo"
    r"|wat (?:vervelend|jammer|een gedoe|schattig)|beterschap|sterkte|rust lekker|descansa|repose-toi|ruh dich)\b",
    re.IGNORECASE,
)
# Praise or pity: what it answers may be a plan.
_SOUNDS = re.compile(r"[¡\W]*(?:das (?:klingt|hört sich)|(?:eso )?suena|(?:dat )?klinkt)\b", re.IGNORECASE)
# A model has no weekend and sees no match.
_HAS_NO_LIFE = re.compile(
    r"i (?:don['’]t have (?:weekends|feelings|hobbies|a body|access)|can['’]t (?:watch|taste|feel|check the weather))"
    r"|(?:das )?(?:kann ich (?:leider )?nicht (?:sehen|sagen)|ich habe (?:leider )?(?:keinen zugriff|kein wochenende))"
    r"|no (?:tengo (?:fines de semana|acceso)|puedo (?:ver|sentir|probar))|je n(?:e peux pas (?:regarder|voir"
    r"|goûter)|['’]ai pas (?:de week|accès))",
    re.IGNORECASE,
)
_MAX_SYMPATHY = 160
_FIGURE = re.compile(r"\d(?<!\w\d)")
# What holds for everybody tells nothing of who says it.
_PLATITUDE = re.compile(
    r"\b(?:is|are|['’]s) (?:\w+ ){0,3}?(?:key|priceless|what (?:matters|counts))\b"
    r"|\b(?:is|are|isn['’]t|['’]s) (?:always |really |so )+(?:important|necessary|special|beautiful|powerful)\b"
    r"|\bcan be so \w+\b|\bmeans? (?:a lot|the world|so much|everything)\b|\bmoments like (?:these|this)\b"
    r"|\b(?:make|making|makes) (?:\w+ ){0,3}(?:difference|memories|change in)\b"
    r"|\b(?:brighter|better) (?:future|world)\b"
    r"|\bspread (?:love|joy|kindness|positivity)\b|\bcherish|\bbedeute[nt]+ (?:mir |uns )?(?:so |sehr )?viel\b"
    r"|\bist (?:einfach )?(?:unbezahlbar|das wichtigste)\b|\bsignifican? mucho\b|\bno tienen? precio\b"
    r"|\bes lo (?:más importante|que (?:importa|cuenta))\b|\bmarcar la diferencia\b|\bcompt(?:e|ent) beaucoup\b"
    r"|\bn['’]a pas de prix\b|\bfaire la différence\b"
)
_EXCLAIMS = re.compile(r"(?:wow|awesome|amazing|yay|whoa|woah|guau|waouh)\b[^\d?]{0,100}$", re.IGNORECASE)
_ADDRESSED = re.compile(r"^(?:\w+,? )?[A-ZÄÖÜÉ][^\W\d_]+, ")
_WHEN = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|gestern|heute|morgen|letzte\w*|nächste\w*|ayer|hoy|mañana"
    r"|pasad[oa]|próxim[oa]|hier|demain|derni[eè]re?|prochaine?)\b"
)
_THANKS = re.compile(r"\b(?:thanks|thank you|thx|danke|dank|bedankt|gracias|merci)\b|谢谢|ありがとう", re.IGNORECASE)
_LAUGHS = re.compile(
    r"\b(?:lol|lmao|rofl|mdr|ptdr|(?:ha|ja|he|hi|ah){2,}h?|xd)\b|[😂🤣😅😆😜🙈]|哈哈|笑死"
    r"|\b(?:just kidding|jk|je (?:rigole|plaisante)|es broma|war (?:nur )?(?:ein )?(?:scherz|spaß)|scherzo)\b",
    re.IGNORECASE,
)
_MUSES = re.compile(
    r"(?:hm+|m{2,}|even kijken|huh|(?:ha|ja|he){2,}|aha|lol|omg|well,|let me|mal sehen|a ver|voyons)\b", re.IGNORECASE
)
# How somebody feels, and how something was, for the moment.
_FEELS = re.compile(
    r"\b(?:i['’]?m|i am|i feel|feeling|i was(?: almost)?|bin ich|ich bin|ben ik|ik ben|estoy|me siento|je suis"
    r"|j['’]étais)"
    r" (?:[^\W\d_]+ ){0,2}?"
    r"(?:tired|exhausted|dead|stressed|bored|hungry|motivated|crying|jealous|thrilled|excited|stoked|annoyed|frustrated"
    r"|moe|kapot|gesloopt|müde|kaputt|fertig mit den nerven|genervt|gestresst|platt|cansad[oa]|agotad[oa]|hart[oa]"
    r"|muert[oa]|reventad[oa]"
    r"|fatiguée?|crevée?|dégoûtée?|épuisée?|énervée?)\b"
    r"|\b(?:was|is|war|ist|fue|es|era|c['’]était|était|c['’]est)"
    r" (?:(?:so|such|really|very|echt|sehr|total|muy|un|a|trop|très) )*"
    r"(?:fun|awful|annoying|exhausting|hilarious|boring|terrible day|lustig|anstrengend|ätzend|nervig"
    r"|langweilig|divertid[oa]|agotador\w*|horrible|aburrid[oa]|sympa|chouette|nul|pénible)\b"
    r"|\bin (?:a )?(?:bad|good|great) mood\b|\b(?:what an?|so ein|was für ein|menudo|qué|quelle?) (?:\w+ )?"
    r"(?:day|week|tag|woche|día|semana|journée|semaine)\b|\bi can['’]t (?:believe it|even|think)\b"
    r"|\b(?:it['’]?s|es ist|hace|il fait) (?:so|too|zu|tanto|trop) (?:hot|cold|heiß|kalt|calor|frío|chaud|froid)\b"
    r"|好累|累死|太累",
    re.IGNORECASE,
)
# What somebody says who leaves, comes back, or has a small matter behind him.
_COMES_AND_GOES = re.compile(
    r"(?:^|[,.!] )(?:(?:ok(?:ay)?|so|alright)[,.]? )?(?:(?:i(?:['’]ve)? )?(?:gotta|got to|have to|need to|must)"
    r" (?:run|go|leave)(?= now|[,.!]|$)|gtg|brb|bbl|be right back|(?:coffee|lunch) break"
    r"|(?:i['’]m |bin |ich bin )?(?:back(?: again)?|wieder da)[.!]*$"
    r"|(?:ik )?moet (?:gaan|ervandoor)|tot (?:morgen|straks|later|zo)|welterusten|never mind|(?:daar )?ben ik weer"
    r"|(?:talk|see) (?:to )?you\b|talk (?:soon|later)|good night|gute nacht|bis (?:morgen|später|dann|gleich)[.!]*$"
    r"|muss (?:los|weg)|hasta (?:mañana|luego|pronto)|buenas noches|(?:mañana|luego) seguimos|me (?:voy|tengo que ir)"
    r"|à (?:demain|plus|tout)|bonne (?:nuit|soirée)|je (?:file|dois y aller)"
    r"|(?:later|see you|bis später|luego|à plus tard)[.!]*$"
    r"|(?:all|it['’]s all) good\b|alles gut\b|todo bien\b|tout va bien\b|no worries|ph?ew|ouf|puh+|uff+)\b",
    re.IGNORECASE,
)
# Who is away for a while says so, and why: "hold on, doorbell", "back in 10".
_AWAY = (
    r"(?:(?:ok(?:ay)?|so|sorry|ah|oh)[,.!]? )?(?:"
    r"(?:hold on|hang on|just a|one|a) ?(?:sec(?:ond)?|min(?:ute)?|moment)?(?<!just a)(?<!one)(?<!\ba)(?= ?[,.!…]|$)"
    r"|(?:give me|gimme) (?:a|one|two|five|\d+) (?:sec|min|moment)\w*"
    r"|(?:i['’]?(?:ll|m| will| am) )?(?:be |right )*back (?:now|in|soon|after|at my desk)\b(?! (?:19"
    r"|20)\d\d)(?! (?-i:[A-Z]))"
    r"|(?:had|have|got) to (?:take|answer) (?:a|the|another) (?:call|phone|door)"
    r"|(?:was|were) (?:in|at) (?:a|the) (?:meeting|call|shop|phone)|(?:i['’]?m )?(?:gonna|going to) (?:grab|have"
    r"|get|eat) "
    r"|(?:i )?(?:need|could use|want) an? (?:short |quick |little )?(?:break|coffee|tea|nap|holiday"
    r"|drink)\b[^\d]{0,24}$"
    r"|(?:ich )?bin (?:gleich|kurz|mal|eben|in \d+ min\w*|bald) |(?:ich )?muss (?:kurz|mal|eben|schnell) "
    r"|(?:warte|wart|moment|augenblick|sekunde)(?: (?:kurz|mal|bitte))?(?= ?[,.!…]|$)"
    r"|(?:ahora|ya|enseguida) vuelvo|vuelvo (?:en|ahora|luego|enseguida)|un (?:momento|segundo|minuto"
    r"|momentito)(?=[,.!…]|$)"
    r"|te (?:llamo|escribo) (?:luego|después)|espera(?: un (?:momento|poco))?(?=[,.!…]|$)"
    r"|je reviens|(?:une|deux|cinq|\d+) (?:secondes?|minutes?)(?= ?[,.!…]|$)|(?:attends|attendez)(?= ?[,.!…]|$)"
    r"|(?:ik )?ben (?:zo|even|dadelijk|over \d+) |momentje|ogenblik|even (?:bellen|wachten|weg|kijken|iets)"
    r"|(?:zaraz|już|za chwilę) (?:wracam|będę|wrócę)|(?:chwil(?:a|kę|eczkę|unia)|moment)(?=[,.!…]|$)|sekund[ęa]"
    r"|(?:少々|ちょっと)(?:お?待|電話|席|外)|すぐ(?:戻|もど))"
)
_AWAY_FIGURE = r"(?:in|en|dans|over|za|back in) \d{1,2}(?: ?min\w*| ?m)?(?: zurück| wieder da| terug)?[.!]*$"
# What somebody needs for the moment, and the weather at the window.
_NEEDS = (
    r"(?:(?:uf+|puh|ay|oh)[,!]? )?(?:(?:ich )?hab(?:e|['’])? (?:so(?:lchen?)? |echt )?(?:hunger|durst)"
    r"|tengo (?:mucha? )?(?:hambre|sueño|sed"
    r"|frío|calor)|j['’]ai (?:trop |très )?(?:faim|soif|sommeil|froid|chaud)|ik heb (?:zo['’]?n )?(?:honger|dorst"
    r"|slaap)"
    r"|jestem (?:głodn|zmęczon|śpiąc)\w+|chce mi się spać|お腹(?:が)?(?:す|空)|眠い|疲れた"
    r"|(?:it['’]?s |so |schon wieder |wieder |siempre |menud[ao] |qué |otra vez |encore |wat een |weer |znowu "
    r"|ale |what )*"
    r"(?:raining|snowing|pouring|freezing|boiling|regnet|schneit|regen|schnee|hitze|kälte|llueve|lluvia|nieve"
    r"|calor|frío"
    r"|hace (?:frío|calor)|il (?:pleut|neige|gèle)|il fait (?:un )?(?:froid|chaud)|de la pluie|het regent|het sneeuwt"
    r"|weer regen|pada|leje|upał|mróz)\b[^,.;:]{0,24}[!.…]*$)"
)
_WAITS = (
    r"(?:(?:sure|ok(?:ay)?|of course|no problem|klar|gern\w*|claro|vale|bien sûr|d['’]accord|prima|goed|jasne"
    r"|dobrze)[,.!]? )*"
    r"(?:take your time|no (?:rush|hurry|worries)|i['’](?:m|ll be) (?:here|right here)|i(?:['’]ll)? wait|welcome back"
    r"|whenever you(?:['’]re| are) (?:ready|back)|tell me whenever|enjoy\b|see you (?:soon|in)|talk soon"
    r"|good to have you back"
    r"|lass dir zeit|kein(?:e)? (?:stress|eile|problem)|ich (?:warte|bin (?:hier|da))|bis (?:gleich|später|dann)"
    r"|willkommen zurück|guten appetit|sin prisas?|aquí (?:estoy|te espero)|tómate tu tiempo|te espero"
    r"|hasta (?:luego|ahora)"
    r"|bienvenid[oa] de nuevo|que aproveche|prenez votre temps|prends ton temps|je (?:vous |t['’])?attends"
    r"|à tout de suite"
    r"|pas de (?:souci|problème)|bon appétit|bon retour|neem (?:de|je) tijd|ik wacht|tot zo|welkom terug"
    r"|eet smakelijk"
    r"|poczekam|czekam|nie ma pośpiechu|witaj z powrotem|smacznego|どうぞ|お待ちして|ごゆっくり|おかえり)"
)
_INTERJECTION = re.compile(
    r"(?:ugh|argh|puh+|uff*|boah|hm+|o+h+|a+h+|wow|omg|ouf|bof|uf|vaya|yay|ph?ew|ach|tja|oje|ups|oops|yikes|ooh|zut"
    r"|mince"
    r"|(?:ha|ja|he){2,}h?|lol|mdr|😂|:\)|哈+|唉|啊)[.!,… ]*",
    re.IGNORECASE,
)
# What is done by the next message: "schicke ich gleich".
_AT_ONCE = re.compile(
    r"\b(?:ich (?:\w+ )?gleich|gleich|straks|zo meteen|right away|in a (?:sec|second|minute|moment)|ahora mismo"
    r"|enseguida"
    r"|tout de suite)[.!]*$"
    r"|^(?:ok(?:ay)?,? )?(?:i['’]?ll|i will|ich|ik|je|[a-zäöü]+ (?:ich|ik)) (?:[^\W\d_]+ ){0,3}"
    r"(?:tomorrow|later|next week|morgen|später|nächste woche|volgende week|demain|plus tard)(?: [a-zäöü]{2,4})?[.!]*$",
    re.IGNORECASE,
)
# "Good point": it was heard, and nothing is taken by that alone.
_CONCEDES = re.compile(
    r"(?:(?:ah|oh|ok(?:ay)?|yes|ja|sí|oui)[,.]? )?(?:(?:that['’]s a )?(?:good|fair) point|(?:that )?makes sense"
    r"|you['’]re right|true|stimmt|da hast du recht|guter punkt|tienes razón|es verdad|tu as raison|c['’]est vrai|klopt"
    r"|je hebt gelijk|goed punt)\b",
    re.IGNORECASE,
)
_MAX_CRY = 3
_MAX_TALK, _MIN_THANKED, _MAX_JOKE, _MAX_LAUGHED, _MAX_AWAY = 90, 4, 4, 7, 6
# A pattern of which every branch starts with a character is found in a sixth of the time.
SPECIFIC = re.compile(
    r"`|@|https?:|/(?<=\w/)\w+[/.]\w|_(?<=\w_)\w"
    r"|\.(?<=\w\.)(?:py|js|ts|md|txt|csv|json|pdf|toml|ya?ml|html|xlsx?)\b"
)
"""A path, an address, a file or a name of code: it can be looked up."""
# A set of characters at the very start keeps the scan fast; what stands before it is looked at afterwards.
NAME = re.compile(r"[A-ZÄÖÜÉ](?<=[^\W\d_,;] [A-ZÄÖÜÉ])[^\W\d_]")
"""A capital letter inside a sentence."""
FULL_NAME = re.compile(
    # no article, no preposition: Der, Die, The, From, Les, Con and the like
    r"[A-ZÄÖÜÉ](?<!\w[A-ZÄÖÜÉ])(?!(?:(?<=D)(?:er|ie|as|e[nm]|es?|u|ans)|(?<=E)(?:ine?[nmr]?|l|n|en)|(?<=I)[mn]"
    r"|(?<=A)(?:m|t|vec)|(?<=B)(?:ei|ij)|(?<=M)(?:it|y|et)|(?<=F)(?:ür|or|rom)|(?<=V)(?:on|otre|an|oor)|(?<=Z)u"
    r"|(?<=T)he|(?<=O)(?:n|ur|p)|(?<=Y)our|(?<=L)(?:a|es?|os|as)|(?<=U)(?:ne?|w)|(?<=C)on|(?<=P)(?:ara|our)"
    r"|(?<=H)et) )[a-zäöüßáéíóúñ]+"
    r" (?:(?:van|von|de|del|ter|ten|di|da) )?[A-ZÄÖÜÉ][a-zäöüßáéíóúñ]+\b"
)


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """Compiled when first needed: few commands ever summarise."""
    return re.compile(words, re.IGNORECASE)


def is_reaction(sentence: str) -> bool:
    """Whether it only answers the other in kindness: "Your words mean a lot", "Such a special moment"."""
    lower = sentence.lower()
    if FULL_NAME.search(sentence):  # "You will get a mail from Marta Lind"
        return False
    return _REACTION.match(lower) is not None or _PRAISES.search(lower) is not None


def is_small_talk_reply(reply: str, said: str = "") -> bool:
    """Whether a reply is amused or sorry, and no more: what it answers was told in passing. A reply that cheers in
    other words tells the same of a remark without names and figures."""
    reply = _plain_reply(reply) if len(reply) <= _MAX_SYMPATHY else ""
    if not reply or _sympathizes(reply):
        return bool(reply)
    is_light = said and len(said) <= _MAX_TALK and not (_FIGURE.search(said) or SPECIFIC.search(said))
    if not is_light or (NAME.search(said) and not is_german(said)):
        return False
    return _SOUNDS.match(reply) is not None or (is_exclamation(reply) and reply.count("!") == 1)


@text_cache(2048)  # asked of a message and of the one that it answers, for the summary and for the ledger
def _plain_reply(reply: str) -> str:
    """A reply without the offer at its end; empty if it asks something, or has names or figures."""
    start = max(reply.rfind(". "), reply.rfind("! ")) + 2
    reply = reply[:start] if start > 1 and makes_offer(reply[start:]) else reply
    has_facts = "?" in reply or _FIGURE.search(reply) or (FULL_NAME.search(reply) and not is_german(reply))
    return "" if has_facts else reply


@text_cache(2048)
def _sympathizes(reply: str) -> bool:
    return any(each.match(reply) for each in (_SYMPATHIZES, _HAS_NO_LIFE, _pattern(_WAITS)))


@text_cache(8192)
def is_platitude(text: str) -> bool:
    """Whether it says what anybody could have said at any time: "Family time means a lot to me", "Wow, amazing!"."""
    lower = text.lower()
    if not (_PLATITUDE.search(lower) or _EXCLAIMS.match(text)) or _WHEN.search(lower):
        return False
    if _FIGURE.search(text) or SPECIFIC.search(text):
        return False
    return _EXCLAIMS.match(text) is not None or is_german(text) or NAME.search(_ADDRESSED.sub("", text)) is None


@text_cache(8192)
def is_remark(text: str) -> bool:
    """Whether somebody only laughs, thanks, tells a mood, or comes and goes: "ok gotta run, dinner's burning"."""
    if len(text) > _MAX_TALK or SPECIFIC.search(text) or FULL_NAME.search(text):
        return False
    topics = count_topic_words(text)
    if _FIGURE.search(text):
        is_away = _pattern(_AWAY_FIGURE).search(text) is not None and _pattern(_AWAY).match(text) is not None
        return is_away or (topics <= _MAX_JOKE and _LAUGHS.search(text) is not None)
    if (_pattern(_AWAY).match(text) and topics <= _MAX_AWAY) or _pattern(_NEEDS).match(text):
        return True
    if _COMES_AND_GOES.search(text) or _FEELS.search(text) or _INTERJECTION.fullmatch(text) or _AT_ONCE.search(text):
        return True
    if is_exclamation(text) and text.count(" ") < _MAX_CRY:
        return True
    if _THANKS.search(text) and topics < _MIN_THANKED:
        return True
    return topics <= _MAX_LAUGHED and _LAUGHS.search(text) is not None


def is_exclamation(text: str) -> bool:
    """Whether somebody cheers, wishes or comforts, in whatever words: "Bravo, quel beau projet !"."""
    return len(text) <= _MAX_TALK and text.endswith(("!", "！")) and not (_FIGURE.search(text) or SPECIFIC.search(text))


def concedes(text: str) -> bool:
    """Whether somebody says that the other is right, at the start of what he says."""
    return _CONCEDES.match(text) is not None


def muses(text: str) -> bool:
    """Whether somebody thinks aloud."""
    return _MUSES.match(text) is not None


_CONFIRMS = re.compile(
    r"(?:ok(?:ay)?|sure|great|perfect|fair enough|noted|got it|understood|thanks|thank you|exactly|right|good|alright"
    r"|then|of course|no problem|done|excellent|wonderful|alles klar|gut|super|prima|perfekt|verstanden|notiert"
    r"|dann|genau|danke|in ordnung|vale|perfecto|entendido|anotado|hecho|claro|gracias|de acuerdo|entonces|estupendo"
    r"|d['’]accord|très bien|parfait|c['’]est noté|compris|merci|alors|donc|clear|begrepen|genoteerd|dank|fijn|mooi"
    r"|prima)\b|好的|明白|收到|记下|了解|承知",
    re.IGNORECASE,
)


def confirms(reply: str) -> bool:
    """Whether it begins by taking note of what the other said."""
    return _CONFIRMS.match(reply) is not None
