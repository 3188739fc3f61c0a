"""The computation that makes the first server state."""

from __future__ import annotations

from tffc.backends.emit import Emitter
from tffc.backends.forms import local_type
from tffc.backends.stages import is_placed
from tffc.errors import FormError
from tffc.ir.nodes import Compiled, Lambda, Node
from tffc.ir.types import SERVER, FederatedType, FunctionType, contains
from tffc.ir.verify import verify
from tffc.passes import call_dominant


def compile_initialize(program: Node) -> Compiled:
    """The TensorFlow section `( -> S)` of a computation `( -> S@SERVER)`.

    A TensorFlow computation `( -> S)` is taken as it is.

    Raises:
      FormError: the computation takes an argument, does not return a server value, or does more
        than local work at the server.
    """
    signature = program.type
    if not isinstance(signature, FunctionType) or signature.parameter is not None:
        raise _refusal("takes no argument", program)
    if isinstance(program, Compiled) and not contains(signature.result, FederatedType):
        return program
    if not is_placed(signature.result, SERVER):
        raise _refusal("returns a value placed at the server", program)
    verify(program)
    flat = call_dominant(program)
    if not isinstance(flat, Lambda):
        raise _refusal("is written out as a lambda", program)
    emitter = Emitter()
    return emitter.builder.finish(emitter.operand(flat.result), local_type(signature.result))


def _refusal(rule: str, program: Node) -> FormError:
    return FormError(
        "E515",
        f"the computation of the first state {rule}; found one of type `{program.type}`",
        notes=("expected `( -> S@SERVER)`",),
    )
