"""Modules with operations that JAX writes in other forms or not at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Text(NamedTuple):
    """The body of a function of `%0`, `%1` and so on, what it takes, and what it gives."""

    body: str
    arguments: tuple[Any, ...]
    results: tuple[Any, ...]

    def module(self) -> str:
        """Return the module of the function."""
        taken = ", ".join(f"%{n}: {type_of(each)}" for n, each in enumerate(self.arguments))
        types = [type_of(each) for each in self.results]
        *lines, last = self.body.strip().splitlines()
        returned = f"return {last.strip()} : {', '.join(types)}"
        body = "\n".join([*lines, returned])
        return (
            f"module {{ func.func public @main({taken}) -> ({', '.join(types)}) {{\n{body}\n}} }}"
        )


NAMES = {
    "float32": "f32",
    "int32": "i32",
    "bool": "i1",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
}


def type_of(array: Any) -> str:
    """Return the type of an array as MLIR writes it."""
    array = np.asarray(array)
    sizes = "".join(f"{size}x" for size in array.shape)
    return f"tensor<{sizes}{NAMES[array.dtype.name]}>"


X = np.array([-1.5, 0, 0.25, 2], np.float32)
IMAGE = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
KERNEL = np.array([[1, 10], [100, 1000]], np.float32).reshape(1, 1, 2, 2)
TURNED = np.array([[[[145, 1256, 2367], [4589, 5700, 6811]]]], np.float32)

BRANCHES = """
%1 = "stablehlo.case"(%0) ({
  %c = stablehlo.constant dense<10> : tensor<i32>
  stablehlo.return %c : tensor<i32>
}, {
  stablehlo.return %0 : tensor<i32>
}, {
  %c = stablehlo.constant dense<30> : tensor<i32>
  stablehlo.return %c : tensor<i32>
}) : (tensor<i32>) -> tensor<i32>
%1
"""

TEXTS = {
    "logistic": Text(
        "%1 = stablehlo.logistic %0 : tensor<4xf32>\n%1", (X,), (1 / (1 + np.exp(-X)),)
    ),
    "if": Text(
        """
        %2 = "stablehlo.if"(%0) ({
          stablehlo.return %1 : tensor<4xf32>
        }, {
          %3 = stablehlo.negate %1 : tensor<4xf32>
          stablehlo.return %3 : tensor<4xf32>
        }) : (tensor<i1>) -> tensor<4xf32>
        %2
        """,
        (np.bool_(False), X),
        (-X,),
    ),
    **{
        f"case {number}": Text(BRANCHES, (np.int32(number),), (np.int32(result),))
        for number, result in ((-1, 30), (0, 10), (1, 1), (2, 30), (3, 30), (2**31 - 1, 30))
    },
    "sums of truths": Text(
        """
        %2 = stablehlo.add %0, %1 : tensor<2xi1>
        %3 = stablehlo.multiply %0, %1 : tensor<2xi1>
        %2, %3
        """,
        (np.array([True, True]), np.array([True, False])),
        (np.array([True, True]), np.array([True, False])),
    ),
    "a kernel turned around": Text(
        """
        %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
          window = {reverse = [true, true]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x1x3x4xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x3xf32>
        %2
        """,
        (IMAGE, KERNEL),
        (TURNED,),
    ),
    "a sharding": Text(
        """
        %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"}
          : (tensor<4xf32>) -> tensor<4xf32>
        %1
        """,
        (X,),
        (X,),
    ),
    "constants": Text(
        """
        %1 = stablehlo.constant dense<[1.5, 0xFF80, 0x7FC0, -0.0]> : tensor<4xbf16>
        %2 = stablehlo.constant dense<[(1.5, -0.0), (0xFF800000, 2.0)]> : tensor<2xcomplex<f32>>
        %3 = stablehlo.constant dense<(0.5, 0.25)> : tensor<2xcomplex<f32>>
        %4 = stablehlo.constant dense<0.3> : tensor<2x2xbf16>
        %5 = stablehlo.constant dense<[[true, false], [false, false]]> : tensor<2x2xi1>
        %6 = stablehlo.constant dense<> : tensor<0x2xbf16>
        %7 = stablehlo.convert %1 : (tensor<4xbf16>) -> tensor<4xf32>
        %8 = stablehlo.convert %4 : (tensor<2x2xbf16>) -> tensor<2x2xf32>
        %9 = stablehlo.convert %6 : (tensor<0x2xbf16>) -> tensor<0x2xf32>
        %7, %2, %3, %8, %5, %9, %0
        """,
        (X,),
        (
            np.array([1.5, -np.inf, np.nan, -0.0], np.float32),
            np.array([complex(1.5, -0.0), complex(-np.inf, 2)], np.complex64),
            np.array([0.5 + 0.25j] * 2, np.complex64),
            np.full((2, 2), 0.30078125, np.float32),
            np.array([[True, False], [False, False]]),
            np.zeros((0, 2), np.float32),
            X,
        ),
    ),
}
