"""What a discount of buffered rounds is, and which aggregations can be discounted."""

from __future__ import annotations

from tffc.backends.forms.form import struct
from tffc.language.dtypes import DType
from tffc.language.nodes import Binding, Block, Call, Compiled, Intrinsic, Node
from tffc.language.traverse import walk
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import FunctionType, TensorType, Type
from tffc.support.errors import FormError

WEIGHTED = "federated_weighted_mean"
AGGREGATE = "federated_aggregate"
SECURE = "federated_secure_"
SELECT = "federated_secure_select"

DISCOUNT = FunctionType(TensorType(DType.INT32), TensorType(DType.FLOAT32))
"""The type of a discount: from an age to a weight."""


def check_discount(section: Compiled) -> None:
    """Check the type of a discount.

    Raises:
      FormError: it is not from an age to a weight.
    """
    if section.type != DISCOUNT:
        raise FormError(
            "E534",
            f"the discount of a buffered round is of type `{section.type}`, expected `{DISCOUNT}`",
            help="let it take the age as an int32, and give the weight as a float32",
        )


def check_discountable(program: Node) -> None:
    """Check that the aggregations of a program can be discounted by age.

    Raises:
      FormError: one cannot.
    """
    for node in walk(program):
        for binding in node.locals if isinstance(node, Block) else ():
            if isinstance(binding.value, Call) and isinstance(binding.value.function, Intrinsic):
                _check_operator(binding.value.function, binding)
        if isinstance(node, Intrinsic):
            _check_operator(node, None)


def _check_operator(operator: Intrinsic, binding: Binding | None) -> None:
    uri = operator.uri
    span = None if binding is None else binding.span
    if uri == AGGREGATE:
        raise FormError(
            "E534",
            "a buffered round discounts contributions by age, and what federated_aggregate "
            "accumulates cannot be",
            help="aggregate with federated_sum or federated_mean, or leave out @tffc.buffered",
            span=span,
        )
    if uri.startswith(SECURE) and uri != SELECT:
        raise FormError(
            "E534",
            f"a buffered round merges contributions of single clients, which {uri} would not hide",
            notes=("the server would see each client's value, as a sum of one client",),
            help="leave out @tffc.buffered, so that clients are added before the server sees them, "
            "or aggregate openly with federated_sum",
            span=span,
        )
    if uri == WEIGHTED and isinstance(operator.type, FunctionType):
        _, weight = struct(operator.type.parameter).types
        if not all(map(is_discounted, leaves(local_type(weight)))):
            raise FormError(
                "E534",
                "a buffered round discounts the weights of means, and these are of type "
                f"`{weight}`",
                help="give weights as floats, such as with tf.cast(count, tf.float32)",
                span=span,
            )


def is_discounted(type: Type) -> bool:
    """Return whether sums of tensors of a type are discounted: those of floating-point numbers."""
    return isinstance(type, TensorType) and (
        type.element_type.is_floating or type.element_type in (DType.COMPLEX64, DType.COMPLEX128)
    )
