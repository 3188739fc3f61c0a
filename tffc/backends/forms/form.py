"""Forms: components, the side on which each runs, and types that have to fit.

A form is a frozen dataclass.  Each field after `type_signature` is a component, and says in its
metadata where it runs, which is all that engines and the check of purity need to know of it.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tffc.backends.forms.steps import RoundSteps, Runtime
from tffc.errors import FormError
from tffc.ir.invariants import CLOSED, UNIQUE_NAMES
from tffc.ir.nodes import Compiled, Lambda, Node, kind_of
from tffc.ir.types import SERVER, FunctionType, Placement, StructType, Type
from tffc.ir.verify import verify


class Side(enum.Enum):
    """The side of a round that runs a component."""

    SERVER = "once, at the server"
    CLIENTS = "once at every client"
    AGGREGATION = "where clients' updates come together, at the server or on the way to it"


def runs_at(side: Side, anew_for: str | None = None) -> dict[str, Any]:
    """Return the metadata of a component's field.

    `anew_for` says for what the component runs several times in a round; at the clients it does so
    for each of them.
    """
    return {"side": side, "anew_for": anew_for}


@dataclasses.dataclass(frozen=True, slots=True)
class Form(abc.ABC):
    """A round taken apart into components.  `type_signature` is the type of the round.

    Raises:
      FormError: a component is not what the form holds, or its type does not fit those that it is
        connected to.
    """

    component_class: ClassVar[type[Compiled | Lambda]] = Compiled
    """The kind of the components: TensorFlow graphs, or programs of the language."""

    output: ClassVar[Placement] = SERVER
    """The placement of what a round puts out."""

    type_signature: FunctionType

    def __post_init__(self) -> None:
        check = check_section if self.component_class is Compiled else check_lambda
        for name, component in self.components().items():
            check(name, component)
        self._check_connections()

    @abc.abstractmethod
    def _check_connections(self) -> None:
        """Check that what one component gives is what the next one takes."""

    @staticmethod
    @abc.abstractmethod
    def check_signature(program: Node) -> None:
        """Check that a program is of the type of this form's rounds.

        Raises:
          FormError: it is not, naming the first part of the type that differs.
        """

    @classmethod
    @abc.abstractmethod
    def build(cls, program: Node, *, allow_impure_duplicates: bool = False) -> Self:
        """Return the form of a call-dominant program of one round.

        Raises:
          FormError: the program is not a round, or one that this form cannot express.
        """

    @abc.abstractmethod
    def decompile(self) -> Lambda:
        """Return the round that the form was, or could have been, compiled from."""

    @abc.abstractmethod
    def steps(self, runtime: Runtime) -> RoundSteps:
        """Return the steps of a round, whose components the runtime runs."""

    @classmethod
    def component_fields(cls) -> dict[str, Mapping[str, Any]]:
        """Return what `runs_at` says of each component, in the order of the form's description."""
        return {field.name: field.metadata for field in dataclasses.fields(cls)[1:]}

    @classmethod
    def names_at(cls, side: Side) -> frozenset[str]:
        """Return the names of the components that run on a side."""
        return frozenset(name for name, f in cls.component_fields().items() if f["side"] is side)

    def components(self) -> dict[str, Node]:
        """Return the components by name, in the order of the form's description."""
        return {name: getattr(self, name) for name in self.component_fields()}

    def label(self, index: int) -> str | None:
        """Return the name of a parameter of the round, if it has one."""
        return struct_of(self.type_signature.parameter, 2, "the round", "parameter").names[index]

    def summary(self) -> str:
        """Return one line a component: its name and its type."""
        return summarize(self.components())


def summarize(components: Mapping[str, Node]) -> str:
    """Return one line a component, the names padded to the longest."""
    width = max(map(len, components))
    return "\n".join(f"{name:<{width}}: {node.type}" for name, node in components.items())


def signature(section: Node) -> FunctionType:
    """Return the function type of a component that `check_section` has passed."""
    assert isinstance(section.type, FunctionType)
    return section.type


def parameter(section: Node) -> Type:
    """Return the parameter type of a section that the form promises to have one."""
    found = signature(section).parameter
    assert found is not None
    return found


def struct(type: Type | None) -> StructType:
    """Return a type that the form promises to be a struct."""
    assert isinstance(type, StructType)
    return type


def check_section(component: str, node: Node) -> None:
    """Check that a component is a TensorFlow section with a function type."""
    is_section = isinstance(node, Compiled) and node.kind == "tensorflow"
    if not is_section or not isinstance(node.type, FunctionType):
        found = f"{kind_of(node)} of type `{node.type}`"
        raise FormError("E501", f"{component} has to be a TensorFlow computation, found {found}")


def check_lambda(component: str, node: Node) -> None:
    """Check that a component is a closed lambda in which no name is bound twice."""
    if not isinstance(node, Lambda):
        raise FormError("E504", f"{component} has to be a lambda, found {kind_of(node)}")
    verify(node, (CLOSED, UNIQUE_NAMES))


def pair(found: Type | None, component: str, end: str) -> tuple[Type, Type]:
    """Return the two elements of a type that has to be a struct of two."""
    first, second = struct_of(found, 2, component, end).types
    return first, second


def struct_of(found: Type | None, size: int, component: str, end: str) -> StructType:
    """Return `found`, which has to be a struct of `size` elements.

    It is the parameter or the result of a component, as `end` says.

    Raises:
      FormError: it is not.
    """
    if isinstance(found, StructType) and len(found) == size:
        return found
    raise FormError(
        "E502", f"the {end} of {component} has to be a struct of {size}, found `{found}`"
    )


def connect(origin: str, source: Type, component: str, target: Type | None) -> None:
    """Check that what `origin` gives can be handed to a component."""
    if target is not None and target.is_assignable_from(source):
        return
    raise FormError(
        "E503", f"{origin} of type `{source}` does not fit {component}, which takes `{target}`"
    )
