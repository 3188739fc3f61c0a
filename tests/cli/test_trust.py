"""`tffc sign`, `verify-signature`, `approve`, `admit`, `rebuild`, and `tffc run --demands`."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.cli.conftest import ROUND, Run
from tests.signing_keys import write_keys

ZERO = """\
import numpy as np
import tffc as tff


@tff.tf_computation
def zero():
    return np.float32(0)


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def summed(state, data):
    return state, tff.federated_sum(data)
"""

DRAWN = """\
import numpy as np
import tensorflow as tf
import tffc as tff


@tff.tf_computation(np.float32)
def noise(x):
    return x + tf.random.normal([])


@tff.tf_computation(np.float32, np.float32)
def add(x, y):
    return x + y


@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def drawn(state, data):
    drawn = tff.federated_map(noise, state)
    sent = tff.federated_broadcast(drawn)
    total = tff.federated_sum(tff.federated_map(add, (data, sent)))
    return drawn, total
"""

READINGS = "client,reading\na,1\nb,2\n"
DATA = "csv:readings.csv?client=client&columns=reading"


@pytest.fixture
def here(run: Run, tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of the commands, with a module, its bundle `out`, data, and keys."""
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "readings.csv").write_text(READINGS)
    for name in ("alice", "bob"):
        write_keys(tmp_path, name)
    assert run("compile", "round.py", "--form", "mapreduce", "-o", "out").code == 0
    return tmp_path


def test_sign_and_verify(run: Run, here: pathlib.Path) -> None:
    assert run("sign", "out", "--key", "alice").stderr == (
        "wrote out/signatures/alice.sigstore.json\n"
    )
    assert run("sign", "out", "--key", "alice").code == 0  # replaces its own signature
    verified = run("verify-signature", "out", "--keys", "alice.pub")
    assert (verified.code, verified.stdout) == (0, "out: signed by alice\n")
    as_json = run("verify-signature", "out", "--keys", ".", "--json")
    assert json.loads(as_json.stdout) == {"signed": ["alice"], "refused": []}


def test_too_few_signatures(run: Run, here: pathlib.Path) -> None:
    run("sign", "out", "--key", "alice")
    refused = run("verify-signature", "out", "--keys", "alice.pub", "--signatures", "2")
    assert refused.refusal == (
        "error[E888]: the bundle has 1 trusted signatures, and 2 are demanded\n"
        " = help: ask whoever sent it for a signature by a key that you trust\n"
    )
    unknown = run("verify-signature", "out", "--keys", "bob.pub")
    assert "no trusted key made it" in unknown.refusal


def test_a_bundle_that_was_changed_since(run: Run, here: pathlib.Path) -> None:
    run("sign", "out", "--key", "alice")
    signature = (here / "out/signatures/alice.sigstore.json").read_bytes()
    (here / "round.py").write_text(ROUND.replace("federated_sum", "federated_max"))
    run("compile", "round.py", "--form", "mapreduce", "-o", "out", "--force")
    (here / "out/signatures").mkdir()
    (here / "out/signatures/alice.sigstore.json").write_bytes(signature)
    refused = run("verify-signature", "out", "--keys", "alice.pub").refusal
    assert "what the signature signatures/alice.sigstore.json says is not true" in refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("out", "--key", "none"), "error[E882]: cannot read the private key none: No such file"),
        (("out", "--key", "alice.pub"), "error[E882]: alice.pub holds no private key that signs"),
        (("out", "--key", "hsm:x"), "error[E882]: 'hsm:x' names no key in a token"),
        (("out", "--key", "alice", "--name", "../x"), "error[E884]: '../x' cannot name"),
        (("none", "--key", "alice"), "error[E604]: no bundle: there is no folder none"),
    ],
)
def test_signing_that_is_refused(
    run: Run, here: pathlib.Path, words: tuple[str, ...], message: str
) -> None:
    refused = run("sign", *words)
    assert refused.code == 1
    assert refused.stderr.startswith(message)


def test_a_password(run: Run, here: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key((here / "alice").read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))
    (here / "alice").write_bytes(locked)
    assert "it has a password, and TFFC_KEY_PASSWORD does not say it" in (
        run("sign", "out", "--key", "alice").refusal
    )
    monkeypatch.setenv("TFFC_KEY_PASSWORD", "wrong")
    assert run("sign", "out", "--key", "alice").refusal.startswith("error[E882]")
    monkeypatch.setenv("TFFC_KEY_PASSWORD", "pw")
    assert run("sign", "out", "--key", "alice").code == 0


def test_admit(run: Run, here: pathlib.Path) -> None:
    (here / "policy.yaml").write_text("protection: system\n")
    words = ("admit", "out", "--keys", "alice.pub", "--policy", "policy.yaml")
    refused = run(*words)
    assert refused.code == 1
    assert refused.stdout.startswith("refused out, clients' part ")
    assert refused.stderr == (
        "error[E880]: out is not admitted here\n"
        " = note: signature: nobody has signed it\n"
        " = help: ask whoever sent it, or the operator of this node\n"
    )
    run("sign", "out", "--key", "alice")
    admitted = run(*words, "--json")
    assert admitted.code == 0
    assert [each["passes"] for each in json.loads(admitted.stdout)["verdicts"]] == [True] * 3


def test_approve_and_revoke(run: Run, here: pathlib.Path) -> None:
    approving = ("approve", "out", "--key", "bob", "--store", "approvals", "--reason", "a sum")
    words = ("admit", "out", "--approvals", "approvals", "--approvers", "bob.pub")
    assert "nobody has approved it" in run(*words).stderr
    assert run(*approving, "--expires", "2999-12-31").code == 0
    assert "approval ok (approved by bob until 2999-12-31: a sum)" in run(*words).stdout
    assert run(*approving, "--revoke", "--expires", "2999-12-31").code == 2
    assert run(*approving, "--revoke").code == 0
    assert "it was revoked by bob; a sum" in run(*words).stderr


def test_approvals_need_approvers(run: Run, here: pathlib.Path) -> None:
    assert run("admit", "out", "--approvals", "approvals").code == 2


def test_rebuild(run: Run, here: pathlib.Path) -> None:
    again = run("rebuild", "round.py", "out")
    assert (again.code, again.stdout) == (0, "out: round.py compiles to it, 23 files\n")
    (here / "round.py").write_text(ROUND.replace("federated_sum", "federated_max"))
    refused = run("rebuild", "round.py", "out").refusal
    assert refused.startswith(
        "error[E889]: the program does not compile to this bundle here: components/accumulate.pb"
    )


def test_a_first_state_of_a_file_is_compiled_again(run: Run, here: pathlib.Path) -> None:
    (here / "zero.py").write_text(ZERO)
    assert run("trace", "zero.py:zero", "-o", "zero.pb").code == 0
    initialize = ("--initialize", "zero.pb")
    words = ("--form", "mapreduce", "-o", "begun", *initialize)
    assert run("compile", "zero.py:summed", *words).code == 0
    assert run("rebuild", "zero.py:summed", "begun", *initialize).code == 0
    assert "initialize.pb" in run("rebuild", "zero.py:summed", "begun").refusal


def test_impure_duplicates_are_compiled_again(run: Run, here: pathlib.Path) -> None:
    (here / "drawn.py").write_text(DRAWN)
    allowed = "--allow-impure-duplicates"
    words = ("compile", "drawn.py", "--form", "mapreduce", "-o", "drawn")
    assert "E532" in run(*words).stderr
    assert run(*words, allowed).code == 0
    assert run("rebuild", "drawn.py", "drawn", allowed).code == 0
    assert "E532" in run("rebuild", "drawn.py", "drawn").stderr


def test_a_proof_is_made_again(run: Run, here: pathlib.Path) -> None:
    run("compile", "round.py", "--form", "mapreduce", "-o", "proved", "--prove")
    assert run("rebuild", "round.py", "proved").code == 0


def test_runs_of_admitted_bundles(
    run: Run, here: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "node.yaml").write_text("keys: alice.pub\nlog: log.jsonl\n")
    words = ("run", "out", "--data", DATA, "--rounds", "1")
    refused = run(*words, "--demands", "node.yaml")
    assert "error[E880]: out is not admitted here" in refused.stderr
    monkeypatch.setenv("TFFC_DEMANDS", "node.yaml")
    assert "error[E880]: out is not admitted here" in run(*words).stderr
    assert "error[E890]" in run("run", "round.py", *words[2:]).stderr
    run("sign", "out", "--key", "alice")
    admitted = run(*words)
    assert "admitted out" in admitted.stderr
    assert "E880" not in admitted.stderr
    lines = (here / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["admitted"] for line in lines] == [False, False, True]
