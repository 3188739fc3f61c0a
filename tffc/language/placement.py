"""Placements: the sides at which the constituents of federated values are."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, repr=False)
class Placement:
    """The place of the constituents of a federated value.

    `uri` is its name on the wire, by which placements are compared.  `default_all_equal` tells
    whether all constituents are equal if a type does not say.  Programs have only `CLIENTS` and
    `SERVER`.
    """

    name: str = dataclasses.field(compare=False)
    uri: str
    default_all_equal: bool = dataclasses.field(compare=False)
    description: str = dataclasses.field(default="", compare=False)

    def is_clients(self) -> bool:
        """Tell whether this is the placement at the clients."""
        return self == CLIENTS

    def is_server(self) -> bool:
        """Tell whether this is the placement at the server."""
        return self == SERVER

    def __reduce__(self) -> Any:
        """Copy and pickle `CLIENTS` and `SERVER` as themselves."""
        if self in PLACEMENTS:
            return self.name
        return (Placement, (self.name, self.uri, self.default_all_equal, self.description))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"PlacementLiteral({self.uri!r})"


CLIENTS = Placement("CLIENTS", "clients", False, "every client")
SERVER = Placement("SERVER", "server", True, "the one server")
PLACEMENTS = (CLIENTS, SERVER)
