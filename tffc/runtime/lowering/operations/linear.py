"""Products of matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    NotLoweredError,
    Operation,
    check_fit,
    definitions,
    flag,
    jnp,
    text,
    type_of,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)


@operation("MatMul")
def mat_mul(node: NodeView, x: Array, y: Array) -> Array:
    left = x.T if flag(node, "transpose_a") else x
    right = y.T if flag(node, "transpose_b") else y
    return jnp.matmul(left, right)


@operation("BatchMatMul", "BatchMatMulV2")
def batch_mat_mul(node: NodeView, x: Array, y: Array) -> Array:
    return jnp.matmul(_adjoint(node, "adj_x", x), _adjoint(node, "adj_y", y))


@operation("BatchMatMulV3")
def batch_mat_mul_v3(node: NodeView, x: Array, y: Array) -> Array:
    result = type_of(node, "Tout")
    return batch_mat_mul(node, x.astype(result), y.astype(result))


def _adjoint(node: NodeView, attribute: str, x: Array) -> Array:
    return jnp.conj(jnp.swapaxes(x, -1, -2)) if flag(node, attribute) else x


@operation("Einsum")
def einsum(node: NodeView, *inputs: Array) -> Array:
    equation = text(node, "equation")
    output = equation.partition("->")[2].replace(".", "")
    if any(count > 1 for count in Counter(output).values()):
        raise NotLoweredError("Einsum that writes a diagonal")
    check_fit(node, _has_one_size_a_label(equation, inputs))
    return jnp.einsum(equation, *inputs)


def _has_one_size_a_label(equation: str, inputs: Sequence[Array]) -> bool:
    """Return whether axes of the same label have the same size: 1 is not stretched."""
    sizes: set[tuple[str, int]] = set()
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    for term, value in zip(terms, inputs, strict=True):
        first, _, last = term.partition("...")
        sizes.update(zip(first, value.shape, strict=False))
        sizes.update(zip(last[::-1], value.shape[::-1], strict=False))
    return len(sizes) == len({label for label, _ in sizes})
