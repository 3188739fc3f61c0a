"""The compiled sections of the computations in the corpus."""

from __future__ import annotations

import functools
import os
import pathlib

from tffc.language.nodes import Compiled
from tffc.language.traverse import walk
from tffc.language.wire import from_bytes
from tffc.linking.section import read_section
from tffc.support.errors import TffcError


@functools.cache
def sections() -> list[Compiled]:
    """All distinct TensorFlow sections that are well formed."""
    found: dict[Compiled, None] = {}
    for path in sorted(pathlib.Path(os.environ["TFFC_CORPUS"]).glob("*/*.pb")):
        try:
            program = from_bytes(path.read_bytes())
        except TffcError:
            continue
        for node in walk(program):
            if isinstance(node, Compiled) and node.kind == "tensorflow" and _is_well_formed(node):
                found[node] = None
    return list(found)


def _is_well_formed(section: Compiled) -> bool:
    try:
        read_section(section)
    except TffcError:
        return False
    return True
