"""The states of clients between rounds, for programs whose clients keep one.

A client has the state after the last round that it took part in.  Before its first round it has
zeros: the number 0, False, the empty text, and no element where a length is not fixed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from tffc.language.dtypes import DType
from tffc.language.type_parts import leaves
from tffc.language.types import TensorType, Type
from tffc.language.values.concrete import unflatten
from tffc.runtime.data.source import ClientSource


class HeldState(Protocol):
    """The state of a client, wherever it is."""

    def read(self) -> Any:
        """Return the state.

        Raises:
          DataError: it cannot be read.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class StateInMemory:
    """A state in memory."""

    value: Any

    def read(self) -> Any:
        """See `HeldState`."""
        return self.value


Keep = Callable[[int, str, Any], HeldState]
"""Keeps the state after a round of a client, by its name, and returns where it is."""


def keep_in_memory(number: int, client: str, state: Any) -> HeldState:
    """Keep a state in memory."""
    return StateInMemory(state)


@dataclasses.dataclass(frozen=True, slots=True)
class ClientStates:
    """The states, all of a `type`, of the clients that have `held` one; new ones are kept by
    `keep`.  It is not changed by a round, which gives another one."""

    type: Type
    held: Mapping[str, HeldState] = dataclasses.field(default_factory=dict[str, HeldState])
    keep: Keep = keep_in_memory

    def of(self, client: str) -> Any:
        """Return the state of a client.

        Raises:
          DataError: it cannot be read.
        """
        held = self.held.get(client)
        return first_client_state(self.type) if held is None else held.read()

    def after(self, held: Mapping[str, HeldState]) -> ClientStates:
        """Return the states after a round that has changed some of them."""
        return dataclasses.replace(self, held={**self.held, **held})

    def in_memory(self, clients: Iterable[str]) -> ClientStates:
        """Return the states of some clients, in memory."""
        read = {client: StateInMemory(self.of(client)) for client in clients}
        return ClientStates(self.type, read)


def first_client_state(type: Type) -> Any:
    """Return the state of a client before its first round, for a type of tensors."""
    return unflatten((_zeros(leaf) for leaf in leaves(type)), type)


def _zeros(leaf: Type) -> Any:
    assert isinstance(leaf, TensorType), "the state of a client consists of tensors"
    shape = [size or 0 for size in leaf.shape or ()]
    if leaf.element_type is DType.STRING:
        return np.full(shape, b"", object)[()]
    return np.zeros(shape, leaf.element_type.dtype)[()]


class SourceWithStates:
    """The clients of a round, each with a pair: its data and its state.

    It can be pickled if the source can; the states of the round's clients go with it.
    """

    def __init__(
        self, source: ClientSource, states: ClientStates, clients: tuple[str, ...]
    ) -> None:
        self.clients = clients
        self._source = source
        self._states = states

    def __reduce__(self) -> Any:
        return SourceWithStates, (self._source, self._states.in_memory(self.clients), self.clients)

    def read(self, client: str) -> Any:
        """See `ClientSource`."""
        return self._source.read(client), self._states.of(client)
