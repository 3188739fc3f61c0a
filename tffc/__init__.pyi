"""What `import tffc as tff` gives: each public name, and the module that has it.

Type checkers and editors read this file, and `__init__.py` looks names up in it.
"""

from tffc import backends as backends
from tffc.compat.install import (
    install_as_tensorflow_federated as install_as_tensorflow_federated,
)
from tffc.containers.struct import Struct as Struct
from tffc.engines.api import (
    load as load,
)
from tffc.engines.api import (
    load_state as load_state,
)
from tffc.engines.api import (
    run as run,
)
from tffc.frontend import (
    framework as framework,
)
from tffc.frontend import (
    jax as jax,
)
from tffc.frontend import (
    structure as structure,
)
from tffc.frontend import (
    templates as templates,
)
from tffc.frontend import (
    tensorflow as tensorflow,
)
from tffc.frontend import (
    test as test,
)
from tffc.frontend import (
    types as types,
)
from tffc.frontend.aggregations import (
    federated_aggregate as federated_aggregate,
)
from tffc.frontend.aggregations import (
    federated_max as federated_max,
)
from tffc.frontend.aggregations import (
    federated_mean as federated_mean,
)
from tffc.frontend.aggregations import (
    federated_min as federated_min,
)
from tffc.frontend.aggregations import (
    federated_secure_sum as federated_secure_sum,
)
from tffc.frontend.aggregations import (
    federated_secure_sum_bitwidth as federated_secure_sum_bitwidth,
)
from tffc.frontend.aggregations import (
    federated_sum as federated_sum,
)
from tffc.frontend.computation import (
    Computation as Computation,
)
from tffc.frontend.computation import (
    deserialize_computation as deserialize_computation,
)
from tffc.frontend.computation import (
    federated_computation as federated_computation,
)
from tffc.frontend.computation import (
    jax_computation as jax_computation,
)
from tffc.frontend.computation import (
    serialize_computation as serialize_computation,
)
from tffc.frontend.computation import (
    tf_computation as tf_computation,
)
from tffc.frontend.conversion import to_value as to_value
from tffc.frontend.operators import (
    federated_broadcast as federated_broadcast,
)
from tffc.frontend.operators import (
    federated_eval as federated_eval,
)
from tffc.frontend.operators import (
    federated_map as federated_map,
)
from tffc.frontend.operators import (
    federated_secure_select as federated_secure_select,
)
from tffc.frontend.operators import (
    federated_select as federated_select,
)
from tffc.frontend.operators import (
    federated_value as federated_value,
)
from tffc.frontend.operators import (
    federated_zip as federated_zip,
)
from tffc.frontend.sequences import (
    sequence_map as sequence_map,
)
from tffc.frontend.sequences import (
    sequence_reduce as sequence_reduce,
)
from tffc.frontend.sequences import (
    sequence_sum as sequence_sum,
)
from tffc.frontend.type_queries import (
    TypedObject as TypedObject,
)
from tffc.frontend.value import Value as Value
from tffc.ir.types import (
    CLIENTS as CLIENTS,
)
from tffc.ir.types import (
    SERVER as SERVER,
)
from tffc.ir.types import (
    AbstractType as AbstractType,
)
from tffc.ir.types import (
    FederatedType as FederatedType,
)
from tffc.ir.types import (
    FunctionType as FunctionType,
)
from tffc.ir.types import (
    PlacementType as PlacementType,
)
from tffc.ir.types import (
    SequenceType as SequenceType,
)
from tffc.ir.types import (
    StructType as StructType,
)
from tffc.ir.types import (
    StructWithPythonType as StructWithPythonType,
)
from tffc.ir.types import (
    TensorType as TensorType,
)
from tffc.ir.types import (
    Type as Type,
)
from tffc.ir.types import (
    to_type as to_type,
)

__version__: str
