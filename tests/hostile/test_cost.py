"""Cost is bounded before it is paid: small programs that stand for astronomically large ones."""

from __future__ import annotations

import pathlib
import random
from typing import cast

import pytest
from click.testing import CliRunner

from tests.hostile import doubling
from tffc.assurance.diff.alignment import aligned
from tffc.assurance.validation.arguments import usual_trials
from tffc.assurance.validation.bounded import Bounded
from tffc.backends import compile_form
from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.application import application
from tffc.language import calls, wire
from tffc.language.alpha import canonical
from tffc.language.dtypes import DType
from tffc.language.environment import Environment
from tffc.language.invariants import INVARIANTS
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.notation import compact, formatted, parse, sections, structural, typed
from tffc.language.notation.type_parser import parse_type
from tffc.language.size import MAX_SIZE, max_size, size_limit
from tffc.language.type_parts import leaves
from tffc.language.types import StructType, TensorType, Type, at_clients, at_server
from tffc.language.verify import holding, verify
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Tensor
from tffc.passes import call_dominant
from tffc.runtime.interpreter.interpreter import EMPTY, run
from tffc.support.errors import (
    GraphError,
    NotationError,
    TffcError,
    ValidationError,
    VerificationError,
    WireError,
)
from tffc.support.near import MOST_NAMES, near_names
from tffc.support.trampoline import run as run_task

pytestmark = [pytest.mark.usefixtures("hang"), pytest.mark.slow]

DOUBLE = f"{doubling.PLUS}(<y,y>)"
INT = TensorType(DType.INT32)


def refusal(error: TffcError) -> str:
    return "\n".join((f"{error.code}: {error.message}", *error.notes, error.help or ""))


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        (doubling.function_tower(200), "(p -> p)"),
        (doubling.composed_tower(200), "(p -> p)"),
        (doubling.choosing_tower(200), "(p -> p)"),
        (doubling.swapping_tower(200), "(p -> <p[0],p[1]>)"),
        (doubling.leaf_of_struct_tower(200), "(p -> p)"),
    ],
    ids=["functions", "compositions", "choices", "swaps", "structs"],
)
def test_what_makes_no_calls_is_inlined_in_the_time_of_what_it_shares(text: str, flat: str) -> None:
    assert compact(call_dominant(parse(text))) == flat


@pytest.mark.parametrize("text", [doubling.mapped_tower(200), doubling.mapped_leaf(200)])
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_round_compiles_where_its_result_is_small(text: str, form: str) -> None:
    assert compile_form(parse(text), form).components()


def shared_applications(levels: int) -> Node:
    """`e = <e,e>[0]` and so on by a function that gives the first of two, without any names."""
    pair = Reference("pair", StructNode((Reference("x", INT),) * 2).type)
    first = parse("(pair: <int32,int32> -> pair[0])")
    assert isinstance(first, Lambda)
    assert first.parameter_type == pair.type
    node: Node = Reference("x", INT)
    for _ in range(levels):
        node = Call(first, StructNode((node, node)))
    return Lambda("x", INT, node)


def test_nodes_that_are_shared_without_a_name_are_evaluated_once() -> None:
    assert compact(call_dominant(shared_applications(200))) == "(x -> x)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            doubling.function_tower(40, DOUBLE),
            "E321: the program makes 1099511627776 calls when its functions are inlined, more than "
            "the 262144 that are made\n"
            "`f19` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
        (
            doubling.mapped_tower(40, DOUBLE),
            "E321: the program makes 1099511627778 calls when its functions are inlined, more than "
            "the 262144 that are made\n"
            "`f19` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
        (
            doubling.composed_tower(40, DOUBLE),
            "E321: the program makes 1099511627776 calls when its functions are inlined, more than "
            "the 262144 that are made\n"
            "`f19` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
        (
            doubling.squaring_tower(12, DOUBLE),
            "E321: the program makes at least 2^256 calls when its functions are inlined, more "
            "than the 262144 that are made\n"
            "`y` alone makes 524288 calls each time it is called\n"
            "what is shared is written out at each of its places; use it at fewer, or allow more",
        ),
    ],
    ids=["functions", "mapped", "compositions", "squares"],
)
def test_calls_are_counted_before_they_are_made(text: str, message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        call_dominant(parse(text))
    assert refusal(caught.value) == message


def test_each_call_that_is_allowed_is_made() -> None:
    program = parse(doubling.function_tower(6, DOUBLE))
    with size_limit(64 * 16):
        assert compact(call_dominant(program)).count("generic_plus") == 64
    with size_limit(64 * 16 - 1), pytest.raises(VerificationError, match="makes 64 calls"):
        call_dominant(program)


def test_steps_without_calls_are_bounded() -> None:
    """A permutation of 100 elements comes back to the first order after 223,092,870 steps."""
    names, cycles = list(range(100)), (2, 3, 5, 7, 11, 13, 17, 19, 23)
    start = 0
    for size in cycles:
        names[start : start + size] = [*names[start + 1 : start + size], start]
        start += size
    kind = f"<{','.join(['int32'] * len(names))}>"
    lines = [f"f0=(y: {kind} -> <{','.join(f'y[{name}]' for name in names)}>)"]
    lines += [f"f{i}=(y: {kind} -> f{i - 1}(f{i - 1}(y)))" for i in range(1, 40)]
    program = parse(f"(p: {kind} -> (let {','.join(lines)} in f39(p)))")
    with size_limit(100_000), pytest.raises(VerificationError) as caught:
        call_dominant(program)
    assert refusal(caught.value) == (
        "E321: the functions of the program are not inlined in 100000 steps\n"
        "`f0` was applied 754 times by then\n"
        "`f9` alone takes 67568 steps each time it is called\n"
        "call functions fewer times, or allow more"
    )


@pytest.mark.parametrize("first", ["y", DOUBLE], ids=["nothing", "calls"])
def test_functions_that_are_made_of_functions_are_counted(first: str) -> None:
    program = parse(doubling.squaring_tower(60, first))
    with size_limit(100_000), pytest.raises(VerificationError) as caught:
        call_dominant(program)
    assert refusal(caught.value) == (
        "E321: the functions of the program are not inlined in 100000 steps\n"
        "`t0` was applied 3070 times by then\n"
        "`t11` alone takes 65520 steps each time it is called\n"
        "call functions fewer times, or allow more"
    )


def test_a_function_that_makes_calls_takes_few_steps() -> None:
    """4,096 calls by way of 8,191 applications."""
    with size_limit(4096 * 16):
        assert compact(call_dominant(parse(doubling.function_tower(12, DOUBLE)))).count("=") == 4096


HELP = "what is shared is written out at each of its places; use it at fewer, or allow more"


def doubled_type(levels: int) -> Type:
    kind: Type = INT
    for _ in range(levels):
        kind = StructType([kind, kind])
    return kind


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [doubling.struct_tower(200), doubling.leaf_of_struct_tower(200)],
    ids=["whole", "leaf"],
)
def test_a_text_whose_types_double_is_read_checked_and_printed(text: str) -> None:
    program = parse(text)
    verify(program)
    for show in (compact, formatted, structural):
        assert len(show(program)) < 4_000_000
    again = parse(typed(program))
    assert again == program
    assert canonical(again) == canonical(program)
    assert hash(again) == hash(program)
    assert set(holding(program)) <= set(INVARIANTS)


def test_types_of_locals_that_are_too_long_are_left_out_of_the_text() -> None:
    assert "v13: <" in typed(parse(doubling.struct_tower(14)))
    assert "v14=<" in typed(parse(doubling.struct_tower(14)))
    assert parse(typed(parse(doubling.struct_tower(14)))) == parse(doubling.struct_tower(14))


def test_a_message_is_measured_before_it_is_written() -> None:
    with pytest.raises(WireError) as caught:
        wire.to_bytes(parse(doubling.struct_tower(40)))
    assert refusal(caught.value) == (
        "E167: the types of the program take 47426178715133 bytes when they are written out, more "
        "than the 268435456 that are written\n"
        "the type of `v25` alone takes 482444008 bytes\n" + HELP
    )


def test_the_types_that_are_refused_are_those_that_are_counted() -> None:
    kind = doubled_type(10)
    program = Lambda("p", kind, Reference("p", kind))
    written = wire.to_bytes(program)
    taken = len(wire.type_to_bytes(kind)) + len(wire.type_to_bytes(program.type))
    with size_limit(taken // 64), pytest.raises(WireError) as caught:
        wire.to_bytes(program)
    assert refusal(caught.value) == (
        f"E167: the types of the program take {taken} bytes when they are written out, more than "
        f"the {taken // 64 * 64} that are written\n" + HELP
    )
    with size_limit(taken // 64 + 1):
        assert wire.to_bytes(program) == written


def test_equal_types_that_were_made_twice_count_once() -> None:
    kinds = [StructType.of((f"a{'b' * 2000}",), (INT,)) for _ in range(50)]
    assert len(set(map(id, kinds))) == 50
    program = StructNode(tuple(Reference("x", kind) for kind in kinds))
    taken = len(wire.type_to_bytes(kinds[0])) + len(wire.type_to_bytes(program.type))
    with size_limit(taken // 64 + 1):
        assert len(wire.to_bytes(program)) > 2 * 50 * 2000


def test_a_type_that_is_written_twice_is_made_once() -> None:
    text = str(doubled_type(12))
    for kind in (parse_type(text), parse_type(f"({{{text}}}@CLIENTS -> <a={text},b={text}*>)")):
        found, stack = {}, [kind]
        while stack:
            part = stack.pop()
            if id(part) not in found:
                found[id(part)] = part
                stack.extend(part.children())
        assert len(found) == len(set(found.values())) <= 17


@pytest.mark.slow
def test_types_that_grow_by_one_add_up() -> None:
    with pytest.raises(WireError, match=r"^the types of the program take \d+ bytes when"):
        wire.to_bytes(parse(doubling.nested_lambdas(20_000)))


def test_a_text_is_measured_before_it_is_written() -> None:
    parameter = Reference("x", doubled_type(40))
    with pytest.raises(NotationError) as caught:
        typed(Lambda("x", parameter.type, parameter))
    assert refusal(caught.value) == (
        "E202: the text of the program is longer than 67108864 characters\n"
        "the type of `x` alone takes 8796093022205 characters\n"
        "print it in the compact style, or print a part of it"
    )


@pytest.mark.slow
def test_a_message_about_a_type_shows_its_beginning() -> None:
    assert str(doubled_type(200)).startswith("<<<<")
    assert str(doubled_type(200)).endswith(f" ...{2**201 - 1} parts in all")
    assert repr(doubled_type(200)).endswith(f" ...{2**201 - 1} parts in all")


def test_leaves_are_counted_before_they_are_listed() -> None:
    with pytest.raises(TffcError) as caught:
        leaves(doubled_type(40))
    assert caught.value.code == "E167"
    assert caught.value.message.endswith(
        "has 2199023255551 parts when it is written out, more than the 4194304 that are looked at"
    )
    assert caught.value.help == HELP
    with size_limit(10), pytest.raises(TffcError, match="has 15 parts"):
        leaves(doubled_type(3))


def test_a_flat_program_that_shares_is_checked_in_the_time_of_what_it_shares() -> None:
    flat = call_dominant(parse(doubling.struct_tower(200)))
    assert "call-dominant" in holding(flat)
    with pytest.raises(NotationError, match=r"^the program has \d+ nodes when it is written out"):
        typed(flat)


def test_a_trial_has_an_end() -> None:
    program = parse(doubling.swapping_tower(40))
    with size_limit(1600), pytest.raises(ValidationError) as caught:
        run_task(Bounded(0).evaluate(Call(program, parse("<1,2>")), EMPTY))
    assert refusal(caught.value) == (
        "E321: the program takes more than 100 calls to run on one argument\n"
        "100 of them are calls of `y`\n"
        "call functions fewer times, or allow more"
    )


@pytest.mark.parametrize(
    "text",
    [doubling.function_tower(200), doubling.composed_tower(200), doubling.choosing_tower(200)],
    ids=["functions", "compositions", "choices"],
)
def test_a_trial_makes_a_call_that_cannot_matter_once(text: str) -> None:
    assert run_task(Bounded(0).evaluate(Call(parse(text), parse("7")), EMPTY)) == 7


def test_a_round_that_no_message_can_hold_is_compiled(tmp_path: pathlib.Path) -> None:
    (tmp_path / "round.sexpr").write_text(doubling.mapped_leaf(200))
    target = str(tmp_path / "round.sexpr"), "--form", "mapreduce", "-o", str(tmp_path / "bundle")
    ran = CliRunner().invoke(application, ["compile", *target])
    assert ran.exit_code == 0, ran.output
    assert "computation.pb holds the program after the passes, because before them the types" in (
        ran.stderr
    )
    kept = read_bundle(tmp_path / "bundle").computation
    assert kept == call_dominant(parse(doubling.mapped_leaf(200)))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["parse", "SOURCE", "-o", "x.pb", "--max-size", "20"], "E201"),
        (["print", "SOURCE", "--max-size", "20"], "E201"),
        (["opt", "SOURCE", "--passes", "call-dominant", "--max-size", "400"], "E321"),
        (["check", "SOURCE", "--form", "mapreduce", "--max-size", "400"], "E321"),
    ],
    ids=["parse", "print", "opt", "check"],
)
def test_each_command_takes_the_bound(
    words: list[str], code: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "round.sexpr").write_text(doubling.mapped_tower(5, DOUBLE))
    ran = CliRunner().invoke(application, [word.replace("SOURCE", "round.sexpr") for word in words])
    assert (ran.exit_code, ran.stderr.count(f"error[{code}]")) == (1, 1), ran.stderr
    again = [word.replace("SOURCE", "round.sexpr") for word in words[:-2]]
    assert CliRunner().invoke(application, again).exit_code == 0
    assert max_size() == MAX_SIZE


def section_of(nodes: int) -> Compiled:
    """A section of so many nodes, its parameter and its result among them."""
    builder = GraphBuilder()
    tensor = builder.parameter(INT)
    for _ in range(nodes - 2):
        tensor = builder.add_typed("Neg", [cast(Tensor, tensor)])
    return builder.finish(tensor, INT)


def mapped_section(levels: int) -> Node:
    """A round that calls a section of a hundred nodes 2 ** levels times."""
    given = sections(section_of(100))
    entry = f"where comp#s: (int32 -> int32) tensorflow sha256:{next(iter(given))}"
    return parse(f"{doubling.mapped_tower(levels, 'comp#s(y)')} {entry}", given)


@pytest.mark.slow
def test_nodes_of_graphs_are_counted_before_they_are_copied() -> None:
    assert compile_form(mapped_section(2), "mapreduce").components()
    with size_limit(100_000), pytest.raises(GraphError) as caught:
        compile_form(mapped_section(12), "mapreduce")
    assert refusal(caught.value) == (
        "E324: the graph of a part of the form would have more than 25000 nodes from sections: "
        "25047 with call 253 of one\n"
        "call sections fewer times, or allow more"
    )


def doubling_round(use: str) -> Node:
    """A round whose client values, sums or broadcasts are structs of 2 ** 60 numbers."""
    tower = parse(doubling.struct_tower(60))
    x = Reference("x", StructType([at_server(INT), at_clients(INT)]))
    state, data = Selection(x, 0), Selection(x, 1)
    match use:
        case "sum":
            output = calls.federated_sum(calls.apply(tower, data))
        case "element of a sum":
            output = calls.element(calls.federated_sum(calls.apply(tower, data)), *([0] * 60))
        case "broadcast":
            sent = calls.federated_broadcast(calls.apply(tower, state))
            output = calls.federated_sum(calls.element(sent, *([0] * 60)))
        case _:
            output = calls.federated_sum(calls.element(calls.apply(tower, data), *([0] * 60)))
    return Lambda("x", x.type, StructNode((state, output)))


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_round_that_needs_one_of_many_numbers_is_built(form: str) -> None:
    assert compile_form(doubling_round("element"), form).components()


@pytest.mark.parametrize("use", ["sum", "element of a sum", "broadcast"])
def test_a_channel_of_too_many_tensors_is_refused(use: str) -> None:
    program = doubling_round(use)
    verify(program)
    with pytest.raises(TffcError, match="parts when it is written out") as caught:
        compile_form(program, "mapreduce")
    assert caught.value.code == "E167"


@pytest.mark.slow
def test_running_what_has_too_many_parts_is_refused() -> None:
    for use in ("sum", "element of a sum"):
        with pytest.raises(TffcError, match="parts when it is written out"):
            run(doubling_round(use), (1, [2, 3]))
    assert run(doubling_round("element"), (1, [2, 3])) == (1, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        doubling.sum_tower(500),
        doubling.type_tower(10),
        doubling.zip_tower(8),
        doubling.nested_lambdas(2000),
        doubling.nested_types(20_000),
    ],
    ids=["sums", "types", "zips", "lambdas", "deep types"],
)
def test_what_is_as_large_as_its_text_is_no_matter(text: str) -> None:
    program = parse(text)
    verify(program)
    flat = call_dominant(program)
    assert parse(typed(flat)) == flat
    assert wire.from_bytes(wire.to_bytes(flat)) == flat


@pytest.mark.slow
def test_what_is_large_is_tried_a_few_times() -> None:
    def trials(type: Type) -> tuple[int, int]:
        """How often a program is tried that takes such a value, and one that gives it."""
        named = Reference("x", type)
        return usual_trials(Lambda("x", type, named)), usual_trials(named)

    deep = parse_type("<" * 29_999 + "int32" + ">" * 29_999)
    assert trials(doubled_type(3)) == (20, 20)
    assert trials(deep) == (1, 3)
    assert trials(doubled_type(200)) == (1, 1)
    assert usual_trials(many_names(10_000)) == 3


def many_names(count: int) -> Node:
    """A function whose result uses names that so many blocks bind, each in the one around it."""
    names = [f"v{number}" for number in range(count)]
    node: Node = StructNode(tuple(Reference(name, INT) for name in names))
    for name in names:
        node = Block((Binding(name, Reference("x", INT)),), node)
    return Lambda("x", INT, node)


@pytest.mark.slow
def test_names_are_found_however_deep_they_are_bound() -> None:
    program = many_names(20_000)
    assert len(run(program, 7)) == 20_000
    assert compact(call_dominant(program)).startswith("(x -> <x,x,")


def test_an_environment_keeps_what_it_had() -> None:
    one: Environment[int] = Environment()
    stages = [one := one.bind(f"v{number % 700}", number) for number in range(1000)]
    for last, stage in enumerate(stages):
        held = {f"v{number % 700}": number for number in range(last + 1)}
        assert {name: stage.find(name) for name in held} == held
        assert stage.find("w") is None
    assert Environment().find("v1") is None


def test_names_that_were_meant_are_looked_for_among_few() -> None:
    generator = random.Random(1)
    names = ["".join(generator.choices("ab", k=190)) for _ in range(20_000)]
    assert near_names(names[0][:-1], names) == []
    alike = [f"name{number:04}" for number in range(MOST_NAMES)]
    assert near_names("other_one", [*alike, "other_ones"]) == []
    assert near_names("other_one", [*alike[1:], "other_ones"]) == ["other_ones"]


def test_long_texts_are_aligned_whatever_their_lines_are() -> None:
    generator = random.Random(1)
    before, after = (generator.choices("ab", k=20_000) for _ in range(2))
    assert len(aligned(before, after)) > 10_000
    before = [f"same {at}" for at in range(40_000)]
    after = [line if at % 2 else f"new {at}" for at, line in enumerate(before)]
    assert len(aligned(before, after)) == 20_000


@pytest.mark.long
@pytest.mark.slow
def test_numbers_of_parts_have_an_end() -> None:
    program = parse(doubling.struct_tower(20_000))
    assert str(program.type).endswith(" ...at least 2^256 parts in all")
    for refused in (
        lambda: wire.to_bytes(program),
        lambda: typed(call_dominant(program)),
        lambda: leaves(program.type.children()[1]),
        lambda: call_dominant(parse(doubling.function_tower(20_000, DOUBLE))),
    ):
        with pytest.raises(TffcError, match=r"at least 2\^256"):
            refused()
