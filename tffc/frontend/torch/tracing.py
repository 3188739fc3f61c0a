"""Graphs of PyTorch operations, recorded by running a function on tensors without values.

PyTorch itself makes the graph one of pure functions: views, writes in place and gradients are gone
from it.  What has no place in such a graph is refused while the function runs, at the user's line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import itertools
import random
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np

from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext
from tffc.frontend.definitions import definition_span
from tffc.frontend.hints import described
from tffc.frontend.torch import draws
from tffc.frontend.torch.recurrence import recurrence_with_dropout
from tffc.frontend.torch.releases import load_torch
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.user_code.source import raised_span, user_span
from tffc.support.errors import LanguageTypeError, LanguageValueError, Span, TffcError


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A graph of pure operations, whose last arguments are constants, and the structure of what the
    function returned."""

    graph: Any
    constants: tuple[Any, ...]
    structure: Any


def record(
    function: Callable[..., object],
    tensors: Sequence[tuple[Sequence[int], Any]],
    arguments: Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]],
) -> Recorded:
    """Run a function on tensors of shapes and types; `arguments` makes its arguments of them.

    Raises:
      LanguageTypeError: it returns something other than tensors in containers.
      LanguageValueError: it does what a compiled program cannot.
    """
    torch = load_torch()
    structure: list[Any] = []

    def flat(*tensors: Any) -> list[Any]:
        args, kwargs = arguments(tensors)
        with _watch(torch)():
            returned = contexts.run_within(CompiledContext("torch"), function, *args, **kwargs)
            leaves, tree = load_jax().tree_util.tree_flatten(returned)
            structure.append(tree)
            return [_tensor(torch, leaf, function) for leaf in leaves]

    fake = importlib.import_module("torch._subclasses.fake_tensor")
    mode = fake.FakeTensorMode(allow_non_fake_inputs=True)
    with _reference_kernels(torch), _refusals(function), mode:
        empty = [torch.empty(tuple(shape), dtype=dtype) for shape, dtype in tensors]
        before = _generators(torch)
        graph = _recorder()(flat)(*empty)
        _check_generators(before, _generators(torch), function)
        again = _recorder()(flat)(*empty)
        _check_same(graph, again, structure, function)
        constants = _lift_constants(graph)
        copies = [mode.from_tensor(constant.detach()) for constant in constants]
        pure = torch.func.functionalize(graph, remove="mutations_and_views")
        graph = _recorder(_decompositions())(pure)(*empty, *copies)
    return Recorded(graph, constants, structure[-1])


def _recorder(table: Mapping[Any, Any] | None = None) -> Callable[..., Any]:
    """Return what makes a function one that gives the graph of its operations, decomposed by a
    table."""
    proxies = importlib.import_module("torch.fx.experimental.proxy_tensor")
    return functools.partial(proxies.make_fx, decomposition_table=table, tracing_mode="real")


@functools.cache
def _decompositions() -> Mapping[Any, Any]:
    """Return PyTorch's rules for operations as simpler ones.

    Draws stay as they are, so that PyTorch itself makes as many.
    """
    decomp = importlib.import_module("torch._decomp")
    aten = load_torch().ops.aten
    rules = {
        **decomp.core_aten_decompositions(),
        **decomp.get_decompositions([getattr(aten, name) for name in MORE_DECOMPOSED]),
    }
    return {operation: rule for operation, rule in rules.items() if not draws.is_draw(operation)}


MORE_DECOMPOSED = ("_native_batch_norm_legit_functional",)
"""Operations with a rule that is not among those for the core operations of PyTorch."""


def _check_same(
    graph: Any, again: Any, structures: list[Any], function: Callable[..., object]
) -> None:
    """Check that a function, run twice, did the same.

    Raises:
      LanguageValueError: it did something else the second time.
    """
    note = _left_behind(again) or _first_difference(graph, again, structures[-2:])
    if note:
        raise LanguageValueError(
            "E588",
            "a PyTorch computation is another program each time it is traced",
            notes=(note,),
            help="it depends on what changes outside of it, such as a counter, a cache, the time "
            "or a generator of numbers: make that an argument",
            span=definition_span(function),
        )


def _left_behind(graph: Any) -> str:
    """Return a text of a tensor without values among the constants of a graph, if there is one."""
    fake = importlib.import_module("torch._subclasses.fake_tensor").FakeTensor
    names = [node.target for node in graph.graph.nodes if node.op == "get_attr"]
    left = [value for name in names if isinstance(value := getattr(graph, name), fake)]
    return f"it uses a {_text(left[0])} that another trace left behind" if left else ""


def _first_difference(graph: Any, again: Any, structures: list[Any]) -> str:
    for one, other in itertools.zip_longest(_shown(graph), _shown(again)):
        if one != other:
            return f"it has {one or 'nothing'} first, and {other or 'nothing'} then"
    one, other = structures
    return "" if one == other else f"it returns {one} first, and {other} then"


def _shown(graph: Any) -> Iterator[str]:
    """Yield the operations of a graph as text, with the values of its constants."""
    torch = load_torch()
    for node in graph.graph.nodes:
        if node.op == "get_attr" and isinstance(value := getattr(graph, node.target), torch.Tensor):
            yield f"a constant {_values(value)}"
        else:
            yield f"{node.target}({', '.join(map(str, (*node.args, *node.kwargs.items())))})"


def _values(tensor: Any) -> str:
    """Return a text of a tensor that other tensors do not have."""
    with _no_modes():
        plain = tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()
        content = plain.view(load_torch().uint8).numpy().tobytes() if plain.numel() else b""
    return f"{_text(tensor)} {hashlib.sha256(content).hexdigest()[:16]}"


def _lift_constants(graph: Any) -> tuple[Any, ...]:
    """Make the constants of a graph arguments behind its others, and return them."""
    constants: dict[str, Any] = {}
    last = [node for node in graph.graph.nodes if node.op == "placeholder"][-1:]
    start = next(iter(graph.graph.nodes))
    for node in list(graph.graph.nodes):
        if node.op != "get_attr":
            continue
        value = getattr(graph, node.target)
        if not isinstance(value, load_torch().Tensor):
            continue
        if node.target not in constants:
            place = (
                graph.graph.inserting_after(last[0])
                if last
                else graph.graph.inserting_before(start)
            )
            with place:
                last = [graph.graph.placeholder(f"constant_{len(constants)}")]
            constants[node.target] = (value, last[0])
        node.replace_all_uses_with(constants[node.target][1])
        graph.graph.erase_node(node)
    graph.recompile()
    return tuple(value for value, _ in constants.values())


def _tensor(torch: Any, leaf: Any, function: Callable[..., object]) -> Any:
    if isinstance(leaf, torch.Tensor):
        if leaf.device.type != "cpu":
            _refuse_device(leaf.device, definition_span(function))
        return leaf
    if isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
        return torch.as_tensor(leaf)
    raise LanguageTypeError(
        "E454",
        f"{described(leaf)} cannot be the result of a PyTorch computation",
        help="return tensors of numbers, and lists, tuples and mappings of them",
        span=definition_span(function),
    )


@contextlib.contextmanager
def _reference_kernels(torch: Any) -> Generator[None]:
    """Let composed operations show their parts, instead of calling kernels made for one machine."""
    attention = importlib.import_module("torch.nn.attention")
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    # With these rules, normalizations say that they write their running means.
    rules = importlib.import_module("torch._dispatch.python").enable_python_dispatcher()
    token = draws.is_tracing.set(True)
    # By this, models ask whether they may look at the values of a mask.
    compiling = mock.patch.object(torch.compiler, "_is_compiling_flag", True)
    # Distributions look at the values of their parameters.
    unchecked = mock.patch.object(torch.distributions.Distribution, "_validate_args", False)
    try:
        with (
            rules,
            recurrence_with_dropout(),
            compiling,
            unchecked,
            warnings.catch_warnings(),
            attention.sdpa_kernel(attention.SDPBackend.MATH),
        ):
            warnings.simplefilter("ignore")
            with torch.backends.mkldnn.flags(enabled=False):
                yield
    finally:
        draws.is_tracing.reset(token)
        torch.backends.mha.set_fastpath_enabled(fast)


def _generators(torch: Any) -> dict[str, Any]:
    """Return the states of the generators of this process by their names."""
    with _no_modes():
        return {
            "Python's random": random.getstate(),
            "numpy.random": _comparable(np.random.get_state()),
            "PyTorch's generator": torch.get_rng_state().numpy().tobytes(),
        }


def _no_modes() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which PyTorch computes with values, also during a trace."""
    return importlib.import_module("torch.utils._python_dispatch")._disable_current_modes()


def _check_generators(
    before: Mapping[str, Any], after: Mapping[str, Any], function: Callable[..., object]
) -> None:
    """Check that a function drew no numbers from generators of the process as it was traced.

    Raises:
      LanguageValueError: it did.
    """
    for name, state in after.items():
        if state != before[name]:
            raise LanguageValueError(
                "E580",
                f"a PyTorch computation draws from {name} while it is traced",
                notes=("every run of the program would have the same numbers",),
                help="draw with PyTorch, within `with tff.torch.draws(seed, step):`",
                span=definition_span(function),
            )


def _comparable(state: Any) -> tuple[Any, ...]:
    return tuple(part.tolist() if isinstance(part, np.ndarray) else part for part in state)


@functools.cache
def _watch(torch: Any) -> type[Any]:
    """Return the mode that sees every operation of a function before it is recorded."""
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    fake = importlib.import_module("torch._subclasses.fake_tensor")
    scopes = draws.scopes()

    class Watch(dispatch.TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self._depth = 0
            self._views: dict[int, Any] = {}

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if func is scopes.begin:
                self._depth += 1
            elif func is scopes.end:
                self._depth -= 1
            elif draws.is_draw(func):
                _check_draw(func, kwargs, bool(self._depth))
            elif func.namespace not in ("aten", "prim", "prims"):
                _refuse_operation(func)
            _check_writes(self._is_outside, func, args, kwargs)
            result = func(*args, **kwargs)
            for tensor in result if isinstance(result, tuple | list) else (result,):
                if isinstance(tensor, torch.Tensor):
                    # PyTorch itself asks for shapes by tensors on meta.
                    if tensor.device.type not in ("cpu", "meta"):
                        _refuse_device(tensor.device, user_span())
                    if _is_view(func) and self._is_outside(args[0]):
                        self._views[id(tensor)] = tensor
            return result

        def _is_outside(self, value: Any) -> bool:
            """Tell whether a value is a tensor from outside of the trace, or a view of one."""
            if not isinstance(value, torch.Tensor):
                return False
            return not isinstance(value, fake.FakeTensor) or id(value) in self._views

    return Watch


def _check_draw(operation: Any, kwargs: Any, has_key: bool) -> None:
    """Check that a draw has a key of the program, and a rule.

    Raises:
      LanguageValueError: it has none.
    """
    module = _module_of_frame()
    where = f"the module {module}" if module else "a PyTorch computation"
    notes = (f"it is the operation {operation}",)
    if kwargs.get("generator") is not None:
        raise LanguageValueError(
            "E580",
            f"{where} draws from a torch.Generator, which a compiled program does not have",
            notes=notes,
            help="leave the generator out, and draw within `with tff.torch.draws(seed, step):`",
            span=user_span(),
        )
    if not has_key:
        raise LanguageValueError(
            "E580",
            f"{where} draws random numbers without a key",
            notes=(*notes, "every client and every step would have the same numbers"),
            help="draw within `with tff.torch.draws(seed, step):`, where the numbers come from the "
            "program; or call module.eval() first, if it must not draw",
            span=user_span(),
        )
    if draws.IN_PLACE.get(str(operation), str(operation)) not in draws.RULES:
        _refuse_operation(operation)


def _is_view(operation: Any) -> bool:
    """Tell whether an operation gives another view of its first argument, or it itself."""
    return any(each.alias_info is not None for each in operation._schema.returns)


def _refuse_device(device: Any, span: Span | None) -> None:
    module = _module_of_frame()
    raise LanguageValueError(
        "E585",
        f"{f'the module {module}' if module else 'a PyTorch computation'} asks for the device "
        f"'{device}'",
        notes=("a program names no devices: it runs where its bundle runs",),
        help="leave the device out, or take that of an argument, x.device",
        span=span,
    )


def _check_writes(
    is_outside: Callable[[Any], bool], operation: Any, args: Any, kwargs: Any
) -> None:
    """Check that an operation writes only into tensors of this trace.

    Raises:
      LanguageValueError: it writes into one from outside.
    """
    if not operation._schema.is_mutable:
        return
    written = [
        value
        for argument, value in zip(operation._schema.arguments, args, strict=False)
        if argument.is_write
    ]
    written += [
        kwargs[a.name] for a in operation._schema.arguments if a.is_write and a.name in kwargs
    ]
    for value in written:
        if is_outside(value):
            module = _module_of_frame()
            where = f"the module {module}" if module else "a PyTorch computation"
            raise LanguageValueError(
                "E583",
                f"{where} writes into a tensor that exists outside of the computation",
                notes=(f"it is the operation {operation}, on a {_text(value)}",),
                help="make it an argument and return what it becomes; buffers of a module are "
                "arguments of tff.torch.call_and_update",
                span=user_span(),
            )


def _text(tensor: Any) -> str:
    return f"tensor of {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _refuse_operation(operation: Any) -> None:
    module = _module_of_frame()
    raise LanguageValueError(
        "E581",
        f"{f'the module {module}' if module else 'a PyTorch computation'} uses the operation "
        f"{operation}, which tffc does not translate",
        help="write it with other operations of PyTorch",
        span=user_span(),
    )


def _module_of_frame() -> str:
    """Return the class of the innermost module of PyTorch whose code is running."""
    torch = load_torch()
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            return type(owner).__name__
        frame = frame.f_back
    return ""


VALUE_NEEDED = (
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "GuardOnDataDependentSymNode",
)
"""The exceptions by which PyTorch says that it needs the values of tensors."""


VALUE_TEXTS = (
    ".numpy() is not supported for tensor subclasses",
    "unsupported format string passed to FakeTensor",
    "Cannot access data pointer of Tensor",
)
"""What other exceptions for the same reason say."""


@contextlib.contextmanager
def _refusals(function: Callable[..., object]) -> Generator[None]:
    """Turn exceptions of PyTorch's tracer into refusals at the user's line."""
    try:
        yield
    except TffcError:
        raise
    except Exception as error:
        names = {cls.__name__ for cls in type(error).__mro__}
        reason = str(error).strip().partition("\n")[0]
        span = raised_span(error) or definition_span(function)
        if names & {*VALUE_NEEDED} or any(text in reason for text in VALUE_TEXTS):
            raise LanguageValueError(
                "E582",
                "a PyTorch computation needs the value of a tensor while it is traced",
                notes=(f"PyTorch says: {reason}",),
                help="a program is traced before there are values: do without .item(), bool() and "
                "int() of tensors, and without shapes that depend on values; torch.where and masks "
                "choose between values",
                span=span,
            ) from None
        if "FakeTensorDeviceMismatchError" in names:
            _refuse_device(reason.rpartition(" ")[2].strip("!"), span)
        if "UnsupportedOperatorException" in names:
            raise LanguageValueError(
                "E581",
                f"a PyTorch computation uses the operation {reason}, which tffc does not translate",
                help="write it with other operations of PyTorch",
                span=span,
            ) from None
        raise
