"""What proofs, fingerprints, differences and audits know of resources."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest

import tffc as tff
from tests.frozen_programs import BASE, BIAS, constants, in_tensorflow, resource, round_of
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends.bundle.bundle import Bundle
from tffc.language.nodes import Compiled

OTHER = {"base": BASE + 1, "bias": BIAS}


@functools.cache
def bundle_of(form: str, frozen: Any = resource, *, other: bool = False) -> Bundle:
    values = (OTHER,) if other else ()
    return tff.compile(round_of(form, in_tensorflow(frozen(*values))), form=form)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate", "mergeable", "broadcast"])
@pytest.mark.parametrize("components", [(resource, True), (constants, False)])
def test_components_with_other_weights_are_told_apart(form: str, components: Any) -> None:
    bundle = bundle_of(form)
    frozen, other = components
    another = bundle_of(form, frozen, other=other)
    proof = prove(bundle.computation, form, another.components)
    assert proof.answer is Answer.DIFFERENT


def changed(bundle: Bundle, before: bytes, after: bytes) -> dict[str, Any]:
    """The components with other bytes in a graph."""
    work = bundle.components["work"]
    assert isinstance(work, Compiled)
    assert before in work.payload
    payload = work.payload.replace(before, after)
    return {**bundle.components, "work": dataclasses.replace(work, payload=payload)}


def test_another_digest_is_told_apart() -> None:
    bundle = bundle_of("mapreduce")
    (digest, _), *_ = bundle.resources().items()
    components = changed(bundle, digest.encode(), digest[::-1].encode())
    assert prove(bundle.computation, "mapreduce", components).answer is Answer.DIFFERENT


def test_a_plain_placeholder_is_not_proved() -> None:
    bundle = bundle_of("mapreduce")
    components = changed(bundle, b"_resource", b"_resourcf")
    assert prove(bundle.computation, "mapreduce", components).answer is Answer.UNDECIDED


def test_differences_of_digests_are_seen() -> None:
    one, other = (bundle_of("mapreduce", other=other) for other in (False, True))
    assert one.computation != other.computation
    assert tff.text(one.computation) != tff.text(other.computation)
    assert str(tff.diff(one.computation, other.computation))


@pytest.mark.parametrize(
    ("form", "component"),
    [("mapreduce", "work"), ("mergeable", "up_to_merge"), ("broadcast", "client_processing")],
)
def test_audits_name_what_each_component_reads(form: str, component: str) -> None:
    bundle = bundle_of(form)
    report = tff.audit(bundle)
    digests = {size: digest for digest, size in bundle.resources().items()}
    lines = str(report).splitlines()
    start = lines.index("resources, sent to each node once, and in no broadcast")
    found = sorted([lines[start + 1 : start + 4], lines[start + 4 : start + 7]])
    assert found == [
        [
            f"  in {component}, at the clients: {type}",
            f"    bytes: {size}",
            f"    SHA-256: {digests[size]}",
        ]
        for type, size in (("float32[3]", 12), ("float32[4,3]", 48))
    ]
    assert "bytes to each client: 24" in str(report)
    page = report.page()
    assert page.count(digests[48]) == 1
    assert "What each node is sent once" in page


def test_audits_without_resources_do_not_mention_them() -> None:
    report = tff.audit(bundle_of("mapreduce", constants))
    assert "resources" not in str(report)
    assert "sent once" not in report.page()
