"""The instructions of XLA modules, and what they do besides computing.

`hlo.txt` names those that are known; another one counts as having effects.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

from tffc.operations.effects import HEADINGS, Effect, read_table
from tffc.proto.encoding import Kind, Place, read_message, schema

MODULE = schema(computations=(3, Kind.MESSAGES))
COMPUTATION = schema(instructions=(2, Kind.MESSAGES))
INSTRUCTION = schema(opcode=(2, Kind.STRING), target=(28, Kind.STRING))

TABLE = pathlib.Path(__file__).with_suffix(".txt")
"""The instructions of XLA but `custom-call`, under headings as in the table of operations."""

CUSTOM_CALL = "custom-call"

OF_JAX = re.compile(
    r"ApproxTopK|SPMDFullToShardShape|SPMDShardToFullShape|Sharding|TopK|cpu_csr_sparse_dense_ffi|"
    r"lapack_[a-z0-9]+_ffi|tridiagonal_solve_perturbed_ffi"
)
"""The functions of JAX's own libraries that `custom-call` calls, and that only compute."""

PYTHON = re.compile(r"xla(_ffi)?(_partitioned)?_python_\w*callback")
"""The functions that call Python."""


def instructions(module: bytes) -> Iterator[tuple[str, str]]:
    """Yield the opcode of each instruction of a serialized HloModuleProto, and the function that a
    `custom-call` calls.

    Raises:
      WireError: the module is malformed.
    """
    whole = read_message(module, Place(0, len(module)), MODULE)
    for computation in whole.get("computations", ()):
        inside = read_message(module, computation, COMPUTATION)
        for instruction in inside.get("instructions", ()):
            found = read_message(module, instruction, INSTRUCTION)
            yield found.get("opcode", ""), found.get("target", "")


def effect_of(opcode: str, target: str) -> Effect | None:
    """Return what an instruction does besides computing; None for nothing."""
    if opcode == CUSTOM_CALL:
        if OF_JAX.fullmatch(target):
            return None
        return Effect.PYTHON if PYTHON.fullmatch(target) else Effect.OTHER
    heading = read_table(TABLE).get(opcode, "other")
    return None if heading == "computing" else HEADINGS[heading]
