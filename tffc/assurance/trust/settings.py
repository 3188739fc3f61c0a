"""What a node demands of a bundle: the keys, the policy, the approvals and the limits, as YAML.

    keys: keys                    # public keys of who may sign: a folder or a file
    signatures: 2                 # by so many different keys; 1 by default
    policy: policy.yaml
    approvals: approvals          # the folder with approvals
    approvers: reviewers          # public keys of who may approve
    proof: true                   # by default
    bytes: 100000000              # limits
    operations: 20000
    memory: 2000000000
    log: admissions.jsonl

Paths are relative to the file.  What is left out is not demanded, except for the proof.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tffc.support.errors import Span, TrustError, reader
from tffc.support.files.reading import read_named
from tffc.support.guards import is_mapping
from tffc.support.near import did_you_mean


@dataclasses.dataclass(frozen=True, slots=True)
class SizeLimits:
    """The most bytes, operations and bytes of memory of a bundle; see `sizes.ProgramSizes`."""

    bytes: int | None = None
    operations: int | None = None
    memory: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """The demands of a node on a bundle; None is no demand."""

    keys: pathlib.Path | None = None
    signatures: int = 1
    policy: pathlib.Path | None = None
    approvals: pathlib.Path | None = None
    approvers: pathlib.Path | None = None
    proof: bool = True
    limits: SizeLimits = SizeLimits()
    log: pathlib.Path | None = None


@reader("the demands of a node", TrustError)
def read_settings(path: pathlib.Path) -> AdmissionSettings:
    """Return the demands in a file.

    Raises:
      TrustError: it cannot be read, or is not as this module describes.
    """
    import yaml

    from tffc.support.files.yaml_file import MAX_BYTES, read_yaml

    try:
        content, root, twice = read_yaml(read_named(path, MAX_BYTES).decode())
    except OSError as error:
        raise TrustError(
            "E850",
            f"cannot read the demands of the node, {path}: {error.strerror}",
            help="give the path of a file of YAML",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _wrong(path, f"{path} is not YAML: {error}", 1) from None
    if twice is not None:
        line = twice.start_mark.line + 1
        raise _wrong(path, f"the key {twice.value!r} occurs twice", line)
    if not is_mapping(content):
        raise _wrong(path, f"{path} is not a mapping", 1)
    lines = {key.value: key.start_mark.line + 1 for key, _ in getattr(root, "value", ())}
    values: dict[str, Any] = {}
    for key, value in content.items():
        line, name = lines.get(key, 1), str(key)
        if name not in FIELDS:
            near = did_you_mean(name, FIELDS)
            raise _wrong(path, f"{name[:100]!r} is not a demand", line, near)
        expected, fits = FIELDS[name]
        if not fits(value):
            raise _wrong(path, f"{name} must be {expected}", line)
        values[name] = path.parent / str(value) if name in PATHS else value
    limits = SizeLimits(**{name: values.pop(name, None) for name in LIMITS})
    for one, other in TOGETHER:
        if one in values and other not in values:
            raise _wrong(path, f"{one} needs {other}", lines[one])
    return AdmissionSettings(**values, limits=limits)


def _wrong(path: pathlib.Path, message: str, line: int, help: str | None = None) -> TrustError:
    known = f"the demands are {', '.join(FIELDS)}"
    return TrustError("E885", message, help=help or known, span=Span(str(path), line))


def _is_number(value: object) -> bool:
    return type(value) is int and 0 < value < 2**63


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


LIMITS = tuple(field.name for field in dataclasses.fields(SizeLimits))

PATHS = "keys", "policy", "approvals", "approvers", "log"

FIELDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(PATHS, ("a path", _is_text)),
    **dict.fromkeys(("signatures", *LIMITS), ("a whole number above 0", _is_number)),
    "proof": ("true or false", lambda value: isinstance(value, bool)),
}

TOGETHER = (("approvals", "approvers"), ("approvers", "approvals"), ("signatures", "keys"))
"""Demands that mean nothing without another."""
