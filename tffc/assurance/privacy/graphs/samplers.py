"""Functions of TensorFlow graphs that are known to draw from a distribution.

A sampler by rejection is a loop, of which no rule can say the distribution.  A few of them are
known by what they compute, whatever their names: every operation, attribute, constant and edge has
to be the same.  That they draw what is said here, tests hold against exact probabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tffc.assurance.proof.constants import constant_of_tensor
from tffc.graphs.body import Body, Edge
from tffc.graphs.functions import Library, named_functions
from tffc.graphs.node import encoded, hash_of, inputs_first

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView

DISCRETE_GAUSSIAN = frozenset(
    {
        # TFF 0.87 makes it so for its distributed discrete Gaussian mechanism.
        "93717d58724174c6516b76638af668c588b7d27e29b35f6c859fe1be26deca7b",
    }
)
"""The forms of functions of a whole number σ and of a shape.  The elements of what they return are
independent, and each is an integer x with a probability that is proportional to exp(-x² / 2σ²)."""

LOOPS = frozenset({"While", "StatelessWhile"})

LARGEST_SCALE = 2**24
"""The largest σ for which the numbers in a sampler are integers that its types hold."""

LARGEST = 500
"""The largest function that is compared with a sampler, in nodes."""

WITHOUT_EFFECT = frozenset(
    {"config", "config_proto", "executor_type", "metadata", "output_shapes", "parallel_iterations"}
)
"""Attributes that change no result, besides all that begin with `_`."""


def may_sample(body: Body) -> bool:
    """Tell whether a function is worth comparing with samplers."""
    return len(body.nodes) <= LARGEST and any(node.op in LOOPS for node in body.nodes.values())


def form_of(name: str, library: Library) -> str:
    """Return what identifies all that a function computes; an empty text if it calls itself."""
    return _Forms(library).of(name)


class _Forms:
    """The forms of functions of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = ""  # What calls itself has no form.
            self._known[name] = self._form(self._library.body(name))
        return self._known[name]

    def _form(self, body: Body) -> str:
        """Return the hash of the nodes that a function's results need, each by number."""
        if any(edge.node in body.nodes for edge in body.arguments):
            return ""
        order = inputs_first(
            [edge.node for edge in body.results],
            lambda name: [edge.node for edge in body.inputs.get(name, ())],
        )
        numbers = {name: number for number, name in enumerate(order)}
        arguments = {edge: position for position, edge in enumerate(body.arguments)}

        def text(edge: Edge) -> str:
            if edge in arguments:
                return f"argument {arguments[edge]}"
            return f"{numbers[edge.node]}:{edge.port}"

        parts: list[object] = [len(body.arguments)]
        for name in order:
            if name not in body.nodes:
                continue
            attributes = self._attributes(body.nodes[name])
            if attributes is None:
                return ""
            inputs = " ".join(map(text, body.inputs[name]))
            parts += [numbers[name], body.nodes[name].op, *attributes, inputs]
        parts += map(text, body.results)
        return hash_of(parts).hex()

    def _attributes(self, node: NodeView) -> list[object] | None:
        """Return the attributes of a node, or None if a function among them has no form."""
        parts: list[object] = []
        for key in sorted(node.attr):
            if key.startswith("_") or key in WITHOUT_EFFECT:
                continue
            value = node.attr[key]
            functions = [call.name for call in named_functions({key: value})]
            if functions:
                forms = [
                    self.of(name) if name in self._library.functions else "" for name in functions
                ]
                if "" in forms:
                    return None
                parts += [key, *forms]
            elif key == "value" and node.op == "Const":
                parts += [key, repr(constant_of_tensor(value.tensor))]
            else:
                parts += [key, encoded(value)]
        return parts
