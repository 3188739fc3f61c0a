"""XLA sections, run through JAX where it is installed."""

from __future__ import annotations

import collections
import importlib.util
import sys
import types
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.language import Compiled, FunctionType, TensorType
from tffc.language.wire import StructBinding, TensorBinding, XlaSection, read_xla, write_xla
from tffc.runtime.frameworks.jax import runner
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import ExecutionError, MissingExtraError

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install '.[jax]'"
)

INT, FLOAT = np.int32, np.float32


@needs_jax
def test_results() -> None:
    computation = tff.jax.computation(lambda x, y: {"b": x + y, "a": [x * 2, ()]}, INT, INT)
    assert computation(2**31 - 1, 1) == {"b": -(2**31), "a": [-2, ()]}


@needs_jax
def test_parameters_in_another_order() -> None:
    ordered = collections.OrderedDict(b=INT, a=(FLOAT, [2]))
    computation = tff.jax.computation(lambda b, a: a * b, ordered)
    assert computation(b=2, a=[1.0, 2.5]).tolist() == [2.0, 5.0]


@needs_jax
def test_sixty_four_bits() -> None:
    import jax  # pyright: ignore[reportMissingImports]  # only where it is installed

    with jax.enable_x64(True):
        computation = tff.jax.computation(lambda x: x + 1, np.int64)
    assert computation(2**40) == 2**40 + 1


@needs_jax
def test_in_a_federated_computation() -> None:
    more = tff.jax.computation(lambda x: x + 1, INT)

    @tff.federated_computation(tff.types.at_clients(INT))
    def total(x: Any) -> Any:
        return tff.federated_sum(tff.federated_map(more, x))

    assert total([1, 2, 3]) == 9


@needs_jax
def test_modules_that_do_not_load() -> None:
    content = XlaSection(b"no module", None, TensorBinding(0))
    with pytest.raises(ExecutionError, match=r"XLA cannot load the module .* \[E720\]") as caught:
        run_section(Compiled("xla", write_xla(content), FunctionType(None, INT)), None)
    assert str(caught.value).endswith(
        "  help: trace the program again with the JAX that is installed here"
    )


@needs_jax
def test_modules_that_do_not_run() -> None:
    node = tff.jax.computation(lambda x: x + 1, INT).node
    assert isinstance(node, Compiled)
    content = read_xla(node.payload)._replace(parameter=None)
    section = Compiled("xla", write_xla(content), FunctionType(None, INT))
    with pytest.raises(
        ExecutionError, match=r"XLA could not carry out a computation: .*\[E722\]"
    ) as caught:
        run_section(section, None)
    assert str(caught.value).endswith(
        "  help: run the function in JAX alone, on the values it was given, to see where"
    )


@needs_jax
def test_results_of_another_type() -> None:
    node = tff.jax.computation(lambda x: x + 1, INT).node
    assert isinstance(node, Compiled)
    lying = Compiled("xla", node.payload, FunctionType(INT, (FLOAT, [2])))
    assert refusal(ExecutionError, run_section, lying, INT(1)) == (
        "an XLA section gave a tensor of int32 of shape [] where its type promises `float32[2]` "
        "[E721]"
    )


def test_bindings_of_another_structure() -> None:
    content = XlaSection(b"", StructBinding(()), TensorBinding(0))
    with pytest.raises(ExecutionError) as caught:
        runner.XlaRunner(Compiled("xla", write_xla(content), FunctionType(INT, INT)))
    assert str(caught.value) == (
        "an XLA section is bound otherwise than its type `int32` says [E721]"
    )


def test_a_release_of_jax_that_works_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("jax")
    monkeypatch.setattr(other, "__version__", "99.0", raising=False)
    monkeypatch.setitem(sys.modules, "jax", other)
    monkeypatch.setitem(sys.modules, "jaxlib._jax", types.ModuleType("jaxlib._jax"))
    content = XlaSection(b"", None, TensorBinding(0))
    with pytest.raises(ExecutionError) as caught:
        runner.XlaRunner(Compiled("xla", write_xla(content), FunctionType(None, INT)))
    assert str(caught.value) == (
        "JAX 99.0 does not handle XLA modules as tffc asks it to [E701]\n"
        "  note: module 'jax' has no attribute 'local_devices'\n"
        "  help: install the release that tffc was made for, in tffc's checkout: pip "
        "install '.[jax]'"
    )


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    content = XlaSection(b"", None, TensorBinding(0))
    section = Compiled("xla", write_xla(content), FunctionType(None, TensorType(INT)))
    assert refusal(MissingExtraError, run_section, section, None) == (
        "a JAX computation needs JAX, which cannot be imported [E701]\n"
        "  note: import of jax halted; None in sys.modules\n"
        "  help: in tffc's checkout: pip install '.[jax]'"
    )
