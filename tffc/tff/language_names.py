"""The table of replacements for the modules of `federated_language`, today's TFF's language."""

from __future__ import annotations

from tffc.tff.package import Package

LANGUAGE_RELEASE = "0.5.4"
"""The release of federated_language whose names tffc has."""

_LANGUAGE = "federated_language"
_OURS = "tffc.tff.federated_language"

OWN_FILES = frozenset(
    {
        f"{_LANGUAGE}.common_libs.async_utils",
        f"{_LANGUAGE}.common_libs.py_typecheck",
        f"{_LANGUAGE}.common_libs.retrying",
    }
)

MIRRORS = {
    f"{_LANGUAGE}.framework": "tffc.tff.federated_language.framework",
}

STAND_INS: dict[str, tuple[str, ...]] = {
    f"{_LANGUAGE}.common_libs.serializable": (f"{_OURS}.serializable",),
    f"{_LANGUAGE}.common_libs.structure": ("tffc.tff.structure",),
    f"{_LANGUAGE}.common_libs.tracing": (f"{_OURS}.tracing",),
    f"{_LANGUAGE}.compiler.array": (f"{_OURS}.array",),
    f"{_LANGUAGE}.compiler.building_block_analysis": (f"{_OURS}.analysis",),
    f"{_LANGUAGE}.compiler.building_blocks": ("tffc.tff.building_blocks",),
    f"{_LANGUAGE}.compiler.intrinsic_defs": ("tffc.tff.intrinsic_defs",),
    f"{_LANGUAGE}.compiler.tree_analysis": (f"{_OURS}.analysis",),
    f"{_LANGUAGE}.computation.computation_analysis": (f"{_OURS}.analysis",),
    f"{_LANGUAGE}.proto.array_pb2": (f"{_OURS}.messages",),
    f"{_LANGUAGE}.proto.computation_pb2": (f"{_OURS}.messages",),
    f"{_LANGUAGE}.proto.data_type_pb2": (f"{_OURS}.messages",),
    f"{_LANGUAGE}.types.array_shape": (f"{_OURS}.shapes",),
    f"{_LANGUAGE}.types.dtype_utils": (f"{_OURS}.dtypes",),
}

FEDERATED_LANGUAGE = Package(
    name=_LANGUAGE,
    mirrored="tffc.tff.federated_language",
    libraries=frozenset({f"{_LANGUAGE}.program"}),
    own_files=OWN_FILES,
    mirrors=MIRRORS,
    stand_ins=STAND_INS,
)
"""The language: its core in tffc, `program` from its own files."""
