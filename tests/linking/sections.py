"""Sections traced with TensorFlow for the tests, and sections run with TensorFlow's importer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow

from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    read_tensorflow,
    write_tensorflow,
)
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import rebuild

tf: Any = tensorflow
tf1: Any = tensorflow.compat.v1


def spec(kind: Type) -> Any:
    """The structure of a dataset's elements of this type."""
    if isinstance(kind, StructType):
        if any(kind.names):
            return {name: spec(element) for name, element in kind.items()}
        return tuple(spec(element) for element in kind.types)
    if isinstance(kind, SequenceType):
        return tf.data.DatasetSpec(spec(kind.element))
    assert isinstance(kind, TensorType)
    shape: Any = kind.shape
    return tf.TensorSpec(shape, tf.as_dtype(kind.element_type.number))


def trace(
    function: Callable[..., Any],
    parameter: Type | None,
    result: Type,
    *,
    initialize: bool = False,
) -> Compiled:
    """The section of a Python function of the parameter's elements, traced into a v1 graph.

    With `initialize`, the section's initialization is that of all variables and tables.
    """
    names: list[str] = []
    with tf.Graph().as_default() as graph:

        def placeholder(kind: Type) -> Any:
            if isinstance(kind, SequenceType):
                variant = tf1.placeholder(tf.variant, [])
                names.append(variant.name)
                return tf.data.experimental.from_variant(variant, spec(kind.element))
            assert isinstance(kind, TensorType)
            made = tf1.placeholder(tf.as_dtype(kind.element_type.number), kind.shape)
            names.append(made.name)
            return made

        argument = () if parameter is None else rebuild(parameter, placeholder)
        arguments = argument if isinstance(parameter, StructType) else (argument,)
        returned = function(*arguments) if parameter is not None else function()
        outputs: list[str] = []

        def output(value: Any) -> str:
            if isinstance(value, tf.data.Dataset):
                value = tf.data.experimental.to_variant(value)
            outputs.append(tf.identity(value).name)
            return outputs[-1]

        rebuild(returned, output)
        initialize_op = ""
        if initialize:
            group = tf.group(tf1.global_variables_initializer(), tf1.tables_initializer())
            initialize_op = group.name
    return section_of(graph.as_graph_def(), parameter, names, result, outputs, initialize_op)


def section_of(
    graph: Any,
    parameter: Type | None,
    inputs: list[str],
    result: Type,
    outputs: list[str],
    initialize_op: str = "",
    session_token: str = "",
) -> Compiled:
    """The section of a GraphDef, in which these tensors hold parameter and result."""
    content = TensorFlowSection(
        graph.SerializeToString(deterministic=True),
        None if parameter is None else binding(parameter, inputs),
        binding(result, outputs),
        initialize_op,
        session_token,
    )
    return Compiled("tensorflow", write_tensorflow(content), FunctionType(parameter, result))


def link(parameter: Type | None, result: Type, body: Callable[[Any, Any], Any]) -> Compiled:
    """The section that `body` builds from its parameter."""
    builder = GraphBuilder()
    argument = None if parameter is None else builder.parameter(parameter)
    return builder.finish(body(builder, argument), result)


def calling(section: Compiled) -> Callable[[Any, Any], Any]:
    """The function of elements that calls a section, for sequences."""
    return lambda builder, argument: builder.call(section, argument)


def struct(*types: Any) -> StructType:
    """The struct of these types and (name, type) pairs."""
    return StructType(list(types))


def binding(kind: Type, names: list[str]) -> SectionBinding:
    """The binding of a value of this type to tensors in order."""
    remaining = iter(names)

    def leaf(kind: Type) -> SectionBinding:
        made = SequenceBinding if isinstance(kind, SequenceType) else TensorBinding
        return made(next(remaining))

    return rebuild(kind, leaf, StructBinding)


def leaves(bound: SectionBinding | None) -> list[str]:
    """The tensors of a binding, in order."""
    match bound:
        case None:
            return []
        case StructBinding():
            return [name for element in bound.elements for name in leaves(element)]
        case SequenceBinding():
            return [bound.variant]
        case TensorBinding():
            return [str(bound.tensor)]


def graph_of(section: Compiled) -> Any:
    """TensorFlow's GraphDef of a section."""
    return tf1.GraphDef.FromString(read_tensorflow(section.payload).graph_def)


def flat(value: Any) -> list[Any]:
    """The leaves of nested tuples."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def run(section: Compiled, argument: Any = (), *, times: int = 1) -> Any:
    """What a section returns, in nested tuples; a sequence as its elements, stacked.

    The argument is given in nested tuples too, a sequence as a function that makes the dataset.

    The graph is imported and run in a session, after its initialization, `times` times.
    """
    content = read_tensorflow(section.payload)
    names = leaves(content.parameter)
    with tf.Graph().as_default() as graph:
        inputs: dict[str, Any] = {}
        tf.no_op("given/nothing")  # for a session refuses a graph without operations
        for name, value in zip(names, flat(argument), strict=True):
            with tf.name_scope("given/"):
                if callable(value):
                    value = tf.data.experimental.to_variant(value())
                value = tf.identity(value)
            inputs[name] = value
            inputs[f"^{name.partition(':')[0]}"] = value
        fetched = tf.import_graph_def(graph_of(section), inputs, leaves(content.result), name="")
        assert isinstance(section.type, FunctionType)
        remaining = iter(fetched)

        def leaf(kind: Type) -> Any:
            value = next(remaining)
            if not isinstance(kind, SequenceType):
                return value
            dataset = tf.data.experimental.from_variant(value, spec(kind.element))
            return dataset.batch(1000).get_single_element()

        outputs = rebuild(section.type.result, leaf)
        with tf1.Session(graph=graph) as session:
            if content.initialize_op:
                session.run(content.initialize_op)
            values = [session.run(outputs) for _ in range(times)]
    return values[-1]
