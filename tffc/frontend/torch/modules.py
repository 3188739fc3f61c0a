"""Modules of PyTorch as functions of their weights."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from tffc.frontend.hints import described
from tffc.frontend.torch.arrays import array_of
from tffc.frontend.torch.releases import load_torch
from tffc.language.types import TensorType
from tffc.runtime.user_code.source import entry_point, user_span
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.near import did_you_mean_by

Arrays: TypeAlias = OrderedDict[str, np.ndarray]

Rule: TypeAlias = Literal["averaged", "local", "frozen"]

RULES: tuple[Rule, ...] = ("averaged", "local", "frozen")

STATISTICS = ("*running_mean", "*running_var")
"""The names of the buffers that normalizations of PyTorch change in training."""


@dataclasses.dataclass(frozen=True)
class ModuleWeights:
    """First values of a module's weights, by the names that `state_dict` has for them.

    trained    parameters that gradients move: those with requires_grad
    averaged   buffers that training changes, and whose mean over clients is the server's next value
    local      buffers that training changes at a client, and that never leave it
    frozen     what stays as it is: other parameters and buffers
    """

    trained: Arrays
    averaged: Arrays
    local: Arrays
    frozen: Arrays

    def __repr__(self) -> str:
        parts = (
            f"{sum(array.size for array in arrays.values()):,} {field.name}"
            for field in dataclasses.fields(self)
            if (arrays := getattr(self, field.name))
        )
        return f"<weights of a module: {', '.join(parts)}>"


@entry_point
def weights(module: Any, buffers: Mapping[str, Rule] | None = None) -> ModuleWeights:
    """Return the weights that a module has now, each by what training does to it.

    `buffers` gives rules for buffers by their names, which may hold the wildcard `*`; the first
    that fits holds.  Without one, the running means and variances of normalizations are averaged
    if they are floats, and all other buffers are frozen: what a call of the module writes into
    them is dropped.  Tied parameters stand once, under the first of their names.

    Raises:
      LanguageTypeError: this is no module.
      LanguageValueError: a rule fits no buffer, or the module cannot be traced: it is compiled or
        quantized already, or has no values.
    """
    torch = load_torch()
    check_module(module)
    rules: dict[str, Rule] = dict(buffers or {})
    _check_rules(rules, [name for name, _ in module.named_buffers()])
    parts: dict[str, Arrays] = {rule: OrderedDict() for rule in ("trained", *RULES)}
    for name, parameter in module.named_parameters():
        parts["trained" if parameter.requires_grad else "frozen"][name] = _array(parameter)
    for name, buffer in module.named_buffers():
        parts[_rule_of(torch, name, buffer, rules)][name] = _array(buffer)
    return ModuleWeights(**parts)


@entry_point
def types(arrays: Mapping[str, Any]) -> OrderedDict[str, TensorType]:
    """Return the types of arrays or tensors, by their names."""
    return OrderedDict(
        (name, TensorType(array.dtype.type, array.shape))
        for name, array in ((name, _array(value)) for name, value in arrays.items())
    )


@entry_point
def call(module: Any, weights: Mapping[str, Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return what a module gives for arguments, with `weights` in place of its own.

    `weights` maps names to tensors.  Parameters that it leaves out and that are not to be trained,
    and buffers, have the values that the module has now.  Writes into buffers are dropped.

    Raises:
      LanguageTypeError: this is no module.
      LanguageValueError: the module has no weight of a name, or keeps something in an attribute.
    """
    return call_and_update(module, weights, *args, **kwargs)[0]


@entry_point
def call_and_update(
    module: Any, weights: Mapping[str, Any], /, *args: Any, **kwargs: Any
) -> tuple[Any, OrderedDict[str, Any]]:
    """Return what `call` does, and the buffers among `weights` as the call leaves them."""
    torch = load_torch()
    check_module(module)
    own = dict(module.named_buffers())
    known = {*dict(module.named_parameters(remove_duplicate=False)), *own}
    for name in weights:
        if name not in known:
            raise LanguageValueError(
                "E587",
                f"{type(module).__name__} has no weight {name!r}",
                help=did_you_mean_by({each: each for each in known}, name)
                or "give those of tff.torch.weights(module)",
                span=user_span(),
            )
    # A call writes into copies.
    copies = {name: weights.get(name, buffer).clone() for name, buffer in own.items()}
    before = list(_attributes(module))
    output = torch.func.functional_call(module, {**weights, **copies}, args, kwargs)
    _check_attributes(module, before)
    changed = OrderedDict((name, copies[name]) for name in weights if name in copies)
    return output, changed


def check_module(module: Any) -> None:
    """Check that a module can be traced.

    Raises:
      LanguageTypeError: this is no module of PyTorch.
      LanguageValueError: it is compiled or quantized already, or has no values.
    """
    torch = load_torch()
    if not isinstance(module, torch.nn.Module):
        raise LanguageTypeError(
            "E714",
            f"{described(module)} is no module of PyTorch",
            help="give a torch.nn.Module",
            span=user_span(),
        )
    for name, part in module.named_modules():
        reason = _reason_against(torch, part)
        if reason is not None:
            what, help = reason
            where = f"{type(part).__name__}, {name!r}," if name else type(part).__name__
            raise LanguageValueError("E585", f"{where} {what}", help=help, span=user_span())
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.device.type != "cpu":
            place = tensor.device.type
            raise LanguageValueError(
                "E585",
                f"the weight {name!r} of {type(module).__name__} is on the device {place!r}",
                help="give it values first, as by module.to_empty(device='cpu')"
                if place == "meta"
                else "move the module first: module.cpu(); a bundle runs on any device",
                span=user_span(),
            )


def _reason_against(torch: Any, part: Any) -> tuple[str, str] | None:
    """Return why a module cannot be traced, and what to do, if it cannot."""
    if hasattr(part, "_orig_mod"):
        return "is compiled by torch.compile", "give the module itself, module._orig_mod"
    if isinstance(part, torch.jit.ScriptModule):
        return "is compiled to TorchScript", "give the module that it was made from"
    if type(part).__module__.startswith(("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.q")):
        return "is quantized", "give the module in floats; export quantizes what is trained"
    if isinstance(part, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
        return "spreads batches over devices", "give the module that it wraps, .module"
    if isinstance(part, torch.nn.modules.lazy.LazyModuleMixin) and part.has_uninitialized_params():
        return "has no weights before its first call", "call the module once on an example"
    return None


def _check_rules(rules: Mapping[str, Any], names: list[str]) -> None:
    for pattern, rule in rules.items():
        if rule not in RULES:
            raise LanguageValueError(
                "E587",
                f"{rule!r} is no rule for the buffers {pattern!r}",
                help=f"the rules are {', '.join(RULES)}",
                span=user_span(),
            )
        if not fnmatch.filter(names, pattern):
            raise LanguageValueError(
                "E587",
                f"the module has no buffer {pattern!r}",
                notes=(f"it has {', '.join(map(repr, names)) or 'none'}",),
                help="name one as state_dict does, or leave the rule out",
                span=user_span(),
            )


def _rule_of(torch: Any, name: str, buffer: Any, rules: Mapping[str, Rule]) -> Rule:
    for pattern, rule in rules.items():
        if fnmatch.fnmatchcase(name, pattern):
            return rule
    is_statistic = any(fnmatch.fnmatchcase(name, pattern) for pattern in STATISTICS)
    return "averaged" if is_statistic and buffer.is_floating_point() else "frozen"


def _array(value: Any) -> np.ndarray:
    """Return a tensor, or anything like an array, as an array of its own."""
    is_tensor = isinstance(value, load_torch().Tensor)
    return np.array(array_of(value)) if is_tensor else np.asarray(value)


Attribute: TypeAlias = tuple[Any, str, Any]
"""A module, and the name and value of an attribute of it."""


def _attributes(module: Any) -> Iterator[Attribute]:
    """Yield the attributes of a module and its parts that hold tensors, numbers or text."""
    torch = load_torch()
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor | bool | int | float | str):
                yield part, name, value


def _check_attributes(module: Any, before: list[Attribute]) -> None:
    """Check that a call did not leave anything in a module but what it wrote into buffers.

    Raises:
      LanguageValueError: it did.
    """
    held = {(id(part), name): value for part, name, value in before}
    for part, name, value in _attributes(module):
        if held.get((id(part), name), _attributes) is not value:
            raise LanguageValueError(
                "E583",
                f"{type(part).__name__} keeps a value in its attribute {name!r} when it is called",
                notes=("a program has no attributes: the next call would not see it",),
                help="return the value, or make it a buffer, which tff.torch.call_and_update gives",
                span=user_span(),
            )
