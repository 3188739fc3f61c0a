"""SCAFFOLD (Karimireddy et al., 2020): averaging in which clients correct their own drift.

Each client keeps a control: the mean slope of its own loss.  Its steps follow its slopes, less its
own control, plus the mean control of all clients, which the server keeps beside the model.

    training    the process, for a softmax regression of digits from clients' images
"""

from collections import OrderedDict

import numpy as np
import tensorflow as tf

import tffc as tff

RATE, STEPS, PARTICIPATION = 0.5, 10, 0.5
"""The learning rate, the steps of a client in a round, and the share of clients in each round."""

CONTROL = tff.TensorType(np.float32, [65, 10])
MODEL_AND_CONTROL = tff.TensorType(np.float32, [2, 65, 10])
IMAGES = OrderedDict(pixels=(np.uint8, [None, 64]), label=(np.int32, [None]))


def mean_loss(model, images):
    pixels = tf.cast(images["pixels"], tf.float32) / 16.0
    scores = tf.pad(pixels, [[0, 0], [0, 1]], constant_values=1.0) @ model
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(images["label"], scores))


@tff.tf_computation(MODEL_AND_CONTROL, IMAGES, CONTROL)
def work(server, images, own):
    start, control = tf.unstack(server)
    model = start
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            tape.watch(model)
            loss = mean_loss(model, images)
        model -= RATE * (tape.gradient(loss, model) - own + control)
    corrected = own - control + (start - model) / (STEPS * RATE)
    sent = tf.stack([model - start, PARTICIPATION * (corrected - own)])
    return OrderedDict(sent=sent, own=corrected, loss=mean_loss(start, images))


@tff.federated_computation
def initialize():
    return tff.federated_value(np.zeros([2, 65, 10], np.float32), tff.SERVER)


@tff.federated_computation(
    tff.types.at_server(MODEL_AND_CONTROL),
    tff.types.at_clients(IMAGES),
    tff.types.at_clients(CONTROL),
)
def next_round(server, images, own):
    worked = tff.federated_map(work, (tff.federated_broadcast(server), images, own))
    server += tff.federated_mean(worked.sent)
    return server, worked.own, {"loss": tff.federated_mean(worked.loss)}


training = tff.templates.IterativeProcess(initialize, next_round)
