"""The command `tffc`: its subcommands, and what becomes of every error that leaves one."""

from __future__ import annotations

import importlib
import os
import traceback
from typing import Any

import click

from tffc.cli.diagnostics import report
from tffc.cli.interrupts import INTERRUPTED, tell_interrupted
from tffc.cli.near import Commands, all_missing
from tffc.cli.progress import shown
from tffc.cli.streams import READER_GONE, ReaderGone
from tffc.errors import LoadError, TffcError
from tffc.printable import printable_lines
from tffc.version import VERSION

DEFECT = 70

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
    "show": "tffc.cli.show:show_command",
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

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.ClickException as error:
            raise _seen(error) from None
        except KeyboardInterrupt:  # which click would call something else
            tell_interrupted()
            raise click.exceptions.Exit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        debug = ctx.params["debug"]
        try:
            with shown():
                return super().invoke(ctx)
        except click.ClickException as error:
            raise _seen(error) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except TffcError as error:
            report(error, debug=debug)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            tell_interrupted()
            ctx.exit(INTERRUPTED)
        except ReaderGone:
            ctx.exit(READER_GONE)
        except OSError as error:
            report(refused_by_system(error), debug=debug)
            ctx.exit(LoadError.exit_code)
        except MemoryError as error:
            report(out_of_memory(error), debug=debug)
            ctx.exit(LoadError.exit_code)
        except Exception as error:  # noqa: BLE001 - whatever else comes here is a defect of ours
            _report_defect(error, debug=debug)
            ctx.exit(DEFECT)


def _seen(error: click.ClickException) -> click.ClickException:
    """What click refuses, whole, with escapes for what cannot be seen in the words it quotes."""
    said = error.format_message()
    whole = all_missing(error) if isinstance(error, click.UsageError) else said
    seen = printable_lines(whole)
    if seen == said:
        return error
    if isinstance(error, click.UsageError):
        return click.UsageError(seen, error.ctx)
    return click.ClickException(seen)


def refused_by_system(error: OSError) -> LoadError:
    """What the system refused where nobody expected it to, which is no defect."""
    files = [str(file) for file in (error.filename, error.filename2) if file is not None]
    what = f"cannot use {' and '.join(files)}" if files else "the system refused"
    refusal = LoadError(
        "E811",
        f"{what}: {error.strerror or error}",
        help="`tffc --debug ...` shows what was being done",
    )
    refusal.__context__ = error
    return refusal


def out_of_memory(error: MemoryError) -> LoadError:
    """Return the refusal of what needs more memory than the process may have."""
    refusal = LoadError(
        "E815",
        "this needs more memory than there is",
        help="give the process more memory, or less to do: a part of a file, or fewer clients",
    )
    refusal.__context__ = error
    return refusal


def _report_defect(error: Exception, *, debug: bool) -> None:
    if debug:
        click.echo(printable_lines("".join(traceback.format_exception(error))), err=True, nl=False)
    said = "".join(traceback.format_exception_only(error)).rstrip("\n")
    click.echo(printable_lines(f"error: a defect in tffc: {said}"), err=True)
    if not debug:
        click.echo("  = help: run `tffc --debug ...` and report what it prints", err=True)


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 70 a defect in tffc, 130 interrupted, "
    "141 nobody reads the output any more.",
)
@click.option("--debug", is_flag=True, help="Show the frames of tffc itself in tracebacks.")
@click.version_option(VERSION, message="tffc %(version)s")
def application(debug: bool) -> None:
    """A compiler for federated programs written as for TensorFlow Federated.

    MODULE is a path to a .py file or a dotted module name; NAME is a computation or an iterative
    process in it, or a part of one such as training.next, and can be left out where there is only
    one, or where a round is needed and only one can be that.

    \b
    Examples:
      tffc print examples/temperature/temperature.py:mean_temperature
      tffc compile examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce --out build/mean
      tffc run build/mean --data examples/temperature/sensors --rounds 1
    """
    if debug:
        os.environ["TFFC_DEBUG"] = "1"
