"""Programs: from a module, a serialized computation, a typed text, or an object of Python."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tffc.graphs.proto.encoding import MAX_MESSAGE
from tffc.language import wire
from tffc.language.nodes import Node, NodeBase
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.language.values.resources import RESOURCES, find_files
from tffc.language.wire.resources import resources_of, sizes_of
from tffc.support.errors import LanguageTypeError, LoadError, WireError
from tffc.support.files.reading import read_named
from tffc.support.near import near_file

if TYPE_CHECKING:
    from tffc.frontend.computation import Computation
    from tffc.frontend.load import Loaded
    from tffc.frontend.templates import IterativeProcess

TEXTS = (".sexpr", ".txt")
"""The suffixes of files with a program in the typed notation."""

MAX_TEXT_BYTES = 2**28
"""The most bytes of a text that are read; no printed program is larger."""


class Program(NamedTuple):
    """A traced program, the computation of its first state if it has one, and its origin.

    `allow_effects` are the kinds of effects that it may have when it is run; None for a program
    that the user's own module defines, which needs no consent.  `name` is its name in that module,
    and `passed_over` are the names of those that were not chosen.  `signature` is its type with the
    Python containers that its author used, if they are known.  `discount` computes the weight of a
    contribution from its age, if rounds may be buffered.
    """

    computation: Node
    initialize: Node | None = None
    versions: Mapping[str, str] = {}
    allow_effects: frozenset[str] | None = frozenset()
    name: str = ""
    passed_over: tuple[str, ...] = ()
    signature: FunctionType | None = None
    discount: Node | None = None

    def as_round(self, form: str | None) -> Program:
        """Return the program as the round that it means; see `tffc.backends.forms.queries`."""
        from tffc.backends.forms.queries import as_round  # which printing does without

        return self._replace(computation=as_round(self.computation, form))

    def data_type(self, form: str | None) -> Type:
        """Return the type of each client's data in the round, whatever the form.

        Raises:
          FormError: it is not a round of the form, or of the form for its output if that is None.
        """
        from tffc.backends.forms.kinds import form_for, load_form

        target = load_form(form or form_for(self.computation))
        target.check_signature(self.computation)
        type = self.computation.type
        assert isinstance(type, FunctionType)
        assert isinstance(type.parameter, StructType)
        return target.data_type(local_type(type.parameter[1]))

    def parts(self) -> dict[str, Node]:
        """Return the programs by name."""
        last = {} if self.discount is None else {"discount": self.discount}
        if self.initialize is None:
            return {"computation": self.computation, **last}
        return {"initialize": self.initialize, "next": self.computation, **last}


Source: TypeAlias = "str | os.PathLike[str] | Program | Node | Computation | IterativeProcess"
"""What a program can come from.  A text names a module, `MODULE` or `MODULE:NAME`, a `.pb` file, or
a `.sexpr` or `.txt` file in the typed notation."""

Fits: TypeAlias = "Callable[[Computation], int] | None"
"""Which of several computations of a module is meant; see `tffc.frontend.load.load`."""


def program_of(source: Source, fits: Fits = None) -> Program:
    """Return the program that a source stands for.

    Raises:
      TffcError: there is no such file or module, or it does not hold a program.
      LanguageTypeError: the object is not a program.
    """
    if isinstance(source, Program):
        return source
    if isinstance(source, NodeBase):
        return Program(wire.opened(source))
    if isinstance(source, (str, os.PathLike)):
        return read_program(os.fspath(source), fits)
    from tffc.frontend.load import loaded_object

    loaded = loaded_object(source)
    if loaded is None:
        from tffc.backends.bundle.bundle import Bundle

        raise LanguageTypeError(
            "E417",
            f"a program cannot be an object of class {type(source).__name__!r}",
            help="give bundle.computation, the program that the bundle was compiled from"
            if isinstance(source, Bundle)
            else "give a computation, a process, a module, or the path of a .pb file",
        )
    return _traced(loaded)


def round_of(source: Source, form: str | None = None) -> Program:
    """Return the round of the form that a source stands for, or of any form if `form` is None.

    It reads the source as `program_of` does.  If a module has several computations, it takes the
    only one that is a round, or else the only one that means one.
    """
    return program_of(source, fits_round(form)).as_round(form)


def fits_round(form: str | None) -> Fits:
    """Return how well a computation fits as a round of the form, or of any form if it is None."""
    from tffc.backends.forms.queries import rank_as_round

    return lambda candidate: rank_as_round(candidate.node, form)


def read_program(source: str, fits: Fits = None) -> Program:
    """Return the program in a `.pb` file, a typed text, or a module.

    Raises:
      TffcError: there is no such file or module, or it does not hold a program.
    """
    if source.endswith(TEXTS):
        return Program(read_typed(source))
    if source.endswith(".pb"):
        return Program(read_computation(pathlib.Path(source)))
    if os.path.isdir(source):
        _refuse_bundle(source)
    from tffc.frontend.load import load

    return _traced(load(source, fits))


def _refuse_bundle(folder: str) -> None:
    from tffc.backends.bundle.bundle import is_bundle  # which files do without

    if is_bundle(pathlib.Path(folder)):
        raise LoadError(
            "E856",
            f"{folder} is a bundle, but this command takes a program",
            help=f"the program that it was compiled from is {folder}/computation.pb",
        )


def _traced(loaded: Loaded) -> Program:
    for computation in (loaded.computation, loaded.initialize, loaded.discount):
        if computation is not None:
            computation.check_closed("compiled")
    tensorflow = sys.modules.get("tensorflow")
    return Program(
        loaded.computation.node,
        None if loaded.initialize is None else loaded.initialize.node,
        {} if tensorflow is None else {"tensorflow": tensorflow.__version__},
        loaded.allow_effects,
        loaded.name,
        loaded.passed_over,
        loaded.computation.type_signature,
        None if loaded.discount is None else loaded.discount.node,
    )


def read_computation(path: pathlib.Path) -> Node:
    """Return the computation in a `.pb` file, with the files of its resources noted:
    those beside it, or in the folder of its bundle.

    Raises:
      LoadError: the file cannot be read, or the file of a resource is missing.
      WireError: it holds no well-formed computation.
    """
    program = decode(read_content(str(path), MAX_MESSAGE), str(path))
    above = path.absolute().parent
    folders = (resources_beside(path), above / RESOURCES, above.parent / RESOURCES)
    _find_resources(program, next(filter(os.path.isdir, folders), folders[0]))
    return program


def _find_resources(program: Node, folder: pathlib.Path) -> None:
    find_files(sizes_of(resources_of([program])), folder)


def resources_beside(path: pathlib.Path) -> pathlib.Path:
    """Return the folder of the resources of the program in a file."""
    return path.with_suffix(f".{RESOURCES}")


def decode(data: bytes, name: str) -> Node:
    """Return the computation in a message; `name` is that of its file in errors.

    Raises:
      WireError: it is not a well-formed computation.
    """
    try:
        return wire.from_bytes(data)
    except WireError as error:
        error.message = f"{name} is not a serialized computation: {error.message}"
        error.help = "write one with tffc trace"
        raise


def read_typed(path: str, sections: pathlib.Path | None = None) -> Node:
    """Return the program in a file with typed text.

    Its compiled sections are in the folder `sections`, by default the one beside the file.

    Raises:
      LoadError: the file cannot be read.
      NotationError: it holds no program, or a section is missing.
    """
    from tffc.language.notation import SectionFolder, parse  # which messages do without

    text = read_content(path, MAX_TEXT_BYTES).decode("utf-8", errors="replace")
    known = sections or sections_beside(pathlib.Path(path))
    program = parse(text, SectionFolder(known), file=path)
    _find_resources(program, known / RESOURCES)
    return program


def sections_beside(text: pathlib.Path) -> pathlib.Path:
    """Return the default folder of the compiled sections of a typed text."""
    return text.parent / "sections"


def read_content(path: str, limit: int) -> bytes:
    """Return the bytes of a file, at most `limit`.

    Raises:
      LoadError: the file cannot be read.
    """
    try:
        return read_named(path, limit)
    except OSError as error:
        help = near_file(path)
        raise LoadError("E850", f"cannot read {path}: {error.strerror}", help=help) from None
