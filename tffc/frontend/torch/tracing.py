"""Graphs of PyTorch operations, recorded by running a function on tensors without values.

PyTorch itself makes the graph one of pure functions: views, writes in place and gradients are gone
from it.  What has no place in such a graph is refused while the function runs, at the user's line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import random
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext
from tffc.frontend.definitions import definition_span
from tffc.frontend.hints import described
from tffc.frontend.torch import draws
from tffc.frontend.torch.decompositions import decompositions, operations
from tffc.frontend.torch.releases import load_torch
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.user_code.source import raised_span, user_span
from tffc.support.errors import LanguageTypeError, LanguageValueError, TffcError


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
            results, tree = result_tensors(torch, returned)
            structure.append(tree)
            return results

    fake = importlib.import_module("torch._subclasses.fake_tensor")
    mode = fake.FakeTensorMode(allow_non_fake_inputs=True)
    with _no_other_draws(torch, function), _reference_kernels(torch), _refusals(function), mode:
        empty = [torch.empty(tuple(shape), dtype=dtype) for shape, dtype in tensors]
        graph = _recorder()(flat)(*empty)
        constants = _lift_constants(graph)
        copies = [mode.from_tensor(constant.detach()) for constant in constants]
        pure = torch.func.functionalize(graph, remove="mutations_and_views")
        graph = _recorder(decompositions())(pure)(*empty, *copies)
    return Recorded(graph, constants, structure[-1])


def _recorder(table: Mapping[Any, Any] | None = None) -> Callable[..., Any]:
    """Return what makes a function one that gives the graph of its operations, decomposed by a
    table."""
    proxies = importlib.import_module("torch.fx.experimental.proxy_tensor")
    return functools.partial(proxies.make_fx, decomposition_table=table, tracing_mode="real")


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


def result_tensors(torch: Any, returned: Any) -> tuple[list[Any], Any]:
    """Return the tensors in what a function returned, and its structure.

    Raises:
      LanguageTypeError: there is something else in it.
    """
    leaves, tree = load_jax().tree_util.tree_flatten(_in_order(returned))
    return [_tensor(torch, leaf) for leaf in leaves], tree


def _in_order(value: Any) -> Any:
    """Return a value whose plain dictionaries keep their order, which JAX would not."""

    def ordered(leaf: Any) -> Any:
        if type(leaf) is not dict:
            return leaf
        return OrderedDict((name, _in_order(each)) for name, each in leaf.items())

    tree_map = load_jax().tree_util.tree_map
    return tree_map(ordered, value, is_leaf=lambda each: type(each) is dict)


def _tensor(torch: Any, leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
        return torch.as_tensor(leaf)
    raise LanguageTypeError(
        "E454",
        f"{described(leaf)} cannot be the result of a PyTorch computation",
        help="return tensors of numbers, and lists, tuples and mappings of them",
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
    try:
        with rules, warnings.catch_warnings(), attention.sdpa_kernel(attention.SDPBackend.MATH):
            warnings.simplefilter("ignore")
            with torch.backends.mkldnn.flags(enabled=False):
                yield
    finally:
        draws.is_tracing.reset(token)
        torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def _no_other_draws(torch: Any, function: Callable[..., object]) -> Generator[None]:
    """Refuse a function that draws numbers from generators of Python or NumPy as it is traced."""
    before = random.getstate(), _comparable(np.random.get_state()), torch.get_rng_state()
    yield
    for name, changed in (
        ("Python's random", random.getstate() != before[0]),
        ("numpy.random", _comparable(np.random.get_state()) != before[1]),
        ("PyTorch's generator", not torch.equal(torch.get_rng_state(), before[2])),
    ):
        if changed:
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
            elif not _has_translation(func):
                _refuse_operation(func)
            _check_writes(torch, fake.FakeTensor, func, args, kwargs)
            return func(*args, **kwargs)

    return Watch


def _has_translation(operation: Any) -> bool:
    """Tell whether an operation may have a translation, if not as it is, then once it is pure."""
    if operation.namespace not in ("aten", "prim", "prims"):
        return False
    if operation.is_view or operation._schema.is_mutable or operation.namespace != "aten":
        return True
    name = str(operation)
    packet, _, overload = name.rpartition(".")
    copied = f"{packet}_copy.{overload}"
    return bool({name, copied} & operations()) or operation in decompositions()


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


def _check_writes(torch: Any, fake: type[Any], operation: Any, args: Any, kwargs: Any) -> None:
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
        if isinstance(value, torch.Tensor) and not isinstance(value, fake):
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
        if names & {*VALUE_NEEDED}:
            raise LanguageValueError(
                "E582",
                "a PyTorch computation needs the value of a tensor while it is traced",
                notes=(f"PyTorch says: {reason}",),
                help="a program is traced before there are values: do without .item(), bool() and "
                "int() of tensors, and without shapes that depend on values; torch.where and masks "
                "choose between values",
                span=span,
            ) from None
        raise
