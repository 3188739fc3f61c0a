"""JAX computations: bindings, types, what is refused, and what is said where JAX is missing."""

from __future__ import annotations

import collections
import importlib.util
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frontend.computations import Pair
from tests.refusals import error_without_place
from tffc.language import Compiled
from tffc.language.wire import SectionBinding, StructBinding, TensorBinding, read_xla
from tffc.support.errors import MissingExtraError, TffcError

jc = tff.jax.computation
INT, FLOAT = np.int32, np.float32
OrderedDict = collections.OrderedDict

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install '.[jax]'"
)


def shown(binding: SectionBinding | None) -> Any:
    match binding:
        case StructBinding(elements):
            return [shown(element) for element in elements]
        case TensorBinding(tensor):
            return tensor
    return None


# The function, its types, the type of the computation, the bindings of parameter and result.
TRACED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, Any, Any]] = {
    "one tensor": (lambda x: x + 1, (INT,), "(int32 -> int32)", 0, 0),
    "two tensors": (
        lambda x, y: x + y,
        (INT, INT),
        "(<x=int32,y=int32> -> int32)",
        [0, 1],
        0,
    ),
    "keywords are ordered by name": (
        lambda b, a: b,
        (OrderedDict(b=INT, a=FLOAT),),
        "(<b=int32,a=float32> -> int32)",
        [1, 0],
        0,
    ),
    "an ordered dict keeps its order": (
        lambda p: p["b"],
        (OrderedDict(b=INT, a=FLOAT),),
        "(<b=int32,a=float32> -> int32)",
        [0, 1],
        0,
    ),
    "a dict does not": (
        lambda p: p["b"],
        ({"b": INT, "a": FLOAT},),
        "(<b=int32,a=float32> -> int32)",
        [1, 0],
        0,
    ),
    "a struct keeps its order": (
        lambda p: p.b,
        ([("b", INT), ("a", FLOAT)],),
        "(<b=int32,a=float32> -> int32)",
        [0, 1],
        0,
    ),
    "nested results": (
        lambda x: [x, (x, x)],
        (INT,),
        "(int32 -> <int32,<int32,int32>>)",
        0,
        [0, [1, 2]],
    ),
    "results in a dict are ordered by name": (
        lambda x: {"b": x, "a": x + 0.5},
        (INT,),
        "(int32 -> <a=float32,b=int32>)",
        0,
        [0, 1],
    ),
    "no parameter": (lambda: 3, (), "( -> int32)", None, 0),
    "an empty struct": (lambda x: x, ((),), "(<> -> <>)", [], []),
    "an unused parameter": (
        lambda x, y: y,
        (INT, (FLOAT, [2])),
        "(<x=int32,y=float32[2]> -> float32[2])",
        [0, 1],
        0,
    ),
}


@needs_jax
@pytest.mark.parametrize("case", TRACED)
def test_traced(case: str) -> None:
    function, types, signature, parameter, result = TRACED[case]
    computation = jc(function, *types)
    assert str(computation.type_signature) == signature
    node = computation.node
    assert isinstance(node, Compiled)
    assert node.kind == "xla"
    section = read_xla(node.payload)
    assert shown(section.parameter) == parameter
    assert shown(section.result) == result


@needs_jax
def test_the_bytes_do_not_depend_on_the_place() -> None:
    first = jc(lambda x: x * 2 + 1, INT)
    second = jc(lambda x: x * 2 + 1, INT)
    assert first == second


@needs_jax
def test_stablehlo_is_written_in_the_first_version_that_can_express_it() -> None:
    import jax  # pyright: ignore[reportMissingImports]  # only where it is installed

    def stablehlo(function: Callable[..., Any]) -> bytes:
        node = jc(function, (FLOAT, [2, 2])).node
        assert isinstance(node, Compiled)
        return read_xla(node.payload).stablehlo

    exact = jax.lax.DotAlgorithmPreset.F32_F32_F32
    assert stablehlo(lambda x: x @ x).startswith(b"ML\xefR\rStableHLO_v1.0.0\0")
    assert stablehlo(lambda x: jax.lax.dot(x, x, precision=exact)).startswith(
        b"ML\xefR\rStableHLO_v1.8.0\0"
    )


@needs_jax
def test_containers_of_results_are_kept() -> None:
    result = jc(lambda x: [x, (x,)], INT).type_signature.result
    assert repr(result) == (
        "StructType([TensorType(np.int32), StructType([TensorType(np.int32)]) as tuple]) as list"
    )


@needs_jax
def test_polymorphic_in_a_federated_computation() -> None:
    double = jc(lambda x: x * 2)
    f = tff.federated_computation(
        lambda x: tff.federated_map(double, x), tff.types.at_clients((FLOAT, [3]))
    )
    assert str(f.type_signature) == "({float32[3]}@CLIENTS -> {float32[3]}@CLIENTS)"


@needs_jax
def test_round_trip() -> None:
    computation = jc(lambda x, y: (x, y), INT, FLOAT)
    again = tff.deserialize_computation(tff.serialize_computation(computation))
    assert again.node == computation.node


def random_key() -> Any:
    import jax  # pyright: ignore[reportMissingImports]  # only where it is installed

    return jax.random.key(3)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a sequence": (
        lambda: jc(lambda x: x, tff.SequenceType(INT)),
        TypeError,
        "a JAX computation cannot take an argument of type `int32*` [E419]\n"
        "  note: `int32*` is not made of tensors and structs"
        "\n  help: take the whole sequence as one array, such as (np.int32, [10]), or use"
        " TensorFlow",
    ),
    "an unknown shape": (
        lambda: jc(lambda x: x, (INT, [None])),
        TypeError,
        "the shape of `int32[?]` is not known, as JAX needs it to be [E419]\n"
        "  help: declare the type with every size, or use a TensorFlow computation",
    ),
    "strings": (
        lambda: jc(lambda x: x, [np.str_]),
        ValueError,
        "JAX has no arrays of strings [E419]"
        "\n  help: write it in TensorFlow, or take numbers in place of strings",
    ),
    "64 bits": (
        lambda: jc(lambda x: x, np.int64),
        ValueError,
        "JAX has no `int64` unless it is told so [E459]\n"
        '  help: call jax.config.update("jax_enable_x64", True) first',
    ),
    "nothing returned": (
        lambda: jc(lambda x: [x, None], INT),
        TypeError,
        "None cannot be the result of a JAX computation [E454]\n"
        "  help: return arrays of numbers, and lists, tuples and mappings of them",
    ),
    "a key returned": (
        lambda: jc(random_key),
        TypeError,
        "an array of key<fry> cannot be the result of a JAX computation [E454]\n"
        "  help: return arrays of numbers, and lists, tuples and mappings of them",
    ),
    "a class that JAX does not know": (
        lambda: jc(lambda x: x.left, [Pair(INT, INT)]),
        TypeError,
        "JAX does not know an object of class 'Pair' as a struct of arrays [E418]\n"
        "  help: declare a list, tuple, dictionary or namedtuple in its place, or register the "
        "class with jax.tree_util.register_pytree_node",
    ),
    "a computation called inside": (
        lambda: jc(lambda x: tff.federated_computation(lambda y: y, INT)(x), INT),
        ValueError,
        "a computation of type `(int32 -> int32)` is called inside a jax.computation, but only "
        "TensorFlow computations can be called, and only by one another [E430]\n"
        "  help: call it in a federated computation and pass on what it gives",
    ),
}


@needs_jax
@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, builtin, text = REFUSED[case]
    assert str(error_without_place(builtin, make)) == text


@needs_jax
def test_a_class_that_jax_was_told_about() -> None:
    import jax  # pyright: ignore[reportMissingImports]  # only where it is installed

    class Known(Pair):
        pass

    jax.tree_util.register_pytree_node(
        Known, lambda pair: ((pair.left, pair.right), None), lambda _, parts: Known(*parts)
    )
    computation = jc(lambda pair: Known(pair.right, pair.left * 0.5), Known(INT, FLOAT))
    assert str(computation.type_signature) == (
        "(<left=int32,right=float32> -> <left=float32,right=float32>)"
    )


@needs_jax
def test_where_a_wrong_result_is_returned() -> None:
    def nothing(x: Any) -> None:
        del x

    with pytest.raises(TffcError) as caught:
        jc(nothing, INT)
    assert caught.value.span is not None
    assert caught.value.span.line == nothing.__code__.co_firstlineno


@needs_jax
def test_frames() -> None:
    def mistake(x: Any) -> Any:
        raise KeyError(x)

    try:
        jc(mistake, INT)
    except KeyError as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert not any("tffc/frontend" in file and "tests" not in file for file in files)
        assert files[-1] == __file__


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    error = error_without_place(MissingExtraError, lambda: jc(lambda x: x, INT))
    assert isinstance(error, ImportError)
    assert str(error) == (
        "a JAX computation needs JAX, which cannot be imported [E701]\n"
        "  note: import of jax halted; None in sys.modules\n"
        "  help: in tffc's checkout: pip install '.[jax]'"
    )
