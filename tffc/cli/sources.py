"""Reading the argument of a command: a module, a serialized computation or a bundle."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from tffc.cli.output import say
from tffc.cli.progress import step
from tffc.cli.streams import read_stdin
from tffc.graphs.proto.encoding import MAX_MESSAGE
from tffc.language import wire
from tffc.language.nodes import Node
from tffc.language.notation import SectionFolder, parse
from tffc.support.errors import LoadError, WireError
from tffc.support.files.reading import read_named
from tffc.support.near import near_file

if TYPE_CHECKING:
    from tffc.frontend.computation import Computation


TEXTS = (".sexpr", ".txt")
"""The suffixes of files with a program in the typed notation."""

MAX_TEXT_BYTES = 2**28
"""The most bytes of a text that are read; no printed program is larger."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A traced program, the computation of its first state if it has one, and its origin.

    `allow_effects` are the kinds of effects that it may have when it is run; None for a program
    that the user's own module defines, which needs no consent.
    """

    computation: Node
    initialize: Node | None = None
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    allow_effects: frozenset[str] | None = frozenset()

    def parts(self) -> dict[str, Node]:
        """Return the programs by name."""
        if self.initialize is None:
            return {"computation": self.computation}
        return {"initialize": self.initialize, "next": self.computation}


def read_round(source: str, form: str | None) -> Program:
    """Read a round as `read_program` does.

    If a module has several computations, takes the only one that can be a round of the form, or of
    any form if `form` is None, and reports the choice on stderr.
    """
    from tffc.backends.forms.kinds import is_round

    return read_program(source, lambda candidate: is_round(candidate.node, form))


def read_program(source: str, fits: Callable[[Computation], bool] | None = None) -> Program:
    """Return the program in a `.pb` file, a typed text, or a module; `-` is stdin.

    `tffc.frontend.load.load` describes `fits`.

    Raises:
      TffcError: there is no such file or module, or it does not hold a program.
    """
    if source.endswith(TEXTS):
        step(f"reading {source}")
        return Program(read_typed(source))
    if source == "-":
        return Program(_decode(read_stdin(MAX_MESSAGE), "stdin"))
    if source.endswith(".pb"):
        return Program(read_computation(pathlib.Path(source)))
    if os.path.isdir(source):
        _refuse_bundle(pathlib.Path(source))
    step(f"tracing {source}")
    return _trace(source, fits)


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


def _refuse_bundle(path: pathlib.Path) -> None:
    from tffc.backends.bundle.bundle import is_bundle

    if is_bundle(path):
        raise LoadError(
            "E856",
            f"{path} is a bundle, but this command takes a program",
            help=f"the program that it was compiled from is {path}/computation.pb",
        )


def read_computation(path: pathlib.Path) -> Node:
    """Return the computation in a `.pb` file.

    Raises:
      LoadError: the file cannot be read.
      WireError: it holds no well-formed computation.
    """
    step(f"reading {path}")
    return _decode(_content(str(path), MAX_MESSAGE, "E850"), str(path))


def read_parts(source: str) -> dict[str, Node]:
    """Return the programs in a bundle, or in a source that `read_program` reads, by name.

    Raises:
      TffcError: there is no such source, or it cannot be read.
    """
    path = pathlib.Path(source)
    if path.is_dir():
        from tffc.backends.bundle.bundle import read_bundle

        step(f"reading {path}")
        bundle = read_bundle(path)
        first = {"computation": bundle.computation}
        if bundle.initialize is not None:
            first["initialize"] = bundle.initialize
        return {**first, **bundle.components}
    return read_program(source).parts()


def read_typed(source: str, sections: pathlib.Path | None = None) -> Node:
    """Return the program in a typed text; `-` is stdin.

    Its compiled sections are in the folder `sections`, by default the one beside the file.

    Raises:
      LoadError: the file cannot be read.
      NotationError: it holds no program, or a section is missing.
    """
    if sections is None and source != "-":
        sections = sections_beside(pathlib.Path(source))
    known = None if sections is None else SectionFolder(sections)
    return parse(read_text(source), known, file="stdin" if source == "-" else source)


def sections_beside(text: pathlib.Path) -> pathlib.Path:
    """Return the default folder of the compiled sections of a typed text."""
    return text.parent / "sections"


def read_text(source: str) -> str:
    """Return the text of a file, or of stdin if `source` is `-`.

    Raises:
      LoadError: the file cannot be read.
    """
    limit = MAX_TEXT_BYTES
    data = read_stdin(limit) if source == "-" else _content(source, limit, "E850")
    return data.decode("utf-8", errors="replace")


def _content(path: str, limit: int, code: str) -> bytes:
    """Return the content of a file; raises LoadError with this code if it cannot be read."""
    try:
        return read_named(path, limit)
    except OSError as error:
        help = near_file(path)
        raise LoadError(code, f"cannot read {path}: {error.strerror}", help=help) from None


def _decode(data: bytes, name: str) -> Node:
    try:
        return wire.from_bytes(data)
    except WireError as error:
        error.message = f"{name} is not a serialized computation: {error.message}"
        error.help = "write one with tffc trace"
        raise


def _trace(target: str, fits: Callable[[Computation], bool] | None) -> Program:
    from tffc.frontend.load import load

    # The output of a user's module must not mix with our data on stdout.
    with contextlib.redirect_stdout(sys.stderr):
        loaded = load(target, fits)
    if loaded.passed_over:
        others = ", ".join(loaded.passed_over)
        say(f"took {target}:{loaded.name}, the only round in the module; the others are {others}")
    for computation in (loaded.computation, loaded.initialize):
        if computation is not None:
            computation.check_closed("compiled")
    tensorflow = sys.modules.get("tensorflow")
    return Program(
        loaded.computation.node,
        None if loaded.initialize is None else loaded.initialize.node,
        {} if tensorflow is None else {"tensorflow": tensorflow.__version__},
        loaded.computation.allow_effects,
    )
