"""A pytest plugin: golden files for programs made in tests.

    def test_round(tffc_golden):
        tffc_golden(make_round(learning_rate=0.1), forms=["mapreduce"])

The golden files of `test_rounds.py` are in the folder `test_rounds.golden` beside it, one folder
for each test.  `pytest` compares them with the current output; `pytest --tffc-golden=update` writes
them.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from tffc.support.errors import GoldenError, TffcError
from tffc.support.printable import printable, printable_lines

if TYPE_CHECKING:
    from tffc.assurance.golden.folder import Orphan
    from tffc.assurance.golden.printing import Recipe
    from tffc.frontend.computation import Computation
    from tffc.frontend.templates import IterativeProcess

CHECK, UPDATE = "check", "update"
SUFFIX = ".golden"
TO_WRITE = f"write what is printed now with pytest --tffc-golden={UPDATE}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects comparing or updating golden files."""
    parser.getgroup("tffc").addoption(
        "--tffc-golden",
        choices=(CHECK, UPDATE),
        default=CHECK,
        help="Compare the golden files of programs with what is printed now (the default), or "
        "write them.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to update in CI; set up the record of used golden files."""
    update = config.getoption("--tffc-golden") == UPDATE
    if update:
        from tffc.assurance.golden.folder import refuse_in_ci

        try:
            refuse_in_ci()
        except GoldenError as error:
            raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(_Books(config, update), _Books.NAME)


@pytest.fixture
def tffc_golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a program with golden files: `tffc_golden(program, forms=["mapreduce"])`."""
    books = request.config.pluginmanager.get_plugin(_Books.NAME)
    assert isinstance(books, _Books)
    return Golden(books, request.node.nodeid, request.path, request.config.rootpath)


@dataclasses.dataclass(frozen=True, slots=True)
class Golden:
    """The value of the fixture `tffc_golden`."""

    books: _Books
    test: str
    module: pathlib.Path
    root: pathlib.Path

    def __call__(
        self,
        program: Computation | IterativeProcess,
        *,
        forms: Sequence[str] = (),
        name: str | None = None,
        pipeline: str | None = None,
        allow_impure_duplicates: bool = False,
    ) -> None:
        """Compare the output for a program with its golden files, or update them.

        `name` is the name of their folder, by default that of the test; a test with several
        programs needs it.  `pipeline` is a file, relative to pytest's root.

        The test fails if a file differs or is missing, or if the program cannot be compiled.
        """
        __tracebackhide__ = True
        from tffc.assurance.golden.printing import Recipe

        path = None if pipeline is None else str(self.root / pipeline)
        recipe = Recipe(tuple(forms), path, allow_impure_duplicates)
        try:
            different = self._hold(program, recipe, name)
        except TffcError as error:
            pytest.fail(str(error), pytrace=False)
        if different:
            pytest.fail(different, pytrace=False)

    def _hold(
        self, program: Computation | IterativeProcess, recipe: Recipe, name: str | None
    ) -> str:
        """Return the differences of a program's files; in an update, write the files instead."""
        from tffc.assurance.golden.folder import check_no_link, differences, write
        from tffc.assurance.golden.printing import print_program

        name = _folder_name(self.test.partition("::")[2] if name is None else name)
        self.books.enter(self.module, name, self.test)
        folder = _folder(self.module)
        check_no_link(folder)
        round, initialize = _parts(program)
        first = None if initialize is None else initialize.node
        discount = None if round.discount is None else round.discount.node
        printed = {name: print_program(round.node, first, recipe, discount)}
        changes = list(differences(folder, printed, complete=self.books.update))
        if self.books.update:
            if changes:
                write(folder, printed)
                self.books.changed += len(changes)
            return ""
        if not (folder / name).exists():
            return f"{_shown(folder / name, self.root)} is not there; {TO_WRITE}"
        if not changes:
            return ""
        shown = (
            dataclasses.replace(change, path=_shown(change.path, self.root)) for change in changes
        )
        return printable_lines("\n".join([_heading(len(changes)), *map(str, shown)]))


class _Books:
    """Records which golden files a run of pytest uses, and finds those that belong to no test."""

    NAME = "tffc-golden-books"

    def __init__(self, config: pytest.Config, update: bool) -> None:
        self.root = config.rootpath
        self.update = update
        self.changed = 0
        self.orphans: list[Orphan] = []
        self.failure = ""
        self._used: dict[pathlib.Path, dict[str, str]] = {}
        self._ran: set[pathlib.Path] = set()
        self._incomplete: set[pathlib.Path] = set()
        for argument in config.invocation_params.args:
            file, _, test = str(argument).partition("::")
            if test:
                path = os.path.abspath(config.invocation_params.dir / file)
                self._incomplete.add(pathlib.Path(path))

    def enter(self, module: pathlib.Path, name: str, test: str) -> None:
        """Record that a test uses the golden files with a name.

        Raises:
          GoldenError: another test, or the same one before, uses them.
        """
        used = self._used.setdefault(module, {})
        if name in used:
            raise GoldenError(
                "E809",
                f"two programs have the golden files {name!r} of {module.name}",
                notes=(f"the other one is in {used[name]}",) if used[name] != test else (),
                help="give each a name: tffc_golden(program, name=...)",
            )
        used[name] = test

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Record the modules with deselected tests."""
        self._incomplete.update(item.path for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the modules that have run, and which of them have a test that did not pass."""
        module = self.root / report.nodeid.partition("::")[0]
        self._ran.add(module)
        if report.outcome != "passed":
            self._incomplete.add(module)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Find golden files that belong to no test; remove them in an update."""
        distributed = session.config.pluginmanager.hasplugin("dsession")
        if distributed or hasattr(session.config, "workerinput") or session.shouldfail:
            return
        try:
            self.orphans = list(self._find_orphans())
            for orphan in self.orphans if self.update else ():
                orphan.accept()
        except (TffcError, OSError) as error:
            # An exception here would be one of pytest's own.
            self.failure = printable_lines(str(error))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        if self.orphans and not self.update and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the changes, and the golden files that belong to no test."""
        if self.update and (self.changed or self.orphans):
            terminalreporter.section("golden files")
            terminalreporter.line(f"{self.changed} changed")
        elif self.orphans:
            terminalreporter.section("golden files that belong to no test", red=True)
        if self.failure:
            terminalreporter.line(self.failure, red=True)
            return
        for orphan in self.orphans:
            path = _shown(orphan.path, self.root)
            shown = printable(path.as_posix())
            terminalreporter.line(f"{shown} removed" if self.update else shown)
        if self.orphans and not self.update:
            terminalreporter.line(f"remove them with pytest --tffc-golden={UPDATE}")

    def _find_orphans(self) -> Iterator[Orphan]:
        from tffc.assurance.golden.folder import Orphan, is_golden, orphans

        for module in sorted(self._ran - self._incomplete):
            names = self._used.get(module, {})
            if names:
                yield from orphans(_folder(module), names)
            elif is_golden(_folder(module)):
                yield Orphan(_folder(module))
        for parent in sorted({module.parent for module in self._ran}):
            for folder in sorted(parent.glob(f"*{SUFFIX}")):
                if not folder.with_suffix(".py").exists() and is_golden(folder):
                    yield Orphan(folder)


def _folder(module: pathlib.Path) -> pathlib.Path:
    """Return the folder of the golden files of a test module."""
    return module.with_suffix(SUFFIX)


def _folder_name(test: str) -> str:
    """Return a folder name that every system allows, such as `test_round-8` for `test_round[8]`."""
    name = re.sub(r"[^\w.]+", "-", test).strip("-.")
    if not name:
        raise GoldenError(
            "E809",
            f"{test!r} has nothing of which a folder of golden files could be named",
            help="give it a name with a letter: tffc_golden(program, name=...)",
        )
    return name


def _parts(program: object) -> tuple[Computation, Computation | None]:
    """Return the round, and the computation of its first state if it is a process."""
    from tffc.frontend.computation import Computation
    from tffc.frontend.templates import IterativeProcess
    from tffc.frontend.templates.rounds import round_of

    match program:
        case IterativeProcess():
            return round_of(program), program.initialize
        case Computation():
            return program, None
        case _:
            name = type(program).__name__
            raise GoldenError(
                "E714",
                f"tffc_golden takes a computation or an iterative process, found {name}",
                help="decorate a function with @tff.federated_computation(...)",
            )


def _shown(path: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def _heading(count: int) -> str:
    files = "1 golden file differs" if count == 1 else f"{count} golden files differ"
    return f"{files}; {TO_WRITE}"
