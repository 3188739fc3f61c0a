"""The words that many clients use, found letter by letter with secure sums.

No list of words is needed to begin with, and no word leaves a client.  The server keeps some
prefixes.  In each round a client votes: for every prefix and every letter that may follow it, 1 if
one of its words begins so.  The votes are summed securely, and the server keeps the longer prefixes
that enough clients voted for.  After as many rounds as a word has letters, the prefixes are words,
ended by a full stop; a word that few clients use is never spelled out.

    discovery     the process: the prefixes and how many clients have each
    evaluation    how many held-out clients have a word with each prefix
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tffc as tff

LETTERS = "abcdefghijklmnopqrstuvwxyz."
END = "."
KEPT = 12
THRESHOLD = 6


class Found(NamedTuple):
    """Prefixes, most frequent first, with the number of clients that voted for each.

    Places that are not taken have no votes.
    """

    prefixes: Any
    votes: Any


STATE = Found(prefixes=tff.TensorType(np.str_, [KEPT]), votes=tff.TensorType(np.int32, [KEPT]))
WORDS = tff.SequenceType(np.str_)
BALLOT = tff.TensorType(np.int32, [KEPT, len(LETTERS)])


@tff.tf_computation
def nothing_found():
    """The empty prefix, in the first place."""
    return Found(
        prefixes=tf.fill([KEPT], ""), votes=tf.one_hot(0, KEPT, on_value=1, dtype=tf.int32)
    )


def longer(prefixes):
    """Every prefix with every letter behind it; a whole word only with another full stop."""
    return prefixes[:, tf.newaxis] + tf.constant(list(LETTERS))[tf.newaxis, :]


def is_taken(found):
    return found.votes > 0


def is_whole(prefixes):
    return tf.strings.regex_full_match(prefixes, r".*\.")


def have(words, prefixes):
    """For each prefix, 1 if one of the words, ended by a full stop, begins with it."""
    flat = tf.reshape(prefixes, [-1])
    sizes = tf.strings.length(flat)

    def add(seen, word):
        ended = tf.repeat(tf.strings.join([word, END]), tf.size(flat))
        cut = tf.strings.substr(ended, tf.zeros_like(sizes), sizes)
        return tf.maximum(seen, tf.cast(tf.equal(cut, flat), tf.int32))

    seen = words.reduce(tf.zeros_like(sizes), add)
    return tf.reshape(seen, tf.shape(prefixes))


@tff.tf_computation(STATE, WORDS)
def vote(found, words):
    """A client's votes: no client counts more than once for a prefix, however often it uses it."""
    growing = tf.cast(is_taken(found) & ~is_whole(found.prefixes), tf.int32)
    return have(words, longer(found.prefixes)) * growing[:, tf.newaxis]


@tff.tf_computation(STATE, BALLOT)
def keep(found, votes):
    """The prefixes with the most votes, the words that are whole among them."""
    whole = is_taken(found) & is_whole(found.prefixes)
    candidates = tf.concat([found.prefixes, tf.reshape(longer(found.prefixes), [-1])], axis=0)
    counts = tf.concat([tf.where(whole, found.votes, 0), tf.reshape(votes, [-1])], axis=0)
    counts = tf.where(counts >= THRESHOLD, counts, 0)
    best, places = tf.math.top_k(counts, KEPT)
    return Found(prefixes=tf.where(best > 0, tf.gather(candidates, places), ""), votes=best)


@tff.tf_computation(STATE, WORDS)
def use(found, words):
    """For each prefix that was found, 1 if the client has a word with it."""
    return have(words, found.prefixes) * tf.cast(is_taken(found), tf.int32)


@tff.federated_computation
def initialize():
    return tff.federated_eval(nothing_found, tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(WORDS))
def find_longer(found, words):
    votes = tff.federated_map(vote, (tff.federated_broadcast(found), words))
    kept = tff.federated_map(keep, (found, tff.federated_secure_sum(votes, 1)))
    return kept, kept


discovery = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=find_longer)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(WORDS))
def evaluation(found, words):
    """How many clients have a word with each prefix; what was found goes through unchanged."""
    used = tff.federated_map(use, (tff.federated_broadcast(found), words))
    users = tff.federated_secure_sum(used, 1)
    output = collections.OrderedDict(prefixes=found.prefixes, users=users)
    return found, tff.federated_zip(output)
