"""Kernels made ahead of a run, for machines that have neither TensorFlow nor time to trace."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tffc.backends.bundle.bundle import Bundle
from tffc.language.types import SequenceType, TensorType
from tffc.runtime.batching.choices import PJRT
from tffc.runtime.batching.kernel_cache import cache_folder
from tffc.runtime.batching.kernels import DataLayout, Kernel
from tffc.runtime.batching.planner import Planner
from tffc.runtime.data.groups import ClientGroup
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.process import Process
from tffc.support.errors import LanguageValueError
from tffc.support.guards import Array

SHAPE = re.compile("([1-9][0-9]{0,6})(?:x([1-9][0-9]{0,4}))?")


class BatchShape(NamedTuple):
    """The shape of batches: how many clients one call computes, and up to how many elements each of
    their sequences has."""

    clients: int
    elements: int = 1

    @classmethod
    def parse(cls, text: str) -> BatchShape:
        """Parse a text such as `32x64`, or `32` for clients without sequences.

        Raises:
          LanguageValueError: it is another text.
        """
        match = SHAPE.fullmatch(text)
        if match is None:
            raise LanguageValueError(
                "E706",
                f"{text!r} is no shape of batches",
                help="give how many clients are in a batch, and how many elements they have at "
                "most, such as 32x64",
            )
        return cls(int(match[1]), int(match[2] or 1))


def make_kernels(bundle: Bundle, shape: BatchShape) -> list[Kernel]:
    """Make the kernels for rounds of a bundle with batches of a shape, and keep them in the cache.

    Raises:
      LanguageValueError: its clients cannot be computed in batches, or their data is of any shape;
        or the cache cannot be used.
      MissingExtraError: JAX is not installed.
    """
    process = Process(bundle)
    planner = Planner(process.steps, Batching(shape.clients, compiler=PJRT))
    if not planner.makes_batches:
        raise _not_batched(planner.decisions[-1])
    positions = np.arange(shape.clients)
    groups = [_group(process, positions, count) for count in range(1, shape.elements + 1)]
    if not any(isinstance(leaf, SequenceType) for leaf in DataLayout(process.data_type).leaves):
        groups = groups[:1]
    kernels = planner.kernels(groups, shape.clients)
    if not kernels:
        raise _not_batched(planner.decisions[-1])
    if not all(kernel.is_kept() for kernel in kernels):
        raise LanguageValueError(
            "E706",
            f"no kernels can be kept in {cache_folder()}",
            help="make it a folder that you and nobody else can write to, or choose another by "
            "the environment variable XDG_CACHE_HOME",
        )
    return kernels


def _group(process: Process, positions: Array, elements: int) -> ClientGroup:
    """Return clients whose sequences have so many elements, all of them zero."""
    layout = DataLayout(process.data_type)
    columns: list[Array] = []
    for leaf, places in zip(layout.leaves, layout.places, strict=True):
        rows = (elements,) if isinstance(leaf, SequenceType) else ()
        for place in places:
            type = layout.arrays[place]
            assert isinstance(type, TensorType)
            if not type.is_fully_defined():
                raise _not_batched(f"its clients hold tensors of any shape, {type}")
            zero = np.zeros((), type.element_type.dtype)
            sizes = [size for size in type.shape or () if size is not None]
            columns.append(np.broadcast_to(zero, (len(positions), *rows, *sizes)))
    return ClientGroup(positions, tuple(columns))


def _not_batched(reason: str) -> LanguageValueError:
    return LanguageValueError(
        "E706",
        "there are no kernels for the rounds of this program",
        notes=(reason,),
        help="run it without kernels, one client a call",
    )
