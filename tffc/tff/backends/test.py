"""The names of TFF's `backends.test`: contexts that run secure sums without protection.

All contexts of tffc do so, so these are the ones of `tffc.tff.backends.native`.
"""

from __future__ import annotations

from tffc.frontend.computation import Computation
from tffc.language import calls
from tffc.language.nodes import Call, Intrinsic, Node
from tffc.language.traverse import rewrite
from tffc.tff.backends.native import (
    create_async_local_cpp_execution_context as create_async_test_cpp_execution_context,
)
from tffc.tff.backends.native import (
    create_sync_local_cpp_execution_context as create_sync_test_cpp_execution_context,
)
from tffc.tff.backends.native import (
    set_async_local_cpp_execution_context as set_async_test_cpp_execution_context,
)
from tffc.tff.backends.native import (
    set_sync_local_cpp_execution_context as set_sync_test_cpp_execution_context,
)

__all__ = [
    "create_async_test_cpp_execution_context",
    "create_sync_test_cpp_execution_context",
    "replace_secure_intrinsics_with_bodies",
    "set_async_test_cpp_execution_context",
    "set_sync_test_cpp_execution_context",
]

SECURE_SUMS = ("federated_secure_sum", "federated_secure_sum_bitwidth")


def replace_secure_intrinsics_with_bodies(comp: Computation) -> Computation:
    """Return the computation with plain sums and selections in place of secure ones.

    Sums modulo a number remain, because no plain operator computes them.
    """
    program = rewrite(comp.to_building_block(), _plain)
    return Computation(program, comp.type_signature, allow_effects=comp.allow_effects)


def _plain(node: Node) -> Node | None:
    if isinstance(node, Intrinsic) and node.uri == "federated_secure_select":
        return Intrinsic("federated_select", node.type)
    if not isinstance(node, Call) or not calls.is_call_of(node, SECURE_SUMS):
        return None
    return calls.federated_sum(calls.operands(node)[0])
