"""The output of commands: files, data on stdout and messages on stderr."""

from __future__ import annotations

import errno
import itertools
import pathlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tffc.cli.screen import colors, cut, has_colors, width_of, wrapped, wrapped_lines
from tffc.support.errors import LoadError
from tffc.support.printable import json_text, printable, printable_lines

if TYPE_CHECKING:
    from tffc.language.nodes import Node

LINES = 1000
"""How many lines are printed at once."""


def say(text: str) -> None:
    """Print a message to stderr, with unprintable characters escaped, wrapped on terminals."""
    lines = wrapped(printable(text), width_of(sys.stderr), "  ")
    click.echo("\n".join(lines), err=True)


def say_briefly(text: str) -> None:
    """Print a message to stderr, cut to the width of the terminal."""
    click.echo(cut(printable(text), width_of(sys.stderr)), err=True)


def show_line(text: str) -> None:
    """Print a line of data to stdout, with unprintable characters escaped."""
    show_text(printable(text))


def show_text(text: str) -> None:
    """Print lines of data to stdout."""
    click.echo("\n".join(wrapped_lines(text, width_of(sys.stdout))))


def show_styled(text: str, **style: Any) -> None:
    """Print lines of data to stdout in a style, with unprintable characters escaped."""
    for line in wrapped_lines(printable_lines(text), width_of(sys.stdout)):
        click.secho(line, color=colors(), **style)


def show_program(text: str) -> None:
    """Print the text of a program to stdout, coloured if that is a terminal with colours."""
    lines = "\n".join(wrapped_lines(text, width_of(sys.stdout)))
    if has_colors(sys.stdout):
        from tffc.cli.colors import colored

        lines = colored(lines)
    click.echo(lines, color=colors())


def show_lines(lines: Iterable[str]) -> None:
    """Print lines of data as `show_line` does, many at once."""
    rest = iter(lines)
    while some := list(itertools.islice(rest, LINES)):
        click.echo("\n".join(map(printable, some)))


def show_json(value: Any) -> None:
    """Print a value to stdout as JSON."""
    click.echo(json_text(value, indent=2))


def write_text(text: str, out: str | None) -> None:
    """Write a text to a file and report that; None or `-` is stdout.

    Raises:
      LoadError: it cannot be written.
    """
    if out is None or out == "-":
        click.echo(text, nl=False)
        return
    write_output(pathlib.Path(out), text.encode())
    say(f"wrote {out}")


def write_output(path: pathlib.Path, content: bytes) -> None:
    """Write a file completely or not at all.

    Raises:
      LoadError: it cannot be written, or is an input of the command.
    """
    from tffc.support.files.atomic import write_file

    try:
        write_file(path, content)
    except OSError as error:
        raise LoadError(
            "E851",
            f"cannot write {path}: {error.strerror}",
            help="start a reader first, or give the path of a file"
            if error.errno == errno.ENXIO
            else "give a path in an existing, writable folder, on a disk with enough space",
        ) from None


def write_computation(out: str, program: Node) -> None:
    """Write a Computation message to a file, with its resources beside it, and report that; `-` is
    stdout, where resources are left out.

    Raises:
      LoadError: it cannot be written.
    """
    from tffc.api.programs import resources_beside
    from tffc.language import wire
    from tffc.language.values.resources import write_files
    from tffc.language.wire.resources import resources_of, sizes_of

    data = wire.to_bytes(program)
    resources = sizes_of(resources_of([program]))
    if out == "-" and resources:
        say(f"left out {len(resources)} resources, which the message names; -o FILE.pb writes them")
    if out == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        write_files(resources, resources_beside(pathlib.Path(out)))
    except OSError as error:
        raise LoadError(
            "E851",
            f"cannot write the resources of {out}: {error.strerror}",
            help="give a path in an existing, writable folder, on a disk with enough space",
        ) from None
    write_output(pathlib.Path(out), data)
    say_briefly(f"wrote {out}: {program.type}")


def write_section_folder(programs: Iterable[Node], folder: pathlib.Path) -> None:
    """Write the compiled sections of programs to a folder, for typed texts to refer to.

    Raises:
      LoadError: they cannot be written.
    """
    from tffc.language.notation import write_sections

    try:
        for program in programs:
            write_sections(program, folder)
    except OSError as error:
        raise LoadError(
            "E851",
            f"cannot write sections to {folder}: {error.strerror}",
            help="give a writable folder, or a new path that can be created",
        ) from None
