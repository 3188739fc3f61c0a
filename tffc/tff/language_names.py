"""The table of replacements for the modules of `federated_language`, today's TFF's language."""

from __future__ import annotations

from tffc.tff.package import Package

LANGUAGE_RELEASE = "0.5.4"
"""The release of federated_language whose names tffc has."""

_LANGUAGE = "federated_language"

OWN_FILES = frozenset(
    {
        f"{_LANGUAGE}.common_libs.async_utils",
        f"{_LANGUAGE}.common_libs.retrying",
    }
)

MIRRORS = {
    f"{_LANGUAGE}.framework": "tffc.tff.federated_language.framework",
}

STAND_INS: dict[str, tuple[str, ...]] = {
    f"{_LANGUAGE}.common_libs.structure": ("tffc.tff.structure",),
    f"{_LANGUAGE}.proto.computation_pb2": ("tffc.graphs.proto.computation",),
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
