"""The peer's environment: TensorFlow Federated 0.87, whose own pins no longer resolve."""

from __future__ import annotations

import pathlib
import subprocess
import sys

NEEDED = (
    "setuptools<70",
    "wheel",
    "absl-py==1.4.0",
    "attrs==23.2.0",
    "cachetools==5.5.2",
    "decorator",
    "dm-tree==0.1.8",
    "googleapis-common-protos==1.61.0",
    "grpcio==1.74.0",
    "jax==0.4.13",
    "jaxlib==0.4.13",
    "matplotlib",
    "ml-dtypes==0.2.0",
    "numpy==1.25.2",
    "pandas==2.1.4",
    "portpicker==1.6.0",
    "protobuf==3.20.3",
    "pyparsing",
    "scikit-learn==1.3.2",
    "scipy==1.9.3",
    "tensorflow-cpu==2.14.1",
    "tensorflow-datasets==4.9.3",
    "tensorflow-metadata==1.14.0",
    "tqdm",
    "typing-extensions==4.5.*",
)
ALONE = (
    "dp-accounting==0.4.3",
    "google-vizier==0.1.11",
    "mpmath",
    "tensorflow-federated==0.87.0",
    "tensorflow-model-optimization==0.7.5",
    "tensorflow-privacy==0.9.0",
    "tensorflow-probability==0.22.1",
)
"""What is installed without its dependencies."""


def make_environment(folder: pathlib.Path) -> pathlib.Path:
    """Return the interpreter of a virtual environment with the peer; make it in `folder` if
    necessary.

    It takes some 2 GB and Python 3.11, which has to be the one that runs this.

    Raises:
      subprocess.CalledProcessError: a package cannot be installed.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        binary = "--only-binary=numpy,pandas,scikit-learn,scipy"
        subprocess.run([*pip, binary, *NEEDED], check=True)
        subprocess.run([*pip, "--no-deps", *ALONE], check=True)
    return python
