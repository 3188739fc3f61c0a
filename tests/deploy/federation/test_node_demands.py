"""A node of a federation takes part only in rounds of bundles that it admits."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import numpy as np
import pytest

import tffc as tff
from tests.assurance.trust.conftest import Site, site
from tests.deploy.federation.nodes import Together, make_node
from tests.deploy.federation.test_node import answered
from tests.runtime.engines.sources import Values
from tffc.backends.bundle.bundle import decode_bundle, read_bundle
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.messages import Record, Request, program_digest
from tffc.deploy.federation.node import Node
from tffc.deploy.federation.serving import serve_rounds
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.flower.bundle_file import decode_bundle_file, encode_bundle_file
from tffc.runtime.engines.process import Process
from tffc.support.errors import TrustError

__all__ = ["site"]

READINGS = Values([np.int32(3), np.int32(4), np.int32(5)])


@pytest.fixture
def process(site: Site) -> Process:
    """The process of the bundle as an app has it."""
    files = decode_bundle_file(encode_bundle_file(read_bundle(site.bundle).encode()), "bundle.json")
    return Process(decode_bundle(files, pathlib.Path("bundle.json")))


def request_for(process: Process) -> Record:
    """The server's request for the first round."""
    carried, sent = process.steps.prepare(np.int32(0))
    shared = process.steps.shared(carried)
    return Request(program_digest(process), 1, "attempt", "open", shared, sent).to_record()


def node_of(process: Process, log: list[str], site: Site) -> Node:
    return make_node(process.bundle, READINGS, log, {"demands": str(site.demands)})


def test_an_admitted_bundle_is_run(site: Site, process: Process) -> None:
    log: list[str] = []
    reply = answered(node_of(process, log, site), request_for(process))
    assert (reply.error, log[1:]) == ("", [])
    (line,) = log
    assert line.startswith("admitted the app, clients' part ")


def test_a_bundle_that_is_not_admitted_is_not_run(site: Site, process: Process) -> None:
    log: list[str] = []
    bundle = dataclasses.replace(process.bundle, signatures={})
    node = make_node(bundle, READINGS, log, {"demands": str(site.demands)})
    reply = answered(node, request_for(process))
    assert (reply.error, reply.totals) == ("E880", None)
    assert "signature REFUSED (nobody has signed it)" in log[0]


def test_it_is_decided_once_while_nothing_changes(site: Site, process: Process) -> None:
    log: list[str] = []
    node = node_of(process, log, site)
    for _ in range(3):
        assert answered(node, request_for(process)).error == ""
    assert len(log) == 1


def test_a_revocation_counts_from_the_next_message(site: Site, process: Process) -> None:
    log: list[str] = []
    node = node_of(process, log, site)
    assert answered(node, request_for(process)).error == ""
    tff.trust.approve(site.bundle, site.key("bob"), site.approvals, revoke=True)
    assert answered(node, request_for(process)).error == "E880"
    assert "it was revoked by bob" in log[1]


@pytest.mark.parametrize("kind", ["folder", "FIFO", "large"])
def test_a_revocation_that_cannot_be_read_counts_too(
    site: Site, process: Process, kind: str
) -> None:
    node = node_of(process, [], site)
    assert answered(node, request_for(process)).error == ""
    (approval,) = site.approvals.glob("*/*")
    revocation = approval.with_name("bob.revoked.sigstore.json")
    if kind == "folder":
        revocation.mkdir()
    elif kind == "FIFO":
        os.mkfifo(revocation)
    else:
        revocation.write_bytes(bytes(2**20 + 1))
    assert answered(node, request_for(process)).error == "E880"


def test_a_key_that_is_removed_counts_from_the_next_message(site: Site, process: Process) -> None:
    node = node_of(process, [], site)
    assert answered(node, request_for(process)).error == ""
    (site.folder / "trusted" / "alice.pub").write_bytes((site.folder / "mallory.pub").read_bytes())
    assert answered(node, request_for(process)).error == "E880"


def test_demands_of_the_machine(
    site: Site, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFFC_DEMANDS", str(site.demands))
    bundle = dataclasses.replace(process.bundle, signatures={})
    assert answered(make_node(bundle, READINGS, []), request_for(process)).error == "E880"


def test_the_policy_of_the_demands_has_the_least_clients(site: Site, process: Process) -> None:
    (site.folder / "policy.yaml").write_text("least-clients: 4\n")
    assert answered(node_of(process, [], site), request_for(process)).error == "E746"


def test_a_server_minds_the_demands_of_its_machine(
    site: Site, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its part of a stranger's bundle would run there, like that of the nodes elsewhere."""
    monkeypatch.setenv("TFFC_DEMANDS", str(site.demands))
    settings = RunSettings(min_nodes=1, min_replies=1)
    unsigned = Process(dataclasses.replace(process.bundle, signatures={}))
    engine = FederationEngine(unsigned, Together({}), settings, [].append)
    with pytest.raises(TrustError) as refused:
        next(serve_rounds(engine, settings, [].append, "a federation"))
    assert refused.value.code == "E880"
    assert refused.value.notes == ("signature: nobody has signed it",)
