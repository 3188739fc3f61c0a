"""YAML that people write, read without trust in who wrote it.

What a text stands for can be far larger than the text, for a part can be repeated by its name, also
by repetitions in it.  Such texts are refused, and so are scalars that do not say what they should.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

MAX_BYTES = 2**18
"""The most bytes of a file that are read."""

MAX_NODES = 100_000
"""The most values that a text may stand for, repeated ones counted each time."""


class Document(NamedTuple):
    """What a text says, and the node of each part with its place; None for an empty text."""

    content: Any
    root: yaml.Node | None


def read_yaml(text: str) -> Document:
    """Read a text in YAML.

    Raises:
      yaml.YAMLError: it is not YAML, nests too deep, stands for too much, or says of something what
        it is not, such as a date of the month 13.
    """
    loader: Any = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is not None:
            _check_size(root)
        return Document(None if root is None else loader.construct_document(root), root)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deep") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # What PyYAML leaves to Python, such as a number of too many digits.
        raise yaml.YAMLError(f"a value is not what it says: {error}") from None
    finally:
        loader.dispose()


def repeated_key(root: yaml.Node | None) -> yaml.ScalarNode | None:
    """Return the first key that stands a second time in one mapping, wherever that is."""
    seen: set[int] = set()
    stack = [] if root is None else [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        keys: set[str] = set()
        for key in _keys(node):
            if key.value in keys:
                return key
            keys.add(key.value)
        stack.extend(reversed(_children(node)))
    return None


def _check_size(root: yaml.Node) -> None:
    """Refuse a text that stands for too much, or for something that is part of itself."""
    sizes: dict[int, int] = {}
    begun: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        children = _children(node)
        unknown = [child for child in children if id(child) not in sizes]
        if id(node) in sizes or not unknown:
            size = 1 + sum(sizes[id(child)] for child in children)
            if size > MAX_NODES:
                raise yaml.YAMLError(f"it stands for more than {MAX_NODES} values")
            sizes[id(node)] = size
            stack.pop()
        elif id(node) in begun:
            raise yaml.YAMLError("a part of it is part of itself")
        else:
            begun.add(id(node))
            stack.extend(unknown)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _keys(node: yaml.Node) -> list[yaml.ScalarNode]:
    pairs: list[tuple[Any, Any]] = node.value if isinstance(node, yaml.MappingNode) else []
    return [key for key, _ in pairs if isinstance(key, yaml.ScalarNode)]
