"""Writes `docs/tff-names.md`, every public name of TFF 0.87: `python -m tests.tff.names_page`.

The names are recorded in `recorded/names.json`; see `names.py`.  Those of today are the names of
federated_language in `language/recorded`, and what the release notes of TFF say.
"""

from __future__ import annotations

import functools
import itertools
import json
import pathlib

import tffc
from tests.tff.names import NAMES
from tffc.tff.names import LIBRARIES

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "tff-names.md"

LANGUAGE = pathlib.Path(__file__).parent / "language" / "recorded" / "names.json"

OWN = "tffc's own"
WHEEL = "TFF's, on tffc"

HEAD = """# The names of TensorFlow Federated

This page lists every public name of TensorFlow Federated 0.87, its status in tffc, and its name in
today's TFF. [Migrating from TensorFlow Federated](migrate-from-tff.md) explains how a program uses
them, [Today's TensorFlow Federated](todays-tff.md) what changed. `fl` is `federated_language`.

| status | meaning |
|---|---|
| tffc's own | tffc has the name; you need not install anything else |
| TFF's, on tffc | the name is in one of TFF's libraries, which run on tffc from TFF's wheel |
| not there | tffc does not have the name; the entry says why, or what to use instead |

| today | meaning |
|---|---|
| `fl.` and a name | what does the same in today's TFF; tffc has it |
| the same | the name did not change |
| - | today's TFF has no such name |

`python -m tests.tff.names_page` writes this page.
"""

REASONS = {
    "it belongs to TFF's executors; tffc runs computations itself": (
        "framework.CardinalityCarrying",
        "framework.CreateDataDescriptor",
        "framework.ExecutorFactory",
        "framework.Ingestable",
        "framework.RemoteExecutor",
        "framework.RemoteExecutorGrpcStub",
        "framework.RemoteExecutorStub",
        "framework.ResourceManagingExecutorFactory",
        "framework.deserialize_value",
        "framework.local_cpp_executor_factory",
        "framework.serialize_value",
    ),
}
"""Why names are not there, or what does the same; asked for those that are not."""


TODAY = {
    "framework.deserialize_computation": "fl.framework.ConcreteComputation.from_proto",
    "framework.serialize_computation": "fl.framework.ConcreteComputation.to_proto",
    "jax.computation": "-",
    "test.assert_contains_secure_aggregation": "fl.framework."
    "computation_contains_secure_aggregation",
    "test.assert_contains_unsecure_aggregation": "fl.framework."
    "computation_contains_unsecure_aggregation",
    "test.assert_not_contains_secure_aggregation": "fl.framework."
    "computation_contains_secure_aggregation",
    "test.assert_not_contains_unsecure_aggregation": "fl.framework."
    "computation_contains_unsecure_aggregation",
    "test.assert_type_assignable_from": "fl.Type.is_assignable_from",
    "test.assert_types_equivalent": "fl.Type.is_equivalent_to",
    "test.assert_types_identical": "fl.Type.is_identical_to",
    "test.create_runtime_error_context": "fl.framework.RuntimeErrorContext",
    "test.set_no_default_context": "fl.framework.set_no_default_context",
    "test.with_context": "fl.framework.with_context",
    "test.with_contexts": "fl.framework.with_context",
    "types.contains": "fl.framework.type_contains",
    "types.contains_only": "fl.framework.type_contains_only",
    "types.count": "fl.framework.type_count",
    "types.deserialize_type": "fl.Type.from_proto",
    "types.is_shape_fully_defined": "fl.array_shape_is_fully_defined",
    "types.num_elements_in_shape": "fl.num_elements_in_array_shape",
    "types.serialize_type": "fl.Type.to_proto",
    "types.structure_from_tensor_type_tree": "tff.tensorflow.structure_from_tensor_type_tree",
    "types.tensorflow_to_type": "tff.tensorflow.to_type",
    "types.type_to_tf_tensor_specs": "tff.tensorflow.type_to_tf_tensor_specs",
    **dict.fromkeys(
        (
            "aggregators.EncodedSumFactory",
            "framework.CardinalityCarrying",
            "framework.CardinalityFreeDataDescriptor",
            "framework.CreateDataDescriptor",
            "framework.DataDescriptor",
            "framework.Ingestable",
            "framework.merge_cardinalities",
            "learning.algorithms.build_fed_recon",
            "learning.algorithms.build_fed_recon_eval",
            "learning.compression_aggregator",
            "learning.ddp_secure_aggregator",
            "learning.models.ReconstructionDatasetSplitFn",
            "learning.models.ReconstructionModel",
            "learning.programs.train_model_with_vizier",
            "types.TypeRelation",
            "types.TypesNotIdenticalError",
            "types.is_tensorflow_compatible_type",
            "types.type_mismatch_error_message",
        ),
        "-",
    ),
}
"""Today's names of those that changed in more than the package, and "-" for those that are gone."""

MOVED = {
    "tff": "federated_language",
    "tff.framework": "federated_language.framework",
    "tff.program": "federated_language.program",
    "tff.types": "federated_language",
}
"""The modules whose names are now in federated_language, and where."""


@functools.cache
def names_of_today() -> dict[str, set[str]]:
    """Return the names in the modules of federated_language."""
    return {module: set(names) for module, names in json.loads(LANGUAGE.read_text()).items()}


def today(name: str) -> str:
    """Return what a name of 0.87 is called in today's TFF, "-" if it is gone."""
    other = TODAY.get(name.removeprefix("tff."))
    if other is not None:
        return other if other == "-" else f"`{other}`"
    module, last = split(name)
    for home in (MOVED.get(module, ""), "federated_language.framework"):
        if module in MOVED and last in names_of_today()[home]:
            return f"`{home.replace('federated_language', 'fl')}.{last}`"
    return "the same"


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
        rows = [f"| `{name}` | {state(name)} | {today(name)} |\n" for name in names]
        text.append(f"\n## {module}\n\n| name | status | today |\n|---|---|---|\n{''.join(rows)}")
    return "".join(text)


def split(name: str) -> tuple[str, str]:
    module, _, last = name.rpartition(".")
    return module, last


if __name__ == "__main__":
    PAGE.write_text(page())
