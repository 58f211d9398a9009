"""Prohibitions: what somebody may not, cannot or will not do, in words that need no verb of deciding.

They complete the cues of `recto.chat.cues`. Knows one sentence at a time, and whether it restricts the one before it.
"""

import re
from functools import cache
from typing import NamedTuple

from recto.chat.cues import words_of
from recto.text import LazyPattern, text_cache


class _Rule(NamedTuple):
    """Every match of the pattern has one of the words: to look for these takes a tenth of the time."""

    words: frozenset[str]
    pattern: LazyPattern


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _rule(words: str, *patterns: str) -> _Rule:
    # words are cut at apostrophes: "can't" is known by its last letter
    return _Rule(frozenset(word.rpartition("'")[2] for word in words.split()), LazyPattern("|".join(patterns)))


# Where a clause starts, and may be all that is said: "not on e-bikes though".
_CLAUSE = r"(?:^|[,;:.!(–—] ?|\b(?:and|but|und|aber|y|pero|et|mais|en|maar|i|ale|ojo|please|bitte) )"
_MACHINE = (
    r"(?:the|my|our) (?:app|server|page|code|tests?|script|build|system|file|query|api|browser|client|model|tool)"
)
_RULES = (
    # what others cannot or must not do; what somebody cannot find or believe is no rule
    _rule(
        "not can't cant cannot won't wont doesn't don't mustn't mustnt shouldn't isn't aren't",
        rf"{_CLAUSE}(?:yes,? )?(?!(?:i|you|it|that|this|there|who|what|which|one|why|{_MACHINE}) )"
        r"(?:[^\W\d_][\w'’.-]* ){1,3}(?:can['’]?t|cannot|can not|mustn['’]?t|may not"
        r"|(?:is|are)(?:n['’]t| not) (?:allowed|able|supposed) to|(?:does|do)n['’]t (?:get|do|work|drive|fly|travel"
        r"|accept"
        r"|take|allow|eat|drink|pay|speak|deliver|ship|sell|serve|let|want)"
        r"|won['’]?t (?:do|work|accept|take|pay|come|sign))"
        r" (?!(?:be|believe|see|find|wait|help|remember|tell|even|say|think|understand|figure|open|load|connect"
        r"|look|mind|make sense|sense)\b)\w",
        r"\b(?:can['’]?t|cannot|mustn['’]?t|must not|may not|shouldn['’]?t) (?:\w+ ){0,2}(?:know|find out|hear"
        r"|learn)\b",
    ),
    _rule(
        "won't wont not never can't cant don't",
        r"\b(?:i|we)(?:(?: really| definitely)?(?: won['’]?t| will not|['’]m not going to| am not going to"
        r"|['’]re not going to|['’]d never| would never)"
        r" (?!(?:be|forget|lie|bother|need|have|know|miss|believe|say|see|find|get)\b)\w"
        r"| (?:don['’]?t|do not) (?:take|buy|use|book|sell|accept|pay|sign|invite|serve|offer|deliver|ship|allow"
        r"|order) \w"
        r"| can['’]?t (?:do|make|work|meet|attend|travel|eat|drink|have|accept|sign|pay)"
        r" (?!(?:it|this|that|sense|any|out)\b)\w)",
    ),
    _rule(
        "not never",
        r"\b(?:said|says|told|asked|warned|wants?|advised?|ordered)(?: \w+){0,3} (?:not|never) to"
        r" (?!(?:worry|panic|mention it|be afraid)\b)",
        rf"{_CLAUSE}(?:absolutely |definitely |just )?(?:not|never) (?:before|after|until|unless|without|on|in|to|for"
        r"|with|by|from|via|below|above|during|again)(?! (?:all|sure|least|time|once|fact|that|so|me|bad)\b)\b",
        r"^(?:and |but |so )?not (?!(?:sure|really|only|that|so|too|bad|yet|much|quite|even|just|all|a|going|in)\b)"
        r"(?:[\w'’-]+ ){1,4}(?:please|though|ever|again|period)\b",
    ),
    _rule(
        "never",
        r"\bnever (?:go|pay|show|mention|tell|share|give|let|leave|book|buy|order|mix|open|serve|come|work|post|print"
        r"|talk|drive|put|bring|cut|move|sign|promise)\b",
        rf"{_CLAUSE}never (?!(?:mind|fear|been|seen|heard|thought|knew|had|again|ever|know|really|tried|say|too|a"
        r"|in)\b)\w",
    ),
    _rule(
        "dealbreaker breaker no-go limits nothing none secret surprise confidential",
        r"\bdeal[ -]?breaker|\bno-go\b|\boff[- ]limits\b|\bnothing (?:from|containing|after|before|over) ",
        r"\b(?:keep|stays?|it['’]s|is) (?:it |this |that |all )?(?:a )?(?:secret|surprise|confidential)\b",
        r"\b(?:so|and|then) none of (?:that|those|them|it|the)\b",
    ),
    # "prices in euros please, not dollars"
    _rule(
        "please pls bitte favor graag favore proszę",
        r"\b(?:please|pls|bitte|por favor|graag|per favore|proszę),? (?:and |und |y |en |e )?(?:not|nicht|no|niet|non"
        r"|nie|não) (?!(?:now|yet|that|so|jetzt|problem|worries)\b)[^\W_]",
    ),
    _rule(
        "not",
        r"\b(?:i|we)(?:['’]d like| want| need| prefer)\b[^.?!]{3,60}?,? not (?!(?:sure|only|just|to|that|the|a|because"
        r"|so|yet|too)\b)\w",
    ),
    # "only cash"
    _rule(
        "only nur solo sólo tylko apenas só alleen enkel seulement",
        r"^(?:ok(?:ay)?,? |so |and |but |y |und |e |en )?(?:only|nur|solo|sólo|tylko|apenas|só|alleen|enkel|seulement)"
        r" (?!(?:one|me|a|kidding|joking|so|kurz|gut|problem|thing|question|if|when|the|un|una|que|um|noch|mal"
        r"|eine?)\b)[^\W\d_]+(?: [^\W\d_]+)?[.!]*$",
    ),
    _rule(
        "only",
        r"^(?:[\w'’-]+ ){1,3}only(?: please)?[.!]*$",
        rf"(?:{_CLAUSE}|\b(?:i|we|he|she) say )only (?:by|with|via|after|before|if|from|the \w+ (?:may|can)|when"
        r"|between) ",
    ),
    _rule(
        "free vegan vegetarian halal kosher gone anonymous intolerant",
        r"\b(?:has|have|needs?) to be (?:\w+ )?(?:[a-z]+[- ]free|vegan|vegetarian|halal|kosher|gone|anonymous)\b",
        r"\b(?:lactose|gluten|fructose|dairy)[- ]intolerant",
    ),
    _rule(
        "nicht kein keine keinen keinem keiner nie niemals nichts nur bloß erst geheim überraschung",
        r"\b(?:kann|können|darf|dürfen|soll|sollen|will|wollen|möchten?|verträgt)(?: [^\W\d_]+){0,4} (?:nicht"
        r"|kein(?:e[nmr]?)?"
        r"|nie|niemals|nur)(?! (?:sagen|glauben|finden|erinnern|mehr|so|ganz|sehen|gut|wirklich|genau"
        r"|verstehen)\b)(?: |[.!]|$)",
        rf"(?:{_CLAUSE}|\b(?:nur|bloß|ja) )nicht (?!(?:mehr|so|ganz|wirklich|viel|nur|schlecht|wahr|gut|sicher"
        r"|dass)\b)"
        r"(?:der|die|das|den|dem|im|am|in|an|auf|mit|bei|über|vor|nach|zu|für|ohne|\w+ (?:bitte|allerdings))\b",
        r"\b(?:bloß|ja|also|will|wollen|möchten?) kein(?:e[nmr]?)? (?!(?:ahnung|problem|sorge|zeit|lust|stress"
        r"|angst)\b)\w",
        r"\b(?:unterschreib|mach|nehm|zahl|kauf|akzeptier|buch)\w* (?:ich|wir) (?:\w+ )?nicht\b",
        r"\b(?:ich|wir) (?:unterschreib|nehm|zahl|kauf|akzeptier|buch|lad|miet|bestell|verkauf|verwend)\w*"
        r" (?:\w+ ){0,3}(?:nicht|kein(?:e[nmr]?)?)\b",
        r"\b(?:nicht|nie|kein(?:e[nmr]?)?)(?: [^\W\d_]+){1,3} (?:dürfen|darf|sollen|soll)\b|\bgibt(?: es|'s) nicht\b",
        rf"{_CLAUSE}(?:ruf|sprich|schick|sag|frag|lad|kauf|bestell|öffne|schreib|meld|erzähl|buch|zeig)\w*"
        r" (?:[^\s.,]+ ){0,5}nicht\b",
        r"\berst (?:ab|nach|um) \d|\bnichts (?:bohren|streichen|wegwerfen|verraten|sagen|posten|löschen|ändern"
        r"|unterschreiben|bestellen)\b",
        r"\b(?:nie|nur) (?:vor|nach|ab|über|mit|per|samstags|sonntags|werktags|abends|morgens|vormittags|nachmittags"
        r"|wenn)\b",
        r"\b(?:ist|bleibt|soll) (?:\w+ )?(?:geheim|eine überraschung)\b|\bgeht gar nicht\b",
    ),
    _rule(
        "no nunca jamás solo sólo salvo excepto secreto sorpresa sin nada",
        r"\bno (?:se (?:lo |la |le )?)?(?:puede|pueden|podemos|debe|deben) (?!(?:ser|más|creer)\b)\w",
        r"\bno (?:lo |la |les? )?(?:firmo|firmaré|acepto|aceptaré|pago|pagaré|compro|compraré|reservo|reservaré)\b",
        rf"{_CLAUSE}(?:no|nunca|jamás|solo|sólo|salvo|excepto) (?:antes|después|en|con|por|los|las|el|la|para|si"
        r"|sin) ",
        r"\bno se entere\w*|\bno (?:\w+ )?enterarse\b|\bes (?:un |una )?(?:secreto|sorpresa)\b",
        r"\b(?:dijo|pidió|advirtió|avisó)(?: [^\W\d_]+){0,4} que no\b",
        rf"{_CLAUSE}(?:sin|nada de) (?!(?:duda|problema|embargo|prisa|más|eso)\b)[^\W\d_]+(?: [^\W\d_]+)? (?:para"
        r"|por favor|en)\b",
    ),
    _rule(
        "pas jamais rien aucun aucune sauf seulement uniquement secret surprise rédhibitoire",
        r"\b(?:peut|peuvent|doit|doivent|veut|veulent|mange|mangent|conduit|travaille|signe|signerai|accepte"
        r"|accepterai"
        r"|prendrai|paierai) (?:surtout |absolument )?(?:pas|jamais|rien|aucune?)\b(?! (?:croire|savoir))",
        rf"{_CLAUSE}(?:pas|jamais|sauf|seulement|uniquement) (?:avant|après|sans|en|avec|par|le|la|les|chez|dans|sur"
        r"|pour|si) "
        r"(?!(?:mal|moment|peine|coup)\b)",
        r"\b(?:c['’]est|reste) (?:une? )?(?:secret|surprise)\b|\brédhibitoire\b",
        r"\b(?:dit|demandé|conseillé)(?: [^\W\d_]+){0,3} de ne (?:pas|jamais|rien)\b",
    ),
    _rule(
        "niet geen nooit alleen behalve geheim verrassing",
        r"\b(?:kan|kunnen|mag|mogen|wil|willen)(?: [^\W\d_]+){0,5} (?:niet|geen|nooit|alleen)\b(?! (?:vinden|geloven"
        r"|zien"
        r"|zeggen|weten|begrijpen))",
        r"\b(?:niet|geen|nooit|alleen)(?: [^\W\d_]+){0,4} (?:mag|mogen)\b",
        r"\b(?:ik|we|wij) (?:boek|teken|neem|nemen|betaal|betal|koop|kop|accepteer)\w* (?:\w+ ){0,3}(?:niet|geen"
        r"|nooit)\b",
        rf"{_CLAUSE}(?:niet|nooit|alleen|behalve) (?:voor|na|op|in|met|zonder|bij|aan|als|tijdens|via|de|het) ",
        r"\b(?:is|blijft) een (?:geheim|verrassing)\b",
    ),
    _rule(
        "nie nigdy tylko żadnych żadnej żaden tajemnica niespodzianka",
        r"\bnie (?:wolno|może|mogą|można|podpiszę|zapłacę|kupię) \w",
        rf"(?:{_CLAUSE}|\b(?:tylko|byle) )nie (?!(?:wiem|ma|mam|jest|rozumiem|szkodzi|pamiętam|trzeba)\b)\w",
        r"\bżadn\w+ \w|\bnigdy (?:nie )?\w|\btylko (?:po|przed|w|we|z|przez|od) |\b(?:to|jest) (?:tajemnica"
        r"|niespodzianka)\b",
    ),
)
_UNSPACED = LazyPattern(
    "ダメ|だめです|駄目|無理です|禁物|厳禁|NGです|内緒|秘密|控えて|避けて|ご遠慮|ないでください|てはいけ|てはなら|食べられ(?:ない|ません)"
    "|以外は|だけにし|のみ(?:で|に|可)|苦手|保密|惊喜|不可以|不吃|忌口|안 됩니다|안 돼|비밀|금지|못 먹"
)
_EAST_ASIAN = re.compile("[\u3040-\ud7af]")  # a single range takes no time to compile
# A sentence that begins or ends so takes something out of the one before it.
_QUALIFIES = LazyPattern(
    r"(?i)(?:(?:and|but|und|aber|y|pero|et|mais|en|maar|i|ale|ojo|though|please|bitte|by the way)[,:]? )*"
    r"(?:(?:not|never|no|nothing|only|except|unless|nicht|nie|kein|keine|keinen|nur|außer|nunca|nada|solo|sólo|salvo"
    r"|sin"
    r"|excepto|pas|jamais|sauf|seulement|rien|niet|nooit|geen|alleen|behalve|nie|tylko|oprócz|bez)\b"
    r"|(?:it['’]s|es|c['’]est|es ist|het is|to) (?:an? |una? |une |eine? |een )?(?:surprise|secret|sorpresa|secreto"
    r"|überraschung|geheim|verrassing|niespodzianka|tajemnica)\b)"
    r"|[^.?]{1,24} (?:only|nur|solamente|uniquement)[.!]*$|.* (?:though|allerdings|eso sí|par contre|wel)[.!]*$",
)
_MAX_QUALIFYING = 120
# What binds and has one of these forbids something, or allows only something.
_FORBIDDING = _words(
    "not no never dont cannot avoid nothing nobody without only dealbreaker "
    "secret "
    "nicht nie niemals kein keine keinen keinem keiner nichts niemand ohne nur verboten untersagt nunca jamás nadie "
    "nada "
    "prohibido prohibida sin solo pas jamais rien personne sans sauf interdit interdite niet nooit geen niets "
    "niemand "
    "zonder alleen verboden forbidden prohibited banned nigdy tylko nie żadnych żadnej bez niente senza não sem"
)

# "Non" alone is a refusal in French, before a word it is Italian.
_NOT = re.compile(r"n['’]t\b|\bnon [^\W\d_]", re.IGNORECASE)


@cache
def _rules() -> dict[str, list[LazyPattern]]:
    """The patterns by the words that they need."""
    found: dict[str, list[LazyPattern]] = {}
    for rule in _RULES:
        for word in rule.words:
            found.setdefault(word, []).append(rule.pattern)
    return found


@text_cache(8192)  # the summary and the ledger ask
def restricts(sentence: str) -> bool:
    """Whether it says what is not to be, or only under a condition: "she can't work Thursdays", "not before noon"."""
    rules = _rules()
    if words := rules.keys() & words_of(sentence):
        lower = sentence.lower()
        if any(pattern.search(lower) for pattern in dict.fromkeys(each for word in words for each in rules[word])):
            return True
    return (
        not sentence.isascii() and _EAST_ASIAN.search(sentence) is not None and _UNSPACED.search(sentence) is not None
    )


def qualifies(sentence: str) -> bool:
    """Whether it may take back a part of the sentence before it: "not on e-bikes though", "Email only!"."""
    return len(sentence) <= _MAX_QUALIFYING and _QUALIFIES.match(sentence) is not None


def has_prohibition(sentence: str) -> bool:
    """Whether a sentence that binds forbids something, rather than to choose or to correct."""
    return not _FORBIDDING.isdisjoint(words_of(sentence)) or bool(_NOT.search(sentence)) or restricts(sentence)


# -- what is allowed

# Who may do now what he might not before.
_PERMITS = LazyPattern(
    r"\b(?:(?:you|they|he|she|we|i) (?:can|may)|(?:is|are|it['’]s) (?:fine|ok|okay|allowed|possible)|feel free|go ahead"
    r"|no longer (?:a )?(?:problem|secret|forbidden|necessary)|anymore"
    r"|(?:darf|dürfen|darfst|kannst|könnt|kann) (?:\w+ ){0,4}(?:jetzt|wieder|nun|doch|ruhig)|(?:jetzt|wieder"
    r"|nun) (?:\w+ ){0,3}"
    r"(?:darf|dürfen|darfst|kannst|erlaubt|ok|okay)|(?:ya|ahora)(?: sí)? (?:\w+ ){0,2}(?:puedes?|podéis|podemos"
    r"|pueden|vale)"
    r"|(?:puedes?|podéis) (?:ya|ahora)|(?:peux|pouvez|peut) (?:\w+ ){0,3}(?:maintenant|désormais|de nouveau)"
    r"|(?:maintenant|désormais),? (?:\w+ ){0,2}(?:peux|pouvez|peut)|(?:mag|kan|mogen|kunnen) (?:\w+ ){0,4}(?:nu|weer"
    r"|toch|gerust)"
    r"|(?:nu|weer) (?:mag|kan)|(?:puoi|potete|può|si può) (?:\w+ ){0,3}(?:ora|adesso|ormai|di nuovo|tranquillamente)"
    r"|(?:ora|adesso|ormai) (?:\w+ ){0,2}(?:puoi|potete|si può|può)|może(?:sz|cie|my)? (?:\w+ ){0,2}(?:już|teraz"
    r"|znowu)|już (?:\w+ ){0,3}"
    r"(?:można|możesz|wolno)|(?:já|agora) (?:\w+ ){0,2}(?:pode|podes|podem|podemos))\b|てもいい|ても大丈夫|てもよ|해도"
)
_PERMITTING = _words(
    "can may fine ok okay allowed possible free ahead longer anymore darf dürfen darfst kannst könnt kann erlaubt "
    "puedes "
    "puede podéis podemos pueden peux pouvez peut mag kan mogen kunnen puoi potete può możesz możecie możemy może "
    "można "
    "wolno pode podes podem podemos vale"
)
_NEGATION = _words(
    "not no never don don't nothing nicht kein keine nie niemals nunca pas jamais niet geen nooit non mai nie não nem"
)
_AGAIN = _words(
    "now again already jetzt wieder nun inzwischen ya ahora maintenant désormais nu weer ora adesso ormai già już "
    "teraz "
    "znowu já agora"
)


@text_cache(8192)  # the summary and the ledger ask
def permits(sentence: str) -> bool:
    """Whether it says that somebody may do something."""
    is_east_asian = not sentence.isascii() and _EAST_ASIAN.search(sentence) is not None
    if _PERMITTING.isdisjoint(words_of(sentence)) and not is_east_asian:
        return False
    return _PERMITS.search(sentence.lower()) is not None and not negates(sentence)


def permits_now(sentence: str) -> bool:
    """Whether it lifts what was forbidden before: "you can call her now"."""
    if _AGAIN.isdisjoint(words_of(sentence)) and (sentence.isascii() or not _EAST_ASIAN.search(sentence)):
        return False  # by far the most
    return permits(sentence)


def negates(sentence: str) -> bool:
    return not _NEGATION.isdisjoint(words_of(sentence)) or _NOT.search(sentence) is not None
