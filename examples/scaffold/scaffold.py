"""SCAFFOLD (Karimireddy et al., 2020): averaging in which clients correct their own drift.

Each client keeps a control: the mean slope of its own loss.  Its steps follow its slopes, less its
own control, plus the mean control of all clients, which the server keeps.

    training    the process, for a softmax regression of digits from clients' images
"""

import collections

import tensorflow as tf

import tffc as tff

RATE, STEPS, PARTICIPATION = 0.5, 10, 0.5
"""The learning rate, the steps of a client in a round, and the share of clients in each round."""

MATRIX = tff.TensorType(tf.float32, [65, 10])
SERVER = collections.OrderedDict(model=MATRIX, control=MATRIX)
IMAGES = collections.OrderedDict(
    pixels=tff.TensorType(tf.uint8, [None, 64]), label=tff.TensorType(tf.int32, [None])
)


def scores(model, pixels):
    return tf.pad(tf.cast(pixels, tf.float32) / 16.0, [[0, 0], [0, 1]], constant_values=1.0) @ model


def mean_loss(model, images):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            images["label"], scores(model, images["pixels"])
        )
    )


@tff.tf_computation(SERVER, IMAGES, MATRIX)
def work(server, images, own):
    model, start = server["model"], server["model"]
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            tape.watch(model)
            loss = mean_loss(model, images)
        model -= RATE * (tape.gradient(loss, model) - own + server["control"])
    control = own - server["control"] + (start - model) / (STEPS * RATE)
    sent = collections.OrderedDict(model=model - start, control=PARTICIPATION * (control - own))
    return collections.OrderedDict(sent=sent, own=control, loss=mean_loss(start, images))


@tff.tf_computation
def first_state():
    return collections.OrderedDict(model=tf.zeros([65, 10]), control=tf.zeros([65, 10]))


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_state, tff.SERVER)


@tff.tf_computation(SERVER, SERVER)
def add(server, moved):
    return tf.nest.map_structure(tf.add, server, moved)


@tff.federated_computation(
    tff.types.at_server(SERVER), tff.types.at_clients(IMAGES), tff.types.at_clients(MATRIX)
)
def next_round(server, images, own):
    worked = tff.federated_map(work, (tff.federated_broadcast(server), images, own))
    moved = tff.federated_mean(worked.sent)
    output = {"loss": tff.federated_mean(worked.loss)}
    return tff.federated_map(add, (server, moved)), worked.own, output


training = tff.templates.IterativeProcess(initialize, next_round)
