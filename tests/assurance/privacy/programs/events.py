"""What each private program releases in a round, by hand.

A release is private as these mechanisms are, composed: "gaussian" with a standard deviation over
the L2 length by which a client changes it, "laplace" with a scale over the L1 length.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, NamedTuple

from tests.assurance.privacy.programs.rounds import CLIP, EXPECTED, NOISE, SIZE

Mechanisms = list[tuple[str, float]]

BASE = "tests.assurance.privacy.programs"


class Release(NamedTuple):
    """A program and its mechanisms, if a client is added or removed, and if one is replaced.

    None stands for a round that is not private in that sense.
    """

    module: str
    removed: Mechanisms | None
    replaced: Mechanisms | None


def gaussians(*multipliers: float) -> Mechanisms:
    return [("gaussian", multiplier) for multiplier in multipliers]


def laplace(multiplier: float) -> Mechanisms:
    return [("laplace", multiplier)]


def scaled(mechanisms: Mechanisms, factor: float) -> Mechanisms:
    return [(kind, multiplier * factor) for kind, multiplier in mechanisms]


def central(module: str, removed: Mechanisms) -> Release:
    """A replaced client changes a sum by twice as much as one that is removed."""
    return Release(module, removed, scaled(removed, 0.5))


DEVIATION = NOISE * CLIP
ONE = gaussians(NOISE)
BOX = gaussians(DEVIATION / math.sqrt(SIZE))
"""Of values between -1 and 1 in each place."""

SCALE = 0.5
ROUNDED = CLIP + 0.5 * math.sqrt(SIZE) / 100
"""The length of a rounded contribution: each place may grow by half of a hundredth."""

EVENTS: dict[str, Release] = {
    "sum_clip_by_norm": central("tensorflow_programs", ONE),
    "mean_clip_by_global_norm": central("tensorflow_programs", ONE),
    "sum_minimum_formula": central("tensorflow_programs", ONE),
    "sum_where_formula": central("tensorflow_programs", ONE),
    "sum_divided_formula": central("tensorflow_programs", ONE),
    "sum_clip_in_a_branch": central("tensorflow_programs", ONE),
    "sum_zeroing": central("tensorflow_programs", ONE),
    "sum_zeroing_and_clip": central("tensorflow_programs", ONE),
    # Each tensor has noise for its own clip, and so the same multiplier.
    "sum_clip_each_tensor": central("tensorflow_programs", gaussians(NOISE, NOISE)),
    # One noise for both: the length of a contribution is that of (CLIP, 1).
    "sum_clip_each_one_scale": central(
        "tensorflow_programs", gaussians(DEVIATION / math.hypot(CLIP, 1.0))
    ),
    "sum_clip_by_value": central("tensorflow_programs", BOX),
    "sum_tanh": central("tensorflow_programs", BOX),
    # Two of the vectors are at most the square root of two apart, less than twice their length.
    "histogram_one_hot": Release("tensorflow_programs", ONE, gaussians(NOISE / math.sqrt(2))),
    "sum_laplace_by_inverse": central("tensorflow_programs", laplace(SCALE)),
    "sum_laplace_of_exponentials": central("tensorflow_programs", laplace(SCALE)),
    "sum_laplace_in_a_box": central("tensorflow_programs", laplace(SCALE / SIZE)),
    "sum_drawn_from_a_seed": central("tensorflow_programs", ONE),
    # A client that leaves takes its noise along.  The noise that it draws hides what it is replaced
    # by, whatever the others draw.
    "sum_noise_at_clients": Release("tensorflow_programs", None, gaussians(NOISE / 2)),
    "sum_shares_of_noise": Release(
        "tensorflow_programs", None, gaussians(NOISE / 2 / math.sqrt(EXPECTED))
    ),
    # Without negative elements, two contributions are at most at right angles.
    "secure_sum_rounded": Release(
        "tensorflow_programs",
        gaussians(DEVIATION / ROUNDED),
        gaussians(DEVIATION / (math.sqrt(2) * CLIP + math.sqrt(SIZE) / 100)),
    ),
    # The count does not change if a client is replaced.
    "mean_private_denominator": Release(
        "state_programs", gaussians(NOISE, 5.0), gaussians(NOISE / 2)
    ),
    # A weight is between 0 and 1, so a replaced client changes the sum by at most 1 too.
    "mean_private_weights": Release(
        "state_programs", gaussians(NOISE, 5.0), gaussians(NOISE / 2, 5.0)
    ),
    # So it is for the indicator, and for the loss, which is between 0 and 2.
    "several_channels": Release(
        "state_programs", gaussians(NOISE, 5.0, 10.0 / 2), gaussians(NOISE / 2, 5.0, 10.0 / 2)
    ),
    "adaptive_clip": central("state_programs", gaussians(NOISE, 5.0 / 0.5)),
    "adaptive_clip_exact_count": Release("state_programs", None, None),
    "scale_in_state": central("state_programs", ONE),
    "aggregate_with_clip": central("state_programs", ONE),
    # The number of clients is that of both sets if one is replaced, and at least one.
    "mean_exact_denominator": Release("state_programs", None, gaussians(NOISE / 2)),
    "jax_clip_by_global_norm": central("jax_programs", ONE),
    "jax_minimum_formula": central("jax_programs", ONE),
    "jax_laplace": central("jax_programs", laplace(SCALE)),
    "jax_clip_by_value": central("jax_programs", BOX),
    "torch_clip_grad_norm": central("torch_programs", ONE),
    "torch_where_formula": central("torch_programs", ONE),
    "torch_laplace": central("torch_programs", laplace(SCALE)),
    "torch_clip_by_value": central("torch_programs", BOX),
}


def program(name: str) -> Any:
    """The process of this name."""
    return getattr(importlib.import_module(f"{BASE}.{EVENTS[name].module}"), name)


def event(mechanisms: Mechanisms) -> Any:
    """The event of `dp_accounting` for these mechanisms in a round."""
    accounting = importlib.import_module("dp_accounting")
    kinds = {"gaussian": accounting.GaussianDpEvent, "laplace": accounting.LaplaceDpEvent}
    return accounting.ComposedDpEvent([kinds[kind](number) for kind, number in mechanisms])
