"""Modules, translated and called as they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from tests.runtime.lowering.modules.samples import Sample
from tests.runtime.lowering.modules.texts import Text
from tffc.runtime.batching.pjrt_kernels import PLATFORMS
from tffc.runtime.frameworks.jax.hlo import portable_artifact
from tffc.runtime.lowering.jax_modules import called
from tffc.runtime.lowering.modules.evaluation import call_translated


class Module(NamedTuple):
    """A portable artifact, and arrays like those that it gives."""

    artifact: bytes
    outputs: Sequence[Any]

    def translated(self, *, selects: bool = False, is_shared: bool = False) -> Callable[..., Any]:
        """Return the function that JAX computes operation by operation."""
        return lambda *arguments: call_translated(
            self.artifact, arguments, self.outputs, selects=selects, is_shared=is_shared
        )

    def called(self) -> Callable[..., Any]:
        """Return the function that a module without translation is."""
        return lambda *arguments: called(self.artifact, arguments, self.outputs)


def module_of(sample: Sample) -> Module:
    """Return the module that JAX writes for a function."""
    with jax.enable_x64(True):
        lowered = jax.jit(sample.function, keep_unused=True).lower(*sample.arguments)
        outputs = jax.tree.leaves(jax.eval_shape(sample.function, *sample.arguments))
    return Module(artifact(lowered.as_text()), outputs)


def module_of_text(text: Text) -> Module:
    """Return a module that is written out."""
    arrays = map(np.asarray, text.results)
    outputs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays]
    return Module(artifact(text.module()), outputs)


def artifact(text: str) -> bytes:
    """Return the portable artifact of a module, of a later version if it needs one."""
    return portable_artifact(text) or importlib.import_module(
        "jaxlib._jax"
    ).mlir.serialize_portable_artifact(text, "1.10.0")


def computed(function: Callable[..., Any], arguments: Sequence[Any]) -> list[np.ndarray]:
    """Return the arrays that a function gives where JAX compiles it."""
    with jax.enable_x64(True):
        return [np.asarray(each) for each in jax.jit(function)(*arguments)]


def computed_in_kernel(function: Callable[..., Any], arguments: Sequence[Any]) -> list[np.ndarray]:
    """Return the same where JAX first lowers the function for all platforms of kernels."""
    with jax.enable_x64(True):
        export = jax.export.export(jax.jit(function), platforms=PLATFORMS)
        exported = export(*(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments))
    return computed(exported.call, arguments)


def assert_close(one: np.ndarray, other: np.ndarray) -> None:
    """Check that arrays are equal; floats to rounding."""
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if one.dtype.kind in "biu":
        np.testing.assert_array_equal(one, other)
        return
    kind = one.dtype if one.dtype.kind == "c" else np.float64
    rtol = {2: 2e-2, 4: 2e-6, 8: 1e-13}[np.real(one).dtype.itemsize]
    one, other = one.astype(kind), other.astype(kind)
    scale = np.abs(other[np.isfinite(other)]).max(initial=0.01)
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * min(scale, 1e4))
