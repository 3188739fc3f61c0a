"""Reading the argument of a command, with progress: a module, a serialized computation or a bundle.

Beside what the library reads, `-` is stdin, and `git:REF:SOURCE` a source at a revision.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys

import click

from tffc.api import programs
from tffc.api.programs import MAX_TEXT_BYTES, TEXTS, Fits, Program, decode
from tffc.cli.output import say
from tffc.cli.progress import step
from tffc.cli.revisions import (
    at_revision,
    checked_out,
    is_revision,
    read_at_revision,
    read_checked_out,
    revision_of,
)
from tffc.cli.streams import read_stdin
from tffc.graphs.proto.encoding import MAX_MESSAGE
from tffc.language.nodes import Node

STDIN = "-"


def read_round(source: str, form: str | None) -> Program:
    """Read a round of the form, or of any form if `form` is None, as `read_program` does.

    If a module has several computations, takes the only one that is a round, or else the only one
    that means one, and reports the choice on stderr.
    """
    if is_revision(source):
        step(f"tracing {source}")
        return read_at_revision(revision_of(source), form, is_round=True).as_round(form)
    return read_program(source, programs.fits_round(form)).as_round(form)


def read_program(source: str, fits: Fits = None) -> Program:
    """Return the program in a `.pb` file, a typed text, or a module, perhaps at a revision; `-` is
    stdin.

    Raises:
      TffcError: there is no such file or module, or it does not hold a program.
    """
    if source == STDIN:
        return Program(decode(read_stdin(MAX_MESSAGE), "stdin"))
    if is_revision(source):
        step(f"tracing {source}")
        return read_at_revision(revision_of(source), None, is_round=False)
    is_file = source.endswith((".pb", *TEXTS))
    if is_file or not os.path.isdir(source):
        step(f"{'reading' if is_file else 'tracing'} {source}")
    # The output of a user's module must not mix with our data on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        program = programs.read_program(source, fits)
    if program.passed_over:
        others = ", ".join(program.passed_over)
        say(f"took {source}:{program.name}, the only round in the module; the others are {others}")
    return program


def refuse_form_of_bundle(source: str, form: str | None) -> None:
    """Check that no form is given for a bundle, which has its own.

    Raises:
      click.UsageError: one is.
    """
    if form is not None and os.path.isdir(source):
        raise click.UsageError(f"{source} is a folder, and a bundle has its own form: omit --form")


def read_round_or_bundle(source: str, form: str | None) -> tuple[Node, str]:
    """Return the round of a program or a bundle, and the form to compile it to; by default that of
    the bundle, or the default form of the round.

    A bundle whose components are not proved to compute its program is read from its components.

    Raises:
      TffcError: there is neither, or the program is not a round.
    """
    from tffc.backends.bundle.bundle import read_bundle
    from tffc.backends.forms.kinds import form_for
    from tffc.cli.proving import round_of_bundle

    if os.path.isdir(source):
        bundle = read_bundle(pathlib.Path(source))
        return round_of_bundle(source, bundle), form or bundle.form
    program = read_round(source, form).computation
    return program, form or form_for(program)


def read_older(older: str, source: str, form: str) -> Node:
    """Return an older version of the round in a source: that in another one, or of a revision.

    `git:REF` is the source itself at that revision, which may also be a bundle.

    Raises:
      TffcError: there is none, or it cannot be read.
    """
    older = at_revision(older, source)
    if is_revision(older):
        revision = revision_of(older)
        with checked_out(revision) as old:
            if old.file.is_dir():
                return read_round_or_bundle(str(old.file), form)[0]
            step(f"tracing {older}")
            return read_checked_out(old, form, is_round=True).as_round(form).computation
    return read_round_or_bundle(older, form)[0]


def read_computation(path: pathlib.Path) -> Node:
    """Return the computation in a `.pb` file.

    Raises:
      LoadError: the file cannot be read.
      WireError: it holds no well-formed computation.
    """
    step(f"reading {path}")
    return programs.read_computation(path)


def read_parts(source: str) -> dict[str, Node]:
    """Return the programs in a bundle, or in a source that `read_program` reads, by name.

    Raises:
      TffcError: there is no such source, or it cannot be read.
    """
    if os.path.isdir(source):
        from tffc.api.opened_bundles import parts_of  # which single programs do without

        step(f"reading {source}")
        return parts_of(source)
    return read_program(source).parts()


def read_typed(source: str, sections: pathlib.Path | None = None) -> Node:
    """Return the program in a typed text; `-` is stdin.

    Its compiled sections are in the folder `sections`, by default the one beside the file.

    Raises:
      LoadError: the file cannot be read.
      NotationError: it holds no program, or a section is missing.
    """
    if source != STDIN:
        return programs.read_typed(source, sections)
    from tffc.language.notation import SectionFolder, parse  # which messages do without

    known = None if sections is None else SectionFolder(sections)
    return parse(read_text(source), known, file="stdin")


def read_text(source: str) -> str:
    """Return the text of a file, or of stdin if `source` is `-`.

    Raises:
      LoadError: the file cannot be read.
    """
    limit = MAX_TEXT_BYTES
    data = read_stdin(limit) if source == STDIN else programs.read_content(source, limit)
    return data.decode("utf-8", errors="replace")
