"""Models for LiteRT (formerly TensorFlow Lite): one file for each component that can be converted.

LiteRT has its own kernels for common operations.  A model with others needs flex: an interpreter
with TensorFlow's kernels linked in.
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import re
import tempfile
import warnings
from collections.abc import Mapping

from tffc.deploy.export.kind import Exported
from tffc.deploy.export.lite_graph import adapt_to_lite
from tffc.deploy.export.lite_variables import VariablesError
from tffc.deploy.export.saved_model import saved_model
from tffc.deploy.export.signatures import link_signatures
from tffc.deploy.export.target import FILE, SUFFIX
from tffc.language.nodes import Node
from tffc.runtime.frameworks.tensorflow.load import TensorFlow, load_tensorflow
from tffc.runtime.frameworks.tensorflow.quiet import quiet
from tffc.support.errors import ExportError
from tffc.support.printable import counted

FLEX = "Flex"
"""The prefix of operations that need TensorFlow's kernels."""

UNKNOWN = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")


@dataclasses.dataclass(frozen=True, slots=True)
class LiteModels:
    """Serialized models of components, and the reasons why the others have none.

    `flex` lists the operations of a model that need flex, sorted; other models are not in it.
    """

    models: Mapping[str, bytes]
    flex: Mapping[str, tuple[str, ...]]
    left_out: Mapping[str, str]


def lite_models(components: Mapping[str, Node], *, bare_names: bool = False) -> LiteModels:
    """Return a model for each component that can be converted; for `bare_names`, see `signatures`.

    Raises:
      ExportError: no component can be converted.
      GraphError: a component is malformed.
    """
    # A LiteRT interpreter runs one call at a time, and has no locks.
    linked = link_signatures(components, locks=False, bare_names=bare_names)
    tf = load_tensorflow()
    models: dict[str, bytes] = {}
    left_out = dict(linked.left_out)
    for name in linked.signatures:
        part = {name: components[name]}
        content, _ = saved_model(part, locks=False, bare_names=bare_names)
        try:
            models[name] = _convert_either(tf, content, name)
        except VariablesError as error:
            left_out[name] = str(error)
        except Exception as error:  # noqa: BLE001 - the converter raises all kinds
            left_out[name] = _reason(str(error))
    if not models:
        raise ExportError(
            "E870",
            "no component of the bundle can be converted for LiteRT",
            notes=tuple(f"{name}: {reason}" for name, reason in left_out.items()),
            help="export a SavedModel",
        )
    flex = {name: _flex_operations(model) for name, model in models.items()}
    return LiteModels(models, {name: ops for name, ops in flex.items() if ops}, left_out)


def _adapted(content: bytes) -> bytes:
    """Return a SavedModel whose graph is rewritten for LiteRT."""
    messages = importlib.import_module("tensorflow.core.protobuf.saved_model_pb2")
    model = messages.SavedModel.FromString(content)
    adapt_to_lite(model.meta_graphs[0].graph_def)
    return model.SerializeToString(deterministic=True)


def _convert_either(tf: TensorFlow, content: bytes, signature: str) -> bytes:
    """Convert the graph rewritten for LiteRT or, if that fails, the original graph: flex lacks, for
    example, iterators."""
    adapted = _adapted(content)
    try:
        return _convert(tf, adapted, signature)
    except Exception:  # noqa: BLE001 - the converter raises all kinds
        return _convert(tf, content, signature)


def _convert(tf: TensorFlow, content: bytes, signature: str) -> bytes:
    """Return the model of a signature of a SavedModel."""
    with tempfile.TemporaryDirectory() as folder, quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (pathlib.Path(folder) / FILE).write_bytes(content)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[signature])
        operations = tf.lite.OpsSet
        converter.target_spec.supported_ops = [operations.TFLITE_BUILTINS, operations.SELECT_TF_OPS]
        converter.experimental_enable_resource_variables = True
        return converter.convert()


def _reason(message: str) -> str:
    """Return the part of the converter's message that says why it refuses a component."""
    unknown = sorted(set(UNKNOWN.findall(message)))
    if unknown:
        return f"LiteRT has no {', '.join(unknown)}, not even with flex"
    return f"the converter refuses it: {message.strip().partition(chr(10))[0]}"


def _flex_operations(model: bytes) -> tuple[str, ...]:
    """Return the operations of a model that need TensorFlow's kernels."""
    schema = importlib.import_module("tensorflow.lite.python.schema_py_generated")
    content = schema.Model.GetRootAs(model)
    codes = (content.OperatorCodes(index) for index in range(content.OperatorCodesLength()))
    names = ((code.CustomCode() or b"").decode() for code in codes)
    return tuple(sorted(name.removeprefix(FLEX) for name in names if name.startswith(FLEX)))


def export_lite_models(components: Mapping[str, Node], bare_names: bool) -> Exported:
    """Return components as LiteRT models; see `lite_models`."""
    lite = lite_models(components, bare_names=bare_names)
    needs = {name: f" needs flex for {', '.join(ops)}" for name, ops in lite.flex.items()}
    return Exported(
        {f"{name}{SUFFIX}": model for name, model in lite.models.items()},
        counted(len(lite.models), "LiteRT model"),
        [f"{name}{SUFFIX}{needs.get(name, '')}" for name in lite.models],
        lite.left_out,
    )
