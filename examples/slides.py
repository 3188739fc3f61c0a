"""The three programs with which the slides of TFF 101 introduce the language.

tffc print examples/slides.py:simple --sexpr
"""

import tensorflow as tf

import tffc as tff


@tff.tf_computation(tf.int32)
def add_one(value):
    return value + 1


@tff.federated_computation(tff.types.at_server(tf.int32))
def simple(server_value):
    """Sends a number to all clients, which each add one, and sums what they answer."""
    client_values = tff.federated_broadcast(server_value)
    client_values = tff.federated_map(add_one, client_values)
    server_result = tff.federated_sum(client_values)
    return server_result


@tff.federated_computation(tf.int32, tf.int32)
def combine(a, b):
    """Packs two arguments, which arrive as one struct, into a struct without names."""
    return (a, b)


@tff.federated_computation(tff.StructType([tf.int32, tf.float32]))
def make_selection(arg):
    """Takes the first element of a struct."""
    return arg[0]
