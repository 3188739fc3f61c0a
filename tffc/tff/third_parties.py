"""Dependencies of TFF's libraries that cannot be imported beside today's TensorFlow.

The parts that the libraries use work; only the packages' own `__init__` fails.  So a stand-in has
their name and their files, but does not run their `__init__`: each name is imported from the module
that defines it.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from tffc.support.errors import MissingElementError, TffcError
from tffc.tff.stand_in import Creator, Homes, StandIn

QUERIES = "tensorflow_privacy.privacy.dp_query"


@dataclasses.dataclass(frozen=True, slots=True)
class PartlyUsed:
    """A package that cannot be imported as it is: why, and where its names are defined."""

    reason: str
    homes: Homes


PACKAGES = {
    "tensorflow_privacy": PartlyUsed(
        "the rest of it needs tensorflow_estimator, which ended with TensorFlow 2.15",
        {
            f"{QUERIES}.dp_query": ("DPQuery", "SumAggregationDPQuery"),
            f"{QUERIES}.discrete_gaussian_query": ("DiscreteGaussianSumQuery",),
            f"{QUERIES}.distributed_discrete_gaussian_query": (
                "DistributedDiscreteGaussianSumQuery",
            ),
            f"{QUERIES}.distributed_skellam_query": ("DistributedSkellamSumQuery",),
            f"{QUERIES}.gaussian_query": ("GaussianSumQuery",),
            f"{QUERIES}.nested_query": ("NestedQuery",),
            f"{QUERIES}.no_privacy_query": ("NoPrivacyAverageQuery", "NoPrivacySumQuery"),
            f"{QUERIES}.normalized_query": ("NormalizedQuery",),
            f"{QUERIES}.quantile_adaptive_clip_sum_query": ("QuantileAdaptiveClipSumQuery",),
            f"{QUERIES}.quantile_adaptive_clip_tree_query": ("QAdaClipTreeResSumQuery",),
            f"{QUERIES}.quantile_estimator_query": (
                "NoPrivacyQuantileEstimatorQuery",
                "QuantileEstimatorQuery",
            ),
            f"{QUERIES}.restart_query": ("RestartQuery", "restart_query"),
            f"{QUERIES}.tree_aggregation": ("tree_aggregation",),
            f"{QUERIES}.tree_aggregation_query": (
                "TreeCumulativeSumQuery",
                "TreeResidualSumQuery",
            ),
            f"{QUERIES}.tree_range_query": ("TreeRangeSumQuery",),
        },
    ),
    "tensorflow_model_optimization": PartlyUsed(
        "the rest of it needs Keras 2",
        {},
    ),
}
"""The packages that are used in part."""


class ThirdPartyFinder(importlib.abc.MetaPathFinder):
    """Finds stand-ins for these packages, if they are installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in for one of these packages, if installed; None for any
        other."""
        package = PACKAGES.get(name)
        if package is None:
            return None
        spec_of_path = PathFinder.find_spec(name)
        if spec_of_path is None or spec_of_path.submodule_search_locations is None:
            return None
        loader = Creator(lambda name: StandIn(name, package.homes, _refused))
        spec = ModuleSpec(name, loader, is_package=True)
        spec.submodule_search_locations = list(spec_of_path.submodule_search_locations)
        return spec


def _refused(module: str, name: str) -> TffcError:
    return MissingElementError(
        "E184",
        f"{module}.{name} is not available: {PACKAGES[module].reason}",
        help="only what TFF's libraries need is taken from this package",
    )
