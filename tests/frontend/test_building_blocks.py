"""`tff.framework`'s building blocks, cardinalities, data descriptors and mergeable forms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from google.protobuf import any_pb2

import tffc as tff
from tffc import language as ir
from tffc.api.programs import program_of
from tffc.support.errors import TffcError
from tffc.tff.cardinalities import infer_cardinalities

F: Any = tff.framework
INT = tff.to_type(np.int32)
CLIENTS, SERVER = tff.types.at_clients(INT), tff.types.at_server(INT)
x = F.Reference("x", INT)
struct = F.Reference("s", tff.StructType([("a", INT)]))
total = tff.federated_computation(tff.federated_sum, CLIENTS)
first = tff.federated_computation(lambda a, b: a, INT, INT)
same = tff.federated_computation(lambda merged: merged, SERVER)
late = tff.federated_computation(lambda clients, merged: (clients, merged), CLIENTS, SERVER)
native: Any = tff.backends.native


def test_they_are_nodes() -> None:
    assert isinstance(x, ir.Reference)
    assert isinstance(F.Lambda("x", INT, x), F.Lambda)
    assert not isinstance(x, F.Lambda)
    assert isinstance(ir.Reference("y", INT), F.ComputationBuildingBlock)
    block = F.Block([("y", x)], F.Struct([("a", x), x]))
    assert str(block) == "(let y=x in <a=x,x>)"
    assert [(name, value) for name, value in block.locals] == [("y", x)]
    assert F.ComputationBuildingBlock.from_proto(block.proto) == block


@pytest.mark.slow
def test_deep_programs_are_rewritten() -> None:
    deep = x
    for _ in range(20_000):
        deep = F.Selection(F.Struct([deep]), index=0)
    y = F.Reference("y", INT)
    for transform in (F.transform_postorder, F.transform_preorder):
        made, changed = transform(deep, lambda node: (y, True) if node is x else (node, False))
        assert changed
        while made.children():
            (made,) = made.children()
        assert made is y


WRONG: dict[str, tuple[Callable[[], Any], str, str]] = {
    "name": (
        lambda: F.Reference(1, INT),
        "E126",
        "a reference is of a name, not of an object of class 'int'",
    ),
    "neither": (
        lambda: F.Selection(struct),
        "E126",
        "an element is selected by its name or by its position, but neither is given",
    ),
    "both": (
        lambda: F.Selection(struct, name="a", index=0),
        "E126",
        "an element is selected by its name or by its position, but both are given",
    ),
    "no kind": (
        lambda: F.ComputationBuildingBlock(INT),
        "E714",
        "a building block is made by the class of its kind",
    ),
    "no node": (
        lambda: F.transform_postorder(3, print),
        "E714",
        "expected a ComputationBuildingBlock, found `3`",
    ),
    "no placement": (
        lambda: F.merge_cardinalities({"x": 1}, {}),
        "E714",
        "a cardinality is a placement and a number, not an object of class 'str' and an "
        "object of class 'int'",
    ),
    "contradiction": (
        lambda: F.merge_cardinalities({tff.CLIENTS: 2}, {tff.CLIENTS: 3}),
        "E723",
        "one value is of 2 at CLIENTS, the other of 3",
    ),
    "no list": (
        lambda: infer_cardinalities(1, CLIENTS),
        "E711",
        "a value of type `{int32}@CLIENTS` is a list of values, not an object of class 'int'",
    ),
    "not at the server": (
        lambda: form(up_to_merge=first),
        "E724",
        "up_to_merge must give one value at the server, but gives `int32`",
    ),
    "no argument": (
        lambda: form(after_merge=tff.federated_computation(lambda: 1)),
        "E724",
        "after_merge must take `<{int32}@CLIENTS,int32@SERVER>`, but takes no argument",
    ),
    "no merge": (
        lambda: form(merge=same),
        "E724",
        "merge must be of type `(<int32,int32> -> int32)`, but is `(int32@SERVER -> int32@SERVER)`",
    ),
    "no compiler": (
        lambda: F.MergeableCompExecutionContext([]).invoke(total, [1]),
        "E715",
        "a computation was called in a context that runs instances of MergeableCompForm, "
        "without a compiler that makes one",
    ),
    "another argument": (
        lambda: F.DataDescriptor(total, [1], INT, 1),
        "E711",
        "the computation is of type `({int32}@CLIENTS -> int32@SERVER)`, and does not "
        "take an argument of type `int32`",
    ),
    "no cardinality": (
        lambda: F.DataDescriptor(None, [1], CLIENTS).cardinality,
        "E729",
        "the descriptor was made without a cardinality",
    ),
}


def form(**parts: Any) -> Any:
    return F.MergeableCompForm(
        **{"up_to_merge": total, "merge": first, "after_merge": late, **parts}
    )


@pytest.mark.parametrize("name", WRONG)
def test_refusals(name: str) -> None:
    make, code, message = WRONG[name]
    with pytest.raises(TffcError) as caught:
        make()
    assert (caught.value.code, caught.value.message) == (code, message)


def contexts() -> list[Any]:
    return [native.create_async_local_cpp_execution_context() for _ in range(2)]


@pytest.mark.tensorflow
def test_groups_of_clients_are_merged() -> None:
    # The first group's sum is what is left of the merge.
    groups = F.MergeableCompExecutionContext(contexts(), lambda comp: form())
    assert groups.invoke(total, [1, 2, 3, 4, 5]) == ([1, 2, 3, 4, 5], 1 + 2)
    more = F.MergeableCompExecutionContext(contexts(), lambda comp: form(), num_subrounds=9)
    assert more.invoke(total, [7, 2]) == ([7, 2], 7)
    assert groups.invoke(form(), [4, 5]) == ([4, 5], 4)


@pytest.mark.tensorflow
def test_computations_run_whole() -> None:
    context = native.create_mergeable_comp_execution_context(contexts())
    with F.get_context_stack().install(context):
        assert total([1, 2, 3]) == 6

        async def inside() -> int:
            return total([1, 2])

        assert asyncio.run(inside()) == 3


@pytest.mark.tensorflow
def test_arguments_are_made_where_they_are_used() -> None:
    made = F.DataDescriptor(tff.federated_computation(lambda v: v, CLIENTS), [1, 2], CLIENTS, 2)
    assert total(made) == 3
    pair = late(made, F.CardinalityFreeDataDescriptor(same, 4, SERVER))
    assert pair == ([1, 2], 4)


@pytest.mark.tensorflow
def test_means_and_secure_sums_are_replaced() -> None:
    mean = tff.federated_computation(
        lambda v: tff.federated_mean(v), tff.types.at_clients(np.float32)
    )
    body, changed = tff.tensorflow.replace_intrinsics_with_bodies(mean.to_building_block())
    assert changed
    assert "federated_mean" not in str(body)
    assert F.ConcreteComputation.from_building_block(body)([1.0, 4.0]) == 2.5
    node = total.to_building_block()
    assert tff.tensorflow.replace_intrinsics_with_bodies(node) == (node, False)
    secure = tff.federated_computation(lambda v: tff.federated_secure_sum(v, 9), CLIENTS)
    testing: Any = tff.backends.test
    opened = testing.replace_secure_intrinsics_with_bodies(secure)
    assert "secure" not in str(opened.to_building_block())
    assert opened([1, 2]) == 3


def test_each_kind_is_made_by_its_class() -> None:
    assert str(F.Selection(struct, name="a")) == "s.a"
    assert str(F.Intrinsic("federated_sum", total.type_signature)) == "federated_sum"
    assert str(F.Literal(np.int32(7), INT)) == "7"
    section = tff.tf_computation(lambda v: v + 1, np.int32)
    message = section.to_building_block().proto
    made = F.CompiledComputation(message, name="more")
    assert (made.name, made.type_signature) == ("more", section.type_signature)
    with pytest.raises(TffcError, match="is not an instance of federated_sum"):
        F.Intrinsic("federated_sum", tff.FunctionType(INT, INT))


def test_messages_that_stay_unopened_until_the_program_is_used() -> None:
    identity = F.Lambda("x", INT, x)
    unopened = F.CompiledComputation(identity.proto, name="same")
    assert (str(unopened), unopened.children(), unopened.type) == ("comp#same", (), identity.type)
    assert unopened != F.CompiledComputation(identity.proto, name="other")
    assert unopened != F.CompiledComputation(identity.proto)
    assert str(F.CompiledComputation(identity.proto)) == str(F.CompiledComputation(identity.proto))
    assert unopened.proto == identity.proto
    calls = F.Lambda("y", INT, F.Call(unopened, F.Reference("y", INT)))
    computation: Any = F.ConcreteComputation.from_building_block(calls)
    assert str(computation.node) == "(y -> (x -> x)(y))"
    assert computation(3) == 3
    assert str(F.to_call_dominant(calls)) == "(y -> y)"
    assert str(program_of(calls).computation) == "(y -> (x -> x)(y))"
    wrong = F.CompiledComputation(identity.proto, type_signature=tff.FunctionType(None, INT))
    with pytest.raises(TffcError, match="this lambda is not well formed"):
        F.ConcreteComputation.from_building_block(wrong)


def test_structs_of_blocks_are_structs() -> None:
    pair = F.Struct([("a", x), struct])
    assert isinstance(pair, tff.structure.Struct)
    assert (len(pair), list(pair), pair[1], pair.a) == (2, [x, struct], struct, x)
    assert F.Struct([])
    in_list, in_tuple = F.Struct([x], list), F.Struct([x], tuple)
    assert in_list != in_tuple
    assert hash(in_list) == hash(in_tuple)


def test_contents_of_data_and_contexts_of_references() -> None:
    content = any_pb2.Any(type_url="store", value=b"17")
    assert F.Data(content, INT).content == content
    assert str(F.Reference("x", INT, "loop")) == "x@loop"
    assert F.Reference("x", INT, "loop") != x


def test_names_that_are_taken_are_not_given() -> None:
    program = F.Block([("_var1", x)], F.Lambda("_var2", INT, F.Reference("_var4", INT)))
    names = F.unique_name_generator(program)
    assert [next(names) for _ in range(2)] == ["_var3", "_var5"]
    assert next(F.unique_name_generator(None, prefix="n")) == "n1"


def test_programs_in_call_dominant_form() -> None:
    summed = F.Lambda("v", CLIENTS, F.Call(total.to_building_block(), F.Reference("v", CLIENTS)))
    nested = F.Call(summed, F.Reference("c", CLIENTS))
    with pytest.raises(TffcError, match="used but not bound"):
        F.to_call_dominant(nested)
    text = str(F.to_call_dominant(F.Lambda("c", CLIENTS, nested)))
    assert (
        text
        == "(c -> (let fc_federated_sum_symbol_0=federated_sum(c) in fc_federated_sum_symbol_0))"
    )
