"""Programs, types and compiled sections as protobuf messages, in the encoding of TensorFlow
Federated 0.87.

    Computation <-> Node             from_bytes, to_bytes
    Type        <-> Type             type_from_bytes, type_to_bytes
    TensorFlow  <-> TensorFlowSection  read_tensorflow, write_tensorflow
    Xla         <-> XlaSection       read_xla, write_xla

Messages may be nested deeper than the 100 levels that protobuf's own parsers accept.
"""

from tffc.ir.wire.programs import from_bytes, to_bytes
from tffc.ir.wire.sections import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    XlaSection,
    read_tensorflow,
    read_xla,
    write_tensorflow,
    write_xla,
)
from tffc.ir.wire.types import type_from_bytes, type_to_bytes

__all__ = [
    "SectionBinding",
    "SequenceBinding",
    "StructBinding",
    "TensorBinding",
    "TensorFlowSection",
    "XlaSection",
    "from_bytes",
    "read_tensorflow",
    "read_xla",
    "to_bytes",
    "type_from_bytes",
    "type_to_bytes",
    "write_tensorflow",
    "write_xla",
]
