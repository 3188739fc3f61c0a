"""Samples of PyTorch's operations, those of its own tests, compared node by node.

`python -m tests.frontend.torch.operation_samples` writes the table of translated operations again:
those that some sample compared, and none found wrong.
"""

from __future__ import annotations

import collections
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as tree

from tests.frontend.torch.node_comparison import Comparison, comparisons
from tests.processes import ROOT
from tffc.frontend.torch.releases import load_translations
from tffc.frontend.torch.tracing import record
from tffc.frontend.torch.translations import OWN
from tffc.support.errors import TffcError

TABLE = ROOT / "tffc" / "frontend" / "torch" / "operations.txt"
HEADER = "# Operations of PyTorch that tests compare with PyTorch, one a line.\n"
MOST = 20_000
"""The numbers that a sample may have."""

Function = Callable[..., list[torch.Tensor]]


class Sample(NamedTuple):
    """A pure function of tensors, with values for it."""

    name: str
    function: Function
    tensors: Sequence[torch.Tensor]


def operators() -> list[Any]:
    """Return PyTorch's descriptions of its operators, with samples of their arguments."""
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def samples(operator: Any, most: int) -> Iterator[Sample]:
    """Yield up to `most` samples of an operator for each type, and of its slopes."""
    for dtype in (torch.float32, torch.int64, torch.bool):
        if dtype not in operator.dtypes:
            continue
        try:
            every = list(operator.sample_inputs("cpu", dtype, requires_grad=False))
        except (RuntimeError, NotImplementedError, ValueError):
            continue
        for sample in every[:: max(1, len(every) // most)][:most]:
            yield from _samples_of(operator, sample, dtype)


def _samples_of(operator: Any, sample: Any, dtype: torch.dtype) -> Iterator[Sample]:
    leaves, structure = tree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[place] for place in places]
    if any(t.layout is not torch.strided or t.numel() > MOST for t in tensors):
        return

    def function(*values: torch.Tensor) -> list[torch.Tensor]:
        filled = list(leaves)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        first, args, kwargs = tree.tree_unflatten(filled, structure)
        results = tree.tree_leaves(operator(first, *args, **kwargs))
        return [each for each in results if isinstance(each, torch.Tensor)]

    name = f"{operator.name} {operator.variant_test_name}".strip()
    yield Sample(name, function, tensors)
    floats = [i for i, each in enumerate(tensors) if each.is_floating_point()]
    if dtype is torch.float32 and operator.supports_autograd and floats:
        yield Sample(f"{name}, slopes", _slopes(function, floats), tensors)


def _slopes(function: Function, places: Sequence[int]) -> Function:
    def slopes(*values: torch.Tensor) -> list[torch.Tensor]:
        def squares(*floats: torch.Tensor) -> torch.Tensor:
            filled = list(values)
            for place, value in zip(places, floats, strict=True):
                filled[place] = value
            results = [each for each in function(*filled) if each.is_floating_point()]
            return sum(((each * each).sum() for each in results), torch.zeros(()))

        pull = torch.func.grad(squares, tuple(range(len(places))))
        return list(pull(*(values[place] for place in places)))

    return slopes


def compared(sample: Sample) -> list[Comparison]:
    """Return the comparisons of the nodes of a sample; none if PyTorch or tffc refuses it."""
    copies = [tensor.detach().clone() for tensor in sample.tensors]
    shapes = [(tensor.shape, tensor.dtype) for tensor in copies]
    try:
        if not sample.function(*[tensor.clone() for tensor in copies]):
            return []
        recorded = record(lambda *args: sample.function(*args), shapes, lambda args: (args, {}))
        return list(comparisons(recorded, copies))
    except (TffcError, RuntimeError, ValueError, TypeError, NotImplementedError, IndexError):
        return []


def main(most: int = 4) -> None:
    """Write the table of operations again."""
    load_translations()
    warnings.simplefilter("ignore")
    right: collections.Counter[str] = collections.Counter()
    wrong: dict[str, str] = {}
    for operator in operators():
        torch.manual_seed(0)
        for sample in samples(operator, most):
            for comparison in compared(sample):
                if comparison.fault:
                    wrong.setdefault(comparison.operation, f"{sample.name}: {comparison.fault}")
                elif not comparison.refused:
                    right[comparison.operation] += 1
    for operation, fault in sorted(wrong.items()):
        print(f"{operation}: {fault}", file=sys.stderr)
    names = sorted({name for name in right if name.startswith(("aten.", "prims."))} - set(wrong))
    TABLE.write_text(HEADER + "".join(f"{name}\n" for name in names))
    print(f"{len(names)} operations; not compared of our own: {sorted(set(OWN) - set(names))}")


if __name__ == "__main__":
    main()
