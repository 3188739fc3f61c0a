"""Which aggregations may release the value of a single client."""

from __future__ import annotations

from collections.abc import Sequence

from tffc.backends.forms.stages import StagedRound
from tffc.language.calls import federated_sum, operands

TOTALS = frozenset(
    {
        "federated_mean",
        "federated_secure_modular_sum",
        "federated_secure_sum",
        "federated_secure_sum_bitwidth",
        "federated_sum",
    }
)
"""The operators whose result is made of all clients' values, each of which counts once.

What the values are is another matter: if all clients but one give zero, a sum is the value of that
one.
"""

MEAN = "federated_weighted_mean"

REASONS = {
    "federated_max": "the greatest value is that of one client",
    "federated_min": "the least value is that of one client",
    "federated_aggregate": "functions of the program make the result",
    "output": "clients' outputs are not aggregated",
}
"""Why the results of other operators may be the value of one client."""


def single(operator: str, weighed: Sequence[str] = ()) -> str | None:
    """Return why the result of an aggregation may be the value of a single client, or None.

    `weighed` is what the weights of a mean may depend on of a client.
    """
    if operator in TOTALS:
        return None
    if operator == MEAN:
        if not weighed:
            return None
        return f"a client's weight may depend on {', '.join(weighed)}, and may be 0 for all others"
    return REASONS.get(operator, "nothing is known about the operator")


def with_weights(program: StagedRound) -> tuple[StagedRound, dict[str, str]]:
    """Return a round that also adds the weights of its weighted means, to analyze them alone.

    Nothing in the round uses these sums.  The dictionary has the name of the sum of weights for
    that of each mean.
    """
    calls, labels = dict(program.calls), dict[str, str]()
    for name, staged in program.calls.items():
        if staged.operator is not None and staged.operator.uri == MEAN:
            label = f"weights of {name}"
            while label in calls:
                label += "_"
            labels[name] = label
            added = federated_sum(operands(staged.call)[1])
            calls[label] = staged._replace(name=label, call=added)
    return program._replace(calls=calls), labels
