"""Admissions and signatures hold a bundle to the ε of a policy."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import tffc as tff
from tests.assurance.privacy.programs.events import program
from tests.refusals import refusal
from tffc.assurance.audit.policy_reading import read_policy
from tffc.assurance.trust.admission import Verdict, admission_of
from tffc.assurance.trust.claims import Findings, statement_of
from tffc.assurance.trust.settings import read_settings
from tffc.backends.bundle.bundle import Bundle
from tffc.support.errors import PolicyError

pytest.importorskip("dp_accounting")

ONE = "epsilon: {at-most: 3, delta: 1e-6, rounds: 1}\n"
MANY = "epsilon: {at-most: 3, delta: 1e-6, rounds: 50}\n"
SAMPLED = "epsilon: {at-most: 3, delta: 1e-6, rounds: 50, sampling-rate: 0.01}\n"


@pytest.fixture(scope="module")
def bundle() -> Any:
    return tff.compile(program("sum_clip_by_norm"))


def verdict(bundle: Bundle, folder: pathlib.Path, text: str, **options: Any) -> Verdict:
    """The verdict of a node whose demands have this policy."""
    (folder / "policy.yaml").write_text(text)
    (folder / "node.yaml").write_text("policy: policy.yaml\n")
    settings = read_settings(folder / "node.yaml")
    verdicts = admission_of(bundle, settings, "the app", **options).verdicts
    (found,) = (each for each in verdicts if each.demand == "policy")
    return found


def test_an_admission(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    assert verdict(bundle, tmp_path, ONE).passes
    refused = verdict(bundle, tmp_path, MANY)
    assert refused.reason.startswith("epsilon: the rounds: ε = ")
    assert refused.reason.endswith("; allowed: 3")


def test_sampling_counts_where_clients_are_drawn(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    assert verdict(bundle, tmp_path, SAMPLED).passes
    assert not verdict(bundle, tmp_path, SAMPLED, are_drawn=False).passes


def test_an_output_that_there_is_not(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    refused = verdict(bundle, tmp_path, ONE.replace("}", ", not-released: [loss]}"))
    assert (refused.passes, refused.reason) == (False, "'loss' is not the path of an output")


def test_a_signature(bundle: Bundle, tmp_path: pathlib.Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    (tmp_path / "many.yaml").write_text(MANY)
    findings = Findings.of(bundle)
    policy = read_policy(tmp_path / "one.yaml")
    claims = statement_of(findings, {}, policy).predicate
    assert claims["policy"] == {"digest": policy.digest, "until": None}
    said = refusal(PolicyError, statement_of, findings, {}, read_policy(tmp_path / "many.yaml"))
    assert "note: epsilon: the rounds: ε = " in said
