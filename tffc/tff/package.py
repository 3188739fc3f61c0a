"""A package under whose name tffc answers: what it replaces, and which files it runs unchanged."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class Package:
    """The modules of a package.

    mirrored   the module whose names the package itself has
    libraries  packages in it whose files run unchanged
    own_files  further modules whose files run unchanged
    mirrors    modules that have the public names of one module of tffc
    stand_ins  modules that have the names of modules of tffc
    shared     names in modules of its files that are tffc's, and the modules of tffc that have them
    """

    name: str
    mirrored: str
    libraries: frozenset[str]
    own_files: frozenset[str]
    mirrors: Mapping[str, str]
    stand_ins: Mapping[str, Sequence[str]]
    shared: Mapping[str, Mapping[str, str]]

    def packages(self) -> frozenset[str]:
        """Return the packages that contain the modules of the tables."""
        return frozenset(self._parents())

    def _parents(self) -> Iterator[str]:
        for name in (*self.mirrors, *self.stand_ins, *self.own_files, *self.libraries):
            parts = name.split(".")
            for count in range(1, len(parts)):
                yield ".".join(parts[:count])

    def library_of(self, name: str) -> str | None:
        """Return the library that a module belongs to, or None."""
        parts = name.split(".")
        parents = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
        return next((parent for parent in parents if parent in self.libraries), None)

    def holds(self, name: str) -> bool:
        """Return whether a module is the package or in it."""
        return name == self.name or name.startswith(f"{self.name}.")
