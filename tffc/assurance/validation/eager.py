"""Comparison of PyTorch computations with PyTorch itself, wherever this process traced them.

Both compute in floating point, each in an order of its own.  How far that may carry them apart is
measured: PyTorch computes a second time, of arguments changed by about a rounding, and what differs
then may differ between the two, many times over.
"""

from __future__ import annotations

import collections
import hashlib
from typing import Any

import numpy as np

from tffc.assurance.validation.compare import unit_of
from tffc.frontend.torch.eager import EagerFunction, eager_function
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import walk
from tffc.language.types import FunctionType
from tffc.language.values.concrete import flatten
from tffc.support.errors import ValidationError
from tffc.support.printable import counted

CALLS = 20
"""The number of calls of each computation that are compared."""

AMPLIFICATION = 100.0
"""How many times the effect of a rounding of the arguments two results may differ by."""

ROUNDINGS = 64.0
"""How many roundings of the largest number of a result two results may differ by."""


class EagerComparison:
    """Compares calls of sections with the functions that they were traced from."""

    def __init__(self) -> None:
        self.calls: collections.Counter[Compiled] = collections.Counter()
        self.refused = 0

    @staticmethod
    def concerns(program: Node) -> bool:
        """Tell whether a program has a section whose function this process knows."""
        return any(
            isinstance(node, Compiled) and eager_function(node) is not None
            for node in walk(program)
        )

    def check(self, section: Compiled, argument: Any, result: Any) -> None:
        """Check the result of a call.

        Raises:
          ValidationError: PyTorch gives another.
        """
        function = eager_function(section)
        if function is None or self.calls[section] >= CALLS:
            return
        assert isinstance(section.type, FunctionType)
        parameter = section.type.parameter
        parts = [] if parameter is None else [np.asarray(p) for p in flatten(argument, parameter)]
        results = [np.asarray(part) for part in flatten(result, section.type.result)]
        try:
            expected = function(parts)
            beside = function([_nudged(part, index) for index, part in enumerate(parts)])
        except (ArithmeticError, IndexError, RuntimeError, ValueError):
            # PyTorch checks values, such as labels out of range, which a compiled program does not.
            self.refused += 1
            return
        self.calls[section] += 1
        for number, (one, other, near) in enumerate(zip(results, expected, beside, strict=True)):
            if _differs(one, other, near):
                raise _finding(section, function, number, one, other)

    def __str__(self) -> str:
        compared = f"PyTorch itself, for {counted(len(self.calls), 'PyTorch computation')} in "
        compared += counted(self.calls.total(), "call")
        refused = f"; it refuses the arguments of {counted(self.refused, 'call')}"
        return compared + (refused if self.refused else "")


def _nudged(array: Any, number: int) -> Any:
    """Return an array whose floats are changed by about a rounding, always in the same way."""
    if not np.issubdtype(array.dtype, np.floating):
        return array
    digest = hashlib.sha256(f"{number} {array.shape}".encode()).digest()
    signs = np.random.default_rng(int.from_bytes(digest[:8], "little")).choice((-1, 1), array.shape)
    with np.errstate(all="ignore"):
        return (array * (1 + signs * unit_of(array.dtype))).astype(array.dtype)


def _differs(result: Any, expected: Any, near: Any) -> bool:
    """Tell whether a result is another than is expected; `near` is that of nudged arguments."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return True
    if not np.issubdtype(result.dtype, np.inexact):
        # A comparison of floats, or an index of the largest, may change with a rounding.
        return bool(np.any((result != expected) & (expected == near)))
    unit = unit_of(result.dtype)
    one, other, third = (each.astype(np.complex128) for each in (result, expected, near))
    finite = np.isfinite(other) & np.isfinite(third)
    with np.errstate(all="ignore"):
        largest = np.abs(other[finite]).max(initial=0.0)
        room = AMPLIFICATION * np.abs(other - third) + ROUNDINGS * unit * largest
        apart = ~(np.abs(one - other) <= room)
    return bool(np.any(apart & finite))


def _finding(
    section: Compiled, function: EagerFunction, number: int, result: Any, expected: Any
) -> ValidationError:
    name = getattr(function.function, "__name__", "")
    named = f" {name!r}" if name and name != "<lambda>" else ""
    return ValidationError(
        "E589",
        f"the PyTorch computation{named} computes something else than PyTorch does",
        notes=(
            f"it is of type `{section.type}`",
            f"tensor {number} of its result is {_shown(result)} compiled",
            f"in PyTorch it is {_shown(expected)}",
        ),
        help="this is a fault of tffc or torchax; write the computation with other operations, "
        "and report it",
        span=function.span,
    )


def _shown(array: Any) -> str:
    return np.array2string(array, threshold=4, edgeitems=2, precision=6).replace("\n", " ")
