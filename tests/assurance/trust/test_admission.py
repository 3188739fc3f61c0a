"""A node admits what it should, and says why not otherwise."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.trust.conftest import Site, added, replaced, totals
from tffc.assurance.trust.admission import Admission
from tffc.assurance.trust.subjects import clients_part
from tffc.language import Compiled
from tffc.runtime.operations.counts import VARIABLE, read_counts
from tffc.support.errors import PolicyError, TrustError


def refusals(admission: Admission) -> dict[str, str]:
    """The reasons of the demands that are not met."""
    return {each.demand: each.reason for each in admission.verdicts if not each.passes}


def demand(site: Site, *lines: str) -> None:
    """Add lines to the demands."""
    site.demands.write_text(site.demands.read_text() + "".join(f"{line}\n" for line in lines))


def test_a_signed_and_approved_bundle_is_admitted(site: Site) -> None:
    admission = tff.trust.admit(site.bundle, site.demands)
    assert admission.is_admitted
    assert [each.demand for each in admission.verdicts] == [
        "signature",
        "proof",
        "policy",
        "bytes",
        "operations",
        "memory",
        "approval",
    ]
    assert "signature ok (by alice)" in admission.line()
    assert "approval ok (approved by bob: a sum)" in admission.line()
    admission.check()


def test_every_decision_is_a_line_of_the_log(site: Site) -> None:
    demand(site, "log: log.jsonl")
    tff.trust.admit(site.bundle, site.demands)
    site.signature.unlink()
    tff.trust.admit(site.bundle, site.demands)
    lines = [json.loads(line) for line in (site.folder / "log.jsonl").read_text().splitlines()]
    assert [line["admitted"] for line in lines] == [True, False]
    assert lines[1]["verdicts"][0] == {
        "demand": "signature",
        "passes": False,
        "reason": "nobody has signed it",
    }


def test_every_decision_is_counted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(site.folder / "counts"))
    for _ in range(2):
        tff.trust.admit(site.bundle, site.demands)
    site.signature.unlink()
    tff.trust.admit(site.bundle, site.demands)
    counted = read_counts(site.folder / "counts")
    assert counted == {"admissions": {"admitted": 2, "refused": 1}}


def test_a_log_that_cannot_be_written_admits_nothing(site: Site) -> None:
    demand(site, "log: missing/log.jsonl")
    with pytest.raises(TrustError) as caught:
        tff.trust.admit(site.bundle, site.demands)
    assert caught.value.code == "E887"


def test_a_log_that_takes_a_part_of_a_line_admits_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand(site, "log: log.jsonl")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:5]))
    with pytest.raises(TrustError) as caught:
        tff.trust.admit(site.bundle, site.demands)
    assert caught.value.code == "E887"


def test_an_approval_ends_where_rounds_may_be_buffered(site: Site) -> None:
    bundle = totals(added)
    discount = bundle.components["work"]
    assert isinstance(discount, Compiled)
    buffered = dataclasses.replace(bundle, discount=discount)
    assert clients_part(buffered).digest != clients_part(bundle).digest


def test_signatures_of_several_keys_count_once_each(site: Site) -> None:
    demand(site, "signatures: 2")
    tff.trust.sign(site.bundle, site.key("alice"), name="again")
    assert refusals(tff.trust.admit(site.bundle, site.demands)) == {
        "signature": "by alice, and 2 are demanded"
    }
    bob = site.folder / "trusted" / "bob.pub"
    bob.write_bytes((site.folder / "bob.pub").read_bytes())
    tff.trust.sign(site.bundle, site.key("bob"))
    assert tff.trust.admit(site.bundle, site.demands).is_admitted


@pytest.mark.parametrize(
    ("name", "limit"), [("bytes: 100000", "bytes: 10"), ("memory: 100000", "memory: 1")]
)
def test_limits(site: Site, name: str, limit: str) -> None:
    site.demands.write_text(site.demands.read_text().replace(name, limit))
    (demand,) = refusals(tff.trust.admit(site.bundle, site.demands))
    assert demand == limit.split(":")[0]


def test_what_a_graph_is_known_to_allocate_counts(site: Site) -> None:
    @tff.tf_computation(np.int32)
    def grows(reading: tf.Tensor) -> tf.Tensor:
        return reading + tf.cast(tf.reduce_sum(tf.random.uniform([1000, 1000])), tf.int32)

    bundle = totals(added, grows)
    settings = site.folder / "small.yaml"
    settings.write_text("memory: 3000000\n")
    (reason,) = refusals(tff.trust.admit(bundle, settings)).values()
    assert reason.endswith("and at most 3000000")
    assert int(reason.split(",")[0]) > 4_000_000


def test_a_policy_is_held_against_the_audit_made_here(site: Site) -> None:
    (site.folder / "policy.yaml").write_text("operators: [federated_mean]\n")
    assert refusals(tff.trust.admit(site.bundle, site.demands)) == {
        "policy": "operators: sum: federated_sum is used; allowed: federated_mean"
    }


def test_a_policy_that_is_passed_can_be_signed(site: Site) -> None:
    tff.trust.sign(site.bundle, site.key("alice"), policy=site.folder / "policy.yaml")
    assert tff.trust.admit(site.bundle, site.demands).is_admitted
    (site.folder / "policy.yaml").write_text("operators: [federated_mean]\n")
    with pytest.raises(PolicyError):
        tff.trust.sign(site.bundle, site.key("alice"), policy=site.folder / "policy.yaml")


def test_an_approval_outlives_a_change_of_the_servers_part(site: Site) -> None:
    other = totals(replaced)
    assert clients_part(other).digest == clients_part(totals(added)).digest
    other.save(site.bundle, replace=True)
    tff.trust.sign(site.bundle, site.key("alice"))
    assert tff.trust.admit(site.bundle, site.demands).is_admitted


def test_an_approval_ends_with_a_change_of_the_clients_part(site: Site) -> None:
    @tff.tf_computation(np.int32)
    def tripled(reading: tf.Tensor) -> tf.Tensor:
        return reading * 3

    totals(added, tripled).save(site.bundle, replace=True)
    tff.trust.sign(site.bundle, site.key("alice"))
    (reason,) = refusals(tff.trust.admit(site.bundle, site.demands)).values()
    assert reason.endswith("is not approved: nobody has approved it")


def test_an_approval_ends_on_its_last_day(site: Site) -> None:
    day = datetime.date(2030, 1, 31)
    tff.trust.approve(site.bundle, site.key("bob"), site.approvals, expires=day)
    assert tff.trust.admit(site.bundle, site.demands, as_of=day).is_admitted
    late = tff.trust.admit(site.bundle, site.demands, as_of=day + datetime.timedelta(days=1))
    assert "it was valid until 2030-01-31" in refusals(late)["approval"]


def test_a_revocation_outlives_the_approval_put_back(site: Site) -> None:
    (approval,) = site.approvals.glob("*/*")
    content = approval.read_bytes()
    tff.trust.approve(site.bundle, site.key("bob"), site.approvals, revoke=True, reason="a leak")
    approval.write_bytes(content)
    (reason,) = refusals(tff.trust.admit(site.bundle, site.demands)).values()
    assert reason.endswith("is not approved: it was revoked by bob; a leak")


def test_a_bundle_in_memory_is_admitted_too(site: Site) -> None:
    assert tff.trust.admit(tff.load(site.bundle), site.demands).is_admitted
    unsigned = tff.trust.admit(totals(added), site.demands)
    assert refusals(unsigned) == {"signature": "nobody has signed it"}


def test_the_same_bundle_gives_the_same_signature(site: Site) -> None:
    first = site.signature.read_bytes()
    tff.trust.sign(site.bundle, site.key("alice"))
    assert site.signature.read_bytes() == first


def test_a_new_compilation_drops_the_signatures(site: Site) -> None:
    totals(added).save(site.bundle, replace=True)
    assert not site.signature.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key: trusted\n", "'key' is not a demand"),
        ("keys: 3\n", "keys must be a path"),
        ("signatures: 1\n", "signatures needs keys"),
        ("approvals: there\n", "approvals needs approvers"),
        ("bytes: 0\n", "bytes must be a whole number above 0"),
        ("proof: maybe\n", "proof must be true or false"),
        ("[]\n", "node.yaml is not a mapping"),
        ("keys: a\nkeys: b\n", "the key 'keys' occurs twice"),
    ],
)
def test_demands_that_are_none(tmp_path: pathlib.Path, text: str, message: str) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(text)
    with pytest.raises(TrustError) as caught:
        tff.trust.admit(totals(added), file)
    assert caught.value.code == "E885"
    assert caught.value.message.endswith(message)
