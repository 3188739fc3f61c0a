"""The command `tffc`: its subcommands, and what becomes of every error that leaves one."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import click

from tffc.cli.check import check_command
from tffc.cli.compile import compile_command
from tffc.cli.decompile import decompile_command
from tffc.cli.diagnostics import render
from tffc.cli.explain import explain_command
from tffc.cli.golden import golden_group
from tffc.cli.opt import opt_command
from tffc.cli.parse import parse_command
from tffc.cli.passes import passes_command, pipelines_group
from tffc.cli.print import print_command
from tffc.cli.run import run_command
from tffc.cli.trace import trace_command
from tffc.errors import LoadError, TffcError
from tffc.version import VERSION

DEFECT, INTERRUPTED = 70, 130


class Application(click.Group):
    """A group that renders our errors, and tells defects from refusals by the exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        debug = ctx.params["debug"]
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except TffcError as error:
            _report(error, debug=debug)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has seen enough.  Python would still flush what is left.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:  # noqa: BLE001 - whatever else comes here is a defect of ours
            _report_defect(error, debug=debug)
            ctx.exit(DEFECT)


def _report(error: TffcError, *, debug: bool) -> None:
    if debug:
        click.echo("".join(traceback.format_exception(error)), err=True)
    elif isinstance(error, LoadError) and error.__cause__ is not None:
        # What the user's own code raised; the front end has taken our frames out of it.
        click.echo("".join(traceback.format_exception(error.__cause__)), err=True)
    click.echo(render(error), err=True, color=None if "NO_COLOR" not in os.environ else False)


def _report_defect(error: Exception, *, debug: bool) -> None:
    if debug:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    click.echo(f"error: a defect in tffc: {type(error).__name__}: {error}", err=True)
    if not debug:
        click.echo("  = help: run `tffc --debug ...` and report what it prints", err=True)


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 70 a defect in tffc, 130 interrupted.",
)
@click.option("--debug", is_flag=True, help="Show the frames of tffc itself in tracebacks.")
@click.version_option(VERSION, message="tffc %(version)s")
def application(debug: bool) -> None:
    """A compiler for federated programs written as for TensorFlow Federated.

    MODULE is a path to a .py file or a dotted module name; NAME is a computation or an iterative
    process in it, and can be left out where there is only one.
    """
    if debug:
        os.environ["TFFC_DEBUG"] = "1"


for _command in (
    trace_command,
    compile_command,
    check_command,
    decompile_command,
    print_command,
    parse_command,
    opt_command,
    passes_command,
    pipelines_group,
    run_command,
    explain_command,
    golden_group,
):
    application.add_command(_command)
