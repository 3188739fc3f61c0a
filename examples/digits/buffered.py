"""Federated averaging on handwritten digits in buffered rounds, which wait for no slow client.

The server moves its weights along the mean of the updates, without the momentum of
`federated_averaging.py`: that would add old directions to updates which are old already.

    training      the process, whose rounds may be buffered
    evaluation    that of federated_averaging.py
"""

import tensorflow as tf
from federated_averaging import IMAGES, MODEL, STATE, ServerState, evaluation, initialize, train

import tffc as tff

__all__ = ["evaluation", "training"]


def weight(age):
    """Updates on older models count less."""
    return 1 / tf.sqrt(1 + tf.cast(age, tf.float32))


@tff.tf_computation(STATE, MODEL)
def move(state, update):
    model = tf.nest.map_structure(lambda w, u: w + u, state.model, update)
    return ServerState(model, state.velocity)


@tff.buffered(discount=weight)
@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(IMAGES))
def train_one_round(state, images):
    model = tff.federated_broadcast(state.model)
    work = tff.federated_map(train, (model, images))
    update = tff.federated_mean(work.update, weight=work.count)
    metrics = tff.federated_mean(work.metrics, weight=work.count)
    return tff.federated_map(move, (state, update)), metrics


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)
