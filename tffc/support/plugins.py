"""What installed packages add to tffc: entry points of a group, each an object of one class.

A package offers an engine, for example, in its `pyproject.toml`:

    [project.entry-points."tffc.engines"]
    my-engine = "my_package:MY_ENGINE"

Looking for packages takes as long as compiling a small program, so it is done only for a name that
tffc does not have itself, and for lists of all names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from tffc.support.errors import PluginError, TffcError
from tffc.support.near import nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    """What has the name that users choose it by."""

    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=Named)


class PluginGroup(NamedTuple, Generic[K]):
    """A group of entry points, as messages call its members, and the class of these."""

    name: str
    noun: str
    kind: type[K]
    error: type[TffcError] = PluginError


class Offer(NamedTuple, Generic[K]):
    """What a package offers under a name."""

    package: str
    member: K


def offers(group: PluginGroup[K]) -> Iterator[Offer[K]]:
    """Yield what the installed packages offer to a group, in the order of their names.

    Raises:
      TffcError: something cannot be loaded, or is not what it should be; of the group's class.
    """
    import importlib.metadata  # takes longer to import than a small program to compile

    points = importlib.metadata.entry_points(group=group.name)
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        package = "a package" if point.dist is None else point.dist.name
        yield Offer(package, _load(point, package, group))


def _load(point: EntryPoint, package: str, group: PluginGroup[K]) -> K:
    try:
        member = point.load()
    except Exception as error:
        raise group.error(
            "E374",
            f"{package} offers the {group.noun} {point.name!r}, but {point.value} cannot be loaded",
            notes=(f"{type(error).__name__}: {error}",),
        ) from error
    if not isinstance(member, group.kind) or member.name != point.name:
        raise group.error(
            "E374",
            f"{package} offers the {group.noun} {point.name!r}, but {point.value} is not "
            f"a{'n' if group.kind.__name__[0] in 'AEIOU' else ''} {group.kind.__name__} of that "
            "name",
            help=f"make it one: {group.kind.__name__}({point.name!r}, function)",
        )
    return member


def taken(group: PluginGroup[K], offer: Offer[K], by: str) -> TffcError:
    """Return the error for a package that offers what another one has, which is named `by`."""
    return group.error(
        "E373",
        f"{offer.package} offers a {group.noun} {offer.member.name!r}, but so does {by}",
    )


class PluginTable(Mapping[str, K], Generic[K]):
    """The members of a group by name: tffc's own first, then those of installed packages."""

    def __init__(self, group: PluginGroup[K], own: Iterable[K]) -> None:
        self.own = {member.name: member for member in own}
        self._group = group
        self._packages: dict[str, str] | None = None
        self._members = dict(self.own)

    def __getitem__(self, name: str) -> K:
        return self.own[name] if name in self.own else self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def find(self, name: str, code: str) -> K:
        """Return the member of a name.

        Raises:
          TffcError: there is none; of the group's class, with this code.
        """
        member = self.get(name)
        if member is None:
            raise self._group.error(
                code, f"there is no {self._group.noun} {name!r}", help=nearest(str(name), self)
            )
        return member

    def _all(self) -> dict[str, K]:
        if self._packages is None:
            packages = dict.fromkeys(self.own, "tffc")
            for offer in offers(self._group):
                name = offer.member.name
                if name in packages:
                    raise taken(self._group, offer, packages[name])
                packages[name] = offer.package
                self._members[name] = offer.member
            self._packages = packages
        return self._members
