"""Operations in portable artifacts of StableHLO, read without MLIR."""

from __future__ import annotations

import pytest

from tests.graphs.operations.artifacts import artifact, number, section
from tffc.graphs.operations.bytecode import BytecodeError, operations
from tffc.graphs.operations.effects import Effect, effect_of, effect_of_module, effects_in_module
from tffc.graphs.proto import NodeDef


def test_operations() -> None:
    assert operations(artifact("add_v1", "func_v1")) == ["vhlo.add_v1", "vhlo.func_v1"]
    many = [f"op_{index}_v1" for index in range(100)]
    assert operations(artifact(*many)) == [f"vhlo.{name}" for name in many]


@pytest.mark.parametrize(
    "module",
    [
        b"",
        b"module {}",
        artifact("add_v1", version=5),
        artifact("add_v1")[:-3],
        artifact("add_v1").replace(b"StableHLO_v1.0.0\0", b"StableHLO"),
        artifact("add_v1") + section(0, number(0)),
        artifact("add_v1") + b"\x81\x01",
        artifact("add_v1")[:22],
    ],
    ids=["empty", "text", "version", "cut", "producer", "twice", "aligned", "nothing"],
)
def test_what_is_no_artifact(module: bytes) -> None:
    with pytest.raises(BytecodeError):
        operations(module)
    assert effect_of_module(module) is Effect.OTHER


@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_damaged_artifacts(cut: int) -> None:
    module = bytearray(artifact("add_v1", "custom_call_v1"))
    module[cut % len(module)] ^= 0xFF
    assert effect_of_module(bytes(module)) is Effect.OTHER


def test_effects() -> None:
    assert effect_of_module(artifact("add_v1", "call_v7", "rng_bit_generator_v1")) is None
    assert effect_of_module(artifact("add_v1", "all_reduce_v2")) is Effect.NETWORK
    assert effect_of_module(artifact("all_reduce_v2", "custom_call_v1")) is Effect.OTHER
    assert effect_of_module(artifact("rng_v1")) is Effect.OTHER
    assert effect_of_module(artifact("add_v1", dialect="mhlo")) is Effect.OTHER
    assert effects_in_module(artifact("add_v1", "send_v1", "new_v2")) == {
        "vhlo.send": Effect.NETWORK,
        "vhlo.new": Effect.OTHER,
    }


def test_a_node_does_what_its_module_does() -> None:
    node = NodeDef(name="call", op="XlaCallModule")
    assert effect_of(node, {}) is Effect.OTHER
    node.attr["module"].s = artifact("add_v1")
    assert effect_of(node, {}) is None
    node.attr["module"].s = artifact("custom_call_v1")
    assert effect_of(node, {}) is Effect.OTHER
