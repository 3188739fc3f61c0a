"""Programs for TFF 0.87 compute over the libraries of today what TFF 0.87 computed."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

import tffc
from tests.tff import linear, record
from tests.tff.test_programs import ANSWERS, OTHERS, differences
from tests.tff.today.sources import needs_checkout
from tffc.tff import releases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_checkout,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

GONE = {
    "aggregators: compression": "compression_aggregator",
    "aggregators: distributed_dp": "ddp_secure_aggregator",
    "aggregators: encoded_sum": "EncodedSumFactory",
    "aggregators: entropy": "compression_aggregator",
    "aggregators: quantized_sum": "EncodedSumFactory",
    "aggregators: quantized_sum_of_small": "EncodedSumFactory",
    "learning: fed_avg_compression": "compression_aggregator",
    "learning: fed_avg_unweighted_ddp": "ddp_secure_aggregator",
}
"""What programs use that the libraries of today do not have."""

NEW = re.compile(
    r"(.*\.)?num_non_finite_clients|.*\.secure_sum_measurements\.0/1048575/int32(\..*)?"
)
"""What they return besides: how many clients were left out for values that are not finite."""

CLASSES = {"_RestartQueryGlobalState": "_GlobalState"}
"""Classes of states that are called otherwise than in 0.87."""


@functools.cache
def programs() -> Mapping[str, Any]:
    """The programs, in a module of its own that has imported the libraries of today."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tffc.install_as_tensorflow_federated()
        before = releases.chosen()
        releases.choose(releases.HEAD)
        name = f"{__package__}.former_programs"
        path = str(linear.__file__).replace("linear.py", "programs.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        releases.choose(before)
    return module.all_programs()


def of_0_87(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves without what is new, and with the names of 0.87."""
    return {
        path: CLASSES.get(leaf, leaf) if isinstance(leaf, str) else leaf
        for path, leaf in leaves.items()
        if not NEW.fullmatch(path)
    }


@pytest.mark.parametrize("name", [name for name in OTHERS if name in ANSWERS and name not in GONE])
def test_program(name: str) -> None:
    program, expected = programs()[name](), ANSWERS[name]
    answer = record.answer(program)
    rounds = [of_0_87(leaves) for leaves in answer["rounds"]]
    first = answer["first"] and of_0_87(answer["first"])
    # A new metric is in the type too.
    type_ = answer["type"] if rounds == answer["rounds"] else expected["type"]
    known = {"type": type_, "first": first, "rounds": rounds}
    assert differences(known, expected, program.varying, program.tolerance, program.unordered) == []


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_is_said(name: str) -> None:
    with pytest.raises(AttributeError, match=GONE[name]):
        programs()[name]()
