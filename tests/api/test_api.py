"""What the commands do, done from Python: with objects, modules, files and bundles."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place, refusal
from tffc.api.programs import program_of
from tffc.backends.bundle.bundle import read_bundle
from tffc.language import wire
from tffc.passes.table import default_pipeline
from tffc.support.errors import (
    BundleError,
    ConsentError,
    FormError,
    LanguageTypeError,
    LanguageValueError,
    LoadError,
    TffcError,
    ValidationError,
)

pytestmark = pytest.mark.tensorflow

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)

MODULE = """
import numpy as np
import tffc as tff

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum(data)
"""


@tff.federated_computation(STATE, DATA)
def total(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(data)


@tff.federated_computation(STATE, DATA)
def most(state: Any, data: Any) -> Any:
    return state, tff.federated_max(data)


@tff.federated_computation()
def zero() -> Any:
    return tff.federated_value(0, tff.types.at_server(np.int32).placement)


PROCESS = tff.templates.IterativeProcess(zero, total)


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> dict[str, Any]:
    """One round in all the ways in which it can be given."""
    (tmp_path / "rounds.py").write_text(MODULE)
    (tmp_path / "total.pb").write_bytes(
        tff.framework.serialize_computation(total).SerializeToString()
    )
    (tmp_path / "total.sexpr").write_text(tff.text(total, "typed"))
    return {
        "computation": total,
        "process": PROCESS,
        "node": total.node,
        "program": program_of(total),
        "module": f"{tmp_path / 'rounds.py'}:total",
        "module of one": str(tmp_path / "rounds.py"),
        "path": tmp_path / "total.pb",
        "message": str(tmp_path / "total.pb"),
        "text": str(tmp_path / "total.sexpr"),
    }


WAYS = ("computation", "process", "node", "program", "module", "module of one", "path", "message")


@pytest.mark.parametrize("way", [*WAYS, "text"])
def test_every_way_to_give_a_program_compiles_to_the_same(
    way: str, sources: dict[str, Any]
) -> None:
    bundle = tff.compile(sources[way])
    expected = tff.compile(total, "mapreduce")
    assert bundle.form == "mapreduce"
    assert bundle.components == expected.components
    assert (bundle.initialize is not None) == (way == "process")


def test_a_saved_bundle_is_that_of_the_command(tmp_path: pathlib.Path) -> None:
    bundle = tff.compile(PROCESS, "distribute-aggregate")
    bundle.save(tmp_path / "bundle")
    assert read_bundle(tmp_path / "bundle").digests() == bundle.digests()
    assert "already holds a bundle" in refusal(BundleError, bundle.save, tmp_path / "bundle")
    bundle.save(tmp_path / "bundle", replace=True)


def test_the_first_state_may_be_given() -> None:
    bundle = tff.compile(total, initialize=zero)
    assert bundle.initialize is not None
    wrong = tff.tensorflow.computation(lambda: np.float32(0))
    assert "E853" in refusal(FormError, tff.compile, total, initialize=wrong)


def test_passes_may_be_given() -> None:
    by_text = tff.compile(total, passes=str(default_pipeline()))
    assert by_text.components == tff.compile(total, passes=default_pipeline()).components


def test_what_is_no_program_is_refused() -> None:
    assert str(error_without_place(LanguageTypeError, lambda: tff.compile(THREE))) == (
        "a program cannot be an object of class 'int' [E417]\n"
        "  help: give a computation, a process, a module, or the path of a .pb file"
    )
    polymorphic = tff.federated_computation(lambda x: x)
    assert "polymorphic" in refusal(LoadError, tff.compile, polymorphic)
    assert "there is no form 'map'" in refusal(FormError, tff.compile, total, "map")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_give_a_program_runs(way: str, sources: dict[str, Any]) -> None:
    state = None if way == "process" else _state(sources[way], 5)
    rounds = list(tff.run(sources[way], [1, 2, 3], 2, state=state))
    assert [outcome.output for outcome in rounds] == [6, 6]
    assert [outcome.number for outcome in rounds] == [1, 2]


def _state(program: Any, value: int) -> Any:
    from tffc.runtime.engines.process import Process
    from tffc.runtime.engines.state import State

    process = Process(tff.compile(program))
    return State(np.int32(value), process.program, 0)


def test_bundles_run_as_objects_and_from_folders(tmp_path: pathlib.Path) -> None:
    bundle = tff.compile(PROCESS)
    bundle.save(tmp_path / "bundle")
    for source in (bundle, str(tmp_path / "bundle"), tmp_path / "bundle"):
        (outcome,) = tff.run(source, [4, 5], 1)
        assert outcome.output == 9
    evaluated = tff.run(PROCESS, [4], 1, evaluate=total, evaluate_data=[1, 1])
    assert next(evaluated).evaluation == 2


def test_a_run_is_refused_in_one_place() -> None:
    def run(**options: Any) -> str:
        misused = error_without_place(
            LanguageValueError, lambda: tff.run(PROCESS, [1], 1, **options)
        )
        return str(misused)

    assert run(engine="spark").startswith("there is no engine 'spark' [E706]")
    assert run(engine="beam", workers=2) == (
        "the engine 'beam' takes no number of workers [E747]\n"
        "  help: give an option of its own, such as "
        "'--direct_num_workers=2 --direct_running_mode=multi_processing'"
    )
    assert run(engine_options=["--fanout=3"]) == (
        "the engine 'local' takes no options, found --fanout=3 [E747]\n"
        "  help: choose the engine beam or ray, or give no options"
    )
    assert "needs both a program and clients' data" in run(evaluate=total)


def test_effects_of_bundles_need_consent(tmp_path: pathlib.Path) -> None:
    import tensorflow as tf

    @tff.tensorflow.computation(np.int32)
    def read(x: Any) -> Any:
        return x + tf.strings.length(tf.io.read_file(str(tmp_path / "secret")))

    @tff.federated_computation(STATE, DATA)
    def reads(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(read, data))

    (tmp_path / "secret").write_text("four")
    process = tff.templates.IterativeProcess(zero, reads)
    (outcome,) = tff.run(process, [1], 1)
    assert outcome.output == 5, "one's own program needs no consent"
    bundle = tff.compile(process)
    (outcome,) = tff.run(bundle, [1], 1)
    assert outcome.output == 5, "nor does the bundle that this process has compiled"
    bundle.save(tmp_path / "b")
    stranger = tff.load(tmp_path / "b")
    assert "E705" in refusal(ConsentError, tff.run, stranger, [1], 1)
    (outcome,) = tff.run(stranger, [1], 1, allow_effects=("files",))
    assert outcome.output == 5
    (outcome,) = tff.load(tmp_path / "b", allow_effects=("files",)).run([1])
    assert outcome.output == 5
    node = wire.from_bytes(wire.to_bytes(process.next.node))
    assert "E705" in refusal(ConsentError, tff.verify, node, "mapreduce")


@pytest.fixture
def reading(tmp_path: pathlib.Path) -> Any:
    """A computation of a first state that reads a file, as somebody sent it."""
    import tensorflow as tf

    secret = tmp_path / "secret"
    secret.write_text("four")

    @tff.tensorflow.computation
    def length() -> Any:
        return tf.strings.length(tf.io.read_file(str(secret)))

    @tff.federated_computation
    def first() -> Any:
        return tff.federated_eval(length, STATE.placement)

    return tff.framework.serialize_computation(first)


def test_a_process_needs_the_consent_of_both_its_computations(reading: Any) -> None:
    sent = tff.framework.deserialize_computation(reading)
    process = tff.templates.IterativeProcess(sent, total)
    assert "E705" in refusal(ConsentError, tff.run, process, [1], 1)
    assert "E705" in refusal(ConsentError, tff.verify, process, "mapreduce")
    (outcome,) = tff.run(process, [1], 1, allow_effects=("files",))
    assert outcome.state == 4
    bundle = tff.compile(total, initialize=sent)
    assert "E705" in refusal(ConsentError, bundle.first_state)
    assert "E705" in refusal(ConsentError, tff.run, bundle, [1], 1)
    trusted = tff.framework.deserialize_computation(reading, allow_effects=("files",))
    process = tff.templates.IterativeProcess(trusted, total)
    assert tff.verify(process, "mapreduce", trials=2).coverage.compared == 2


THREE: Any = 3
NICE: Any = "nice"
"""What type checkers would refuse."""


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda b: tff.prove(THREE), "a program cannot be an object of class 'int' [E417]"),
        (lambda b: tff.verify(b, passes="call-dominant"), "passes do not run on a bundle [E706]"),
        (lambda b: b.run([1], resume=True), "a run is continued from the state in its folder"),
        (lambda b: tff.compile(total, passes=THREE), "passes cannot be an object of class 'int'"),
        (lambda b: tff.compile(total, THREE), "there is no form 3 [E500]"),
        (lambda b: tff.compile(total, initialize=THREE), "a program cannot be an object of class"),
        (lambda b: tff.text(total, NICE), "there is no style 'nice' [E706]"),
        (lambda b: tff.text(THREE), "a program cannot be an object of class 'int'"),
        (lambda b: tff.diff(THREE, b), "a program cannot be an object of class 'int'"),
        (lambda b: tff.audit(b, "broadcast"), "a bundle has its own form, 'mapreduce' [E706]"),
        (lambda b: tff.explore(b, "mapreduce"), "a bundle has its own form, 'mapreduce' [E706]"),
        (lambda b: list(tff.run(b, [1], 1, form="broadcast")), "a bundle has its own form"),
        (lambda b: list(tff.run(b, [1], -1)), "cannot run -1 rounds [E706]"),
        (lambda b: list(tff.run(b, [1], NICE)), "cannot run 'nice' rounds [E706]"),
    ],
)
def test_misuse(misuse: Any, message: str) -> None:
    with pytest.raises(TffcError) as caught:
        misuse(tff.compile(PROCESS))
    assert str(caught.value).startswith(message)


def test_proofs() -> None:
    bundle = tff.compile(PROCESS)
    for proof in (tff.prove(bundle), tff.prove(bundle, total), tff.prove(bundle, PROCESS)):
        proof.check()
        assert proof.is_proved
    other = tff.prove(bundle, most)
    assert not other.is_proved
    with pytest.raises(ValidationError, match="something else than the program"):
        other.check()


def test_verification() -> None:
    report = tff.verify(total, "mapreduce", trials=3)
    assert (report.coverage.tried, report.coverage.compared) == (3, 3)
    assert report.stages[-1] == "the form mapreduce"


def test_audits(tmp_path: pathlib.Path) -> None:
    bundle = tff.compile(PROCESS)
    (channel,) = tff.audit(total).audit.channels
    assert channel.operator == "federated_sum"
    assert tff.audit(bundle).proof is not None
    policy = tmp_path / "policy.yaml"
    policy.write_text("operators: [federated_mean]\n")
    assert tff.audit(bundle, policy=policy).violations
    assert not tff.audit(bundle).violations


def test_policies_in_python(tmp_path: pathlib.Path) -> None:
    """A dictionary is the policy that a file with its content is, for audits and pages."""
    content = {"operators": ("federated_mean",), "single-client": False}
    file = tmp_path / "policy.yaml"
    file.write_text("operators: [federated_mean]\nsingle-client: false\n")
    bundle = tff.compile(PROCESS)
    for source in (total, bundle):
        reports = [tff.audit(source, policy=policy) for policy in (content, file)]
        assert reports[0].violations == reports[1].violations != ()
    assert bundle.audit(policy=content).violations == tff.audit(bundle, policy=file).violations
    lines = str(tff.audit(total, policy=content)).splitlines()
    assert lines[:4] == [
        "verdict: violates the policy: 1 violation",
        "policy: in Python",
        "  operators: federated_mean: violated",
        "  single-client: no channel releases a single client's value: holds",
    ]
    for page in (bundle.explore(policy=content), tff.explore(total, policy=content)):
        assert "no channel releases a single client" in page


def test_differences() -> None:
    bundle = tff.compile(PROCESS)
    assert tff.diff(total, total) == tff.diff(bundle, bundle) == tff.diff(bundle, PROCESS) == []
    (difference,) = tff.diff(total, most)
    assert difference.change == "changed"
    assert tff.diff(bundle, most) != []


def test_texts_and_pages() -> None:
    assert tff.text(total, "compact") == str(total.node)
    assert tff.text(PROCESS).startswith("; initialize: ( -> int32@SERVER)\n")
    bundle = tff.compile(PROCESS)
    assert "; accumulate: " in tff.text(bundle)
    for source in (total, PROCESS, bundle):
        assert tff.explore(source).startswith("<!doctype html>")
    assert "federated_max" in tff.explore(total, since=most)
