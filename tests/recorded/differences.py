"""Where tffc deliberately answers otherwise than TFF: what it answers, and why."""

from __future__ import annotations

from typing import Any

TYPE_ERROR = {"refused": "TypeError"}

ORDINARY_CLASS = (
    "the class of TFF's error says nothing about the mistake, and it often comes from deep inside; "
    "a value of the wrong kind is a TypeError"
)

CONTEXT_ERROR = {"refused": "RuntimeError"}

LATE = "TFF looks at the operand before it finds that the operator has no meaning there"

DATACLASS = "a dataclass has named fields, as a NamedTuple and an attrs class have"

DANGLING = "TFF writes a graph whose result is in another graph, so the program cannot run"

DIFFERENCES: dict[str, tuple[dict[str, Any], str]] = {
    "decorators: keyword for the decorator": (
        TYPE_ERROR,
        "TFF ignores keywords silently, so a type given by keyword is lost",
    ),
    "calls: leaked value": (
        {"refused": "RuntimeError"},
        "TFF makes a program with an unbound name, which fails much later",
    ),
    "calls: zipped inside a struct of two": (
        {
            "text": "(<lambda>_arg -> (let fc_<lambda>_symbol_0=(<lambda>_arg -> <lambda>_arg)("
            "(let _var1=<lambda>_arg in <federated_zip_at_clients(_var1[0]),_var1[1]>)) in "
            "fc_<lambda>_symbol_0))",
            "type": "(<<{int32}@CLIENTS,{int32}@CLIENTS>,int32> -> "
            "<{<int32,int32>}@CLIENTS,int32>)",
        },
        "TFF zips the first element of a struct and drops the others",
    ),
    "calls: zipped list": (
        {
            "text": "(<lambda>_arg -> (let fc_<lambda>_symbol_0=(<lambda>_arg -> <lambda>_arg)("
            "federated_zip_at_clients(<<lambda>_arg[0],<lambda>_arg[1]>)) in "
            "fc_<lambda>_symbol_0))",
            "type": "(<x={int32}@CLIENTS,y={int32}@CLIENTS> -> {<int32,int32>}@CLIENTS)",
        },
        "TFF zips a struct value but not a Python list of the same values",
    ),
    "calls: list too long": (TYPE_ERROR, ORDINARY_CLASS),
    "calls: call of a tensor": (TYPE_ERROR, ORDINARY_CLASS),
    "results: a Python function": (TYPE_ERROR, ORDINARY_CLASS),
    "results: a polymorphic computation": (TYPE_ERROR, ORDINARY_CLASS),
    "results: set": (TYPE_ERROR, ORDINARY_CLASS),
    "results: generator": (TYPE_ERROR, ORDINARY_CLASS),
    "results: range": (TYPE_ERROR, ORDINARY_CLASS),
    "results: class": (TYPE_ERROR, ORDINARY_CLASS),
    "results: placement": (
        {"text": "( -> CLIENTS)", "type": "( -> placement)"},
        "a placement can be an argument, so it can be a result",
    ),
    "results: array of objects": (
        {"text": "( -> [b'a'])", "type": "( -> str[1])"},
        "NumPy's way to write strings of any length; it may be an argument, so it may be a result",
    ),
    "values: addition": (
        {
            "text": "(<lambda>_arg -> (let fc_<lambda>_symbol_0=generic_plus(<<lambda>_arg,1>) in "
            "fc_<lambda>_symbol_0))",
            "type": "(int32 -> int32)",
        },
        "the sum of values was part of the language up to TFF 0.67, and its documents show it",
    ),
    "placing: map of a function without parameter": (TYPE_ERROR, ORDINARY_CLASS),
    "aggregations: secure sum, limit for a struct inside": (
        {
            "text": "(<lambda>_arg -> (let fc_<lambda>_symbol_0=federated_secure_sum("
            "<<lambda>_arg,<a=1,b=<2,2>>>) in fc_<lambda>_symbol_0))",
            "type": "({<a=int32,b=<int32,int64>>}@CLIENTS -> <a=int32,b=<int32,int64>>@SERVER)",
        },
        "TFF repeats a limit for the whole value, but not for a struct inside it",
    ),
    "aggregations: aggregate with a constant": (TYPE_ERROR, ORDINARY_CLASS),
    "sequences: sequence reduce from an unplaced zero": (TYPE_ERROR, ORDINARY_CLASS),
    "sequences: sequence reduce by a function of one": (TYPE_ERROR, ORDINARY_CLASS),
    "sequences: sequence reduce over a tensor": (TYPE_ERROR, ORDINARY_CLASS),
    "tensorflow: operator inside": (CONTEXT_ERROR, LATE),
    "types: dates": (TYPE_ERROR, ORDINARY_CLASS),
    "types: objects": (TYPE_ERROR, ORDINARY_CLASS),
    "types: Python's int": (
        {"type": "(int32 -> int32)"},
        "a Python int constant is an int32, so the class may stand for that type",
    ),
    "types: a tensor of NumPy sizes": (
        {"type": "(int32[2] -> int32[2])"},
        "a size computed by NumPy is a size, as in `tff.TensorType`",
    ),
    "constants: a queue": (TYPE_ERROR, ORDINARY_CLASS),
    "constants: a dataclass": (
        {"text": "( -> <value=1,weight=2.0>)", "type": "( -> <value=int32,weight=float32>)"},
        DATACLASS,
    ),
    "types: a dataclass": (
        {"type": "(<value=int32,weight=float32> -> <value=int32,weight=float32>)"},
        DATACLASS,
    ),
    "constants: an integer of another class": (
        {"text": "( -> 1)", "type": "( -> int32)"},
        "TFF takes strings of other classes, and asks NumPy about integers of other classes",
    ),
    "constants: records": (TYPE_ERROR, ORDINARY_CLASS),
    "constants: a date": (TYPE_ERROR, ORDINARY_CLASS),
    "constants: a module": (TYPE_ERROR, ORDINARY_CLASS),
    "constants: a value in an array": (TYPE_ERROR, ORDINARY_CLASS),
    "graphs: a tensor of another graph": (CONTEXT_ERROR, DANGLING),
    "graphs: a sum with a tensor of another graph": (CONTEXT_ERROR, DANGLING),
    "graphs: a tensor of another trace": (CONTEXT_ERROR, DANGLING),
    "graphs: a sum with a tensor of another trace": (
        CONTEXT_ERROR,
        "it is the same mistake as using any other tensor from outside",
    ),
    "graphs: a sum with a value of a federated trace": (CONTEXT_ERROR, LATE),
    "jax: a call of TensorFlow": (
        {"refused": "ValueError"},
        "TensorFlow computations cannot make such a call either",
    ),
    "jax: an operator": (CONTEXT_ERROR, LATE),
}


def table() -> str:
    """The differences as a table in Markdown, a row a reason."""
    programs: dict[tuple[str, str], list[str]] = {}
    for name, (answer, reason) in DIFFERENCES.items():
        verdict = f"`{answer['refused']}`" if "refused" in answer else "accepted"
        programs.setdefault((verdict, reason), []).append(name)
    rows = [
        f"| {'; '.join(names)} | {verdict} | {reason} |\n"
        for (verdict, reason), names in programs.items()
    ]
    return "| programs | in tffc | why |\n|---|---|---|\n" + "".join(rows)
