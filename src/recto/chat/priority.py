"""How important a message is by itself, 1–10, told by its role and its words. Knows no conversation and no model.

What binds later turns is high: the task, decisions, constraints, corrections, facts about the user. Cues are phrases
in English, German, French and Spanish; numbers, paths, code and length speak for themselves in any language.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from recto.chat.message import Message

SUMMARY, TASK, BINDING, TELLING, NORMAL, MINOR, SMALL, CHATTER, NOTHING = 9, 8, 7, 6, 5, 4, 3, 2, 1


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase that says something about the sentence it is in: its beginning, and what must follow behind gaps."""

    kind: str
    phrase: str
    rest: tuple[str, ...]


Cues = Mapping[str, Sequence[Cue]]
Heard = tuple[str, frozenset[str]]
"""A sentence and the kinds of cue in it."""


def _words(table: str) -> frozenset[str]:
    return frozenset(table.split())


# Phrases end with ";". "^" is the start of a sentence, "|" of a clause, "#" a number, "a/b" either word, "…" a gap.
_BINDS = """
must not/never/always/only; mustn't; must be under/below/above/within/before/at/in/done/ready/able/valid/compatible;
should/shall/may never/always; needs/has to be under/below/above/within/in/on/at/done/ready/able/valid/compatible;
it/this/that/everything needs/has to run/work/fit/stay/support/match/pass;
we/you have/need to use/ship/support/deliver; needs/has to run/work on/with/without/offline;
we/you can't use/change/exceed; keep it/this under/below/short; only use/edit/change/touch/modify/answer/reply/write;
use only; | avoid; is/are forbidden/prohibited/mandatory/required;
| stop using/adding/doing/writing/changing/making/calling/saying/asking/repeating; not allowed/permitted;
deadline is/was; is/are due; at most/least #; no/not more/less/longer/later/fewer than;
under/below/within/max # words/lines/pages/characters/minutes/seconds; limit/limited it/this/them/to; limit is;
no circumstances; only … allowed; insists on; | stick to/with; not exceed; forbid/forbids;
| answer/reply/respond/write/use only; | ignore the/my/that/this; is important that; rule/requirement/constraint is/|;
need/want it/this/them by/before/until/in/as; ^ | important |; that's/it's/you're wrong/incorrect;
that/this/it/answer/result is/was wrong/incorrect; that's/this/that/it's/it not/isn't right/correct;
is not right/correct; still wrong; not what i;
wrong file/one/branch/version/folder/table/function/date/name/page/number/day/address/order/line; i was wrong;
it's/is spelled; you/you've misunderstood/misread; scratch that; on second thought/thoughts; | correction |;
changed my/our mind; change of plan/plans; told/asked you to/not; i asked for; didn't/never ask/asked for;
| use/take/write/call … | not; i said … | not; | undo/revert that/this/it/the/my/your/all;
actually use/make/change/keep/put/no/let's/we/don't/never; actually it should; actually i want/need/prefer/wanted;
| no | i said/want/need/asked/wanted; | no | go with/back;
| no | use/make/keep/put/take/leave/change/revert/undo/only/let's/don't; | no | it's the/in/on/called/#;
| no | the other/second/first/right/correct/one; | no | not the/that/this/in/on/like; | no | do the/it/not;
| no | we use/need/want/should; | no | it should; | use/take/put/write/call/make/choose/try … instead;
instead of … use/take/put/write/call; let's use/choose/pick/drop/postpone/switch; let's go/stick/start/stay with;
let's stick to; let's skip/leave/move it/the; let's keep the; let's keep it simple/short/as/in/at/like/under;
let's call/name it; let's do it in/with; | i/we choose/pick; i've/we've/have chosen/picked; i'll take the;
let's go for option/plan/the; go/going with option/plan/version; | go with the;
we'll/i'll/will use/choose/pick/go/stick the/with/option/#; we'll/will switch to; we'll/i'll use;
decided/agreed to/on/that/against/upon/not; settled on; we're/i'm/are going with; | decision |; decision is/was;
^ | decided/approved |; ^ | agreed | we/then/#; it's/that's/is/are settled/decided/final/approved; i/i'd/would prefer;
i'd/would rather; ^ | option/plan/variant/version a/b/c/d/e/# |;
muss/müssen/darf/dürfen/soll/sollen nicht/nie/nur/immer/bis/unbedingt; darf/dürfen … nicht/kein/keine/keinen;
keine/keinen … verwenden/benutzen/nutzen; wir/es/das müssen/muss … bis/unter/spätestens/mindestens/höchstens;
auf keinen fall; unter keinen umständen; | nicht anfassen/ändern/löschen/verwenden/benutzen;
nicht anfassen/ändern/löschen |; ist/war falsch; stimmt nicht;
| verwende/benutze/nimm/nutze/schreib/schreibe/antworte/lösche/ändere immer/nie/niemals/nur/nicht/keine/keinen;
| verwende/benutze/nimm/ändere/lösche/fass … nicht; stimmt so nicht; ich meinte; | nein | ich will/möchte/meinte;
| nein | nimm/verwende/benutze/nicht/lieber/doch/nur/die/das/der/mach/lass; wir nehmen; nehmen wir; bleiben wir bei;
wir bleiben bei; ^ | nur auf/mit/in; lass/lasst uns mit/bei/lieber/das/die/den; uns/mich für/gegen … entschieden;
haben … entschieden; stattdessen; möchte/würde/hätte/nehme lieber; doch lieber; ich bevorzuge; frist ist/endet/läuft;
spätestens bis/am/um/#; höchstens/mindestens/maximal #;
il faut pas/toujours/absolument/utiliser/garder/éviter; il ne faut; ne doit/doivent/dois/devez pas/jamais;
on/nous/tu/vous/il/elle/ça doit/devons/dois/devez toujours/utiliser/garder/livrer/rester/finir;
| ne touche/touchez/modifie/modifiez/change/changez/supprime/supprimez/fais/mets pas/jamais/plus; surtout pas;
| n'utilise/n'utilisez/n'ajoute/n'efface/n'écris pas/jamais/plus; utilise/utilisez/réponds/écris toujours;
je voulais dire; c'est faux; ce n'est pas ça/correct/ce; tu t'es trompé; mauvais fichier; c'est obligatoire/interdit;
| non | utilise/prends/plutôt/garde/mets/l'autre/on/il; | non | je voulais/veux/préfère; | non | c'est le/la/pas;
on prend/choisit/garde; je choisis/préfère; on part sur; prenons; partons sur; j'ai/avons/a décidé; date limite;
au plus tard; au maximum/moins #; maximum #;
no debe/deben/debes/debemos; debe/deben/debemos usar/estar/funcionar/entregar/terminar/quedar; me refería;
hay que usar/hacer/evitar; tiene/tienen que estar/ser/funcionar/usar; quería/quise decir; está mal; eso no es;
| no toques/uses/cambies/modifiques/borres/utilices/escribas/hagas/elimines; te equivocas/equivocaste;
| siempre usa/responde/utiliza/escribe/contesta; usa/responde/utiliza/escribe siempre; | no | el/la otro/otra;
| no | usa/utiliza/quiero/mejor/pon/haz; vamos con; usemos; elijo; hemos/he decidido; decidimos; nos quedamos con;
prefiero; fecha límite; a más tardar; como máximo; al menos #; está prohibido; es obligatorio
"""
_BINDS_EVEN_ASKED = """
from now/today/tomorrow on; | going forward |; ^ | in future |; ^ | in the future |; keep/bear in mind;
for the record; for future reference; | fyi; | note that; | note |; don't/not forget that/the/my/our;
don't/not forget to use/run/add/write/call/check/include/update/test; budget is/of/#; budget | #;
i'm/am allergic/intolerant/vegan/vegetarian/diabetic/pregnant/colorblind/celiac/deaf/blind/left-handed;
i'm/am a/also/severely/very vegan/vegetarian/diabetic/allergic; i'm/am # years; my name/email/address/birthday is;
my phone/account/user number/name is; my number/deadline/timezone/username/salary is; my time zone is; i live in;
i work at/for/as; i was born; i don't/can't/never eat/drink; i only speak/eat/drink/use;
can't have gluten/dairy/nuts/lactose/alcohol/meat; i have diabetes/asthma/celiac; am/i'm … intolerant; my … name is;
ab jetzt/sofort; von nun an; ^ | künftig; ^ | in zukunft |; in zukunft immer/nie/nur/nicht/keine; merk/merke dir;
denk/denke daran/dran; vergiss nicht; | beachte; | wichtig |; budget ist/beträgt/liegt;
mein/meine name/adresse/frist/e-mail/geburtstag ist/lautet; ich wohne/arbeite in/bei/als;
ich bin allergisch/vegetarier/vegetarierin/veganer/veganerin/vegan/schwanger/diabetiker;
désormais; dorénavant; à partir de maintenant; n'oublie/n'oubliez pas; souviens-toi; rappelle-toi; note/notez que;
je suis allergique/végétarien/végétarienne/végane/enceinte/diabétique; budget est; mon nom/adresse/anniversaire est;
j'habite à/en/au;
a partir de ahora; de ahora en adelante; recuerda/recuerde que; ten/tenga en cuenta; no olvides; no te olvides;
soy alérgico/alérgica/vegetariano/vegetariana/vegano/vegana/diabético/diabética/celíaco/celíaca; presupuesto es;
vivo en; mi nombre/dirección/correo/cumpleaños es
"""

# These bind, unless the sentence also holds one of the harmless phrases below.
_LIKELY = """
must; ^ | never/always; | don't; so don't; | do not; | make/be sure; | ensure; ^ | remember that/to/my/i'm/i/we;
| never/always use/push/commit/delete/write/answer/change/run/ask/add/call/put/return/store/include/reply/send/touch;
i/we meant; | call me; can call me; let's not; ^ | nie/niemals/immer; ^ | nunca/jamás
"""
_HARMLESS = """
| must be; you/that/it/this/he/she/they/there/which/what/life must be/feel/have/seem/mean/love/miss/get/look/really;
i must say/admit/confess/go/run/be/have/know; must have been; must feel;
must be really/so/very/quite/a/hard/tough/great/nice/fun/amazing/exciting/proud/happy; must see/try/read; a must;
must | should; he/she/they must know/think/like/hate; ^ | must have;
never mind/fear/been/seen/heard/thought/knew/had/have/was/is/did/would/could/again/in/say/too/a/ever/know/really/tried;
never felt/gets/got/gave/stop/forget/doubt/give/underestimate/imagined/fails/realized/expected/lose/happened/met;
never saw/came/went;
always been/loved/wanted/thought/fun/nice/good/great/a/an/happy/there/had/have/was/is/so/feel/felt/here/remember/knew;
always enjoyed/liked/makes/gets/enjoy/like/love/amazing/up/interesting/the/got/believed/dreamed/in;
don't/not worry/mind/know/think/have/care/get/be/give/sweat/stress/you/say/believe/understand/see/recall;
don't/not feel/want/like/need/really/even/let/lose/hesitate/remember/panic/hold/judge/miss/i/we/they/beat/rush;
don't/not love/mean/quite/always/usually/often/agree/just/blame/sure/forget/overthink/wait/work/exist/it/that/quit;
mention it; sure to/you have/enjoy/rest/take/get; sure thing; be sure |;
remember that/to time/day/one/trip/night/guy/summer/place/have/smile/breathe/enjoy/take/rest/be;
remember we/i were/had/went/used/was; i/we meant to/it/well/so/by/what; let's not forget/worry;
call me when/if/later/back/tomorrow/crazy/old/maybe/any; immer noch/schon/gut/so/mehr/wieder/langsam; immer mit der;
nie mehr/wieder/im/gesehen/gehört/so; nunca lo/he/había/me/mejor/más
"""

_COMES_OUT = """
i've/have/i fixed/added/updated/created/implemented/removed/replaced/written/refactored/changed/renamed/installed;
i've/have/i found/identified/located/confirmed/verified/completed; tests pass/passed/fail; root cause; caused by;
the cause/issue/problem/bug/fix/solution/answer/error/result/reason is/was/lies; turns out; as a result; next steps;
| in summary/conclusion; | summary/plan/result/conclusion/decision/answer/done |; here's/is the/a/my plan;
the plan is; | step #; i recommend/suggest/propose; we should use; i'll use/implement/create/add/fix/replace;
ursache/problem/fehler ist/war/liegt; ich empfehle; ich habe … behoben/geändert/erstellt/hinzugefügt/gefunden;
le problème est/vient; la cause est; j'ai corrigé/ajouté/créé/modifié/trouvé; je recommande/propose;
el problema es/era/está; la causa es/era; he corregido/añadido/creado/modificado/encontrado; recomiendo
"""
_SAYS_WHEN = """
yesterday; tomorrow; tonight; ago; last/next/this week/weekend/month/year/night/summer/winter/spring/fall/time;
monday; tuesday; wednesday; thursday; friday; saturday; sunday; january; february; april; june; july; august;
september; october; november; december; gestern; vorgestern; heute;
letzte/letzten/letztes/nächste/nächsten/nächstes woche/monat/jahr; montag; dienstag; mittwoch; donnerstag; freitag;
samstag; sonntag; januar; februar; märz; juni; juli; oktober; dezember; demain; aujourd'hui;
semaine/mois/année dernière/dernier/prochaine/prochain; lundi; mardi; mercredi; jeudi; vendredi; samedi; dimanche;
janvier; février; avril; juin; juillet; août; septembre; octobre; novembre; décembre; ayer; mañana;
semana/mes/año pasada/pasado/próxima/próximo; lunes; martes; miércoles; jueves; viernes; sábado; domingo; enero;
febrero; abril; junio; julio; agosto; septiembre; octubre; noviembre; diciembre
"""
_COURTESY = """
you're/are welcome; let me know; happy/glad/here/able to help/assist/hear; how can/may i; great/good question;
i apologize; my apologies; sorry for/about/to/that; anything else; have a great/good/nice; feel free; my pleasure;
how are/have/about you; good/great/nice to see/hear/meet; what's up; how's it; long time no; good luck; take care;
| no problem; | go on/ahead |; makes sense; | i see |; | carry on; | keep going |; well done;
bonne journée/soirée/nuit; guten morgen/abend/tag; gute nacht; bis später/bald/dann; hasta luego/pronto; see you;
gern geschehen; kein problem; wie geht's; sag bescheid; de rien; avec plaisir; comment vas; de nada; con gusto;
avísame
"""
_TABLES = {
    "binds": _BINDS,
    "binds even asked": _BINDS_EVEN_ASKED,
    "likely": _LIKELY,
    "outcome": _COMES_OUT,
    "when": _SAYS_WHEN,
    "courtesy": _COURTESY,
}
_CHATTER = _words("""
ok okay k kk np brb best thanks thank thx ty tysm cheers great cool nice good awesome perfect excellent amazing lovely
sweet wow wonderful fantastic brilliant neat super fine alright right sure yep yeah yup yay lol lmao rofl haha hahaha
hehe hi hello hey hiya bye goodbye goodnight morning evening welcome sorry oops hmm hm ah oh aha mhm continue proceed
interesting understood noted gotcha indeed exactly absolutely definitely worries worry mind problem pleasure congrats
danke toll prima klasse hallo moin tschüss servus genau klar weiter gut schön dank merci salut bonjour bonsoir génial
parfait d'accord bravo gracias hola adiós vale genial perfecto bien bueno claro buenos buenas спасибо привет
""")
_FILLER = _words("""
you so very much a lot the for your that that's it it's is was this all again i i'm too really help my me to no not
never don't got go on ahead there everyone guys man bro dude folks one more looks sounds works what an of well be now
job work helped stuff idea today tomorrow night day afternoon later see have in sehr viel vielen dir ihnen das ist war
ja alles guten tag abend beaucoup très c'est à vous toi tout va kein muchas muy es todo días tardes noches de nada
""")
_GREETINGS = _words("hi hello hey hiya thanks thank bye hallo danke hola gracias salut bonjour merci")

_LEADS = _words("please pls but and also then just bitte aber und dann mais et donc pero y , ; : – — ( !")
_READ_AS = dict.fromkeys(_LEADS, "|")
_READ_AS |= {"nope": "no", "nah": "no", "cannot": "can't", "dont": "don't", "lets": "let's", "im": "i'm", "ive": "i've"}
_SMALL_WORDS = _CHATTER | _FILLER | _LEADS
_COMMON = _SMALL_WORDS | _words(
    "| ^ … with have make how what about are this from at be by for in on to we i you they do"
)

_SHORT, _LOOKED_AT = 100, 2000
_LONG_RESULT = 4000
_MANY_LINES, _TOO_MANY_LINES = 20, 100
_NUMBER = re.compile(r"\d[\d.,:]*")
_TOKEN = re.compile(r"[^\W\d_][\w']*(?:-\w+)*|[0,;:–—(!]")
_BREAK = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_REFUSAL = re.compile(r"^(no|nope|nah|nein|non)[.!]\s+", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n\s*\n")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SAYS = re.compile(r"[^\W_]")
_FEW_WORDS = re.compile(r"[^\s\u3040-\ud7af]{1,16}(?:\s[^\s\u3040-\ud7af]{1,16})?|\S{1,3}")
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")
_FIRST_WORD = re.compile(r"[^\W\d_]+|\d")
_UNIT = r"(?:[€$£¥%°]|(?:k?m|cm|mm|mi|k?g|lbs?|[kKMGT]i?[Bb]|ms|min|mph|kWh?|USD|EUR|px)\b)"
_FILE = r"[\w-]\.(?:py|js|ts|rs|go|c|h|java|sh|sql|md|txt|json|toml|ya?ml|csv|pdf|html)\b"
_HARD = re.compile(rf"\d\s?{_UNIT}|[€$£¥]\s?\d|https?://|`|\w/\w+[/.]\w|{_FILE}|\w_\w|[a-z][A-Z]\w")
_LEVEL = r"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b"
_MACHINE = re.compile(
    rf"\W*(?:\d+[-/.]\d\d[-/.]\d\d[T ,]+)?\d\d:\d\d:\d\d|{_LEVEL}|\S+\s+\[?{_LEVEL}[\]:|]"
    r"|\s*(?:at \S+\(|File \"|\[(?!\[)|[{}<|>]|\$ |//|Traceback)"
)
_FAILED = re.compile(r"\s*(?:\w*(?:Error|Exception)\b|error\b|ERROR\b|Traceback\b|fatal:|[Ff]ailed\b)")


def priority_of(message: Message, *, is_first: bool = False) -> int:
    """From 1 (may go first) to 10. The first thing the user said is the task, whatever it is."""
    if message.compaction:
        return SUMMARY
    if message.role == "system" or (message.role == "user" and is_first):
        return TASK
    if message.role == "tool":
        return _of_results(message)
    return _of_reply(message) if message.role == "assistant" else _of_user(message)


def weigh(sentence: str) -> int:
    """One sentence on the same scale: binding, telling, normal or chatter."""
    heard = _heard(sentence)
    if _is_binding(sentence, heard):
        return BINDING
    if "outcome" in heard or _is_fact(sentence, heard):
        return TELLING
    return CHATTER if _is_polite(sentence, heard) else NORMAL


def _of_results(message: Message) -> int:
    texts = [result.text for result in message.results] or [message.text]
    if any(result.is_error for result in message.results) or any(_FAILED.match(text) for text in texts):
        return SMALL
    return SMALL if sum(map(len, texts)) > _LONG_RESULT else MINOR


def _of_reply(message: Message) -> int:
    text = _looked_at(message.text)
    if not text.strip():
        return MINOR if message.calls else SMALL
    said = [(sentence, _heard(sentence)) for sentence in _sentences(_FENCED.sub("\n\n", text))]
    if any("outcome" in heard or _is_binding(sentence, heard) for sentence, heard in said):
        return TELLING
    # numbers are everywhere in longer answers; a day or a month in a short one is news
    if len(text) <= 4 * _SHORT and any("when" in heard and not _is_asked(sentence) for sentence, heard in said):
        return TELLING
    return _of_the_rest(text, said, SMALL)


def _of_user(message: Message) -> int:
    text = message.text.strip()
    if not _SAYS.search(text[:_LOOKED_AT]):
        return NOTHING if text or not message.blocks else NORMAL
    said = [(sentence, _heard(sentence)) for sentence in _sentences(_own_words(text))]
    binding = sum(_is_binding(*each) for each in said)
    if binding:
        return BINDING if binding == 1 else BINDING + 1
    if len(text) <= _LOOKED_AT and (_HARD.search(text) or any(_is_fact(*each) for each in said)):
        return TELLING
    return _of_the_rest(text, said, CHATTER)


def _of_the_rest(text: str, said: Sequence[Heard], small_talk: int) -> int:
    """What no cue has placed: small talk, a word or two, a mere reaction, or something normal."""
    if not said or len(text) > 2 * _SHORT:
        return NORMAL
    if all(_is_polite(*each) for each in said):
        return small_talk
    if _FEW_WORDS.fullmatch(text.strip()):
        return MINOR if _is_asked(text) else SMALL
    return MINOR if all(_is_reaction(*each) for each in said) else NORMAL


def _is_polite(sentence: str, heard: frozenset[str]) -> bool:
    return "chatter" in heard or ("courtesy" in heard and len(sentence) <= _SHORT)


def _is_reaction(sentence: str, heard: frozenset[str]) -> bool:
    """ "That sounds like fun!" """
    first = _TOKEN.match(sentence.lower())
    return "chatter" in heard or (sentence.endswith("!") and first is not None and first[0] in _SMALL_WORDS)


def _is_asked(sentence: str) -> bool:
    return sentence.rstrip("\"')*_ ").endswith(("?", "？"))


def _is_fact(sentence: str, heard: frozenset[str]) -> bool:
    return ("when" in heard or "number" in heard) and not _is_asked(sentence)


def _is_binding(sentence: str, heard: frozenset[str]) -> bool:
    return "binds even asked" in heard or (not _is_asked(sentence) and ("binds" in heard or "likely" in heard))


def _looked_at(text: str) -> str:
    return text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n\n{text[-_LOOKED_AT:]}"


def _own_words(text: str) -> str:
    """What was written, not pasted: of a log or a long document only what stands before and after it."""
    if len(text) <= _SHORT:
        return text
    seen = _FENCED.sub("\n\n", _looked_at(text))
    if len(text) <= 2 * _LOOKED_AT and not _is_pasted(seen.splitlines()):
        return seen
    around = [part for part in _PARAGRAPH.split(seen) if part.strip()]
    return "\n".join(part for part in (around[0], around[-1]) if part.count("\n") < 3) if len(around) > 1 else ""


def _is_pasted(lines: list[str]) -> bool:
    """Lines that a machine wrote, or that nearly all begin alike."""
    lines = [_BULLET.sub("", line) for line in lines if line.strip()]
    if len(lines) <= _MANY_LINES:
        return False
    firsts = Counter(found[0] for line in lines if (found := _FIRST_WORD.search(line)))
    machine = sum(_MACHINE.match(line) is not None for line in lines)
    return len(lines) > _TOO_MANY_LINES or 2 * max(firsts.values(), default=0) > len(lines) or 3 * machine > len(lines)


def _sentences(text: str) -> list[str]:
    """Good enough to tell a question from a statement. A "No." belongs to what is wanted instead."""
    if text.startswith(("n", "N")):
        text = _REFUSAL.sub(r"\1, ", text, count=1)
    return [part for part in _BREAK.split(text) if part and not _MACHINE.match(part)]


def _heard(sentence: str) -> frozenset[str]:
    """The kinds of cue in a sentence."""
    tokens = _TOKEN.findall(_NUMBER.sub("0", sentence.lower().replace("’", "'")))
    heard = _found(tokens, _cues())
    if "likely" in heard and _found(tokens, _harmless()):
        heard -= {"likely"}
    if "0" in tokens:
        heard |= {"number"}
    if len(sentence) <= _SHORT and _is_chatter(sentence, tokens):
        heard |= {"chatter"}
    return heard


def _found(tokens: Sequence[str], cues: Cues) -> frozenset[str]:
    candidates = [cue for word in set(tokens) if word in cues for cue in cues[word]]
    spoken = _spoken(tokens) if candidates else ""
    return frozenset([cue.kind for cue in candidates if cue.phrase in spoken and _goes_on(spoken, cue)])


def _is_chatter(sentence: str, tokens: Sequence[str]) -> bool:
    """Thanks, greetings, applause, "go on": nothing would be missed. A name may follow a greeting."""
    others = [token for token in tokens if token not in _SMALL_WORDS]
    if len(others) == 1 and len(tokens) < 6 and tokens[0] in _GREETINGS:
        others = [token for token in others if token.capitalize() not in sentence]
    return not others and (not tokens or any(token in _CHATTER for token in tokens))


def _goes_on(spoken: str, cue: Cue) -> bool:
    at = spoken.find(cue.phrase) if cue.rest else 0
    for piece in cue.rest:
        at = spoken.find(piece, at + 1)
        if at < 0:
            return False
    return True


def _spoken(tokens: Sequence[str]) -> str:
    """The words with a space around each, in the signs of the tables."""
    spoken = f" ^ | {' '.join([_READ_AS.get(token, token) for token in tokens])} | "
    while " | | " in spoken:
        spoken = spoken.replace(" | | ", " | ")
    return spoken.replace(" actually | ", " actually ")


@cache
def _cues() -> Cues:
    return _by_word(_TABLES)


@cache
def _harmless() -> Cues:
    return _by_word({"harmless": _HARMLESS})


def _by_word(tables: Mapping[str, str]) -> Cues:
    """By the word that tells most, so that few are looked at; made when first needed, not by every command."""
    found: dict[str, list[Cue]] = {}
    for kind, table in tables.items():
        for phrase in table.replace("#", "0").split(";"):
            for words in product(*(choice.split("/") for choice in phrase.split())):
                first, *rest = (f" {piece.strip()} " for piece in " ".join(words).split("…"))
                word = max(words, key=lambda word: (word not in _COMMON, len(word)))
                found.setdefault(word, []).append(Cue(kind, first, tuple(rest)))
    return found | {written: found[read] for written, read in _READ_AS.items() if read in found}
