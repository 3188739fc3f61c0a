"""The command `tffc`: its subcommands, and the exit code for every error."""

from __future__ import annotations

import importlib
import os
from typing import Any

import click

from tffc.cli.collector import collector_paused
from tffc.cli.command_line import remember_command_line
from tffc.cli.interrupts import begin_command, exit_code, no_substitutes, tell_interrupted
from tffc.cli.progress import shown
from tffc.cli.streams import READER_GONE, ReaderGone
from tffc.cli.usage import Commands
from tffc.support.debug import start_debugging
from tffc.support.files import inputs
from tffc.support.version import VERSION

COMMANDS = {
    "init": "Write a small starter project.",
    "trace": "Serialize a computation of a module.",
    "compile": "Compile a program to a form and write a bundle.",
    "audit": "Show what leaves the clients of a round, and check it against a policy.",
    "explore": "Write an HTML page about a round: stages, source, passes, graphs, audit.",
    "check": "Check whether a program compiles to a form.",
    "decompile": "Turn a bundle back into a computation of one round.",
    "print": "Show a computation or a bundle as S-expressions.",
    "parse": "Serialize a program from its typed text.",
    "opt": "Run passes over a program.",
    "passes": "List passes, or show one with an example.",
    "pipelines": "List or show pipelines.",
    "python": "Run a script with tffc under the name of TensorFlow Federated.",
    "run": "Run rounds of a bundle or a program on clients' data.",
    "report": "Write an HTML page about the run in a folder.",
    "show": "Show a state, an output or a run folder.",
    "data": "Describe or pack clients' data.",
    "export": "Export a bundle or a trained model to other runtimes.",
    "diff": "Show how two programs or bundles differ.",
    "verify": "Test that passes and forms keep what a program computes.",
    "prove": "Prove that a bundle computes what a program does.",
    "doctor": "Show which packages are installed, fit or are missing.",
    "explain": "Explain an error code.",
    "help": "Print a page of the documentation.",
    "golden": "Check, update or review golden files.",
}
"""The short help of each command, whose module has the same name and is imported when needed."""


class Application(Commands):
    """A command group that renders our errors, and distinguishes bugs from refusals by the exit
    code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            with collector_paused():
                module = importlib.import_module(f"tffc.cli.commands.{cmd_name}")
            command: click.Command = getattr(module, f"{cmd_name}_command")
            command.short_help = COMMANDS[cmd_name]
            self.add_command(command, cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **kwargs: Any
    ) -> click.Context:
        begin_command()
        inputs.begin()
        words = tuple(args)  # which parsing consumes
        try:
            with no_substitutes():
                context = super().make_context(info_name, args, *rest, **kwargs)
            remember_command_line(context, words)
            return context
        except click.ClickException as error:
            raise _seen(error) from None
        # click would report it differently.
        except KeyboardInterrupt:
            tell_interrupted()
            raise click.exceptions.Exit(exit_code()) from None

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if "_TFFC_COMPLETE" in os.environ:
            from tffc.cli.completion import answer_shells

            answer_shells()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        debug = ctx.params["debug"]
        try:
            with shown(), no_substitutes():
                return super().invoke(ctx)
        except click.ClickException as error:
            raise _seen(error) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            tell_interrupted()
            ctx.exit(exit_code())
        except ReaderGone:
            ctx.exit(READER_GONE)
        except Exception as error:  # noqa: BLE001 - whatever comes here is reported
            from tffc.cli.failures import report_failure

            ctx.exit(report_failure(error, debug=debug))


def _seen(error: click.ClickException) -> click.ClickException:
    # Imported late: only failures need it.
    from tffc.cli.failures import seen

    return seen(error)


@click.group(
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 3 undecided, 70 a defect in tffc, 130 "
    "interrupted, 141 broken pipe, 143 terminated.",
)
@click.option("--debug", is_flag=True, help="Show tffc's own frames in tracebacks.")
@click.version_option(VERSION, message="tffc %(version)s")
def application(debug: bool) -> None:
    """Compile and run federated programs written for TensorFlow Federated.

    MODULE is a path to a .py file or a dotted module name. NAME is a computation or an iterative
    process in it, or a part of a process, such as training.next. It may be omitted if only
    one in the module fits.

    \b
    Examples:
      tffc print examples/temperature/temperature.py:mean_temperature
      tffc compile examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce --out build/mean
      tffc run build/mean --data examples/temperature/sensors --rounds 1
    """
    if debug:
        start_debugging()
