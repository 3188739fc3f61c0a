"""YAML files written by people, read without trust.

A small text can expand to a huge value, because YAML aliases repeat parts, also within repeated
parts.  Such texts are refused, and so are scalars that do not fit their type.  Numbers have decimal
digits: those of YAML 1.1 to base 2, 8, 16 and 60 are texts here.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import yaml

MAX_BYTES = 2**18
"""The most bytes of a file that are read."""

MAX_NODES = 100_000
"""The most values that a text may expand to, counting aliased ones each time."""


INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
FRACTION = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
LONGEST_FRACTION = 60
"""The most characters of a number with a decimal point."""

TAGS = "null", "bool", "seq", "map", "timestamp"
"""The tags, besides those of texts and numbers, that have a meaning."""

MERGE = "tag:yaml.org,2002:merge"
"""The tag of the key `<<`, which merges another mapping."""


class _Loader(yaml.SafeLoader):
    """Reads the types above."""

    def read_integer(self, node: Any) -> int:
        return int(self._matching(node, INTEGER, "an integer of at most 30 digits"))

    def read_fraction(self, node: Any) -> float:
        text = self._matching(node, FRACTION, "a number with a decimal point")
        if len(text) > LONGEST_FRACTION or math.isinf(float(text)):
            raise yaml.constructor.ConstructorError(
                problem=f"a finite number of at most {LONGEST_FRACTION} characters was expected",
                problem_mark=node.start_mark,
            )
        return float(text)

    def read_text(self, node: Any) -> str:
        text: str = self.construct_scalar(node)
        text.encode()  # which refuses halves of characters
        return text

    def _matching(self, node: Any, pattern: re.Pattern[str], expected: str) -> str:
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        if not pattern.fullmatch(text):
            raise yaml.constructor.ConstructorError(
                problem=f"{expected} was expected", problem_mark=node.start_mark
            )
        return text


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"


_Loader.yaml_constructors = {
    _tag("int"): _Loader.read_integer,
    _tag("float"): _Loader.read_fraction,
    _tag("str"): _Loader.read_text,
    # Any other tag is refused by this one.
    None: yaml.SafeLoader.yaml_constructors[None],
} | {_tag(name): yaml.SafeLoader.yaml_constructors[_tag(name)] for name in TAGS}

# PyYAML's tables of types are untyped.
_loader: Any = _Loader
_loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] not in (_tag("int"), _tag("float"))]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_loader.add_implicit_resolver(_tag("int"), re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
_loader.add_implicit_resolver(
    _tag("float"), re.compile(f"(?:{FRACTION.pattern})\\Z"), list("-+0123456789.")
)


class Document(NamedTuple):
    """The value of a text; its root node, which knows the line of each part, None if it is empty;
    and the first key that occurs twice in one mapping."""

    content: Any
    root: yaml.Node | None
    repeated: yaml.ScalarNode | None


def read_yaml(text: str) -> Document:
    """Read a YAML text.

    Raises:
      yaml.YAMLError: it is not YAML, is nested too deep, expands to too much, or has a scalar that
        does not fit its type, such as a date in month 13.
    """
    try:
        loader: Any = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return Document(None, None, None)
        _check_size(root)
        repeated = _repeated_key(loader, root)  # before merging keys changes the nodes
        return Document(loader.construct_document(root), root, repeated)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deep") from None
    except (ArithmeticError, ValueError, LookupError, TypeError, AttributeError) as error:
        # PyYAML passes on Python's own errors, such as for a number of too many digits.
        raise yaml.YAMLError(f"a value is not what it says: {error}") from None


def _repeated_key(loader: Any, root: yaml.Node) -> yaml.ScalarNode | None:
    """Return the first key that occurs twice in one mapping, at any depth; keys are the same if
    they stand for equal values of Python, as `yes` and `true` do."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        keys: set[Any] = set()
        for key in _keys(node):
            value = key.value if key.tag == MERGE else loader.construct_object(key)
            if value in keys:
                return key
            keys.add(value)
        stack.extend(reversed(_children(node)))
    return None


def _check_size(root: yaml.Node) -> None:
    """Refuse a text that expands to too much, or to something that contains itself."""
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
