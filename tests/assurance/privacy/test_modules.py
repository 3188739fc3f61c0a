"""What is shown of rounds whose computations are JAX: what holds by hand, and no more."""

from __future__ import annotations

import math
import pathlib
import subprocess
import sys
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
from tests.assurance.privacy.programs.rounds import SIZE, VECTOR
from tffc.assurance.privacy.accounting import Laplacian
from tffc.assurance.privacy.modules.walk import SAME_MODULES
from tffc.assurance.privacy.question import Neighbours
from tffc.language import wire

jax: Any = pytest.importorskip("jax", reason="needs tffc[jax]")
jnp: Any = pytest.importorskip("jax.numpy")
ravel: Any = pytest.importorskip("jax.flatten_util").ravel_pytree

# What clients of JAX contribute.


def global_norm(tree: Any) -> Any:
    return jnp.sqrt(sum(jnp.sum(jnp.square(x)) for x in jax.tree.leaves(tree)))


def clipped_by(factor: Any, tree: Any) -> Any:
    return jax.tree.map(lambda x: x * factor, tree)


def short_as_it_is(tree: Any) -> Any:
    norm = global_norm(tree)
    return jax.tree.map(lambda x: jnp.where(norm < CLIP, x, (x / norm) * CLIP), tree)


def short_as_it_is_in_a_branch(tree: Any) -> Any:
    norm = global_norm(tree)
    return jax.lax.cond(norm <= CLIP, lambda: tree, lambda: clipped_by(CLIP / norm, tree))


def by_minimum(tree: Any) -> Any:
    return clipped_by(jnp.minimum(1.0, CLIP / global_norm(tree)), tree)


def by_reciprocal_root(tree: Any) -> Any:
    squares = sum(jnp.vdot(x, x) for x in jax.tree.leaves(tree))
    return clipped_by(jnp.minimum(1.0, CLIP * jax.lax.rsqrt(squares)), tree)


def by_norm_of_norms(tree: Any) -> Any:
    norms = jnp.stack([jnp.linalg.norm(x) for x in jax.tree.leaves(tree)])
    return clipped_by(jnp.minimum(1.0, CLIP / (jnp.linalg.norm(norms) + 1e-6)), tree)


def divided(tree: Any) -> Any:
    factor = jnp.maximum(1.0, global_norm(tree) / CLIP)
    return jax.tree.map(lambda x: x / factor, tree)


def raveled(tree: Any) -> Any:
    flat, _ = ravel(tree)
    return flat * jnp.minimum(1.0, CLIP / jnp.linalg.norm(flat))


def raveled_and_back(tree: Any) -> Any:
    flat, back = ravel(tree)
    return back(flat * jnp.minimum(1.0, CLIP / jnp.linalg.norm(flat)))


def each_tensor(tree: Any) -> Any:
    return jax.tree.map(lambda x: x * jnp.minimum(1.0, 1.0 / jnp.linalg.norm(x)), tree)


def by_sum_of_magnitudes(tree: Any) -> Any:
    norm = sum(jnp.sum(jnp.abs(x)) for x in jax.tree.leaves(tree))
    return clipped_by(jnp.minimum(1.0, CLIP / norm), tree)


def by_largest_magnitude(tree: Any) -> Any:
    return jax.tree.map(lambda x: x / jnp.maximum(1.0, jnp.max(jnp.abs(x))), tree)


def in_a_box(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.clip(x, -1.0, 1.0), tree)


def clamped(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.lax.clamp(-1.0, x, 1.0), tree)


def tanh(tree: Any) -> Any:
    return jax.tree.map(jnp.tanh, tree)


def zeroed(tree: Any) -> Any:
    norm = global_norm(tree)
    zeroed = jax.tree.map(lambda x: jnp.where(norm <= 30.0, x, jnp.zeros_like(x)), tree)
    return by_minimum(zeroed)


def transposed(tree: Any) -> Any:
    clipped = by_minimum(tree)
    return {"bias": clipped["bias"], "kernel": clipped["kernel"].T}


def padded(tree: Any) -> Any:
    return jnp.pad(by_minimum(tree)["bias"], (1, 2))


def mean_of_loss(model: Any, batch: Any) -> Any:
    return jnp.mean((batch["x"] @ model["w"] + model["b"] - batch["y"]) ** 2)


def trained(batch: Any) -> Any:
    """What three steps of gradient descent change."""
    first = {"w": jnp.zeros(4), "b": jnp.float32(0.0)}

    def step(_: Any, model: Any) -> Any:
        slopes = jax.grad(mean_of_loss)(model, batch)
        return jax.tree.map(lambda w, s: w - 0.1 * s, model, slopes)

    last = jax.lax.fori_loop(0, 3, step, first)
    return by_minimum(jax.tree.map(lambda a, b: a - b, last, first))


def gradients(batch: Any) -> Any:
    """The clipped slopes of one batch."""
    model = {"w": jnp.ones(4), "b": jnp.float32(0.5)}
    return short_as_it_is(jax.grad(mean_of_loss)(model, batch))


EXAMPLES = [
    Example(short_as_it_is, CLIP),
    Example(short_as_it_is_in_a_branch, CLIP),
    Example(by_minimum, CLIP),
    Example(by_reciprocal_root, CLIP),
    Example(by_norm_of_norms, CLIP),
    Example(divided, CLIP),
    Example(raveled, CLIP),
    Example(raveled_and_back, CLIP),
    Example(each_tensor, math.sqrt(2)),
    Example(by_sum_of_magnitudes, CLIP),
    Example(by_largest_magnitude, math.sqrt(ELEMENTS)),
    Example(in_a_box, math.sqrt(ELEMENTS)),
    Example(clamped, math.sqrt(ELEMENTS)),
    Example(tanh, math.sqrt(ELEMENTS)),
    Example(zeroed, CLIP),
    Example(transposed, CLIP),
    Example(padded, CLIP),
    Example(trained, CLIP, BATCH),
    Example(gradients, CLIP, BATCH),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.contribution.__name__)
def test_jax(example: Example) -> None:
    rounds = round_of(example.contribution, example.data)
    assert math.isclose(multiplier(rounds), DEVIATION / example.norm, rel_tol=1e-6)


def test_a_replaced_client_changes_twice_as_much() -> None:
    shown = multiplier(round_of(by_minimum), Neighbours.REPLACE)
    assert math.isclose(shown, DEVIATION / CLIP / 2, rel_tol=1e-6)


# Noise that TensorFlow draws and JAX adds, and noise that JAX draws.


def normal_numbers() -> Any:
    return tf.random.normal([SIZE])


def test_jax_adds_noise_of_tensorflow() -> None:
    rounds = noised(normal_numbers, lambda t, z: (t + 2.0 * CLIP * z) / 100.0, by_minimum)
    assert math.isclose(multiplier(rounds), 2.0, rel_tol=1e-6)


def test_jax_makes_laplace_noise() -> None:
    def add(total: Any, u: Any) -> Any:
        return total - 4.0 * jnp.sign(u) * jnp.log1p(-2.0 * jnp.abs(u))

    def draw() -> Any:
        return tf.random.uniform([SIZE], -0.5, 0.5)

    derived = derivation(noised(draw, add, by_sum_of_magnitudes))
    assert derived.is_shown, derived.missing
    (part,) = derived.parts
    assert isinstance(part, Laplacian)
    assert math.isclose(part.multiplier, 4.0 / CLIP, rel_tol=1e-6)


def test_noise_of_a_constant_key_is_none() -> None:
    def add(total: Any) -> Any:
        return total + 6.0 * jax.random.normal(jax.random.key(1), total.shape)

    rounds = round_of(by_minimum, VECTOR, finish=tff.jax.computation(add, VECTOR))
    assert [m.step for m in derivation(rounds).missing] == ["noise"]


def test_one_number_is_no_noise_for_a_vector() -> None:
    rounds = noised(lambda: tf.random.normal([]), lambda t, z: t + 6.0 * z, by_minimum)
    (missing,) = derivation(rounds).missing
    assert "the noise has the shape []" in missing.reason


def test_jax_computes_the_first_state() -> None:
    """The clip and the noise multiplier are numbers that JAX puts into the state."""
    first = tff.jax.computation(lambda: {"clip": jnp.float32(CLIP), "noise": jnp.float32(2.0)})
    state = first.type_signature.result
    draw = tff.tf_computation(normal_numbers)

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(first, tff.SERVER)

    @tff.jax.computation(state, VECTOR)
    def contribute(state: Any, x: Any) -> Any:
        return x * jnp.minimum(1.0, state["clip"] / jnp.linalg.norm(x))

    @tff.jax.computation(state, VECTOR, VECTOR)
    def finish(state: Any, total: Any, z: Any) -> Any:
        return total + state["clip"] * state["noise"] * z

    @tff.federated_computation(tff.types.at_server(state), tff.types.at_clients(VECTOR))
    def next_sum(state: Any, values: Any) -> Any:
        each = tff.federated_map(contribute, (tff.federated_broadcast(state), values))
        noise = tff.federated_eval(draw, tff.SERVER)
        return state, tff.federated_map(finish, (state, tff.federated_sum(each), noise))

    rounds = tff.templates.IterativeProcess(initialize, next_sum)
    assert math.isclose(multiplier(rounds), 2.0, rel_tol=1e-6)


# Faults: none of these is private, or not as far as is known.


def pair_of(kernel: Any, bias: Any) -> Any:
    return {"kernel": kernel, "bias": bias}


def one_layer_left_out(tree: Any) -> Any:
    return pair_of(by_minimum(tree)["kernel"], tree["bias"])


def norm_of_one_layer(tree: Any) -> Any:
    return clipped_by(jnp.minimum(1.0, CLIP / jnp.linalg.norm(tree["kernel"])), tree)


def threshold_of_data(tree: Any) -> Any:
    factor = jnp.minimum(1.0, jnp.abs(tree["bias"][0]) / global_norm(tree))
    return clipped_by(factor, tree)


def sum_over_one_axis(tree: Any) -> Any:
    norms = jnp.sqrt(jnp.sum(tree["kernel"] ** 2, axis=0))
    return tree["kernel"] * jnp.minimum(1.0, CLIP / norms)


def largest_instead_of_sum(tree: Any) -> Any:
    norm = jnp.max(jnp.abs(tree["bias"]))
    return tree["bias"] * tree["bias"] * jnp.minimum(1.0, CLIP / norm)


def sum_of_signed_numbers(tree: Any) -> Any:
    return clipped_by(jnp.minimum(1.0, CLIP / jnp.sum(tree["bias"])), tree)


def maximum_instead_of_minimum(tree: Any) -> Any:
    return clipped_by(jnp.maximum(1.0, CLIP / global_norm(tree)), tree)


def norm_without_root(tree: Any) -> Any:
    squares = sum(jnp.sum(x**2) for x in jax.tree.leaves(tree))
    return clipped_by(CLIP / (squares + 1.0) * squares, tree)


def scaled_after_the_clip(tree: Any) -> Any:
    return clipped_by(jnp.sum(tree["bias"]), by_minimum(tree))


def added_after_the_clip(tree: Any) -> Any:
    return jax.tree.map(lambda c, x: c + x, by_minimum(tree), tree)


def stepped_after_the_clip(batch: Any) -> Any:
    model = gradients(batch)
    slopes = jax.grad(mean_of_loss)(model, batch)
    return jax.tree.map(lambda w, s: w - 0.1 * s, model, slopes)


def branches_swapped(tree: Any) -> Any:
    norm = global_norm(tree)
    return jax.tree.map(lambda x: jnp.where(norm > CLIP, x, (x / norm) * CLIP), tree)


def branches_of_cond_swapped(tree: Any) -> Any:
    norm = global_norm(tree)
    return jax.lax.cond(norm <= CLIP, lambda: clipped_by(CLIP / norm, tree), lambda: tree)


def clipped_in_a_loop(tree: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, t: jax.tree.map(lambda x: 2 * x, t), by_minimum(tree))


def box_of_one_side(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.minimum(x, 1.0), tree)


def box_of_data(tree: Any) -> Any:
    return jax.tree.map(lambda x: jnp.clip(x, -x[0], x[0]), tree)


def norm_of_others(tree: Any) -> Any:
    norm = jnp.linalg.norm(jnp.tanh(tree["bias"]))
    return tree["bias"] * jnp.minimum(1.0, CLIP / norm)


def norm_of_a_part(tree: Any) -> Any:
    bias = tree["bias"]
    return bias * jnp.minimum(1.0, CLIP / jnp.linalg.norm(bias[:2]))


def condition_of_others(tree: Any) -> Any:
    kernel = tree["kernel"][:, :2]
    return jnp.where(kernel.T < 1.0, jnp.maximum(kernel, -1.0), 0.0)


def condition_reversed(tree: Any) -> Any:
    bias = tree["bias"]
    return jnp.where(jnp.abs(bias)[::-1] < 1.0, bias, 0.0)


def product_of_others(tree: Any) -> Any:
    norm = jnp.sqrt(jnp.abs(jnp.vdot(tree["bias"], tree["bias"][::-1])))
    return tree["bias"] * jnp.minimum(1.0, CLIP / norm)


def repeated_rows(tree: Any) -> Any:
    return jnp.broadcast_to(by_minimum(tree)["bias"], (1000, 3))


def gathered(tree: Any) -> Any:
    return by_minimum(tree)["bias"][jnp.array([0] * 1000)]


def wrapping_integers(tree: Any) -> Any:
    whole = jnp.clip(tree["bias"], 0.0, 100.0).astype(jnp.int8)
    return 1.0 / (1.5 + (whole * whole).astype(jnp.float32))


def half_precision(tree: Any) -> Any:
    halves = by_minimum(jax.tree.map(lambda x: x.astype(jnp.float16), tree))
    return jax.tree.map(lambda x: x.astype(jnp.float32), halves)


def norm_of_a_column(tree: Any) -> Any:
    squares = jnp.sum(tree["kernel"] ** 2, axis=0)[0]
    return tree["kernel"] * jnp.minimum(1.0, CLIP / jnp.sqrt(squares))


def condition_transposed(tree: Any) -> Any:
    kernel = tree["kernel"][:, :2]
    return jnp.where((kernel < 1.0).T, jnp.maximum(kernel, -1.0), 0.0)


def truth_reversed(tree: Any) -> Any:
    bias = tree["bias"]
    return jnp.where((jnp.abs(bias) < 1.0)[::-1], bias, 0.0)


def sum_that_begins_below_zero(tree: Any) -> Any:
    bias = tree["bias"]
    squares = jax.lax.reduce(bias * bias, jnp.float32(-100.0), jax.lax.add, (0,))
    return bias * jnp.minimum(1.0, CLIP / jnp.sqrt(squares))


def product_of_magnitudes(tree: Any) -> Any:
    product = jax.lax.reduce(jnp.abs(tree["bias"]), jnp.float32(1.0), jax.lax.mul, (0,))
    return tree["bias"] / jnp.maximum(1.0, product)


def square_that_is_none(tree: Any) -> Any:
    norm = jnp.sqrt(jnp.sum(jnp.abs(tree["bias"])))
    return tree["bias"] * jnp.minimum(1.0, CLIP / norm)


FAULTS = [
    one_layer_left_out,
    norm_of_one_layer,
    threshold_of_data,
    sum_over_one_axis,
    largest_instead_of_sum,
    sum_of_signed_numbers,
    maximum_instead_of_minimum,
    norm_without_root,
    scaled_after_the_clip,
    added_after_the_clip,
    branches_swapped,
    branches_of_cond_swapped,
    clipped_in_a_loop,
    box_of_one_side,
    box_of_data,
    norm_of_others,
    norm_of_a_part,
    condition_of_others,
    condition_reversed,
    product_of_others,
    wrapping_integers,
    half_precision,
    norm_of_a_column,
    condition_transposed,
    truth_reversed,
    sum_that_begins_below_zero,
    product_of_magnitudes,
    square_that_is_none,
]


@pytest.mark.parametrize("contribution", FAULTS, ids=lambda each: each.__name__)
def test_faults_of_jax(contribution: Any) -> None:
    derived = derivation(round_of(contribution))
    assert [m.step for m in derived.missing] == ["bound of each contribution"], derived.bounds


def test_a_step_after_the_clip() -> None:
    derived = derivation(round_of(stepped_after_the_clip, BATCH))
    assert [m.step for m in derived.missing] == ["bound of each contribution"]


@pytest.mark.parametrize("contribution", [repeated_rows, gathered], ids=lambda each: each.__name__)
def test_repeated_elements_count_each_time(contribution: Any) -> None:
    assert not derivation(round_of(contribution)).is_shown


# What it rests on.


def test_two_modules_of_a_section_are_assumed_to_be_the_same() -> None:
    assert SAME_MODULES in derivation(round_of(by_minimum)).assumptions
    in_tensorflow = round_of(
        lambda x: tf.clip_by_norm(x, CLIP), VECTOR, framework=tff.tf_computation
    )
    assert SAME_MODULES not in derivation(in_tensorflow).assumptions


@pytest.mark.slow
def test_nothing_is_loaded_for_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "round.pb"
    path.write_bytes(wire.to_bytes(round_of(by_minimum).next.node))
    code = (
        "import sys, tffc; report = tffc.audit(sys.argv[1], privacy={'delta': 1e-6});"
        "print(report.privacy.derivation.is_shown, {'jax', 'tensorflow', 'torch'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True set()\n"
