"""The table of TensorFlow's operations, with the facts that linking needs.

`op_table.txt` has a row for each operation that TensorFlow 2.21 registers:

    name <tab> flags <tab> outputs <tab> numbers of inputs, each list separated by blanks

    S                        keeps state, or has effects
    F                        has attributes that name functions
    N                        has state that is looked up by name
    R                        has outputs that are references to state
    name:TYPE                one output tensor
    name:TYPE*COUNT          as many as the attribute COUNT says
    name@TYPES               one of each type in the attribute TYPES

    3                        three input tensors
    *COUNT or *COUNT=1       as many as the attribute COUNT says, which may be absent: then 1
    @TYPES                   one of each type in the attribute TYPES

where TYPE is the number of an element type or the attribute that gives it.  The script
`tests/graphs/operations/write_op_table.py` generates the table.
"""

from __future__ import annotations

import functools
import pathlib
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tffc.graphs.node import Attributes, NodeView


TABLE = pathlib.Path(__file__).with_suffix(".txt")
OUTPUT = re.compile(r"(?P<name>\w+)(:(?P<type>\w+)(\*(?P<repeats>\w+))?|@(?P<types>\w+))")


class OperationOutput(NamedTuple):
    """An output of an operation, which may consist of several tensors; see the module's
    docstring."""

    name: str
    type: str
    repeats: str
    types: str

    def dtypes(self, attributes: Attributes) -> list[int | None]:
        """Return the types of the output's tensors in a node with these attributes; None for each
        that the attributes do not tell."""
        if self.types:
            return list(attributes[self.types].list.type) if self.types in attributes else []
        dtype: int | None = None
        if self.type.isdigit():
            dtype = int(self.type)
        elif self.type in attributes:
            dtype = attributes[self.type].type
        if not self.repeats:
            return [dtype]
        return [dtype] * (attributes[self.repeats].i if self.repeats in attributes else 0)

    def count(self, attributes: Attributes) -> int:
        """Return the number of the output's tensors in a node with these attributes."""
        if self.types:
            return len(attributes[self.types].list.type) if self.types in attributes else 0
        if not self.repeats:
            return 1
        return max(attributes[self.repeats].i, 0) if self.repeats in attributes else 0


class Operation(NamedTuple):
    """One row of the table; `inputs` are the texts about them."""

    name: str
    is_stateful: bool
    names_functions: bool
    has_named_state: bool
    has_references: bool
    outputs: tuple[OperationOutput, ...]
    inputs: tuple[str, ...]

    def input_count(self, attributes: Attributes) -> int | None:
        """Return the number of input tensors of a node with these attributes; None if the caller of
        the function that the node is in decides it."""
        count = 0
        for text in self.inputs:
            if text.isdigit():
                count += int(text)
                continue
            name, _, default = text[1:].partition("=")
            if name in attributes and attributes[name].placeholder:
                return None
            if text.startswith("@"):
                count += len(attributes[name].list.type) if name in attributes else 0
            else:
                count += max(attributes[name].i, 0) if name in attributes else int(default or 0)
        return count

    def output_count(self, attributes: Attributes) -> int | None:
        """Return the number of output tensors of a node with these attributes; None as for
        inputs."""
        count = 0
        for output in self.outputs:
            name = output.repeats or output.types
            if name and name in attributes and attributes[name].placeholder:
                return None
            count += output.count(attributes) if name else 1
        return count

    def ports(self, attributes: Attributes) -> list[tuple[str, int, int | None]]:
        """Return the output tensors of a node with these attributes: for each its output, its index
        there, and its type if known."""
        return [
            (output.name, index, dtype)
            for output in self.outputs
            for index, dtype in enumerate(output.dtypes(attributes))
        ]


@functools.lru_cache(maxsize=1)
def _rows() -> dict[str, str]:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {line.partition("\t")[0]: line for line in lines}


@functools.lru_cache(maxsize=2048)
def find(name: str) -> Operation | None:
    """Return the operation of this name, or None if TensorFlow 2.21 has none."""
    row = _rows().get(name)
    if row is None:
        return None
    _, flags, outputs, inputs = row.split("\t")
    return Operation(
        name,
        is_stateful="S" in flags,
        names_functions="F" in flags,
        has_named_state="N" in flags,
        has_references="R" in flags,
        outputs=tuple(map(_output, outputs.split())),
        inputs=tuple(inputs.split()),
    )


def function_edges(node: NodeView) -> list[str]:
    """Return the edges from a node of a known operation in the notation of function bodies,
    `node:output:index`, in the order in which graphs number output tensors."""
    operation = find(node.op)
    assert operation is not None
    return [f"{node.name}:{output}:{index}" for output, index, _ in operation.ports(node.attr)]


def is_stateful(op: str) -> bool:
    """Tell whether an operation keeps state or has effects; an unknown one may."""
    operation = find(op)
    return operation is None or operation.is_stateful


def names_functions(op: str) -> bool:
    """Tell whether an operation names functions; an unknown one may."""
    operation = find(op)
    return operation is None or operation.names_functions


def _output(text: str) -> OperationOutput:
    match = OUTPUT.fullmatch(text)
    assert match is not None
    return OperationOutput(**match.groupdict(""))
