"""Runs the tests of federated_language and of its examples over tffc, as they are, from a checkout.

    python -m tests.tff.own_language_tests CHECKOUT [--workers N] [--clone]

Prints how many pass, and those that fail without a reason in `KNOWN`.  `--clone` makes the checkout
first, of the commit `PINNED`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence

REPOSITORY = "https://github.com/google-parfait/federated-language"
PINNED = "600c3577541fbdc077c99093396937799cb4a8d8"
"""The commit of release 0.5.3."""

START = """\
import importlib.util, runpy, sys

import tffc

checkout, path, report = sys.argv[1:]
sys.path[:0] = [checkout, f"{checkout}/examples"]
tffc.install_as_federated_language()


class Helpers:
    # A module that only the tests use.
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "federated_language.compiler.computation_factory":
            file = f"{checkout}/{name.replace('.', '/')}.py"
            return importlib.util.spec_from_file_location(name, file)


sys.meta_path.insert(0, Helpers)
import federated_language

federated_language.framework.set_no_default_context()  # as the package itself starts
sys.argv = [path, f"--xml_output_file={report}"]
runpy.run_path(path, run_name="__main__")
"""
"""Runs a file of tests as a script, as Bazel does: some begin with a context around all tests."""

KNOWN = {
    r"computation_types_test\.InternTest\.": "they test how types are cached there",
    r"computation_types_test\..*test_init_raises_value_error_with_reserved_name": "elements of "
    "tffc's types may have the names of methods of types",
    r"test_(returns_string_for_data|basic_functionality_of_data_class)$": "data is printed by a "
    "hash of its content, not by the address of its message",
    r"test_basic_functionality_of_selection_class": "a selection by name has its position too",
    r"LiteralTest\.test_repr_generic": "a literal has no scalar of NumPy, but its value",
    r"ReferenceTest\.test_eq_returns_false_same_name": "references of a name and a type are equal",
    r"ZeroOrOneArgFnToBuildingBlockTest\.test_returns_result_nested_fn|ValueTest\."
    r"test_value_impl_with_(lambda|selection)": "an element prints by position",
    r"test_returns_result_federated_structure_nested": "tffc refuses more or fewer elements than "
    "the type has",
    r"test_pack_sequence_as_fails_non_struct": "tffc's takes containers of Python too",
    r"test_raises_on_non_str_int_index|cardinalities_utils_test\..*(conflicting|structure_failure)|"
    r"StructTest\.test_(bad_names|update_struct_fails)|with_names_to_container_without_names_fails|"
    r"ValueTest\.test_(getattr_raises|slicing_|tf_mapping)": "tffc's message has other words",
}
"""Why tests fail, by regular expressions for their names."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What came of tests: how many passed or were skipped, and which failed."""

    passed: int
    failed: tuple[str, ...]

    @property
    def unexplained(self) -> list[str]:
        return [name for name in self.failed if not any(re.search(each, name) for each in KNOWN)]


def clone(checkout: pathlib.Path) -> None:
    """Make a checkout of the pinned commit."""
    subprocess.run(["git", "clone", "--filter=blob:none", REPOSITORY, checkout], check=True)
    subprocess.run(["git", "-C", checkout, "checkout", "--detach", PINNED], check=True)


def run(checkout: pathlib.Path, workers: int = 2) -> Outcome:
    """Run the tests of a checkout; return what came of them."""
    folders = (checkout / "federated_language", checkout / "examples")
    files = [path for folder in folders for path in sorted(folder.rglob("*_test.py"))]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "start.py").write_text(START)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            parts = list(pool.map(lambda path: _run_file(checkout, path, folder), files))
    failed = [name for part in parts for name in part.failed]
    return Outcome(sum(part.passed for part in parts), tuple(failed))


def _run_file(checkout: pathlib.Path, path: pathlib.Path, folder: pathlib.Path) -> Outcome:
    # A script's own folder is the first of the path, and `types` there would hide Python's.
    copy = folder / path.relative_to(checkout).as_posix().replace("/", "+")
    copy.write_bytes(path.read_bytes())
    report = copy.with_suffix(".xml")
    command = [sys.executable, folder / "start.py", checkout, copy, report]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    log = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if not report.exists():
        print(log.stderr, file=sys.stderr)
        return Outcome(0, (path.stem,))
    return outcome(path.stem, report)


def outcome(file: str, report: pathlib.Path) -> Outcome:
    """Read what came of a file's tests from its report."""
    passed, failed = 0, list[str]()
    for suite in ET.parse(report).iter("testsuite"):
        for case in suite.iter("testcase"):
            if {part.tag for part in case} & {"failure", "error"}:
                failed.append(f"{file}.{suite.get('name')}.{case.get('name')}")
            else:
                passed += 1
    return Outcome(passed, tuple(failed))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clone", action="store_true")
    chosen = parser.parse_args(words)
    if chosen.clone:
        clone(chosen.checkout)
    result = run(chosen.checkout.resolve(), chosen.workers)
    print(f"{result.passed} of {result.passed + len(result.failed)} pass")
    for name in result.unexplained:
        print(f"  {name}")
    sys.exit(bool(result.unexplained))


if __name__ == "__main__":
    main()
