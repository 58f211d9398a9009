"""Cue phrases in Italian, Polish and Portuguese, and those that end a matter in any language, in the notation of
`recto.chat.cues`, which holds those of the other five languages and knows how they are searched for.
"""

# "Decision: …", "…, final", and what is given up.
ENDS_MATTER = """
^ | decisión/decisão/beslissing/beschluss/entscheidung/decidido/decidida/décision/décidé/besluit |;
| final/decided/decidido/décidé/entschieden/beschlossen/beslist/besloten/postanowione/fix/punktum/basta |;
| forget the/about/that | we/it; forget it | we; we/i don't claim/need/want it/any/them;
that's/is/c'est/está/è/es decided/décidé/decidido/deciso; das/es steht fest;
i/we/i'll/we'll go with; ich/wir nehme/nehmen #; ik/we neem/nemen #;
^ | max #; ok/so/then max #; # max |/for/per/pp; a/the/our/my cap of #; | limit #; limit of #; no further/farther than;
on/je/nous s'interdit/m'interdis; ich/wir verzichte/verzichten auf; renuncio/renunciamos a/al;
rinuncio/rinunciamo a/al/alla/ai/alle/allo; desisto/desistimos de/do/da; we/i scrap/drop/skip/ditch the/our/my/this;
wir streichen/kippen; on supprime/enlève/annule/abandonne; quitamos/eliminamos/suprimimos el/la/los/las;
togliamo/eliminiamo/tagliamo il/la/lo/i/le/gli; skreślamy; wyrzucamy; cortamos/cancelamos o/a/os/as; laten we weg;
non si stampa/pubblica/usa/fa/tocca/invita/vende/serve/mette/apre/compra;
on/nous/je n'invite/n'achète/n'utilise/n'appelle/n'ouvre/n'accepte pas/jamais/plus;
on/nous ne prend/prenons/met/mettons/paie/payons/vend/vendons pas/jamais/plus;
you're/are not to give/tell/call/write/use/send/share/say/ask/contact/mention/change/touch
"""

# What somebody likes or must not have, and how he wants to be spoken to.
WISHES = """
^ | allergy/allergies/allergie/allergien/alergia/alergias/allergia/alergie |; ik ben vega/vegetarisch/veganistisch;
suits/suit me best/better; address me as; use du/sie/tú/usted/vous/tu/lei with/for me; | duzen/siezen |; trátame de;
tutéame; tutoie-moi; vouvoie-moi; dammi/diamoci del tu/lei; trata-me por; mów/mówcie mi; mag/kunt me tutoyeren;
ich mag kein/keine/keinen/nicht; ik hou niet van; no me gusta/gustan; je n'aime pas; non mi piace/piacciono; nie lubię;
não gosto de; | liever; lieber morgens/abends/vormittags/nachmittags/später/früher/nicht;
^ | in/as/with tables/bullets |; as a table |; no need to apologise/apologize/explain/repeat; don't say sorry;
explain … like/as i'm/if;
if i can/could/may choose; if i have the choice; wenn ich wählen kann/darf; si puedo elegir; si je peux choisir;
als ik mag/kan kiezen; se posso scegliere; jeśli mogę wybrać; se puder/pudesse escolher;
skip/drop/omit the intro/introduction/introductions/preamble/greeting/greetings/pleasantries/apologies/explanations
"""

BINDS = """
non si può/possono/deve/devono; non deve/devono/devi/puoi/potete/può/possono/possiamo/vogliamo/voglio;
| non chiamare/usare/toccare/cambiare/cancellare/dire/dirlo/mandare/inviare/invitare/invitate/pubblicare/prenotare;
| non comprare/mettere/aprire/spostare/scrivere/aggiungere/parlare/ditelo/chiamate/usate/dite/scrivete; | niente;
vietato; vietata; | mai prima/dopo/senza/di/più; solo/soltanto/solamente con/se/dopo/prima/per/quando/via;
è/sono obbligatorio/obbligatoria/obbligatori; abbiamo/ho/hanno/ha/hai deciso/scelto/concordato/prenotato/firmato;
abbiamo/ho/hanno/ha accettato/stabilito/disdetto/confermato; mi sono deciso/decisa; | deciso |; decisione |;
| prendiamo; | prendo; si è deciso; andiamo/vado/vada/restiamo/resto/rimaniamo/rimango con/su/da; facciamo con/così;
va/vada per; preferisco; preferiamo; preferirei; preferisce; preferirebbe; ^ | cambio |;
cambio di programma/piano/piani; correzione |; mi sono sbagliato/sbagliata; mi ero sbagliato/sbagliata; | anzi;
invece di/che #; # | non #; # non #; non # | ma; non # ma;
è/sono/viene stato/stata/spostato/spostata/rimandato/rimandata/annullato/annullata al/alla/a/|;
slitta/slittano al/alla/a; è/sono adesso/ora #; adesso/ora siamo/sono/è #; | non più il/la/le/i/#; entro e non oltre;
entro il/la/le/fine/#; entro lunedì/martedì/mercoledì/giovedì/venerdì/sabato/domenica/domani/stasera; la scadenza;
scade il; al massimo; al più tardi; non più/meno di; almeno #; fino a un massimo; ^ | ricorda/ricordati/ricordatevi;
devo ricordarmi; ricordami; d'ora/da in poi; da adesso/ora/oggi; tieni/tenete presente; ^ | attenzione |;
^ | importante |; | regola |; rispondi/rispondimi/scrivi/scrivimi/risposte solo/sempre/brevi/breve/in/senza;
dammi/dimmi sempre/solo; ho/abbiamo bisogno … entro; non mangia/mangio/beve/bevo/mangiano; rinuncio/rinunciamo a;
escluso; esclusa; niente da fare; nie wolno/można/wchodzi/chcę/chcemy/zgadzam/zgadzamy;
nie może/mogą/możemy/możesz/mogę/powinien/powinna/powinno;
| nie dzwoń/dzwońcie/pisz/piszcie/używaj/używajcie/ruszaj/zmieniaj/zmieniajcie/kasuj/usuwaj/mów/mówcie/wysyłaj/kupuj;
| nie rezerwuj/zapraszaj/publikuj/dodawaj/podawaj/otwieraj/bierz/rób/róbcie/proponuj/pytaj/tłumacz; nigdy nie; | nigdy;
| żadnych/żadnego/żadnej/żaden/żadna; tylko po/przed/jeśli/gdy/przez/do/od/dla/mailem/gotówką; zdecydowałem;
zdecydowałam; zdecydowaliśmy; zdecydowałyśmy; zdecydował; zdecydowała; zdecydowali; postanowiliśmy; postanowiłam;
postanowiłem; postanowili; ustaliliśmy; ustaliłyśmy; ustaliłam; ustaliłem; ustalili; ustalone; ustalono; uzgodniliśmy;
uzgodniłam; uzgodniłem; wybraliśmy; wybrałam; wybrałem; wybrałyśmy; zarezerwowałam; zarezerwowałem; zarezerwowaliśmy;
podpisałam; podpisałem; podpisaliśmy; umówiłam; umówiłem; umówiliśmy; | bierzemy; | biorę; | wybieram; wybieramy;
zostajemy/zostaję/zostańmy przy; | decyzja |; decydujemy/decyduję się; niech będzie; stanęło na; | wolę; wolimy;
wolałbym; wolałabym; ^ | zmiana |; zmiana planów; | poprawka |; | korekta |; | pomyłka |; pomyliłam/pomyliłem się;
^ | jednak; zamiast #; # | nie #; # nie #; # | a nie #; nie # | a/tylko/lecz/ale; nie # tylko/lecz; teraz jest/to #;
przesunięty/przesunięta/przesunięte/przesuwam/przesuwamy/przesunęli/przełożony/przełożone/przełożyli/przekładamy … na;
odwołany/odwołana/odwołane/odwołali; najpóźniej; ostateczny termin; termin to/jest/mija; co najmniej/najwyżej;
najwyżej/maksymalnie/minimum/najmniej #; muszę/musimy/musi/muszą/trzeba/mam/mamy … do #; ^ | pamiętaj/pamiętajcie;
przypomnij mi; nie zapomnij/zapomnijcie; od teraz/dziś/dzisiaj/jutra; ^ | ważne |; | zasada |;
pisz/odpowiadaj/odpisuj/odpowiedzi krótko/krótkie/tylko/zawsze/bez/po/na/w; nie je/jem/jada/pije/piję;
rezygnuję/rezygnujemy z;
não podes/vou/vamos aceitar/pagar/usar/comprar/saber/comer/beber/ser/ir/mexer;
não quero/queremos/posso/pode/podem/podemos/deve/devem/devemos; | não ligue/ligues/use/uses/mexa/mexas/mude/mudes;
| não apague/apagues/diga/digas/mande/mandes/convide/convides/envie/envies/compre/compres/reserve/reserves/publique;
só/somente/apenas com/se/depois/antes/por/até/quando/em; proibido; proibida; é obrigatório; decidimos; decidi; decidiu;
decidiram; resolvemos; combinamos que/de/às/para/com; combinámos; combinei; ficou/fica/está combinado/decidido;
ficou/fica/está acertado/fechado/marcado; | combinado |; escolhi; escolhemos; vamos/vou ficar com; vamos/vou com;
fico/ficamos com; reservei; reservamos; reservámos; assinei; assinamos; assinámos; aceitei; aceitamos; prefiro;
preferimos; preferia; prefere; ^ | mudança |; mudança de planos; | correção |; enganei-me; me enganei; | errei;
^ | aliás; na verdade; ^ | afinal; em vez de #; # | não #; # não #; # | e não #; não # | mas/e; não # mas;
agora somos/são/é #; mudou/passou/passa/muda para;
foi/está/ficou adiado/adiada/cancelado/cancelada/remarcado/remarcada; o prazo; prazo é/termina/acaba;
até o/a/ao/às/dia #;
até segunda/terça/quarta/quinta/sexta/sábado/domingo/amanhã;
até segunda-feira/terça-feira/quarta-feira/quinta-feira/sexta-feira;
no máximo; no mínimo; pelo menos #; o mais tardar; não mais/menos de; não mais/menos que;
^ | lembra-te/lembre-se/lembra; lembre-me/lembra-me; me lembre/lembra; não esqueça/esqueças/esquece/te;
a partir de agora/hoje/amanhã; de agora em diante;
responda/responde/responde-me/escreva/escreve/respostas só/sempre/curto/curtas/curta/em/sem; ^ | importante |;
| regra |; não come/como/bebe/bebo/comem; fora de questão; desisto/desistimos de
"""

BINDS_EVEN_ASKED = """
non sappiamo/so/sa/si ancora; ancora non sappiamo/so/sa/si; ancora da decidere/definire/chiarire/capire; resta da;
da decidere |; da chiarire |; da definire |; non è/abbiamo/ho ancora chiaro/deciso/scelto/stabilito; mi chiamo;
abito a/in;
sono/è/siamo allergico/allergica/celiaco/celiaca/vegetariano/vegetariana/vegano/vegana/diabetico/diabetica/intollerante;
sono/è incinta; allergia a/al/alle/alla/ai; budget è/di/#; il mio/nostro indirizzo/numero/nome è;
jeszcze nie wiem/wiemy/wiadomo/zdecydowaliśmy/ustaliliśmy/wybraliśmy/zdecydowane;
nie wiem/wiemy/wiadomo jeszcze/czy/kto; nie wiadomo |/kiedy/ile/gdzie; do ustalenia;
trzeba/muszę/musimy jeszcze ustalić/sprawdzić/zapytać/zdecydować; otwarte pytanie;
uczulony/uczulona/uczuleni/uczulenie na; alergię/alergia/alergii na;
jest/jestem wegetarianinem/wegetarianką/weganką/weganinem; jest/jestem cukrzykiem/diabetykiem/diabetyczką;
nie toleruje/toleruję; budżet to/wynosi/jest/#/|; nazywam się; mieszkam w; ainda não sabemos/sei/decidimos/está/foi/se;
não sabemos/sei ainda; falta/resta decidir/saber/definir; por decidir/definir; em aberto |; a definir |;
sou/é/são/somos alérgico/alérgica/celíaco/celíaca/vegetariano/vegetariana/vegano/vegana/diabético;
sou/é diabética/intolerante; alergia a/ao/à; orçamento é/de/#/|; meu/minha/o nome/endereço/número é; moro em/no/na
"""

COMES_OUT = """
ho/abbiamo ordinato/comprato/pagato/inviato/spedito/consegnato; il problema è/era; la causa è/era; kupiłam; kupiłem;
kupiliśmy; zamówiłam; zamówiłem; zamówiliśmy; zapłaciłam; zapłaciłem; zapłaciliśmy; wysłałam; wysłałem;
problemem jest/był; przyczyną jest/była; comprei; compramos; paguei; pagamos; enviei; enviamos; encomendei;
encomendamos; o problema é/era; a causa é/era
"""

SAYS_WHEN = """
ieri; domani; stasera; dopodomani; lunedì; martedì; mercoledì; giovedì; venerdì; sabato; domenica; gennaio; febbraio;
aprile; maggio; giugno; luglio; settembre; ottobre; dicembre; settimana/mese/anno scorsa/scorso/prossima/prossimo;
wczoraj; jutro; pojutrze; poniedziałek; poniedziałku; wtorek; środa; środę; czwartek; piątek; sobota; sobotę;
niedziela; niedzielę; stycznia; lutego; marca; kwietnia; maja; czerwca; lipca; sierpnia; września; października;
listopada; grudnia; ontem; amanhã; segunda-feira; terça-feira; quarta-feira; quinta-feira; sexta-feira; janeiro;
fevereiro; março; maio; junho; julho; setembro; outubro; dezembro; semana/mês/ano passada/passado/próxima/próximo
"""

LIKELY = """
| senza; | bez; | sem; | só; ^ | mai; | mai; so/ok/okay never; ^ | zero;
i hate/dislike; can't stand; odio el/la/los/las; je déteste; ik haat;
^ | nessun/nessuno/nessuna/nessun'altra/nenhum/nenhuma
"""

HARMLESS = """
senza dubbio/problemi/problema/fretta/parole/contare/dire; mai visto/sentito/stato/stata/pensato/dire;
bez problemu/sensu/przesady/pośpiechu/wątpienia; sem problema/problemas/dúvida/pressa/dizer/falta;
só que/um/isso/assim; hate/haat this/that/these/those/it/you/him/her/them/to/when/my/the/being/dit/dat/het/deze;
déteste ça/cela/le/la/quand; can't stand this/it/him/her/them/the/you;
kein/keine/keinen schmerzen/fieber/antwort/probleme/fehler/beschwerden/reaktion/nachricht/rückmeldung/schwellung;
geen pijn/koorts/klachten/problemen/fouten/lek/zwelling; niente febbre/dolore/dolori/tosse/errori;
bez bólu/gorączki/zmian/błędów; żadnego/żadnych bólu/błędów/objawów/problemów; sem dor/dores/febre/resposta/erros;
mai più/una/un/avuto/fatto/provato/successo/come/e; zero idea/ideas/clue/chance/chances/problem/problems/problemas;
zero errors/warnings/pain/bugs/issues/stress/results/hits/failures/tolerance/sense/dolore/dor/dolor/degrees;
nessun/nessuno/nessuna problema/idea/notizia/risposta/fretta/dubbio/novità/dolore/errore/lo/sa/ha/mi;
nenhum/nenhuma problema/ideia/notícia/resposta/pressa/dúvida/novidade/dor/erro;
nie wiem/ma/mam/jest/rozumiem/szkodzi/pamiętam/trzeba/wiedziałam/wiedziałem/mogę/sądzę/było/tak/bardzo/do/ja/to
"""

CHATTER = """
grazie ciao prego perfetto ottimo ottima bene benissimo bello certo volentieri capito figurati buongiorno buonasera
dziękuję dzięki cześć hej dobrze świetnie jasne rozumiem super spoko miło obrigado obrigada olá oi tchau ótimo ótima
perfeito entendido beleza valeu certo tranquilo
"""
