"""Every command and function that takes a bundle refuses a forged one, or says what it is.

A forged bundle has a program, components of another one, and hashes that agree.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.cli.conftest import ROUND, Run
from tests.signing_keys import write_keys
from tffc.assurance.audit import bundles
from tffc.assurance.proof.prove import Answer, Proof
from tffc.assurance.trust.subjects import clients_part
from tffc.backends.bundle.bundle import read_bundle, write_bundle
from tffc.cli.application import COMMANDS
from tffc.support.errors import TffcError, TrustError, ValidationError

DATA = "csv:readings.csv?client=client&columns=reading"

FORGED = "the form mapreduce computes something else than the program: "

REFUSED = {
    "run": (("forged", "--data", DATA, "--rounds", "1", "--state-in", "state.npz"), "E902"),
    "export": (("forged", "--to", "flower", "-o", "out"), "E902"),
    "sign": (("forged", "--key", "alice"), "E902"),
    "approve": (("forged", "--key", "alice", "--store", "out"), "E902"),
    "prove": (("forged",), "E902"),
    "verify-signature": (("forged", "--keys", "alice.pub"), "E888"),
    "admit": (("forged",), "E880"),
    "rebuild": (("round.py", "forged"), "E889"),
}
"""The commands that refuse it, their arguments, and the code."""

READ = {
    "audit": ("forged",),
    "explore": ("forged", "-o", "-"),
    "decompile": ("forged", "-o", "out"),
    "diff": ("good", "forged"),
}
"""The commands that tell what the components compute, and warn."""

SHOWN = {"print": ("forged",), "data": ("describe", DATA, "--for", "forged")}
"""The commands that show what is in it, and believe and run nothing."""

NO_BUNDLE = {
    "trace": ("forged", "-o", "out"),
    "compile": ("forged", "--form", "mapreduce", "-o", "out"),
    "check": ("forged", "--form", "mapreduce"),
    "parse": ("forged", "-o", "out"),
    "opt": ("forged",),
    "python": ("forged",),
    "report": ("forged",),
    "show": ("forged",),
    "verify": ("forged",),
}
"""The commands that take programs and other files, and refuse a bundle."""

NO_FILES = {"init", "passes", "pipelines", "doctor", "explain", "help", "golden"}
"""The commands that take none of these."""


def write_signature(forged: pathlib.Path) -> None:
    """Let a trusted key sign a forged bundle, as `tffc sign` does not."""
    from tffc.assurance.trust.claims import Findings, statement_of
    from tffc.assurance.trust.envelopes import sign
    from tffc.assurance.trust.keys import open_signer
    from tffc.backends.bundle.bundle import file_digests

    findings = Findings.of(read_bundle(forged))
    signer = open_signer("alice", lambda _: None)
    (forged / "signatures").mkdir()
    signature = sign(statement_of(findings, file_digests(forged), None), signer)
    (forged / "signatures/alice.sigstore.json").write_bytes(signature)


@pytest.fixture
def here(run: Run, tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of the commands, with a module, its bundle `good`, `forged`, data, and keys."""
    (tmp_path / "round.py").write_text(ROUND)
    (tmp_path / "other.py").write_text(ROUND.replace("federated_sum", "federated_max"))
    (tmp_path / "readings.csv").write_text("client,reading\na,1\nb,2\n")
    np.savez(tmp_path / "state.npz", np.int32(0))
    write_keys(tmp_path, "alice")
    for source, out in (("round.py", "good"), ("other.py", "other")):
        assert run("compile", source, "--form", "mapreduce", "-o", out).code == 0
    good, other = (read_bundle(tmp_path / name) for name in ("good", "other"))
    write_bundle(dataclasses.replace(good, components=other.components), tmp_path / "forged")
    write_signature(tmp_path / "forged")
    return tmp_path


def test_every_command_is_classified() -> None:
    kinds = [REFUSED, READ, SHOWN, NO_BUNDLE, NO_FILES]
    assert sorted(name for kind in kinds for name in kind) == sorted(COMMANDS)


@pytest.mark.parametrize("command", REFUSED)
def test_commands_refuse(run: Run, here: pathlib.Path, command: str) -> None:
    words, code = REFUSED[command]
    ran = run(command, *words)
    assert ran.code == 1
    assert f"error[{code}]" in ran.stderr
    if code in ("E902", "E880"):
        assert FORGED in ran.stderr
    assert not (here / "out").exists()


@pytest.mark.parametrize("command", READ)
def test_commands_read_the_components(run: Run, here: pathlib.Path, command: str) -> None:
    ran = run(command, *READ[command])
    assert ran.code in (0, 2)
    assert f"warning: forged is read from its components: {FORGED}" in ran.stderr


@pytest.mark.parametrize("command", SHOWN)
def test_commands_show(run: Run, here: pathlib.Path, command: str) -> None:
    assert run(command, *SHOWN[command]).code == 0


@pytest.mark.parametrize("command", NO_BUNDLE)
def test_commands_take_no_bundle(run: Run, here: pathlib.Path, command: str) -> None:
    assert run(command, *NO_BUNDLE[command]).code in (1, 2)
    assert not (here / "out").exists()


METHODS: dict[str, Callable[[tff.CompiledBundle], object]] = {
    "run": lambda bundle: bundle.run({"a": np.int32(1)}, 1, state=np.int32(0)).finish(),
    "export": lambda bundle: bundle.export("flower", "out"),
    "verify": lambda bundle: bundle.verify(trials=3),
}
"""The methods of a bundle that refuse a forged one."""

READ_BY_METHODS: dict[str, Callable[[tff.CompiledBundle], object]] = {
    "prove": lambda bundle: bundle.prove().sentence(),
    "audit": lambda bundle: bundle.audit().proof,
    "explore": lambda bundle: str(bundle.explore()),
    "diff": lambda bundle: bundle.diff(tff.load("other")),
}
"""The methods that tell what the components compute."""

SHOWN_BY_METHODS = {"text", "print", "save", "first_state"}
"""The methods that show or copy what is in it, or run another part."""

TRUST: dict[str, Callable[[], object]] = {
    "sign": lambda: tff.trust.sign("forged", "alice"),
    "approve": lambda: tff.trust.approve("forged", "alice", "out"),
    "verify_signature": lambda: tff.trust.verify_signature("forged", "alice.pub").check(),
    "admit": lambda: tff.trust.admit("forged", tff.trust.AdmissionSettings()).check(),
    "rebuild": lambda: tff.trust.rebuild("round.py", "forged").check(),
}
"""The functions of `tffc.trust`, which all refuse it."""


def public_names(owner: object, module: str) -> set[str]:
    """The public functions that a class or a module has from our packages."""
    return {
        name
        for name, value in vars(owner).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith(module)
        if callable(value) and not isinstance(value, type)
    }


def test_every_function_is_classified() -> None:
    methods = public_names(tff.CompiledBundle, "tffc.")
    assert methods == {*METHODS, *READ_BY_METHODS, *SHOWN_BY_METHODS}
    functions = {n for n, value in vars(tff.trust).items() if hasattr(value, "__wrapped__")}
    assert functions - {"read_bundle", "read_settings"} == set(TRUST)


@pytest.mark.parametrize("method", METHODS)
def test_methods_refuse(here: pathlib.Path, method: str) -> None:
    for bundle in (tff.load("forged"), tff.load("forged", allow_effects=["files"])):
        with pytest.raises(ValidationError) as refused:
            METHODS[method](bundle)
        assert refused.value.code == "E902"


RUN_BY_METHODS: dict[str, Callable[[tff.CompiledBundle], object]] = {
    "run": METHODS["run"],
    "verify": METHODS["verify"],
    "first_state": lambda bundle: bundle.first_state(),
}
"""The methods that run something of a bundle."""


@pytest.mark.parametrize("method", RUN_BY_METHODS)
def test_methods_mind_the_demands_of_the_machine(
    here: pathlib.Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    (here / "node.yaml").write_text("keys: alice.pub\n")
    monkeypatch.setenv("TFFC_DEMANDS", "node.yaml")
    with pytest.raises(TrustError) as refused:
        RUN_BY_METHODS[method](tff.load("good"))
    assert refused.value.code == "E880"
    assert refused.value.notes == ("signature: nobody has signed it",)


def test_a_bundle_that_was_read_is_refused(here: pathlib.Path) -> None:
    for bundle in ("forged", here / "forged", read_bundle(here / "forged")):
        with pytest.raises(ValidationError):
            tff.run(bundle, {"a": np.int32(1)}, 1, state=np.int32(0))


@pytest.mark.parametrize("method", READ_BY_METHODS)
def test_methods_read_the_components(here: pathlib.Path, method: str) -> None:
    told = READ_BY_METHODS[method]
    assert told(tff.load("forged")) != told(tff.load("good"))


@pytest.mark.parametrize("function", TRUST)
def test_trust_refuses(here: pathlib.Path, function: str) -> None:
    with pytest.raises(TffcError) as refused:
        TRUST[function]()
    assert refused.value.code in ("E902", "E888", "E880", "E889")


def test_the_own_bundle_of_this_process_is_not_proved_again(
    here: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "prove", lambda *_: pytest.fail("it was proved"))
    tff.compile("round.py", "mapreduce").run({"a": np.int32(1)}, 1, state=np.int32(0)).finish()


def test_what_is_not_decided_runs(
    run: Run, here: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = Proof(Answer.UNDECIDED, 0, construct="a construct")
    monkeypatch.setattr(bundles, "prove", lambda *_: proof)
    assert run("run", *REFUSED["run"][0][1:], "good").code == 0


def test_demands_may_leave_the_proof_out(
    run: Run, here: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever has compiled a program with impure duplicates needs it."""
    refused = run("run", *REFUSED["run"][0])
    assert refused.stderr.endswith(
        " = help: compile the program again; if it is meant to, as with impure duplicates, run it "
        "with demands that have 'proof: false'\n"
    )
    (here / "demands.yaml").write_text("proof: false\n")
    assert run("run", *REFUSED["run"][0], "--demands", "demands.yaml").code == 0
    monkeypatch.setenv("TFFC_DEMANDS", "demands.yaml")
    METHODS["run"](tff.load("forged"))


def test_a_forged_bundle_can_be_revoked(run: Run, here: pathlib.Path) -> None:
    words = ("approve", "forged", "--key", "alice", "--store", "store", "--revoke")
    assert run(*words).code == 0
    (revocation,) = (here / "store").glob("*/*")
    assert revocation.parent.name == clients_part(read_bundle(here / "forged")).digest


def edit_file(bundle: pathlib.Path, name: str, content: bytes) -> None:
    """Change a file of a bundle, and its hash in the manifest."""
    (bundle / name).write_bytes(content)
    manifest: dict[str, Any] = json.loads((bundle / "manifest.json").read_text())
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    (bundle / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("stem", ["computation", "components/work", "components/update"])
def test_a_text_of_another_program_is_not_signed(run: Run, here: pathlib.Path, stem: str) -> None:
    """Nothing reads the texts but people, so whoever signs would sign what they do not say."""
    edit_file(here / "good", f"{stem}.sexpr", b"(x -> x)\n")
    assert run("sign", "good", "--key", "alice").refusal == (
        f"error[E606]: {stem}.sexpr of the bundle is not the text of its program\n"
        " = note: whoever reads it would not see what runs\n"
        " = help: compile the program again with this version of tffc, and sign that\n"
    )
