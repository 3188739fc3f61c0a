"""Runs the tests of TFF's own libraries over tffc, as they are, from a checkout.

    python -m tests.tff.own_tests CHECKOUT [LIBRARY...] [--workers N] [--clone RELEASE]

Prints how many of each library's tests pass, and those that fail without a reason in `KNOWN`.
`--clone` makes the checkout first, of one of the commits in `PINNED`.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from tffc.tff.names import LIBRARIES
from tffc.tff.releases import PACKAGE, REPOSITORY, SOURCE, installed

PINNED = {
    "0.87": "cca8ab5975da96722eeb3b7b9425b0c66987f30d",
    "2025": "af3c0f4df85884f140ffb8b7b32153ef31109db4",
    "2026": "63f73da486b2a98e1de1538b4d22834eaaea19ab",
}
"""Commits of google-parfait/tensorflow-federated: that of 0.87, and two of today's TFF."""

CONFTEST = """\
import sys

import pytest
import tffc
from absl import flags

tffc.install_as_tensorflow_federated()
{imports}
flags.FLAGS(sys.argv[:1])


@pytest.fixture(autouse=True, scope="module")
def _own_context():
    # Each file was written to have a process of its own.
    tffc.framework.set_default_context(tffc.framework.SyncExecutionContext())
"""

SETTINGS = "[pytest]\npython_files = *_test.py\npython_functions =\nnorecursedirs = source\n"

OTHER_WORDS = "tffc refuses it, with other words"

KNOWN = {
    r"test_success_with_model_constructed_from_keras": "the test asks variables of Keras for "
    "initial_value, which those of Keras 3.15 do not have",
    r"(init|next)_not_tff_computation_raises": OTHER_WORDS,
    r"test_unfinalized_metrics_type_and_initial_values_mismatch_raises": OTHER_WORDS,
    r"test_wrong_debug_measurements_fn_robust_aggregator": OTHER_WORDS,
    r"ConcreteClientDataTest\.test_dataset_computation": "a call gives a sequence as a dataset, as "
    "in 0.87, and not as a list",
    r"PreprocessClientDataTest\.test_preprocess_.*_with_dataset_comp": "the same",
    r"test_discretize_impl_zero_size_tensor": "the mean of no numbers is NaN, as in TensorFlow",
    r"iblt_factory_test": "the test needs pybind11_abseil, which is not on PyPI",
}
"""Why tests fail, by regular expressions for their names."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a library's tests: how many passed or were skipped, and which failed."""

    passed: int
    skipped: int
    failed: tuple[str, ...]

    @property
    def unexplained(self) -> list[str]:
        return [name for name in self.failed if not any(re.search(each, name) for each in KNOWN)]


def clone(release: str, checkout: pathlib.Path) -> None:
    """Make a checkout of a pinned commit."""
    subprocess.run(["git", "clone", "--filter=blob:none", REPOSITORY, checkout], check=True)
    subprocess.run(["git", "-C", checkout, "checkout", "--detach", PINNED[release]], check=True)


def run(checkout: pathlib.Path, libraries: Iterable[str], workers: str = "2") -> dict[str, Outcome]:
    """Run the tests of libraries of a checkout; return what came of each library's."""
    python = checkout / "tensorflow_federated" / "python"
    is_of_0_87 = (python / "core" / "impl" / "types" / "computation_types.py").exists()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for library in libraries:
            for path in (python / library).rglob("*_test.py"):
                copy = folder / path.relative_to(python)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)
        imports = "" if is_of_0_87 else "import federated_language"
        (folder / "conftest.py").write_text(CONFTEST.format(imports=imports))
        (folder / "pytest.ini").write_text(SETTINGS)
        report = folder / "report.xml"
        options = ["-q", "--import-mode=importlib", "--tb=line", "-n", workers]
        source = with_protos(checkout, folder / "source") if is_of_0_87 else checkout
        environment = {**os.environ, SOURCE: str(source)}
        if is_of_0_87:
            environment["TF_USE_LEGACY_KERAS"] = "1"
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, "--dist=worksteal", f"--junitxml={report}"],
            cwd=folder,
            env=environment,
            stdout=sys.stderr,
            check=False,
        )
        return outcomes(report)


def with_protos(checkout: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Make a copy of a checkout of 0.87 with what its build makes of its protos, by the wheel."""
    wheel = installed()
    assert wheel is not None, "the tests of 0.87 need its wheel too"
    protos = pathlib.PurePath("proto", "v0")
    shutil.copytree(checkout / PACKAGE, folder / PACKAGE)
    for path in (pathlib.Path(wheel.folder) / protos).glob("*_pb2*.py"):
        shutil.copy(path, folder / PACKAGE / protos)
    return folder


def outcomes(report: pathlib.Path) -> dict[str, Outcome]:
    """Read what came of each library's tests from pytest's report."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failed: dict[str, list[str]] = collections.defaultdict(list)
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}".lstrip(".")
        library = name.partition(".")[0]
        kinds = {part.tag for part in case}
        if kinds & {"failure", "error"}:
            failed[library].append(name)
        else:
            counts[library]["skipped" if "skipped" in kinds else "passed"] += 1
    return {
        library: Outcome(
            counts[library]["passed"], counts[library]["skipped"], tuple(sorted(failed[library]))
        )
        for library in sorted({*counts, *failed})
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--clone", choices=PINNED)
    chosen = parser.parse_args(words)
    if chosen.clone is not None:
        clone(chosen.clone, chosen.checkout)
    results = run(chosen.checkout.resolve(), chosen.libraries or sorted(LIBRARIES), chosen.workers)
    for library, outcome in results.items():
        total = outcome.passed + len(outcome.failed)
        print(f"{library}: {outcome.passed} of {total} pass, {outcome.skipped} are skipped")
        for name in outcome.unexplained:
            print(f"  {name}")
    sys.exit(any(outcome.unexplained for outcome in results.values()))


if __name__ == "__main__":
    main()
