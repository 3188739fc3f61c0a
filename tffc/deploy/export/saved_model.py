"""SavedModels, for TensorFlow Serving and for TensorFlow in C++ and Python.

The model is one graph with a signature for each component.  There are no variables to restore,
because those of a component live for one call.  The same bundle gives the same bytes with the same
release of TensorFlow.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tffc.deploy.export.kind import Exported
from tffc.deploy.export.signatures import Signatures, link_signatures
from tffc.deploy.export.target import FILE
from tffc.language.nodes import Node
from tffc.language.types import SequenceType
from tffc.linking.operand import Tensor
from tffc.runtime.frameworks.tensorflow.load import TensorFlow, load_tensorflow
from tffc.support.errors import ExportError
from tffc.support.printable import counted

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


PREDICT = "tensorflow/serving/predict"
"""The method name of signatures that TensorFlow Serving's Predict call accepts."""

DEFAULT = "serving_default"
"""The signature that is called if none is named."""


def saved_model(
    components: Mapping[str, Node], *, locks: bool = True, bare_names: bool = False
) -> tuple[bytes, Signatures]:
    """Return the content of a SavedModel's `FILE` with a signature for each component, and its
    signatures.

    Without `locks`, callers must make one call at a time.  For `bare_names`, see `signatures`.

    Raises:
      ExportError: there is nothing to export, a component keeps state, or TensorFlow cannot load
        the graph.
      GraphError: a component is malformed.
    """
    linked = link_signatures(components, locks=locks, bare_names=bare_names)
    tf = load_tensorflow()
    messages = importlib.import_module("tensorflow.core.protobuf.saved_model_pb2")
    model = messages.SavedModel(saved_model_schema_version=1)
    meta = model.meta_graphs.add()
    meta.meta_info_def.tags.append(tf.saved_model.SERVING)
    meta.meta_info_def.tensorflow_version = tf.__version__
    meta.meta_info_def.tensorflow_git_version = tf.version.GIT_VERSION
    meta.graph_def.ParseFromString(linked.graph)
    _check(tf, meta.graph_def)
    for name, signature in linked.signatures.items():
        definition = meta.signature_def[name]
        definition.method_name = PREDICT
        for infos, tensors in (
            (definition.inputs, signature.inputs),
            (definition.outputs, signature.outputs),
        ):
            for key, tensor in tensors.items():
                _describe(infos[key], tensor)
    return model.SerializeToString(deterministic=True), linked


def _describe(info: Any, tensor: Tensor) -> None:
    """Fill in the TensorInfo of a tensor."""
    assert not isinstance(tensor.type, SequenceType)
    info.name = tensor.name
    info.dtype = tensor.type.element_type.number
    if tensor.type.shape is None:
        info.tensor_shape.unknown_rank = True
        return
    for size in tensor.type.shape:
        info.tensor_shape.dim.add().size = -1 if size is None else size


def _check(tf: TensorFlow, graph_def: GraphDef) -> None:
    """Check that TensorFlow can load the graph."""
    try:
        with tf.Graph().as_default():
            tf.graph_util.import_graph_def(graph_def, name="")
    except (ValueError, tf.errors.OpError) as error:
        raise ExportError(
            "E720",
            "TensorFlow cannot load the graph of the components",
            notes=(str(error).partition("\n")[0],),
            help="import the package that registers its operations, or compile the program again "
            "with this TensorFlow",
        ) from None


def export_saved_model(components: Mapping[str, Node], bare_names: bool) -> Exported:
    """Return components as one SavedModel; see `saved_model`."""
    content, linked = saved_model(components, bare_names=bare_names)
    lines = [
        f"{name}({', '.join(signature.inputs)}) -> {', '.join(signature.outputs)}"
        for name, signature in linked.signatures.items()
    ]
    summary = f"a SavedModel with {counted(len(lines), 'signature')}"
    return Exported({FILE: content}, summary, lines, linked.left_out)
