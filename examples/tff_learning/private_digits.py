r"""Handwritten digits learned by TFF's own library, from clipped, noised and secret updates.

`tff.learning` needs the wheel of TensorFlow Federated; docs/migrate-from-tff.md says how to get it.

    tffc compile examples/tff_learning/private_digits.py:training --form mapreduce \
        --out build/private
    tffc run build/private --data examples/digits/train --clients-per-round 20 --rounds 30
"""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

CLIENTS_PER_ROUND = 20

DIGITS = tff.SequenceType(
    collections.OrderedDict(pixels=(np.uint8, [64]), label=tff.TensorType(np.int32))
)


@tff.tensorflow.computation(DIGITS)
def batches(digits):
    """Two epochs of a client's digits, in batches."""

    def prepare(batch):
        pixels = tf.cast(batch["pixels"], tf.float32) / 16
        return collections.OrderedDict(x=pixels, y=batch["label"])

    return digits.repeat(2).batch(16).map(prepare)


@tf.function
def predict(weights, x, training):
    (hidden, hidden_bias, output, output_bias), _ = weights
    return tf.nn.relu(x @ hidden + hidden_bias) @ output + output_bias


@tf.function
def loss(logits, labels, sample_weight=None):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


@tf.function
def none_seen():
    return collections.OrderedDict(accuracy=(0.0, 0.0))


@tf.function
def count_right(state, labels, batch_output, sample_weight=None):
    right = tf.equal(tf.argmax(batch_output.predictions, 1, tf.int32), labels)
    found, seen = state["accuracy"]
    found += tf.reduce_sum(tf.cast(right, tf.float32))
    return collections.OrderedDict(accuracy=(found, seen + tf.cast(tf.size(labels), tf.float32)))


@tf.function
def share_right(state):
    found, seen = state["accuracy"]
    return collections.OrderedDict(accuracy=found / seen)


def first_weights():
    """One hidden layer; what does not train is empty."""
    random = np.random.default_rng(0)
    hidden = random.normal(0, 0.15, [64, 32]).astype(np.float32)
    output = random.normal(0, 0.2, [32, 10]).astype(np.float32)
    return (hidden, np.zeros(32, np.float32), output, np.zeros(10, np.float32)), ()


model = tff.learning.models.FunctionalModel(
    initial_weights=first_weights(),
    predict_on_batch_fn=predict,
    loss_fn=loss,
    metrics_fns=(none_seen, count_right, share_right),
    input_spec=collections.OrderedDict(
        x=tf.TensorSpec([None, 64], tf.float32), y=tf.TensorSpec([None], tf.int32)
    ),
)

# Distributed differential privacy: each client clips its update, adds its part of the noise and
# rounds to integers, which are summed securely.  The bound of the clipping follows a quantile.
aggregator = tff.learning.ddp_secure_aggregator(
    noise_multiplier=0.1, expected_clients_per_round=CLIENTS_PER_ROUND
)

training = tff.simulation.compose_dataset_computation_with_learning_process(
    batches,
    tff.learning.algorithms.build_weighted_fed_avg(
        model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0, 0.9),
        # Every client's update counts as much as any other's.
        model_aggregator=tff.aggregators.as_weighted_aggregator(aggregator),
    ),
)
