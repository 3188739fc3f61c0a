"""Python objects as types: what a user may write where a type is expected.

    np.int32, np.dtype("int32"), tf.int32, int          int32
    (np.int32, [2, None]), tf.TensorSpec([2, None])     int32[2,?]
    [T, U], (T, U), {"a": T}, namedtuples, attrs        structs that remember their container
    [("a", T), ("b", U)]                                a struct without a container
    tf.data.DatasetSpec(spec)                           a sequence

NumPy and TensorFlow are looked for among the modules that are loaded already: an object of theirs
cannot exist before they are.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tffc.errors import LanguageTypeError, LanguageValueError
from tffc.ir import types as t
from tffc.ir.dtypes import BY_LABEL, DType
from tffc.ir.trampoline import Task, run

PYTHON_TYPES: dict[type, DType] = {
    bool: DType.BOOL,
    int: DType.INT32,
    float: DType.FLOAT32,
    complex: DType.COMPLEX128,
    str: DType.STRING,
    bytes: DType.STRING,
}
"""The element types of Python's scalar classes, as for Python constants in a computation."""


def to_type(source: Any) -> t.Type:
    """The type that `source` stands for.

    Raises:
      LanguageTypeError: `source` is not one of the forms listed at the top of this module.
    """
    return run(_converted(source, set()))


def _converted(source: Any, around: set[int]) -> Task[t.Type]:
    """As `to_type`; `around` has the identities of the containers that `source` stands in."""
    if isinstance(source, t.Type):
        return source
    if _is_dtype_like(source):
        return t.TensorType(source)
    special = _tensorflow_spec(source)
    if special is not None:
        return special
    if isinstance(source, tuple) and len(source) == 2 and _is_dtype_like(source[0]):
        if _is_shape_like(source[1]):
            return t.TensorType(source[0], source[1])
    if not (isinstance(source, (list, tuple)) or _is_struct(source) or is_named_container(source)):
        raise LanguageTypeError(
            "E110",
            f"{source!r} is not a type, nor can it be read as one",
            help="give a NumPy or TensorFlow dtype, a (dtype, shape) pair, a TensorSpec, a tff "
            "type, or a list, tuple or mapping of these",
        )
    pairs = yield _elements(source, around)
    names, types = tuple(name for name, _ in pairs), tuple(type for _, type in pairs)
    container = None if _is_struct(source) or _lists_names(source) else type(source)
    return t.StructWithPythonType.with_container(names, types, container)


def _lists_names(source: Any) -> bool:
    """Whether a list or tuple has a (name, type) pair in it; then it is no container of its own."""
    if is_named_container(source) or _is_named_pair(source):
        return False
    return any(_is_named_pair(item) for item in source)


def to_dtype(source: Any) -> DType:
    """The element type that a NumPy dtype, TensorFlow dtype or Python scalar class stands for.

    Raises:
      LanguageTypeError: it is none of these, or one that the language does not have.
    """
    if isinstance(source, DType):
        return source
    if isinstance(source, type) and source in PYTHON_TYPES:
        return PYTHON_TYPES[source]
    name = _dtype_name(source)
    if name is None:
        raise LanguageTypeError(
            "E160",
            f"{source!r} is not an element type",
            help="give a NumPy or TensorFlow dtype, or a Python class such as int",
        )
    if name in ("bytes", "string"):
        name = "str"
    if name not in BY_LABEL:
        raise LanguageTypeError(
            "E111",
            f"tensors of {name} are not part of the language",
            notes=(f"its element types are {', '.join(BY_LABEL)}",),
            help="declare one of these element types, and convert to it in TensorFlow",
        )
    return BY_LABEL[name]


def to_shape(source: Any) -> t.Shape:
    """A shape from None (unknown rank), a sequence of sizes, or a TensorShape.

    Raises:
      LanguageTypeError: it is neither.
    """
    if source is None:
        return None
    if hasattr(source, "rank") and hasattr(source, "as_list"):
        return None if source.rank is None else tuple(source.as_list())
    if not _is_shape_like(source):
        raise LanguageTypeError(
            "E112", f"{source!r} is not a shape; expected a sequence of sizes or None"
        )
    return tuple(None if size is None else int(size) for size in source)


def to_elements(source: Any) -> list[tuple[str | None, t.Type]]:
    """The (name or None, type) pairs of a struct type written in Python.

    Raises:
      LanguageTypeError: an element is neither a type nor a (name, type) pair.
      LanguageValueError: a container contains itself.
    """
    return run(_elements(source, set()))


def _elements(source: Any, around: set[int]) -> Task[list[tuple[str | None, t.Type]]]:
    if id(source) in around:
        raise LanguageValueError(
            "E154", f"a {type(source).__name__} that contains itself is no type"
        )
    around.add(id(source))
    pairs: list[tuple[str | None, t.Type]] = []
    for name, element in _named_elements(source):
        pairs.append((name, (yield _converted(element, around))))
    around.discard(id(source))
    return pairs


def _named_elements(source: Any) -> list[tuple[str | None, Any]]:
    """The (name or None, what stands for the type) pairs of a struct type written in Python."""
    if is_named_container(source):
        return list(named_items(source))
    if _is_struct(source):
        return list(source.items())
    if _is_pair(source):
        return [(source[0], source[1])]
    if isinstance(source, str) or not hasattr(source, "__iter__"):
        raise LanguageTypeError(
            "E113",
            f"{source!r} is not a collection of types and (name, type) pairs",
            help='write a list of types, or of names and types, such as [("a", np.int32)]',
        )
    return [(item[0], item[1]) if _is_pair(item) else (None, item) for item in source]


def named_items(source: Any) -> list[tuple[str, Any]]:
    """The (name, value) pairs of a mapping, a namedtuple or an attrs instance.

    Raises:
      LanguageTypeError: a mapping's key is not a string.
    """
    if isinstance(source, Mapping):
        for key in source:
            if not isinstance(key, str):
                raise LanguageTypeError(
                    "E114",
                    f"the key {key!r} of a mapping is not a string",
                    help="write the names as strings, or give a list if there are no names",
                )
        return list(source.items())
    if _is_namedtuple(source):
        return list(zip(source._fields, source, strict=True))
    return [(field.name, getattr(source, field.name)) for field in type(source).__attrs_attrs__]


def is_named_container(source: Any) -> bool:
    """Whether `named_items` reads this Python object."""
    return isinstance(source, Mapping) or _is_namedtuple(source) or _is_attrs(source)


def _is_namedtuple(source: Any) -> bool:
    return isinstance(source, tuple) and hasattr(type(source), "_fields")


def _is_attrs(source: Any) -> bool:
    return not isinstance(source, type) and hasattr(type(source), "__attrs_attrs__")


def _is_struct(source: Any) -> bool:
    from tffc.ir.struct import Struct

    return isinstance(source, Struct)


def _is_named_pair(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and len(source) == 2 and isinstance(source[0], str)


def _is_pair(source: Any) -> bool:
    """Whether a list or tuple is a (name, type) pair, or a tuple one without a name."""
    if isinstance(source, tuple) and len(source) == 2 and source[0] is None:
        return True
    return _is_named_pair(source)


def _is_shape_like(source: Any) -> bool:
    if source is None or (hasattr(source, "rank") and hasattr(source, "as_list")):
        return True
    if isinstance(source, str):
        return source == ""
    if not isinstance(source, (list, tuple, range)):
        return False
    return all(size is None or isinstance(size, int) for size in source)


def _is_dtype_like(source: Any) -> bool:
    if isinstance(source, DType) or (isinstance(source, type) and source in PYTHON_TYPES):
        return True
    return _dtype_name(source) is not None


def _dtype_name(source: Any) -> str | None:
    """The name of a NumPy or TensorFlow dtype, or None for anything else."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(source, numpy.dtype):
            return _numpy_name(numpy, source)
        if isinstance(source, type) and (
            issubclass(source, numpy.generic) or source.__name__ == "bfloat16"
        ):
            try:
                return _numpy_name(numpy, numpy.dtype(source))
            except TypeError:
                return source.__name__
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and isinstance(source, getattr(tensorflow, "DType", ())):
        return source.base_dtype.name
    return None


def _numpy_name(numpy: Any, dtype: Any) -> str:
    return "str" if dtype.kind in "US" else str(numpy.dtype(dtype).name)


def _tensorflow_spec(source: Any) -> t.Type | None:
    """The type of a TensorFlow type specification, or None for anything else."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not hasattr(tensorflow, "TypeSpec"):
        return None
    if isinstance(source, tensorflow.TensorSpec):
        return t.TensorType(source.dtype, source.shape)
    if isinstance(source, tensorflow.data.DatasetSpec):
        return t.SequenceType(to_type(source.element_spec))
    if isinstance(source, tensorflow.TypeSpec):
        raise LanguageTypeError(
            "E115",
            f"a {type(source).__name__} is not a type of the language",
            help="give its component tensors as a struct",
        )
    return None
