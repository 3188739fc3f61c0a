"""Federated averaging of a small BERT, which learns whether a review praises something.

The network is one of Hugging Face's transformers, with random weights at first, so that nothing is
downloaded; `from_pretrained` would give it trained ones.

    training            the process that trains it by federated averaging
    evaluation          loss and accuracy of a state's network on other clients' reviews
    reviews, held_out   the clients: reviews as tokens of words
"""

import csv
import functools
import pathlib
from collections import defaultdict

import numpy as np
import torch
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

import tffc

HERE = pathlib.Path(__file__).parent
WORDS = ["[pad]", "[other]", *(HERE / "words.txt").read_text().split()]
LENGTH = 6

torch.manual_seed(1)
BERT = BertForSequenceClassification(
    BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        initializer_range=0.2,
    )
)

model = tffc.algorithms.Model.from_torch(
    BERT,
    {"tokens": (np.int64, [LENGTH]), "mask": (np.int64, [LENGTH]), "praise": np.int64},
    x={"input_ids": "tokens", "attention_mask": "mask"},
    y="praise",
    loss=lambda output, praise: F.cross_entropy(output.logits, praise, reduction="none"),
    metrics=["accuracy"],
)
training = tffc.algorithms.federated_averaging(
    model, tffc.algorithms.SGD(0.1, momentum=0.9), epochs=2, batch_size=8
)
evaluation = tffc.algorithms.federated_evaluation(model, training)


def tokens(review):
    """The numbers of a review's words, filled up to one length."""
    numbers = [WORDS.index(word) if word in WORDS else 1 for word in review.split()[:LENGTH]]
    return numbers + [0] * (LENGTH - len(numbers))


def clients(name):
    """The reviews in a file, by client."""
    texts, praise = defaultdict(list), defaultdict(list)
    with open(HERE / name, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            texts[row["client"]].append(tokens(row["review"]))
            praise[row["client"]].append(int(row["praise"]))
    rows = {client: np.array(texts[client]) for client in texts}
    return {
        c: {"tokens": r, "mask": np.sign(r), "praise": np.array(praise[c])} for c, r in rows.items()
    }


reviews = functools.partial(clients, "train.csv")
held_out = functools.partial(clients, "test.csv")
