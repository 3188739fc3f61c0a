"""Writes `docs/tff-names.md`, every public name of TFF 0.87: `python -m tests.compat.names_page`.

The names are recorded in `recorded/names.json`; see `names.py`.
"""

from __future__ import annotations

import functools
import itertools
import json
import pathlib

import tffc
from tests.compat.names import NAMES
from tffc.compat.names import LIBRARIES

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tff-names.md"

OWN = "tffc's own"
WHEEL = "TFF's, over tffc"

HEAD = """# The names of TensorFlow Federated

Every public name of TensorFlow Federated 0.87, and what tffc has in its place. See
[Coming from TensorFlow Federated](migrate-from-tff.md) for how a program gets them.

| here it says | that is |
|---|---|
| tffc's own | tffc has the name; nothing else need be installed |
| TFF's, over tffc | one of TFF's libraries has it; they run over tffc from TFF's wheel |
| not there | tffc does not have the name; it is said why, or what does the same |

`python -m tests.compat.names_page` writes this page.
"""

NODES = {
    "Block": "Block",
    "Call": "Call",
    "CompiledComputation": "Compiled",
    "ComputationBuildingBlock": "Node",
    "Data": "Data",
    "Intrinsic": "Intrinsic",
    "Lambda": "Lambda",
    "Literal": "Literal",
    "Placement": "PlacementNode",
    "Reference": "Reference",
    "Selection": "Selection",
    "Struct": "StructNode",
}
"""The classes of nodes, by TFF's names."""

REASONS = {
    "it is part of TFF's executors, and tffc runs computations itself": (
        "framework.CardinalitiesType",
        "framework.CardinalityCarrying",
        "framework.CardinalityFreeDataDescriptor",
        "framework.CreateDataDescriptor",
        "framework.DataDescriptor",
        "framework.ExecutorFactory",
        "framework.Ingestable",
        "framework.RemoteExecutor",
        "framework.RemoteExecutorGrpcStub",
        "framework.RemoteExecutorStub",
        "framework.ResourceManagingExecutorFactory",
        "framework.RetryableError",
        "framework.deserialize_value",
        "framework.local_cpp_executor_factory",
        "framework.merge_cardinalities",
        "framework.serialize_value",
    ),
    "it cuts a round for TFF's executors to run it in parts; `tff.run(..., workers=4)` runs "
    "clients side by side": (
        "backends.native.compile_to_mergeable_comp_form",
        "backends.native.create_mergeable_comp_execution_context",
        "backends.native.set_mergeable_comp_execution_context",
        "framework.MergeableCompExecutionContext",
        "framework.MergeableCompForm",
    ),
    "it prepares a computation for TFF's executors; `tffc opt --passes` rewrites programs": (
        "backends.native.desugar_and_transform_to_native",
        "backends.native.transform_to_native_form",
    ),
    "tffc runs secure operators as they are; nothing has to be replaced": (
        "backends.test.replace_secure_intrinsics_with_bodies",
    ),
    "operators are rows of tables in `tffc.ir.intrinsics`, by their URIs": (
        "framework.FEDERATED_AGGREGATE",
        "framework.FEDERATED_APPLY",
        "framework.FEDERATED_BROADCAST",
        "framework.FEDERATED_EVAL_AT_CLIENTS",
        "framework.FEDERATED_EVAL_AT_SERVER",
        "framework.FEDERATED_MAP",
        "framework.FEDERATED_MAP_ALL_EQUAL",
        "framework.FEDERATED_SUM",
        "framework.FEDERATED_VALUE_AT_CLIENTS",
        "framework.FEDERATED_VALUE_AT_SERVER",
        "framework.FEDERATED_ZIP_AT_CLIENTS",
        "framework.FEDERATED_ZIP_AT_SERVER",
    ),
    "the pass `call-dominant`: `tffc opt --passes call-dominant`": ("framework.to_call_dominant",),
    "operators are run as they are; the pass `desugar-means` replaces means": (
        "tensorflow.replace_intrinsics_with_bodies",
    ),
    "programs are walked and rewritten as in [Write a pass](write-a-pass.md)": (
        "framework.UnexpectedBlockError",
        "framework.transform_postorder",
        "framework.transform_preorder",
        "framework.unique_name_generator",
    ),
    "convert arguments and results in the function itself": (
        "tensorflow.transform_args",
        "tensorflow.transform_result",
    ),
    "`tffc audit` says what leaves the clients, and in what protection": (
        "test.assert_contains_secure_aggregation",
        "test.assert_contains_unsecure_aggregation",
        "test.assert_not_contains_secure_aggregation",
        "test.assert_not_contains_unsecure_aggregation",
    ),
    **{f"today `tffc.ir.{today}`": (f"framework.{name}",) for name, today in NODES.items()},
}
"""Why names are not there, or what does the same; asked for those that are not."""


@functools.cache
def reasons() -> dict[str, str]:
    return {f"tff.{name}": reason for reason, names in REASONS.items() for name in names}


def recorded_names() -> list[str]:
    return json.loads(NAMES.read_text())


def has(name: str) -> bool:
    """Whether a name of TFF can be had here, of the libraries only with the wheel."""
    found = tffc
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def of_library(name: str) -> bool:
    return name.split(".")[1] in LIBRARIES


def state(name: str) -> str:
    """What a name is here, without asking whether the wheel is installed.

    Raises:
      KeyError: it is not there, and no reason is given.
    """
    if of_library(name):
        return WHEEL
    return OWN if has(name) else f"not there: {reasons()[name]}"


def page() -> str:
    text = [HEAD]
    for module, names in itertools.groupby(
        sorted(recorded_names(), key=split), lambda n: split(n)[0]
    ):
        rows = [f"| `{name}` | {state(name)} |" for name in names]
        text.append(f"\n## {module}\n\n| name | here |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "".join(text)


def split(name: str) -> tuple[str, str]:
    module, _, last = name.rpartition(".")
    return module, last


if __name__ == "__main__":
    PAGE.write_text(page())
