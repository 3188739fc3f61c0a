"""Audits of rounds whose clients come in groups."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import tffc as tff
from tffc.assurance.audit.audit import audit
from tffc.assurance.audit.text import audit_text


@tff.tf_computation(np.int32)
def noted(number):
    with tf.control_dependencies([tf.io.write_file("note", tf.strings.as_string(number))]):
        return tf.identity(number)


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def secured(state, data):
    own = tff.federated_map(noted, data)
    return tff.federated_map(noted, state), tff.federated_secure_sum(own, 9)


def test_what_is_seen_of_groups() -> None:
    lines = audit_text(audit(secured.node, "mergeable"), str).splitlines()
    assert lines[2] == (
        "clients in groups: whoever merges sees what each group gives; a secure sum hides a client "
        "among those of its group, and not one that is alone"
    )
    assert "  protection: secure sum, bound 9, within each group" in lines
    whole = audit_text(audit(secured.node, "distribute-aggregate"), str)
    assert "each group" not in whole


def test_effects_are_at_the_side_that_has_them() -> None:
    found = [(effect.side, effect.kind) for effect in audit(secured.node, "mergeable").effects]
    assert sorted(found) == [("clients", "files"), ("server", "files")]
