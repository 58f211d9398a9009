"""The embedders that run here, with their real weights."""

import base64
import json
import math
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.conftest import examples

from recto.base.background import FOREGROUND, Foreground
from recto.errors import NoVectors
from recto.search.minilm import (
    HEADS,
    LAYERS,
    WIDTH,
    WordPiece,
    read_weights,
)
from recto.search.onnx_embedder import MAX_TOKENS, MiniLM, MultilingualEncoder, _loaded
from recto.weights import named

Array = NDArray[np.float32]

SENTENCES = [
    "The committee moved the launch to the fourteenth of March.",
    "When will the rocket start?",
    "My sister's cat is afraid of thunder.",
    "Run `pip install --no-deps` in /opt/app and restart the server.",
    "Grüße aus Zürich, es regnet.",
    "日本語のテキストです。",
    "😀 🎉 thanks!!!",
    "def mean(values: list[float]) -> float:\n    return sum(values) / len(values)",
    "ok",
    "The invoice of 4,250.00 € is due on 2026-03-31, please pay in time. " * 3,
]


def model_folder() -> Path:
    found = named("minilm").find()
    assert found is not None
    return found[0].parent


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


@pytest.fixture(scope="module")
def weights() -> dict[str, Array]:
    return dict(read_weights(model_folder() / "model.safetensors"))


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    return WordPiece(model_folder() / "vocab.txt")


def exact(weights: dict[str, Array], ids: list[int]) -> Array:
    """The same network in float32, as plain as it can be written."""
    state = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][0]
    state = _norm(weights, "embeddings.LayerNorm", state + weights["embeddings.position_embeddings.weight"][: len(ids)])
    for number in range(LAYERS):
        at = f"encoder.layer.{number}"
        query, key, value = (_heads(_dense(weights, f"{at}.attention.self.{part}", state)) for part in PARTS)
        scores = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(WIDTH / HEADS))
        seen = (scores / scores.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), WIDTH)
        seen = _dense(weights, f"{at}.attention.output.dense", seen)
        state = _norm(weights, f"{at}.attention.output.LayerNorm", state + seen)
        wide = _dense(weights, f"{at}.intermediate.dense", state)
        wide = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
        state = _norm(weights, f"{at}.output.LayerNorm", state + _dense(weights, f"{at}.output.dense", wide))
    mean: Array = state.mean(0)
    return mean / np.linalg.norm(mean)


PARTS = ("query", "key", "value")


def _dense(weights: dict[str, Array], name: str, state: Array) -> Array:
    return state @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _heads(state: Array) -> Array:
    return state.reshape(len(state), HEADS, WIDTH // HEADS).transpose(1, 0, 2)


def _norm(weights: dict[str, Array], name: str, state: Array) -> Array:
    centred = state - state.mean(-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    normed: Array = centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return normed


def test_int8_vectors_are_close_to_float32_vectors(
    minilm: MiniLM, weights: dict[str, Array], pieces: WordPiece
) -> None:
    ours = minilm.embed(SENTENCES)
    theirs = np.array([exact(weights, pieces.ids(text, MAX_TOKENS)) for text in SENTENCES])
    near = (ours * theirs).sum(1)
    assert near.mean() > 0.985
    assert near.min() > 0.96


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("How do I get my money back?", "Refunds are paid within ten days.", "The cat sleeps on the sofa."),
        ("When was the boat built?", "Her keel was laid in 1934.", "We had soup for lunch."),
        ("the program crashes at start", "a segmentation fault when launching", "a recipe for lentils"),
    ],
)
def test_related_texts_are_nearer_than_unrelated_ones(minilm: MiniLM, text: str, near: str, far: str) -> None:
    asked, related, unrelated = minilm.embed([text, near, far])
    assert asked @ related > asked @ unrelated + 0.1


def test_a_closed_model_loads_again(minilm: MiniLM) -> None:
    before = minilm.embed(["again"])
    minilm.close()
    assert (minilm.embed(["again"]) == before).all()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models with these weights."""
    folder = tmp_path / "models" / "minilm"
    folder.mkdir(parents=True)
    for path in named("minilm").find() or []:
        (folder / path.name).symlink_to(path)
    monkeypatch.setenv("RECTO_MODELS", str(folder.parent))
    return folder


def as_in_a_new_process() -> MiniLM:
    _loaded.clear()
    return MiniLM()


def test_a_process_loads_the_model_once(minilm: MiniLM) -> None:
    minilm.embed(["one"])
    assert MiniLM()._open_model() is minilm._open_model()


def test_models_that_are_not_used_are_let_go_and_loaded_again(minilm: MiniLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.search.onnx_embedder.IDLE_S", 0.2)
    _loaded.clear()
    before, until = minilm.embed(["one"]), time.monotonic() + 60
    while _loaded and time.monotonic() < until:
        time.sleep(0.01)
    assert not _loaded
    assert (minilm.embed(["one"]) == before).all()


def test_a_turn_does_not_stand_back_from_what_it_waits_for_itself(
    minilm: MiniLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Foreground, "MAX_WAIT_S", 3600.0)
    monkeypatch.setattr(Foreground, "MAX_TURN_S", 3600.0)
    with FOREGROUND.begin():
        assert len(minilm.embed(SENTENCES)) == len(SENTENCES)  # else it would wait for an hour


def test_a_missing_package_is_named_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MiniLM.missing() is None
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(NoVectors, match=r"Searching by meaning needs onnxruntime; run .*recto-context\[meaning\]"):
        MiniLM().embed(["one"])


@pytest.mark.parametrize("left", [0, 1])
def test_missing_weights_are_named_with_the_command_to_fetch_them(kept: Path, left: int) -> None:
    for path in list(kept.iterdir())[left:]:
        path.unlink()
    with pytest.raises(NoVectors, match=r"all-MiniLM-L6-v2 \(91 MB\).*recto models pull minilm"):
        MiniLM().embed(["one"])


def test_half_of_the_weights_are_damaged_weights(kept: Path) -> None:
    (kept / "model.safetensors").unlink()
    (kept / "model.safetensors").write_bytes(b"short")
    with pytest.raises(NoVectors, match=r"damaged \(5 bytes.*recto models pull minilm"):
        MiniLM().embed(["one"])


def test_other_weights_of_the_right_size_are_one_sentence(kept: Path) -> None:
    path = kept / "model.safetensors"
    path.unlink()
    with path.open("wb") as file:
        file.truncate(named("minilm").files[0].bytes)
    with pytest.raises(NoVectors, match=r"MiniLM-L6-v2 cannot be loaded \(JSONDecodeError"):
        as_in_a_new_process().embed(["one"])


# As the tokenizers library has them, with the same vocabulary.
TOKENS = {
    "Café NAÏVE Ångström": [7668, 15743, 17076, 15687],
    "日本語のテキストです。": [1864, 1876, 1950, 1671, 30239, 30227, 30233, 30240, 30191, 30184, 1636],
    "한국어": [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008],
    "😀 ok 👩\u200d👧": [100, 7929, 100],
    "a\x00b\x07c\x85d\u200be\ufffdf": [5925, 3207, 2546],
    "ΟΔΥΣΣΕΥΣ İstanbul": [1169, 29722, 29735, 29733, 29733, 29723, 29735, 29733, 9960],
    "$5 + 3 = `8`; ^~|": [1002, 1019, 1009, 1017, 1027, 1036, 1022, 1036, 1025, 1034, 1066, 1064],
    f"{'x' * 100} {'x' * 101}": [22038, *[20348] * 49, 100],
    "supercalifragilisticexpialidocious": [3565, 9289, 10128, 29181, 24411, 4588, 10288, 19312, 21273, 10085, 6313],
    "\u2028a\u00a0b\u3000c\td": [1037, 1038, 1039, 1040],
    "don't [cls]": [2123, 1005, 1056, 1031, 18856, 2015, 1033],
    "１２３ ﬁne": [100, 1984, 2638],
    "Ёлка": [1185, 29436, 28598],
    "\u0378 q": [100, 1053],
    "a\ud800b": [11113],
    "Привет, мир": [1194, 16856, 10325, 25529, 15290, 22919, 1010, 1191, 10325, 16856],
    "مرحبا بالعالم": [1295, 17149, 29820, 29816, 25573, 1271, 25573, 23673, 29830, 25573, 23673, 22192],
    "नमस्ते दुनिया": [1327, 29867, 29874, 29859, 1325, 29863, 29877, 29868, 29876],
    "שלום עולם": [1266, 29799, 29792, 29800, 1259, 29792, 29799, 29800],
    "สวัสดี": [100],
    "x_1.py --flag=0": [1060, 1035, 1015, 1012, 1052, 2100, 1011, 1011, 5210, 1027, 1014],
}


@pytest.mark.parametrize("text", TOKENS)
def test_texts_become_the_tokens_the_model_was_trained_with(pieces: WordPiece, text: str) -> None:
    assert pieces.ids(text, MAX_TOKENS) == [101, *TOKENS[text], 102]


def test_control_tokens_in_a_text_are_text(pieces: WordPiece) -> None:
    assert not {101, 102, 103} & set(pieces.ids("[CLS] [SEP] [MASK]", MAX_TOKENS)[1:-1])


ENDS = """
import sys, threading, time
from recto.errors import NoVectors
from recto.search.onnx_embedder import MiniLM

minilm = MiniLM()
begun = threading.Event()

def embed():
    try:
        while True:
            minilm.embed(["a long text that takes a while " * 60])
            begun.set()
    except NoVectors:
        pass

for _ in range(2):
    threading.Thread(target=embed, daemon=True).start()
begun.wait(60)
"""


def test_a_program_may_exit_while_embedding() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_closing_ends_a_batch_after_its_current_text(minilm: MiniLM) -> None:
    minilm.embed(["opened"])
    threading.Timer(0.1, minilm.close).start()
    with pytest.raises(NoVectors, match="closed"):
        minilm.embed(["a long text that takes a while " * 60] * 2000)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Who must not eat shellfish?", 0.9, 1),
        ("which engine did we choose", 0.9, 1),
        ("bilge pump fuse", 0.9, 1),
        ("Who is the author of La casa de papel, and when was it made?", 0.9, 1),
        ("wann wurde sie umbenannt", 0, 0.1),
        ("какой двигатель", 0, 0.1),
        ("桥", 0, 0.1),
        ("Ai là người xây dựng cây cầu", 0, 0.1),
        # words that English has too
        ("La casa de mi padre está en el centro de Madrid y la puerta es de color verde.", 0, 0),
        ("El club de Barcelona juega en la final de la copa contra el Real Madrid.", 0, 0),
        ("La région de Paris a une grande importance pour la France et pour le commerce.", 0, 0),
        ("Il re di Roma era il figlio di un generale.", 0, 0),
        ("Was sind die Farben von Berlin und wer ist der Patron?", 0, 0),
        ("Valmistaja toimitti moottorin keväällä laivatelakalle. " * 60, 0, 0),
    ],
)
def test_english_is_known_and_other_languages_are_not(minilm: MiniLM, text: str, least: float, most: float) -> None:
    assert least <= minilm.familiarity(text) <= most


# -- the multilingual encoder


KNOWN = json.loads(Path(__file__).with_name("multilingual_vectors.json").read_text("utf-8"))


def test_fifty_sentences_in_sixteen_languages_have_their_vectors_on_any_machine(encoder: MultilingualEncoder) -> None:
    known = np.array([np.frombuffer(base64.b64decode(each), np.int8) for each in KNOWN["vectors"]], np.float32)
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    assert ((encoder.embed(KNOWN["sentences"]) * known).sum(1) > 0.99).all()


@pytest.mark.parametrize(
    "question",
    [
        "Wer hat die Leiter ausgeliehen?",
        "¿Quién tiene la escalera?",
        "Кто взял лестницу?",
        "谁借走了梯子？",
        "梯子は誰が借りた？",
    ],
)
def test_a_question_in_another_language_finds_its_answer(encoder: MultilingualEncoder, question: str) -> None:
    texts = ["Tom from number 9 has our ladder.", "The hens lay nine eggs a day.", "The ferry leaves at noon."]
    asked, *found = encoder.embed([question, *texts])
    assert int(np.argmax([asked @ each for each in found])) == 0


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime_extensions"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert MultilingualEncoder.missing() is None
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoVectors, match=rf"needs {name}; run .*recto models pull multilingual"):
        MultilingualEncoder().embed(["one"])


def test_where_a_package_is_not_published_another_embedder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    monkeypatch.setitem(sys.modules, "onnxruntime_extensions", None)
    with pytest.raises(NoVectors, match=r"not published for Python 3\.14: .*search\.embedder = minilm"):
        MultilingualEncoder().embed(["one"])


# -- both


def both(minilm: MiniLM, encoder: MultilingualEncoder) -> tuple[MiniLM | MultilingualEncoder, ...]:
    return minilm, encoder


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\ud800"])
def test_a_text_without_words_gets_zeros(minilm: MiniLM, encoder: MultilingualEncoder, text: str) -> None:
    for each in both(minilm, encoder):
        assert not each.embed([text]).any()
        assert each.embed([]).shape == (0, each.width)
    assert not encoder.embed(["—…!?"]).any()


@settings(max_examples=examples(60))
@given(st.text(max_size=400))
def test_any_text_has_a_vector_of_length_one_or_none(minilm: MiniLM, encoder: MultilingualEncoder, text: str) -> None:
    for each in both(minilm, encoder):
        (vector,) = each.embed([text])
        assert vector.shape == (each.width,)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3) or not vector.any()
