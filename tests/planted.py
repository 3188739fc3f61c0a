"""Faults planted in linking, graphdef, forms and passes, and who is to see each.

Each is one change of a text that stands once in a module.  `python -m tests.mutation --planted`
makes them one by one in a copy of the checkout, and runs there the quick tests of the package, and
`tffc verify` and `tffc prove` on the programs of `tests/planted_programs.py`.
"""

from __future__ import annotations

import pathlib
from typing import NamedTuple

from tests.processes import ROOT

QUICK_TESTS = {
    "linking": ("tests/linking",),
    "graphdef": ("tests/graphs", "tests/language/test_fingerprint.py"),
    "forms": ("tests/backends",),
    "passes": ("tests/passes",),
}
"""The quick tests of each package."""

FOLDERS = {
    "linking": "tffc/linking",
    "graphdef": "tffc/graphs",
    "forms": "tffc/backends/forms",
    "passes": "tffc/passes",
}


class Planted(NamedTuple):
    """A fault: the text of a module of a package that is changed, and into what.

    `seen_by` are those of `verify` and `prove` that are to see it, in one of the programs.  Neither
    sees what changes no compiled program: fingerprints, passes beside the default pipeline, and
    what no traced program has, such as names bound twice, and programs that are refused.
    """

    package: str
    module: str
    before: str
    after: str
    seen_by: tuple[str, ...] = ("verify", "prove")

    @property
    def path(self) -> pathlib.Path:
        return ROOT / FOLDERS[self.package] / self.module

    def __str__(self) -> str:
        shown = " ".join(self.before.split())
        return f"{self.package}/{self.module}: {shown} -> {' '.join(self.after.split())}"

    def apply(self, checkout: pathlib.Path) -> None:
        """Make the fault in a copy of the checkout."""
        text = self.path.read_text(encoding="utf-8")
        assert text.count(self.before) == 1, self
        (checkout / self.path.relative_to(ROOT)).write_text(
            text.replace(self.before, self.after), encoding="utf-8"
        )

    def undo(self, checkout: pathlib.Path) -> None:
        """Take the fault back."""
        (checkout / self.path.relative_to(ROOT)).write_bytes(self.path.read_bytes())


BOTH = ("verify", "prove")
VERIFY = ("verify",)
PROVE = ("prove",)
NONE: tuple[str, ...] = ()

PLANTED = (
    # Linking.
    Planted(
        "linking",
        "aggregations.py",
        'return by.apply(self._operand("merge"), (first, second))',
        'return by.apply(self._operand("merge"), (second, first))',
    ),
    Planted(
        "linking",
        "aggregations.py",
        "return by.dtype_limits(self.zero_type, largest=False)",
        "return by.zeros(self.zero_type)",
    ),
    Planted(
        "linking",
        "aggregations.py",
        "return by.dtype_limits(self.zero_type, largest=True)",
        "return by.zeros(self.zero_type)",
    ),
    Planted(
        "linking",
        "aggregations.py",
        "return by.operand(operands(self.call)[1])",
        "return by.ones(value, local_type(operands(self.call)[0].type))",
    ),
    Planted(
        "linking",
        "aggregations.py",
        'return by.apply(self._operand("accumulate"), (accumulator, update))',
        'return by.apply(self._operand("merge"), (accumulator, update))',
    ),
    Planted(
        "linking",
        "operand.py",
        "places = sorted(range(len(kind)), key=named.__getitem__) if named else range(len(kind))",
        "places = range(len(kind))",
        PROVE,
    ),
    # Variables and tables wait for their own initializers anyway, as they are traced.
    Planted("linking", "template.py", "name: [*edges, waiting]", "name: edges", PROVE),
    Planted(
        "linking",
        "builder.py",
        'Tensor(f"{name}:{port}" if port else name, kind) for port, kind in enumerate(types)',
        "Tensor(name, kind) for port, kind in enumerate(types)",
    ),
    Planted(
        "linking",
        "builder.py",
        'name = self._new("init", new_rest("NoOp", {}), initializers)',
        'name = self._new("init", new_rest("NoOp", {}), initializers[:1])',
        PROVE,
    ),
    Planted(
        "linking",
        "function_builder.py",
        'self._captured[tensor.name] = (tensor, self._placeholder("captured", tensor.type))',
        "first = next(iter(self._captured.values()), (tensor,))[0]; "
        'self._captured[tensor.name] = (first, self._placeholder("captured", tensor.type))',
    ),
    Planted(
        "linking",
        "arithmetic.py",
        'return self._combine("RealDiv", first, second, NUMERIC, _quotient_type)',
        'return self._combine("Mul", first, second, NUMERIC, _quotient_type)',
    ),
    Planted(
        "linking",
        "emit.py",
        "return (yield self._evaluate(node.source))[node.index]",
        "return (yield self._evaluate(node.source))[0]",
    ),
    # Graphs.
    Planted(
        "graphdef",
        "functions.py",
        "contents.append(encoded(renamed))",
        'contents.append(b"")',
    ),
    Planted("graphdef", "functions.py", "if root in self._numbers:", "if root in ():", VERIFY),
    Planted(
        "graphdef",
        "functions.py",
        "self.copied = self.stateful | keeping",
        "self.copied = self.stateful",
        VERIFY,
    ),
    Planted(
        "graphdef",
        "functions.py",
        "names = [node.op] if node.op in self.functions else []",
        "names = []",
        NONE,
    ),
    Planted(
        "graphdef",
        "state.py",
        "node.attr[name].s = prefix.encode() + node.attr[name].s",
        "node.attr[name].s = node.attr[name].s",
    ),
    Planted(
        "graphdef",
        "state.py",
        'node.attr["frame_name"].s = prefix.encode() + node.attr["frame_name"].s',
        'node.attr["frame_name"].s = node.attr["frame_name"].s',
        NONE,
    ),
    Planted("graphdef", "state.py", "if len(group) == 1]", "]", NONE),
    Planted(
        "graphdef", "node.py", "return int(port) if PORT.fullmatch(port) else None", "return 0"
    ),
    Planted(
        "graphdef",
        "node.py",
        'classes.append(COLOCATION + new.encode(errors="surrogateescape"))',
        "classes.append(text)",
        NONE,
    ),
    Planted(
        "graphdef",
        "canonical.py",
        "return (self._resources.setdefault(name, len(self._resources)),)",
        "return (0,)",
        NONE,
    ),
    Planted(
        "graphdef",
        "canonical.py",
        'self._token(*parts, "after", *sorted(numbers[source] for source in node.waits))',
        'self._token(*parts, "after")',
        NONE,
    ),
    Planted(
        "graphdef",
        "canonical.py",
        "if not content.endswith(content[-size:] * 2):",
        "if True:",
        NONE,
    ),
    # Forms.
    Planted(
        "forms",
        "component.py",
        "values.append(step(member, own))",
        "values.append(step(member, own[::-1]))",
    ),
    Planted(
        "forms",
        "component.py",
        "for call, value in zip(calls, elements(values), strict=True):",
        "for call, value in zip(calls, elements(values)[::-1], strict=True):",
    ),
    Planted("forms", "component.py", "return self.constant_ones(kind)", "return self.zeros(kind)"),
    Planted(
        "forms",
        "map_reduce.py",
        "return component.finish(results, self.round.results_type)",
        "return component.finish(results[::-1], self.round.results_type)",
    ),
    Planted(
        "forms",
        "map_reduce.py",
        "return self._component(name).finish_struct([operands(call.call)[1] for call in calls])",
        "return self._component(name).finish_struct([operands(c.call)[1] for c in calls[::-1]])",
    ),
    Planted(
        "forms",
        "map_reduce.py",
        "return self._run(self._form.merge, (first, second))",
        "return self._run(self._form.merge, (second, first))",
        VERIFY,
    ),
    Planted(
        "forms",
        "map_reduce.py",
        "secured = [[operands(s.call)[0] for s in calls] for calls in self.secure]",
        "secured = [[operands(s.call)[0] for s in calls[::-1]] for calls in self.secure]",
    ),
    Planted(
        "forms",
        "component.py",
        "return source.values[index]",
        "return source.values[0]",
    ),
    Planted(
        "forms",
        "distribute_aggregate.py",
        "parts = dict(zip(self.carried, selections(state), strict=True))",
        "parts = dict(zip(self.carried, selections(state)[::-1], strict=True))",
    ),
    Planted(
        "forms",
        "distribute_aggregate.py",
        "passed = (pack(self.sent), pack(self.carried.values()))",
        "passed = (pack(self.sent[::-1]), pack(self.carried.values()))",
    ),
    Planted(
        "forms",
        "broadcast.py",
        "compute_server_context = server.finish_struct(program.sent)",
        "compute_server_context = server.finish_struct(program.sent[::-1])",
    ),
    Planted(
        "forms",
        "purity.py",
        "if left() and refusal is not None:",
        "if False:",
        NONE,
    ),
    # Passes.
    Planted(
        "passes",
        "call_dominant.py",
        "Atom(Selection(value.node, index))",
        "Atom(Selection(value.node, 0))",
    ),
    Planted(
        "passes",
        "call_dominant.py",
        "values.append((yield self.conform(self.element(value, index), inner)))",
        "values.append((yield self.conform(self.element(value, 0), inner)))",
    ),
    Planted("passes", "symbolic.py", "if binding.name in self._bound:", "if False:", NONE),
    Planted(
        "passes",
        "symbolic.py",
        "known = self._known.get((id(first), id(second)))",
        "known = next((k for k in self._known.values() if k[0] is first), None)",
        NONE,
    ),
    Planted(
        "passes", "symbolic.py", "for index in reversed(indices):", "for index in indices:", NONE
    ),
    Planted(
        "passes",
        "share_equal_calls.py",
        "case Compiled() if not is_pure(node):",
        "case Compiled() if False:",
        NONE,
    ),
    Planted(
        "passes",
        "share_equal_calls.py",
        "instead[binding.name] = known",
        "instead[binding.name] = next(iter(first.values()))",
        NONE,
    ),
    Planted(
        "passes",
        "normalize_all_equal.py",
        "return not all(map(is_pure, sections))",
        "return False",
        NONE,
    ),
    Planted(
        "passes",
        "desugar_means.py",
        'value = bind("products", apply(product, pairs))',
        'bind("products", apply(product, pairs))',
        NONE,
    ),
    Planted(
        "passes",
        "desugar_means.py",
        'totals = bind("total", federated_sum(value)), bind("weight", federated_sum(weight))',
        'totals = bind("total", federated_sum(value)), bind("weight", federated_sum(value))',
        NONE,
    ),
    Planted(
        "passes",
        "lower_select.py",
        "keys, value = Selection(argument, 0), Selection(argument, 1)",
        "keys, value = Selection(argument, 0), Selection(argument, 0)",
    ),
    Planted(
        "passes",
        "drop_unused_bindings.py",
        "new = _with_locals(new, sorted(used.get(id(node), ())))",
        "new = _with_locals(new, sorted(used.get(id(node), ()))[1:])",
    ),
    Planted(
        "passes",
        "drop_identity_maps.py",
        "return node.argument.values[1]",
        "return node.argument.values[0]",
    ),
)
"""The faults."""
