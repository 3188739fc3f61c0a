"""The devices of JAX, under names such as `CPU:0` and `GPU:1`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.support.guards import Array

Device: TypeAlias = Any
"""A device of JAX."""


def local_devices() -> dict[str, Device]:
    """Return the devices of this process by name: the accelerators, and the processors."""
    jax = load_jax()
    devices = [*jax.local_devices()]
    if devices[0].platform != "cpu":
        devices += jax.local_devices(backend="cpu")
    return {device_name(device): device for device in devices}


def device_name(device: Device) -> str:
    """Return the short name of a device."""
    return f"{device.platform.upper()}:{device.id}"


def devices_of(name: str) -> list[Device]:
    """Return the device of a name; of an empty name, all accelerators, or else all processors."""
    return [local_devices()[name]] if name else load_jax().local_devices()


def memory_of(name: str) -> int | None:
    """Return the bytes of memory of the first device of `devices_of`; None if it does not tell."""
    statistics: dict[str, int] | None = devices_of(name)[0].memory_stats()
    return statistics.get("bytes_limit") if statistics else None


def put(arrays: Iterable[Any], device: Device) -> list[Any]:
    """Return arrays on a device; 64-bit numbers stay so."""
    jax = load_jax()
    with jax.enable_x64(True):
        return jax.device_put([np.asarray(array) for array in arrays], device)


def send(arrays: Iterable[Any], device: Device) -> list[Any]:
    """Return small arrays as a call on a device takes them.

    A processor takes NumPy's in less time than `put` takes to copy them.
    """
    if device.platform == "cpu":
        return [np.asarray(array) for array in arrays]
    return put(arrays, device)


def fetch(arrays: Sequence[Any]) -> list[Array]:
    """Return arrays of a device as NumPy's, all accelerators' copies begun at once."""
    for array in arrays:
        if array.device.platform != "cpu":
            array.copy_to_host_async()
    return [np.asarray(array) for array in arrays]
