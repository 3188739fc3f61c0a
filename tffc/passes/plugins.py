"""Passes of other packages.

A package offers its passes as entry points of the group `tffc.passes`, each of which is a `Pass`:

    [project.entry-points."tffc.passes"]
    my-pass = "my_package.my_pass:MY_PASS"

They are loaded when passes are looked up by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tffc.language.invariants import INVARIANTS
from tffc.passes.pipeline import Pass, nearest
from tffc.support.errors import PipelineError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tffc.passes"


def with_plugins(passes: Mapping[str, Pass]) -> dict[str, Pass]:
    """Return these passes and those of the packages that are installed.

    Raises:
      PipelineError: a package offers something that is not a pass, a pass whose name is taken, or a
        pass with an unknown invariant.
    """
    import importlib.metadata  # takes longer to import than a small program to compile

    found = dict(passes)
    points = importlib.metadata.entry_points(group=GROUP)
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        each = _load(point)
        if each.name in found:
            raise PipelineError(
                "E373",
                f"{each.package} offers a pass {each.name!r}, but so does "
                f"{found[each.name].package}",
            )
        found[each.name] = each
    return found


def _load(point: EntryPoint) -> Pass:
    package = "a package" if point.dist is None else point.dist.name
    try:
        loaded = point.load()
    except Exception as error:
        raise PipelineError(
            "E374",
            f"{package} offers the pass {point.name!r}, but {point.value} cannot be loaded",
            notes=(f"{type(error).__name__}: {error}",),
        ) from error
    if not isinstance(loaded, Pass) or loaded.name != point.name:
        raise PipelineError(
            "E375",
            f"{package} offers the pass {point.name!r}, but {point.value} is not a Pass of that "
            "name",
            help=f"make it one: Pass({point.name!r}, function)",
        )
    for invariant in (*loaded.requires, *loaded.ensures, *loaded.breaks):
        if invariant not in INVARIANTS:
            raise PipelineError(
                "E378",
                f"the pass {point.name!r} of {package} speaks of the invariant {invariant!r}",
                help=nearest(invariant, INVARIANTS),
            )
    return dataclasses.replace(loaded, package=package)
