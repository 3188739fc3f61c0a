"""The instructions of XLA modules, and their effects besides computing.

`hlo.txt` lists the known ones; others count as having effects.
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
"""The instructions of XLA except `custom-call`, under headings like those of `effects.txt`."""

CUSTOM_CALL = "custom-call"

OF_JAX = re.compile(
    r"ApproxTopK|SPMDFullToShardShape|SPMDShardToFullShape|Sharding|TopK|cpu_csr_sparse_dense_ffi|"
    r"lapack_[a-z0-9]+_ffi|tridiagonal_solve_perturbed_ffi"
)
"""Matches the targets of `custom-call` in JAX's own libraries that only compute."""

PYTHON = re.compile(r"xla(_ffi)?(_partitioned)?_python_\w*callback")
"""Matches the targets that call Python."""


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
            found = read_message(module, instruction, INSTRUCTION)
            yield found.get("opcode", ""), found.get("target", "")


def effect_of(opcode: str, target: str) -> Effect | None:
    """Return the effect that an instruction has besides computing, or None."""
    if opcode == CUSTOM_CALL:
        if OF_JAX.fullmatch(target):
            return None
        return Effect.PYTHON if PYTHON.fullmatch(target) else Effect.OTHER
    heading = read_table(TABLE).get(opcode, "other")
    return None if heading == "computing" else HEADINGS[heading]
