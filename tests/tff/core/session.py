"""Sessions: files of short programs with what came of each, as in Python's interactive mode.

    import collections                     what every program of the file starts with

    >>> tff.to_type(np.int32)              a program; its last line may be an expression
    int32                                  the answer of TensorFlow Federated
    tffc (wider): <int32>                  tffc's own answer, where it differs, and the kind of
                                           difference: one of docs/migrate-from-tff.md

No part of tffc is imported here: TensorFlow Federated runs this file too.
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import signal
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

PRELUDE = """
import asyncio, collections, enum, pickle
from typing import Any, NamedTuple, Optional
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
"""


PATIENCE = 20
"""Seconds for a program: some make the runtime of TensorFlow Federated wait for ever."""


@dataclasses.dataclass
class Case:
    """A program, the answer of TensorFlow Federated, and tffc's own where it differs, with the kind
    of the difference."""

    source: str
    answer: str
    own: str | None
    kind: str = ""

    def text(self) -> str:
        lines = self.source.splitlines()
        shown = [f">>> {lines[0]}", *(f"... {line}".rstrip() for line in lines[1:]), self.answer]
        own = [] if self.own is None else [f"tffc ({self.kind}): {self.own}"]
        return "\n".join([*shown, *own]) + "\n"


@dataclasses.dataclass
class Session:
    """The cases of a file, and what each starts with."""

    start: str
    cases: list[Case]

    def text(self) -> str:
        return "\n".join([self.start.strip() + "\n", *(case.text() for case in self.cases)])


def read(path: pathlib.Path) -> Session:
    """Read a file of sessions."""
    start, *blocks = re.split(r"^>>> ", path.read_text(), flags=re.MULTILINE)
    return Session(start, [_case(block) for block in blocks])


def _case(block: str) -> Case:
    first, *rest = block.rstrip().splitlines()
    source = [first]
    while rest and rest[0].startswith("..."):
        source.append(rest.pop(0)[4:])
    found = re.fullmatch(r"tffc \((.*?)\): (.*)", rest[-1]) if rest else None
    if found is None:
        return Case("\n".join(source), "\n".join(rest), None)
    return Case("\n".join(source), "\n".join(rest[:-1]), found[2], found[1])


def namespace(session: Session) -> dict[str, Any]:
    """Run what every program of a session starts with."""
    names: dict[str, Any] = {"__name__": "session"}
    signal.signal(signal.SIGALRM, _too_long)
    exec(PRELUDE + session.start, names)
    return names


def _too_long(*_: object) -> None:
    raise TimeoutError


def answer(source: str, start: Mapping[str, Any]) -> str:
    """Run a program and say what came of it, on one line."""
    names = dict(start)
    signal.alarm(PATIENCE)
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else ast.Expr(ast.Constant(None))
    assert isinstance(last, ast.Expr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(ast.Module(body, []), "<case>", "exec"), names)
            code = compile(ast.Expression(last.value), "<case>", "eval")
            return _one_line(shown(eval(code, names)))
        except Exception as error:  # noqa: BLE001  # whatever is raised is the answer
            return f"raises {' < '.join(raised(error))}"
        finally:
            signal.alarm(0)


def raised(error: BaseException) -> list[str]:
    """The class of an error and those that it derives from, but for those of all errors."""
    return [each.__name__ for each in type(error).__mro__ if each not in COMMON]


COMMON = (Exception, BaseException, object)


def agrees(found: str, expected: str) -> bool:
    """Whether tffc's answer is the expected one; its errors may have more bases."""
    kinds = [text.partition(" ")[0] for text in (found, expected)]
    if kinds in (["raises", "raises"], ["error", "error"]):
        had, wanted = (set(text.split(" ", 1)[1].split(" < ")) for text in (found, expected))
        return wanted <= had
    return found == expected


def _one_line(text: str) -> str:
    text = re.sub(r"\bclass bool\b", "class bool_", text)  # as NumPy 1 calls its own
    return re.sub(r"np\.bool\b", "np.bool_", text).replace("\n", "\\n") or "(empty)"


def shown(value: Any) -> str:
    """Say what a value is, alike for tffc and TensorFlow Federated."""
    for kind, show in _kinds():
        if isinstance(value, kind):
            return show(value)
    return f"a {type(value).__name__}"


def _kinds() -> list[tuple[Any, Any]]:
    import tensorflow as tf
    import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

    return [
        (tff.Type, _type),
        (tff.structure.Struct, _struct),
        (tff.Computation, lambda x: f"computation {shown(x.type_signature)}"),
        (tff.Value, lambda x: f"value {x} : {shown(x.type_signature)}"),
        (type(tff.CLIENTS), str),
        (np.dtype, lambda x: f"dtype({x.name})"),
        (np.generic, _array),
        (np.ndarray, _array),
        ((tf.Tensor, tf.Variable), _tensor),
        (tf.RaggedTensor, lambda x: f"ragged {x.to_list()}"),
        (tf.data.Dataset, _dataset),
        (tf.DType, repr),
        (tf.TypeSpec, repr),
        (tf.TensorShape, repr),
        (type, lambda x: f"class {x.__name__}"),
        ((bool, int, float, complex, str, bytes, type(None), type(...)), repr),
        (Mapping, _mapping),
        (tuple, _tuple),
        (list, lambda x: f"[{', '.join(map(shown, x))}]"),
        ((set, frozenset), lambda x: f"{{{', '.join(sorted(map(shown, x)))}}}"),
        ((type({}.keys()), type({}.values()), type({}.items())), lambda x: shown(list(x))),
        (types.GeneratorType, lambda x: f"iterator {shown(list(x))}"),
        (BaseException, lambda x: f"error {' < '.join(raised(x))}"),
        (object, _other),
    ]


def _type(value: Any) -> str:
    import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

    containers: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, tff.StructWithPythonType):
            containers.append(each.python_container.__name__)
        waiting += reversed(list(each.children()))
    return f"{value} in {' '.join(containers)}" if containers else str(value)


def _struct(value: Any) -> str:
    import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

    pairs = ", ".join(
        shown(each) if name is None else f"{name}={shown(each)}"
        for name, each in tff.structure.iter_elements(value)
    )
    return f"Struct({pairs})"


def _array(value: Any) -> str:
    shape = "" if not value.shape else f"[{','.join(map(str, value.shape))}]"
    kind = "str" if value.dtype.kind in "SUO" else value.dtype.name
    return f"{kind}{shape}({_plain(value.tolist())})"


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return f"{value:.6g}" if isinstance(value, float) else value


def _tensor(value: Any) -> str:
    if not hasattr(value, "numpy"):
        return f"symbolic {value.dtype.name}{value.shape}"
    name = "variable" if hasattr(value, "assign") else "tensor"
    return f"{name} {_array(np.asarray(value.numpy()))}"


def _dataset(value: Any) -> str:
    return f"dataset {shown(value.element_spec)} {shown(list(value.take(5)))}"


def _mapping(value: Any) -> str:
    name = "" if type(value) is dict else type(value).__name__
    return f"{name}{{{', '.join(f'{key!r}: {shown(each)}' for key, each in value.items())}}}"


def _tuple(value: Any) -> str:
    if hasattr(value, "_fields"):
        pairs = zip(value._fields, value, strict=True)
        return f"{type(value).__name__}({', '.join(f'{n}={shown(each)}' for n, each in pairs)})"
    return f"({', '.join(map(shown, value))}{',' if len(value) == 1 else ''})"


def _other(value: Any) -> str:
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is not None:
        pairs = ((each.name, getattr(value, each.name)) for each in fields)
        return f"{type(value).__name__}({', '.join(f'{n}={shown(each)}' for n, each in pairs)})"
    if isinstance(value, Iterator):
        return f"iterator {shown(list(value))}"
    return f"a {type(value).__name__}"
