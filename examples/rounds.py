"""The two rounds that describe the forms, written out: all parts, all ways of aggregating.

    tffc compile examples/rounds.py:map_reduce_round --form mapreduce --out build/round
    tffc compile examples/rounds.py:distribute_aggregate_round \\
        --form distribute-aggregate --out build/round
    tffc compile examples/rounds.py:broadcast_round --form broadcast --out build/scores

Clients hold numbers.  The server knows how large a number may be, and learns how many there are,
what they add up to, and how far they reach.
"""

import collections

import numpy as np
import tensorflow as tf

import tffc as tff

NUMBERS = tff.TensorType(np.int32, [4])
STATE = tff.StructType([("limit", np.int32), ("round", np.int32)])
CONTEXT = tff.StructType([("limit", np.int32)])


@tff.tf_computation(STATE)
def prepare(state):
    return collections.OrderedDict(limit=state.limit)


@tff.tf_computation(NUMBERS, CONTEXT)
def work(numbers, context):
    """The plain update, and three more that are summed securely, each bounded in its own way."""
    kept = tf.minimum(numbers, context["limit"])
    count = tf.size(kept)
    return tf.cast(kept, tf.float32), count, tf.reduce_max(kept), tf.reduce_sum(kept)


ACCUMULATOR = tff.StructType([("sum", np.float32), ("clients", np.float32)])
UPDATE = tff.TensorType(np.float32, [4])


@tff.tf_computation
def zero():
    return collections.OrderedDict(sum=0.0, clients=0.0)


@tff.tf_computation(ACCUMULATOR, UPDATE)
def accumulate(accumulator, update):
    return collections.OrderedDict(
        sum=accumulator.sum + tf.reduce_mean(update), clients=accumulator.clients + 1.0
    )


@tff.tf_computation(ACCUMULATOR, ACCUMULATOR)
def merge(first, second):
    return collections.OrderedDict(
        sum=first.sum + second.sum, clients=first.clients + second.clients
    )


@tff.tf_computation(ACCUMULATOR)
def report(accumulator):
    return tf.math.divide_no_nan(accumulator.sum, accumulator.clients)


AGGREGATE = tff.StructType([np.float32, np.int32, np.int32, np.int32])


@tff.tf_computation(STATE, AGGREGATE)
def update(state, aggregate):
    mean, count, bound, total = aggregate[0], aggregate[1], aggregate[2], aggregate[3]
    new_state = collections.OrderedDict(limit=state.limit, round=state.round + 1)
    return new_state, collections.OrderedDict(mean=mean, count=count, bound=bound, total=total)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(NUMBERS))
def map_reduce_round(server_state, client_data):
    """The round of MapReduceForm: prepare, broadcast, work, four aggregations, update."""
    client_input = tff.federated_broadcast(tff.federated_map(prepare, server_state))
    client_updates = tff.federated_map(work, (client_data, client_input))
    global_update = [
        tff.federated_aggregate(client_updates[0], zero(), accumulate, merge, report),
        tff.federated_secure_sum_bitwidth(client_updates[1], 8),
        tff.federated_secure_sum(client_updates[2], 1000),
        tff.backends.mapreduce.federated_secure_modular_sum(client_updates[3], 4096),
    ]
    new_state_and_output = tff.federated_map(update, (server_state, global_update))
    return new_state_and_output[0], new_state_and_output[1]


@tff.tf_computation(STATE)
def next_limit(state):
    return state.limit + state.round


@tff.tf_computation(NUMBERS, np.int32)
def count_kept(numbers, limit):
    return tf.math.count_nonzero(numbers <= limit, dtype=tf.int32)


@tff.tf_computation(STATE, np.int32, np.int32)
def conclude(state, limit, count):
    new_state = collections.OrderedDict(limit=limit, round=state.round + 1)
    return new_state, count


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(NUMBERS))
def distribute_aggregate_round(server_state, client_data):
    """The round of DistributeAggregateForm: what both server parts need is computed once."""
    limit = tff.federated_map(next_limit, server_state)
    kept = tff.federated_map(count_kept, (client_data, tff.federated_broadcast(limit)))
    total = tff.federated_sum(kept)
    new_state_and_output = tff.federated_map(conclude, (server_state, limit, total))
    return new_state_and_output[0], new_state_and_output[1]


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(NUMBERS))
def broadcast_round(server_state, client_data):
    """The round of BroadcastForm: each client keeps what it computes."""
    limit = tff.federated_map(next_limit, server_state)
    return tff.federated_map(count_kept, (client_data, tff.federated_broadcast(limit)))
