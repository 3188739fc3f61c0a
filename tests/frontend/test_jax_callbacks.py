"""JAX computations that would call Python when they run: each is refused when it is traced, with
the line that asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.support.errors import LanguageValueError

jax = pytest.importorskip("jax", reason="needs tffc[jax]")
io_callback = pytest.importorskip("jax.experimental", reason="needs tffc[jax]").io_callback

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def tripled(x: Any) -> Any:
    return np.float32(3 * x)


def outside(x: Any) -> Any:
    return jax.pure_callback(tripled, SCALAR, x)  # here: outside


def printed(x: Any) -> Any:
    jax.debug.print("client {}", x)  # here: printed
    return x


def printed_in_order(x: Any) -> Any:
    jax.debug.print("client {}", x, ordered=True)  # here: printed in order
    return x


def called_back(x: Any) -> Any:
    jax.debug.callback(lambda value: None, x)  # here: called back
    return x + 1


def written(x: Any) -> Any:
    return io_callback(tripled, SCALAR, x)  # here: written


def written_in_order(x: Any) -> Any:
    return io_callback(tripled, SCALAR, x, ordered=True)  # here: written in order


@jax.custom_vjp
def own_gradient(x: Any) -> Any:
    return x * x


def forwards(x: Any) -> Any:
    return x * x, x


def backwards(x: Any, slope: Any) -> Any:
    return (slope * jax.pure_callback(tripled, SCALAR, x),)


own_gradient.defvjp(forwards, backwards)

# JAX says of the backward rule of a gradient that it comes from the line of the trace.
CASES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "printed": ("printed", printed),
    "printed in order": ("printed in order", printed_in_order),
    "called back": ("called back", called_back),
    "a pure callback": ("outside", outside),
    "an io_callback": ("written", written),
    "an ordered io_callback": ("written in order", written_in_order),
    "in a jitted function": ("outside", jax.jit(lambda x: jax.jit(outside)(x) + 1)),
    "in a scan": ("outside", lambda x: jax.lax.scan(lambda c, _: (outside(c), c), x, None, 3)[0]),
    "in a branch": ("printed", lambda x: jax.lax.cond(x > 0, printed, lambda y: y, x)),
    "in a loop": ("printed", lambda x: jax.lax.fori_loop(0, 3, lambda _, y: printed(y), x)),
    "in a condition of a loop": (
        "outside",
        lambda x: jax.lax.while_loop(lambda y: outside(y) < 9, lambda y: y + 1, x),
    ),
    "for each element": (
        "printed",
        lambda x: jax.vmap(printed)(jax.numpy.stack([x, x])).sum(),
    ),
    "in a gradient": ("a trace", jax.grad(own_gradient)),
    "in a recomputed gradient": (
        "printed",
        jax.grad(jax.checkpoint(lambda x: jax.numpy.sin(printed(x)))),
    ),
}


def line_of(place: str) -> int:
    with open(__file__) as source:
        lines = source.read().splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if line.endswith(f"# here: {place}"))
    return number


@pytest.mark.parametrize("case", CASES)
def test_a_call_of_python_is_refused(case: str) -> None:
    place, function = CASES[case]
    with pytest.raises(LanguageValueError) as caught:
        tff.jax.computation(np.float32)(function)  # here: a trace
    error = caught.value
    assert (error.code, error.message) == (
        "E906",
        "a JAX computation calls a Python function when it runs",
    )
    assert error.span is not None
    assert (error.span.file, error.span.line) == (__file__, line_of(place))


def test_a_function_of_another_library_is_refused() -> None:
    def foreign(x: Any) -> Any:
        return jax.ffi.ffi_call("launch_rocket", SCALAR)(x)  # here: foreign

    with pytest.raises(LanguageValueError, match="calls the function 'launch_rocket'") as caught:
        tff.jax.computation(np.float32)(foreign)
    assert caught.value.span is not None
    assert caught.value.span.line == line_of("foreign")


def test_what_runs_while_it_is_traced_and_what_jax_itself_computes_is_right() -> None:
    seen: list[Any] = []

    @tff.jax.computation((np.float32, (2, 2)))
    def decomposed(x: Any) -> Any:
        seen.append(x)
        return jax.numpy.linalg.cholesky(x @ x.T + jax.numpy.eye(2)).sum()

    assert len(seen) == 1
    assert decomposed(np.zeros((2, 2), np.float32)) == 2
