"""Where things are: the spans of bindings and errors, and tracebacks of the user's frames only."""

from __future__ import annotations

import functools
import pathlib
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.processes import run_python
from tffc.frontend.load import load
from tffc.language import Block, Lambda
from tffc.support.errors import TffcError

fc = tff.federated_computation
Clients = tff.types.at_clients


def frames(error: BaseException) -> list[str]:
    """The functions of a traceback, from this module's test on."""
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert all("tffc/frontend" not in f.filename for f in traceback.extract_tb(error.__traceback__))
    return names[names.index("caught_from") + 1 :]


def caught_from(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001  # whatever is raised is the answer
        return error
    raise AssertionError("nothing was raised")


class MistakeError(Exception):
    pass


def mistake(*args: Any) -> Any:
    raise MistakeError


def decorated(make: Any = fc) -> None:
    @make(np.int32)
    def user(x: Any) -> Any:
        return mistake(x)


def decorated_without_types() -> None:
    @fc
    def user() -> Any:
        return mistake()


def wrapped() -> None:
    fc(mistake_of_one, np.int32)


def mistake_of_one(x: Any) -> Any:
    return mistake(x)


def nested(make: Any = fc) -> None:
    @make(np.int32)
    def outer(x: Any) -> Any:
        @make(np.int32)
        def inner(y: Any) -> Any:
            return mistake(y)

        return inner(x)


def polymorphic() -> None:
    @fc
    def poly(x: Any) -> Any:
        return mistake(x)

    @fc(np.int32)
    def user(x: Any) -> Any:
        return poly(x)


def mapped(make: Any = fc) -> None:
    @make
    def poly(x: Any) -> Any:
        return mistake(x)

    @fc(Clients(np.int32))
    def user(x: Any) -> Any:
        return tff.federated_map(poly, x)


def refused_by_us(make: Any = fc) -> None:
    @make(np.int32)
    def user(x: Any) -> Any:
        return tff.federated_sum(x)


def refused_attribute() -> None:
    @fc([("a", np.int32)])
    def user(x: Any) -> Any:
        return x.b


def wrong_number_of_arguments() -> None:
    @fc(np.int32)
    def user(x: Any) -> Any:
        return tff.federated_sum()  # type: ignore[call-arg]  # wrong on purpose


def while_handling() -> None:
    @fc(np.int32)
    def user(x: Any) -> Any:
        try:
            return tff.federated_sum(x)
        except TypeError:
            return mistake(x)


EXPECTED = {
    decorated: ["decorated", "user", "mistake"],
    decorated_without_types: ["decorated_without_types", "user", "mistake"],
    wrapped: ["wrapped", "mistake_of_one", "mistake"],
    nested: ["nested", "outer", "inner", "mistake"],
    polymorphic: ["polymorphic", "user", "poly", "mistake"],
    mapped: ["mapped", "user", "poly", "mistake"],
    refused_by_us: ["refused_by_us", "user"],
    refused_attribute: ["refused_attribute", "user"],
    wrong_number_of_arguments: ["wrong_number_of_arguments", "user"],
    while_handling: ["while_handling", "user", "mistake"],
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_frames(function: Callable[[], None]) -> None:
    assert frames(caught_from(function)) == EXPECTED[function]


@pytest.mark.parametrize(
    "function", [decorated, nested, mapped, refused_by_us], ids=lambda function: function.__name__
)
def test_frames_of_tensorflow_computations(function: Callable[[Any], None]) -> None:
    error = caught_from(functools.partial(function, tff.tf_computation))
    assert frames(error) == EXPECTED[function]


def test_frames_of_what_was_being_handled() -> None:
    error = caught_from(while_handling)
    assert error.__context__ is not None
    summary = traceback.extract_tb(error.__context__.__traceback__)
    assert [frame.name for frame in summary] == ["user"]


def test_debugging_keeps_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFFC_DEBUG", "1")
    error = caught_from(decorated)
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert any("tffc/frontend" in file for file in files)


def test_our_own_defects_keep_our_frames() -> None:
    class Odd(tff.Struct):
        __slots__ = ()

        def items(self) -> Any:
            return iter([1])

    error = caught_from(lambda: tff.to_value(Odd([])))
    assert isinstance(error, TypeError)
    assert "conversion.py" in traceback.extract_tb(error.__traceback__)[-1].filename


def test_spans_of_bindings() -> None:
    @fc(Clients(np.int32))
    def user(x: Any) -> Any:
        first = tff.federated_sum(x)
        second = tff.federated_sum(
            x,
        )
        return [
            first,
            second,
        ]

    line = user_line(test_spans_of_bindings)
    node = user.node
    assert isinstance(node, Lambda)
    assert isinstance(node.result, Block)
    spans = [binding.span for binding in node.result.locals]
    assert all(span is not None and span.file == __file__ for span in spans)
    assert [(s.line, s.column, s.end_line, s.end_column) for s in spans if s] == [
        (line + 3, 16, line + 3, 36),
        (line + 4, 17, line + 6, 9),
    ]


def user_line(function: Any) -> int:
    return function.__code__.co_firstlineno


def test_spans_of_errors() -> None:
    error = caught_from(refused_by_us)
    assert isinstance(error, TffcError)
    assert error.span is not None
    assert (error.span.file, error.span.line) == (__file__, user_line(refused_by_us) + 3)
    assert (error.span.column, error.span.end_column) == (15, 35)


SCRIPT = """\
import numpy as np
import tffc as tff


def helper(x):
    raise ValueError("not today")


@tff.federated_computation(np.int32)
def outer(x):
    @tff.federated_computation
    def inner(y):
        return helper(y)

    return inner(x)
"""

TRACEBACK = """\
Traceback (most recent call last):
  File "{file}", line 9, in <module>
    @tff.federated_computation(np.int32)
  File "{file}", line 15, in outer
    return inner(x)
  File "{file}", line 13, in inner
    return helper(y)
  File "{file}", line 6, in helper
    raise ValueError("not today")
ValueError: not today
"""


def test_traceback_of_a_script(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = run_python(str(script))
    lines = [line for line in done.stderr.splitlines() if set(line.strip()) - set("^~")]
    assert "\n".join(lines) + "\n" == TRACEBACK.format(file=script)


def test_traceback_of_a_loaded_module(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "module.py"
    script.write_text(SCRIPT)
    error = caught_from(lambda: load(str(script)))
    cause = error.__cause__
    assert isinstance(cause, ValueError)
    names = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert names == ["<module>", "outer", "inner", "helper"]
    assert frames(error) == ["<lambda>"]
