"""The TensorFlow functions of `traced_module`, traced with nothing but TensorFlow."""

import tensorflow as tf

from benchmarks import averaging

weights = [tf.TensorSpec(shape) for shape in averaging.SHAPES]
example = {
    "x": tf.TensorSpec([averaging.FEATURES]),
    "y": tf.TensorSpec([], tf.int32),
}


def work(given, data):
    """Train one client."""
    return averaging.train(list(given), data)


def update(given, delta):
    """Return the weights after a round."""
    return [weight + change for weight, change in zip(given, delta, strict=True)]


for function, second in ((work, tf.data.DatasetSpec(example)), (update, weights)):
    traced = tf.function(function).get_concrete_function(weights, second)
    traced.graph.as_graph_def()
