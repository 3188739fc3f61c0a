"""Hypothesis strategies for all types and nodes of the language.

Nodes are well typed, as their constructors want it, but need not be closed nor mean anything.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tffc import language as ir
from tffc.language.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    XlaSection,
    write_tensorflow,
    write_xla,
)

NAMES = st.one_of(
    st.sampled_from(["a", "b", "x", "arg", "<lambda>_arg", "fc_f_symbol_0", "let", "in"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
).filter(lambda name: not name.startswith("_"))


def tensors() -> st.SearchStrategy[ir.TensorType]:
    sizes = st.one_of(st.none(), st.integers(0, 3))
    shapes = st.one_of(st.none(), st.lists(sizes, max_size=3).map(tuple))
    return st.builds(ir.TensorType, st.sampled_from(list(ir.DType)), shapes)


def _structs(element: st.SearchStrategy[ir.Type]) -> st.SearchStrategy[ir.Type]:
    pairs = st.tuples(st.one_of(st.none(), NAMES), element)
    unique = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0] or object())
    return unique.map(lambda items: ir.StructType.of(*_columns(items)))


def _columns(pairs: list) -> tuple[tuple, tuple]:
    return tuple(name for name, _ in pairs), tuple(value for _, value in pairs)


def values() -> st.SearchStrategy[ir.Type]:
    """Tensors and structs of them: what may stand anywhere."""
    return st.recursive(tensors(), _structs, max_leaves=4)


def types() -> st.SearchStrategy[ir.Type]:
    """All types but the abstract ones."""
    placed = st.builds(
        ir.FederatedType, values(), st.sampled_from([ir.CLIENTS, ir.SERVER]), st.booleans()
    )
    leaves = st.one_of(
        tensors(), values(), placed, values().map(ir.SequenceType), st.just(ir.PlacementType())
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            _structs(inner), st.builds(ir.FunctionType, st.one_of(st.none(), inner), inner)
        ),
        max_leaves=4,
    )


@st.composite
def literals(draw: st.DrawFn) -> ir.Literal:
    """Constants of every element type and of any bits, in types that may say less of the shape."""
    dtype = draw(st.sampled_from(list(ir.DType)))
    shape = draw(st.lists(st.integers(0, 3), max_size=2).map(tuple))
    count = 1
    for size in shape:
        count *= size
    if dtype is ir.DType.STRING:
        content: bytes | tuple[bytes, ...] = tuple(
            draw(st.lists(st.binary(max_size=4), min_size=count, max_size=count))
        )
    elif dtype is ir.DType.BOOL:
        content = bytes(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    else:
        content = draw(st.binary(min_size=count * dtype.size, max_size=count * dtype.size))
    known = draw(st.sampled_from([shape, tuple(None for _ in shape), None]))
    return ir.Literal(ir.Array(dtype, shape, content), ir.TensorType(dtype, known))


def bindings(leaf: st.SearchStrategy[SectionBinding]) -> st.SearchStrategy[SectionBinding]:
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3).map(lambda b: StructBinding(tuple(b)))
    )


def sections() -> st.SearchStrategy[ir.Compiled]:
    """Compiled sections whose graphs are any bytes."""
    tensor = st.text("ab:0", max_size=3)
    leaf = st.one_of(tensor.map(TensorBinding), tensor.map(SequenceBinding))
    indexes = bindings(st.integers(-(2**31), 2**31 - 1).map(TensorBinding))
    tensorflow = st.builds(
        TensorFlowSection,
        st.binary(max_size=3),
        st.one_of(st.none(), bindings(leaf)),
        bindings(leaf),
        st.text("ab", max_size=2),
        st.text("ab", max_size=2),
        st.one_of(st.none(), st.integers(0, 2**64 - 1)),
    )
    xla = st.builds(XlaSection, st.binary(max_size=3), st.one_of(st.none(), indexes), indexes)
    return st.one_of(
        st.builds(ir.Compiled, st.just("tensorflow"), tensorflow.map(write_tensorflow), types()),
        st.builds(ir.Compiled, st.just("xla"), xla.map(write_xla), types()),
    )


def _leaves() -> st.SearchStrategy[ir.Node]:
    return st.one_of(
        st.builds(ir.Reference, NAMES, types()),
        literals(),
        sections(),
        st.builds(ir.Data, st.text("a./", max_size=5), st.binary(max_size=4), types()),
        st.sampled_from([ir.PlacementNode(ir.CLIENTS), ir.PlacementNode(ir.SERVER)]),
        st.builds(ir.Intrinsic, NAMES, types()),
    )


def _composites(inner: st.SearchStrategy[ir.Node]) -> st.SearchStrategy[ir.Node]:
    pairs = st.tuples(st.one_of(st.none(), NAMES), inner)
    structs = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0] or object())
    locals_ = st.lists(st.builds(ir.Binding, NAMES, inner), max_size=3).map(tuple)
    return st.one_of(
        structs.map(ir.StructNode.from_pairs),
        inner.map(_selected),
        st.builds(_called, inner, types()),
        st.builds(ir.Lambda, NAMES, types(), inner),
        st.builds(ir.Lambda, st.none(), st.none(), inner),
        st.builds(ir.Block, locals_, inner),
    )


def _selected(node: ir.Node) -> ir.Node:
    """The last element of a struct; of anything else, of a struct around it."""
    if isinstance(node.type, ir.StructType) and len(node.type):
        return ir.Selection(node, len(node.type) - 1)
    return ir.Selection(ir.StructNode((node, node)), 0)


def _called(node: ir.Node, result: ir.Type) -> ir.Node:
    if isinstance(node.type, ir.FunctionType) and node.type.parameter is None:
        return ir.Call(node)
    return ir.Call(ir.Reference("f", ir.FunctionType(node.type, result)), node)


def nodes() -> st.SearchStrategy[ir.Node]:
    """All nodes but those that lose something on the wire: contexts, names, containers."""
    return st.recursive(_leaves(), _composites, max_leaves=6)


def written_nodes() -> st.SearchStrategy[ir.Node]:
    """All nodes but those that lose something in the typed form, which are those of containers."""
    contexts = st.builds(ir.Reference, NAMES, types(), NAMES)
    named = st.builds(ir.Compiled, st.just("xla"), st.binary(max_size=2), types(), NAMES)
    leaves = st.one_of(_leaves(), contexts, named)
    return st.recursive(leaves, _written_composites, max_leaves=6)


def _written_composites(inner: st.SearchStrategy[ir.Node]) -> st.SearchStrategy[ir.Node]:
    return st.one_of(
        _composites(inner),
        st.builds(_selected_by_name, NAMES, inner),
        st.builds(_bound, NAMES, types(), inner),
    )


def _selected_by_name(name: str, node: ir.Node) -> ir.Node:
    return ir.Selection.by_name(ir.StructNode((node,), (name,)), name)


def _bound(name: str, type_: ir.Type, node: ir.Node) -> ir.Node:
    """The node under a binder whose name is used, and used again where another binder hides it."""
    reference = ir.Reference(name, type_)
    inner = ir.Block(
        (ir.Binding(name, node),), ir.StructNode((ir.Reference(name, node.type), reference))
    )
    return ir.Lambda(name, type_, ir.StructNode((reference, inner, reference)))
