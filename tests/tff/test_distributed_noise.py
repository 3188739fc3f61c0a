"""What is shown of TFF's distributed discrete Gaussian mechanism is its accounting by hand."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.tff.wheel import needs_wheel
from tffc.assurance.privacy.accounting import DiscreteGaussian, Skellam
from tffc.assurance.privacy.graphs import samplers
from tffc.assurance.privacy.question import Neighbours, PrivacyQuestion
from tffc.graphs.functions import Library
from tffc.language.nodes import Compiled
from tffc.language.traverse import postorder
from tffc.linking.section import read_section

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

Z, CLIENTS, BITS, CLIP, SIZE = 2.0, 50, 20, 3.0, 7
VALUE = tff.TensorType(np.float32, [SIZE])
PADDED = 8
"""The elements of a rotated vector."""


def process_of(beta: float, mechanism: str = "distributed_dgauss", rotation: str = "hd") -> Any:
    assert getattr(tff, "aggregators")  # noqa: B009 - it is there once the wheel is.
    module = importlib.import_module("tensorflow_federated.python.aggregators.distributed_dp")
    factory = module.DistributedDpSumFactory(
        Z, CLIENTS, BITS, CLIP, beta=beta, mechanism=mechanism, rotation_type=rotation
    )
    return factory.create(VALUE)


def round_of(beta: float, mechanism: str = "distributed_dgauss", rotation: str = "hd") -> Any:
    """Rounds that release the result of an aggregation, and nothing of its measurements."""
    process = process_of(beta, mechanism, rotation)
    state = process.initialize.type_signature.result

    @tff.federated_computation(state, tff.types.at_clients(VALUE))
    def following(state: Any, value: Any) -> Any:
        output = process.next(state, value)
        return output.state, output.result

    return tff.templates.IterativeProcess(process.initialize, following)


@pytest.mark.parametrize("rotation", ["hd", "dft"])
@pytest.mark.parametrize("beta", [0.0, 0.6])
def test_multiplier(beta: float, rotation: str) -> None:
    question = PrivacyQuestion(neighbours=Neighbours.ZERO_OUT, least_clients=CLIENTS)
    answer = tff.audit(round_of(beta, rotation=rotation), privacy=question).privacy
    assert answer is not None
    assert answer.derivation.is_shown, answer.steps
    (mechanism,) = answer.derivation.sums
    (part,) = answer.derivation.parts
    assert isinstance(part, DiscreteGaussian)
    numbers = sorted(bound.number.coefficient for bound in answer.derivation.bounds)
    longest = numbers[-1]
    if not beta:
        # The clip in steps, each element of which is rounded by up to one step.
        assert longest == pytest.approx(numbers[0] + math.sqrt(PADDED), rel=1e-9)
    deviation = float(mechanism.scale)
    assert deviation == math.ceil(deviation)
    assert part.l2 == pytest.approx(longest / (deviation * math.sqrt(CLIENTS)), rel=1e-6)
    assert 1 / part.l2 == pytest.approx(Z, rel=0.005)


SKELLAM = "distributed_skellam"


@pytest.mark.parametrize("mechanism", ["distributed_dgauss", SKELLAM])
def test_other_data_changes_twice_as_much(mechanism: str) -> None:
    question = PrivacyQuestion(
        neighbours=Neighbours.REPLACE, least_clients=CLIENTS, has_secret_seeds=True
    )
    answer = tff.audit(round_of(0.0, mechanism), privacy=question).privacy
    assert answer is not None
    (part,) = answer.derivation.parts
    assert isinstance(part, DiscreteGaussian | Skellam)
    assert answer.derivation.is_shown
    assert 1 / part.l2 == pytest.approx(Z / 2, rel=0.005)


def skellam_answer(beta: float, rotation: str = "hd", *, vouches: bool = True) -> Any:
    question = PrivacyQuestion(
        neighbours=Neighbours.ZERO_OUT, least_clients=CLIENTS, has_secret_seeds=vouches
    )
    answer = tff.audit(round_of(beta, SKELLAM, rotation), privacy=question).privacy
    assert answer is not None
    return answer


@pytest.mark.parametrize("rotation", ["hd", "dft"])
def test_skellam_noise_by_a_clock(rotation: str) -> None:
    answer = skellam_answer(0.0, rotation)
    assert answer.derivation.is_shown, answer.steps
    (part,) = answer.derivation.parts
    assert isinstance(part, Skellam)
    lengths = [b.number.coefficient for b in answer.derivation.bounds if b.norm == 2]
    steps, longest = min(lengths), max(lengths)
    # The clip in steps, each element of which is rounded by up to one step.
    assert longest == pytest.approx(steps + math.sqrt(PADDED), rel=1e-9)
    # TFF's noise is for the clip in steps alone.
    assert part.deviation == pytest.approx(Z * steps, rel=1e-6)
    assert part.l2 == pytest.approx(longest / part.deviation, rel=1e-6)
    assert part.l1 == pytest.approx(math.sqrt(PADDED) * longest / part.deviation, rel=1e-6)
    (mechanism,) = answer.derivation.sums
    each = part.deviation / math.sqrt(CLIENTS)
    assert float(mechanism.scale) == pytest.approx(each, rel=1e-6)
    assert any("cannot be guessed" in text for text in answer.derivation.assumptions)


def test_skellam_noise_after_rounding_again_and_again() -> None:
    """The loop may make anything of a time that tells about that of the noise."""
    assert not skellam_answer(0.6).derivation.is_shown


def test_skellam_noise_by_a_clock_that_nobody_vouches_for() -> None:
    answer = skellam_answer(0.0, vouches=False)
    assert not answer.derivation.is_shown


def sampler() -> tuple[Any, str]:
    """Return the functions of a section, and the name of the sampler among them."""
    for node in postorder(process_of(0.0).next.to_building_block()):
        if isinstance(node, Compiled) and node.kind == "tensorflow":
            functions = read_section(node).graph.library
            library = Library(functions)
            for name in library.functions:
                if samplers.may_sample(library.body(name)):
                    if samplers.form_of(name, library) in samplers.DISCRETE_GAUSSIAN:
                        return functions, name
    raise AssertionError("no sampler is known")


@pytest.mark.parametrize("sigma", [1, 2, 5])
def test_what_the_sampler_draws(sigma: int) -> None:
    """The counts of a million draws are as far from those expected as chance has it."""
    import tensorflow as tf

    functions, name = sampler()
    graph = tf.compat.v1.GraphDef()
    graph.library.ParseFromString(functions.SerializeToString())
    for constant, value in (("scale", sigma), ("shape", [1_000_000])):
        node = graph.node.add(name=constant, op="Const")
        node.attr["dtype"].type = tf.int32.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
    call = graph.node.add(name="call", op="StatefulPartitionedCall", input=["scale", "shape"])
    call.attr["Tin"].list.type.extend([tf.int32.as_datatype_enum] * 2)
    call.attr["Tout"].list.type.append(tf.int32.as_datatype_enum)
    call.attr["f"].func.name = name
    with tf.Graph().as_default() as whole:
        tf.graph_util.import_graph_def(graph, name="")
        with tf.compat.v1.Session(graph=whole) as session:
            drawn = session.run("call:0")
    places = np.arange(-12 * sigma, 12 * sigma + 1)
    weights = np.exp(-(places**2) / (2 * sigma**2))
    expected = len(drawn) * weights / weights.sum()
    counts = np.bincount(drawn + 12 * sigma, minlength=len(places))
    common = expected > 20
    squares = np.sum((counts - expected)[common] ** 2 / expected[common])
    assert squares < common.sum() + 6 * math.sqrt(2 * common.sum())
    assert counts[~common].sum() < 1000
