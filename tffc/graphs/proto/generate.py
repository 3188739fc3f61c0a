"""Makes `descriptors.binpb` from the `.proto` files beside it.

    python tffc/graphs/proto/generate.py

Needs protoc as the package grpcio-tools brings it.  Only descriptors are committed, never code
that protoc writes, for such code runs with few versions of protobuf and descriptors with all; they
are the same bytes from every protoc since version 21.
"""

from __future__ import annotations

import importlib
import pathlib
import tempfile

FOLDER = pathlib.Path(__file__).parent
TARGET = FOLDER / "descriptors.binpb"


def describe() -> bytes:
    """Return the serialized FileDescriptorSet of all `.proto` files here and what they import.

    Raises:
      ImportError: grpcio-tools is not installed.
      RuntimeError: protoc refuses a file; it has printed why.
    """
    protoc = importlib.import_module("grpc_tools.protoc")
    root = FOLDER.parents[2]
    includes = [root, pathlib.Path(str(protoc.__file__)).parent / "_proto"]
    sources = sorted(str(path.relative_to(root)) for path in FOLDER.glob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / TARGET.name
        arguments = ["protoc", *(f"-I{path}" for path in includes), "--include_imports"]
        status = protoc.main([*arguments, f"--descriptor_set_out={target}", *sources])
        if status != 0:
            raise RuntimeError(f"protoc ended with status {status}")
        return target.read_bytes()


if __name__ == "__main__":
    TARGET.write_bytes(describe())
