"""The error for a module that raised an exception during its import, with help by kind.

The traceback above it shows the whole message of the exception, so that a long one is abridged.
"""

from __future__ import annotations

import builtins
import importlib.metadata
import pkgutil
import re
import sys
from collections.abc import Iterable
from types import ModuleType

from tffc.runtime.user_code.exception_hints import library_mistake, likely_mistake
from tffc.runtime.user_code.own_modules import folder_of
from tffc.runtime.user_code.source import (
    class_name,
    exception_text,
    is_in_library_of_tff,
    original_words,
    raised_names,
    raised_span,
)
from tffc.support.errors import LoadError, Span
from tffc.support.near import did_you_mean

LONGEST_WORDS = 100
"""The most characters of a message in the first line of the error."""

LONGEST_CAUSE = 300
"""The most characters of a longer message that are shown."""

SENTENCE = re.compile(r"(?<=[a-z)\]'`\"])\. (?=[A-Z])")
"""Matches the end of a sentence that another one follows."""

NO_NAME = re.compile(r"name '(\w+)' is not defined")
NO_ATTRIBUTE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'\.?")
NO_IMPORT = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")

USUAL_NAMES = {
    "jnp": "jax.numpy",
    "np": "numpy",
    "pd": "pandas",
    "tf": "tensorflow",
    "tff": "tffc",
}
"""Modules by their usual aliases."""

PACKAGES = (
    *("apache_beam", "jax", "keras", "numpy", "pandas"),
    *("tensorflow", "tf_keras", "tffc", "torch"),
)
"""Packages that programs import under their own names."""


def import_failure(source: str, error: BaseException) -> LoadError:
    """Return the error for a module that raised an exception, whatever that is."""
    try:
        name, words, note, help, span = _read_exception(source, error)
    except Exception:  # noqa: BLE001  (its class may be the user's)
        name, words, note, help, span = class_name(error), "", None, None, None
    return LoadError(
        "E437",
        f"{source} raised {name} while it was imported{f': {words}' if words else ''}",
        notes=() if note is None else (note,),
        help=help,
        span=span,
    )


def advice(source: str, error: BaseException) -> str | None:
    """Return the likely fix for an exception that a script raised, whatever that is; or None."""
    try:
        return _read_exception(source, error)[3]
    except Exception:  # noqa: BLE001  (its class may be the user's)
        return None


def _read_exception(
    source: str, error: BaseException
) -> tuple[str, str, str | None, str | None, Span | None]:
    """Return an exception's class and message, or a note in place of a long one; help, and the
    place in the user's source."""
    name, words = original_words(error)
    span = raised_span(error)
    help = _help(source, error, words, "" if span is None else span.source_line())
    if "\n" in words or len(words) > LONGEST_WORDS:
        return name, "", _cause(words), help, span
    return name, words, None, help, span


def _cause(words: str) -> str | None:
    """Return the first sentence of a message; None if its first line only refers to further
    ones."""
    line = words.strip().partition("\n")[0]
    if line.endswith(":") or not line:
        return None
    sentence = SENTENCE.split(line)[0]
    return sentence if len(sentence) <= LONGEST_CAUSE else f"{sentence[:LONGEST_CAUSE]}..."


def _help(source: str, error: BaseException, words: str, line: str) -> str | None:
    mistake = likely_mistake(words, line)
    if mistake is None and is_in_library_of_tff(error):
        mistake = library_mistake(words)
    if mistake is not None:
        return mistake
    if isinstance(error, ImportError):
        return _import_help(source, error, words)
    if isinstance(error, NameError) and (match := NO_NAME.fullmatch(words)):
        return _name_help(match[1], error)
    if isinstance(error, AttributeError) and (match := NO_ATTRIBUTE.fullmatch(words)):
        return did_you_mean(match[2], _public(sys.modules.get(match[1])))
    return None


def _import_help(source: str, error: ImportError, words: str) -> str | None:
    if "relative import" in exception_text(error):
        return "give the dotted name of the module, from the folder of its package"
    if isinstance(error.name, str) and error.name.split(".")[0] == "tensorflow_federated":
        return "write import tffc as tff in its place"
    match = NO_IMPORT.match(words)
    if match is not None:
        return did_you_mean(match[1], _public(sys.modules.get(match[2])))
    if isinstance(error, ModuleNotFoundError) and error.name and isinstance(error.name, str):
        return _module_help(source, error.name)
    return None


def _name_help(name: str, error: BaseException) -> str | None:
    """Return the help for a missing import or a misspelt name."""
    module = USUAL_NAMES.get(name, name)
    if module != name:
        return f"import it first: import {module} as {name}"
    if name in PACKAGES or name in sys.stdlib_module_names:
        return f"import it first: import {name}"
    return did_you_mean(name, {*raised_names(error), *dir(builtins)})


def _module_help(source: str, name: str) -> str:
    """Return the help for a module that was not found, with a similar name if there is one."""
    package, _, last = name.rpartition(".")
    known = sys.modules.get(package) if package else None
    if known is not None:
        path = getattr(known, "__path__", ())
        near = did_you_mean(last, (module.name for module in pkgutil.iter_modules(path)))
    else:
        near = did_you_mean(name.partition(".")[0], _modules(source))
    return near or (
        "install the package that has it where tffc is installed, or correct the name; modules are "
        "also looked for in the folder of the file"
    )


def _modules(source: str) -> set[str]:
    """Return the modules that can be imported: built-in, installed, and beside the file."""
    beside = (module.name for module in pkgutil.iter_modules([folder_of(source)]))
    return {*sys.stdlib_module_names, *importlib.metadata.packages_distributions(), *beside}


def _public(module: ModuleType | None) -> Iterable[str]:
    return () if module is None else (name for name in dir(module) if not name.startswith("_"))
