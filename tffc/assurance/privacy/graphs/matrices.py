"""Products with public matrices, as rotations are.

The norm of a product is at most that of the tensor times the largest singular value of the matrix,
which is one if the matrix is orthogonal.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tffc.assurance.privacy.graphs.constants import DTYPES
from tffc.assurance.privacy.graphs.table import NodeUse, Outputs, RuleTable
from tffc.assurance.privacy.quantities.quantity import Quantity

MATRICES = RuleTable()
"""The rules of this module."""

TURNS = ("transpose_a", "transpose_b")

LARGEST_MATRIX = 64 * 64
"""The matrices whose singular values are computed."""


def largest_singular_value(matrix: Any) -> float | None:
    """Return the largest singular value of a matrix, not less than it is; None for what is not a
    small matrix of finite numbers."""
    if np.ndim(matrix) != 2 or not 0 < np.size(matrix) <= LARGEST_MATRIX:
        return None
    numbers = np.asarray(matrix, np.float64)
    if not np.isfinite(numbers).all():
        return None
    return float(np.linalg.norm(numbers, 2)) * (1 + 1e-12)


@MATRICES.rule("MatMul")
def _product(use: NodeUse) -> Outputs:
    kind = DTYPES.get(use.node.attr["T"].type)
    if kind is None or not kind.is_floating or kind.size < 4:
        return None
    first, second = use.inputs
    rows, columns = _sizes(use, "a", first), _sizes(use, "b", second)
    turns = [attribute in use.node.attr and use.node.attr[attribute].b for attribute in TURNS]
    shape = None if rows is None or columns is None else (rows[0], columns[1])
    product = use.algebra.unknown(use.inputs, "matrices", *turns, shape=shape)
    for value, matrix in ((first, second), (second, first)):
        if value.sums or value.signal or value.noise or not value.provenance.is_of_client:
            continue
        most = None if matrix.content is None else largest_singular_value(matrix.content)
        if most is not None and shape is not None:
            return [dataclasses.replace(product, image=(value, most))]
    return [product]


def _sizes(use: NodeUse, name: str, value: Quantity) -> tuple[int, int] | None:
    """Return the rows and columns of a factor, as it is multiplied."""
    if value.shape is None or len(value.shape) != 2:
        return None
    rows, columns = value.shape
    attribute = f"transpose_{name}"
    is_turned = attribute in use.node.attr and use.node.attr[attribute].b
    return (columns, rows) if is_turned else (rows, columns)
