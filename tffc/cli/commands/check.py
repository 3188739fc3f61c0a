"""`tffc check`: check whether a program compiles to a form."""

from __future__ import annotations

import click

from tffc.backends import compile_form
from tffc.backends.compiler import has_discount
from tffc.backends.forms.discount import check_discountable
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.consent import tell_effects
from tffc.cli.flags import facts_of, place_of
from tffc.cli.options import (
    form_option,
    json_option,
    show_repeatedly,
    size_option,
    tff_source_option,
    watch_option,
)
from tffc.cli.output import say, show_json
from tffc.cli.progress import step
from tffc.cli.sources import read_round
from tffc.support.errors import FormError, GraphError, VerificationError


@click.command("check")
@click.argument(
    "source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr", shell_complete=complete_program
)
@form_option("The form to compile to.", required=True)
@click.option("--allow-impure-duplicates", is_flag=True, help="As for tffc compile.")
@json_option
@watch_option
@size_option
@tff_source_option
def check_command(
    source: str, form: str, allow_impure_duplicates: bool, as_json: bool, watch: bool
) -> None:
    """Compile a program without writing anything.

    Exits with 0 if the form can express it; otherwise says why it cannot, and exits with 1.

    \b
    Examples:
      tffc check examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce
      tffc check round.pb --form distribute-aggregate --json
    """
    show_repeatedly(source, watch, lambda: _check(source, form, allow_impure_duplicates, as_json))


@collector_paused()
def _check(source: str, form: str, allow_impure_duplicates: bool, as_json: bool) -> None:
    read = read_round(source, form)
    program = read.computation
    tell_effects(read.parts())
    step(f"compiling {source} to {form}")
    try:
        compiled = compile_form(program, form, allow_impure_duplicates=allow_impure_duplicates)
        if has_discount(form, read.discount):
            check_discountable(program)
    except (FormError, GraphError, VerificationError) as error:
        if not as_json:
            raise
        show_json({"form": form, "compatible": False, **facts_of(error), **place_of(error.span)})
        raise click.exceptions.Exit(error.exit_code) from None
    if as_json:
        parts = {name: str(part.type) for name, part in compiled.components().items()}
        show_json({"form": form, "compatible": True, "components": parts})
    else:
        say(f"{source} can be compiled to {form}")
