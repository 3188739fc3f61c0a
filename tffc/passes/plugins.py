"""Passes of other packages, which are entry points of the group `tffc.passes`; see
`tffc.support.plugins`.

They are loaded when passes are looked up by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from tffc.language.invariants import INVARIANTS
from tffc.passes.pipeline import Pass
from tffc.support.errors import PipelineError
from tffc.support.near import nearest
from tffc.support.plugins import Offer, PluginGroup, offers, taken

GROUP = PluginGroup("tffc.passes", "pass", Pass, PipelineError)


def with_plugins(passes: Mapping[str, Pass]) -> dict[str, Pass]:
    """Return these passes and those of the packages that are installed.

    Raises:
      PipelineError: a package offers something that is not a pass, a pass whose name is taken, or a
        pass with an unknown invariant.
    """
    known = dict(passes)
    for offer in offers(GROUP):
        name = offer.member.name
        if name in known:
            raise taken(GROUP, offer, known[name].package)
        _check_invariants(offer)
        known[name] = offer.member._replace(package=offer.package)
    return known


def _check_invariants(offer: Offer[Pass]) -> None:
    rewrite = offer.member
    for invariant in (*rewrite.requires, *rewrite.ensures, *rewrite.breaks):
        if invariant not in INVARIANTS:
            raise PipelineError(
                "E374",
                f"the pass {rewrite.name!r} of {offer.package} speaks of the invariant "
                f"{invariant!r}",
                help=nearest(invariant, INVARIANTS),
            )
