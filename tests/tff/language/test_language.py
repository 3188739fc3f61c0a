"""The names of federated_language 0.5.4, its messages, and computations of the package itself."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import subprocess
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from google.protobuf import any_pb2

import tffc
from tests.refusals import refusal
from tffc.frontend.computation import Computation
from tffc.frontend.load import load, loaded_object
from tffc.support.errors import ContextError, LanguageTypeError, LanguageValueError, LoadError
from tffc.tff import federated_language
from tffc.tff.federated_language import messages

framework: Any = importlib.import_module("tffc.tff.federated_language.framework")

RECORDED = pathlib.Path(__file__).parent / "recorded"
NAMES: dict[str, list[str]] = json.loads((RECORDED / "names.json").read_text())
TOTAL = (RECORDED / "total.pb").read_bytes()
"""The sum of clients' values, traced by federated_language 0.5.4 itself."""


def test_the_names() -> None:
    missing = [n for n in NAMES["federated_language"] if not hasattr(federated_language, n)]
    assert missing == []


def test_the_names_of_the_framework() -> None:
    own = set(NAMES["federated_language.framework"]) - set(framework.IN_FILES)
    assert [name for name in sorted(own) if not hasattr(framework, name)] == []
    assert set(framework.IN_FILES) <= set(NAMES["federated_language.framework"])


def test_messages_of_the_package() -> None:
    message = messages.Computation.FromString(TOTAL)
    for computation in (
        Computation.from_proto(message),
        framework.ConcreteComputation(
            computation_proto=message, context_stack=framework.get_context_stack()
        ),
    ):
        assert str(computation.type_signature) == "({int32}@CLIENTS -> int32@SERVER)"
        assert computation([1, 2, 3]) == 6
        assert computation.to_proto() == message
        assert isinstance(computation, framework.ConcreteComputation)


def test_messages_take_the_any_of_protobuf() -> None:
    content = any_pb2.Any(type_url="store", value=b"17")
    type: Any = messages.Type(tensor=messages.TensorType(dtype=messages.DataType.Value("DT_INT32")))
    message = messages.Computation(type=type, data=messages.Data(content=content))
    node = framework.ComputationBuildingBlock.from_proto(message)
    assert (node.content, str(node.type)) == (content, "int32")


def test_the_class_of_computations() -> None:
    kind = federated_language.Computation
    assert kind is framework.Computation
    identity = tffc.federated_computation(lambda x: x, np.int32)
    assert isinstance(identity, kind)
    assert not isinstance(tffc.federated_computation(lambda x: x), kind)
    assert mock.create_autospec(kind)(1, 2) is not None  # the tests of programs do so
    with pytest.raises(TypeError, match="abstract"):
        kind()  # type: ignore[abstract]


def test_messages_of_types() -> None:
    type: Any = tffc.FederatedType([("a", np.int32)], tffc.CLIENTS)
    assert type.to_proto() is type.to_proto()
    assert tffc.Type.from_proto(type.to_proto()) is type  # type: ignore[attr-defined]  # a name of the mirror
    refusal(LanguageValueError, lambda: tffc.TensorType.from_proto(type.to_proto()))  # type: ignore[attr-defined]  # likewise
    refusal(LanguageTypeError, lambda: tffc.Type.from_proto(b""))  # type: ignore[attr-defined]  # likewise


class PackagesComputation:
    """Stands for a computation of the package itself."""

    def to_proto(self) -> Any:
        return messages.Computation.FromString(TOTAL)


class PackagesPolymorphic:
    """Stands for a polymorphic computation of the package itself."""

    fn_for_argument_type = None


PackagesComputation.__module__ = PackagesPolymorphic.__module__ = "federated_language.computation"


def test_computations_of_the_package() -> None:
    loaded = loaded_object(PackagesComputation())
    assert loaded is not None
    assert loaded.computation([1, 2]) == 3
    assert "types are not known" in refusal(LoadError, loaded_object, PackagesPolymorphic())


def run(program: str, *path: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_a_program_of_today() -> None:
    program = (
        "import tffc\n"
        "tffc.install_as_federated_language()\n"
        "import numpy as np, federated_language as fl\n"
        "@fl.federated_computation(fl.FederatedType(np.int32, fl.CLIENTS))\n"
        "def total(values):\n"
        "    return fl.federated_sum(values)\n"
        "print(total([1, 2, 3]), fl.framework.computation_contains_unsecure_aggregation(total))\n"
        "stack = fl.framework.get_context_stack()\n"
        "trace = fl.framework.FederatedComputationContext(stack, 'own')\n"
        "with stack.install(trace):\n"
        "    print(fl.federated_value(1, fl.SERVER), stack.current is trace)\n"
        "print([name for name, _ in trace.symbol_bindings])\n"
        "from federated_language.proto import computation_pb2\n"
        "print(total.to_proto() == computation_pb2.Computation.FromString("
        "tffc.serialize_computation(total)))\n"
    )
    assert run(program) == "6 True\nfc_own_symbol_0 True\n['fc_own_symbol_0']\nTrue\n"


def test_beside_the_package_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "federated_language", ModuleType("federated_language"))
    assert refusal(ContextError, tffc.install_as_federated_language) == (
        "tffc cannot take the name federated_language, because federated_language itself is "
        "loaded already [E183]\n"
        "  help: call tffc.install_as_federated_language() before anything imports it"
    )


def test_the_package_itself() -> None:
    if PathFinder.find_spec("federated_language") is None:
        pytest.skip("federated_language is not installed")
    program = (
        "import numpy as np, federated_language as fl\n"
        "import tffc\n"
        "@fl.federated_computation(fl.FederatedType(np.int32, fl.CLIENTS))\n"
        "def total(values):\n"
        "    return fl.federated_sum(values)\n"
        "from tffc.frontend.load import loaded_object\n"
        "own = loaded_object(total).computation\n"
        "print(own([1, 2, 3]))\n"
        "message = type(total.to_proto()).FromString(tffc.serialize_computation(own))\n"
        "print(fl.framework.ConcreteComputation.from_proto(message).type_signature)\n"
    )
    assert run(program) == "6\n({int32}@CLIENTS -> int32@SERVER)\n"


STAND_IN = """\
import numpy as np
import tffc as tff
from tffc.graphs.proto.computation import Computation


@tff.federated_computation(tff.types.at_clients(np.int32))
def own(values):
    return tff.federated_sum(values)


MESSAGE = own.to_proto().SerializeToString()


class ConcreteComputation:
    def to_proto(self):
        return Computation.FromString(MESSAGE)


ConcreteComputation.__module__ = "federated_language.computation.computation_impl"
total, number = ConcreteComputation(), 3
del own
"""


def test_a_module_with_a_computation_of_the_package(tmp_path: pathlib.Path) -> None:
    (tmp_path / "theirs.py").write_text(STAND_IN)
    loaded = load(f"{tmp_path}/theirs.py:total")
    assert str(loaded.computation.type_signature) == "({int32}@CLIENTS -> int32@SERVER)"
    assert loaded.computation([1, 2, 3]) == 6
