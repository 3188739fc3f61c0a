"""The private programs run, draw new noise in each round, and have an event by hand."""

from __future__ import annotations

import collections
import importlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.programs import events

VALUE = np.array([3, 4, 0, -1], np.float32)
PAIR = collections.OrderedDict(
    kernel=np.full([2, 3], 9, np.float32), bias=np.full([3], -9, np.float32)
)


def clients(kind: tff.Type) -> list[Any]:
    """Data of two clients."""
    if isinstance(kind, tff.SequenceType):
        return [[VALUE, VALUE], [VALUE]]
    return [PAIR, PAIR] if isinstance(kind, tff.StructType) else [VALUE, VALUE]


def test_every_program_is_in_the_table() -> None:
    modules = {release.module for release in events.EVENTS.values()}
    processes = {
        name
        for module in modules
        for name, value in vars(importlib.import_module(f"{events.BASE}.{module}")).items()
        if isinstance(value, tff.templates.IterativeProcess)
    }
    assert processes == set(events.EVENTS)


@pytest.mark.parametrize("name", events.EVENTS)
def test_rounds(name: str) -> None:
    process = events.program(name)
    state = process.initialize()
    data = clients(process.next.type_signature.parameter[1].member)
    releases = []
    for _ in range(2):
        state, release = process.next(state, data)
        releases.append(np.concatenate([np.ravel(x) for x in tff.structure.flatten(release)]))
    assert np.isfinite(releases).all()
    assert (releases[0] != releases[1]).all()


@pytest.mark.parametrize("name", events.EVENTS)
def test_events(name: str) -> None:
    pytest.importorskip("dp_accounting")
    release = events.EVENTS[name]
    for mechanisms in (release.removed, release.replaced):
        if mechanisms is not None:
            assert all(number > 0 for _, number in mechanisms)
            assert len(events.event(mechanisms).events) == len(mechanisms)
