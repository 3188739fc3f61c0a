"""Counts as text that Prometheus and collectors of OpenTelemetry read."""

# prometheus_client may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tffc.runtime.operations.counts import ALL, BOUNDS, FAMILIES, SUM, Counts, Family
from tffc.support.errors import MissingExtraError
from tffc.support.extras import installation
from tffc.support.version import VERSION

if TYPE_CHECKING:
    from prometheus_client.core import Metric  # pyright: ignore[reportMissingImports]  # an extra

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def openmetrics_text(counts: Counts) -> bytes:
    """Return counts in the format of OpenMetrics.

    Raises:
      MissingExtraError: prometheus_client is not installed.
    """
    try:
        # An extra, not installed with the rest.
        from prometheus_client import CollectorRegistry  # pyright: ignore[reportMissingImports]
        from prometheus_client.openmetrics.exposition import (  # pyright: ignore[reportMissingImports]
            generate_latest,
        )
    except ModuleNotFoundError:
        raise MissingExtraError(
            "E701",
            "prometheus_client is not installed, and metrics need it",
            help=installation("metrics"),
        ) from None
    registry = CollectorRegistry()
    registry.register(_Collected(counts))
    return generate_latest(registry)


class _Collected:
    """The counts, as prometheus_client collects metrics."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import (  # pyright: ignore[reportMissingImports]  # an extra
            InfoMetricFamily,
        )

        yield InfoMetricFamily("tffc", "The program that counts.", {"version": VERSION})
        for family in FAMILIES:
            if family.name in self._counts:
                yield _metric(family, self._counts)


def _metric(family: Family, counts: Counts) -> Metric:
    from prometheus_client.core import (  # pyright: ignore[reportMissingImports]  # an extra
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    name, numbers = f"tffc_{family.name}", counts[family.name]
    if family.kind == "histogram":
        bounds = (*map(str, BOUNDS), ALL)
        buckets = [(bound, numbers.get(bound, 0)) for bound in bounds]
        return HistogramMetricFamily(name, family.help, buckets, numbers.get(SUM, 0))
    labels = [family.label] if family.label else []
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(name, family.help, labels=labels)
    for value, number in sorted(numbers.items()):
        metric.add_metric([value] if family.label else [], number)
    return metric
