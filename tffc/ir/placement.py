"""Placements: the sides at which the constituents of federated values are."""

from __future__ import annotations

from typing import Any, NoReturn


class Placement:
    """Where the constituents of a federated value are: its name, its wire name and whether all are
    equal unless said otherwise.

    `CLIENTS` and `SERVER` are all that programs have; placements are the same where their wire
    names are.
    """

    name: str
    uri: str
    default_all_equal: bool
    description: str

    def __init__(self, name: str, uri: str, default_all_equal: bool, description: str = "") -> None:
        self.__dict__.update(
            name=name, uri=uri, default_all_equal=default_all_equal, description=description
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name!r} of a placement cannot be set")

    def is_clients(self) -> bool:
        """Tell whether this is the placement at the clients."""
        return self == CLIENTS

    def is_server(self) -> bool:
        """Tell whether this is the placement at the server."""
        return self == SERVER

    def __eq__(self, other: object) -> bool:
        return self.uri == other.uri if isinstance(other, Placement) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.uri)

    def __reduce__(self) -> Any:
        """Keep the two of programs as they are when they are copied and pickled."""
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
