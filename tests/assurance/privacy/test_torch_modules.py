"""What is shown of rounds whose computations are PyTorch: what holds by hand, and no more."""

from __future__ import annotations

import math
from typing import Any

import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.privacy.derivations import derivation
from tests.assurance.privacy.module_rounds import (
    BATCH,
    CLIP,
    DEVIATION,
    ELEMENTS,
    Example,
    multiplier,
    noised,
    round_of,
)
from tests.assurance.privacy.programs.rounds import PAIR, SIZE
from tffc.assurance.privacy.accounting import Laplacian
from tffc.assurance.privacy.modules.instructions import OTHER_NOISE

torch: Any = pytest.importorskip("torch", reason="needs tffc[torch]")

pytestmark = pytest.mark.slow


def torch_round(contribution: Any, data: Any = PAIR) -> Any:
    return round_of(contribution, data, tff.torch.computation)


def norm_of_norms(tensors: Any) -> Any:
    return torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(x) for x in tensors]))


def clip_grad_norm(pair: Any) -> Any:
    """As `torch.nn.utils.clip_grad_norm_` clips."""
    factor = torch.clamp(CLIP / (norm_of_norms(pair.values()) + 1e-6), max=1.0)
    return {name: x * factor for name, x in pair.items()}


def own_formula(pair: Any) -> Any:
    norm = torch.stack([(x**2).sum() for x in pair.values()]).sum().sqrt()
    return {name: x / torch.clamp(norm / CLIP, min=1.0) for name, x in pair.items()}


def short_as_it_is(pair: Any) -> Any:
    norm = norm_of_norms(pair.values())
    return {name: torch.where(norm > CLIP, x * (CLIP / norm), x) for name, x in pair.items()}


def as_a_vector(pair: Any) -> Any:
    flat = torch.nn.utils.parameters_to_vector(pair.values())
    return flat * torch.clamp(CLIP / flat.norm(), max=1.0)


def dot_product(pair: Any) -> Any:
    flat = torch.cat([x.reshape(-1) for x in pair.values()])
    return flat * torch.clamp(CLIP * torch.rsqrt(torch.dot(flat, flat)), max=1.0)


def each_tensor(pair: Any) -> Any:
    return {name: x * torch.clamp(1.0 / x.norm(), max=1.0) for name, x in pair.items()}


def sum_of_magnitudes(pair: Any) -> Any:
    norm = sum(x.abs().sum() for x in pair.values())
    return {name: x * torch.clamp(CLIP / norm, max=1.0) for name, x in pair.items()}


def largest_magnitude(pair: Any) -> Any:
    return {name: x / torch.clamp(x.abs().max(), min=1.0) for name, x in pair.items()}


def box(pair: Any) -> Any:
    return {name: x.clamp(-1.0, 1.0) for name, x in pair.items()}


def zeroed(pair: Any) -> Any:
    norm = norm_of_norms(pair.values())
    zeroed = {n: torch.where(norm <= 30.0, x, torch.zeros_like(x)) for n, x in pair.items()}
    return clip_grad_norm(zeroed)


def loss(model: Any, batch: Any) -> Any:
    return ((batch["x"] @ model["w"] + model["b"] - batch["y"]) ** 2).mean()


def trained(batch: Any) -> Any:
    """What three steps of gradient descent change."""
    first = {"w": torch.zeros(4), "b": torch.zeros(())}
    model = first
    for _ in range(3):
        slopes = torch.func.grad(loss)(model, batch)
        model = {name: w - 0.1 * slopes[name] for name, w in model.items()}
    return clip_grad_norm({name: w - first[name] for name, w in model.items()})


EXAMPLES = [
    Example(clip_grad_norm, CLIP),
    Example(own_formula, CLIP),
    Example(short_as_it_is, CLIP),
    Example(as_a_vector, CLIP),
    Example(dot_product, CLIP),
    Example(each_tensor, math.sqrt(2)),
    Example(sum_of_magnitudes, CLIP),
    Example(largest_magnitude, math.sqrt(ELEMENTS)),
    Example(box, math.sqrt(ELEMENTS)),
    Example(zeroed, CLIP),
    Example(trained, CLIP, BATCH),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.contribution.__name__)
def test_torch(example: Example) -> None:
    rounds = torch_round(example.contribution, example.data)
    assert math.isclose(multiplier(rounds), DEVIATION / example.norm, rel_tol=1e-6)


def one_layer_left_out(pair: Any) -> Any:
    return {**pair, "kernel": clip_grad_norm(pair)["kernel"]}


def one_layer_measured(pair: Any) -> Any:
    factor = torch.clamp(CLIP / torch.linalg.vector_norm(pair["kernel"]), max=1.0)
    return {name: x * factor for name, x in pair.items()}


def factor_without_limit(pair: Any) -> Any:
    factor = torch.clamp(CLIP / (norm_of_norms(pair.values()) + 1e-6), min=1.0)
    return {name: x * factor for name, x in pair.items()}


def one_axis(pair: Any) -> Any:
    norms = torch.linalg.vector_norm(pair["kernel"], dim=0)
    return pair["kernel"] * torch.clamp(CLIP / norms, max=1.0)


def mean_instead_of_sum(pair: Any) -> Any:
    norm = pair["bias"].abs().mean()
    return pair["bias"] * torch.clamp(CLIP / norm, max=1.0) * pair["bias"].sum()


def threshold_of_data(pair: Any) -> Any:
    limit = pair["bias"].abs().max()
    factor = torch.clamp(limit / norm_of_norms(pair.values()), max=1.0)
    return {name: x * factor for name, x in pair.items()}


def step_after_the_clip(batch: Any) -> Any:
    model = trained(batch)
    slopes = torch.func.grad(loss)(model, batch)
    return {name: w - 0.1 * slopes[name] for name, w in model.items()}


FAULTS = [
    Example(one_layer_left_out, 0),
    Example(one_layer_measured, 0),
    Example(factor_without_limit, 0),
    Example(one_axis, 0),
    Example(mean_instead_of_sum, 0),
    Example(threshold_of_data, 0),
    Example(step_after_the_clip, 0, BATCH),
]


@pytest.mark.parametrize("example", FAULTS, ids=lambda each: each.contribution.__name__)
def test_faults_of_torch(example: Example) -> None:
    derived = derivation(torch_round(example.contribution, example.data))
    assert [m.step for m in derived.missing] == ["bound of each contribution"], derived.bounds


def test_torch_adds_noise_of_tensorflow() -> None:
    rounds = noised(
        lambda: tf.random.normal([SIZE]),
        lambda t, z: (t + 6.0 * z) / 100.0,
        lambda x: x * torch.clamp(CLIP / x.norm(), max=1.0),
        tff.torch.computation,
    )
    assert math.isclose(multiplier(rounds), 2.0, rel_tol=1e-6)


def integer(dtype: Any) -> Any:
    return lambda: tf.random.uniform([], dtype.min, dtype.max, dtype)


def drawn_noise(draw: Any, seed: Any = None) -> Any:
    """Rounds with noise that PyTorch draws from a seed, of 64 bits by default."""

    def add(total: Any, number: Any) -> Any:
        with tff.torch.draws(number):
            return total + draw(total)

    def clip(x: Any) -> Any:
        return x * torch.clamp(CLIP / x.norm(p=1), max=1.0)

    return noised(seed or integer(tf.int64), add, clip, tff.torch.computation)


def test_noise_of_torch() -> None:
    rounds = drawn_noise(lambda total: 6.0 * torch.randn_like(total))
    assert math.isclose(multiplier(rounds), 2.0, rel_tol=1e-6)


def test_laplace_noise_of_torch() -> None:
    def laplace(total: Any) -> Any:
        u = torch.empty_like(total).uniform_(torch.finfo(total.dtype).eps - 1, 1)
        return -6.0 * u.sign() * torch.log1p(-u.abs())

    (part,) = derivation(drawn_noise(laplace)).parts
    assert isinstance(part, Laplacian)
    assert math.isclose(part.multiplier, 2.0, rel_tol=1e-6)


def same_numbers_twice(total: Any) -> Any:
    noise = torch.randn(SIZE // 2)
    return 6.0 * torch.cat([noise, noise])


FAULTS_OF_NOISE = [
    lambda total: 6.0 * torch.randn([1]),
    lambda total: 6.0 * torch.rand_like(total),
    lambda total: 6.0 * torch.randn_like(total).clamp(-2.0, 2.0),
    lambda total: 6.0 * torch.randn_like(total).abs(),
    lambda total: 6.0 * torch.empty_like(total).exponential_(),
    lambda total: 6.0 * torch.randn(total.shape, dtype=torch.float16).to(torch.float32),
    lambda total: total.sum() * torch.randn_like(total),
    same_numbers_twice,
]


@pytest.mark.parametrize("draw", FAULTS_OF_NOISE)
def test_faults_of_noise_of_torch(draw: Any) -> None:
    assert not derivation(drawn_noise(draw)).is_shown


def test_a_seed_of_32_bits_can_be_tried_out() -> None:
    rounds = drawn_noise(lambda total: 6.0 * torch.randn_like(total), integer(tf.int32))
    (missing,) = derivation(rounds).missing
    assert (missing.step, missing.reason) == ("noise", OTHER_NOISE)


@pytest.mark.parametrize("most", [2**31, 2**40, 2**61])
def test_a_seed_of_a_smaller_range_can_be_tried_out(most: int) -> None:
    def seed() -> Any:
        return tf.random.uniform([], 0, most, tf.int64)

    rounds = drawn_noise(lambda total: 6.0 * torch.randn_like(total), seed)
    assert not derivation(rounds).is_shown


def test_a_seed_that_is_used_twice() -> None:
    """Each block of draws with one seed has the same numbers."""

    def add(total: Any, seed: Any) -> Any:
        with tff.torch.draws(seed):
            first = total + 6.0 * torch.randn_like(total)
        with tff.torch.draws(seed):
            return first, total + 6.0 * torch.randn_like(total)

    rounds = noised(integer(tf.int64), add, lambda x: x.clamp(-1.0, 1.0), tff.torch.computation)
    assert {m.step for m in derivation(rounds).missing} == {"noise drawn once"}
