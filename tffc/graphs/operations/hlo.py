"""The instructions of XLA modules, and their effects besides computing.

`hlo.txt` lists the known ones; others count as having effects.  A `custom-call` is a call of a
function outside of the module, which may be code of this process.  Only those of JAX's own
libraries that are known to compute and nothing else may ever run: the rest of a process's
functions, JAX's callbacks among them, can only be called by the process that made them.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

from tffc.graphs.operations.bytecode import BytecodeError, operations, strings
from tffc.graphs.operations.effects import HEADINGS, Effect, calls_python, read_table
from tffc.graphs.proto.encoding import Kind, Place, read_message, schema
from tffc.support.errors import WireError, reader

MODULE = schema(computations=(3, Kind.MESSAGES))
COMPUTATION = schema(instructions=(2, Kind.MESSAGES))
INSTRUCTION = schema(opcode=(2, Kind.STRING), target=(28, Kind.STRING))

TABLE = pathlib.Path(__file__).with_suffix(".txt")
"""The instructions of XLA except `custom-call`, under headings like those of `effects.txt`."""

CUSTOM_CALL = "custom-call"

OF_JAX = re.compile(
    r"ApproxTopK|SPMDFullToShardShape|SPMDShardToFullShape|Sharding|TopK|cpu_csr_sparse_dense_ffi|"
    r"tridiagonal_solve_perturbed_ffi|lapack_[sdcz]("
    r"geev|gees|gehrd|geqp3|geqrf|gesdd|gesvd|getrf|gtsv|heevd|hetrd|orgqr|ormqr|potrf|syevd|"
    r"sytrd|trsm|ungqr|unmqr)_ffi"
)
"""Matches the targets of `custom-call` in JAX's own libraries that only compute."""

OF_HOST = frozenset({CUSTOM_CALL, "infeed", "outfeed", "recv", "recv-done", "send", "send-done"})
"""The instructions that reach for something in the process that runs them."""

STABLEHLO_CALL = "vhlo.custom_call"
"""The operation of a portable artifact that `custom-call` is in HLO, without its version."""

UNTOLD = "(a function that the StableHLO alone calls)"
"""Stands for a call whose target cannot be told."""


@reader("a module of HLO", WireError)
def instructions(module: bytes) -> Iterator[tuple[str, str]]:
    """Yield the opcode of each instruction of a serialized HloModuleProto, and the target of each
    `custom-call`: the function that it calls.

    Raises:
      WireError: the module is malformed.
    """
    whole = read_message(module, Place(0, len(module)), MODULE)
    for computation in whole.get("computations", ()):
        inside = read_message(module, computation, COMPUTATION)
        for instruction in inside.get("instructions", ()):
            fields = read_message(module, instruction, INSTRUCTION)
            yield fields.get("opcode", ""), fields.get("target", "")


@reader("a module of HLO", WireError)
def foreign_calls(hlo_module: bytes, stablehlo: bytes) -> list[str]:
    """Return the functions outside of an XLA section that it calls and that are not known to do
    nothing but compute, by either of its two modules.

    The targets of an artifact are among its strings, but which they are is not told: so it calls
    what its HLO calls, and Python if a string names a callback.  Where the HLO calls nothing, it
    has to call nothing either.

    Raises:
      WireError: the HLO is malformed.
    """
    targets = dict.fromkeys(target for op, target in instructions(hlo_module) if op == CUSTOM_CALL)
    foreign = [target for target in targets if not OF_JAX.fullmatch(target)]
    if calls_outside(stablehlo):
        named = strings(stablehlo)
        foreign += [text for text in named if calls_python(text) and text not in foreign]
        if not any(text in targets for text in named):
            foreign.append(UNTOLD)
    return foreign


def calls_outside(stablehlo: bytes) -> bool:
    """Tell whether a portable artifact of StableHLO calls a function outside of it; nothing can be
    told of what is not an artifact, which nothing runs either."""
    try:
        names = operations(stablehlo)
    except BytecodeError:
        return False
    return any(name.startswith(STABLEHLO_CALL) for name in names)


def effect_of(opcode: str, target: str) -> Effect | None:
    """Return the effect that an instruction has besides computing, or None."""
    if opcode == CUSTOM_CALL:
        if OF_JAX.fullmatch(target):
            return None
        return Effect.PYTHON if calls_python(target) else Effect.OTHER
    heading = read_table(TABLE).get(opcode, "other")
    return None if heading == "computing" else HEADINGS[heading]
