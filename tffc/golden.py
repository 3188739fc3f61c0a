"""Golden files: what each example prints and compiles to, kept in the repository.

A folder holds `golden.yaml`, which lists the examples, and one folder an example:

    simple:
      target: examples/slides.py:simple
    temperature:
      target: examples/temperature/temperature.py:mean_temperature
      forms: [mapreduce]

Targets are relative to the folder that holds the golden folder.  Files of an example:

    program.sexpr               the traced program
    initialize.sexpr            the computation of the first state, of a process
    FORM/summary.txt            the types of the form's components
    FORM/components.sexpr       what compiling makes of the first state and of the round
    FORM/manifest.json          the manifest without versions, and hashes that move with them
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator
from typing import Any

from tffc.backends import compile_form, compile_initialize
from tffc.backends.bundle import Bundle, listing, text
from tffc.backends.manifest import encode_json
from tffc.errors import GoldenError
from tffc.frontend.load import load
from tffc.passes.pipeline import nearest

LIST = "golden.yaml"


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """A program whose text is kept: where it is, and the forms it is compiled to."""

    name: str
    target: str
    forms: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A file that is not as it is printed now.  None stands for a file that is not there."""

    path: str
    golden: str | None
    printed: str | None

    def __str__(self) -> str:
        """A unified diff from the golden file to what is printed."""
        lines = difflib.unified_diff(
            (self.golden or "").splitlines(),
            (self.printed or "").splitlines(),
            "/dev/null" if self.golden is None else f"golden/{self.path}",
            "/dev/null" if self.printed is None else f"printed/{self.path}",
            lineterm="",
        )
        return "\n".join(lines)


def read_examples(folder: pathlib.Path, names: Iterable[str] = ()) -> list[Example]:
    """The examples that the folder lists, or those of them that are named.

    Raises:
      GoldenError: there is no list, it is not as this module describes, or lacks a name.
    """
    import yaml

    path = folder / LIST
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoldenError(
            "E800",
            f"can not read {path}: {error.strerror}",
            help="give the folder of the golden files with --folder",
        ) from error
    except yaml.YAMLError as error:
        raise GoldenError("E801", f"{path} is not YAML", notes=(str(error),)) from None
    if not isinstance(content, dict):
        raise GoldenError("E802", f"{path} has to be a mapping of names to examples")
    listed = {name: _example(name, entry, path) for name, entry in content.items()}
    for name in names:
        if name not in listed:
            raise GoldenError(
                "E803", f"{path} lists no example {name!r}", help=nearest(name, listed)
            )
    return [listed[name] for name in names] or list(listed.values())


def _example(name: Any, entry: Any, path: pathlib.Path) -> Example:
    match entry:
        case {"target": str(target), **rest} if isinstance(name, str) and not set(rest) - {"forms"}:
            forms = rest.get("forms", [])
            if isinstance(forms, list) and all(isinstance(form, str) for form in forms):
                return Example(name, target, tuple(forms))
    raise GoldenError(
        "E804",
        f"in {path}, the example {name!r} is not right",
        help="give it a target, such as examples/round.py:NAME, and perhaps a list of forms",
    )


def print_example(example: Example, root: pathlib.Path) -> dict[str, str]:
    """The files of an example by their paths in the golden folder.

    Raises:
      TffcError: it can not be loaded or compiled.
    """
    loaded = load(str(root / example.target))
    program = loaded.computation.node
    initialize = None if loaded.initialize is None else loaded.initialize.node
    files = {"program.sexpr": text(program)}
    if initialize is not None:
        files["initialize.sexpr"] = text(initialize)
    for name in example.forms:
        form = compile_form(program, name)
        first = None if initialize is None else compile_initialize(initialize)
        bundle = Bundle(name, program, form.components(), first, {})
        programs = (
            bundle.components if first is None else {"initialize": first, **bundle.components}
        )
        files[f"{name}/summary.txt"] = form.summary() + "\n"
        files[f"{name}/components.sexpr"] = listing(programs)
        files[f"{name}/manifest.json"] = encode_json(bundle.manifest().lasting()).decode()
    return {f"{example.name}/{path}": content for path, content in files.items()}


def differences(folder: pathlib.Path, examples: Iterable[Example]) -> Iterator[Difference]:
    """Every file of these examples that is not as it is printed now, those left over included."""
    for example in examples:
        printed = print_example(example, folder.parent)
        golden = _files_under(folder, example.name)
        for path in sorted({*printed, *golden}):
            if golden.get(path) != printed.get(path):
                yield Difference(path, golden.get(path), printed.get(path))


def orphans(folder: pathlib.Path) -> list[str]:
    """The entries of the folder that belong to no example."""
    known = {LIST, *(example.name for example in read_examples(folder))}
    return sorted(entry.name for entry in folder.iterdir() if entry.name not in known)


def update(folder: pathlib.Path, examples: Iterable[Example]) -> list[Difference]:
    """Makes the files of these examples what is printed now; gives what has changed.

    Raises:
      GoldenError: the environment variable CI is set, for there nobody reviews what changed.
    """
    if os.environ.get("CI"):
        raise GoldenError(
            "E805",
            "golden files are not updated where CI is set",
            help="update them on your machine, review the change and commit it",
        )
    changed = list(differences(folder, examples))
    for each in changed:
        path = folder / each.path
        if each.printed is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each.printed, encoding="utf-8")
    return changed


def remove(folder: pathlib.Path, names: Iterable[str]) -> None:
    """Removes these entries of the folder."""
    for name in names:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _files_under(folder: pathlib.Path, name: str) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in (folder / name).rglob("*")
        if path.is_file()
    }
