"""What is measured on: the processor, the GPUs and the load."""

from __future__ import annotations

import os
import pathlib
import platform
import shutil
import subprocess


def machine() -> str:
    """Return the processor, the GPUs and the load of this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{_processor()}, {cores} cores, {_gpus() or 'no GPU'}; load {load}"


def _processor() -> str:
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _gpus() -> str:
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if ran.returncode else "; ".join(ran.stdout.splitlines())
