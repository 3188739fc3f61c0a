"""Programs whose size doubles with every binding, as text in the typed notation."""

from __future__ import annotations

import itertools

ROUND = """\
(x: <int32@SERVER,{{int32}}@CLIENTS> -> (let
  {bindings}
 in <
  x[0],
  federated_sum:({{int32}}@CLIENTS -> int32@SERVER)(
    federated_map:(<(int32 -> int32),{{int32}}@CLIENTS> -> {{int32}}@CLIENTS)(<{function},x[1]>)
  )
>))"""
"""A round that keeps its state, and adds up what a function makes of each client's number."""

PLUS = "generic_plus:(<int32,int32> -> int32)"
"""The operator that doubles a number, given it twice."""


def _let(bindings: list[str], result: str) -> str:
    return f"(let {','.join(bindings)} in {result})"


def structs(levels: int) -> list[str]:
    """`v1=<p,p>,v2=<v1,v1>,...`: structs of 2 ** levels numbers, made of `p`."""
    names = ["p", *(f"v{level}" for level in range(1, levels + 1))]
    return [f"{name}=<{last},{last}>" for last, name in itertools.pairwise(names)]


def struct_tower(levels: int) -> str:
    """A function that gives the whole of a doubling struct."""
    return f"(p: int32 -> {_let(structs(levels), f'v{levels}')})"


def leaf_of_struct_tower(levels: int) -> str:
    """A function that gives one number out of a doubling struct."""
    return f"(p: int32 -> {_let(structs(levels), f'v{levels}' + '[0]' * levels)})"


def functions(levels: int, first: str) -> list[str]:
    """`f0=(y -> first),f1=(y -> f0(f0(y))),...`: functions that call the one before twice."""
    made = [f"f0=(y: int32 -> {first})"]
    made += [f"f{i}=(y: int32 -> f{i - 1}(f{i - 1}(y)))" for i in range(1, levels + 1)]
    return made


def function_tower(levels: int, first: str = "y") -> str:
    """A function that applies another 2 ** levels times."""
    return f"(p: int32 -> {_let(functions(levels, first), f'f{levels}(p)')})"


def mapped_tower(levels: int, first: str = "y") -> str:
    """A round that maps a doubling function at the clients."""
    bindings = ",\n  ".join(functions(levels, first))
    return ROUND.format(bindings=bindings, function=f"f{levels}")


def mapped_leaf(levels: int) -> str:
    """A round whose clients take one number out of a doubling struct."""
    return ROUND.format(bindings="k=0", function=leaf_of_struct_tower(levels))


def swapping_tower(levels: int) -> str:
    """A function that exchanges the parts of a pair 2 ** levels times."""
    pair = "<int32,int32>"
    made = [f"f0=(y: {pair} -> <y[1],y[0]>)"]
    made += [f"f{i}=(y: {pair} -> f{i - 1}(f{i - 1}(y)))" for i in range(1, levels + 1)]
    return f"(p: {pair} -> {_let(made, f'f{levels}(p)')})"


def composed_tower(levels: int, first: str = "y") -> str:
    """A function composed with itself by a function of functions, again and again."""
    kind = "(int32 -> int32)"
    made = [f"twice=(f: {kind} -> (y: int32 -> f(f(y))))", f"f0=(y: int32 -> {first})"]
    made += [f"f{i}=twice(f{i - 1})" for i in range(1, levels + 1)]
    return f"(p: int32 -> {_let(made, f'f{levels}(p)')})"


def squaring_tower(levels: int, first: str = "y") -> str:
    """A function composed with itself 2 ** levels times, by functions of functions of functions."""
    kind = "(int32 -> int32)"
    made = [
        f"t0=(f: {kind} -> (y: int32 -> f(f(y))))",
        f"square=(h: ({kind} -> {kind}) -> (f: {kind} -> h(h(f))))",
        f"k=(y: int32 -> {first})",
    ]
    made += [f"t{i}=square(t{i - 1})" for i in range(1, levels + 1)]
    return f"(p: int32 -> {_let(made, f't{levels}(k)(p)')})"


def choosing_tower(levels: int) -> str:
    """A function that keeps one of two results of the one before, as a choice does."""
    made = ["f0=(y: int32 -> y)"]
    made += [
        f"f{i}=(y: int32 -> <f{i - 1}(y),f{i - 1}(f{i - 1}(y))>[{i % 2}])"
        for i in range(1, levels + 1)
    ]
    return f"(p: int32 -> {_let(made, f'f{levels}(p)')})"


def sum_tower(levels: int) -> str:
    """`v1=p+p,v2=v1+v1,...`: calls that share their operands and do not double."""
    names = ["p", *(f"v{level}" for level in range(1, levels + 1))]
    made = [f"{name}={PLUS}(<{last},{last}>)" for last, name in itertools.pairwise(names)]
    return f"(p: int32 -> {_let(made, f'v{levels}')})"


def type_tower(levels: int) -> str:
    """The identity on a struct type that is written out in full."""
    kind = "int32"
    for _ in range(levels):
        kind = f"<{kind},{kind}>"
    return f"(p: {kind} -> p)"


def zip_tower(levels: int) -> str:
    """Clients' values zipped with themselves, again and again; each zip says both types."""
    made, kind, last = [], "int32", "x"
    for level in range(1, levels + 1):
        pair = f"<{kind},{kind}>"
        both = f"<{{{kind}}}@CLIENTS,{{{kind}}}@CLIENTS>"
        made.append(
            f"z{level}=federated_zip_at_clients:({both} -> {{{pair}}}@CLIENTS)(<{last},{last}>)"
        )
        kind, last = pair, f"z{level}"
    return f"(x: {{int32}}@CLIENTS -> {_let(made, last)})"


def nested_lambdas(depth: int) -> str:
    """A function of a function of a function, and so on."""
    return "(x: int32 -> " * depth + "x" + ")" * depth


def nested_types(depth: int) -> str:
    """The identity on a struct of a struct of a struct, and so on."""
    return f"(p: {'<' * depth}int32{'>' * depth} -> p)"
