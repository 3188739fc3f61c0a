"""Edits of any field of any message in a compiled section, found by the messages' descriptions.

A message that gets a new field is edited there too, without anything to be added here.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from tffc.graphs.proto import GraphDef, message
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import rewrite, walk

MESSAGES = {"tensorflow": "tffc.v0.TensorFlow", "xla": "tffc.v0.Xla"}
UNKNOWN = b"\xca\xbb\x04\x01x"
"""A field of a number that no description has."""

PIECE = "?"
"""The name under which a field that no description has is edited."""


@dataclasses.dataclass(frozen=True)
class Site:
    """A field of a message in a section: the path to the message, and the field's name.

    A step of a path is the name of a field, and an index or a key if it has several values.
    """

    path: tuple[tuple[str, Any], ...]
    owner: str
    field: str

    @property
    def title(self) -> str:
        """The message and the field, such as `NodeDef.device`."""
        return f"{self.owner}.{self.field}"


class Opened:
    """A section whose messages can be edited: the outer one, and the graph in it."""

    def __init__(self, section: Compiled) -> None:
        self.section = section
        self.outer = message(MESSAGES[section.kind]).FromString(section.payload)
        self.graph = None
        if section.kind == "tensorflow":
            self.graph = GraphDef.FromString(self.outer.graph_def.value)

    def root(self, which: str) -> Any:
        return self.graph if which == "graph" else self.outer

    def closed(self) -> Compiled:
        """The section after the edits."""
        if self.graph is not None:
            self.outer.graph_def.value = self.graph.SerializeToString(deterministic=True)
        payload = self.outer.SerializeToString(deterministic=True)
        return dataclasses.replace(self.section, payload=payload)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_repeated(field: FieldDescriptor) -> bool:
    one: Any = field
    return one.is_repeated if hasattr(one, "is_repeated") else one.label == 3


def sites(opened: Opened) -> Iterator[Site]:
    """Every field of every message in a section, set or not."""
    roots = [("outer", opened.outer)] + ([("graph", opened.graph)] if opened.graph else [])
    for which, root in roots:
        stack: list[tuple[Any, tuple[tuple[str, Any], ...]]] = [(root, ((which, None),))]
        while stack:
            each, path = stack.pop()
            owner = each.DESCRIPTOR.full_name.removeprefix("tffc.graph.")
            yield Site(path, owner, PIECE)
            for field in each.DESCRIPTOR.fields:
                yield Site(path, owner, field.name)
                stack.extend(_inside(each, field, path))


def _inside(
    each: Any, field: FieldDescriptor, path: tuple[tuple[str, Any], ...]
) -> Iterator[tuple[Any, tuple[tuple[str, Any], ...]]]:
    if field.message_type is None or field.message_type.full_name == "google.protobuf.Any":
        return
    value = getattr(each, field.name)
    if is_map(field):
        if field.message_type.fields_by_name["value"].message_type is not None:
            for key in sorted(value):
                yield value[key], (*path, (field.name, key))
    elif is_repeated(field):
        for index, item in enumerate(value):
            yield item, (*path, (field.name, index))
    elif each.HasField(field.name):
        yield value, (*path, (field.name, None))


def found_at(opened: Opened, site: Site) -> Any:
    """The message at a site."""
    (which, _), *steps = site.path
    each = opened.root(which)
    for name, place in steps:
        each = getattr(each, name) if place is None else getattr(each, name)[place]
    return each


def other_value(field: FieldDescriptor, value: Any, choose: random.Random) -> Any:
    """A value of a field that is not a message, different from the one given."""
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return choose.choice([value + b"x", b"x", value[:-1]] if value else [b"x"])
        return choose.choice([value + "x", "x", value[:-1]] if value else ["x"])
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return choose.choice([value + 1.0, -value - 2.0, float("nan")])
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return choose.choice([n for n in (1, 2, 3, 7, 9, 10, 20, 21) if n != value])
    return value + 1 if value < 2**31 - 1 else value - 1


def edit(each: Any, field: FieldDescriptor, choose: random.Random) -> bool:
    """Change a field of a message; tell whether it is another now."""
    before = each.SerializeToString(deterministic=True)
    if is_map(field):
        _edit_map(each, field, choose)
    elif is_repeated(field):
        _edit_list(each, field, choose)
    elif field.message_type is not None:
        if each.HasField(field.name) and choose.random() < 0.5:
            each.ClearField(field.name)
        else:
            _fill(getattr(each, field.name), choose)
    elif choose.random() < 0.2:
        each.ClearField(field.name)
    else:
        value = other_value(field, getattr(each, field.name), choose)
        setattr(each, field.name, value)
    return each.SerializeToString(deterministic=True) != before


def _fill(part: Any, choose: random.Random) -> None:
    """Set some field in a message, or make it present."""
    part.SetInParent()
    plain = [f for f in part.DESCRIPTOR.fields if f.message_type is None and not is_repeated(f)]
    if plain:
        field = choose.choice(plain)
        setattr(part, field.name, other_value(field, getattr(part, field.name), choose))


def _edit_map(each: Any, field: FieldDescriptor, choose: random.Random) -> None:
    held = getattr(each, field.name)
    entry: Any = field.message_type
    value = entry.fields_by_name["value"]
    keys = sorted(held)
    if keys and choose.random() < 0.4:
        del held[choose.choice(keys)]
        return
    key = entry.fields_by_name["key"]
    new = other_value(key, key.default_value, choose)
    if value.message_type is not None:
        target = held[choose.choice(keys) if keys and choose.random() < 0.5 else new]
        if keys and choose.random() < 0.5:
            target.CopyFrom(held[choose.choice(keys)])
        else:
            _fill(target, choose)
    elif keys and choose.random() < 0.7:
        place = choose.choice(keys)
        others = [held[k] for k in keys if held[k] != held[place]]
        held[place] = choose.choice(others) if others else other_value(value, held[place], choose)
    else:
        held[new] = other_value(value, value.default_value, choose)


def _edit_list(each: Any, field: FieldDescriptor, choose: random.Random) -> None:
    held = getattr(each, field.name)
    how = choose.choice(["add", "remove", "copy", "swap", "change"]) if len(held) else "add"
    place = choose.randrange(len(held)) if len(held) else 0
    if how == "remove":
        del held[place]
    elif how == "swap":
        items = list(held)
        other = choose.randrange(len(items))
        items[place], items[other] = items[other], items[place]
        items = [_copied(item) for item in items]
        del held[:]
        held.extend(items)
    elif field.message_type is not None:
        if how == "copy":
            held.add().CopyFrom(held[place])
        elif how == "add":
            _fill(held.add(), choose)
        else:
            _fill(held[place], choose)
    elif how == "copy":
        held.append(held[place])
    elif how == "change":
        held[place] = other_value(field, held[place], choose)
    else:
        held.append(other_value(field, field.default_value or _zero(field), choose))


def _zero(field: FieldDescriptor) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return b"" if field.type == FieldDescriptor.TYPE_BYTES else ""
    return 0


def _copied(item: Any) -> Any:
    if not hasattr(item, "CopyFrom"):
        return item
    copy = type(item)()
    copy.CopyFrom(item)
    return copy


def edited_at(opened: Opened, site: Site, choose: random.Random) -> Compiled | None:
    """The section after an edit at a site, or None if there is no other value."""
    each = found_at(opened, site)
    if site.field == PIECE:
        each.MergeFromString(UNKNOWN)
    elif not edit(each, each.DESCRIPTOR.fields_by_name[site.field], choose):
        return None
    return opened.closed()


def sections_of(parts: Mapping[str, Node]) -> list[tuple[str, Compiled]]:
    """The sections in components, with the component of each."""
    return [
        (name, node)
        for name, part in parts.items()
        for node in walk(part)
        if isinstance(node, Compiled)
    ]


def replaced(parts: Mapping[str, Node], name: str, old: Compiled, new: Compiled) -> dict[str, Node]:
    """The components with a section of one of them replaced."""
    return {**parts, name: rewrite(parts[name], lambda node: new if node == old else None)}
