"""What is used of objects that other packages make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class EagerDataset(Protocol):
    """A `tf.data.Dataset`, which TensorFlow makes."""

    element_spec: object

    def cardinality(self) -> object:
        """Return the number of its elements, negative if it is infinite or not known."""
        ...

    def as_numpy_iterator(self) -> Iterator[object]:
        """Return its elements."""
        ...


class FunctionValue(Protocol):
    """A function of the language, in Python."""

    def to_building_block(self) -> object:
        """Return the function in the language."""
        ...
