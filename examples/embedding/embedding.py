"""A large embedding of which each client asks only for the rows that it needs.

The server holds a vector for each of five thousand words, and a client uses a few of them.  With
`tff.federated_select` a client gets the vectors of its own words, trains them on its sentences, and
sends back how far they moved.  The server adds these moves up by row: a `tff.federated_aggregate`
whose accumulator is the table.

    training      the process: the table and the weights, trained a little further every round
    evaluation    loss and accuracy on held-out clients' sentences
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

VOCABULARY = 5000
SIZE = 8
MOST_WORDS = 32
SENTENCE = 4
LOCAL_EPOCHS = 3
BATCH_SIZE = 8
LEARNING_RATE = 0.5


class Model(NamedTuple):
    """A vector for each word, and the weights that make a sentence's score of their mean."""

    table: Any
    weights: Any


MODEL = Model(
    table=tff.TensorType(np.float32, [VOCABULARY, SIZE]),
    weights=tff.TensorType(np.float32, [SIZE]),
)
ROW = tff.TensorType(np.float32, [SIZE])
ROWS = tff.TensorType(np.float32, [MOST_WORDS, SIZE])
KEYS = tff.TensorType(np.int32, [MOST_WORDS])
SENTENCES = tff.SequenceType(
    collections.OrderedDict(
        words=tff.TensorType(np.int32, [SENTENCE]), praise=tff.TensorType(np.float32)
    )
)
WORK = collections.OrderedDict(keys=KEYS, rows=ROWS, weights=ROW)
TOTAL = collections.OrderedDict(
    table=MODEL.table,
    asked=tff.TensorType(np.float32, [VOCABULARY]),
    weights=ROW,
    clients=tff.TensorType(np.float32),
)


def scores(rows, weights, places):
    """The score of each sentence, whose words are places among the rows."""
    return tf.linalg.matvec(tf.reduce_mean(tf.gather(rows, places), axis=1), weights)


def places_of(keys, words):
    """Where each word is among the keys; 0 for one that is not there."""
    return tf.argmax(tf.equal(words[..., tf.newaxis], keys), axis=-1, output_type=tf.int32)


@tff.tf_computation
def first_model():
    def drawn(seed, shape):
        return tf.random.stateless_normal(shape, seed=(1, seed), stddev=0.5)

    return Model(table=drawn(1, [VOCABULARY, SIZE]), weights=drawn(2, [SIZE]))


@tff.tf_computation(SENTENCES)
def words_of(sentences):
    """The words of a client's sentences, each once; what is left over asks for word 0."""
    seen = sentences.reduce(
        tf.zeros([VOCABULARY], tf.bool),
        lambda seen, each: tf.tensor_scatter_nd_update(
            seen, each["words"][:, tf.newaxis], tf.ones([SENTENCE], tf.bool)
        ),
    )
    found = tf.cast(tf.where(seen)[:MOST_WORDS, 0], tf.int32)
    return tf.ensure_shape(tf.pad(found, [[0, MOST_WORDS - tf.size(found)]]), [MOST_WORDS])


@tff.tf_computation
def last_word():
    return tf.constant(VOCABULARY)


@tff.tf_computation(MODEL.table, np.int32)
def row_of(table, word):
    return table[word]


@tff.tf_computation(KEYS, tff.SequenceType(ROW), ROW, SENTENCES)
def train(keys, rows, weights, sentences):
    """How far a client's rows and the weights move when they are trained on its sentences."""
    begin = tf.reshape(
        rows.batch(MOST_WORDS).reduce(tf.zeros([MOST_WORDS, SIZE]), lambda _, batch: batch),
        [MOST_WORDS, SIZE],
    )
    own = tf.Variable(tf.zeros([MOST_WORDS, SIZE]))
    shared = tf.Variable(tf.zeros([SIZE]))

    @tf.function
    def descend(begin, weights, batches):
        own.assign(begin)
        shared.assign(weights)
        for batch in batches:
            with tf.GradientTape() as tape:
                guesses = scores(own, shared, places_of(keys, batch["words"]))
                loss = tf.reduce_mean(
                    tf.nn.sigmoid_cross_entropy_with_logits(batch["praise"], guesses)
                )
            by_row, by_weight = tape.gradient(loss, [own, shared])
            own.assign_sub(LEARNING_RATE * tf.convert_to_tensor(by_row))
            shared.assign_sub(LEARNING_RATE * tf.convert_to_tensor(by_weight))
        return own - begin, shared - weights

    moved, turned = descend(begin, weights, sentences.repeat(LOCAL_EPOCHS).batch(BATCH_SIZE))
    return collections.OrderedDict(keys=keys, rows=moved, weights=turned)


@tff.tf_computation
def nothing():
    return collections.OrderedDict(
        table=tf.zeros([VOCABULARY, SIZE]),
        asked=tf.zeros([VOCABULARY]),
        weights=tf.zeros([SIZE]),
        clients=0.0,
    )


@tff.tf_computation(TOTAL, WORK)
def add(total, work):
    keys = work["keys"][:, tf.newaxis]
    return collections.OrderedDict(
        table=tf.tensor_scatter_nd_add(total["table"], keys, work["rows"]),
        asked=tf.tensor_scatter_nd_add(total["asked"], keys, tf.ones([MOST_WORDS])),
        weights=total["weights"] + work["weights"],
        clients=total["clients"] + 1.0,
    )


@tff.tf_computation(TOTAL, TOTAL)
def join(one, two):
    return tf.nest.map_structure(tf.add, one, two)


@tff.tf_computation(TOTAL)
def mean_move(total):
    """How far each row moves: the mean over the clients that asked for it."""
    return Model(
        table=tf.math.divide_no_nan(total["table"], total["asked"][:, tf.newaxis]),
        weights=tf.math.divide_no_nan(total["weights"], total["clients"]),
    )


@tff.tf_computation(MODEL, MODEL)
def move(model, moved):
    return tf.nest.map_structure(tf.add, model, moved)


@tff.tf_computation(KEYS, tff.SequenceType(ROW), ROW, SENTENCES)
def measure(keys, rows, weights, sentences):
    """Mean loss and accuracy on a client's sentences, and how many these are."""
    own = tf.reshape(
        rows.batch(MOST_WORDS).reduce(tf.zeros([MOST_WORDS, SIZE]), lambda _, batch: batch),
        [MOST_WORDS, SIZE],
    )

    def count(totals, batch):
        guesses = scores(own, weights, places_of(keys, batch["words"]))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(batch["praise"], guesses)
        right = tf.equal(guesses > 0, batch["praise"] > 0.5)
        return (
            totals[0] + tf.reduce_sum(losses),
            totals[1] + tf.reduce_sum(tf.cast(right, tf.float32)),
            totals[2] + tf.cast(tf.size(right), tf.float32),
        )

    loss, right, size = sentences.batch(BATCH_SIZE).reduce((0.0, 0.0, 0.0), count)
    return collections.OrderedDict(loss=loss / size, accuracy=right / size), size


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_model, tff.SERVER)


def select(model, sentences):
    """What clients work with: their words, the rows of these, the weights, and their sentences."""
    keys = tff.federated_map(words_of, sentences)
    last = tff.federated_eval(last_word, tff.SERVER)
    rows = tff.federated_select(keys, last, model.table, row_of)
    return keys, rows, tff.federated_broadcast(model.weights), sentences


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(SENTENCES))
def train_one_round(model, sentences):
    selected = select(model, sentences)
    work = tff.federated_map(train, selected)
    moved = tff.federated_aggregate(work, nothing(), add, join, mean_move)
    metrics, size = tff.federated_map(measure, selected)
    return tff.federated_map(move, (model, moved)), tff.federated_mean(metrics, weight=size)


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(SENTENCES))
def evaluation(model, sentences):
    """Measures a model; it goes through unchanged."""
    metrics, size = tff.federated_map(measure, select(model, sentences))
    return model, tff.federated_mean(metrics, weight=size)
