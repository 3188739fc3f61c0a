"""The command `tffc`: its subcommands, and what becomes of every error that leaves one."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Any

import click

from tffc.cli.diagnostics import report
from tffc.cli.near import Commands
from tffc.errors import TffcError
from tffc.version import VERSION

DEFECT, INTERRUPTED = 70, 130

COMMANDS = {
    "trace": "tffc.cli.trace:trace_command",
    "compile": "tffc.cli.compile:compile_command",
    "check": "tffc.cli.check:check_command",
    "decompile": "tffc.cli.decompile:decompile_command",
    "print": "tffc.cli.print:print_command",
    "parse": "tffc.cli.parse:parse_command",
    "opt": "tffc.cli.opt:opt_command",
    "passes": "tffc.cli.passes:passes_command",
    "pipelines": "tffc.cli.passes:pipelines_group",
    "run": "tffc.cli.run:run_command",
    "data": "tffc.cli.data:data_group",
    "export": "tffc.cli.export:export_command",
    "diff": "tffc.cli.diff:diff_command",
    "verify": "tffc.cli.verify:verify_command",
    "explain": "tffc.cli.explain:explain_command",
    "golden": "tffc.cli.golden:golden_group",
}
"""Where each command is.  Only the one that is called is imported, and all for the help."""


class Application(Commands):
    """A group that renders our errors, and tells defects from refusals by the exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, _, name = COMMANDS[cmd_name].partition(":")
            self.add_command(getattr(importlib.import_module(module), name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        debug = ctx.params["debug"]
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except TffcError as error:
            report(error, debug=debug)
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

    \b
    Examples:
      tffc print examples/temperature/temperature.py:mean_temperature
      tffc compile examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce --out build/mean
      tffc run build/mean --data examples/temperature/sensors --rounds 1
    """
    if debug:
        os.environ["TFFC_DEBUG"] = "1"
