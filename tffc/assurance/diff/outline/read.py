"""Reading the outline of any compiled section."""

from __future__ import annotations

from tffc.assurance.diff.outline.rows import Outline
from tffc.assurance.diff.outline.tensorflow import tensorflow_outline
from tffc.assurance.diff.outline.xla import xla_outline
from tffc.graphs.reading import read_graph
from tffc.language.fingerprint import leaf_names
from tffc.language.nodes import Compiled
from tffc.language.wire.sections import read_tensorflow, read_xla


def outline(section: Compiled) -> Outline:
    """Return the outline of a section.

    Raises:
      WireError: the section is malformed.
      GraphError: its graph is malformed.
    """
    if section.kind == "xla":
        return xla_outline(read_xla(section.payload).hlo_module)
    content = read_tensorflow(section.payload)
    graph = read_graph(content.graph_def)
    parameters = list(dict.fromkeys(leaf_names(content.parameter)))
    return tensorflow_outline(graph, parameters, leaf_names(content.result), content.initialize_op)
