"""Passes of other packages: the example package, found as an installed one would be, and refusals.

A package counts as installed when a `.dist-info` folder on the path says so.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

import pytest

from tests.refusals import refusal
from tffc.assurance.golden.cases import read_cases
from tffc.passes import PASSES, parse_passes, with_plugins
from tffc.passes.table import all_passes
from tffc.support.errors import PipelineError

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "pass_package"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes a package with these entry points, and perhaps a module, look installed."""

    def install_package(name: str, *entries: str, module: str = "") -> None:
        site = tmp_path / name
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "\n".join(("[tffc.passes]", *entries))
        (info / "entry_points.txt").write_text(lines + "\n")
        (site / f"{name}_module.py").write_text(module)
        monkeypatch.syspath_prepend(str(site))

    return install_package


@pytest.fixture
def example(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example package, as if installed."""
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    _, _, entries = project.partition('[project.entry-points."tffc.passes"]\n')
    install("unsecure-sums", *(line.replace('"', "") for line in entries.splitlines()))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "unsecure_sums", raising=False)


@pytest.mark.usefixtures("example")
def test_example_package() -> None:
    known = all_passes()
    assert known["unsecure-sums"].package == "unsecure-sums"
    assert str(parse_passes("unsecure-sums,call-dominant", known)) == "unsecure-sums,call-dominant"
    path = EXAMPLE / "tests" / "unsecure-sums.case"
    texts = (known["unsecure-sums"].example or "", path.read_text(encoding="utf-8"))
    cases = [case for text in texts for case in read_cases(text, path.name, path.stem)]
    assert len(cases) == 4
    for case in cases:
        assert case.difference(case.run(known, {})) is None, case.title


def test_without_packages_there_are_our_own() -> None:
    assert with_plugins(PASSES) == PASSES


REFUSED = {
    "taken": (
        "drop-identity-maps = bad_module:MINE",
        "Pass('drop-identity-maps', len)",
        "bad offers a pass 'drop-identity-maps', but so does tffc [E373]",
    ),
    "broken": (
        "mine = bad_module:MINE",
        "1 / 0",
        "bad offers the pass 'mine', but bad_module:MINE cannot be loaded [E374]\n"
        "  note: ZeroDivisionError: division by zero",
    ),
    "no pass": (
        "mine = bad_module:MINE",
        "len",
        "bad offers the pass 'mine', but bad_module:MINE is not a Pass of that name [E374]\n"
        "  help: make it one: Pass('mine', function)",
    ),
    "another name": (
        "mine = bad_module:MINE",
        "Pass('yours', len)",
        "bad offers the pass 'mine', but bad_module:MINE is not a Pass of that name [E374]\n"
        "  help: make it one: Pass('mine', function)",
    ),
    "unknown invariant": (
        "mine = bad_module:MINE",
        "Pass('mine', len, requires=('call-dominat',))",
        "the pass 'mine' of bad speaks of the invariant 'call-dominat' [E374]\n"
        "  help: did you mean 'call-dominant'?",
    ),
}


@pytest.mark.parametrize(("entry", "value", "message"), REFUSED.values(), ids=list(REFUSED.keys()))
def test_refused(
    install: Install, monkeypatch: pytest.MonkeyPatch, entry: str, value: str, message: str
) -> None:
    install("bad", entry, module=f"from tffc.passes import Pass\nMINE = {value}\n")
    monkeypatch.delitem(sys.modules, "bad_module", raising=False)
    assert refusal(PipelineError, with_plugins, PASSES) == message
