"""Federated averaging of a convolutional network on handwritten digits, in PyTorch.

A client takes a step of gradient descent for each of its images, and the server takes the mean of
the clients' networks, each with the weight of its images.

    training      the process: makes the first state, and from one state and clients the next
    evaluation    loss and accuracy of a state's network on the clients' images, all held out
"""

from collections import OrderedDict

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
OPTIMIZER = tff.torch.sgd(lr=0.05)
MODEL = tff.torch.types(FIRST)
IMAGE = OrderedDict(pixels=(np.uint8, [64]), label=np.int32)
IMAGES = tff.SequenceType(IMAGE)
MEANS = OrderedDict(loss=np.float32, accuracy=np.float32)
WORK = OrderedDict(model=MODEL, seed=np.int64, images=np.float32, means=MEANS)


def measured(model, work, image, training):
    """The loss of a network on one image, and a client's work after it: means so far."""
    label, images = image["label"][None].long(), work["images"] + 1
    NETWORK.train(training)
    with tff.torch.draws(work["seed"], images):  # other dropout for each client and image
        scores = tff.torch.call(NETWORK, model, image["pixels"][None] / 16)
    loss = nn.functional.cross_entropy(scores, label)
    metrics = {"loss": loss, "accuracy": (scores.argmax(1) == label).float().mean()}
    means = {name: mean + (metrics[name] - mean) / images for name, mean in work["means"].items()}
    return loss, {**work, "images": images, "means": means}


@tff.torch.computation(WORK, IMAGE)
def step(work, image):
    slopes, work = torch.func.grad(measured, has_aux=True)(work["model"], work, image, True)
    model, _ = OPTIMIZER.step(work["model"], slopes, OPTIMIZER.first(work["model"]))
    return {**work, "model": model}


@tff.torch.computation(WORK, IMAGE)
def measure(work, image):
    return measured(work["model"], work, image, training=False)[1]


def work_with(each_image):
    @tff.federated_computation(MODEL, IMAGES)
    def work(model, images):
        means = OrderedDict(loss=0.0, accuracy=0.0)
        first = OrderedDict(model=model, seed=tff.torch.seed()(), images=0.0, means=means)
        return tff.sequence_reduce(images, first, each_image)

    return work


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def next_model(model, images):
    work = tff.federated_map(work_with(step), (tff.federated_broadcast(model), images))
    return tuple(tff.federated_mean(each, weight=work.images) for each in (work.model, work.means))


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(IMAGES))
def evaluation(model, images):
    work = tff.federated_map(work_with(measure), (tff.federated_broadcast(model), images))
    return model, tff.federated_mean(work.means, weight=work.images)


first_model = tff.federated_computation(lambda: tff.federated_value(FIRST, tff.SERVER))
training = tff.templates.IterativeProcess(first_model, next_model)
