"""The clients' work in recorded rounds, computed by LiteRT's own kernels and by tffc."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.corpus.cases import Case
from tests.runtime.engines.recorded import arguments
from tffc.backends.compiler import compile_bundle
from tffc.deploy.export.signatures import NOTHING, link_signatures
from tffc.deploy.export.tflite import lite_models
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.engines.process import Process
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import DataError, ExportError

CLIENT_PARTS = {"mapreduce": "work", "broadcast": "client_processing"}
"""The component of each form of graphs that clients run."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A client's part of a recorded round, its arguments, and tffc's results."""

    name: str
    section: Compiled
    argument: Any
    expected: Any

    def compare(self, model: bytes) -> None:
        """Check that LiteRT's own kernels compute the same.

        Raises:
          AssertionError: the results differ.
        """
        assert isinstance(self.section.type, FunctionType)
        assert self.section.type.parameter is not None
        signature = link_signatures({self.name: self.section}, locks=False).signatures[self.name]
        given = ArrayLayout(self.section.type.parameter).encode(self.argument, "the argument")
        feeds = dict(zip(signature.inputs, given.values(), strict=True))
        runner = interpreter(model).get_signature_runner(self.name)
        # What a model does not need of its inputs, it does not have.
        inputs = runner.get_input_details()
        results = runner(**{name: feeds[name] for name in inputs})
        layout = ArrayLayout(self.section.type.result)
        expected = layout.encode(self.expected, "the result")
        for name, value in zip(signature.outputs, expected.values(), strict=True):
            found, wanted = results[name], np.asarray(value)
            if wanted.dtype.kind in "fc":
                np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
            else:
                np.testing.assert_equal(found.tolist(), wanted.tolist())


def interpreter(model: bytes) -> Any:
    """Return an interpreter with LiteRT's own kernels, from LiteRT's package if it is installed."""
    if importlib.util.find_spec("ai_edge_litert") is not None:
        module: Any = importlib.import_module("ai_edge_litert.interpreter")
        return module.Interpreter(model_content=model)
    lite: Any = importlib.import_module("tensorflow").lite
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return lite.Interpreter(model_content=model, experimental_op_resolver_type=kind)


def calls(case: Case, form: str, most: int = 3) -> Iterator[Call]:
    """Return the first clients' parts of the recorded rounds of a case.

    Raises:
      FormError: the case is not of this form.
    """
    program = case.program()
    bundle = compile_bundle(program, form)
    name = CLIENT_PARTS[form]
    section = bundle.components[name]
    assert isinstance(section, Compiled)
    assert isinstance(program.type, FunctionType)
    steps = Process(bundle).steps
    for recorded in case.rounds().rounds:
        state, clients = arguments(program.type, recorded)
        _, sent = steps.prepare(state)
        for data in clients[:most]:
            argument = (data, sent) if form == "mapreduce" else (sent, data)
            if not _is_stackable(section, argument):
                continue
            yield Call(name, section, argument, run_section(section, argument))


def _is_stackable(section: Compiled, argument: Any) -> bool:
    """Return whether the elements of each sequence have the same shape, as models require."""
    assert isinstance(section.type, FunctionType)
    assert section.type.parameter is not None
    try:
        ArrayLayout(section.type.parameter).encode(argument, "the argument")
    except DataError:
        return False
    return True


def outcome(section: Compiled, name: str) -> tuple[bytes | None, str]:
    """Return the model of a component, or None and the reason against LiteRT's own kernels."""
    try:
        made = lite_models({name: section})
    except ExportError as error:
        reason = error.notes[0].partition(": ")[2] if error.notes else error.message
        return None, NOTHING if error.code == "E870" else reason
    flex: Sequence[str] = made.flex.get(name, ())
    return (None, f"flex: {', '.join(flex)}") if flex else (made.models[name], "")
