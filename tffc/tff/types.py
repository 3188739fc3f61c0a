"""The module `tff.types`: types, their constructors, and queries."""

from tffc.frontend.type_analysis import is_structure_of_floats as is_structure_of_floats
from tffc.frontend.type_analysis import is_structure_of_integers as is_structure_of_integers
from tffc.frontend.type_analysis import is_structure_of_tensors as is_structure_of_tensors
from tffc.frontend.type_conversions import TypeRelation as TypeRelation
from tffc.frontend.type_conversions import UnexpectedTypeError as UnexpectedTypeError
from tffc.frontend.type_conversions import (
    structure_from_tensor_type_tree as structure_from_tensor_type_tree,
)
from tffc.frontend.type_conversions import (
    type_mismatch_error_message as type_mismatch_error_message,
)
from tffc.frontend.type_conversions import type_to_py_container as type_to_py_container
from tffc.frontend.type_conversions import type_to_tf_structure as type_to_tf_structure
from tffc.frontend.type_conversions import type_to_tf_tensor_specs as type_to_tf_tensor_specs
from tffc.frontend.type_queries import contains as contains
from tffc.frontend.type_queries import contains_only as contains_only
from tffc.frontend.type_queries import count as count
from tffc.frontend.type_queries import deserialize_type as deserialize_type
from tffc.frontend.type_queries import is_shape_fully_defined as is_shape_fully_defined
from tffc.frontend.type_queries import (
    is_tensorflow_compatible_type as is_tensorflow_compatible_type,
)
from tffc.frontend.type_queries import num_elements_in_shape as num_elements_in_shape
from tffc.frontend.type_queries import serialize_type as serialize_type
from tffc.language.shapes import Shape
from tffc.language.type_base import TypeNotAssignableError as TypeNotAssignableError
from tffc.language.type_base import TypesNotEquivalentError as TypesNotEquivalentError
from tffc.language.type_base import TypesNotIdenticalError as TypesNotIdenticalError
from tffc.language.types import AbstractType as AbstractType
from tffc.language.types import FederatedType as FederatedType
from tffc.language.types import FunctionType as FunctionType
from tffc.language.types import PlacementType as PlacementType
from tffc.language.types import SequenceType as SequenceType
from tffc.language.types import StructType as StructType
from tffc.language.types import StructWithPythonType as StructWithPythonType
from tffc.language.types import TensorType as TensorType
from tffc.language.types import Type as Type
from tffc.language.types import at_clients as at_clients
from tffc.language.types import at_server as at_server
from tffc.language.types import to_type as to_type

ArrayShape = Shape
"""TFF's name for the sizes of an array, None for one whose number of dimensions is unknown."""

tensorflow_to_type = to_type
"""The name for `to_type` that suggests types in TensorFlow's terms, which it accepts as well."""
