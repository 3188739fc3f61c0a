"""A pass that makes secure sums plain ones."""

from __future__ import annotations

from tffc.language import Call, Intrinsic, Node, StructNode
from tffc.language.calls import federated_sum
from tffc.language.traverse import rewrite
from tffc.passes import Pass

SECURE = frozenset({"federated_secure_sum", "federated_secure_sum_bitwidth"})


def unsecure_sums(root: Node) -> Node:
    """Replace every secure sum by a plain one, for simulations of values that fit its bound.

    What the server learns is no longer only the sum: never deploy what this pass has seen.

        federated_secure_sum(<v,bound>)   becomes   federated_sum(v)
    """

    def rule(node: Node) -> Node | None:
        match node:
            case Call(Intrinsic(uri), StructNode((value, _))) if uri in SECURE:
                return federated_sum(value)
        return None

    return rewrite(root, rule)


UNSECURE_SUMS = Pass("unsecure-sums", unsecure_sums)
