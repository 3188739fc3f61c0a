"""What `import tffc as tff` gives: each public name, and the module that has it.

Type checkers and editors read this file, and `__init__.py` looks names up in it.
"""

from tffc import algorithms as algorithms
from tffc import backends as backends
from tffc.api import data as data
from tffc.api import trust as trust
from tffc.api.audits import audit as audit
from tffc.api.bundles import CompiledBundle as CompiledBundle
from tffc.api.bundles import compile as compile
from tffc.api.bundles import load as load
from tffc.api.differences import diff as diff
from tffc.api.exports import export as export
from tffc.api.pages import explore as explore
from tffc.api.proofs import prove as prove
from tffc.api.running import load_state as load_state
from tffc.api.running import run as run
from tffc.api.runs import FinishedRound as FinishedRound
from tffc.api.runs import Run as Run
from tffc.api.texts import text as text
from tffc.api.verification import verify as verify
from tffc.frontend import templates as templates
from tffc.frontend.aggregations import federated_aggregate as federated_aggregate
from tffc.frontend.aggregations import federated_max as federated_max
from tffc.frontend.aggregations import federated_mean as federated_mean
from tffc.frontend.aggregations import federated_min as federated_min
from tffc.frontend.aggregations import federated_secure_sum as federated_secure_sum
from tffc.frontend.aggregations import (
    federated_secure_sum_bitwidth as federated_secure_sum_bitwidth,
)
from tffc.frontend.aggregations import federated_sum as federated_sum
from tffc.frontend.buffered import buffered as buffered
from tffc.frontend.computation import Computation as Computation
from tffc.frontend.computation import deserialize_computation as deserialize_computation
from tffc.frontend.computation import federated_computation as federated_computation
from tffc.frontend.computation import jax_computation as jax_computation
from tffc.frontend.computation import serialize_computation as serialize_computation
from tffc.frontend.computation import tf_computation as tf_computation
from tffc.frontend.computation import torch_computation as torch_computation
from tffc.frontend.conversion import to_value as to_value
from tffc.frontend.operators import federated_broadcast as federated_broadcast
from tffc.frontend.operators import federated_eval as federated_eval
from tffc.frontend.operators import federated_map as federated_map
from tffc.frontend.operators import federated_secure_select as federated_secure_select
from tffc.frontend.operators import federated_select as federated_select
from tffc.frontend.operators import federated_value as federated_value
from tffc.frontend.operators import federated_zip as federated_zip
from tffc.frontend.resources import resource as resource
from tffc.frontend.sequences import sequence_map as sequence_map
from tffc.frontend.sequences import sequence_reduce as sequence_reduce
from tffc.frontend.sequences import sequence_sum as sequence_sum
from tffc.frontend.type_queries import TypedObject as TypedObject
from tffc.frontend.value import Value as Value
from tffc.language.containers.struct import Struct as Struct
from tffc.language.types import CLIENTS as CLIENTS
from tffc.language.types import SERVER as SERVER
from tffc.language.types import AbstractType as AbstractType
from tffc.language.types import FederatedType as FederatedType
from tffc.language.types import FunctionType as FunctionType
from tffc.language.types import PlacementType as PlacementType
from tffc.language.types import SequenceType as SequenceType
from tffc.language.types import StructType as StructType
from tffc.language.types import StructWithPythonType as StructWithPythonType
from tffc.language.types import TensorType as TensorType
from tffc.language.types import Type as Type
from tffc.language.types import to_type as to_type
from tffc.notebook.extension import load_ipython_extension as load_ipython_extension
from tffc.notebook.extension import unload_ipython_extension as unload_ipython_extension
from tffc.tff import framework as framework
from tffc.tff import jax as jax
from tffc.tff import structure as structure
from tffc.tff import tensorflow as tensorflow
from tffc.tff import test as test
from tffc.tff import torch as torch
from tffc.tff import types as types
from tffc.tff.install import install_as_federated_language as install_as_federated_language
from tffc.tff.install import install_as_tensorflow_federated as install_as_tensorflow_federated

__version__: str
