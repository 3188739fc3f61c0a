"""The names of the package, with the fields of graphs' messages; written by `generate.py`."""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

DESCRIPTORS: pathlib.Path

def message(name: str) -> Any: ...

Example: Any

class _DataType(EnumTypeWrapper):
    DT_INVALID: int
    DT_FLOAT: int
    DT_DOUBLE: int
    DT_INT32: int
    DT_UINT8: int
    DT_INT16: int
    DT_INT8: int
    DT_STRING: int
    DT_COMPLEX64: int
    DT_INT64: int
    DT_BOOL: int
    DT_QINT8: int
    DT_QUINT8: int
    DT_QINT32: int
    DT_BFLOAT16: int
    DT_QINT16: int
    DT_QUINT16: int
    DT_UINT16: int
    DT_COMPLEX128: int
    DT_HALF: int
    DT_RESOURCE: int
    DT_VARIANT: int
    DT_UINT32: int
    DT_UINT64: int

DataType: _DataType

class GraphDef(Message):
    node: RepeatedCompositeFieldContainer[NodeDef]
    library: FunctionDefLibrary
    versions: VersionDef
    def __init__(
        self,
        *,
        node: Iterable[NodeDef | Mapping[str, object]] | None = ...,
        library: FunctionDefLibrary | Mapping[str, object] | None = ...,
        versions: VersionDef | Mapping[str, object] | None = ...,
    ) -> None: ...

class VersionDef(Message):
    producer: int
    min_consumer: int
    bad_consumers: RepeatedScalarFieldContainer[int]
    def __init__(
        self,
        *,
        producer: int | None = ...,
        min_consumer: int | None = ...,
        bad_consumers: Iterable[int] | None = ...,
    ) -> None: ...

class NodeDef(Message):
    name: str
    op: str
    input: RepeatedScalarFieldContainer[str]
    device: str
    attr: MessageMap[str, AttrValue]
    def __init__(
        self,
        *,
        name: str | None = ...,
        op: str | None = ...,
        input: Iterable[str] | None = ...,
        device: str | None = ...,
        attr: Mapping[str, AttrValue] | None = ...,
    ) -> None: ...

class NameAttrList(Message):
    name: str
    attr: MessageMap[str, AttrValue]
    def __init__(
        self,
        *,
        name: str | None = ...,
        attr: Mapping[str, AttrValue] | None = ...,
    ) -> None: ...

class AttrValue(Message):
    class ListValue(Message):
        s: RepeatedScalarFieldContainer[bytes]
        i: RepeatedScalarFieldContainer[int]
        f: RepeatedScalarFieldContainer[float]
        b: RepeatedScalarFieldContainer[bool]
        type: RepeatedScalarFieldContainer[int]
        shape: RepeatedCompositeFieldContainer[TensorShapeProto]
        tensor: RepeatedCompositeFieldContainer[TensorProto]
        func: RepeatedCompositeFieldContainer[NameAttrList]
        def __init__(
            self,
            *,
            s: Iterable[bytes] | None = ...,
            i: Iterable[int] | None = ...,
            f: Iterable[float] | None = ...,
            b: Iterable[bool] | None = ...,
            type: Iterable[int] | None = ...,
            shape: Iterable[TensorShapeProto | Mapping[str, object]] | None = ...,
            tensor: Iterable[TensorProto | Mapping[str, object]] | None = ...,
            func: Iterable[NameAttrList | Mapping[str, object]] | None = ...,
        ) -> None: ...

    list: AttrValue.ListValue
    s: bytes
    i: int
    f: float
    b: bool
    type: int
    shape: TensorShapeProto
    tensor: TensorProto
    placeholder: str
    func: NameAttrList
    def __init__(
        self,
        *,
        list: AttrValue.ListValue | Mapping[str, object] | None = ...,
        s: bytes | None = ...,
        i: int | None = ...,
        f: float | None = ...,
        b: bool | None = ...,
        type: int | None = ...,
        shape: TensorShapeProto | Mapping[str, object] | None = ...,
        tensor: TensorProto | Mapping[str, object] | None = ...,
        placeholder: str | None = ...,
        func: NameAttrList | Mapping[str, object] | None = ...,
    ) -> None: ...

class TensorShapeProto(Message):
    class Dim(Message):
        size: int
        name: str
        def __init__(
            self,
            *,
            size: int | None = ...,
            name: str | None = ...,
        ) -> None: ...

    dim: RepeatedCompositeFieldContainer[TensorShapeProto.Dim]
    unknown_rank: bool
    def __init__(
        self,
        *,
        dim: Iterable[TensorShapeProto.Dim | Mapping[str, object]] | None = ...,
        unknown_rank: bool | None = ...,
    ) -> None: ...

class TensorProto(Message):
    dtype: int
    tensor_shape: TensorShapeProto
    version_number: int
    tensor_content: bytes
    float_val: RepeatedScalarFieldContainer[float]
    double_val: RepeatedScalarFieldContainer[float]
    int_val: RepeatedScalarFieldContainer[int]
    string_val: RepeatedScalarFieldContainer[bytes]
    scomplex_val: RepeatedScalarFieldContainer[float]
    int64_val: RepeatedScalarFieldContainer[int]
    bool_val: RepeatedScalarFieldContainer[bool]
    dcomplex_val: RepeatedScalarFieldContainer[float]
    half_val: RepeatedScalarFieldContainer[int]
    resource_handle_val: RepeatedScalarFieldContainer[bytes]
    variant_val: RepeatedScalarFieldContainer[bytes]
    uint32_val: RepeatedScalarFieldContainer[int]
    uint64_val: RepeatedScalarFieldContainer[int]
    def __init__(
        self,
        *,
        dtype: int | None = ...,
        tensor_shape: TensorShapeProto | Mapping[str, object] | None = ...,
        version_number: int | None = ...,
        tensor_content: bytes | None = ...,
        float_val: Iterable[float] | None = ...,
        double_val: Iterable[float] | None = ...,
        int_val: Iterable[int] | None = ...,
        string_val: Iterable[bytes] | None = ...,
        scomplex_val: Iterable[float] | None = ...,
        int64_val: Iterable[int] | None = ...,
        bool_val: Iterable[bool] | None = ...,
        dcomplex_val: Iterable[float] | None = ...,
        half_val: Iterable[int] | None = ...,
        resource_handle_val: Iterable[bytes] | None = ...,
        variant_val: Iterable[bytes] | None = ...,
        uint32_val: Iterable[int] | None = ...,
        uint64_val: Iterable[int] | None = ...,
    ) -> None: ...

class FunctionDefLibrary(Message):
    function: RepeatedCompositeFieldContainer[FunctionDef]
    gradient: RepeatedCompositeFieldContainer[GradientDef]
    registered_gradients: RepeatedCompositeFieldContainer[RegisteredGradient]
    def __init__(
        self,
        *,
        function: Iterable[FunctionDef | Mapping[str, object]] | None = ...,
        gradient: Iterable[GradientDef | Mapping[str, object]] | None = ...,
        registered_gradients: Iterable[RegisteredGradient | Mapping[str, object]] | None = ...,
    ) -> None: ...

class GradientDef(Message):
    function_name: str
    gradient_func: str
    def __init__(
        self,
        *,
        function_name: str | None = ...,
        gradient_func: str | None = ...,
    ) -> None: ...

class RegisteredGradient(Message):
    gradient_func: str
    registered_op_type: str
    def __init__(
        self,
        *,
        gradient_func: str | None = ...,
        registered_op_type: str | None = ...,
    ) -> None: ...

class FunctionDef(Message):
    class ArgAttrs(Message):
        attr: MessageMap[str, AttrValue]
        def __init__(
            self,
            *,
            attr: Mapping[str, AttrValue] | None = ...,
        ) -> None: ...

    signature: OpDef
    node_def: RepeatedCompositeFieldContainer[NodeDef]
    ret: ScalarMap[str, str]
    attr: MessageMap[str, AttrValue]
    control_ret: ScalarMap[str, str]
    arg_attr: MessageMap[int, FunctionDef.ArgAttrs]
    resource_arg_unique_id: ScalarMap[int, int]
    def __init__(
        self,
        *,
        signature: OpDef | Mapping[str, object] | None = ...,
        node_def: Iterable[NodeDef | Mapping[str, object]] | None = ...,
        ret: Mapping[str, str] | None = ...,
        attr: Mapping[str, AttrValue] | None = ...,
        control_ret: Mapping[str, str] | None = ...,
        arg_attr: Mapping[int, FunctionDef.ArgAttrs] | None = ...,
        resource_arg_unique_id: Mapping[int, int] | None = ...,
    ) -> None: ...

class OpDef(Message):
    class ArgDef(Message):
        name: str
        description: str
        type: int
        type_attr: str
        number_attr: str
        type_list_attr: str
        handle_data: RepeatedScalarFieldContainer[bytes]
        is_ref: bool
        def __init__(
            self,
            *,
            name: str | None = ...,
            description: str | None = ...,
            type: int | None = ...,
            type_attr: str | None = ...,
            number_attr: str | None = ...,
            type_list_attr: str | None = ...,
            handle_data: Iterable[bytes] | None = ...,
            is_ref: bool | None = ...,
        ) -> None: ...

    class AttrDef(Message):
        name: str
        type: str
        default_value: AttrValue
        description: str
        has_minimum: bool
        minimum: int
        allowed_values: AttrValue
        def __init__(
            self,
            *,
            name: str | None = ...,
            type: str | None = ...,
            default_value: AttrValue | Mapping[str, object] | None = ...,
            description: str | None = ...,
            has_minimum: bool | None = ...,
            minimum: int | None = ...,
            allowed_values: AttrValue | Mapping[str, object] | None = ...,
        ) -> None: ...

    name: str
    input_arg: RepeatedCompositeFieldContainer[OpDef.ArgDef]
    output_arg: RepeatedCompositeFieldContainer[OpDef.ArgDef]
    attr: RepeatedCompositeFieldContainer[OpDef.AttrDef]
    summary: str
    description: str
    is_aggregate: bool
    is_stateful: bool
    is_commutative: bool
    allows_uninitialized_input: bool
    control_output: RepeatedScalarFieldContainer[str]
    is_distributed_communication: bool
    def __init__(
        self,
        *,
        name: str | None = ...,
        input_arg: Iterable[OpDef.ArgDef | Mapping[str, object]] | None = ...,
        output_arg: Iterable[OpDef.ArgDef | Mapping[str, object]] | None = ...,
        attr: Iterable[OpDef.AttrDef | Mapping[str, object]] | None = ...,
        summary: str | None = ...,
        description: str | None = ...,
        is_aggregate: bool | None = ...,
        is_stateful: bool | None = ...,
        is_commutative: bool | None = ...,
        allows_uninitialized_input: bool | None = ...,
        control_output: Iterable[str] | None = ...,
        is_distributed_communication: bool | None = ...,
    ) -> None: ...
