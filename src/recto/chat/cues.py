"""Cues: phrases that classify the sentence they occur in, in eight languages, and the search for them."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

from msgspec import Struct

from recto.chat import cue_phrases
from recto.text import text_cache


class Cue(Struct, frozen=True):
    """A phrase that classifies its sentence. `phrase` is its beginning; the parts in `rest` follow after gaps."""

    kind: str
    phrase: str
    rest: tuple[str, ...]


Cues = Mapping[str, Sequence[Cue]]


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
deadline is/was; is/are due; no one/body may/can/should; nobody may/should/is;
| don't/not … before/until/without; do not … before/until/without;
need/want/send/submit/deliver/finish/ready/done/pay/file/ship … by/before monday/tuesday/wednesday/thursday/friday;
need/want/send/submit/deliver/finish/ready/done/pay/file/ship … by/before saturday/sunday/tomorrow/tonight/noon/#;
the/your/my/our/new/next task/job/goal/aim/objective/assignment is; your/my/our/new/next task |; at most/least #;
no/not more/less/longer/later/fewer than;
under/below/within/max # words/lines/pages/characters/minutes/seconds; limit/limited it/this/them/to; limit is;
no circumstances; only … allowed; insists on; | stick to/with; not exceed; forbid/forbids;
| answer/reply/respond/write/use only; | ignore the/my/that/this; is important that; rule/requirement/constraint is/|;
need/want it/this/them by/before/until/in/as; ^ | important |; that's/it's/you're wrong/incorrect;
that/this/it/answer/result is/was wrong/incorrect; that's/this/that/it's/it not/isn't right/correct;
is not right/correct; still wrong; not what i;
wrong file/one/branch/version/folder/table/function/date/name/page/number/day/address/order/line; i was wrong;
it's/is spelled; you/you've misunderstood/misread; scratch that; on second thought/thoughts; correction |;
my mistake |; made a mistake |; got that/it/this wrong;
was/is/been/has moved/postponed/changed/raised/lowered/increased/reduced/shifted to; went up/down to #; instead of #;
not # | #; is/are now #; make that/it #; ^ | update |; i/we changed it/that;
changed my/our mind; change of plan/plans; told/asked you to/not; i asked for; didn't/never ask/asked for;
| use/take/write/call … | not; i said … | not; | undo/revert that/this/it/the/my/your/all;
actually use/make/change/keep/put/no/let's/we/don't/never; actually it should; actually i want/need/prefer/wanted;
| no | i said/want/need/asked/wanted; | no | go with/back;
| no | use/make/keep/put/take/leave/change/revert/undo/only/let's/don't; | no | it's the/in/on/called/#;
| no | the other/second/first/right/correct/one; | no | not the/that/this/in/on/like; | no | do the/it/not;
| no | we use/need/want/should; | no | it should; | use/take/put/write/call/make/choose/try … instead;
instead of … use/take/put/write/call; let's use/choose/pick/drop/postpone/switch; let's go/stick/start/stay with;
let's stick to; we're/i'm taking; keep your/the/all answers/replies/messages/texts;
words/lines/pages/sentences/characters at most; have until; i like … best/better; let's skip/leave/move it/the;
let's keep the; let's keep it simple/short/as/in/at/like/under;
let's call/name it; let's do it in/with; | i/we choose/pick; i've/we've/have chosen/picked; i'll take the;
let's go for option/plan/the; go/going with option/plan/version; | go with the;
we'll/i'll/will use/choose/pick/go/stick the/with/option/#; we'll/will switch to; we'll/i'll use;
decided/agreed to/on/that/against/upon/not; i/we/they/he/she/i've/we've/have decided/agreed;
was/were/been decided/agreed; settled on; we're/i'm/are going with; | decision |; decision is/was;
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
haben/habe/hat … entschieden; stattdessen;
haben/habe/hat/hatten/wurde/ist/wird … beschlossen/vereinbart/abgemacht/festgelegt;
haben/habe/hat/hatten/wurde/ist/wird … ausgemacht/verabredet; nie/niemals/nicht/erst vor/nach/ab #; geirrt;
nicht # | sondern; nicht # sondern; statt #; sind/ist jetzt #;
ahora somos/son/es #; al final somos/son #; darf nichts/niemand/keiner; haben/habe/hast/habt bis … zeit;
gefällt … besser/besten; abgabe/abgabetermin/termin/stichtag ist; fällig am/bis/#; mir … lieber;
die/deine/meine/unsere/neue/nächste aufgabe/ziel ist/lautet/|; das ziel ist;
wurde/ist auf … verschoben/erhöht/gesenkt; möchte/würde/hätte/nehme lieber; doch lieber; ich bevorzuge;
frist ist/endet/läuft; spätestens bis/am/um/#; höchstens/mindestens/maximal #;
il faut pas/toujours/absolument/utiliser/garder/éviter; il ne faut; ne doit/doivent/dois/devez pas/jamais;
on/nous/tu/vous/il/elle/ça doit/devons/dois/devez toujours/utiliser/garder/livrer/rester/finir;
| ne touche/touchez/modifie/modifiez/change/changez/supprime/supprimez/fais/mets pas/jamais/plus; surtout pas;
| n'utilise/n'utilisez/n'ajoute/n'efface/n'écris pas/jamais/plus; utilise/utilisez/réponds/écris toujours;
je voulais dire; c'est faux; ce n'est pas ça/correct/ce; tu t'es trompé; mauvais fichier; c'est obligatoire/interdit;
| non | utilise/prends/plutôt/garde/mets/l'autre/on/il; | non | je voulais/veux/préfère; | non | c'est le/la/pas;
avons/ont/a/ai convenu; mis d'accord; | ne … jamais; ne/n'appelle/n'envoie/n'ouvre/pas/jamais … avant #;
n'appelle/n'envoie/n'ouvre/n'écris jamais/pas; me suis trompé/trompée; pas # | #; au lieu de #; personne ne doit/peut;
avons/as/avez jusqu'au/jusqu'à;
il faut/doit … avant/pour lundi/mardi/mercredi/jeudi/vendredi/samedi/dimanche/le/#; est/sont reporté/reportée à/au;
la/ta/ma/notre/votre/nouvelle tâche/mission est/|; l'objectif/but est; on prend/choisit/garde; je choisis/préfère;
on part sur; prenons; partons sur; j'ai/avons/a décidé; date limite; au plus tard; au maximum/moins #; maximum #;
decidí/decidió/decidieron/acordamos/acordé/acordaron que/usar/en/no;
acordamos/acordaron … que; he/hemos/han/se acordado/acordó;
no/nunca/jamás … antes de/del; | no … a nadie; | no … | sino; | no … sino; en vez/lugar de #; me equivoqué;
nadie puede/debe; tenemos/tienes/tengo hasta; me gusta … más;
| no llames/envíes/mandes/digas/publiques/compartas/abras/subas/muevas; hay/tiene/tienes/tenemos que … antes;
plazo es/termina/vence/acaba; la/tu/mi/nuestra/nueva tarea/misión es/|; el objetivo/objetivo es; se cambia/mueve a/al;
prohibido; prohibida; prohibidos; prohibidas; verboten; untersagt; | interdit de; est/sont interdit/interdite;
| défense de; is/are banned; auf gar keinen fall; |/absolutely nothing with/from/after; | nichts mit/vor/nach;
| seguimos/seguiremos/continuamos/sigo con/en/usando; mantenemos; on/nous reste/restons/gardons sur/avec/chez/le/la;
| acuérdate/acordaos/acuérdese/recuerda/recordad/recuérdame de/que/traer/llevar/llamar/pagar; recordarme;
| pense/pensez à; | rappelle-moi/rappelez-moi; remind me to/that/of/about/|; | remember to; erinnere/erinner mich;
| denk/denkt/denke an/dran/daran; | denk/denkt/denke … an den/die/das/dein/meine/deine;
is/was/been/got/are cancelled/canceled; called off; fell through; hat/haben/ist/wurde/wird … abgesagt/storniert;
fällt/fallen aus; fällt/fallen … aus |; entfällt; se cancela/canceló/anula/anuló/suspende/aplaza;
está/fue cancelado/cancelada; est/été annulé/annulée; tombe à l'eau; cambio de plan/planes;
changement de plan/programme; planänderung;
moved/postponed/shifted/delayed/rescheduled to monday/tuesday/wednesday/thursday/friday/#;
i/we won't pay/use/accept/take/do/buy; i/we refuse to; we don't want; i don't want any/a/the/to/it/this;
no quiero/queremos; no voy/vamos a pagar/usar/hacer/aceptar/comprar/ir;
je/nous/on ne veux/voulons/veut pas/aucun/aucune/plus;
pas/jamais plus/moins de; nicht/kein mehr/weniger/länger/später als; no más/menos de;
ne décide/décidez rien/pas; | no … sin que;
no me/lo/la/le/les/nos cambies/toques/borres/mandes/digas/cambiéis/toquéis/borréis/mandéis/digáis;
i/we/i've/we've booked/signed/accepted/reserved/hired/quit/resigned; haben/habe … zugesagt/unterschrieben/gebucht;
hemos/he firmado/aceptado/reservado/dimitido; on a signé/accepté/réservé; j'ai/avons signé/accepté/réservé;
is/are off the table; is/are/it's out |; is/are ruled out; fliegt/fliegen/ist/sind raus |; also raus |;
est/sont éliminé/éliminée/exclu/exclue; éliminé/éliminée |; queda/quedan/está/están fuera |; descartado/descartada |;
| ok/okay decided |; going with; je prends; me quedo con; | dann/also lieber;
i'd rather you didn't/not; ni se graba/toca/publica/menciona; | règle/regla/regel |; jamais |;
kommt/kommen nicht in frage; ni hablar de; hors de question;
ich/wir will/wollen/möchte/möchten kein/keine/keinen/nicht; niemand darf/soll; bloß/ja nicht |/die/den/das/zu/mit/über;
no debe/deben/debes/debemos; debe/deben/debemos usar/estar/funcionar/entregar/terminar/quedar; me refería;
hay que usar/hacer/evitar; tiene/tienen que estar/ser/funcionar/usar; quería/quise decir; está mal; eso no es;
| no toques/uses/cambies/modifiques/borres/utilices/escribas/hagas/elimines; te equivocas/equivocaste;
| siempre usa/responde/utiliza/escribe/contesta; usa/responde/utiliza/escribe siempre; | no | el/la otro/otra;
| no | usa/utiliza/quiero/mejor/pon/haz; vamos con; usemos; elijo; hemos/he decidido; decidimos; nos quedamos con;
prefiero; fecha límite; a más tardar; como máximo; al menos #; está prohibido; es obligatorio;
kann/können/darf/dürfen … nicht weg/gelöscht/raus; kann/können nicht weg; muss/müssen … aufbewahrt/zustimmen/bleiben;
can't/cannot be deleted/removed/changed/moved; can't/cannot go |; must stay; has/have to stay; kan/kunnen niet weg;
no se puede/pueden borrar/tirar/cambiar/mover; ne peut/peuvent pas être/partir;
moet/moeten/mag/mogen niet/nooit/alleen/altijd/uiterlijk; mag/mogen … niet/geen; in geen geval; onder geen beding;
moet/moeten … voor/uiterlijk/af/klaar/leeg/binnen #; moet/moeten … binnen/klaar/af/leeg/mee zijn/|; moet mee |;
^ | en niet/geen/nooit; | niet … voor/zonder;
| niet bellen/parkeren/gebruiken/aanraken/wissen/verwijderen/wijzigen; | bel/mail/stuur … niet;
| gebruik/neem/schrijf/stuur/wijzig nooit/altijd/alleen/geen/niet; we/wij kiezen/nemen; kiezen/nemen we;
wordt/blijft het; het wordt; hebben/heb/heeft … besloten/afgesproken/gekozen/geboekt/getekend; besloten/afgesproken |;
klopt niet; is/was/staat fout/verkeerd/onjuist; foutje |; correctie |; niet # maar; niet de … maar; in plaats van #;
wordt/is/werd verzet/verplaatst/verschoven naar; is/zijn verboden/verplicht/afgezegd/geannuleerd; gaat niet door;
uiterlijk #/op/voor; maximaal/minimaal/hoogstens/minstens/hooguit #; ik/we/wij wil/willen geen/niet/liever;
liever niet/geen; niemand mag; dat vind/vinden/doe/doen ik/we niet; ik/we ga/gaan … akkoord; doe maar nummer/optie/de
"""
_BINDS_EVEN_ASKED = """
open question/questions/issue/issues/point/points/item/items |; open question/questions/issue/point is; tbd;
still open |/who/whether/which/what/if/how/when; still undecided/unclear/unresolved; remains open/unclear;
still need/have to find/decide/figure/clarify/agree; decided yet; to be decided/confirmed/clarified/determined;
know/sure yet who/whether/what/if/how/when/which/where; noch offen; | offen ist/bleibt; offene frage/fragen/punkte;
noch zu klären;
noch nicht entschieden/geklärt/klar/sicher; wissen/weiß/wissen noch nicht; ungeklärt;
todavía/aún no sabemos/sé/sabe/está/hemos/se; queda/falta por/decidir; está/están/queda/quedan pendiente/pendientes;
pregunta/cuestión abierta/pendiente; sin decidir; reste à décider/savoir/voir/définir; pas encore décidé/clair;
ne sait/savons/sais pas encore; question/questions ouverte/ouvertes; en suspens;
from now/today/tomorrow on; as of now/today/tomorrow; | going forward |; ^ | in future |; ^ | in the future |;
keep/bear in mind;
for the record; for future reference; | fyi; | note that; | note |; don't/not forget that/the/my/our;
don't/not forget to use/run/add/write/call/check/include/update/test; budget is/of/#; budget | #;
i'm/am allergic/intolerant/vegan/vegetarian/diabetic/pregnant/colorblind/celiac/deaf/blind/left-handed;
i'm/am a/also/severely/very vegan/vegetarian/diabetic/allergic; i'm/am # years; my name/email/address/birthday is;
my phone/account/user number/name is; my number/deadline/timezone/username/salary is; my time zone is; i live in;
i work at/for/as; i was born; i don't/can't/never eat/drink; i only speak/eat/drink/use;
react/reacts badly/allergically to;
can't have gluten/dairy/nuts/lactose/alcohol/meat; i have diabetes/asthma/celiac; am/i'm … intolerant; my … name is;
ab jetzt/sofort/heute/morgen; von nun an; ^ | künftig; ^ | in zukunft |; in zukunft immer/nie/nur/nicht/keine;
merk/merke dir; denk/denke daran/dran; vergiss nicht; | beachte; | wichtig |; budget ist/beträgt/liegt;
mein/meine name/adresse/frist/e-mail/geburtstag ist/lautet; ich wohne/arbeite in/bei/als;
ich bin allergisch/vegetarier/vegetarierin/veganer/veganerin/vegan/schwanger/diabetiker;
désormais; dorénavant; à partir de maintenant; à partir d'aujourd'hui/demain; n'oublie/n'oubliez pas; souviens-toi;
rappelle-toi; note/notez que;
je suis allergique/végétarien/végétarienne/végane/enceinte/diabétique; budget est; mon nom/adresse/anniversaire est;
j'habite à/en/au;
a partir de ahora/hoy/mañana; de ahora en adelante; recuerda/recuerde/recuerden que/|; presupuesto es/de/#;
ten/tenga en cuenta; no olvides; no te olvides;
soy alérgico/alérgica/vegetariano/vegetariana/vegano/vegana/diabético/diabética/celíaco/celíaca;
vivo en; mi nombre/dirección/correo/cumpleaños es;
is/are/he's/she's/also/severely/very allergic/intolerant/celiac/diabetic/pregnant; is/are/he's/she's vegan/vegetarian;
he/she/they/who can't/doesn't/don't eat/drink/tolerate; has/have a … allergy/intolerance;
ist/sind/er/sie/auch allergisch/vegetarier/vegetarierin/veganer/veganerin/schwanger/diabetiker/diabetikerin;
verträgt/vertragen/vertrage/isst/trinkt kein/keine/keinen/nicht; hat/habe eine … allergie/unverträglichkeit;
es/son alérgico/alérgica/vegetariano/vegetariana/vegano/vegana/diabético/diabética/celíaco/celíaca;
ahora/también soy vegetariano/vegetariana/vegano/vegana; no tolera/tolero/toleran;
no puede/puedo/pueden comer/tomar/beber; alergia a/al;
est/sont/aussi allergique/végétarien/végétarienne/végane/diabétique/enceinte; supporte/tolère/mange/boit pas;
vanaf nu/vandaag/morgen; voortaan; vergeet niet; denk/let eraan/erop/aan; budget/budget voor … is; nog niet besloten;
ben/is/zijn allergisch/vegetariër/veganist/zwanger/slechthorend/diabeet; weet/weten nog niet; nog niet duidelijk/zeker;
mijn naam/adres/verjaardag is; ik woon in; eet/eten/drinkt/verdraagt geen
"""

# These bind, unless the sentence also holds one of the harmless phrases below.
_LIKELY = """
must; ^ | never/always; | stop; | don't; so don't; | do not; | make/be sure; | ensure;
^ | remember that/to/my/i'm/i/we/the/our/|; we never;
| never/always use/push/commit/delete/write/answer/change/run/ask/add/call/put/return/store/include/reply/send/touch;
it's/we're/are # … now |; | # … now |; i/we meant; | call me; can call me; let's not; ^ | nie/niemals/immer;
we/i will/shall never; wir … niemals; on/nous ne … jamais; | kein/keine/keinen/keinerlei;
also/und/dann kein/keine/keinen; ^ | nicht; also nicht; ^ | nunca/jamás; | nada de; ^ | nooit; | geen; dus geen
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
it's # now; mention it |; stop it/that/by/here/there/at/in/worrying/laughing/|;
sure to/you have/enjoy/rest/take/get; sure thing; be sure |;
remember that/to time/day/one/trip/night/guy/summer/place/have/smile/breathe/enjoy/take/rest/be;
remember we/i were/had/went/used/was; i/we meant to/it/well/so/by/what; let's not forget/worry;
call me when/if/later/back/tomorrow/crazy/old/maybe/any; immer noch/schon/gut/so/mehr/wieder/langsam; immer mit der;
nie mehr/wieder/im/gesehen/gehört/so/wiem/ma/mam/jest; kein problem/ding/thema/stress/wunder;
keine/keinen ahnung/sorge/frage/ursache/zeit/lust/angst/panik/idee/bock; nunca lo/he/había/me/mejor/más;
keine/kein/keinen mehr/große/großen/weitere/weiteren/schlechte/einfache/rolle/eile/scherz/witz/ende;
nicht schlecht/wirklich/so/ganz/nur/dass/wahr/gut/viel/sicher/jeder/weil/mehr/ich/immer/einmal/mal/zu/der/das;
also/dann nicht |; nada de eso/esto/nada/particular/especial;
geen probleem/idee/zorgen/tijd/zin/haast/dank/punt/bericht/last/reactie/antwoord; nooit gedacht/eerder/meer/gezien
"""

_COMES_OUT = """
i've/have/i fixed/added/updated/created/implemented/removed/replaced/written/refactored/changed/renamed/installed;
i've/have/i found/identified/located/confirmed/verified/completed; tests pass/passed/fail; root cause; caused by;
the cause/issue/problem/bug/fix/solution/answer/error/result/reason is/was/lies; turns out; as a result; next steps;
| in summary/conclusion; | summary/plan/result/conclusion/decision/answer/done |; here's/is the/a/my plan;
the plan is; | step #; i recommend/suggest/propose; we should use; i'll use/implement/create/add/fix/replace;
ursache/problem/fehler ist/war/liegt; ich empfehle; ich habe … behoben/geändert/erstellt/hinzugefügt/gefunden;
le problème est/vient; la cause est; j'ai corrigé/ajouté/créé/modifié/trouvé; je recommande/propose;
el problema es/era/está; la causa es/era; he corregido/añadido/creado/modificado/encontrado; recomiendo;
i/we/i've/we've/have ordered/bought/paid/submitted/sent; haben/habe … bestellt/gekauft/bezahlt/eingereicht;
hemos/he comprado/pagado/entregado/pedido; on a acheté/commandé/payé; j'ai/avons acheté/commandé/payé;
oorzaak/probleem/fout is/was/zit; ik heb … aangepast/opgelost/toegevoegd/gevonden/gewijzigd;
heb/hebben … gekocht/betaald/besteld/verstuurd
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
febrero; abril; junio; julio; agosto; septiembre; octubre; noviembre; diciembre; gisteren; vandaag; maandag; dinsdag;
woensdag; donderdag; vrijdag; zaterdag; zondag; januari; februari; maart; mei; augustus;
volgende/vorige/afgelopen week/maand/jaar
"""
_COURTESY = """
you're/are welcome; let me know; happy/glad/here/able to help/assist/hear; how can/may i; great/good question;
i apologize; my apologies; sorry for/about/to/that; there/with/need anything else; | anything else;
have a great/good/nice/lovely/wonderful/safe; feel free; my pleasure;
how are/have/about you; good/great/nice to see/hear/meet; what's up; how's it; long time no; good luck; take care;
| no problem; | go on/ahead |; makes sense; | i see |; | carry on; | keep going |; well done;
bonne journée/soirée/nuit; guten morgen/abend/tag; gute nacht; bis später/bald/dann; hasta luego/pronto; see you;
gern geschehen; kein problem; wie geht's; sag bescheid; de rien; avec plaisir; comment vas; de nada; con gusto; avísame;
schönen tag/abend/urlaub/feierabend; schönes wochenende; alles gute für/und/|; viel erfolg/spaß/glück; drücke … daumen;
buen día/viaje/fin; mucha suerte; que te/le/os vaya; bon courage/voyage/week-end; bonne chance/continuation;
good/great/excellent/nice/wise call/choice/idea/thinking |; gute/tolle/ausgezeichnete wahl/idee/frage/entscheidung |;
buena/excelente/gran idea/elección/opción/pregunta |; bonne/excellente idée/question |; excellent/bon choix |;
graag gedaan; fijne dag/avond/weekend/vakantie; tot ziens/snel; veel plezier/succes; geniet ervan; goede reis;
congratulations on/to/|; herzlichen glückwunsch; felicidades por/|; félicitations pour/|
"""
_TABLES = {
    "binds": f"{_BINDS};{cue_phrases.BINDS};{cue_phrases.ENDS_MATTER};{cue_phrases.WISHES}",
    "binds even asked": f"{_BINDS_EVEN_ASKED};{cue_phrases.BINDS_EVEN_ASKED}",
    "likely": f"{_LIKELY};{cue_phrases.LIKELY}",
    "outcome": f"{_COMES_OUT};{cue_phrases.COMES_OUT}",
    "when": f"{_SAYS_WHEN};{cue_phrases.SAYS_WHEN}",
    "courtesy": _COURTESY,
}
_CHATTER = _words("""
ok okay k kk np brb best thanks thank thx ty tysm cheers great cool nice good awesome perfect excellent amazing lovely
sweet wow wonderful fantastic brilliant neat super fine alright right sure yep yeah yup yay lol lmao rofl haha hahaha
hehe hi hello hey hiya bye goodbye goodnight morning evening welcome sorry oops hmm hm ah oh aha mhm continue proceed
interesting understood noted gotcha indeed exactly absolutely definitely worries worry mind problem pleasure congrats
danke toll prima klasse hallo moin tschüss servus genau klar weiter gut schön dank merci salut bonjour bonsoir génial
hoi dank bedankt top mooi fijn leuk welterusten doei oké goedemorgen goedemiddag parfait d'accord bravo
gracias hola adiós vale genial perfecto bien bueno claro buenos buenas спасибо привет
""")
_FILLER = _words("""
you so very much a lot the for your that that's it it's is was this all again i i'm too really help my me to no not
never don't got go on ahead there everyone guys man bro dude folks one more looks sounds works what an of well be now
job work helps helped helpful stuff idea today tomorrow night day afternoon later see have in sehr viel vielen dir
ihnen das ist war hilft geholfen ayuda ayudó aide aidé m'a me ça ja je u wel heel graag gedaan weer zeg hoor
alles guten tag abend beaucoup très c'est à vous toi tout va kein muchas muy es todo días tardes noches de nada
""")
_GREETINGS = _words("hi hello hey hiya thanks thank bye hallo danke hola gracias salut bonjour merci")

_LEADS = _words(
    "please pls but and also then just bitte aber und dann mais et donc pero y maar dus però ale mas , ; : – — ( !"
)
_READ_AS = dict.fromkeys(_LEADS, "|")
_READ_AS |= {"nope": "no", "nah": "no", "cannot": "can't", "dont": "don't", "lets": "let's", "im": "i'm", "ive": "i've"}
_CHATTER |= _words(cue_phrases.CHATTER)
SMALL_WORDS = _CHATTER | _FILLER | _LEADS
_COMMON = SMALL_WORDS | _words(
    "| ^ … with have make how what about are this from at be by for in on to we i you they do"
)

SHORT = 100
_NUMBER = re.compile(r"\d[\d.,:]*")
TOKEN = re.compile(r"[^\W\d_][\w']*(?:-\w+)*|[0,;:–—(!]")
_WORD = re.compile(r"\w+")
_SPACED = bytes(at if chr(at).isalnum() or chr(at) == "_" else 32 for at in range(256))
_ASCII_TOKEN = re.compile(r"[a-z][a-z0-9_']*(?:-[a-z0-9_]+)*|[0,;:(!]")


@text_cache(8192)  # priorities, sentences and facts are found in the same messages, one after the other
def cues_in(sentence: str) -> frozenset[str]:
    """The kinds of cue in a sentence."""
    tokens = _tokens_of(sentence)
    kinds = _kinds_in(tokens, _cues())
    if "likely" in kinds and _kinds_in(tokens, _harmless()):
        kinds -= {"likely"}
    if "0" in tokens:
        kinds |= {"number"}
    if len(sentence) <= SHORT and _is_chatter(sentence, tokens):
        kinds |= {"chatter"}
    return kinds


@text_cache(8192)
def _tokens_of(sentence: str) -> list[str]:
    text = _NUMBER.sub("0", sentence.lower().replace("’", "'"))
    return (_ASCII_TOKEN if text.isascii() else TOKEN).findall(text)


@text_cache(8192)  # asked of the same sentence by one pattern after the other
def words_of(text: str) -> frozenset[str]:
    """Its words in lower case, cut at apostrophes and hyphens. Most patterns need one of few words, and looking for
    these takes a tenth of the time."""
    lower, spaced = text.lower(), text.isascii()  # bytes are translated in a fifth of the time that a pattern takes
    return frozenset(lower.encode().translate(_SPACED).decode().split() if spaced else _WORD.findall(lower))


def _kinds_in(tokens: Sequence[str], cues: Cues) -> frozenset[str]:
    candidates = [cue for word in cues.keys() & tokens for cue in cues[word]]
    text = _normalize(tokens) if candidates else ""
    return frozenset([cue.kind for cue in candidates if cue.phrase in text and _rest_follows(text, cue)])


def _is_chatter(sentence: str, tokens: Sequence[str]) -> bool:
    """True for thanks, greetings, applause and "go on": nothing would be missed. A name may follow a greeting."""
    if not SMALL_WORDS.issuperset(tokens) and (len(tokens) > 5 or tokens[0] not in _GREETINGS):
        return False  # by far the most
    others = [token for token in tokens if token not in SMALL_WORDS]
    if len(others) == 1 and len(tokens) < 6 and tokens[0] in _GREETINGS:
        others = [token for token in others if token.capitalize() not in sentence]
    return not others and (not tokens or any(token in _CHATTER for token in tokens))


def _rest_follows(text: str, cue: Cue) -> bool:
    at = text.find(cue.phrase) if cue.rest else 0
    for piece in cue.rest:
        at = text.find(piece, at + 1)
        if at < 0:
            return False
    return True


def _normalize(tokens: Sequence[str]) -> str:
    """Joins the tokens with spaces, in the notation of the tables."""
    text = f" ^ | {' '.join(map(_READ_AS.get, tokens, tokens))} | "
    while " | | " in text:
        text = text.replace(" | | ", " | ")
    return text.replace(" actually | ", " actually ")


@cache
def _cues() -> Cues:
    return _by_word(_TABLES)


@cache
def _harmless() -> Cues:
    return _by_word({"harmless": f"{_HARMLESS};{cue_phrases.HARMLESS}"})


def _by_word(tables: Mapping[str, str]) -> Cues:
    """Cues by their rarest word, so that few are compared. Built on first use: most commands need no cues."""
    found: dict[str, list[Cue]] = {}
    for kind, table in tables.items():
        for phrase in table.replace("#", "0").split(";"):
            for words in product(*(choice.split("/") for choice in phrase.split())):
                first, *rest = (f" {piece.strip()} " for piece in " ".join(words).split("…"))
                word = max(words, key=lambda word: (word not in _COMMON, len(word)))
                found.setdefault(word, []).append(Cue(kind, first, tuple(rest)))
    return found | {written: found[read] for written, read in _READ_AS.items() if read in found}
