"""The list of examples: the programs with golden files, and how they are compiled."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NotRequired, TypedDict, TypeGuard

from tffc.assurance.golden.printing import Files, Recipe, print_program
from tffc.frontend.load import load
from tffc.support.errors import GoldenError, reader
from tffc.support.files.reading import read_named
from tffc.support.files.strict_json import is_text
from tffc.support.guards import is_dict, is_list
from tffc.support.near import did_you_mean, nearest

LIST = "golden.yaml"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """An example: its name, its target, and the recipe for printing it."""

    name: str
    target: str
    recipe: Recipe


@reader("a list of golden examples", GoldenError)
def read_examples(folder: pathlib.Path, names: Iterable[str] = ()) -> list[Example]:
    """Return the examples that the folder lists, or those with the given names.

    Raises:
      GoldenError: there is no list, it is invalid, or it lacks a name.
    """
    import yaml

    from tffc.support.files.yaml_file import MAX_BYTES, read_yaml

    path = folder / LIST
    try:
        text = read_named(path, MAX_BYTES).decode()
        content, _, twice = read_yaml(text)
    except OSError as error:
        raise GoldenError(
            "E800",
            f"cannot read {path}: {error.strerror}",
            help="write one, or give its folder",
            remedy="golden file",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise GoldenError("E800", f"{path} is not YAML", notes=(str(error),)) from None
    if twice is not None:
        raise GoldenError(
            "E800",
            f"in {path}, the key {twice.value!r} occurs twice",
            help=f"remove one; the second is in line {twice.start_mark.line + 1}",
        )
    if not is_dict(content):
        raise GoldenError("E800", f"{path} must be a mapping of names to examples")
    examples = [_example(name, entry, path) for name, entry in content.items()]
    listed = {example.name: example for example in examples}
    for name in names:
        if name not in listed:
            raise GoldenError(
                "E803", f"{path} lists no example {name!r}", help=nearest(name, listed)
            )
    return [listed[name] for name in names] or list(listed.values())


_Entry = TypedDict(
    "_Entry",
    {
        "target": str,
        "forms": NotRequired[list[str]],
        "pipeline": NotRequired[str],
        "allow-impure-duplicates": NotRequired[bool],
        "audit": NotRequired[bool],
    },
)
"""A valid entry of the list."""


def _example(name: object, entry: object, path: pathlib.Path) -> Example:
    if not isinstance(name, str) or not NAME.fullmatch(name) or name.lower() == LIST:
        raise GoldenError(
            "E800",
            f"in {path}, {name!r} cannot be the name of an example",
            help="use letters, digits, '_', '-' and '.': it names a folder",
        )
    if not _is_entry(entry):
        raise GoldenError(
            "E800",
            f"in {path}, the example {name!r} {_what_is_wrong(entry)}",
            help=_what_to_write(entry),
        )
    impure = entry.get("allow-impure-duplicates", False)
    recipe = Recipe(
        tuple(entry.get("forms", ())), entry.get("pipeline"), impure, entry.get("audit", False)
    )
    return Example(name, entry["target"], recipe)


def _is_entry(entry: object) -> TypeGuard[_Entry]:
    return _what_is_wrong(entry) is None


def _what_is_wrong(entry: object) -> str | None:
    """Return why an entry is invalid, as the end of a sentence about it; None if it is valid."""
    if not is_dict(entry):
        return "is not a mapping"
    for key, value in entry.items():
        if not isinstance(key, str) or key not in _KEYS:
            return f"has the key {key!r}, but there are only {', '.join(_KEYS)}"
        if not _KEYS[key](value):
            return f"cannot have {value!r} as {key}"
    return None if "target" in entry else "has no target"


def _what_to_write(entry: object) -> str:
    """Return the help for an invalid entry."""
    if is_dict(entry):
        form = entry.get("form", entry.get("forms"))
        if isinstance(form, str):
            return f"write a list: forms: [{form}]"
        near = (did_you_mean(str(key), _KEYS) for key in entry if key not in _KEYS)
        if (meant := next(near, None)) is not None:
            return meant
    return "give it a target, such as examples/round.py:NAME, and perhaps a list of forms"


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return is_list(value) and all(map(is_text, value))


_KEYS: Mapping[str, Callable[[object], bool]] = {
    "target": is_text,
    "forms": _are_texts,
    "pipeline": is_text,
    "allow-impure-duplicates": _is_flag,
    "audit": _is_flag,
}
"""The fields of an entry, with a check of each."""


def print_example(example: Example, root: pathlib.Path) -> Files:
    """Return the files of an example by path; its module is loaded from `root`.

    Raises:
      TffcError: it cannot be loaded or compiled.
    """
    with contextlib.chdir(root):
        loaded = load(example.target)
        initialize = None if loaded.initialize is None else loaded.initialize.node
        discount = None if loaded.discount is None else loaded.discount.node
        return print_program(loaded.computation.node, initialize, example.recipe, discount)
