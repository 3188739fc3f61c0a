"""Federated LoRA of a small Llama: only its LoRA weights are trained, broadcast and averaged.

The base is a resource: once in the bundle, and in no broadcast.  It is random, so that nothing is
downloaded; `from_pretrained` would give it trained weights.

    training    the process: makes the first LoRA weights, and from some and clients the next
    melodies    the clients: players of scales, from which the next note is learnt
"""

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, inject_adapter_in_model
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM

import tffc as tff

torch.manual_seed(1)
SIZES: Any = {"vocab_size": 24, "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2}
CONFIG = LlamaConfig(num_attention_heads=4, initializer_range=0.2, **SIZES)
ADAPTERS = LoraConfig(r=2, lora_alpha=16, lora_dropout=0.1, target_modules="all-linear")
LLAMA = inject_adapter_in_model(ADAPTERS, LlamaForCausalLM(CONFIG))
WEIGHTS = tff.torch.weights(LLAMA)
base = tff.resource(WEIGHTS.frozen)
BASE, LORA = tff.torch.types(WEIGHTS.frozen), tff.torch.types(WEIGHTS.trained)
OPTIMIZER = tff.torch.adamw(lr=0.02)
NOTES = tff.TensorType(np.int64, [4, 9])  # four melodies, for a step of training
MELODIES = tff.SequenceType(NOTES)
WORK = OrderedDict(lora=LORA, optimizer=OPTIMIZER.type(LORA), seed=np.int64, loss=np.float32)


@tff.torch.computation(LORA, np.int64)
def start(lora, seed):
    return OrderedDict(lora=lora, optimizer=OPTIMIZER.first(lora), seed=seed, loss=torch.zeros(()))


@tff.torch.computation(BASE, WORK, NOTES)
def step(base, work, notes):
    def loss_of(lora):
        with tff.torch.draws(work["seed"], work["optimizer"]["steps"]):
            scores = tff.torch.call(LLAMA, {**base, **lora}, notes[:, :-1]).logits
        return cross_entropy(scores.flatten(0, 1), notes[:, 1:].flatten())

    slopes, loss = torch.func.grad_and_value(loss_of)(work["lora"])
    lora, optimizer = OPTIMIZER.step(work["lora"], slopes, work["optimizer"])
    return {**work, "lora": lora, "optimizer": optimizer, "loss": loss}


@tff.federated_computation(WORK, NOTES)
def step_on_base(work, notes):
    return step(base(), work, notes)


@tff.federated_computation(LORA, MELODIES)
def train(lora, melodies):
    return tff.sequence_reduce(melodies, start(lora, tff.torch.seed()()), step_on_base)


@tff.federated_computation(tff.types.at_server(LORA), tff.types.at_clients(MELODIES))
def next_lora(lora, melodies):
    work = tff.federated_map(train, (tff.federated_broadcast(lora), melodies))
    return tff.federated_mean(work.lora), {"loss": tff.federated_mean(work.loss)}


first_lora = tff.federated_computation(lambda: tff.federated_value(WEIGHTS.trained, tff.SERVER))
training = tff.templates.IterativeProcess(first_lora, next_lora)


def melodies():
    draw = np.random.default_rng(1)
    scale = np.array([0, 2, 4, 5, 7, 9, 11, 12, 14])
    first = draw.integers(0, 24, [20, 6, 4, 1])
    return {
        f"player_{n}": each % 24
        for n, each in enumerate(first + draw.choice([-1, 1], first.shape) * scale)
    }
