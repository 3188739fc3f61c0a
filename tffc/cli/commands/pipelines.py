"""`tffc pipelines`: list the passes that compiling to each form runs."""

from __future__ import annotations

import click

from tffc.backends.forms.kinds import FORMS
from tffc.cli.completion import complete_form
from tffc.cli.usage import Commands
from tffc.passes.pipeline_text import default_text
from tffc.passes.table import default_pipeline
from tffc.support.errors import PipelineError
from tffc.support.near import nearest


@click.group(
    "pipelines",
    cls=Commands,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",  # the default from click 8.5 on
)
@click.pass_context
def pipelines_command(ctx: click.Context) -> None:
    """List the pipeline of each form with its passes.

    \b
    Examples:
      tffc pipelines
      tffc pipelines show mapreduce > mine.yaml
    """
    if ctx.invoked_subcommand is not None:
        return

    for name in sorted(FORMS):
        click.echo(f"{name}: {default_pipeline()}")


@pipelines_command.command("show", short_help="Print the pipeline of a form as YAML.")
@click.argument("form", shell_complete=complete_form)
def show_command(form: str) -> None:
    """Print the pipeline of a form as YAML, for a file to edit and pass to --pipeline.

    \b
    Examples:
      tffc pipelines show mapreduce > mine.yaml
    """
    if form not in FORMS:
        raise PipelineError("E361", f"there is no pipeline {form!r}", help=nearest(form, FORMS))
    click.echo(default_text(), nl=False)
