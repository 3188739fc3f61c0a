"""The table of proofs: all available programs, in each form to which they compile.

    TFFC_CORPUS=DIR python -m tests.assurance.proof.table

prints the answer of the prover for each form of the recorded computations, of the examples, and of
rounds that map the small programs recorded from TensorFlow Federated; and then the counts.
"""

from __future__ import annotations

import collections
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tffc as tff
from tests.corpus.cases import Case, cases
from tests.recorded import programs, record
from tffc.assurance.proof.prove import Proof, prove
from tffc.backends import compile_form
from tffc.backends.forms.kinds import FORMS
from tffc.backends.forms.queries import as_round
from tffc.language import Node
from tffc.runtime.user_code.modules import import_source
from tffc.support.errors import TffcError

ROOT = Path(__file__).parents[3]
HAS_JAX = importlib.util.find_spec("jax") is not None

Read = Callable[[], Iterable[Node]]
"""Reads rounds; none of what is refused, or cannot be one."""


def entries() -> dict[str, dict[str, Read]]:
    """Functions that read the rounds of each available program, by its kind and name."""
    language = programs.Language(tff)
    return {
        "computations": {str(case): lambda case=case: computation(case) for case in cases()},
        "programs": {
            name: lambda program=program: mapped(program, language)
            for name, program in record.all_programs().items()
            if HAS_JAX or not name.startswith("jax: ")
        },
        "examples": {
            path.stem: lambda path=path: examples(path)
            for path in sorted(ROOT.glob("examples/**/*.py"))
            if path.stem not in NO_EXAMPLES and (HAS_JAX or "jax" not in path.stem)
        },
    }


NO_EXAMPLES = (
    "__init__",
    "healthy",
    "make_data",
    "private_digits",
    "requirements",
    "slides",
    "train",
    "unsecure_sums",
)
"""Modules beside the examples without rounds, or that need what the tests do not."""


def computation(case: Case) -> Iterator[Node]:
    """A recorded computation, if it can be read."""
    try:
        yield case.program()
    except TffcError:
        return


def mapped(program: programs.Program, language: programs.Language) -> Iterator[Node]:
    """Rounds that map a program over the state, and over the clients' data."""
    try:
        function = program(language)
        kind = function.type_signature.parameter
    except Exception:  # noqa: BLE001 - programs that are refused, in whatever way
        return
    if kind is None:
        yield from _traced(
            lambda state, data: (state, tff.federated_eval(function, tff.SERVER)), np.int32
        )
        return
    yield from _traced(lambda state, data: (state, tff.federated_map(function, state)), kind)
    yield from _traced(lambda state, data: tff.federated_map(function, data), kind)


def _traced(body: Callable[[Any, Any], Any], kind: Any) -> Iterator[Node]:
    """The round with this body, if it can be one of state and data of the type."""
    try:
        types = tff.types.at_server(kind), tff.types.at_clients(kind)
        yield tff.federated_computation(body, *types).node
    except TffcError:
        return


def examples(path: Path) -> Iterator[Node]:
    """The computations of a module, and the rounds of its processes."""
    for value in vars(import_source(str(path))).values():
        if isinstance(value, tff.templates.IterativeProcess):
            yield as_round(value.next.node)
        elif isinstance(value, tff.Computation):
            yield as_round(value.node)


def proofs(read: Read) -> Iterator[tuple[str, Proof]]:
    """The proofs of the forms that rounds compile to."""
    for program in read():
        for form in FORMS:
            try:
                components = compile_form(program, form).components()
            except TffcError:
                continue
            yield form, prove(program, form, components)


def main() -> int:
    """Print the table."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for kind, found in entries().items():
        for name, read in found.items():
            for form, proof in proofs(read):
                counts[kind, proof.answer.value] += 1
                said = f"{proof.answer.value} {proof.construct}".rstrip()
                sys.stdout.write(f"{kind} | {name} | {form} | {said}\n")
    for (kind, answer), count in sorted(counts.items()):
        sys.stdout.write(f"{kind}: {count} {answer}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
