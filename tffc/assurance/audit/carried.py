"""What tensors may hold besides numbers, by the types of their nodes: handles and variants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tffc.graphs.body import outputs_of
from tffc.graphs.operations import op_table

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


STRING, RESOURCE, VARIANT, FIRST_REFERENCE = 7, 20, 21, 101
"""TensorFlow's numbers for the types of texts, handles and variants, and for the first type of
references to variables."""


def may_carry(node: NodeView, plain_variants: bool = False) -> bool:
    """Tell whether an output of a node may be, or may hold, a handle of state.

    Numbers are none.  A text may be one, and so may a variant unless `plain_variants` is true.
    """
    operation = op_table.find(node.op)
    if operation is None or operation.has_references:
        return True
    for output in operation.outputs:
        kinds = list(node.attr[output.types].list.type) if output.types else []
        if output.type:
            is_known = output.type.isdigit() or output.type in node.attr
            if not is_known:
                return True
            kinds = [int(output.type) if output.type.isdigit() else node.attr[output.type].type]
        for kind in kinds:
            if kind in (0, RESOURCE) or kind >= FIRST_REFERENCE:
                return True
            if kind in (STRING, VARIANT) and not plain_variants:
                return True
    return False


def has_variants(node: NodeView) -> bool:
    """Tell whether a node has outputs that are variants, or of a type that it does not tell."""
    outputs = outputs_of(node, {})
    return outputs is None or any(kind in (None, 0, VARIANT) for *_, kind in outputs)
