"""Words that anyone says about anything: found in two texts they tell little, or nothing."""

from recto.search.terms import STOP

_COMMON = """
    ability able above according across actual add after again against ago agree ahead all allow allowed almost
    along already also am although always among amount another answer any anyone anything apart appear around ask
    asked available away back bad based become before begin behind below beside besides best better between beyond
    big bit book both bring build call called cannot care careful carry case certain chance change check choose
    clear close closed come common complete consider contain copy correct cost course create current cut data date
    day days deal decide default depend detail different difficult direct do does doing done down during each early
    easy either else end enough ensure especially even ever every everyone everything exact example except exist
    expect explain extra fact far fast feel few file fill final find fine finish first fit follow following form
    former forward found four free full further gain general get give given go goes going good great group grow had
    half hand handle happen happy hard having help here high hold home hope hour how however idea important include
    including increase indeed information inside instead into issue item itself job keep kind know known large last
    late later latest lead learn least leave left less let level life like likely line list little live long longer
    look lot low main make making many matter may maybe mean means might mind minute miss moment month more most
    move much must name near need needed needs never new next nice night none normal note nothing now number off
    often okay old once one only onto open option order other others otherwise out over own page part pass past
    people per perhaps person pick place plan please point possible present pretty probably problem process provide
    put question quick quickly quite rather read ready real really reason recommend remember remove request require
    rest result return right round run said same save say second see seem send sense separate set several shall
    shape short show side similar simple simply since single size slow small some someone something sometimes soon
    sorry sort start state stay step still stop such suggest support sure system take tell term test text thank
    thanks then there therefore thing things think though through time times today together told tomorrow tonight
    top total toward try turn type under understand unless until update upon use used useful user using usual
    usually value various version via view wait want way week welcome well whatever whenever whether while whole
    wide wish within without wonder word work works world worth write wrong year yes yet
    auch auf aus bei bis bitte dann denn doch dort durch erst etwa etwas fur ganz gern gibt gut haben habe hat hier
    immer ins jede jeden jeder jetzt kann kannst konnen lange mal man mehr mit muss nach nein neu noch nun nur ob
    ohne schon sehr sein seine seit so sollte uber um unter viel vom von vor war warum weil wenn werden wieder wird
    wollen zum zur
    alors apres aussi autre avant bien bonjour car cela chez comme comment deux donc elles encore entre etre faire
    fait faut ici jamais jour jours juste leurs meme merci moins nos notre peu peut plus pour pouvez quel quelle
    quoi sans selon sera si sous souvent suis tous tout toute toutes tres trop voici votre vos
    ademas ahora algo antes aqui asi aunque bien cada casi cual desde despues dia dias dos entonces entre eres es
    ese esos estan estar gracias hacer hasta hay hoy mas mejor menos mismo mucho muchas nada ni nos nuestro otra
    otro parece poco porque puede puedes pues quien sea ser si siempre sin sobre solo son tambien tan tanto tener
    tiene todo todos usted vez"""
_UNITS = """
    cent centimetre cm degree dollar euro foot gb gram hz inch kb kg kilo kilogram kilometre km litre mb metre meter mg
    mile millimetre ml mm ms percent pound sec seconds minutes hours days weeks months years tb ton watt
    minuten stunden tage wochen monate jahre euros minutes heures semaines mois minutos horas semanas meses"""
COMMON = frozenset((_COMMON + _UNITS).split()) - STOP

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
NUMBERS = {word: str(value) for value, word in enumerate(_SMALL.split())} | {
    word: str(value) for value, word in zip(range(20, 110, 10), _TENS.split(), strict=True)
}
"""Thirty seconds are 30 seconds."""

_FAMOUS = """
    github gitlab javascript typescript postgresql mysql sqlite mongodb graphql openai chatgpt youtube linkedin macos
    ios ipados iphone ipad ebay devops pypi numpy pytorch tensorflow latex readme.md package.json requirements.txt
    pyproject.toml dockerfile makefile index.html main.py __init__ __init__.py __repr__ __eq__ __main__ wi-fi user_id
    read_text node.js vue.js next.js asp.net oauth2 http/1.1 http/2 sha256 sha-256 utf-8 utf8 ipv4 ipv6 base64 mp3 mp4
    h264 3d 2d a4 b2b b2c covid-19 c++17 python3 e.g i.e a.m p.m u.s 1st 2nd 3rd 4th example.com http://localhost
    localhost --help --version --force --json --all --verbose --quiet --output --dry-run --yes"""
FAMOUS = frozenset(_FAMOUS.split())
"""Spelled like something of one's own, and known to everyone."""
