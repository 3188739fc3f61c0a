"""What is held against damaged input: it is refused clearly, or it is read and returns."""

from __future__ import annotations

import functools
import os
import pathlib
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.fuzz.mutations import (
    damaged_bytes,
    damaged_program,
    damaged_text,
    rewritten_text,
)
from tests.fuzz.reader import refused
from tests.language.test_fingerprint import example
from tests.language.test_notation import programs
from tests.language.test_typed import FORMS
from tffc.graphs.proto import GraphDef, NodeDef
from tffc.graphs.resources import OPERATION, ResourceNode, resource_attributes
from tffc.language import Compiled, Node, TensorType, Type
from tffc.language.fingerprint import fingerprint
from tffc.language.notation import compact, formatted, parse, sections, structural, typed
from tffc.language.traverse import walk
from tffc.language.wire import (
    TensorBinding,
    TensorFlowSection,
    from_bytes,
    read_tensorflow,
    to_bytes,
    type_from_bytes,
    type_to_bytes,
    write_tensorflow,
)
from tffc.support.errors import TffcError

LARGEST_SEED = 20_000
"""Seeds are at most so many bytes, so that many can be tried."""


@functools.cache
def seed_messages() -> list[bytes]:
    """Serialized computations: the printed examples, and those of a corpus if there is one."""
    messages = [to_bytes(node) for node, _ in FORMS if not _is_open(node)]
    messages.extend(to_bytes(node) for node in programs().values())
    if "TFFC_CORPUS" in os.environ:
        files = sorted(pathlib.Path(os.environ["TFFC_CORPUS"]).glob("*/*.pb"))
        messages.extend(file.read_bytes() for file in files)
    return [message for message in messages if len(message) <= LARGEST_SEED]


def _is_open(node: Node) -> bool:
    """Whether a type of the node holds type variables, which are not stored."""
    return any(inner.type.is_abstract for inner in walk(node))


@functools.cache
def seed_programs() -> list[Node]:
    """The programs among the seeds that can be read."""
    found: list[Node] = [node for node, _ in FORMS]
    for message in seed_messages():
        try:
            found.append(from_bytes(message))
        except TffcError:
            continue
    return found


@functools.cache
def seed_texts() -> list[str]:
    return [typed(node) for node in seed_programs()]


@functools.cache
def seed_sections() -> dict[str, bytes]:
    return {key: payload for node in seed_programs() for key, payload in sections(node).items()}


@functools.cache
def seed_types() -> list[bytes]:
    types = {inner.type for node in seed_programs() for inner in walk(node)}
    return sorted(type_to_bytes(type_) for type_ in types if not type_.is_abstract)


@functools.cache
def seed_graphs() -> list[bytes]:
    """Serialized graphs with functions, resources and control edges."""
    attributes = resource_attributes(ResourceNode("a" * 64, 1, (2,)))
    resource = GraphDef(node=[NodeDef(name="x", op=OPERATION, attr=attributes)])
    found = {each.SerializeToString(deterministic=True) for each in (example(), resource)}
    for payload in seed_sections().values():
        try:
            found.add(read_tensorflow(payload).graph_def)
        except TffcError:
            continue
    return sorted(found)


def check_node(node: Node) -> None:
    """A node that was read prints, and returns from its text."""
    for style in (compact, formatted, structural):
        assert isinstance(style(node), str)
    assert parse(typed(node), sections(node)) == node


def check_message(node: Node) -> None:
    """A node that was read from a message returns from its own message too."""
    assert from_bytes(to_bytes(node)) == node
    check_node(node)


def check_type(type_: Type) -> None:
    assert type_from_bytes(type_to_bytes(type_)) == type_


def check_section(section: Compiled) -> None:
    """A section has a fingerprint, whatever its graph is."""
    assert len(fingerprint(section)) == 64


def damaged_section(generator: random.Random) -> Compiled:
    graph = damaged_bytes(generator, seed_graphs())
    names = [TensorBinding(name) for name in ("difference:0", "x:0", "Identity:0", "missing:0")]
    content = TensorFlowSection(graph, generator.choice(names), generator.choice(names), "init")
    return Compiled("tensorflow", write_tensorflow(content), TensorType(int))


class Target(NamedTuple):
    """Something that reads damaged input, or refuses it, and what holds for what was read."""

    read: Callable[[random.Random], Any]
    check: Callable[[Any], None]


TARGETS = {
    "message": Target(
        lambda generator: from_bytes(damaged_bytes(generator, seed_messages())), check_message
    ),
    "program": Target(
        lambda generator: from_bytes(damaged_program(generator, seed_messages())), check_message
    ),
    "type": Target(
        lambda generator: type_from_bytes(damaged_bytes(generator, seed_types())), check_type
    ),
    "text": Target(
        lambda generator: parse(damaged_text(generator, seed_texts()), seed_sections()), check_node
    ),
    "rewritten": Target(
        lambda generator: parse(rewritten_text(generator, seed_texts()), seed_sections()),
        check_node,
    ),
    "graph": Target(damaged_section, check_section),
}


def run_case(name: str, seed: int, case: int) -> bool:
    """Runs one case, known by its numbers; whether its input was read.

    Raises:
      Exception: what is not a refusal of tffc's own, or comes after the input was read.
    """
    target = TARGETS[name]
    try:
        value = target.read(random.Random(f"{name} {seed} {case}"))
    except TffcError as error:
        return refused(error)
    target.check(value)
    return True
