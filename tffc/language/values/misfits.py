"""Texts about Python objects that are not of a type: what they are, and what to do."""

from __future__ import annotations

from tffc.language.containers.struct import Struct
from tffc.language.dtypes import DType
from tffc.language.shapes import shape_is_assignable
from tffc.language.types import TensorType
from tffc.support.guards import is_array, is_dict, is_listing, is_numpy, is_scalar

DATASETS_OF_CLIENTS = "[data.create_tf_dataset_for_client(name) for name in data.client_ids[:10]]"
"""The datasets of some clients of a `ClientData` of `tff.simulation.datasets`."""


def clients_help(source: object) -> str:
    """Return the help for an object that is not a list of clients' values."""
    help = "give a list with one value for each client"
    if hasattr(source, "create_tf_dataset_for_client"):
        return f"{help}: {DATASETS_OF_CLIENTS}"
    return help


def listing_help(source: object) -> str:
    """Return the help for an iterable that is not accepted as a sequence."""
    if hasattr(source, "create_tf_dataset_for_client"):
        return "give the dataset of a client: data.create_tf_dataset_for_client(client_id)"
    if is_array(source) and source.ndim:
        return "a sequence takes its elements one by one: give list(x) in place of the array x"
    return "give a list of elements, or a tf.data.Dataset"


def describe(source: object) -> str:
    """Describe a Python object for an error."""
    if is_numpy(source):
        shape = f" array of shape {list(source.shape)}" if source.shape else " scalar"
        return f"a NumPy {source.dtype}{shape}"
    if source is None or isinstance(source, (bool, int, float, complex, str, bytes)):
        try:
            text = repr(source)
        except ValueError:
            return "an integer of thousands of digits"
        return f"{text[:40]}..." if len(text) > 43 else text
    name = type(source).__name__
    if is_listing(source) or is_dict(source) or isinstance(source, Struct):
        return f"{'an' if name[0] in 'AEIOU' else 'a'} {name} of {len(source)} elements"
    return f"an object of class {name!r}"


def number_help(source: object, type: TensorType) -> str | None:
    """Return the help for a number that has to be converted to be a tensor of the type."""
    if not isinstance(source, (int, float, complex)) and not is_scalar(source):
        return None
    if (
        type.shape != ()
        or not type.element_type.is_numeric
        or _is_out_of_range(source, type.element_type)
    ):
        return None
    package = "ml_dtypes" if type.element_type is DType.BFLOAT16 else "np"
    return f"convert it first, for example {package}.{type.element_type}(...)"


def array_help(source: object, type: TensorType, in_sequence: bool) -> str | None:
    """Return the help for an array that becomes a tensor of the type if it is batched or cast."""
    if not is_array(source) or type.shape is None:
        return None
    help: list[str] = []
    first, *rest = type.shape or (0,)
    if in_sequence and first is None and shape_is_assignable(tuple(rest), source.shape):
        help.append("the elements are batches of examples: batch the dataset, dataset.batch(20)")
    elif not shape_is_assignable(type.shape, source.shape):
        return None
    kinds = {source.dtype.kind, type.element_type.dtype.kind}
    if source.dtype != type.element_type.dtype and (kinds <= set("iu") or kinds == {"f"}):
        name = type.element_type
        cast = f"x.astype(np.{name})"
        help.append(f"cast it: {f'tf.cast(x, tf.{name}) in dataset.map, or ' * in_sequence}{cast}")
    return "; ".join(help) or None


def _is_out_of_range(source: object, dtype: DType) -> bool:
    """Return whether a number is of the kind of `dtype` but out of its range."""
    if isinstance(source, bool) or is_scalar(source) or dtype is DType.BFLOAT16:
        return False
    kinds = {int: dtype.is_integer, float: dtype.is_floating}
    return any(isinstance(source, kind) and fits for kind, fits in kinds.items())
