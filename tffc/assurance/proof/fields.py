"""What of a message is compared: everything, except the fields in one table.

`IGNORED` has the fields and attributes that are not compared, each with the reason why it cannot
change what is computed, or with what is checked instead.  `EVALUATED` has the fields that are not
compared as bytes because their content becomes terms.  Every other field is compared as bytes, also
a field that tffc's descriptions of messages do not have.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

Message: TypeAlias = Any
"""A message of a graph.  Its class is made from descriptors when tffc is imported, so type checkers
do not know the fields."""

GRAPH = "tffc.graph."

EVALUATED: dict[str, tuple[str, ...]] = {
    "GraphDef": ("node", "library", "versions"),
    "VersionDef": ("producer", "min_consumer", "bad_consumers"),
    "FunctionDefLibrary": ("function", "gradient", "registered_gradients"),
    "GradientDef": ("function_name", "gradient_func"),
    "RegisteredGradient": ("gradient_func", "registered_op_type"),
    "NodeDef": ("name", "op", "input", "device", "attr"),
    "AttrValue": ("func", "tensor", "list"),
    "AttrValue.ListValue": ("func",),
    "NameAttrList": ("name", "attr"),
    "TensorProto": (),
    "FunctionDef": ("signature", "node_def", "ret", "attr", "control_ret", "arg_attr"),
    "FunctionDef.ArgAttrs": ("attr",),
    "OpDef": ("name", "input_arg", "output_arg", "control_output"),
    "OpDef.ArgDef": ("name", "type"),
}
"""For each message of a graph, the fields whose content becomes terms or is checked by rules."""

IGNORED: dict[str, str] = {
    "NodeDef.name": "edges and state refer to nodes by name; what they refer to is compared",
    "NodeDef.attr._class": "nodes beside which a node is placed; they must be on its own device",
    "NodeDef.device=/device:CPU:0": "of an operation on datasets, which no other device has",
    "NodeDef.attr.shared_name": "which nodes share a state is compared, not how it is called",
    "NodeDef.attr.var_name": "which nodes share a state is compared, not how it is called",
    "NodeDef.attr.container": "which nodes share a state is compared, not how it is called",
    "NodeDef.attr.use_node_name_sharing": "of a state that has a name or one user",
    "OpDef.name": "calls refer to functions by name; what they refer to is compared",
    "OpDef.ArgDef.name": "edges refer to arguments by name; what they refer to is compared",
    "OpDef.control_output": "the keys of `control_ret`, whose nodes are compared",
    "VersionDef.producer": "TensorFlow loads and runs graphs of all versions from 100 on alike",
    "VersionDef.min_consumer": "at most 1575, the version of TensorFlow 2.14, which is old enough",
    "VersionDef.bad_consumers": "below 1575, the version of TensorFlow 2.14, which is old enough",
    "RegisteredGradient": "of the program: only Python reads it, when it builds gradients",
    "FunctionDef.attr.api_implements": "of the program: offers other functions instead",
    "FunctionDef.attr.api_preferred_device": "of the program: as `api_implements`",
    "FunctionDef.attr.backward_function_name": "of the program: as `api_implements`",
    "FunctionDef.attr.forward_function_name": "of the program: as `api_implements`",
    "TensorProto": "constants are compared by their elements' bytes if no field is superfluous",
    "TensorFlow.cache_key": "of the program: TensorFlow Federated may keep graphs by it",
}
"""The fields, and after `attr.` the attributes, that do not enter terms, and why not."""

ALTERNATIVES = (
    "api_implements",
    "api_preferred_device",
    "backward_function_name",
    "forward_function_name",
)
"""Attributes of the program's functions that offer other functions in their place.  Those of a form
are compared."""

PLACEMENT = "_class"


def remainder(message: Message, *more: str) -> bytes:
    """Return the fields of a message that no rule evaluates as bytes, unknown ones included; `more`
    are evaluated by the caller."""
    rest = type(message)()
    rest.CopyFrom(message)
    name = message.DESCRIPTOR.full_name.removeprefix(GRAPH)
    for field in (*EVALUATED[name], *more):
        rest.ClearField(field)
    return encoded(rest)


def encoded(message: Message) -> bytes:
    """Return the bytes of a message, the same for the same content."""
    return message.SerializeToString(deterministic=True)


def is_text(value: Message) -> bool:
    """Tell whether an attribute is a text and nothing else."""
    return encoded(value) == encoded(type(value)(s=value.s))


def is_flag(value: Message) -> bool:
    """Tell whether an attribute is a boolean and nothing else."""
    return encoded(value) == encoded(type(value)(b=value.b))


def is_type(value: Message) -> bool:
    """Tell whether an attribute is an element type and nothing else."""
    return encoded(value) == encoded(type(value)(type=value.type))


def is_shape(value: Message) -> bool:
    """Tell whether an attribute is a shape without names, and nothing else."""
    alone = type(value)()
    alone.shape.SetInParent()
    alone.shape.unknown_rank = value.shape.unknown_rank
    for dim in value.shape.dim:
        alone.shape.dim.add().size = dim.size
    return encoded(alone) == encoded(value)


def unless_empty(name: str, content: bytes) -> tuple[tuple[str, Hashable], ...]:
    """Return a part of a label for content that most messages do not have."""
    return ((name, content),) if content else ()
