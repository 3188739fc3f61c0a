"""Options shared by several commands, and the refusal of options without effect."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from tffc.cli.completion import complete_pass, complete_printed
from tffc.cli.usage import Choice, Member
from tffc.support.errors import LanguageValueError

PATH = click.Path(path_type=pathlib.Path)

Decorator = Callable[[Any], Any]
"""A decorator that adds options to a command."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


watch_option = click.option(
    "--watch",
    is_flag=True,
    help="Run again whenever the program or a module in its folder is saved, until Ctrl-C.",
)


def _take_tff_source(context: click.Context, option: click.Parameter, folder: str | None) -> None:
    if folder is not None:
        # Imported late: with it come the names of TFF.
        from tffc.tff.releases import use_source

        use_source(folder)


tff_source_option = click.option(
    "--tff-source",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    expose_value=False,
    callback=_take_tff_source,
    help="Take TFF's own libraries, such as tff.learning, from a checkout of its repository.",
)
"""For commands that load a module: where its `tff.learning` comes from."""


def path_option(*names: str, metavar: str, help: str, **details: Any) -> Decorator:
    """Return an option that takes a path."""
    return click.option(*names, metavar=metavar, type=PATH, help=help, **details)


def form_option(help: str, *, required: bool = False) -> Decorator:
    """Return the option `--form`: the form to compile a round to."""
    # Imported late: commands without the option do not need it.
    from tffc.backends.forms.kinds import FORMS

    return click.option("--form", required=required, type=Member(FORMS), help=help)


def show_repeatedly(source: str, watch: bool, show: Callable[[], object]) -> None:
    """Call `show` once, or with `--watch` whenever the program is saved."""
    if watch:
        # Imported late: only --watch needs it.
        from tffc.cli.watch import watch as watch_source

        watch_source(source, show)
    show()


def pipeline_options(instead: str) -> Decorator:
    """Return the options `--pipeline` and `--passes`; `instead` is appended to the help of
    `--pipeline`."""
    return together(
        path_option(
            "--pipeline", metavar="FILE.yaml", help=f"A file with the passes to run{instead}."
        ),
        click.option(
            "--passes",
            shell_complete=complete_pass,
            metavar="'A,B{OPTION=VALUE},C'",
            help="The passes to run. `tffc passes` lists them.",
        ),
    )


def together(*options: Decorator) -> Decorator:
    """Return one decorator that adds all of these options to a command, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


compilation_options = together(
    path_option(
        "--initialize",
        metavar="FILE.pb",
        help="The computation of the first state, for a program from a .pb file.",
    ),
    click.option(
        "--allow-impure-duplicates",
        is_flag=True,
        help="Allow random or effectful work to run in several components where the form requires "
        "it.",
    ),
)
"""Adds the options of a compilation beside its form and its passes."""

_INSTRUMENTATION = (
    click.option(
        "--start-from",
        shell_complete=complete_pass,
        metavar="PASS",
        help="Start with this pass; the program must be ready for it.",
    ),
    click.option(
        "--stop-after",
        metavar="PASS",
        shell_complete=complete_pass,
        help="Stop after this pass.",
    ),
    click.option(
        "--print-after",
        shell_complete=complete_printed,
        multiple=True,
        metavar="PASS|all|change",
        help="Print the program to stderr after this pass, after all passes, or after those that "
        "change it. Can be repeated.",
    ),
    path_option(
        "--print-dir",
        metavar="DIR",
        help="Write these programs and the initial one to files in this folder instead; after all "
        "passes unless --print-after is given.",
    ),
    click.option(
        "--verify-roundtrip",
        is_flag=True,
        help="Check at the start and after each pass that writing and reading the program, as "
        "text and as a message, does not change it.",
    ),
    click.option(
        "--time-passes",
        is_flag=True,
        help="Print to stderr the time and the number of nodes for each pass.",
    ),
    click.option(
        "--timing-format",
        type=Choice(("table", "json")),
        default="table",
        show_default=True,
        help="The format of the times.",
    ),
    path_option(
        "--reproducer",
        metavar="FILE",
        help="Where to write a file that replays a failed pass.  [default: "
        "tffc-reproducer-HASH.txt in this folder]",
    ),
)


def instrumentation_options(verify_each: bool) -> Decorator:
    """Return options for passes; the command gets them as keywords for `PassInstrumentation`."""
    verify = click.option(
        "--verify-each/--no-verify-each",
        default=verify_each,
        show_default=True,
        envvar="TFFC_VERIFY_EACH",
        show_envvar=True,
        help="Check after each pass that the program is well formed, keeps its type, and "
        "satisfies what the pass ensures.",
    )

    return together(verify, *_INSTRUMENTATION)


class EffectKinds(click.ParamType[frozenset[str]]):
    """A comma-separated list of kinds of effects."""

    name = "kinds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[str]:
        from tffc.runtime.effects.consent import KINDS, read_kinds

        if not isinstance(value, str):
            return value
        try:
            return read_kinds([name.strip() for name in value.split(",")])
        except LanguageValueError as error:
            self.fail(f"{error.message}; the kinds are {', '.join(KINDS)}", param, ctx)


def consent_option(help: str) -> Decorator:
    """Return the option `--allow-effects`: the allowed side effects of a program."""
    return click.option(
        "--allow-effects", metavar="KINDS", type=EffectKinds(), default=frozenset(), help=help
    )


def size_option(command: Any) -> Any:
    """Add the option `--max-size` to a command: the limit on the size of compiled programs.

    The limit holds until the command ends.
    """
    return click.option(
        "--max-size",
        metavar="N",
        type=click.IntRange(min=1),
        expose_value=False,
        callback=_limit_size,
        help="Refuse a program that would have more than N parts after expanding everything it "
        "shares.  [default: 4194304]",
    )(command)


def _limit_size(context: click.Context, parameter: click.Parameter, value: int | None) -> None:
    if value is not None:
        from tffc.language.size import size_limit

        context.with_resource(size_limit(value))


def refuse_without_effect(reason: str, *names: str) -> None:
    """Refuse options that were given on the command line although they have no effect.

    `names` are parameter names.

    Raises:
      click.UsageError: one of them was given.
    """
    context = click.get_current_context()
    given = [
        f"'{max(each.opts, key=len)}'"
        for each in context.command.params
        if each.name in names
        and context.get_parameter_source(each.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        verb = "has" if len(given) == 1 else "have"
        raise click.UsageError(f"{' and '.join(given)} {verb} no effect: {reason}", context)
