"""What a bundle object does: its methods are the functions, on what it was compiled from."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.api.counting import PROCESS, initialize, one_round
from tests.refusals import refusal
from tffc.support.errors import BundleError, ExportError, LanguageTypeError, ValidationError

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def bundle() -> Any:
    return tff.compile(PROCESS)


def test_the_proof_has_the_first_state_only_if_the_program_is_known(
    bundle: Any, tmp_path: pathlib.Path
) -> None:
    proof = bundle.prove()
    assert proof.is_proved
    assert proof.sentence().endswith("for all arguments, and its first state")
    bundle.save(tmp_path / "b")
    stranger = tff.load(tmp_path / "b").prove()
    assert stranger.is_proved
    assert stranger.first_state is None
    assert "its first state is not part of the proof" in str(stranger)
    assert tff.prove(PROCESS).sentence() == proof.sentence()


def test_verification_is_of_the_components(bundle: Any, tmp_path: pathlib.Path) -> None:
    report = bundle.verify(trials=2)
    assert report.coverage.compared == 2
    assert report.stages[-1] == "the form mapreduce"
    other = tff.compile(doubled)
    forged = dataclasses.replace(bundle, components=other.components, origin=None)
    with pytest.raises(ValidationError):
        forged.verify(trials=2)
    assert not forged.prove().is_proved
    forged.save(tmp_path / "forged")
    with pytest.raises(ValidationError):
        tff.load(tmp_path / "forged").verify(trials=2)


@tff.federated_computation(one_round.type_signature.parameter)
def doubled(arguments: Any) -> Any:
    state, data = arguments
    twice = tff.federated_map(tff.tensorflow.computation(lambda x: x * 2.0), data)
    return one_round(state, twice)


def test_a_policy_gives_a_verdict(bundle: Any, tmp_path: pathlib.Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("operators: [federated_sum]\n")
    report = bundle.audit(policy=policy)
    assert report.verdict.value == "violates"
    assert "violates the policy" in str(report)
    assert "<!doctype html>" in report.page()


def test_texts_differences_and_pages(
    bundle: Any, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    bundle.print("compact")
    assert capsys.readouterr().out == bundle.text("compact") + "\n"
    assert bundle.diff(PROCESS) == []
    page = bundle.explore()
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert repr(bundle) == "<bundle of one_round: mapreduce, 10 components>"


def test_saving_says_in_words_of_python_what_to_do(bundle: Any, tmp_path: pathlib.Path) -> None:
    bundle.save(tmp_path / "b")
    said = refusal(BundleError, bundle.save, tmp_path / "b")
    assert said.endswith("replace it, or name another folder; replace=True replaces it")


@pytest.mark.slow
def test_components_are_exported(bundle: Any, tmp_path: pathlib.Path) -> None:
    exported = bundle.export("saved_model", tmp_path / "m")
    assert (tmp_path / "m" / "saved_model.pb").exists()
    assert set(exported.left_out.values()) == {"it has no result"}
    shown = repr(exported)
    assert shown.startswith(f"<{exported.summary}; ")
    assert f"saved_model.pb: {len(exported.files['saved_model.pb'])} bytes" in shown
    assert "\\x" not in shown
    said = refusal(ExportError, bundle.export, "saved_model", tmp_path / "m")
    assert "replace=True replaces it" in said
    bundle.export("saved_model", tmp_path / "m", replace=True)
    assert "is exported with a trained state" in refusal(
        LanguageTypeError, tff.export, PROCESS, "saved_model", tmp_path / "n"
    )


@pytest.mark.slow
def test_a_trained_state_is_exported(bundle: Any, tmp_path: pathlib.Path) -> None:
    import tensorflow as tf

    run = bundle.run([1.0, 3.0], 2).finish()

    @tff.tensorflow.computation(np.float32, np.float32)
    def above(mean: Any, x: Any) -> Any:
        return x - mean

    for state in (run, run.last, run.state):
        tff.export(above, "saved_model", tmp_path / "m", state=state, part="mean", replace=True)
    model = tf.saved_model.load(str(tmp_path / "m"))
    (result,) = model.signatures["serving_default"](tf.constant(5.0)).values()
    assert float(result) == 3.0


def test_the_first_state_is_given_with_the_round() -> None:
    bundle = tff.compile(one_round, initialize=initialize)
    assert bundle.first_state() == (0, 0.0)
    without = tff.compile(one_round)
    said = refusal(BundleError, without.run, [1.0])
    assert "state=... gives tffc.run one" in said
