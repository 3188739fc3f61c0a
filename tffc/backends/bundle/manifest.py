"""The manifest of a bundle: the form, the types of the programs, versions, and hashes of files.

    {
      "format_version": "1.0",
      "form": "mapreduce",
      "type": "(<int32@SERVER,{int32}@CLIENTS> -> <int32@SERVER,int32@SERVER>)",
      "initialize": "( -> int32)",
      "components": {"prepare": "(int32 -> <>)", ...},
      "versions": {"tffc": "0.1.0"},
      "files": {"computation.pb": "<sha256>", ...}
    }

A bundle whose rounds may be buffered also has `"discount": "(int32 -> float32)"`.  One with
resources has `"resources": {"<sha256>": 400000000, ...}`, the bytes of each, and its format is 2.0:
whoever does not know resources cannot run it.

Unknown keys are ignored: a newer minor version of the format may add them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict, TypeGuard, TypeVar

from tffc.language.values.resources import RESOURCES
from tffc.support.errors import BundleError, reader
from tffc.support.files.strict_json import (
    NOT_JSON,
    NotJsonError,
    encode_json,
    is_count,
    is_object,
    read_json,
)
from tffc.support.guards import is_dict

FORMAT = (1, 0)
"""The major and minor version of the format of bundles without resources.  A new minor version only
adds keys."""

WITH_RESOURCES = (2, 0)
"""The version of the format of bundles with resources."""

VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
NAME = re.compile(r"[a-z][a-z0-9_]*")
PATH = re.compile(r"([a-z0-9_]+/)*[a-z0-9_]+\.[a-z]+")
DIGEST = re.compile(r"[0-9a-f]{64}")


T = TypeVar("T")


def by_stem(
    computation: T, initialize: T | None, discount: T | None, components: Mapping[str, T]
) -> dict[str, T]:
    """Return the items for the programs of a bundle by the paths of their files without suffix."""
    first = {"computation": computation}
    if initialize is not None:
        first["initialize"] = initialize
    if discount is not None:
        first["discount"] = discount
    return {**first, **{f"components/{name}": item for name, item in components.items()}}


def resource_path(digest: str) -> str:
    """Return the path of the file of a resource."""
    return f"{RESOURCES}/{digest}"


class ProofRecord(TypedDict):
    """The version of the prover that proved components, and the hashes of the files it proved."""

    prover: int
    files: Mapping[str, str]


class Manifest(NamedTuple):
    """The description of a bundle in its folder.

    `type`, `initialize` and the values of `components` are the compact texts of types.  `files` has
    the hash of every other file.  `proof` is set if the components were proved, and `discount`, the
    text of a type, if rounds may be buffered.  `resources` has the bytes of each resource by its
    digest.
    """

    form: str
    type: str
    initialize: str | None
    components: Mapping[str, str]
    versions: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    proof: ProofRecord | None = None
    discount: str | None = None
    resources: Mapping[str, int] = {}

    @property
    def paths(self) -> list[str]:
        """The paths of all files but the manifest."""
        return [*self.files, *map(resource_path, self.resources)]

    def file_digests(self) -> dict[str, str]:
        """Return the SHA-256 of all files but the manifest by their paths."""
        resources = {resource_path(digest): digest for digest in self.resources}
        return {**self.files, **resources}

    def programs(self) -> dict[str, str]:
        """Return the types of the programs by the paths of their files without suffix."""
        return by_stem(self.type, self.initialize, self.discount, self.components)

    def encode(self) -> bytes:
        """Return the bytes of the manifest file."""
        proof = {} if self.proof is None else {"proof": dict(self.proof)}
        versions, files = dict(self.versions), dict(self.files)
        return encode_json({**self.lasting(), **proof, "versions": versions, "files": files})

    def lasting(self) -> dict[str, object]:
        """Return the part of the manifest that does not depend on the versions that made it."""
        version = WITH_RESOURCES if self.resources else FORMAT
        return {
            "format_version": "{}.{}".format(*version),
            "form": self.form,
            "type": self.type,
            "initialize": self.initialize,
            **({} if self.discount is None else {"discount": self.discount}),
            "components": dict(self.components),
            **({"resources": dict(self.resources)} if self.resources else {}),
        }


@reader("the manifest of a bundle", BundleError)
def decode_manifest(data: bytes, source: str) -> Manifest:
    """Return the manifest in `data`; `source` names it in messages.

    Raises:
      BundleError: it is not JSON, has a newer major version, or is not as this module describes.
    """
    try:
        content = read_json(data)
    except NotJsonError as error:
        if str(error) != NOT_JSON:
            raise _malformed(source, str(error)) from None
        raise BundleError(
            "E606", f"{source} is not JSON", help="compile the program again"
        ) from None
    if not is_object(content):
        raise _malformed(source, "it is not an object")
    _check_version(content, source)
    for key, is_right in _SHAPES.items():
        if key not in content:
            raise _malformed(source, f"it has no {key!r}")
        if not is_right(content[key]):
            raise _malformed(source, f"its {key!r} is not right")
    proof = content.get("proof")
    if proof is not None and not _is_proof(proof):
        raise _malformed(source, "its 'proof' is not right")
    discount = content.get("discount")
    if discount is not None and not isinstance(discount, str):
        raise _malformed(source, "its 'discount' is not right")
    resources = content.get("resources", {})
    if not _are_sizes(resources):
        raise _malformed(source, "its 'resources' are not right")
    shaped = {key: content[key] for key in _SHAPES}
    manifest = Manifest(**shaped, proof=proof, discount=discount, resources=resources)
    for path in manifest.programs():
        if f"{path}.pb" not in manifest.files:
            raise _malformed(source, f"it gives no hash of {path}.pb")
    return manifest


def _check_version(content: Mapping[str, Any], source: str) -> None:
    version = content.get("format_version")
    match = VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise _malformed(source, "it has no 'format_version' such as '1.0'")
    if int(match[1]) > WITH_RESOURCES[0]:
        versions = content.get("versions")
        maker = versions.get("tffc") if is_object(versions) else None
        maker_text = f"tffc {maker}, which" if _is_text(maker) else "the version of tffc that"
        raise BundleError(
            "E611",
            f"{source} is of format {version}, and this tffc reads up to {WITH_RESOURCES[0]}.x",
            help=f"use {maker_text} made it, or a later one",
        )


def _malformed(source: str, reason: str) -> BundleError:
    return BundleError(
        "E606", f"{source} is not a manifest: {reason}", help="compile the program again"
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_table(value: object, key: re.Pattern[str], item: re.Pattern[str]) -> bool:
    return is_dict(value) and all(
        isinstance(name, str)
        and key.fullmatch(name)
        and isinstance(content, str)
        and item.fullmatch(content)
        for name, content in value.items()
    )


def _are_sizes(value: object) -> TypeGuard[Mapping[str, int]]:
    """Return whether a value has sizes in bytes by digest."""
    return is_dict(value) and all(
        isinstance(digest, str) and DIGEST.fullmatch(digest) and is_count(size)
        for digest, size in value.items()
    )


def _is_proof(value: object) -> TypeGuard[ProofRecord]:
    """Return whether a value has the version of a prover and a table of hashes."""
    if not is_dict(value) or type(value.get("prover")) is not int:
        return False
    return _is_table(value.get("files"), PATH, DIGEST)


_ANY = re.compile(r".*", re.DOTALL)

_SHAPES: Mapping[str, Callable[[object], bool]] = {
    "form": _is_text,
    "type": _is_text,
    "initialize": lambda value: value is None or _is_text(value),
    "components": lambda value: _is_table(value, NAME, _ANY),
    "versions": lambda value: _is_table(value, _ANY, _ANY),
    "files": lambda value: _is_table(value, PATH, DIGEST),
}
"""The check of each field.  Paths are plain names, so none leads out of the folder."""
