"""Writes the table of TensorFlow's operations from the registry of the installed TensorFlow.

python tests/graphs/operations/write_op_table.py
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from tffc.graphs.operations.op_table import TABLE


def registered_operations() -> Any:
    """TensorFlow's OpList message of everything that it registers, in alphabetical order."""
    op_def_pb2: Any = importlib.import_module("tensorflow.core.framework.op_def_pb2")
    session: Any = importlib.import_module("tensorflow.python.client.pywrap_tf_session")
    operations = op_def_pb2.OpList.FromString(session.TF_GetBuffer(session.TF_GetAllOpList())).op
    return sorted(operations, key=lambda operation: operation.name)


def line(operation: Any) -> str:
    """The row of one OpDef, as `tffc.graphs.operations.op_table` describes it."""
    functional = any(attr.type in ("func", "list(func)") for attr in operation.attr)
    named = any(attr.name in ("shared_name", "var_name") for attr in operation.attr)
    references = any(arg.is_ref for arg in operation.output_arg)
    flags = "S" * operation.is_stateful + "F" * functional + "N" * named + "R" * references
    outputs = " ".join(map(_output, operation.output_arg))
    defaults = {attr.name: attr.default_value.i for attr in operation.attr}
    return f"{operation.name}\t{flags}\t{outputs}\t{_inputs(operation.input_arg, defaults)}"


def _inputs(arguments: Sequence[Any], defaults: Mapping[str, int]) -> str:
    single = sum(not arg.number_attr and not arg.type_list_attr for arg in arguments)
    lists = [f"@{arg.type_list_attr}" for arg in arguments if arg.type_list_attr]
    counts = [f"*{arg.number_attr}" for arg in arguments if arg.number_attr]
    counts = [f"{each}={defaults[each[1:]]}" if defaults[each[1:]] else each for each in counts]
    return " ".join([str(single), *counts, *lists])


def _output(arg: Any) -> str:
    if arg.type_list_attr:
        return f"{arg.name}@{arg.type_list_attr}"
    count = f"*{arg.number_attr}" if arg.number_attr else ""
    return f"{arg.name}:{arg.type_attr or arg.type}{count}"


if __name__ == "__main__":
    rows = [line(operation) for operation in registered_operations()]
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")
