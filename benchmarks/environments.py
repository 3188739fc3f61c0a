"""The environments of sides: their interpreters, which are made if necessary, and their devices."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

import click

ANY = "any"

DEVICES: Mapping[str, Mapping[str, str]] = {
    ANY: {},
    "cpu": {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"},
    "gpu": {
        "JAX_PLATFORMS": "cuda",
        "JAX_DEFAULT_MATMUL_PRECISION": "highest",
        "NVIDIA_TF32_OVERRIDE": "0",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    },
}
"""The variables with which processes compute on a device: on a GPU without the shorter mantissas
of TensorFloat-32, so that sides agree, and without taking all its memory, so that others fit."""

JAX: Mapping[str, tuple[str, ...]] = {
    ANY: ("jax[cpu]==0.10.2",),
    "cpu": ("jax[cpu]==0.10.2",),
    "gpu": ("jax[cuda12]==0.10.2",),
}
"""What a side in JAX needs for each device."""

TORCH = ("torch==2.13.0", "pfl==0.6.0")
"""What the sides in PyTorch need, on all devices."""


def open_sides(
    environments: Mapping[str, tuple[str, Sequence[str]]], make: pathlib.Path | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the interpreters of the sides that are installed, and why the others are left out.

    An environment is the variable that names the interpreter of the side, empty for the one that
    runs this, and the packages that it needs.  Interpreters that no variable names are made in a
    folder, if it is given.
    """
    interpreters: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, (variable, packages) in environments.items():
        python = os.environ.get(variable, "") if variable else sys.executable
        if not python and packages and make is not None:
            try:
                python = str(make_environment(make / variable.lower(), packages))
            except subprocess.CalledProcessError:
                missing[name] = f"{', '.join(packages)} cannot be installed"
                continue
        if python:
            interpreters[name] = python
        else:
            missing[name] = f"{variable} names no interpreter"
    return interpreters, missing


def make_environment(folder: pathlib.Path, packages: Sequence[str]) -> pathlib.Path:
    """Return the interpreter of a virtual environment with packages; make it if necessary.

    Raises:
      subprocess.CalledProcessError: a package cannot be installed.
    """
    python = folder / "bin" / "python"
    wanted, mark = "\n".join(packages), folder / "packages.txt"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if not mark.exists() or mark.read_text() != wanted:
        click.echo(f"installing {', '.join(packages)}", err=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        mark.write_text(wanted)
    return python
