"""XLA sections as TensorFlow sections: the operation XlaCallModule runs the StableHLO of one.

XLA compiles the operation where it stands, so nothing around it has to be compiled by XLA too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TypeVar

from tffc.graphs.operations import hlo
from tffc.graphs.operations.bytecode import BytecodeError
from tffc.graphs.operations.effects import MODULE, effects_in_module
from tffc.graphs.proto import AttrValue
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, TensorType, Type
from tffc.language.wire import SectionBinding, TensorBinding, XlaSection, bound_otherwise, read_xla
from tffc.linking.attributes import shapes_attribute, types_attribute
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Tensor, from_leaves, leaf_types, matched, tensors
from tffc.support.errors import FormError, GraphError
from tffc.support.printable import printable

T = TypeVar("T")

CONVENTION = 9
"""The version of the calling convention of XlaCallModule; TensorFlow reads it since 2.15."""

PLATFORM_CHECK = b"platform"
"""The name of the check that a module runs on the platform that it was made for.  It is left out:
a module that calls nothing outside of itself runs on all."""


@functools.lru_cache(maxsize=256)
def tensorflow_section(section: Compiled) -> Compiled:
    """Return the TensorFlow section that computes the same as a section; a TensorFlow section is
    returned as it is.

    Raises:
      FormError: the section has no StableHLO.
      GraphError: its StableHLO cannot be part of a graph.
      ExecutionError: its binding does not match its type.
      WireError: its message is malformed.
    """
    if section.kind == "tensorflow":
        return section
    assert isinstance(section.type, FunctionType)
    content = read_xla(section.payload)
    _check(section, content)
    parameter, result = section.type.parameter, section.type.result
    taken = bound_places(content.parameter, parameter)
    given_places = bound_places(content.result, result)
    builder = GraphBuilder()
    arguments = [] if parameter is None else tensors(builder.parameter(parameter))
    outputs: list[Tensor] = []
    if given_places:
        types = in_order(given_places, leaf_types(result))
        inputs = in_order(taken, arguments)
        attributes = {
            "Sout": shapes_attribute(types),
            "Tin": types_attribute(tensor.type for tensor in inputs),
            "Tout": types_attribute(types),
            "disabled_checks": AttrValue(list=AttrValue.ListValue(s=[PLATFORM_CHECK])),
            "module": AttrValue(s=content.stablehlo),
            "platforms": AttrValue(list=AttrValue.ListValue(s=[b"CPU"])),
            "version": AttrValue(i=CONVENTION),
        }
        outputs = builder.add(MODULE, inputs, attributes, types)
    return builder.finish(from_leaves(result, [outputs[place] for place in given_places]), result)


def bound_places(binding: SectionBinding | None, type: Type | None) -> list[int]:
    """Return where in a module the tensors of a parameter or result are, in the order of the type.

    Raises:
      ExecutionError: the binding is of another structure than the type, or leaves one out.
    """
    pairs = () if binding is None and type is None else matched(binding, type)
    bound = [
        part.tensor if isinstance(part, TensorBinding) and isinstance(kind, TensorType) else None
        for part, kind in pairs
    ]
    places = [place for place in bound if isinstance(place, int)]
    if len(places) < len(bound) or set(places) != set(range(len(places))):
        raise bound_otherwise(type)
    return places


def _check(section: Compiled, content: XlaSection) -> None:
    """Check that the module of a section can be part of a graph."""
    if not content.stablehlo:
        raise FormError(
            "E521",
            f"an XLA computation of type `{section.type}` cannot be part of a TensorFlow graph",
            notes=("it has HLO alone, and graphs hold StableHLO, which tffc adds when it traces",),
            help="trace the program with this tffc, or write this computation with "
            "tff.tensorflow.computation",
        )
    try:
        beside = effects_in_module(content.stablehlo)
    except BytecodeError:
        raise GraphError(
            "E331",
            f"the StableHLO of an XLA computation of type `{section.type}` cannot be read",
            help="trace the program again with this tffc",
        ) from None
    if beside:
        raise GraphError(
            "E325",
            f"an XLA computation of type `{section.type}` does more than XLA alone can",
            notes=(f"it needs {', '.join(map(printable, _needed(beside, content)))}",),
            help="decompositions of matrices and approximate maxima are functions of JAX's own "
            "libraries, which TensorFlow does not have; do without them, or write this "
            "computation with tff.tensorflow.computation",
        )


def _needed(operations: Iterable[str], content: XlaSection) -> list[str]:
    """Return the names of the functions outside of the module that it calls, or else its
    operations."""
    targets = {target for _, target in hlo.instructions(content.hlo_module) if target}
    called = sorted(target for target in targets if target.encode() in content.stablehlo)
    return called or sorted(operations)


def in_order(places: list[int], items: list[T]) -> list[T]:
    """Return the items, each at its place."""
    return [item for _, item in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])]
