"""The work of `tffc show`."""

from __future__ import annotations

import itertools
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click
import numpy as np

from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say, show_lines, write_output
from tffc.cli.screen import cut, width_of
from tffc.cli.value_text import leading_text, rows
from tffc.language.types import TensorType
from tffc.runtime.data import tensor_files
from tffc.runtime.data.arrays import Field, extent
from tffc.runtime.data.tensor_files import NamedTensor
from tffc.runtime.engines.state import About
from tffc.runtime.runs.kept import KeptFile, is_run, open_kept, open_round
from tffc.runtime.runs.report import read_report
from tffc.runtime.runs.run_record import read_record
from tffc.support.errors import DataError, abridge
from tffc.support.near import did_you_mean_by
from tffc.support.printable import counted, printable

ROUND = re.compile(r"(?P<folder>.+):(?P<number>\d{1,18})", re.DOTALL)
"""Matches a run's folder with the number of a round."""

SLICE = re.compile(r"(?P<name>.*)\[(?P<cut>[^\[\]]*)\]", re.DOTALL)
"""Matches a tensor's name with a slice."""

FORMATS = ("csv", "json", "npy")

MOST_ELEMENTS = 2**22
"""The most elements that are written as text; a million take about a second."""

MOST_NAMES = 20
"""The most names that an error lists."""


class ShownTensor(NamedTuple):
    """A tensor of a file, by its name in the command; `cut` is the slice of it to show."""

    name: str
    file: KeptFile
    field: Field
    cut: str | None = None


class ShownFile(NamedTuple):
    """Tensors under one heading."""

    heading: str
    about: About | None
    parts: list[ShownTensor]


def show(
    source: str,
    names: tuple[str, ...],
    is_whole: bool,
    format: str | None,
    out: pathlib.Path | None,
    bundle: pathlib.Path | None,
    delta: float,
) -> None:
    """Show the content of a file or a run's folder, or write it to a file."""
    if names:
        refuse_without_effect("parts that are named are shown whole, and no others", "is_whole")
    if bundle is None:
        refuse_without_effect("add --privacy", "delta")
    format = _format(format, out)
    if names or is_whole or format is not None:
        refuse_without_effect("tensors alone are shown", "bundle")
    folder = _run_of(source)
    _check_bundle(source, folder)
    files = _files(source)
    if format is None:
        lines = _lines(files, names, is_whole=is_whole)
        if folder is not None and not names and not is_whole:
            lines = itertools.chain(lines, _privacy(folder, bundle, delta))
        show_lines(lines)
        return
    parts = _chosen(files, names)
    content = _write(format, _read(parts), files)
    if out is not None:
        write_output(out, content)
        say(f"wrote {out}: {', '.join(part.name for part in parts) or 'nothing'}")
    else:
        click.echo(content.decode(), nl=False)


def _format(format: str | None, out: pathlib.Path | None) -> str | None:
    if out is not None and format is None:
        format = out.suffix.removeprefix(".").lower()
        if format not in FORMATS:
            raise click.UsageError(
                f"{out} does not say in its suffix what to write: name it .csv, .json or .npy, "
                "or add --to"
            )
    if format == "npy" and out is None:
        raise click.UsageError("--to npy writes bytes: add -o FILE.npy")
    return format


def _files(source: str) -> list[ShownFile]:
    """Open the files that the argument of the command names.

    Raises:
      DataError: there is no such file, or it cannot be read.
    """
    path, folder = pathlib.Path(source), _run_of(source)
    if folder is None:
        return [_file(open_kept(path), str(path), "")]
    return _run_files(folder, None if folder == path else int(source.rpartition(":")[2]))


def _run_of(source: str) -> pathlib.Path | None:
    """Return the folder of the run that the argument of the command names, if it names one."""
    path, round = pathlib.Path(source), ROUND.fullmatch(source)
    if is_run(path):
        return path
    if round is not None and is_run(pathlib.Path(round["folder"])):
        return pathlib.Path(round["folder"])
    return None


def _privacy(folder: pathlib.Path, bundle: pathlib.Path | None, delta: float) -> Iterator[str]:
    """Yield a line about the privacy of a run, if it has a budget or its bundle is given."""
    if bundle is None and not _has_budget(folder):
        return
    # Imported late, because they take long to load.
    from tffc.api.privacy_budget import privacy_by_bundle
    from tffc.assurance.privacy.ledger import privacy_of_run

    report = read_report(folder)
    if bundle is None:
        yield f"privacy: {privacy_of_run(report)}"
    else:
        yield f"privacy: {privacy_by_bundle(report, read_bundle(bundle), delta)}"


def _check_bundle(source: str, folder: pathlib.Path | None) -> None:
    """Check that the privacy of a run is to be shown by its bundle, and not by its record."""
    if folder is None:
        refuse_without_effect(f"{source} is not the folder of a run", "bundle")
    elif _has_budget(folder):
        refuse_without_effect("the run has a budget, and is shown with it", "bundle")


def _has_budget(folder: pathlib.Path) -> bool:
    record = read_record(folder)
    return record is not None and record.identity.privacy is not None


def _run_files(folder: pathlib.Path, number: int | None) -> list[ShownFile]:
    found = open_round(folder, number)
    heading = f"{folder}: round {found.number} of {found.rounds}"
    if found.clients:
        heading += f"; {counted(len(found.clients), 'client')}, such as {found.clients[0]}"
    files = [ShownFile(heading, None, [])]
    kept = {"state/": found.state, "output/": found.output, "evaluation/": found.evaluation}
    present = ((prefix, file) for prefix, file in kept.items() if file is not None)
    return [*files, *(_file(file, str(file.path), prefix) for prefix, file in present)]


def _file(file: KeptFile, path: str, prefix: str) -> ShownFile:
    parts = [ShownTensor(prefix + name, file, field) for name, field in file.fields.items()]
    what = "" if file.about is None else f"the state after round {file.about.rounds}, "
    count = counted(len(parts), "tensor")
    return ShownFile(f"{path}: {what}{count}", file.about, parts)


def _chosen(files: list[ShownFile], names: tuple[str, ...]) -> list[ShownTensor]:
    """Return the tensors with these names, or all if no names are given.

    Raises:
      DataError: there is no tensor with one of the names.
    """
    known = {part.name: part for shown in files for part in shown.parts}
    if not names:
        return list(known.values())
    return [part for name in names for part in _named(name, known)]


def _named(name: str, known: dict[str, ShownTensor]) -> list[ShownTensor]:
    if name in known:
        return [known[name]]
    below = [part for each, part in known.items() if each.startswith(name.rstrip("/") + "/")]
    if below:
        return below
    sliced = SLICE.fullmatch(name)
    if sliced is not None and sliced["name"] in known:
        return [known[sliced["name"]]._replace(name=name, cut=sliced["cut"])]
    some = ", ".join(list(known)[:MOST_NAMES]) + (", ..." if len(known) > MOST_NAMES else "")
    raise DataError(
        "E803",
        f"there is no part {name!r}",
        notes=(f"there are {some}" if known else "there are no parts",),
        help=_near_part(name if sliced is None else sliced["name"], known),
    )


def _near_part(name: str, known: Iterable[str]) -> str | None:
    """Return a help text that suggests a tensor whose name, or its beginning or end, is similar."""
    meant: dict[str, str] = {}
    for each in known:
        steps = each.split("/")
        for at in range(1, len(steps)):
            meant.setdefault("/".join(steps[:at]), "/".join(steps[:at]))
            meant.setdefault("/".join(steps[at:]), each)
    meant.update({each: each for each in known})
    return did_you_mean_by(meant, name.strip("/"))


def _check_length(tensors: list[NamedTensor]) -> None:
    """Check that tensors are not too long to be written as text.

    Raises:
      DataError: they are.
    """
    count = sum(extent(tensor.array().shape) for tensor in tensors)
    if count > MOST_ELEMENTS:
        raise DataError(
            "E816",
            f"{count} elements would be written as text, more than the {MOST_ELEMENTS} that are "
            "written",
            help="write an array with --to npy -o FILE.npy, or a part of it, as with "
            "--part 'NAME[0:1000]'",
        )


def _read(parts: list[ShownTensor]) -> list[NamedTensor]:
    """Return the values of tensors; each file is read once."""
    values: dict[int, Any] = {}
    for file in {id(part.file): part.file for part in parts}.values():
        fields = {id(part.field): part.field for part in parts if part.file is file}
        values.update(zip(fields, file.read(list(fields.values())), strict=True))
    return [_cut(part, values[id(part.field)]) for part in parts]


def _cut(part: ShownTensor, value: Any) -> NamedTensor:
    """Return the slice of a tensor that is to be shown.

    Raises:
      DataError: the slice is out of range.
    """
    type = part.field.type
    if part.cut is None:
        return NamedTensor(part.name, type, value)
    try:
        made = np.asarray(value, dtype=type.element_type.dtype)[
            tuple(map(_step, part.cut.split(",")))
        ]
    except (ValueError, IndexError):
        raise DataError(
            "E803",
            f"{part.name.removesuffix(f'[{part.cut}]')!r} is {type}, of which [{part.cut}] is not "
            "a slice",
            help="give positions or ranges, one for each of the first dimensions, such as [0:3] or "
            "[-1,2:4]",
        ) from None
    return NamedTensor(part.name, TensorType(type.element_type, np.shape(made)), made)


def _step(text: str) -> int | slice:
    """Parse one position or range of a slice; raises ValueError if it is neither."""
    if ":" not in text:
        return int(text)
    bounds = [int(each) if each.strip() else None for each in text.split(":")]
    if len(bounds) > 3 or bounds[2:] == [0]:
        raise ValueError(text)
    return slice(*bounds)


def _lines(files: list[ShownFile], names: tuple[str, ...], *, is_whole: bool) -> Iterator[str]:
    if names or is_whole:
        tensors = _read(_chosen(files, names))
        _check_length(tensors)
        yield from _whole(tensors)
        return
    for shown in files:
        yield shown.heading
        if shown.about is not None:
            yield abridge(f"  type `{shown.about.type}`")
            yield f"  program {shown.about.program}"
        yield from _overview(_read(shown.parts))


def _whole(tensors: list[NamedTensor]) -> Iterator[str]:
    """Yield tensors in full: one line each, or several rows below the name."""
    texts = [list(rows(tensor.value, tensor.type.element_type)) for tensor in tensors]
    heads = _heads(tensors)
    for head, lines in zip(heads, texts, strict=True):
        if len(lines) == 1:
            yield f"{head}  {lines[0]}"
        else:
            yield head.rstrip()
            yield from lines


def _overview(tensors: list[NamedTensor]) -> Iterator[str]:
    """Yield a line for each tensor, cut to the width of the terminal."""
    width = width_of(sys.stdout)
    for head, tensor in zip(_heads(tensors), tensors, strict=True):
        text = printable(leading_text(tensor.value, tensor.type.element_type))
        yield cut(f"  {head}  {text}", width)


def _heads(tensors: list[NamedTensor]) -> list[str]:
    """Return the names and types of tensors, aligned in columns."""
    names = [printable(tensor.name) for tensor in tensors]
    types = [str(tensor.type) for tensor in tensors]
    wide = max(map(len, names), default=0), max(map(len, types), default=0)
    return [
        f"{name.ljust(wide[0])}  {type.ljust(wide[1])}"
        for name, type in zip(names, types, strict=True)
    ]


def _write(format: str, tensors: list[NamedTensor], files: list[ShownFile]) -> bytes:
    if format == "npy":
        return tensor_files.encode_npy(tensors)
    _check_length(tensors)
    if format == "csv":
        return tensor_files.encode_csv(tensors)
    states = [shown.about._asdict() for shown in files if shown.about is not None]
    return tensor_files.encode_json(tensors, {"state": states[0]} if states else {})
