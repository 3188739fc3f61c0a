"""Modules of XLA that are known in this process to be the same in two representations.

A section may hold a module both as HLO and as StableHLO.  Nothing without JAX can tell whether two
of them are the same module.  Where JAX traced a function in this process, both were made from one
module, and are noted here.
"""

from __future__ import annotations

import hashlib

_known: set[bytes] = set()


def note_one_module(hlo_module: bytes, stablehlo: bytes) -> None:
    """Note that two representations were made from one module."""
    _known.add(_digest(hlo_module, stablehlo))


def is_one_module(hlo_module: bytes, stablehlo: bytes) -> bool:
    """Tell whether two representations are known to be of one module."""
    return bool(stablehlo) and _digest(hlo_module, stablehlo) in _known


def _digest(hlo_module: bytes, stablehlo: bytes) -> bytes:
    return hashlib.sha256(
        hashlib.sha256(hlo_module).digest() + hashlib.sha256(stablehlo).digest()
    ).digest()
