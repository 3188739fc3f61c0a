"""Every pass there is: those of programs, those that forms need, and those of other packages."""

from __future__ import annotations

from tffc import passes
from tffc.backends.select import lower_select
from tffc.ir.invariants import CALL_DOMINANT, NO_SELECT
from tffc.passes import Pass

FORM_PASSES = {
    each.name: each
    for each in (
        Pass(
            "lower-select",
            lower_select,
            requires=(CALL_DOMINANT,),
            ensures=(NO_SELECT,),
            breaks=(CALL_DOMINANT,),
        ),
    )
}
"""Rewritings that the forms are built with, by name."""


def all_passes() -> dict[str, Pass]:
    """Every pass by its name.

    Raises:
      PipelineError: an installed package offers something that is no pass.
    """
    return passes.with_plugins({**passes.PASSES, **FORM_PASSES})
