"""Rounds with all kinds of operations, for tests that break their compiled forms."""

import numpy as np
import tensorflow as tf

import tffc as tff

VECTOR = tff.TensorType(np.float32, [2])
SEQUENCE = tff.SequenceType(np.int32)


@tff.tf_computation(VECTOR)
def half(x):
    return x * 0.5


@tff.tf_computation(VECTOR, VECTOR)
def distance(x, y):
    return tf.reduce_sum((x - y) / (1.0 + x * x)), x - 2.0 * y


@tff.tf_computation(np.float32)
def clip(x):
    return tf.cast(tf.minimum(tf.abs(x), 100.0), tf.int32)


@tff.tf_computation(np.float32)
def pair(x):
    return x, x


@tff.tf_computation((np.float32, np.float32), np.float32)
def accumulate(total, x):
    return total[0] + x, total[1] + x * x


@tff.tf_computation((np.float32, np.float32), (np.float32, np.float32))
def merge(one, other):
    return one[0] + other[0], one[1] + other[1]


@tff.tf_computation((np.float32, np.float32))
def variance(total):
    return total[1] - total[0] * total[0]


@tff.tf_computation(VECTOR, VECTOR, np.float32)
def step(state, mean, spread):
    return state - mean / (spread + 1.0)


@tff.federated_computation(tff.types.at_server(VECTOR), tff.types.at_clients(VECTOR))
def statistics(state, data):
    sent = tff.federated_broadcast(state)
    other = tff.federated_broadcast(tff.federated_map(half, state))
    far, difference = tff.federated_map(distance, (sent, data))
    near, _ = tff.federated_map(distance, (data, other))
    whole = tff.federated_map(clip, far)
    mean = tff.federated_mean(difference, near)
    spread = tff.federated_aggregate(far, (0.0, 0.0), accumulate, merge, variance)
    return tff.federated_map(step, (state, mean, spread)), (
        tff.federated_sum(far),
        tff.federated_mean(near),
        tff.federated_min(far),
        tff.federated_max(near),
        tff.federated_secure_sum(whole, 100),
        tff.federated_secure_sum_bitwidth(whole, 7),
    )


@tff.tf_computation(np.float32)
def noisy(x):
    noise = tf.random.uniform([])
    return x + noise, noise - tf.random.normal([])


@tff.tf_computation(np.float32, np.float32)
def plus(x, y):
    return x + y


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def drawing(state, data):
    own, noise = tff.federated_map(noisy, data)
    drawn, _ = tff.federated_map(noisy, state)
    return drawn, (tff.federated_sum(own), tff.federated_sum(noise))


@tff.tf_computation(SEQUENCE, np.int32)
def counted(numbers, start):
    total = tf.Variable(start)
    count = tf.Variable(tf.constant(0))
    with tf.control_dependencies([total.assign_add(3)]):
        first = total.read_value()
    with tf.control_dependencies([count.assign_add(first)]):
        last = count.read_value()
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer([1, 2, 3], [5, 7, 9]), default_value=-1
    )
    longer = numbers.map(lambda n: 2 * n + start)
    summed = longer.reduce(0, lambda total, n: total + n)

    @tf.function
    def grow(n):
        if n > 3:
            return n - 1
        return tf.while_loop(lambda i: i < 20, lambda i: i + i + 1, [n])[0]

    return first, last, table.lookup(summed % 4), grow(first)


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(SEQUENCE))
def keeping(state, data):
    sent = tff.federated_broadcast(state)
    first, last, found, grown = tff.federated_map(counted, (data, sent))
    outputs = tuple(map(tff.federated_sum, (last, found, grown)))
    return tff.federated_sum(first), outputs


@tff.tf_computation(np.int32)
def assigned(x):
    first, second, third = (tf.Variable(tf.constant(0)) for _ in range(3))

    @tf.function
    def assign():
        first.assign(1)
        second.assign(2)
        third.assign(3)

    assign()
    return x + first + second + third


@tff.tf_computation((np.float32, np.int32), np.float32)
def accumulate_and_count(total, x):
    return total[0] + x, total[1] + 1


@tff.tf_computation((np.float32, np.int32), (np.float32, np.int32))
def merge_counts(one, other):
    return one[0] + other[0], one[1] + other[1]


@tff.tf_computation((np.float32, np.int32))
def without_count(total):
    return total[0]


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.float32))
def dropping(state, data):
    total = tff.federated_aggregate(
        data, (0.0, 0), accumulate_and_count, merge_counts, without_count
    )
    return tff.federated_map(assigned, state), total
