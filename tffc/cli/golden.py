"""The work of `tffc golden`: comparing the current output for examples with golden files."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Iterator
from typing import NoReturn

import click

from tffc.assurance.golden.examples import LIST, print_example, read_examples
from tffc.assurance.golden.folder import (
    Change,
    FileDifference,
    Orphan,
    differences,
    orphans,
    refuse_in_ci,
    write,
)
from tffc.assurance.golden.printing import Files
from tffc.cli.annotations import annotation
from tffc.cli.diagnostics import report
from tffc.cli.output import say, show_styled
from tffc.cli.progress import no_step, step
from tffc.cli.screen import BLUE, GREEN, RED
from tffc.support.errors import TffcError
from tffc.support.printable import counted

ACCEPT, WHOLE, REJECT, LEFT, QUIT = "a", "e", "r", "s", "q"
COLORS = {"+": GREEN, "-": RED, "@": BLUE}

NONE_YET = "no golden files yet: {}; `tffc golden update` writes them"

LONGEST_ANNOTATION = 40
"""The most lines of a diff in an annotation; the log has all of them."""


def check(folder: pathlib.Path, style: str, names: tuple[str, ...]) -> None:
    """Print the differences from the golden files; exit with 1 if there are any."""
    examined = _examine(folder, names)
    for change in examined.changes:
        if not examined.is_new(change):
            _show(change)
    if style == "github":
        for annotation in _annotations(examined, folder):
            click.echo(annotation)
    changes = [change for change in examined.changes if not examined.is_new(change)]
    if changes:
        say(f"{counted(len(changes), 'change')}; review them with `tffc golden review`")
        _name_unsteady(examined, changes, folder)
    if examined.new:
        say(NONE_YET.format(", ".join(examined.new)))
    if examined.changes or examined.failures:
        raise click.exceptions.Exit(1)
    say(f"{counted(len(examined.printed), 'example')} as before")


def watch_check(folder: pathlib.Path, style: str, names: tuple[str, ...]) -> NoReturn:
    """Check, and again whenever the list, an example or a module in its folder is saved."""
    # Imported late: only --watch needs it.
    from tffc.cli.watch import watch_all
    from tffc.runtime.user_code.own_modules import is_path

    root = folder.resolve().parent

    def sources() -> list[str]:
        targets = [example.target for example in read_examples(folder, names)]
        return [
            str(root / target) if is_path(target.partition(":")[0]) else target
            for target in targets
        ]

    watch_all(str(folder / LIST), sources, lambda: check(folder, style, names))


def update(folder: pathlib.Path, names: tuple[str, ...]) -> None:
    """Write the current output for the examples to the golden files."""
    refuse_in_ci()
    examined = _examine(folder, names, complete=True)
    if examined.failures:
        say("no golden file was changed")
        raise click.exceptions.Exit(1)
    changed = {_top(change, folder) for change in examined.changes}
    printed = examined.printed.items()
    write(folder, {name: files for name, files in printed if folder / name in changed})
    for change in examined.changes:
        if isinstance(change, Orphan):
            change.accept()
        say(f"{change.path} {'removed' if change.removes else 'written'}")
    say(counted(len(examined.changes), "change"))


def review(folder: pathlib.Path, names: tuple[str, ...]) -> None:
    """Ask what to do with each change of a golden file."""
    refuse_in_ci()
    examined = _examine(folder, names)
    answers = dict.fromkeys(examined.changes, LEFT)
    whole: set[pathlib.Path] = set()
    for number, change in enumerate(answers, start=1):
        example = _top(change, folder)
        if example not in whole:
            _show(change)
            answers[change] = _ask(f"change {number} of {len(answers)}")
        if answers[change] == QUIT:
            break
        if answers[change] == WHOLE:
            whole.add(example)
        if example in whole:
            answers[change] = ACCEPT
        if answers[change] == ACCEPT:
            change.accept()
    given = list(answers.values())
    accepted, rejected = given.count(ACCEPT), given.count(REJECT)
    for change, answer in answers.items():
        if answer == REJECT:
            say(f"{change.path} needs a fix in the program")
    left = len(given) - accepted - rejected
    say(f"{accepted} accepted, {rejected} rejected, {left} left")
    if rejected or examined.failures:
        raise click.exceptions.Exit(1)


def _ask(which: str) -> str:
    return click.prompt(
        f"{which}: [a]ccept, accept [e]xample, [r]eject, [s]kip or [q]uit",
        type=click.Choice((ACCEPT, WHOLE, REJECT, LEFT, QUIT), case_sensitive=False),
        show_choices=False,
        err=True,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Examined:
    """The current output for examples, the changes of golden files, and the failures."""

    targets: dict[str, str]
    printed: dict[str, Files]
    changes: list[Change]
    failures: list[TffcError]

    @property
    def new(self) -> list[str]:
        """The examples that have no golden files yet."""
        added = collections.Counter(
            change.folder.name
            for change in self.changes
            if isinstance(change, FileDifference) and change.golden is None
        )
        return [name for name, files in self.printed.items() if added[name] == len(files)]

    def is_new(self, change: Change) -> bool:
        """Return whether a change belongs to an example that has no golden files yet."""
        return isinstance(change, FileDifference) and change.folder.name in self.new


def _examine(folder: pathlib.Path, names: tuple[str, ...], *, complete: bool = False) -> _Examined:
    """Print the named examples, or all; report the error of each that fails."""
    examples = read_examples(folder, names)
    printed: dict[str, Files] = {}
    failures: list[TffcError] = []
    progress = step("printing", "golden examples")
    for number, example in enumerate(examples):
        progress(number, len(examples))
        try:
            # The output of the examples' modules must not mix with ours on stdout.
            with contextlib.redirect_stdout(sys.stderr):
                printed[example.name] = print_example(example, folder.resolve().parent)
        except TffcError as error:
            error.notes = (*error.notes, f"in the golden example {example.name!r}")
            report(error, debug=click.get_current_context().find_root().params["debug"])
            failures.append(error)
    no_step()
    left_over = [] if names else orphans(folder, [example.name for example in examples])
    changes = [*differences(folder, printed, complete=complete), *left_over]
    targets = {example.name: example.target for example in examples}
    return _Examined(targets, printed, changes, failures)


def _name_unsteady(examined: _Examined, changes: list[Change], folder: pathlib.Path) -> None:
    """Report which of the changed examples vary from trace to trace, and where."""
    from tffc.assurance.golden.steadiness import unsteady

    changed = {_top(change, folder).name for change in changes}
    traced = {name: files.programs for name, files in examined.printed.items() if name in changed}
    if not traced:
        return
    step(f"tracing {counted(len(traced), 'example')} once more, to see whether they vary")
    targets = {name: examined.targets[name] for name in traced}
    found = unsteady(targets, traced, folder.resolve().parent)
    no_step()
    for name, place in found.items():
        say(f"{name} is a different program each time it is traced" + (place and f": {place}"))


def _top(change: Change, folder: pathlib.Path) -> pathlib.Path:
    """Return the entry of the folder that a change is in: an example's folder, or an orphan."""
    return folder / change.path.relative_to(folder).parts[0]


def _show(change: Change) -> None:
    """Print a change, coloured like a diff."""
    for line in str(change).split("\n"):
        show_styled(line, fg=None if line.startswith(("---", "+++")) else COLORS.get(line[:1]))


def _annotations(examined: _Examined, folder: pathlib.Path) -> Iterator[str]:
    if examined.new:
        text = NONE_YET.format(", ".join(examined.new))
        yield annotation(folder / LIST, 1, "there are no golden files yet", text)
    for change in examined.changes:
        if examined.is_new(change):
            continue
        lines = str(change).split("\n")
        if len(lines) > LONGEST_ANNOTATION:
            lines = [*lines[:LONGEST_ANNOTATION], "..."]
        yield annotation(change.path, change.line, "the golden file differs", "\n".join(lines))
    for error in examined.failures:
        where = (None, None) if error.span is None else (error.span.file, error.span.line)
        yield annotation(*where, error.code, error.message)
