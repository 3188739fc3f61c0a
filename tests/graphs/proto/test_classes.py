"""The classes of messages live as long as the process."""

from __future__ import annotations

import gc
import weakref

from tffc.graphs import proto


def test_classes_of_nested_messages_outlive_their_messages() -> None:
    node = proto.NodeDef()
    node.attr["shapes"].list.s.append(b"text")
    classes = [weakref.ref(type(node.attr["shapes"].list)), weakref.ref(type(node.attr))]
    del node
    gc.collect()
    assert all(each() is not None for each in classes)
