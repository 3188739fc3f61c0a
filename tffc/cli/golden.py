"""`tffc golden`: hold what examples print and compile to against the files in the repository."""

from __future__ import annotations

import contextlib
import pathlib
import sys

import click

_folder = click.option(
    "--folder",
    default="golden",
    show_default=True,
    metavar="DIR",
    type=click.Path(path_type=pathlib.Path),
    help="The folder of the golden files.",
)
_names = click.argument("names", nargs=-1, metavar="[NAME...]")


@click.group("golden", short_help="Check or update golden files.")
def golden_group() -> None:
    """Holds what each example prints and compiles to against files in the repository.

    The folder's golden.yaml lists the examples.  A NAME limits the command to one of them.
    """


@golden_group.command("check", short_help="Show what differs; exit 1 if anything does.")
@_folder
@_names
def check_command(folder: pathlib.Path, names: tuple[str, ...]) -> None:
    """Prints a unified diff for every file that differs, and exits with 1 if one does."""
    from tffc import golden

    with _talk():
        examples = golden.read_examples(folder, names)
        found = list(golden.differences(folder, examples))
    left_over = [] if names else golden.orphans(folder)
    for difference in found:
        click.echo(difference)
    for name in left_over:
        click.echo(f"{folder / name} belongs to no example")
    if found or left_over:
        click.echo(
            f"{len(found)} files differ, {len(left_over)} are left over; "
            "accept with `tffc golden update`",
            err=True,
        )
        raise click.exceptions.Exit(1)
    click.echo(f"{len(examples)} examples are as they were", err=True)


@golden_group.command("update", short_help="Make the golden files what is printed now.")
@_folder
@_names
def update_command(folder: pathlib.Path, names: tuple[str, ...]) -> None:
    """Writes what is printed now, and removes what belongs to no example.

    Refused where the environment variable CI is set: a change of golden files is reviewed.
    """
    from tffc import golden

    with _talk():
        changed = golden.update(folder, golden.read_examples(folder, names))
    for difference in changed:
        click.echo(f"{folder / difference.path}", err=True)
    left_over = [] if names else golden.orphans(folder)
    golden.remove(folder, left_over)
    for name in left_over:
        click.echo(f"{folder / name} removed", err=True)
    click.echo(f"{len(changed) + len(left_over)} changes", err=True)


@contextlib.contextmanager
def _talk():
    """What the examples' modules print goes to stderr, and TensorFlow stays silent."""
    from tffc.execution.chatter import quiet_import

    quiet_import()
    with contextlib.redirect_stdout(sys.stderr):
        yield
