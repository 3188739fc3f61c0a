"""The table of passes: rewritings of a program that keep its type and what it computes."""

from __future__ import annotations

from tffc.ir.verify import CALL_DOMINANT, CLOSED, UNIQUE_NAMES
from tffc.passes.call_dominant import call_dominant
from tffc.passes.drop_identity_maps import drop_identity_maps
from tffc.passes.pipeline import Pass, Pipeline, load_pipeline

PASSES = {
    each.name: each
    for each in (
        Pass(
            "call-dominant",
            call_dominant,
            requires=(CLOSED,),
            ensures=(CALL_DOMINANT, UNIQUE_NAMES),
        ),
        Pass("drop-identity-maps", drop_identity_maps),
    )
}
"""Every pass by its name."""


def default_pipeline(form: str) -> Pipeline:
    """The pipeline that compiling to a form runs unless another is given.

    Raises:
      PipelineError: there is no such form.
    """
    return load_pipeline(form, PASSES)


__all__ = ["PASSES", "Pass", "Pipeline", "default_pipeline", "load_pipeline"]
