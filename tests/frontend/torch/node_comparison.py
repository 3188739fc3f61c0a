"""Comparison of each node of a recorded graph with PyTorch's own result for the same operands."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import torch
from jax.extend.core import jaxpr_as_fun
from torch.fx import node as fx
from torch.utils import _pytree as tree

from tffc.frontend.torch import draws, lowering
from tffc.frontend.torch.arrays import array_of
from tffc.frontend.torch.tracing import Recorded
from tffc.support.errors import LanguageValueError

UNDEFINED = (
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.empty_permuted.default",
    "aten.empty_strided.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
)
"""Operations whose results PyTorch leaves undefined."""


TIES = {
    "aten.kthvalue.default": 2,
    "aten.mode.default": 1,
    "aten.sort.default": 1,
    "aten.sort.stable": None,
    "aten.topk.default": 2,
}
"""Operations that give elements and their indices, any of those of equal elements: the place of the
dimension among their arguments."""


class Comparison(NamedTuple):
    """One operation on some operands; `fault` is empty if both gave the same, or if the translation
    refuses the operands."""

    operation: str
    fault: str
    refused: bool = False


def comparisons(recorded: Recorded, tensors: Sequence[torch.Tensor]) -> Iterator[Comparison]:
    """Yield a comparison for each operation of a graph on operands that PyTorch computed."""
    values: dict[Any, Any] = {}
    arguments = iter([*tensors, *recorded.constants])
    for node in recorded.graph.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(arguments)
        if node.op != "call_function":
            continue
        args = fx.map_arg(node.args, values.__getitem__)
        kwargs = fx.map_arg(node.kwargs, values.__getitem__)
        values[node] = node.target(*args, **kwargs)
        name = str(node.target)
        if node.target is operator.getitem or draws.is_draw(node.target) or name in UNDEFINED:
            continue
        if name.startswith("tffc_draws"):
            continue
        try:
            yield Comparison(name, fault(node, args, kwargs, values[node]))
        except LanguageValueError:
            yield Comparison(name, "", refused=True)


def fault(node: Any, args: Any, kwargs: Any, result: Any) -> str:
    """Return how a translated operation differs from PyTorch's result."""
    leaves, structure = tree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def translated(*arrays: Any) -> list[Any]:
        filled = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        args, kwargs = tree.tree_unflatten(filled, structure)
        value = lowering.GraphEvaluation(()).declared_value(node, args, kwargs)
        return list(value) if isinstance(value, tuple | list) else [value]

    arrays = [array_of(leaves[place]) for place in places]
    with jax.enable_x64(True):
        # First in the abstract, as in a trace.
        program = jax.make_jaxpr(_without_none(translated))(*arrays)
        computed = list(jaxpr_as_fun(program)(*arrays))
    expected = result if isinstance(result, tuple | list) else [result]
    expected = [each for each in expected if each is not None]
    if str(node.target) in TIES:
        computed[1] = _indices(node.target, args, kwargs, expected, np.asarray(computed[1]))
    for each, array in zip(expected, computed, strict=True):
        difference = unlike(array_of(each), np.asarray(array), _largest(arrays))
        if difference:
            return difference
    return ""


def _indices(operation: Any, args: Any, kwargs: Any, expected: Any, indices: Any) -> Any:
    """Return PyTorch's indices if others point at equal elements; else the others."""
    values, chosen = expected
    place = TIES[str(operation)]
    dim = kwargs.get("dim", -1) if place is None else dict(enumerate(args)).get(place, -1)
    if args[0].dim() == 0:
        return indices
    others = torch.from_numpy(np.array(indices))
    if values.dim() < args[0].dim():
        gathered = args[0].gather(dim, others.unsqueeze(dim)).squeeze(dim)
    else:
        gathered = args[0].gather(dim, others)
    return array_of(chosen) if torch.equal(gathered, values) else indices


def _without_none(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    return lambda *arrays: [each for each in function(*arrays) if each is not None]


def _largest(arrays: Sequence[Any]) -> float:
    """Return the largest number among operands, on which the rounding of a result depends."""
    finite = [a[np.isfinite(a)] for a in arrays if a.dtype in (np.float32, np.float64)]
    return max((float(np.abs(each).max(initial=0.0)) for each in finite), default=0.0)


def unlike(expected: Any, computed: Any, operands: float = 0.0) -> str:
    """Return how an array differs from the one that is expected, computed of numbers up to
    `operands`."""
    if expected.shape != computed.shape or expected.dtype != computed.dtype:
        return f"{computed.dtype}{computed.shape}, not {expected.dtype}{expected.shape}"
    if expected.dtype.kind in "biu":
        return "" if np.array_equal(expected, computed) else "other whole numbers"
    relative = 1e-5 if expected.dtype.itemsize // (1 + (expected.dtype.kind == "c")) >= 4 else 2e-2
    wide = np.complex128
    expected, computed = expected.astype(wide), computed.astype(wide)
    size = np.abs(expected[np.isfinite(expected)]).max(initial=operands)
    if np.allclose(expected, computed, rtol=relative, atol=relative * (size + 0.1), equal_nan=True):
        return ""
    return f"other values, by {np.nanmax(np.abs(expected - computed)):.3g}"
