"""Importing a user's module, named by the path of its file or by a dotted name."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import os
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from tffc.runtime.frameworks.tensorflow.load import quiet_import
from tffc.runtime.user_code.import_failures import import_failure
from tffc.runtime.user_code.import_state import importing_from
from tffc.runtime.user_code.own_modules import file_of, folder_of, is_path, namespace
from tffc.runtime.user_code.seeds import steady_seeds
from tffc.runtime.user_code.source import class_name, exception_text, keep_users_frames
from tffc.support.errors import LoadError, Span, TffcError
from tffc.support.files.inputs import remember, remembering_opened
from tffc.support.near import near_file


def split_target(target: str) -> tuple[str, str | None]:
    """Split a target into its module and its name, None if it has none.

    The colon of a Windows drive, or in the name of a `.py` file, is part of the path.
    """
    source, colon, name = target.rpartition(":")
    is_name = all(map(str.isidentifier, name.split("."))) and not name.endswith(".py")
    if colon and source and is_name:
        return source, name
    return target, None


def find_attribute(module: ModuleType, name: str) -> Any:
    """Return the object that a dotted name refers to in a module.

    Raises:
      AttributeError: there is none.
    """
    return operator.attrgetter(name)(module)


def import_source(source: str) -> ModuleType:
    """Import the module at a path or of a dotted name, with the modules beside it importable.

    In it `import tensorflow_federated` and `import federated_language` give tffc, unless these are
    loaded already.  Random draws during the import are the same each time; see
    `tffc.runtime.user_code.seeds`.  TensorFlow is silent if this imports it.
    """
    quiet_import()
    # Of TFF's names, which stand above, a user's module needs those under which it knows us.
    importlib.import_module("tffc.tff.install").install_for(file_of(source))
    if is_path(source) and not os.path.isfile(source):
        raise _no_file(source)
    folder = folder_of(source)
    try:
        with importing_from(folder), steady_seeds(), remembering_opened():
            return _execute(source) if is_path(source) else _import(source)
    except (TffcError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, SyntaxError) and _is_in_file(error):
            raise _syntax_error(error) from None
        keep_users_frames(error)
        raise import_failure(source, error) from error


def _import(name: str) -> ModuleType:
    try:
        if not name:
            raise ModuleNotFoundError(name=name)
        # Unlike importlib.import_module, this adds no frame to tracebacks.
        __import__(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise LoadError(
            "E434",
            f"there is no module named {error.name!r}",
            help=_module_help(name),
        ) from None
    module = sys.modules[name]
    if os.path.isdir(name) and namespace(module).get("__file__", name) is None:
        # To Python, any folder is a (namespace) package.
        raise _no_file(name)
    return module


def _module_help(name: str) -> str:
    if os.path.isfile(name):
        return f"{name} is a file, but programs are in files that end in .py, .pb, .sexpr or .txt"
    return (
        near_file(name)
        or "give a path that ends in .py, or a dotted name that Python can import from here"
    )


def _execute(path: str) -> ModuleType:
    """Run a file as a module, registered under its own name unless another module has that."""
    name = os.path.splitext(os.path.basename(path))[0]
    while name in sys.modules and not _is_from(sys.modules[name], path):
        name += "_"
    loader = SourceFileLoader(name, os.path.abspath(path))
    spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Not the cached bytecode: it is stale if two versions of a file were saved within one second.
    remember(loader.path)
    code = _compiled(loader)
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        # Unless it did so itself.
        sys.modules.pop(name, None)
        raise
    return module


def _compiled(loader: SourceFileLoader) -> CodeType:
    data = loader.get_data(loader.path)
    # Python does not say where a null byte is; the first line stands for other failures.
    line = data[: max(0, data.find(b"\0"))].count(b"\n") + 1
    try:
        return loader.source_to_code(data, loader.path)
    except SyntaxError as error:
        if error.filename:
            raise
        reason, span = error.msg, Span(loader.path, line)
    except (MemoryError, RecursionError):
        reason, span = "it is nested too deeply for Python", None
    except Exception as error:  # noqa: BLE001  (codecs raise what they like)
        reason, span = f"{class_name(error)}: {exception_text(error)}", Span(loader.path, line)
    raise _not_python(reason, span)


def _is_from(module: object, path: str) -> bool:
    file = namespace(module).get("__file__")
    return isinstance(file, str) and os.path.abspath(file) == os.path.abspath(path)


def _no_file(path: str) -> LoadError:
    if os.path.isdir(path):
        return LoadError("E434", f"{path} is a folder", help="give the path of a .py file in it")
    said, help = f"there is no file {path}", near_file(path)
    if os.path.exists(path):
        said = f"{path} is not a regular file"
        help = "give the path of a .py file, or of a serialized computation"
    return LoadError("E434", said, help=help)


def _is_in_file(error: SyntaxError) -> bool:
    """Return whether Python raised an error about a file; programs raise any other themselves."""
    numbers = error.lineno, error.offset, error.end_lineno, error.end_offset
    return (
        isinstance(error.filename, str)
        and os.path.isfile(error.filename)
        and isinstance(error.text or "", str)
        and all(isinstance(number, int | None) for number in numbers)
    )


def _not_python(reason: str, span: Span | None) -> LoadError:
    return LoadError(
        "E437",
        f"the module is not valid Python: {reason}",
        span=span,
        help="correct it there; what counts is the Python that tffc runs in",
    )


def _syntax_error(error: SyntaxError) -> LoadError:
    line = error.text or ""
    column = _bytes_before(line, error.offset)
    end_column = _bytes_before(line, error.end_offset)
    if error.end_lineno != error.lineno:
        end_column = None
    span = Span(error.filename or "", error.lineno or 1, column, error.end_lineno, end_column)
    return _not_python(error.msg, span)


def _bytes_before(line: str, offset: int | None) -> int | None:
    """Convert a column of `SyntaxError` (characters, from 1) to one of ours (bytes, from 0)."""
    return len(line[: offset - 1].encode()) if offset else None
