"""Federated averaging of a convolutional network on handwritten digits, in PyTorch.

A client takes a step of gradient descent for each of its images, in the order in which it holds
them, and the server takes the mean of the clients' networks, each with the weight of its images.

    training      the process: makes the first state, and from one state and clients the next
    evaluation    loss and accuracy of a state's network on the clients' images, all held out
"""

import collections

import numpy as np
import torch
from torch import nn

import tffc as tff

torch.manual_seed(1)
NETWORK = nn.Sequential(
    *(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Dropout(0.1), nn.Linear(128, 10)),
)
FIRST = tff.torch.weights(NETWORK).trained
MODEL = tff.torch.types(FIRST)
OPTIMIZER = tff.torch.sgd(lr=0.05)
IMAGE = collections.OrderedDict(
    pixels=tff.TensorType(np.uint8, [64]), label=tff.TensorType(np.int32)
)
TOTALS = collections.OrderedDict(dict.fromkeys(("loss", "correct", "images"), np.float32))
WORK = collections.OrderedDict(model=MODEL, seed=np.int64, totals=TOTALS)
IMAGES = tff.SequenceType(IMAGE)


def measured(model, image, training=True):
    """The loss of a network on one image, and whether it is right about it."""
    NETWORK.train(training)
    scores = tff.torch.call(NETWORK, model, image["pixels"][None] / 16)
    label = image["label"].long()
    return nn.functional.cross_entropy(scores, label[None]), (scores.argmax() == label).float()


def added(work, model, loss, correct):
    """The work after one more image."""
    one = {"loss": loss, "correct": correct, "images": 1.0}
    totals = collections.OrderedDict((k, total + one[k]) for k, total in work["totals"].items())
    return collections.OrderedDict(model=model, seed=work["seed"], totals=totals)


first_model = tff.torch.computation(lambda: {k: torch.from_numpy(v) for k, v in FIRST.items()})


@tff.torch.computation(MODEL, np.int64)
def start(model, seed):
    totals = collections.OrderedDict((name, torch.zeros(())) for name in TOTALS)
    return collections.OrderedDict(model=model, seed=seed, totals=totals)


@tff.torch.computation(WORK, IMAGE)
def step(work, image):
    """One step of gradient descent on one image; dropout has a key for each client and step."""
    with tff.torch.draws(work["seed"], work["totals"]["images"]):
        slope = torch.func.grad_and_value(measured, has_aux=True)
        slopes, (loss, correct) = slope(work["model"], image)
    model, _ = OPTIMIZER.step(work["model"], slopes, OPTIMIZER.first(work["model"]))
    return added(work, model, loss, correct)


@tff.torch.computation(WORK, IMAGE)
def measure(work, image):
    """What the network says of one image, without a step and without dropout."""
    return added(work, work["model"], *measured(work["model"], image, training=False))


@tff.torch.computation(TOTALS)
def summary(totals):
    return {name: totals[name] / totals["images"] for name in ("loss", "correct")}


@tff.federated_computation(MODEL, IMAGES)
def train(model, images):
    return tff.sequence_reduce(images, start(model, tff.torch.seed()()), step)


@tff.federated_computation(MODEL, IMAGES)
def test(model, images):
    return tff.sequence_reduce(images, start(model, 0), measure)


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_model, tff.SERVER)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def next_model(model, images):
    work = tff.federated_map(train, (tff.federated_broadcast(model), images))
    mean = tff.federated_mean(work.model, weight=work.totals.images)
    return mean, tff.federated_map(summary, tff.federated_sum(work.totals))


training = tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=next_model)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def evaluation(model, images):
    """Measures the network of a state; the state goes through unchanged."""
    work = tff.federated_map(test, (tff.federated_broadcast(model), images))
    return model, tff.federated_map(summary, tff.federated_sum(work.totals))
