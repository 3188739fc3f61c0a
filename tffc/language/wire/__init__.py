"""Programs, types and compiled sections as protobuf messages, in the encoding of TensorFlow
Federated 0.87.

    Computation <-> Node             from_bytes, to_bytes
    Type        <-> Type             type_from_bytes, type_to_bytes
    TensorFlow  <-> TensorFlowSection  read_tensorflow, write_tensorflow
    Xla         <-> XlaSection       read_xla, write_xla

Messages may be nested deeper than the 100 levels that protobuf's own parsers accept.
"""

from tffc.language.wire.programs import from_bytes as from_bytes
from tffc.language.wire.programs import opened as opened
from tffc.language.wire.programs import to_bytes as to_bytes
from tffc.language.wire.sections import SectionBinding as SectionBinding
from tffc.language.wire.sections import SequenceBinding as SequenceBinding
from tffc.language.wire.sections import StructBinding as StructBinding
from tffc.language.wire.sections import TensorBinding as TensorBinding
from tffc.language.wire.sections import TensorFlowSection as TensorFlowSection
from tffc.language.wire.sections import XlaSection as XlaSection
from tffc.language.wire.sections import bound_otherwise as bound_otherwise
from tffc.language.wire.sections import read_tensorflow as read_tensorflow
from tffc.language.wire.sections import read_xla as read_xla
from tffc.language.wire.sections import write_tensorflow as write_tensorflow
from tffc.language.wire.sections import write_xla as write_xla
from tffc.language.wire.types import type_from_bytes as type_from_bytes
from tffc.language.wire.types import type_to_bytes as type_to_bytes
