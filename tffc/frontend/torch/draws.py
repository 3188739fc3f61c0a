"""Random draws whose key is a value of the program.

PyTorch draws from a generator of the process, which a compiled program does not have.  Within
`draws(seed, ...)` each draw has a key of its own, derived from the numbers given and from how many
draws came before it; the same numbers give the same draws, in a trace and in PyTorch itself.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from tffc.frontend.torch.arrays import array_of, tensor_of
from tffc.frontend.torch.releases import load_torch, load_translations
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.user_code.source import user_span
from tffc.support.errors import LanguageValueError

is_tracing: ContextVar[bool] = ContextVar("tffc_torch_tracing", default=False)
"""Whether PyTorch operations are being recorded."""


@contextlib.contextmanager
def draws(*numbers: Any) -> Generator[None]:
    """Let PyTorch draw from keys of the program, in a `with` block.

    `numbers` are integers or tensors of one integer each, such as a client's seed and the number of
    the step: other numbers give other draws.  Draws follow Threefry, as in JAX, so the same numbers
    give the same draws in a computation, and in PyTorch where the function is called as it is.

    Blocks can be nested; a draw belongs to the innermost one.
    """
    torch = load_torch()
    tensors = [torch.as_tensor(number, dtype=torch.int64).reshape(()) for number in numbers]
    operations = scopes()
    if is_tracing.get():
        operations.begin(torch.stack(tensors) if tensors else torch.zeros(0, dtype=torch.int64))
        try:
            yield
        finally:
            operations.end()
    else:
        with _eager_mode(torch)([int(number) for number in tensors]):
            yield


@functools.cache
def scopes() -> Any:
    """Return the operations that mark, in a recorded graph, where keys begin and end to hold."""
    torch = load_torch()
    library = torch.library.Library("tffc_draws", "DEF")
    library.define("begin(Tensor numbers) -> ()")
    library.define("end() -> ()")
    library.impl("begin", lambda numbers: None, "CompositeExplicitAutograd")
    library.impl("end", lambda: None, "CompositeExplicitAutograd")
    operations = torch.ops.tffc_draws
    # Without this, the tracer drops operations without results.
    for operation in (operations.begin.default, operations.end.default):
        torch.fx.node.has_side_effect(operation)
    return _Scopes(library, operations.begin.default, operations.end.default)


class _Scopes:
    """The marks of scopes of keys; the library that defines them lives as long as they do."""

    def __init__(self, library: Any, begin: Any, end: Any) -> None:
        self._library = library
        self.begin = begin
        self.end = end


def is_draw(operation: Any) -> bool:
    """Tell whether an operation of PyTorch draws from a generator."""
    return load_torch().Tag.nondeterministic_seeded in getattr(operation, "tags", ())


class DrawKeys:
    """The keys of one scope: each draw takes the next."""

    def __init__(self, numbers: Sequence[Any]) -> None:
        self._random = importlib.import_module("jax.random")
        first, *others = [*numbers] or [0]
        key = self._random.key(first)
        for number in others:
            key = self._folded(key, number)
        self._key = key
        self._count = 0

    def _folded(self, key: Any, number: Any) -> Any:
        """Return a key for all 64 bits of a number."""
        numpy = importlib.import_module("jax.numpy")
        number = numpy.asarray(number, numpy.int64)
        low = numpy.asarray(number & 0xFFFFFFFF, numpy.uint32)
        high = numpy.asarray((number >> 32) & 0xFFFFFFFF, numpy.uint32)
        return self._random.fold_in(self._random.fold_in(key, low), high)

    def next(self) -> Any:
        """Return the key of the next draw."""
        self._count += 1
        return self._random.fold_in(self._key, self._count - 1)


def draw(operation: Any, key: Any, shape: Sequence[int], dtype: Any, args: Any, kwargs: Any) -> Any:
    """Return what an operation draws, as an array of a shape and a type.

    `args` and `kwargs` are those of the operation, with arrays in place of tensors.  Returns None
    for an operation that has no such rule.
    """
    name = str(operation)
    rule = RULES.get(name)
    return None if rule is None else rule(_Draw(key, tuple(shape), dtype), *args, **kwargs)


class _Draw:
    """A draw of an array of a shape and a type."""

    def __init__(self, key: Any, shape: tuple[int, ...], dtype: Any) -> None:
        self.random = importlib.import_module("jax.random")
        self.numpy = importlib.import_module("jax.numpy")
        self.key, self.shape, self.dtype = key, shape, dtype

    def uniform(self, low: Any = 0.0, high: Any = 1.0) -> Any:
        return self.random.uniform(self.key, self.shape, self.dtype, low, high)

    def normal(self) -> Any:
        return self.random.normal(self.key, self.shape, self.dtype)

    def integers(self, low: Any, high: Any) -> Any:
        drawn = self.random.randint(self.key, self.shape, low, high, self.numpy.int64)
        return drawn.astype(self.dtype)

    def bernoulli(self, p: Any) -> Any:
        # A draw of 32 bits whatever the type of the result is.
        drawn = self.random.uniform(self.key, self.shape, self.numpy.float32) < p
        return drawn.astype(self.dtype)


def _bernoulli_like(d: _Draw, x: Any, p: Any = 0.5, **_: Any) -> Any:
    return d.bernoulli(p)


def _randint(d: _Draw, *bounds: Any, **_: Any) -> Any:
    low, high = (0, bounds[0]) if len(bounds) == 2 else bounds[:2]
    return d.integers(low, high)


def _randint_like(d: _Draw, x: Any, *bounds: Any, **_: Any) -> Any:
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return d.integers(low, high)


def _dropout(d: _Draw, x: Any, p: Any, train: bool | None = True) -> Any:
    if not train:
        return x, d.numpy.ones(x.shape, bool)
    present = d.random.uniform(d.key, x.shape, d.numpy.float32) < 1 - p
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    return d.numpy.where(present, x * d.numpy.asarray(scale, x.dtype), 0), present


def _exponential(d: _Draw, x: Any, rate: Any = 1.0, **_: Any) -> Any:
    return d.random.exponential(d.key, d.shape, d.dtype) / rate


def _permutation(d: _Draw, n: int, **_: Any) -> Any:
    return d.random.permutation(d.key, n).astype(d.dtype)


RULES: Mapping[str, Callable[..., Any]] = {
    "aten.bernoulli.default": lambda d, p, **_: d.bernoulli(p),
    "aten.bernoulli.p": _bernoulli_like,
    "aten.bernoulli.Tensor": _bernoulli_like,
    "aten.native_dropout.default": _dropout,
    "aten.rand.default": lambda d, *_, **__: d.uniform(),
    "aten.rand_like.default": lambda d, *_, **__: d.uniform(),
    "aten.randn.default": lambda d, *_, **__: d.normal(),
    "aten.randn_like.default": lambda d, *_, **__: d.normal(),
    "aten.randint.default": _randint,
    "aten.randint.low": _randint,
    "aten.randint_like.default": _randint_like,
    "aten.randint_like.low_dtype": _randint_like,
    "aten.randperm.default": _permutation,
    "aten.uniform.default": lambda d, x, low=0.0, high=1.0, **_: d.uniform(low, high),
    "aten.normal_functional.default": lambda d, x, mean=0.0, std=1.0, **_: mean + std * d.normal(),
    "aten.normal.Tensor_float": lambda d, mean, std=1.0, **_: mean + std * d.normal(),
    "aten.normal.float_Tensor": lambda d, mean, std, **_: mean + std * d.normal(),
    "aten.normal.Tensor_Tensor": lambda d, mean, std, **_: mean + std * d.normal(),
    "aten.exponential.default": _exponential,
}
"""How operations draw."""

IN_PLACE = {
    "aten.bernoulli_.float": "aten.bernoulli.p",
    "aten.bernoulli_.Tensor": "aten.bernoulli.Tensor",
    "aten.uniform_.default": "aten.uniform.default",
    "aten.normal_.default": "aten.normal_functional.default",
    "aten.exponential_.default": "aten.exponential.default",
}
"""The operations that write what they draw, which a recorded graph does not have."""


@functools.cache
def _eager_mode(torch: Any) -> type[Any]:
    """Return the mode in which PyTorch itself draws from keys."""
    dispatch = importlib.import_module("torch.utils._python_dispatch")

    class KeyedDraws(dispatch.TorchDispatchMode):
        def __init__(self, numbers: Sequence[int]) -> None:
            super().__init__()
            self._numbers = numbers
            self._keys: DrawKeys | None = None

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if not is_draw(func):
                return func(*args, **kwargs)
            jax = load_jax()
            with jax.enable_x64(True):
                self._keys = self._keys or DrawKeys(self._numbers)
                return _eagerly(torch, func, self._keys.next(), args, kwargs)

    return KeyedDraws


def _eagerly(torch: Any, operation: Any, key: Any, args: Any, kwargs: Any) -> Any:
    """Return tensors that an operation draws, after writing them where it writes."""
    tree = importlib.import_module("torch.utils._pytree")
    load_translations()
    mappings = importlib.import_module("torchax.ops.mappings")

    def without_values(tensor: Any) -> Any:
        return tensor.to("meta")

    metas = tree.tree_map_only(torch.Tensor, without_values, (args, kwargs))
    shaped = operation(*metas[0], **{**metas[1], **_on_meta(operation)})
    first = shaped[0] if isinstance(shaped, tuple) else shaped
    arrays, keywords = tree.tree_map_only(torch.Tensor, array_of, (args, kwargs))
    name = str(operation)
    rule = RULES.get(IN_PLACE.get(name, name))
    if rule is None:
        raise LanguageValueError(
            "E581",
            f"the operation {name} cannot draw from keys of a program",
            help="draw with other operations of PyTorch, such as torch.rand and torch.bernoulli",
            span=user_span(),
        )
    dtype = mappings.t2j_dtype(first.dtype)
    drawn = rule(_Draw(key, tuple(first.shape), dtype), *arrays, **keywords)
    tensors = tree.tree_map(tensor_of, drawn)
    return args[0].copy_(tensors) if name in IN_PLACE else tensors


def _on_meta(operation: Any) -> dict[str, Any]:
    """Return the argument by which an operation that makes tensors makes them without values."""
    names = [argument.name for argument in operation._schema.arguments]
    return {"device": "meta"} if "device" in names else {}
