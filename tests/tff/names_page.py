"""Writes `docs/tff-names.md`, every public name of TFF 0.87: `python -m tests.tff.names_page`.

The names are recorded in `recorded/names.json`; see `names.py`.
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

OWN = "tffc's own"
WHEEL = "TFF's, on tffc"

HEAD = """# The names of TensorFlow Federated

This page lists every public name of TensorFlow Federated 0.87 and its status in tffc.
[Migrating from TensorFlow Federated](migrate-from-tff.md) explains how a program uses them.

| status | meaning |
|---|---|
| tffc's own | tffc has the name; you need not install anything else |
| TFF's, on tffc | the name is in one of TFF's libraries, which run on tffc from TFF's wheel |
| not there | tffc does not have the name; the entry says why, or what to use instead |

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
        text.append(f"\n## {module}\n\n| name | status |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "".join(text)


def split(name: str) -> tuple[str, str]:
    module, _, last = name.rpartition(".")
    return module, last


if __name__ == "__main__":
    PAGE.write_text(page())
