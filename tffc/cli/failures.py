"""Reporting the errors that leave a command."""

from __future__ import annotations

import traceback

import click

from tffc.cli.diagnostics import report, traceback_text
from tffc.cli.usage import all_missing
from tffc.support.errors import LoadError, TffcError
from tffc.support.printable import printable_lines

DEFECT = 70
"""The exit code for a bug of ours."""


def report_failure(error: Exception, *, debug: bool) -> int:
    """Report an error on stderr; return the exit code."""
    if isinstance(error, OSError) and not isinstance(error, TffcError):
        error = refused_by_system(error)
    elif isinstance(error, MemoryError):
        error = out_of_memory(error)
    if isinstance(error, TffcError):
        report(error, debug=debug)
        return error.exit_code
    _report_defect(error, debug=debug)
    return DEFECT


def seen(error: click.ClickException) -> click.ClickException:
    """Return an error of click with its complete message, unprintable characters escaped."""
    said = error.format_message()
    whole = all_missing(error) if isinstance(error, click.UsageError) else said
    shown = printable_lines(whole)
    if shown == said:
        return error
    if isinstance(error, click.UsageError):
        return click.UsageError(shown, error.ctx)
    return click.ClickException(shown)


def refused_by_system(error: OSError) -> LoadError:
    """Return our error for an OSError, which is not a bug."""
    files = [str(file) for file in (error.filename, error.filename2) if file is not None]
    what = f"cannot use {' and '.join(files)}" if files else "the system refused"
    refusal = LoadError(
        "E811",
        f"{what}: {error.strerror or error}",
        help="`tffc --debug ...` shows where it happened",
    )
    refusal.__context__ = error
    return refusal


def out_of_memory(error: MemoryError) -> LoadError:
    """Return our error for a MemoryError."""
    refusal = LoadError(
        "E815",
        "this needs more memory than is available",
        help="give the process more memory, or less to do: a part of a file, or fewer clients",
    )
    refusal.__context__ = error
    return refusal


def _report_defect(error: Exception, *, debug: bool) -> None:
    if debug:
        click.echo(printable_lines(traceback_text(error)), err=True, nl=False)
    said = "".join(traceback.format_exception_only(error)).rstrip("\n")
    click.echo(printable_lines(f"error: a defect in tffc: {said}"), err=True)
    if not debug:
        click.echo("  = help: run `tffc --debug ...` and report what it prints", err=True)
