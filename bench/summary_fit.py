"""Fits the scorer of sentences on what many readers found worth keeping (`bench/summary_data`), and says how it does on
authors whom it has not seen: `make fit`. Needs scikit-learn, which only development installs.

`needed` and `binds` are fitted on sentences in their conversation. `lasting` and `priority` are asked when a message
arrives, so they are fitted on messages read alone.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.metrics import average_precision_score, cohen_kappa_score

from bench.summary_data import FOLDER, Conversation, Label, Reading, conversations, readings
from recto.sentences import scorer
from recto.sentences.features import FEATURES, PlainMessage, Sentence, read_conversation
from recto.sentences.priority import read_alone
from recto.sentences.scorer import BINDS, LASTING, NEEDED, PRIORITY

OUT = Path(scorer.__file__).with_name("scorer.json")
DEPTH, RATE, LEAST, LEAST_MESSAGES = 3, 0.12, 60, 30
TREES = {NEEDED: 90, BINDS: 40, LASTING: 40, PRIORITY: 40}
WORTH = {"needed": 1.0, "same": 0.6, "superseded": 0.1}
Fitted = Any
"""A classifier or, of priorities, a regressor of scikit-learn, which has no types."""


class Sample:
    """A conversation with its features and what its readers say."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation, self.author = conversation, conversation.author
        self.readings = readings(conversation)
        self.messages = spoken(conversation)
        self.said, values = read_conversation(self.messages)
        self.rows = np.array(values, float)
        self.targets = self.mean_of(worth)
        self.binding = self.mean_of(flagged("binds"))

    def mean_of(self, worth_of: Callable[[Label], float]) -> np.ndarray:
        found = np.asarray([targets(self.said, reading, worth_of) for reading in self.readings])
        return np.asarray(found.mean(axis=0))


class Alone:
    """The messages of a conversation, each read alone."""

    def __init__(self, sample: Sample) -> None:
        self.author = sample.author
        rated = np.mean([reading.priorities for reading in sample.readings], axis=0)
        read = [read_alone(message.role, message.text, is_call=message.is_call) for message in sample.messages]
        self.spoken = np.array([bool(rows) for _, rows in read])
        self.rated = rated[self.spoken]
        self.normal = (self.rated - rated.mean()) / rated.std()
        self.rows = np.array([np.max(rows, axis=0) for _, rows in read if rows])
        own = [at for at, message in enumerate(sample.messages) if message.role == "user"]
        self.own_rows = np.array([row for at in own for row in read[at][1]])
        self.lasting = np.hstack([self._lasting(sample, at, read[at][0]) for at in own])

    def _lasting(self, sample: Sample, at: int, said: Sequence[Sentence]) -> np.ndarray:
        here = [Sentence(at, each.segment, each.words, each.terms, each.figures) for each in said]
        found = np.asarray([targets(here, reading, flagged("lasting")) for reading in sample.readings])
        return np.asarray(found.mean(axis=0))


def spoken(conversation: Conversation) -> list[PlainMessage]:
    found, day = [], ""
    for said in conversation.messages:
        is_later = bool(said.time and day and said.time[:10] != day)
        found.append(PlainMessage(said.role, said.text, said.number, said.is_call, after_gap=is_later))
        day = said.time[:10] or day
    return found


def worth(label: Label) -> float:
    return WORTH[label.verdict]


def flagged(flag: str) -> Callable[[Label], float]:
    return lambda label: float(flag in label.flags)


def targets(said: Sequence[Sentence], reading: Reading, worth_of: Callable[[Label], float] = worth) -> np.ndarray:
    by_message = defaultdict(list)
    for label in reading.labels:
        by_message[label.message].append(label)
    found = np.zeros(len(said))
    for at, sentence in enumerate(said):
        labels = [each for each in by_message[sentence.message + 1] if each.is_of(sentence.segment.text)]
        found[at] = max(map(worth_of, labels), default=0.0)
    return found


def samples() -> list[Sample]:
    return [Sample(conversation) for conversation in conversations()]


Part = tuple[str, np.ndarray, np.ndarray]
"""The author of some rows of features, the rows, and what is wanted of each."""


def parts_of(found: Sequence[Sample], alone: Sequence[Alone]) -> dict[str, list[Part]]:
    return {
        NEEDED: [(each.author, each.rows, each.targets) for each in found],
        BINDS: [(each.author, each.rows, each.binding) for each in found],
        LASTING: [(each.author, each.own_rows, each.lasting) for each in alone],
        PRIORITY: [(each.author, each.rows, each.normal) for each in alone],
    }


def fit(parts: Sequence[Part], head: str = NEEDED) -> Fitted:
    """A target between 0 and 1 counts as both, with its share; a priority is a number."""
    rows, wanted = np.vstack([rows for _, rows, _ in parts]), np.hstack([wanted for _, _, wanted in parts])
    options: dict[str, Any] = {
        "n_estimators": TREES[head],
        "max_depth": DEPTH,
        "learning_rate": RATE,
        "min_samples_leaf": LEAST_MESSAGES if head == PRIORITY else LEAST,
        "random_state": 1,  # of features that tell equally much, always the same one
    }
    if head == PRIORITY:
        return GradientBoostingRegressor(**options).fit(rows, wanted)
    both, classes = np.vstack([rows, rows]), np.r_[np.ones(len(wanted)), np.zeros(len(wanted))]
    share = np.r_[wanted, 1 - wanted]
    used = share > 0
    return GradientBoostingClassifier(**options).fit(both[used], classes[used], sample_weight=share[used])


def held_out_scores(parts: Sequence[Part], head: str = NEEDED) -> list[np.ndarray]:
    """For each part, as a scorer sees it that has not seen its author."""
    models = {a: fit([each for each in parts if each[0] != a], head) for a in sorted({each[0] for each in parts})}
    return [predicted(models[author], rows) for author, rows, _ in parts]


def predicted(model: Fitted, rows: np.ndarray) -> np.ndarray:
    is_regressor = isinstance(model, GradientBoostingRegressor)
    return np.asarray(model.predict(rows) if is_regressor else model.predict_proba(rows)[:, 1])


def precision(parts: Sequence[Part], scored: Sequence[np.ndarray]) -> float:
    pairs = [(wanted >= 0.5, scores) for (_, _, wanted), scores in zip(parts, scored, strict=True)]
    return float(np.mean([average_precision_score(wanted, scores) for wanted, scores in pairs if wanted.any()]))


def correlation(alone: Sequence[Alone], scored: Sequence[np.ndarray]) -> float:
    """With what the readers gave, 1 to 10, over all messages."""
    return float(np.corrcoef(np.hstack([each.rated for each in alone]), np.hstack(scored))[0, 1])


def agreement(found: Sequence[Sample]) -> float:
    """Of the two readers, about what is needed: Cohen's kappa over all sentences."""
    both = [[targets(each.said, reading) >= 1 for reading in each.readings] for each in found]
    return float(cohen_kappa_score(*(np.hstack([pair[side] for pair in both]) for side in (0, 1))))


def agreement_on_messages(found: Sequence[Sample]) -> float:
    """Of the two readers, about the priorities of messages: their correlation."""
    one, other = (np.hstack([each.readings[side].priorities for each in found]) for side in (0, 1))
    return float(np.corrcoef(one, other)[0, 1])


def head_of(model: Fitted) -> dict[str, Any]:
    if isinstance(model, GradientBoostingRegressor):
        base = float(model.init_.constant_.item())
    else:
        prior = float(model.init_.class_prior_[1])
        base = float(np.log(prior / (1 - prior)))
    return {"base": round(base, 4), "trees": [tree_of(model, number) for number in range(model.n_estimators_)]}


def tree_of(model: Fitted, number: int) -> object:
    tree = model.estimators_[number, 0].tree_

    def node(at: int) -> object:
        if tree.children_left[at] < 0:
            return round(float(tree.value[at].item()) * RATE, 4)
        threshold = float(f"{tree.threshold[at]:.4g}")
        return [int(tree.feature[at]), threshold, node(tree.children_left[at]), node(tree.children_right[at])]

    return node(0)


def data_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in (".txt", ".tsv"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    found = samples()
    alone = [Alone(each) for each in found]
    parts = parts_of(found, alone)
    held_out = {
        f"{head}, average precision": precision(parts[head], held_out_scores(parts[head], head))
        for head in (NEEDED, BINDS, LASTING)
    }
    held_out["priority, correlation with readers"] = correlation(alone, held_out_scores(parts[PRIORITY], PRIORITY))
    held_out["agreement of readers"] = agreement(found)
    held_out["priority, agreement of readers"] = agreement_on_messages(found)
    weights = {
        "features": FEATURES,
        "data": data_hash(),
        "held_out": {name: round(score, 3) for name, score in held_out.items()},
        "heads": {head: head_of(fit(each, head)) for head, each in parts.items()},
    }
    OUT.write_text(json.dumps(weights, separators=(",", ":")) + "\n")
    print(f"{len(found)} conversations, {sum(len(each.said) for each in found):,} sentences: {weights['held_out']}")


if __name__ == "__main__":
    main()
