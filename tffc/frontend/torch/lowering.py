"""Recorded graphs of PyTorch operations as functions of JAX arrays.

torchax translates the operations.  `operations.txt` lists those that tests compare with PyTorch on
many inputs; others are refused.  A translation that is missing there, or that differs from PyTorch,
is in `tffc.frontend.torch.translations`.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tffc.frontend.torch import draws
from tffc.frontend.torch.arrays import array_of
from tffc.frontend.torch.decompositions import operations
from tffc.frontend.torch.releases import load_torch, load_translations
from tffc.frontend.torch.tracing import Recorded, record
from tffc.frontend.torch.translations import OF_MEMORY, OWN
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.support.errors import LanguageValueError, Span

PULLED: Mapping[str, tuple[str, bool]] = {
    "aten.replication_pad1d_backward.default": ("replication_pad1d", False),
    "aten.replication_pad2d_backward.default": ("replication_pad2d", False),
    "aten.replication_pad3d_backward.default": ("replication_pad3d", False),
    "aten.upsample_bicubic2d_backward.default": ("upsample_bicubic2d", True),
    "aten.upsample_bilinear2d_backward.default": ("upsample_bilinear2d", True),
    "aten.upsample_linear1d_backward.default": ("upsample_linear1d", True),
    "aten.upsample_nearest1d_backward.default": ("upsample_nearest1d", True),
    "aten.upsample_nearest2d_backward.default": ("upsample_nearest2d", True),
    "aten.upsample_nearest3d_backward.default": ("upsample_nearest3d", True),
    "aten.upsample_trilinear3d_backward.default": ("upsample_trilinear3d", True),
    "aten._upsample_nearest_exact1d_backward.default": ("_upsample_nearest_exact1d", True),
    "aten._upsample_nearest_exact2d_backward.default": ("_upsample_nearest_exact2d", True),
    "aten._upsample_nearest_exact3d_backward.default": ("_upsample_nearest_exact3d", True),
}
"""Slopes that neither torchax nor a rule of PyTorch translates: each with the operation of which it
is the slope, and whether it takes sizes, that of the result and that of the input, in place of the
input."""


def check_graph(recorded: Recorded, span: Span | None) -> None:
    """Check that a recorded graph can be translated; errors point at `span`.

    Raises:
      LanguageValueError: an operation has no translation, or a parameter is a constant of it.
    """
    scopes = draws.scopes()
    for constant in recorded.constants:
        _check_constant(constant, span)
    for node in recorded.graph.graph.nodes:
        if node.op != "call_function" or node.target in (
            operator.getitem,
            scopes.begin,
            scopes.end,
        ):
            continue
        if not draws.is_draw(node.target) and str(node.target) not in operations():
            raise _untranslated(node, span=span)


def _untranslated(node: Any, reason: str = "", span: Span | None = None) -> LanguageValueError:
    first = reason.partition("\n")[0]
    return LanguageValueError(
        "E581",
        f"a PyTorch computation uses the operation {node.target}, which tffc does not translate"
        + (" for these arguments" if reason else ""),
        notes=(f"its translation says: {first}",) if first else (),
        help="write it with other operations of PyTorch",
        span=span,
    )


def _check_constant(value: Any, span: Span | None) -> None:
    if value.requires_grad:
        raise LanguageValueError(
            "E584",
            "a PyTorch computation uses a parameter that is not among its arguments: a tensor of "
            f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}",
            notes=("its value now would be a constant of the program, and never trained",),
            help="call the module by tff.torch.call(module, weights, ...), with the weights as an "
            "argument; what is not to be trained has requires_grad=False",
            span=span,
        )


def lowered_function(recorded: Recorded) -> Callable[..., list[Any]]:
    """Return a recorded graph, once checked, as a function of JAX arrays."""
    nodes = list(recorded.graph.graph.nodes)

    def compute(*arguments: Any) -> list[Any]:
        constants = [array_of(constant) for constant in recorded.constants]
        return GraphEvaluation((*arguments, *constants)).run(nodes)

    return compute


class GraphEvaluation:
    """An evaluation of a graph on arrays."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._torch, self._jax = load_torch(), load_jax()
        self._arguments = iter(arguments)
        self._values: dict[Any, Any] = {}
        self._keys: list[draws.DrawKeys] = []
        self._translations = load_translations()
        self._torchax = importlib.import_module("torchax")
        self._mappings = importlib.import_module("torchax.ops.mappings")

    def run(self, nodes: Sequence[Any]) -> list[Any]:
        """Return the arrays that the graph gives."""
        for node in nodes:
            if node.op == "output":
                return [self._operand(part) for part in node.args[0]]
            self._values[node] = self._value(node)
        raise AssertionError("a graph without an output")

    def _operand(self, argument: Any) -> Any:
        """Return an argument of a node, with arrays in place of nodes."""
        match argument:
            case list():
                # A plain one, which some translations change.
                return [self._operand(each) for each in argument]
            case tuple():
                return tuple(self._operand(each) for each in argument)
            case dict():
                return {name: self._operand(each) for name, each in argument.items()}
            case _ if isinstance(argument, self._torch.fx.Node):
                return self._values[argument]
            case _:
                return argument

    def _value(self, node: Any) -> Any:
        if node.op == "placeholder":
            return next(self._arguments)
        args, kwargs = self._operand(node.args), self._operand(node.kwargs)
        if node.target is operator.getitem:
            return args[0][args[1]]
        scopes = draws.scopes()
        if node.target is scopes.begin:
            numbers = args[0]
            self._keys.append(draws.DrawKeys([numbers[i] for i in range(numbers.shape[0])]))
            return None
        if node.target is scopes.end:
            return self._keys.pop()
        return self.declared_value(node, args, kwargs)

    def _computed(self, node: Any, args: Any, kwargs: Any) -> Any:
        if draws.is_draw(node.target):
            first = node.meta["val"]
            first = first[0] if isinstance(first, tuple | list) else first
            dtype = self._mappings.t2j_dtype(first.dtype)
            return draws.draw(node.target, self._keys[-1].next(), first.shape, dtype, args, kwargs)
        if str(node.target) in OF_MEMORY and not node.args[0].meta["val"].is_contiguous():
            raise _untranslated(node, "the tensor is not contiguous")
        own = OWN.get(str(node.target))
        if own is not None:
            return own(node.meta.get("val"), *args, **kwargs)
        if str(node.target) in PULLED:
            return self._pulled(node, *args)
        rule = self._translations.get(node.target)
        rule = rule or self._translations.get(node.target.overloadpacket)
        if rule is None:
            raise _untranslated(node)
        if rule.is_jax_function:
            return rule.func(*args, **kwargs)
        # A translation by other operations, of tensors that hold arrays.
        environment = self._torchax.default_env()
        with environment:
            args, kwargs = environment.j2t_iso((args, kwargs))
            return environment.t2j_iso(rule.func(*args, **kwargs))

    def _pulled(self, node: Any, slope: Any, *args: Any) -> Any:
        """Return the slope of an operation by its first argument, from its own translation."""
        name, has_sizes = PULLED[str(node.target)]
        forward = getattr(self._torch.ops.aten, name).default
        result = node.meta["val"]
        settings = (args[0], *args[2:]) if has_sizes else args[1:]
        shape = [(tuple(result.shape), result.dtype)]
        recorded = record(lambda x: [forward(x, *settings)], shape, lambda values: (values, {}))
        input = self._jax.numpy.zeros(shape[0][0], self._mappings.t2j_dtype(result.dtype))
        x = input if has_sizes else args[0]
        _, pull = self._jax.vjp(lambda x: lowered_function(recorded)(x)[0], x)
        return pull(slope)[0]

    def declared_value(self, node: Any, args: Any, kwargs: Any) -> Any:
        """Return what the operation of a node gives for arrays, in the types that PyTorch says.

        JAX computes in other types here and there, such as whole numbers of 64 bits.
        """
        try:
            value = self._computed(node, args, kwargs)
        except (AssertionError, IndexError, NotImplementedError, TypeError, ValueError) as error:
            raise _untranslated(node, str(error)) from None
        declared = node.meta.get("val")
        if not isinstance(declared, tuple | list):
            return self._as_type(node, declared, value)
        pairs = zip(declared, value, strict=True)
        return [self._as_type(node, each, part) for each, part in pairs]

    def _as_type(self, node: Any, declared: Any, value: Any) -> Any:
        if not isinstance(declared, self._torch.Tensor) or value is None:
            return value
        array = self._jax.numpy.asarray(value, self._mappings.t2j_dtype(declared.dtype))
        if array.shape != tuple(declared.shape):
            raise _untranslated(node, f"it gives {array.shape}, not {tuple(declared.shape)}")
        return array
