"""The work of `tffc diff --breaking`: classifying changes of a round by what they break."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence

import click

from tffc.api.programs import TEXTS
from tffc.assurance.audit.breaking import Breaks, Change, changes
from tffc.assurance.audit.bundles import read_for_audit
from tffc.assurance.audit.report import source_name
from tffc.assurance.audit.sarif import Finding, Run, analyzed, sarif
from tffc.assurance.audit.text import place
from tffc.assurance.proof.prove import Answer
from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.annotations import annotation
from tffc.cli.output import show_json, show_line
from tffc.cli.progress import step
from tffc.cli.sources import read_computation, read_round_or_bundle
from tffc.language.nodes import Node
from tffc.support.errors import LoadError, shown_path

BROKEN = 2
"""The exit code if a change breaks something in `--fail-on`."""

GIT = "git:"
"""The prefix of a revision in the history of a repository."""


def show_changes(
    first: str, second: str, form: str | None, fail_on: str | None, format: str
) -> None:
    """Print the changes from one round to another; exit with 2 if one breaks a kind in
    `fail_on`."""
    failing = _kinds(fail_on)
    new, form = read_round_or_bundle(second, form)
    old = older_round(first, second, form)
    step(f"comparing {first} with {second}")
    shown = [*changes(old, new, form), *unproved(second)]
    _show(shown, failing, format, second)
    if any(change.breaks in failing for change in shown):
        raise click.exceptions.Exit(BROKEN)


def unproved(source: str) -> Iterator[Change]:
    """Yield a change if the components of a bundle are not proved to compute its program, because
    then the program may say nothing of what runs."""
    if pathlib.Path(source).is_dir():
        reading = read_for_audit(read_bundle(pathlib.Path(source)))
        if reading.error is not None:
            is_other = reading.proof.answer is Answer.DIFFERENT
            breaks = Breaks.RESULT if is_other else Breaks.INSIDE
            yield Change(breaks, "bundle", f"is read from its components: {reading.error.message}")


def _kinds(given: str | None) -> frozenset[Breaks]:
    if given is None:
        return frozenset(Breaks) - {Breaks.INSIDE}
    names = [name.strip().upper() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in Breaks.__members__:
            known = ", ".join(each.lower() for each in Breaks.__members__)
            raise click.UsageError(f"'--fail-on' takes {known}, not {name.lower()!r}")
    return frozenset(Breaks[name] for name in names)


# Older versions.


def older_round(older: str, source: str, form: str) -> Node:
    """Return an older version of the round in a source: that in another one, or of a revision."""
    if older.startswith(GIT):
        return _at_revision(older.removeprefix(GIT), source, form)
    return read_round_or_bundle(older, form)[0]


def lines_at(revision: str, path: str) -> list[str]:
    """Return the lines of a file at a revision of its repository; those of today if it was not
    there."""
    file = pathlib.Path(path).resolve()
    try:
        commit = _commit(file.parent, revision)
        shown = _git(path, file.parent, "show", f"{commit}:./{file.name}")
        return shown.decode().splitlines()
    except (LoadError, UnicodeDecodeError):
        return file.read_text(errors="replace").splitlines() if file.is_file() else []


def _at_revision(revision: str, source: str, form: str) -> Node:
    """Return a round at a revision of its repository.

    A module is traced in a separate process, because its modules have the same names as the current
    ones.
    """
    path, _, name = source.partition(":")
    folder = pathlib.Path(path).resolve()
    top = _git("the repository", folder.parent, "rev-parse", "--show-toplevel")
    root = top.decode().strip()
    commit = _commit(folder.parent, revision)
    with tempfile.TemporaryDirectory() as scratch:
        archive = pathlib.Path(scratch, "archive.tar")
        archive.write_bytes(_git(revision, pathlib.Path(root), "archive", "--format=tar", commit))
        tree = pathlib.Path(scratch, "tree")
        with tarfile.open(archive) as tar:
            entries = [each for entry in tar if (each := _inside(entry, str(tree)))]
            tar.extraction_filter = lambda entry, _: entry  # they are filtered already
            tar.extractall(tree, entries)
        old = tree / folder.relative_to(root)
        if old.is_dir() or path.endswith((".pb", *TEXTS)):
            return read_round_or_bundle(str(old), form)[0]
        traced = pathlib.Path(scratch, "old.pb")
        module = str(old.relative_to(tree))
        _trace(f"{module}:{name}" if name else module, tree, traced)
        return read_computation(traced)


def _commit(folder: pathlib.Path, revision: str) -> str:
    """Return the digest of a revision, which no other command of git takes for an option."""
    named = f"{revision}^{{commit}}"
    command = ("rev-parse", "--verify", "--end-of-options", named)
    return _git(revision, folder, *command).decode().strip()


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Return an entry of an archive as it is unpacked; None for one that leads out of the folder,
    such as an absolute link, or is a device.

    Python before 3.11.4 cannot tell where links lead: there, none is unpacked.
    """
    if not hasattr(tarfile, "data_filter"):
        path = pathlib.PurePath(member.name)
        is_inside = not path.is_absolute() and ".." not in path.parts
        return member if is_inside and (member.isfile() or member.isdir()) else None
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _git(what: str, folder: pathlib.Path, *args: str) -> bytes:
    """Return what git prints; errors say that `what` cannot be read."""
    try:
        return subprocess.run(
            ("git", "-C", str(folder), *args), capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        raise LoadError(
            "E858",
            f"cannot read {what} from git: {said.decode(errors='replace').strip()}",
            help="give git:REF with a revision of the repository that B is in",
        ) from None


def _trace(target: str, tree: pathlib.Path, traced: pathlib.Path) -> None:
    # With -P, Python does not take a package `tffc` of the tree for this one.
    command = (sys.executable, "-P", "-m", "tffc", "trace", "-o", str(traced), "--", target)
    ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LoadError(
            "E858",
            f"the old version of {target} cannot be traced",
            notes=tuple(ran.stderr.strip().splitlines()[:5]),
            help="compile it with the tffc version of that revision, and give the bundle",
        )


# Output.


def _show(found: Sequence[Change], failing: frozenset[Breaks], format: str, source: str) -> None:
    match format:
        case "json":
            show_json([_plain(change, failing) for change in found])
        case "sarif":
            click.echo(_sarif(found, failing, source), nl=False)
        case "github":
            for change in found:
                if change.breaks in failing:
                    file, line = _file_and_line(change, source)
                    title = f"tffc diff: {change.breaks.name}"
                    click.echo(annotation(file, line, title, f"{change.subject} {change.message}"))
        case _:
            for change in found:
                at = "" if change.span is None else f"{place(change.span)}: "
                show_line(f"{change.breaks.name}: {at}{change.subject} {change.message}")


def _file_and_line(change: Change, source: str) -> tuple[str, int]:
    if change.span is None:
        return source.partition(":")[0], 1
    return shown_path(change.span.file), change.span.line


def _plain(change: Change, failing: frozenset[Breaks]) -> dict[str, object]:
    file, line = (None, None) if change.span is None else _file_and_line(change, "")
    return {
        "breaks": change.breaks.name,
        "fails": change.breaks in failing,
        "subject": change.subject,
        "message": change.message,
        "file": file,
        "line": line,
    }


def _sarif(found: Sequence[Change], failing: frozenset[Breaks], source: str) -> str:
    findings = (
        Finding(
            change.breaks.name,
            "error" if change.breaks in failing else "note",
            f"{change.subject} {change.message}",
            change.span,
        )
        for change in found
    )
    run = Run(
        tool="tffc diff",
        category=source_name(source),
        source=pathlib.Path(source.partition(":")[0]),
        rules={each.name: each.value for each in Breaks},
        help="changes",
        inputs=analyzed(source),
    )
    return sarif(run, findings)
