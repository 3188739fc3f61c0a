"""What a function of a library has besides its nodes and results, as parts of labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from tffc.assurance.proof.fields import ALTERNATIVES, Message, encoded, remainder
from tffc.graphs.operations import op_table

SHAPES = "_output_shapes"
"""The attribute of an argument that promises its shape."""


def function_content(function: Message, *, is_of_program: bool) -> tuple[Hashable, ...]:
    """Return everything about a function but names, nodes, and what it returns.

    The program's functions may offer other functions in their place.  Nobody takes these where only
    the functions that are called are kept, as in a form.
    """
    signature = function.signature
    left_out = ALTERNATIVES if is_of_program else ()
    attributes = function.attr
    return (
        remainder(function),
        remainder(signature),
        *map(remainder, (*signature.input_arg, *signature.output_arg)),
        *((name, encoded(attributes[name])) for name in sorted(attributes) if name not in left_out),
        "arguments",
        *_arguments(function),
    )


def _arguments(function: Message) -> tuple[Hashable, ...]:
    """Return the attributes of the arguments of a function."""
    return tuple(
        (index, remainder(argument), *_encoded_attributes(argument.attr))
        for index, argument in sorted(function.arg_attr.items())
    )


def _encoded_attributes(attributes: Mapping[str, Message]) -> list[tuple[str, bytes]]:
    return [(name, encoded(attributes[name])) for name in sorted(attributes)]


def _shapes_of(function: Message, index: int) -> Message | None:
    """Return the attribute with the shape that a function promises for an argument, or None."""
    if index not in function.arg_attr:
        return None
    attributes: Mapping[str, Message] = function.arg_attr[index].attr
    return attributes.get(SHAPES)


def element_kinds(function: Message, count: int) -> tuple[tuple[int, bytes], ...]:
    """Return the types of the first arguments of a function, and the shapes that it promises."""
    kinds: list[tuple[int, bytes]] = []
    for index in range(count):
        shapes = _shapes_of(function, index)
        attribute = b"" if shapes is None else encoded(shapes)
        kinds.append((function.signature.input_arg[index].type, attribute))
    return tuple(kinds)


def promised_shapes(function: Message, first: int) -> list[Message | None]:
    """Return the shape that a function promises for each argument from the first one on, or None
    where it promises none."""
    promised: list[Message | None] = []
    for index in range(first, len(function.signature.input_arg)):
        shapes = _shapes_of(function, index)
        if shapes is not None and len(shapes.list.shape) == 1:
            promised.append(shapes.list.shape[0])
        else:
            promised.append(None)
    return promised


def has_only_shapes(function: Message, ops: Sequence[str]) -> bool:
    """Tell whether a function has nothing but the shapes of its arguments, as the functions that
    tffc itself makes; `ops` are the operations of its nodes."""
    signature = function.signature
    promised = len(function.arg_attr) == len(signature.input_arg)
    is_stateful = signature.is_stateful
    rest = type(signature)()
    rest.CopyFrom(signature)
    rest.ClearField("is_stateful")
    return (
        promised
        and not remainder(function)
        and not remainder(rest)
        and not any(map(remainder, (*signature.input_arg, *signature.output_arg)))
        and not function.attr
        and not function.control_ret
        and is_stateful == any(map(op_table.is_stateful, ops))
        and all(
            not remainder(argument)
            and list(argument.attr) == [SHAPES]
            and _is_shape(argument.attr[SHAPES])
            for argument in function.arg_attr.values()
        )
    )


def _is_shape(value: Message) -> bool:
    """Tell whether an attribute is a list of one shape and nothing else."""
    alone = type(value)()
    alone.list.shape.extend(value.list.shape[:1])
    return len(value.list.shape) == 1 and encoded(alone) == encoded(value)


def is_general(promised: Message, shape: Sequence[int | None] | None) -> bool:
    """Tell whether a TensorShapeProto promises nothing that a shape does not have."""
    if promised.unknown_rank:
        return not promised.dim
    sizes = [dim.size for dim in promised.dim]
    if shape is None or len(sizes) != len(shape):
        return False
    return all(size in (-1, known) for size, known in zip(sizes, shape, strict=True))
