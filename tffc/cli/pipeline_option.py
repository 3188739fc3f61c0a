"""The options that choose a pipeline: a file, or the passes themselves."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tffc.passes import Pipeline


def pipeline_options(instead: str) -> Callable[[Any], Any]:
    """Adds `--pipeline` and `--passes` to a command; `instead` says what runs without them."""
    options = (
        click.option(
            "--pipeline",
            metavar="FILE.yaml",
            type=click.Path(path_type=pathlib.Path),
            help=f"The passes to run, in a file{instead}.",
        ),
        click.option(
            "--passes",
            metavar="'A,B{OPTION=VALUE},C'",
            help="The passes to run, as text.  `tffc passes` lists them.",
        ),
    )

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def read_pipeline(
    file: pathlib.Path | None, text: str | None, given: tuple[str, ...] | None = None
) -> Pipeline | None:
    """The pipeline that the two options ask for, for programs of which `given` holds; None where
    neither is given.

    Raises:
      PipelineError: the file can not be read, or what it or the text says is no pipeline.
    """
    from tffc.backends import passes
    from tffc.passes import parse_passes
    from tffc.passes.pipeline import GIVEN

    given = GIVEN if given is None else given
    if file is not None and text is not None:
        raise click.UsageError("--pipeline and --passes exclude each other")
    if text is not None:
        return parse_passes(text, passes.all_passes(), given)
    return None if file is None else passes.read_pipeline(file, given)
