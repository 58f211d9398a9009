"""What a Chinese, Japanese or Korean question says only to ask: its question words, particles and polite endings. The
index reads these scripts by pairs of characters, and such words would join with the topic to pairs that no note has."""

import unicodedata

from recto.text import LazyPattern

_ANY = LazyPattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# A name is asked for ("叫什么名字", "名前は何"), a note tells it without the word.
_CHINESE = (
    r"请问|請問|有[没沒]有人?|[应應][该該]|(?:请|請)?告[诉訴]我|(?:我|你|您|他|她|它|咱)[们們]?|"
    r"(?:的?名[字称稱])?(?:(?<![但可还還就总總于於])是|叫做?|在|有|[为為])?"
    r"(?:[什甚][么麼](?:[时時][候间間]|地方|名[字称稱])?|[谁誰]|哪[里裡儿兒个個些位天年]?|多少[钱錢]?|多[久大长長高远遠重]"
    r"|[几幾](?!何|乎)[个個点點号號]?|怎[么麼样樣]+|如何|何[时時处處]|[为為]何)"
    r"|(?<!目)的(?![确確士])|(?<![但可还還就总總于於])是|了?[吗嗎呢吧啊呀嘛]|了(?!\w)"
)
_JAPANESE = (
    r"(?:の?お?名前は)?(?:何(?=[時人個年月日回歳匹円枚台曜色階分がをにのでとかも]|\W|$)|なに|なん(?=[でのに])|誰|だれ|どなた|どこ|どちら"
    r"|どれ|どの|どんな|どう(?:して)?|いつ|いくら|いくつ|なぜ)"
    r"|教えて(?:ください|下さい)?|(?:です|でした|でしょう|ます|ました|ません|なの)(?:か|かね|よね)?(?!\w)|か(?!\w)"
    r"|私たちの|私の|うちの|我々の"
)
_KOREAN = (
    r"(?:이름[은이]? ?)?(?:무엇|뭐|뭔|무슨|누구|누가|어디|언제|얼마|어떤|어떻게|어느|왜|몇)[가-힣]*"
    r"|우리|저희|제(?= )|내(?= )|알려[가-힣 ]*|[가-힣]니까(?!\w)|(?:[아어여해]요|나요|[은는인]가요|이에요|예요)(?!\w)"
)
_ASKING = LazyPattern(f"{_CHINESE}|{_JAPANESE}|{_KOREAN}")
_WORD_SIGN = r"[\u30a0-\u30ff\u3400-\u9fff々]"
_PARTICLES = LazyPattern(
    rf"(?:さん|様)?(?:には|では|から|まで|[はがをのにでへとも])(?!\w)|(?:さん|様)(?!\w)|(?:さん|様)?の(?={_WORD_SIGN})|を"
    rf"|(?<={_WORD_SIGN})(?:さん)?[はがにでへとも](?={_WORD_SIGN})"
    r"|(?<=[가-힣]{2})(?:에서|으로|에게|한테|께서|[은는이가을를의에로와과도])(?!\w)"
)
_KANA = LazyPattern(r"[\u3040-\u309f]")


def without_asking(text: str) -> str:
    """The text with a space for each of these words; as it is where nothing else is in it."""
    if text.isascii() or not _ANY.search(text):
        return text
    composed = unicodedata.normalize("NFC", text)
    rest = _PARTICLES.sub(" ", _ASKING.sub(" ", composed))
    return rest if any(map(str.isalnum, rest)) else text


def is_inflected(term: str) -> bool:
    """Whether a pair of characters has a Japanese ending, as verbs have: an answer may have another."""
    return not term.isascii() and _KANA.search(term) is not None
