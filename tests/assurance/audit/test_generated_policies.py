"""Policies, names and contents of generated rounds."""

from __future__ import annotations

from hypothesis import given, settings

from tests.assurance.audit.rounds import broken
from tests.programs import rounds
from tffc.assurance.audit.audit import Audit, audit
from tffc.assurance.audit.patterns import Pattern
from tffc.assurance.audit.policy import Policy
from tffc.language import Node, wire
from tffc.support.errors import FormError

FORM = "distribute-aggregate"


def audited(program: Node) -> Audit | None:
    """Return the audit of a round, None if it has no such form."""
    try:
        return audit(program, FORM)
    except FormError:
        return None


@settings(max_examples=30)
@given(rounds(secure=True))
def test_every_printed_path_is_a_pattern(program: Node) -> None:
    report = audited(program)
    if report is None:
        return
    for aspect, paths in (("", report.data), ("how many ", report.counted)):
        for path in paths:
            policy = Policy(never_leave=(Pattern(f"{aspect}{path}"),))
            said = {each.subject for each in broken(report, policy)}
            leaves = {
                channel.name
                for channel in report.channels
                if path in (channel.depends.counts if aspect else channel.depends.elements)
            }
            assert said >= leaves
            assert all(
                any(name.startswith(path) for name in (*c.depends.counts, *c.depends.elements))
                for c in report.channels
                if c.name in said
            )


@settings(max_examples=30)
@given(rounds(secure=True))
def test_names_differ_and_contents_survive_a_file(program: Node) -> None:
    report = audited(program)
    if report is not None:
        names = [channel.name for channel in report.channels]
        assert len(set(names)) == len(names)
        again = audited(wire.from_bytes(wire.to_bytes(program)))
        assert again is not None
        contents = [channel.content for channel in report.channels]
        assert contents == [channel.content for channel in again.channels]
