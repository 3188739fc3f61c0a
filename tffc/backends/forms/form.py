"""Forms: components, the side on which each runs, and types that have to fit.

A form is a frozen dataclass.  Each field after `type_signature` is a component, and says in its
metadata where it runs, which is all that engines and the check of purity need to know of it.  The
connections say which component's result is which other's parameter.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from tffc.backends.forms.stages import StagedRound
from tffc.backends.forms.steps import RoundSteps, Runtime
from tffc.language.invariants import CLOSED, UNIQUE_NAMES
from tffc.language.nodes import Compiled, Lambda, Node, kind_of
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.language.verify import verify
from tffc.support.errors import FormError


class Side(enum.Enum):
    """The side of a round that runs a component."""

    SERVER = "once, at the server"
    CLIENTS = "once at every client"
    AGGREGATION = "where clients' updates come together, at the server or on the way to it"
    GROUP = "once for each group of clients, at the server and at these clients"


def runs_at(side: Side, again_for: str | None = None) -> dict[str, Any]:
    """Return the metadata of a component's field.

    `again_for` says what makes the component run several times in a round, such as every client; a
    component at the clients always runs for each of them, and one of a group for each group.
    """
    return {"side": side, "again_for": again_for}


class End(NamedTuple):
    """The parameter or the result of a component or of the round, or an element of it.

    `owner` names the component in messages, and `side` is `parameter` or `result`.
    """

    owner: str
    side: str
    type: Type | None

    def element(self, index: int, size: int = 2) -> End:
        """Return an element of a struct of this size.

        Raises:
          FormError: there is no such struct.
        """
        elements = struct_of(self.type, size, self.owner, self.side).types
        return self._replace(type=elements[index])

    def __str__(self) -> str:
        if self.owner != THE_ROUND:
            return self.owner
        return self.owner if self.side == "result" else "the next round"


THE_ROUND = "the round"
"""What messages call the owner of the ends of the whole round."""


def taken_by(component: str, section: Node) -> End:
    """Return the parameter of a component."""
    return End(component, "parameter", signature(section).parameter)


def result_of(component: str, section: Node) -> End:
    """Return the result of a component."""
    return End(component, "result", signature(section).result)


def together(*ends: End) -> End:
    """Return several ends as the elements of a struct."""
    types = [end.type for end in ends if end.type is not None]
    return ends[0]._replace(type=StructType(types))


class Connection(NamedTuple):
    """A value, as messages call it, the end that gives it, and the end that takes it."""

    what: str
    source: End
    target: End


@dataclasses.dataclass(frozen=True, slots=True)
class Form(abc.ABC):
    """A round taken apart into components.  `type_signature` is the type of the round.

    Raises:
      FormError: a component is not what the form holds, or its type does not fit those that it is
        connected to.
    """

    component_class: ClassVar[type[Compiled | Lambda]] = Compiled
    """The kind of the components: TensorFlow graphs, or programs of the language."""

    aggregates: ClassVar[bool] = True
    """Whether clients contribute to anything."""

    type_signature: FunctionType

    def __post_init__(self) -> None:
        for name, component in self.components().items():
            self._check_component(name, component)
        self._check_connections()

    def _check_component(self, name: str, component: Node) -> None:
        """Check that a component is what the form holds in its place."""
        check_section(name, component)

    @abc.abstractmethod
    def connections(self) -> Iterator[Connection]:
        """Yield the types that have to fit.

        Raises:
          FormError: something that has to be a struct is none.
        """

    def _check_connections(self) -> None:
        """Check that what one component gives is what the next one takes."""
        for what, source, target in self.connections():
            if (
                target.type is None
                or source.type is None
                or not target.type.is_assignable_from(source.type)
            ):
                raise FormError(
                    "E501",
                    f"{what} of type `{source.type}` does not fit {target}, which takes "
                    f"`{target.type}`",
                )

    def taken_by_round(self) -> tuple[End, End]:
        """Return the state and the clients' data, which the round takes."""
        whole = End(THE_ROUND, "parameter", self.type_signature.parameter)
        return self._local(whole.element(0)), self._local(whole.element(1))

    def results_of_round(self) -> tuple[End, End]:
        """Return the new state and the output, which the round gives."""
        whole = End(THE_ROUND, "result", self.type_signature.result)
        return self._local(whole.element(0)), self._local(whole.element(1))

    def _local(self, end: End) -> End:
        """Return an end of the round as components see it: graphs know no placements."""
        if self.component_class is Compiled and end.type is not None:
            return end._replace(type=local_type(end.type))
        return end

    @staticmethod
    @abc.abstractmethod
    def check_signature(program: Node) -> None:
        """Check that a program is of the type of this form's rounds.

        Raises:
          FormError: it is not, naming the first part of the type that differs.
        """

    @classmethod
    def data_type(cls, held: Type) -> Type:
        """Return the type of a client's data, from that of all that it holds in a round."""
        return held

    @classmethod
    @abc.abstractmethod
    def build(cls, program: StagedRound, *, allow_impure_duplicates: bool = False) -> Self:
        """Return the form of a round.

        Raises:
          FormError: this form cannot express it.
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

    def parts_by_side(self) -> list[tuple[str, Side, Node]]:
        """Return the components with the sides that run them; one that runs on several sides is
        given in parts, each under its name."""
        sides = self.component_fields()
        return [(name, sides[name]["side"], node) for name, node in self.components().items()]

    @classmethod
    def has_groups(cls) -> bool:
        """Return whether a system may run the round on groups of clients, and merge the results."""
        return bool(cls.names_at(Side.GROUP))

    def summary(self) -> str:
        """Return one line a component: its name, padded to the longest, and its type."""
        components = self.components()
        width = max(map(len, components))
        return "\n".join(f"{name:<{width}}: {node.type}" for name, node in components.items())


def signature(section: Node) -> FunctionType:
    """Return the function type of a component that `check_section` has passed."""
    assert isinstance(section.type, FunctionType)
    return section.type


def parameter(section: Node) -> Type:
    """Return the parameter type of a section that the form promises to have one."""
    parameter_type = signature(section).parameter
    assert parameter_type is not None
    return parameter_type


def struct(type: Type | None) -> StructType:
    """Return a type that the form promises to be a struct."""
    assert isinstance(type, StructType)
    return type


def check_section(component: str, node: Node) -> None:
    """Check that a component is a TensorFlow section with a function type."""
    is_section = isinstance(node, Compiled) and node.kind == "tensorflow"
    if not is_section or not isinstance(node.type, FunctionType):
        kind = f"{kind_of(node)} of type `{node.type}`"
        raise FormError("E501", f"{component} has to be a TensorFlow computation, found {kind}")


def check_lambda(component: str, node: Node) -> Lambda:
    """Return a component that has to be a closed lambda in which no name is bound twice."""
    if not isinstance(node, Lambda):
        raise FormError("E501", f"{component} has to be a lambda, found {kind_of(node)}")
    verify(node, (CLOSED, UNIQUE_NAMES))
    return node


def struct_of(type: Type | None, size: int, component: str, end: str) -> StructType:
    """Return `type`, which has to be a struct of `size` elements.

    It is the parameter or the result of a component, as `end` says.

    Raises:
      FormError: it is not.
    """
    if isinstance(type, StructType) and len(type) == size:
        return type
    raise FormError(
        "E501", f"the {end} of {component} has to be a struct of {size}, found `{type}`"
    )
