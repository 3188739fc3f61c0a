"""Every operator: what it builds, and the type of the result."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.language import Block, Call, Lambda

fc = tff.federated_computation
Clients, Server, Sequence = tff.types.at_clients, tff.types.at_server, tff.SequenceType
INT, FLOAT = np.int32, np.float32
KEYS, MODEL = Clients((INT, [3])), Server((FLOAT, [10]))
STRUCT = [("a", INT), ("b", [INT, np.int64])]

ident = fc(lambda a: a, INT)
first = fc(lambda a, b: a, INT, INT)
first_of_pair = fc(lambda p: p[0], [INT, INT])
poly = fc(lambda a, b: a)
pick = fc(lambda d, i: d, (FLOAT, [10]), INT)
one = fc(lambda: 1)
ID, FIRST = "(<lambda>_arg -> <lambda>_arg)", "(<lambda>_arg -> <lambda>_arg[0])"


def bound(function: Any) -> list[str]:
    """What a traced function binds, without the names of the symbols."""
    node = function.node
    assert isinstance(node, Lambda)
    assert isinstance(node.result, Block)
    return [str(binding.value) for binding in node.result.locals]


def traced(body: Callable[..., Any], *types: Any) -> Any:
    body.__name__ = "f"
    return fc(body, *types)


# What is traced, over which types, to which expressions, of which type.
BUILT: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str], str]] = {
    "sum": (tff.federated_sum, (Clients(INT),), ["federated_sum(f_arg)"], "int32@SERVER"),
    "sum of a list": (
        lambda x, y: tff.federated_sum([x, y]),
        (Clients(INT), Clients(FLOAT)),
        ["federated_sum(federated_zip_at_clients(<f_arg[0],f_arg[1]>))"],
        "<int32,float32>@SERVER",
    ),
    "sum of a mapping": (
        lambda x, y: tff.federated_sum(collections.OrderedDict(a=x, b=y)),
        (Clients(INT), Clients(FLOAT)),
        ["federated_sum(federated_zip_at_clients(<a=f_arg[0],b=f_arg[1]>))"],
        "<a=int32,b=float32>@SERVER",
    ),
    "sum of an empty struct": (
        lambda x: tff.federated_sum(x),
        (Clients([]),),
        ["federated_sum(f_arg)"],
        "<>@SERVER",
    ),
    "mean": (
        lambda x: tff.federated_mean(x),
        (Clients(FLOAT),),
        ["federated_mean(f_arg)"],
        "float32@SERVER",
    ),
    "weighted mean": (
        lambda x, w: tff.federated_mean(x, weight=w),
        (Clients(FLOAT, True), Clients(INT, True)),
        ["federated_weighted_mean(<f_arg[0],f_arg[1]>)"],
        "float32@SERVER",
    ),
    "min": (tff.federated_min, (Clients(INT),), ["federated_min(f_arg)"], "int32@SERVER"),
    "max": (
        lambda x: tff.federated_max(x),
        (Clients([INT, ("a", FLOAT)]),),
        ["federated_max(f_arg)"],
        "<int32,a=float32>@SERVER",
    ),
    "broadcast": (
        tff.federated_broadcast,
        (Server(INT),),
        ["federated_broadcast(f_arg)"],
        "int32@CLIENTS",
    ),
    "broadcast of a list": (
        lambda x, y: tff.federated_broadcast([x, y]),
        (Server(INT), Server(INT)),
        ["federated_broadcast(federated_zip_at_server(<f_arg[0],f_arg[1]>))"],
        "<int32,int32>@CLIENTS",
    ),
    "value at the clients": (
        lambda: tff.federated_value(1, tff.CLIENTS),
        (),
        ["federated_value_at_clients(1)"],
        "int32@CLIENTS",
    ),
    "value at the server": (
        lambda: tff.federated_value([1, (2.0, "a")], tff.SERVER),
        (),
        ["federated_value_at_server(<1,<2.0,b'a'>>)"],
        "<int32,<float32,str>>@SERVER",
    ),
    "value broadcast": (
        lambda: tff.federated_broadcast(tff.federated_value(1, tff.SERVER)),
        (),
        ["federated_value_at_server(1)", "federated_broadcast(fc_f_symbol_0)"],
        "int32@CLIENTS",
    ),
    "eval at the clients": (
        lambda: tff.federated_eval(one, tff.CLIENTS),
        (),
        ["federated_eval_at_clients(( -> 1))"],
        "{int32}@CLIENTS",
    ),
    "eval at the server": (
        lambda: tff.federated_eval(one, tff.SERVER),
        (),
        ["federated_eval_at_server(( -> 1))"],
        "int32@SERVER",
    ),
    "map at the clients": (
        lambda x: tff.federated_map(ident, x),
        (Clients(INT, True),),
        [f"federated_map(<{ID},f_arg>)"],
        "{int32}@CLIENTS",
    ),
    "map at the server": (
        lambda x: tff.federated_map(ident, x),
        (Server(INT),),
        [f"federated_apply(<{ID},f_arg>)"],
        "int32@SERVER",
    ),
    "map over a tuple": (
        lambda x, y: tff.federated_map(first, (x, y)),
        (Clients(INT), Clients(INT)),
        [f"federated_map(<{FIRST},federated_zip_at_clients(<f_arg[0],f_arg[1]>)>)"],
        "{int32}@CLIENTS",
    ),
    "map over a tuple at the server": (
        lambda x, y: tff.federated_map(first, (x, y)),
        (Server(INT), Server(INT)),
        [f"federated_apply(<{FIRST},federated_zip_at_server(<f_arg[0],f_arg[1]>)>)"],
        "int32@SERVER",
    ),
    "map of a polymorphic computation": (
        lambda x: tff.federated_map(poly, x),
        (Clients([INT, FLOAT]),),
        ["federated_map(<(<lambda>_arg -> <lambda>_arg[0]),f_arg>)"],
        "{int32}@CLIENTS",
    ),
    "map of a function value": (
        lambda g, x: tff.federated_map(g, x),
        (tff.FunctionType(INT, FLOAT), Clients(INT)),
        ["federated_map(<f_arg[0],f_arg[1]>)"],
        "{float32}@CLIENTS",
    ),
    "map over two attributes": (
        lambda x: tff.federated_map(first, (x.a, x.b)),
        (Clients([("a", INT), ("b", INT)]),),
        [
            f"federated_map(<{FIRST},federated_zip_at_clients(<federated_map(<(x -> x[0]),f_arg>),"
            "federated_map(<(x -> x[1]),f_arg>)>)>)"
        ],
        "{int32}@CLIENTS",
    ),
    "zip at the clients": (
        lambda x, y: tff.federated_zip([x, {"a": y, "e": ()}]),
        (Clients(INT), Clients(INT, True)),
        ["federated_zip_at_clients(<f_arg[0],<a=f_arg[1],e=<>>>)"],
        "{<int32,<a=int32,e=<>>>}@CLIENTS",
    ),
    "zip at the server": (
        lambda x: tff.federated_zip(x),
        ([Server(INT), tff.FederatedType(INT, tff.SERVER, False)],),
        ["federated_zip_at_server(f_arg)"],
        "<int32,int32>@SERVER",
    ),
    "aggregate": (
        lambda x: tff.federated_aggregate(x, 0, first, first, ident),
        (Clients(INT),),
        [f"federated_aggregate(<f_arg,0,(a -> {FIRST}(a)),(a -> {FIRST}(a)),{ID}>)"],
        "int32@SERVER",
    ),
    "aggregate by functions of one pair": (
        lambda x: tff.federated_aggregate(x, 0, first_of_pair, first_of_pair, ident),
        (Clients(INT),),
        [f"federated_aggregate(<f_arg,0,{FIRST},{FIRST},{ID}>)"],
        "int32@SERVER",
    ),
    "aggregate by polymorphic functions": (
        lambda x: tff.federated_aggregate(x, 0.0, poly, poly, fc(lambda a: a)),
        (Clients(INT),),
        [f"federated_aggregate(<f_arg,0.0,{FIRST},{FIRST},(<lambda>_arg -> <lambda>_arg)>)"],
        "float32@SERVER",
    ),
    "aggregate from a computed zero": (
        lambda x: tff.federated_aggregate(x, one(), first_of_pair, first_of_pair, ident),
        (Clients(INT),),
        ["( -> 1)()", f"federated_aggregate(<f_arg,fc_f_symbol_0,{FIRST},{FIRST},{ID}>)"],
        "int32@SERVER",
    ),
    "aggregate from a less general zero": (
        lambda x: tff.federated_aggregate(
            x,
            np.zeros([0], INT),
            fc(lambda p: p[0], [(INT, [None]), INT]),
            fc(lambda p: p[0], [(INT, [None]), (INT, [None])]),
            fc(lambda a: a, (INT, [None])),
        ),
        (Clients(INT),),
        [f"federated_aggregate(<f_arg,[],{FIRST},{FIRST},{ID}>)"],
        "int32[?]@SERVER",
    ),
    "select": (
        lambda k, m, d: tff.federated_select(k, m, d, pick),
        (KEYS, Server(INT), MODEL),
        [f"federated_select(<f_arg[0],f_arg[1],f_arg[2],(a -> {FIRST}(a))>)"],
        "{float32[10]*}@CLIENTS",
    ),
    "select by a polymorphic function": (
        lambda k, m, d: tff.federated_select(k, m, d, poly),
        (Clients((INT, [3]), True), Server(INT), MODEL),
        [f"federated_select(<f_arg[0],f_arg[1],f_arg[2],{FIRST}>)"],
        "{float32[10]*}@CLIENTS",
    ),
    "secure select, zipped": (
        lambda k, m, d: tff.federated_secure_select(k, m, [d, d], poly),
        (KEYS, Server(INT), MODEL),
        [
            "federated_secure_select(<f_arg[0],f_arg[1],federated_zip_at_server(<f_arg[2],f_arg[2]"
            f">),{FIRST}>)"
        ],
        "{<float32[10],float32[10]>*}@CLIENTS",
    ),
    "secure sum": (
        lambda x: tff.federated_secure_sum(x, 8),
        (Clients(np.int64),),
        ["federated_secure_sum(<f_arg,8>)"],
        "int64@SERVER",
    ),
    "secure sum, repeated bound": (
        lambda x, m: tff.federated_secure_sum(x, max_input=m),
        (Clients(STRUCT), INT),
        ["federated_secure_sum(<f_arg[0],<a=f_arg[1],b=<f_arg[1],f_arg[1]>>>)"],
        "<a=int32,b=<int32,int64>>@SERVER",
    ),
    "secure sum, bounds like the value": (
        lambda x: tff.federated_secure_sum(x, {"a": 1, "b": [2, 3]}),
        (Clients(STRUCT),),
        ["federated_secure_sum(<f_arg,<a=1,b=<2,3>>>)"],
        "<a=int32,b=<int32,int64>>@SERVER",
    ),
    "secure sum, a bound for a struct inside": (
        lambda x: tff.federated_secure_sum(x, {"a": 1, "b": 2}),
        (Clients(STRUCT),),
        ["federated_secure_sum(<f_arg,<a=1,b=<2,2>>>)"],
        "<a=int32,b=<int32,int64>>@SERVER",
    ),
    "secure sum of an empty struct": (
        lambda x: tff.federated_secure_sum(x, 4),
        (Clients([]),),
        ["federated_secure_sum(<f_arg,<>>)"],
        "<>@SERVER",
    ),
    "secure sum of bits": (
        lambda x, y: tff.federated_secure_sum_bitwidth([x, y], np.array([4], INT)),
        (Clients(INT), Clients(INT)),
        [
            "federated_secure_sum_bitwidth(<federated_zip_at_clients(<f_arg[0],f_arg[1]>),"
            "<[4],[4]>>)"
        ],
        "<int32,int32>@SERVER",
    ),
    "sequence map": (
        lambda s: tff.sequence_map(ident, s),
        (Sequence(INT),),
        [f"sequence_map(<{ID},f_arg>)"],
        "int32*",
    ),
    "sequence map at the clients": (
        lambda s: tff.sequence_map(ident, s),
        (Clients(Sequence(INT)),),
        [
            f"(arg0 -> (arg1 -> sequence_map(<arg0,arg1>)))({ID})",
            "federated_map(<fc_f_symbol_0,f_arg>)",
        ],
        "{int32*}@CLIENTS",
    ),
    "sequence map at the server": (
        lambda s: tff.sequence_map(ident, s),
        (Server(Sequence(INT)),),
        [
            f"(arg0 -> (arg1 -> sequence_map(<arg0,arg1>)))({ID})",
            "federated_apply(<fc_f_symbol_0,f_arg>)",
        ],
        "int32*@SERVER",
    ),
    "sequence map of a more general function": (
        lambda s: tff.sequence_map(fc(lambda a: a, (INT, [None])), s),
        (Sequence((INT, [2])),),
        ["sequence_map(<(<lambda>_arg -> <lambda>_arg),f_arg>)"],
        "int32[?]*",
    ),
    "sequence reduce": (
        lambda s: tff.sequence_reduce(s, 0, first),
        (Sequence(INT),),
        [f"sequence_reduce(<f_arg,0,(a -> {FIRST}(a))>)"],
        "int32",
    ),
    "sequence reduce at the clients": (
        lambda s: tff.sequence_reduce(s, tff.federated_value(0, tff.CLIENTS), first),
        (Clients(Sequence(INT)),),
        [
            "federated_value_at_clients(0)",
            f"federated_map(<(arg -> sequence_reduce(<arg[0],arg[1],(a -> {FIRST}(a))>)),"
            "federated_zip_at_clients(<f_arg,fc_f_symbol_0>)>)",
        ],
        "{int32}@CLIENTS",
    ),
    "sequence reduce at the server": (
        lambda s, z: tff.sequence_reduce(s, z, first_of_pair),
        (Server(Sequence(INT)), Server(INT)),
        [
            f"federated_apply(<(arg -> sequence_reduce(<arg[0],arg[1],{FIRST}>)),"
            "federated_zip_at_server(<f_arg[0],f_arg[1]>)>)",
        ],
        "int32@SERVER",
    ),
    "sequence sum": (
        lambda s: tff.sequence_sum(s),
        (Sequence([INT, FLOAT]),),
        ["sequence_sum(f_arg)"],
        "<int32,float32>",
    ),
    "sequence sum at the clients": (
        lambda s: tff.sequence_sum(s),
        (Clients(Sequence(INT), True),),
        ["federated_map(<sequence_sum,f_arg>)"],
        "{int32}@CLIENTS",
    ),
    "sequence sum at the server": (
        lambda s: tff.sequence_sum(s),
        (Server(Sequence(INT)),),
        ["federated_apply(<sequence_sum,f_arg>)"],
        "int32@SERVER",
    ),
}


@pytest.mark.parametrize("case", BUILT)
def test_built(case: str) -> None:
    body, types, expressions, result = BUILT[case]
    computation = renamed(body, types)
    assert bound(computation) == expressions
    assert str(computation.type_signature.result) == result


def renamed(body: Callable[..., Any], types: tuple[Any, ...]) -> Any:
    """The computation of `body` traced as if it were a function named f."""
    if body.__name__ == "<lambda>":
        return traced(body, *types)
    return traced(lambda x: body(x), *types)


def intrinsic_type(body: Callable[..., Any], *types: Any) -> str:
    computation = fc(body, *types)
    assert isinstance(computation.node, Lambda)
    assert isinstance(computation.node.result, Block)
    call = computation.node.result.locals[-1].value
    assert isinstance(call, Call)
    return str(call.function.type)


def test_types_of_intrinsics() -> None:
    assert intrinsic_type(lambda x: tff.federated_sum(x), Clients(INT, True)) == (
        "({int32}@CLIENTS -> int32@SERVER)"
    )
    assert intrinsic_type(lambda x: tff.federated_map(ident, x), Clients(INT, True)) == (
        "(<(int32 -> int32),{int32}@CLIENTS> -> {int32}@CLIENTS)"
    )
    assert intrinsic_type(
        lambda x, y: tff.federated_zip([x, y]), Clients(INT, True), Clients(INT)
    ) == ("(<{int32}@CLIENTS,{int32}@CLIENTS> -> {<int32,int32>}@CLIENTS)")
    assert intrinsic_type(
        lambda x: tff.federated_aggregate(x, 0, first, first, ident), Clients(INT)
    ) == (
        "(<{int32}@CLIENTS,int32,(<int32,int32> -> int32),(<int32,int32> -> int32),"
        "(int32 -> int32)> -> int32@SERVER)"
    )
    assert intrinsic_type(
        lambda k, m, d: tff.federated_select(k, m, d, pick), KEYS, Server(INT), MODEL
    ) == (
        "(<{int32[3]}@CLIENTS,int32@SERVER,float32[10]@SERVER,(<float32[10],int32> -> float32[10])"
        "> -> {float32[10]*}@CLIENTS)"
    )


def test_containers_of_members_are_kept() -> None:
    result = fc(lambda x: tff.federated_sum(x), Clients([INT])).type_signature.result
    assert isinstance(result, tff.FederatedType)
    assert repr(result.member) == "StructType([TensorType(np.int32)]) as list"
