"""A signed bundle, and the keys of a node that trusts it."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.signing_keys import write_keys
from tffc.backends.bundle.bundle import Bundle


class Site(NamedTuple):
    """A folder with a signed bundle, private keys beside it, and the demands of a node."""

    folder: pathlib.Path

    @property
    def bundle(self) -> pathlib.Path:
        return self.folder / "bundle"

    @property
    def signature(self) -> pathlib.Path:
        return self.bundle / "signatures" / "alice.sigstore.json"

    @property
    def demands(self) -> pathlib.Path:
        return self.folder / "node.yaml"

    @property
    def approvals(self) -> pathlib.Path:
        return self.folder / "approvals"

    def key(self, name: str) -> str:
        return str(self.folder / name)


DEMANDS = """\
keys: trusted
policy: policy.yaml
approvals: approvals
approvers: reviewers
bytes: 100000
operations: 200
memory: 100000
"""


@tff.tf_computation(np.int32)
def doubled(reading: tf.Tensor) -> tf.Tensor:
    return reading * 2


@tff.tf_computation(np.int32, np.int32)
def added(state: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
    return state + total


@tff.tf_computation(np.int32, np.int32)
def replaced(state: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
    return total - state * 3


def totals(at_server: tff.Computation, at_clients: tff.Computation = doubled) -> Bundle:
    """The bundle of a round with this work at the clients and at the server."""

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def total(state: tff.Value, readings: tff.Value) -> object:
        gathered = tff.federated_sum(tff.federated_map(at_clients, readings))
        return tff.federated_map(at_server, (state, gathered)), gathered

    return tff.compile(total, "mapreduce")


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    site = Site(tmp_path)
    for name in ("alice", "bob", "mallory"):
        write_keys(tmp_path, name)
    for folder, name in (("trusted", "alice"), ("reviewers", "bob")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.pub").write_bytes((tmp_path / f"{name}.pub").read_bytes())
    (tmp_path / "policy.yaml").write_text("protection: system\n")
    site.demands.write_text(DEMANDS)
    totals(added).save(site.bundle)
    tff.trust.sign(site.bundle, site.key("alice"))
    tff.trust.approve(site.bundle, site.key("bob"), site.approvals, reason="a sum")
    return site
