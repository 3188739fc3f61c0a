"""The words that many people use, found letter by letter with differential privacy for each person.

The server keeps some beginnings of words.  In each round a person votes: 1 for every beginning and
every letter behind it with which one of its words begins.  A person's votes together are scaled
down to a norm of at most `MOST`, and the server adds normal noise to the sum of all.  It keeps what
then has at least `THRESHOLD` votes.  A threshold alone would protect nobody; behind the noise it
costs nothing, and drops what only noise has made large.

    discovery         the process: the beginnings, one letter longer after every round
    evaluation        how many people have a word with each beginning; not private
    people, others    the clients: made-up words
"""

import collections
import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

LETTERS = "abcdefghijklmnopqrstuvwxyz."
ENDS = "." * 32
"""Behind each word, so that its end is a letter like others, again and again."""

KEPT = 12
MOST = 2.0
NOISE = 8.0
THRESHOLD = 50.0

PEOPLE = 2000
COMMON = ["tea", "rain", "train", "trail", "late", "river", "light"]
RARE = ["secret", "quartz", "zephyr", "lantern", "mosaic", "walnut", "fjord", "igloo", "tulip"]


class Kept(NamedTuple):
    """Beginnings of words, with the most votes first; places that are not taken have no votes."""

    beginnings: Any
    votes: Any


STATE = Kept(beginnings=tff.TensorType(np.str_, [KEPT]), votes=tff.TensorType(np.float32, [KEPT]))
WORDS = tff.SequenceType(np.str_)
BALLOT = tff.TensorType(np.float32, [KEPT, len(LETTERS)])


@tff.tf_computation
def no_letters():
    """The empty beginning, in the first place."""
    return Kept(beginnings=tf.fill([KEPT], ""), votes=tf.one_hot(0, KEPT))


def longer(beginnings):
    """Every beginning with every letter behind it."""
    return beginnings[:, tf.newaxis] + tf.constant(list(LETTERS))[tf.newaxis, :]


def taken(kept):
    return tf.cast(kept.votes > 0.0, tf.float32)


def have(words, beginnings, size):
    """For each beginning of a number of letters, 1 if one of the words has it."""

    def add(seen, word):
        cut = tf.strings.substr(tf.strings.join([word, ENDS]), 0, size)
        return tf.maximum(seen, tf.cast(tf.equal(beginnings, cut), tf.float32))

    return words.reduce(tf.zeros(beginnings.shape), add)


@tff.tf_computation(STATE, WORDS)
def vote(kept, words):
    """A person's votes, which are less than 1 each if they are more than `MOST` allows."""
    size = tf.strings.length(kept.beginnings[0]) + 1
    votes = have(words, longer(kept.beginnings), size) * taken(kept)[:, tf.newaxis]
    return tf.clip_by_norm(votes, MOST)


@tff.tf_computation(STATE, BALLOT)
def keep(kept, votes):
    """The longer beginnings with the most votes, noise included."""
    noisy = votes + tf.random.normal([KEPT, len(LETTERS)], stddev=NOISE)
    enough = tf.where(noisy >= THRESHOLD, noisy, 0.0) * taken(kept)[:, tf.newaxis]
    best, places = tf.math.top_k(tf.reshape(enough, [-1]), KEPT)
    beginnings = tf.gather(tf.reshape(longer(kept.beginnings), [-1]), places)
    return Kept(beginnings=tf.where(best > 0.0, beginnings, ""), votes=best)


@tff.tf_computation(STATE, WORDS)
def use(kept, words):
    """For each beginning that is kept, 1 if the person has a word with it."""
    return have(words, kept.beginnings, tf.strings.length(kept.beginnings[0])) * taken(kept)


@tff.federated_computation
def initialize():
    return tff.federated_eval(no_letters, tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(WORDS))
def next_letters(kept, words):
    votes = tff.federated_map(vote, (tff.federated_broadcast(kept), words))
    total = tff.federated_sum(votes)
    longest = tff.federated_map(keep, (kept, total))
    return longest, longest


discovery = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=next_letters)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(WORDS))
def evaluation(kept, words):
    """How many people have a word with each beginning; what is kept goes through unchanged."""
    used = tff.federated_map(use, (tff.federated_broadcast(kept), words))
    users = tff.federated_sum(used)
    output = collections.OrderedDict(beginnings=kept.beginnings, users=users)
    return kept, tff.federated_zip(output)


def words_of(seed):
    """What each person typed: some of the common words, and every second person a rare one."""
    generator = np.random.default_rng(seed)

    def words():
        common = generator.choice(COMMON, generator.integers(2, 6))
        return [*common.tolist(), *generator.choice(RARE, generator.integers(0, 2)).tolist()]

    return {f"person_{number:04}": words() for number in range(PEOPLE)}


people = functools.partial(words_of, 3)
others = functools.partial(words_of, 4)
