"""Fits the scorer of sentences on what many readers found worth keeping (`bench/summary_data`), and says how it does on
authors whom it has not seen: `make fit`. Needs scikit-learn, which only development installs.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import average_precision_score, cohen_kappa_score

from bench.scored import scorer
from bench.scored.features import FEATURES, PlainMessage, Sentence, read_conversation
from bench.summary_data import FOLDER, Conversation, Reading, conversations, readings

OUT = Path(scorer.__file__).with_name("scorer.json")
TREES, DEPTH, RATE, LEAST = 90, 3, 0.12, 60
WORTH = {"needed": 1.0, "same": 0.6, "superseded": 0.1}


class Sample:
    """A conversation with its features and what its readers say."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation, self.author = conversation, conversation.author
        self.readings = readings(conversation)
        self.messages = spoken(conversation)
        self.said, values = read_conversation(self.messages)
        self.rows = np.array(values, float)
        self.targets = np.mean([targets(self.said, reading) for reading in self.readings], axis=0)


def spoken(conversation: Conversation) -> list[PlainMessage]:
    found, day = [], ""
    for said in conversation.messages:
        is_later = bool(said.time and day and said.time[:10] != day)
        found.append(PlainMessage(said.role, said.text, said.number, said.is_call, after_gap=is_later))
        day = said.time[:10] or day
    return found


def targets(said: Sequence[Sentence], reading: Reading) -> np.ndarray:
    by_message = defaultdict(list)
    for label in reading.labels:
        by_message[label.message].append(label)
    found = np.zeros(len(said))
    for at, sentence in enumerate(said):
        labels = [each for each in by_message[sentence.message + 1] if each.is_of(sentence.segment.text)]
        found[at] = max((WORTH[each.verdict] for each in labels), default=0.0)
    return found


def samples() -> list[Sample]:
    return [Sample(conversation) for conversation in conversations()]


def fit(found: Sequence[Sample]) -> GradientBoostingClassifier:
    """A target between 0 and 1 counts as both, with its share."""
    rows, wanted = np.vstack([each.rows for each in found]), np.hstack([each.targets for each in found])
    model = GradientBoostingClassifier(
        n_estimators=TREES,
        max_depth=DEPTH,
        learning_rate=RATE,
        min_samples_leaf=LEAST,
        subsample=0.7,
        random_state=1,
    )
    both, classes = np.vstack([rows, rows]), np.r_[np.ones(len(wanted)), np.zeros(len(wanted))]
    share = np.r_[wanted, 1 - wanted]
    used = share > 0
    return model.fit(both[used], classes[used], sample_weight=share[used])


def held_out_scores(found: Sequence[Sample]) -> list[np.ndarray]:
    """For each sample, as a scorer sees it that has not seen its author."""
    models = {a: fit([each for each in found if each.author != a]) for a in {each.author for each in found}}
    return [models[each.author].predict_proba(each.rows)[:, 1] for each in found]


def precision(found: Sequence[Sample], scored: Sequence[np.ndarray]) -> float:
    pairs = [(each.targets >= 0.5, scores) for each, scores in zip(found, scored, strict=True)]
    return float(np.mean([average_precision_score(wanted, scores) for wanted, scores in pairs if wanted.any()]))


def agreement(found: Sequence[Sample]) -> float:
    """Of the two readers, about what is needed: Cohen's kappa over all sentences."""
    both = [[targets(each.said, reading) >= 1 for reading in each.readings] for each in found]
    return float(cohen_kappa_score(*(np.hstack([pair[side] for pair in both]) for side in (0, 1))))


def tree_of(model: GradientBoostingClassifier, number: int) -> object:
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
    held_out = {"average precision": precision(found, held_out_scores(found)), "agreement of readers": agreement(found)}
    model = fit(found)
    prior = float(model.init_.class_prior_[1])
    weights = {
        "features": FEATURES,
        "data": data_hash(),
        "held_out": {name: round(score, 3) for name, score in held_out.items()},
        "base": round(float(np.log(prior / (1 - prior))), 4),
        "trees": [tree_of(model, number) for number in range(TREES)],
    }
    OUT.write_text(json.dumps(weights, separators=(",", ":")) + "\n")
    print(f"{len(found)} conversations, {sum(len(each.said) for each in found):,} sentences: {weights['held_out']}")


if __name__ == "__main__":
    main()
