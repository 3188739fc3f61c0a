"""Local code of one place as one TensorFlow section."""

from __future__ import annotations

from tffc.language.nodes import Compiled, Lambda, Node, kind_of
from tffc.language.traverse import walk
from tffc.language.type_parts import local_type
from tffc.language.types import FederatedType, FunctionType
from tffc.language.verify import verify
from tffc.linking.emit import Emitter
from tffc.passes.call_dominant import call_dominant
from tffc.support.errors import FormError


def extract_local_processing(node: Node) -> Compiled:
    """Return the section `(T -> U)` of a function `(T@p -> U@p)` that works at one placement alone.

    A function of values without a placement is taken likewise.

    Raises:
      FormError: it is not a function, involves two placements, or communicates.
    """
    if not isinstance(node.type, FunctionType):
        raise FormError(
            "E413",
            f"local processing is a function; found `{node.type}`",
            help=f"make it a function without parameters, of type `( -> {node.type})`",
        )
    if isinstance(node, Compiled) and node.kind == "tensorflow":
        return node
    verify(node)
    flat = call_dominant(node)
    if not isinstance(flat, Lambda):
        raise FormError(
            "E514",
            f"local processing is written out as a lambda; found {kind_of(flat)}",
            help="write a function that calls it, as in `(x -> f(x))`",
        )
    placements = {n.type.placement for n in walk(flat) if isinstance(n.type, FederatedType)}
    if len(placements) > 1:
        raise FormError(
            "E520",
            "local processing works at one placement; found values at SERVER and at CLIENTS",
            help="split it where it communicates",
        )
    emitter, given = Emitter(), flat.parameter_type
    argument = None if given is None else emitter.builder.parameter(local_type(given))
    return emitter.builder.finish(emitter.apply(flat, argument), local_type(node.type.result))
