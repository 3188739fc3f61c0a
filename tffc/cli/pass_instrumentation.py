"""Instrumentation of passes in `tffc opt` and `tffc compile`: printing, timing, verifying."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import platform
from collections.abc import Generator

import click

from tffc.api.programs import sections_beside
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say
from tffc.cli.timings import Timings
from tffc.language import notation
from tffc.language.nodes import Node
from tffc.passes import Pipeline
from tffc.passes.pipeline import Finished, Observer
from tffc.support.errors import LoadError, PipelineError, TffcError
from tffc.support.files.atomic import replace_file, write_file
from tffc.support.files.inputs import check_no_input
from tffc.support.near import nearest
from tffc.support.printable import json_text
from tffc.support.version import VERSION

ALL, CHANGE = "all", "change"


@dataclasses.dataclass(frozen=True, slots=True)
class PassInstrumentation:
    """The values of the options.

    Raises:
      click.UsageError: one has no effect without another.
    """

    verify_each: bool
    verify_roundtrip: bool = False
    start_from: str | None = None
    stop_after: str | None = None
    print_after: tuple[str, ...] = ()
    print_dir: pathlib.Path | None = None
    time_passes: bool = False
    timing_format: str = "table"
    reproducer: pathlib.Path | None = None
    is_replay: bool = False

    def __post_init__(self) -> None:
        if not self.time_passes:
            refuse_without_effect("add --time-passes", "timing_format")

    def part(self, pipeline: Pipeline) -> Pipeline:
        """Return the part of the pipeline that is to run.

        Raises:
          PipelineError: an option names a pass that is not in it.
        """
        part = pipeline.part(self.start_from, self.stop_after)
        names = [step.each.name for step in part.steps]
        for name in self.print_after:
            if name not in (ALL, CHANGE, *names):
                raise PipelineError(
                    "E385",
                    f"--print-after names {name!r}, which is not among the passes that run",
                    help=nearest(name, (ALL, CHANGE, *names)),
                )
        return part

    @contextlib.contextmanager
    def watch(self, program: Node) -> Generator[list[Observer]]:
        """Yield the observers of one run of passes over a program; print the times at the end."""
        timings = Timings()
        observers: list[Observer] = [timings] if self.time_passes else []
        if self.print_after or self.print_dir is not None:
            observers.append(self._print)
        if self.verify_each:
            from tffc.passes.instruments import verify_step

            observers.append(verify_step)
        if self.verify_roundtrip:
            from tffc.passes.instruments import verify_roundtrip

            verify_roundtrip(program)
            observers.append(lambda finished: verify_roundtrip(finished.after))
        if self.print_dir is not None:
            self._write("00-input", program)
        try:
            yield observers
        finally:
            if self.time_passes:
                is_table = self.timing_format == "table"
                click.echo(timings.table() if is_table else json_text(timings.steps), err=True)

    def _print(self, finished: Finished) -> None:
        wanted = self.print_after or (ALL,)
        name = finished.step.each.name
        changed = CHANGE in wanted and finished.before != finished.after
        if not (changed or ALL in wanted or name in wanted):
            return
        if self.print_dir is not None:
            self._write(f"{finished.position:02}-{name}", finished.after)
        else:
            say(f"; after {name}, step {finished.position}")
            click.echo(notation.formatted(finished.after), err=True)

    def _write(self, name: str, program: Node) -> None:
        assert self.print_dir is not None
        path = self.print_dir / f"{name}.sexpr"
        try:
            self.print_dir.mkdir(parents=True, exist_ok=True)
            notation.write_sections(program, sections_beside(path))
            check_no_input(path)
            replace_file(path, (notation.typed(program) + "\n").encode(), is_shared=True)
        except OSError as error:
            raise LoadError(
                "E386",
                f"cannot write to the folder {self.print_dir}: {error.strerror}",
                help="give a writable folder, or a new path that can be created",
            ) from None

    def on_failure(self, rest: Pipeline, program: Node, error: Exception) -> None:
        """Write the reproducer; if that fails, the failure of the pass is still reported."""
        if self.is_replay:
            return
        from tffc.cli.reproducer import Reproducer  # which few runs need

        failure = f"{type(error).__name__}: {error}"
        if isinstance(error, TffcError):
            failure = f"{error.code}: {error.message}"
        made = Reproducer(
            program,
            str(rest),
            rest.given,
            failure,
            versions(rest),
            self.verify_each,
            self.verify_roundtrip,
        )
        try:
            path = self.reproducer or pathlib.Path(made.file_name)
            write_file(path, made.encode().encode())
        except (OSError, TffcError) as failed:
            say(f"no reproducer was written: {failed}")
        else:
            say(f"wrote {path}; replay with `tffc opt --reproduce {path}`")


def versions(pipeline: Pipeline) -> dict[str, str]:
    """Return the versions of tffc, of Python and of the packages of a pipeline's passes."""
    packages = {step.each.package for step in pipeline.steps} - {"tffc"}
    found = {name: _version(name) for name in sorted(packages)}
    return {"tffc": VERSION, "python": platform.python_version(), **found}


def _version(package: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        # A package may have entry points but no metadata, for example in a folder on the path.
        return "unknown"
