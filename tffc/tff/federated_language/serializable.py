"""Objects that are stored as bytes."""

from __future__ import annotations

import abc
from typing import Self


class Serializable(abc.ABC):
    """An object that can be made of the bytes that it gives."""

    @classmethod
    @abc.abstractmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the object that gave these bytes."""

    @abc.abstractmethod
    def to_bytes(self) -> bytes:
        """Return the object as bytes."""
