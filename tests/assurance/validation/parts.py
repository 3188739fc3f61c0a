"""Parts of the programs and passes that several tests of validation have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import tffc as tff
from tffc.language import Block, Node, Reference
from tffc.language.traverse import rewrite


def section(function: Callable[..., Any], *types: Any) -> Any:
    """A TensorFlow computation."""
    return tff.tf_computation(*types)(function) if types else tff.tf_computation(function)


def required(holds: Any, value: Any) -> Any:
    """The value, if something holds."""
    with tf.control_dependencies([tf.debugging.Assert(holds, ["not so"])]):
        return tf.identity(value)


def inline(block: Block) -> Node | None:
    """Replace each name with the bound expression, once for each use."""
    values: dict[str, Node] = {}

    def put(node: Node) -> Node | None:
        return values.get(node.name) if isinstance(node, Reference) else None

    for local in block.locals:
        values[local.name] = rewrite(local.value, put)
    return rewrite(block.result, put)
