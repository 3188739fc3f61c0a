"""`tff.framework`: what programs that extend TFF need of its core."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import tffc as tff
from tffc.support.errors import LanguageTypeError

double = tff.federated_computation(lambda x: (x, x), np.int32)
framework = tff.framework


def test_computations_are_messages() -> None:
    message = framework.serialize_computation(double)
    assert message.SerializeToString() == tff.serialize_computation(double)
    assert framework.ConcreteComputation.get_proto(double) == message
    again = framework.deserialize_computation(message)
    assert again == double
    assert isinstance(again, framework.ConcreteComputation)
    node = again.to_building_block()
    assert framework.ConcreteComputation.from_building_block(node) == double


def test_what_is_no_computation() -> None:
    with pytest.raises(TypeError, match="only a computation can be serialized"):
        framework.serialize_computation(3)  # type: ignore[arg-type]  # wrong on purpose


def test_what_is_no_message() -> None:
    with pytest.raises(LanguageTypeError) as caught:
        framework.deserialize_computation(10)
    assert (caught.value.code, caught.value.message, caught.value.help) == (
        "E198",
        "a computation is read from a message `Computation`, not from an object of class 'int'",
        "give what tff.framework.serialize_computation returns",
    )


def test_types_are_messages() -> None:
    type = tff.to_type([("a", np.int32), ("b", np.str_)])
    assert framework.deserialize_type(framework.serialize_type(type)) == type


@pytest.mark.tensorflow
def test_the_type_of_tensors() -> None:
    import tensorflow as tf

    values = collections.OrderedDict(
        a=tf.Variable(tf.zeros([1])), b=(tf.constant(1), np.zeros([2, 3], np.float64))
    )
    found = framework.type_from_tensors(values)
    assert str(found) == "<a=float32[1],b=<int32,float64[2,3]>>"
    assert isinstance(found, tff.StructWithPythonType)
    assert found.container is collections.OrderedDict
    assert framework.type_to_tf_tensor_specs(found)["a"] == tf.TensorSpec([1], tf.float32)
    with pytest.raises(TypeError, match="no type in the language"):
        framework.type_from_tensors(object())
