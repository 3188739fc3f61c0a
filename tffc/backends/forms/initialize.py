"""The computation that makes the first server state."""

from __future__ import annotations

from tffc.backends.forms.signatures import is_placed
from tffc.errors import FormError
from tffc.ir.nodes import Compiled, Lambda, Node
from tffc.ir.traverse import contains
from tffc.ir.types import SERVER, FederatedType, FunctionType
from tffc.passes.local_processing import extract_local_processing


def compile_initialize(program: Node) -> Compiled:
    """Return the TensorFlow section `( -> S)` of a computation `( -> S@SERVER)`.

    A TensorFlow computation `( -> S)` is taken as it is.

    Raises:
      FormError: the computation takes an argument, does not return a server value, or does more
        than local work at the server.
    """
    signature = program.type
    if not isinstance(signature, FunctionType) or signature.parameter is not None:
        raise _refusal("takes no argument", program)
    is_section = isinstance(program, Compiled) and not contains(signature.result, FederatedType)
    if not is_section and not is_placed(signature.result, SERVER):
        raise _refusal("returns a value placed at the server", program)
    return extract_local_processing(program)


def _refusal(rule: str, program: Node) -> FormError:
    return FormError(
        "E515",
        f"the computation of the first state {rule}; found one of type `{program.type}`",
        notes=("expected `( -> S@SERVER)`",),
        span=program.span if isinstance(program, Lambda) else None,
    )
