"""Bundles whose components do not compute their program are read from their components."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable

import pytest
import tensorflow as tf

import tffc as tff
from tests.cli.conftest import Run
from tests.explorer.test_page import Reader
from tffc.assurance.audit import bundles
from tffc.assurance.proof.prove import Answer, Proof
from tffc.backends.bundle.bundle import Bundle, read_bundle, write_bundle
from tffc.language import Compiled

MODULE = """\
import collections
import numpy as np
import tffc as tff

ROWS = collections.OrderedDict(user=np.int32, zip=np.int32, age=np.int32)


def adds(key):
    def body(state, data):
        total = tff.federated_sum(data[key])
        return state, total

    return tff.federated_computation(
        body, tff.types.at_server(np.int32), tff.types.at_clients(ROWS)
    )


def keeps(key):
    return tff.federated_computation(
        lambda state, data: data[key], tff.types.at_server(np.int32), tff.types.at_clients(ROWS)
    )


adds_zip, adds_user = adds("zip"), adds("user")
keeps_zip, keeps_user = keeps("zip"), keeps("user")
"""

FORMS = {"mapreduce": "adds", "distribute-aggregate": "adds", "broadcast": "keeps"}

Forge = Callable[..., str]


@pytest.fixture(
    params=[
        "mapreduce",
        pytest.param("distribute-aggregate", marks=pytest.mark.slow),
        pytest.param("broadcast", marks=pytest.mark.slow),
    ]
)
def form(request: pytest.FixtureRequest) -> str:
    """A form."""
    return request.param


@pytest.fixture
def forge(run: Run, tmp_path: pathlib.Path) -> Forge:
    """Writes a bundle whose program adds zip codes, and whose components add users."""
    (tmp_path / "module.py").write_text(MODULE)

    def write(form: str, changed: str = "components") -> str:
        for key in ("zip", "user"):
            source = f"module.py:{FORMS[form]}_{key}"
            assert run("compile", source, "--form", form, "-o", key).code == 0
        good, bad = (read_bundle(pathlib.Path(key)) for key in ("zip", "user"))
        if changed == "components":
            forged = dataclasses.replace(good, components=bad.components)
        else:
            forged = dataclasses.replace(bad, computation=good.computation)
        write_bundle(forged, pathlib.Path("forged"))
        return "forged"

    return write


def data_of(run: Run, *args: str) -> list[list[str]]:
    """The clients' data in each channel, of an audit as JSON."""
    report = json.loads(run("audit", *args, "--format", "json").stdout)
    return [channel["depends"]["elements"] for channel in report["audit"]["channels"]]


def test_the_bundle_of_a_program_is_read_as_the_program(run: Run, forge: Forge, form: str) -> None:
    forge(form)
    report = json.loads(run("audit", "zip", "--format", "json").stdout)
    assert report["read"]["what"] == "program"
    assert report["read"]["proof"] == {
        "answer": "proved",
        "prover": bundles.VERSION,
        "reason": None,
    }
    assert data_of(run, "zip") == [["data.zip"]]


@pytest.mark.parametrize("changed", ["components", "computation"])
def test_a_forged_bundle_is_audited_from_its_components(
    run: Run, forge: Forge, form: str, changed: str
) -> None:
    forged = forge(form, changed)
    ran = run("audit", forged, "--format", "json")
    report = json.loads(ran.stdout)
    assert report["read"]["what"] == "components"
    assert report["read"]["proof"]["answer"] == "different"
    assert report["program"]["digest"] not in (None, report["program"]["digests"]["computation"])
    assert data_of(run, forged) == [["data.user"]]
    assert ran.stderr.startswith("warning: forged is read from its components: ")


def test_a_policy_is_held_against_what_runs(run: Run, forge: Forge, form: str) -> None:
    forged = forge(form)
    pathlib.Path("policy.yaml").write_text("never-leave: [data.user]\n")
    assert run("audit", "zip", "--policy", "policy.yaml").code == 0
    assert run("audit", forged, "--policy", "policy.yaml").code == 1


def test_a_policy_is_held_against_the_first_state_too(run: Run, forge: Forge, form: str) -> None:
    forge(form)

    @tff.tf_computation()
    def writing() -> object:
        with tf.control_dependencies([tf.io.write_file("written", "text")]):
            return tf.constant(0)

    section = writing.node
    assert isinstance(section, Compiled)
    good = read_bundle(pathlib.Path("zip"))
    write_bundle(dataclasses.replace(good, initialize=section), pathlib.Path("writing"))
    pathlib.Path("policy.yaml").write_text("effects: {clients: [], server: []}\n")
    assert run("audit", "zip", "--policy", "policy.yaml").code == 0
    ran = run("audit", "writing", "--policy", "policy.yaml")
    assert ran.code == 1
    assert "read: the program of the bundle; its components are proved" in ran.stdout
    assert "at the server: WriteFile 'written', files" in ran.stdout
    assert "error: effects: WriteFile 'written': reads or writes files at the server" in ran.stderr


def test_breaking_changes_are_those_of_what_runs(run: Run, forge: Forge, form: str) -> None:
    forged = forge(form)
    ran = run("diff", "--breaking", "zip", forged)
    assert ran.code == 2
    assert "may depend on more of a client (data): data.user" in ran.stdout
    assert "RESULT: bundle is read from its components: " in ran.stdout
    assert run("diff", "--breaking", "zip", "zip").stdout == ""


def test_a_program_is_compared_with_what_runs(run: Run, forge: Forge, form: str) -> None:
    forged = forge(form)
    assert run("diff", "zip", "zip/computation.pb").code == 0
    ran = run("diff", forged, "zip/computation.pb")
    assert ran.code == 2
    assert "warning: forged is read from its components" in ran.stderr


def test_two_bundles_are_compared_as_they_are(run: Run, forge: Forge, form: str) -> None:
    ran = run("diff", "zip", forge(form))
    assert ran.code == 2
    assert "warning: forged is read from its components" in ran.stderr


def test_the_explorer_shows_what_runs(run: Run, forge: Forge, form: str) -> None:
    ran = run("explore", forge(form), "-o", "page.html")
    assert "warning: forged is read from its components" in ran.stderr
    page = pathlib.Path("page.html").read_text()
    assert '"what":"components"' in page
    assert '"elements":["data.user"]' in page.replace(" ", "")
    assert '"elements":["data.zip"]' not in page.replace(" ", "")


@pytest.mark.parametrize("kind", ["flower", "saved_model"])
def test_a_forged_bundle_is_not_exported(run: Run, forge: Forge, kind: str) -> None:
    ran = run("export", forge("mapreduce"), "--to", kind, "-o", "out")
    assert ran.code == 1
    assert "error[E902]" in ran.stderr
    assert not pathlib.Path("out").exists()


def test_a_bundle_that_is_not_decided(
    run: Run, forge: Forge, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge(form)
    pages = data_of(run, "zip")
    proof = Proof(Answer.UNDECIDED, 0, construct="a construct", detail="this one")
    monkeypatch.setattr(bundles, "prove", lambda *_: proof)
    ran = run("audit", "zip")
    assert "read: the components of the bundle; it is not decided whether" in ran.stdout
    assert data_of(run, "zip") == pages
    ran = run("diff", "--breaking", "zip", "zip")
    assert "INSIDE: bundle is read from its components: " in ran.stdout
    ran = run("export", "zip", "--to", "flower", "-o", "app")
    assert (ran.code, "warning: zip: it is not decided" in ran.stderr) == (0, True)


def test_effects_are_those_of_the_components(
    run: Run, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the program needs the operation, but a component has it."""
    forge("mapreduce")
    bundle = read_bundle(pathlib.Path("zip"))
    write_bundle(writing(bundle), pathlib.Path("writes"))
    for answer in (Answer.PROVED, Answer.UNDECIDED):
        proof = Proof(answer, 0, construct="a construct")
        monkeypatch.setattr(bundles, "prove", lambda *_, proof=proof: proof)
        ran = run("audit", "writes")
        assert "  at the clients: WriteFile" in ran.stdout


def writing(bundle: Bundle) -> Bundle:
    """Return a bundle whose clients' work also writes a file."""
    from tffc.graphs.proto import GraphDef
    from tffc.language import Compiled
    from tffc.language.wire import read_tensorflow, write_tensorflow

    work = bundle.components["work"]
    assert isinstance(work, Compiled)
    content = read_tensorflow(work.payload)
    graph = GraphDef.FromString(content.graph_def)
    for name, text in (("file", b"secret"), ("text", b"hello")):
        node = graph.node.add(name=name, op="Const")
        node.attr["dtype"].type = 7
        node.attr["value"].tensor.dtype = 7
        node.attr["value"].tensor.string_val.append(text)
    graph.node.add(name="write", op="WriteFile", input=["file", "text"])
    payload = write_tensorflow(
        content._replace(graph_def=graph.SerializeToString(deterministic=True))
    )
    changed = dataclasses.replace(work, payload=payload)
    return dataclasses.replace(bundle, components={**bundle.components, "work": changed})


def test_the_explorer_says_which_version_is_read_from_its_components(
    run: Run, forge: Forge
) -> None:
    forged = forge("mapreduce")
    page = run("explore", "module.py:adds_zip", "--since", forged, "-o", "-").stdout
    changed = Reader(page).data("description")["changes"]
    assert "computes something else than the program" in changed["doubt"]
    assert "privacy" in {each["breaks"] for each in changed["breaking"]}
    page = run("explore", forged, "--since", "module.py:adds_zip", "-o", "-").stdout
    changed = Reader(page).data("description")["changes"]
    assert changed["doubt"] is None
    shown = run("diff", "--breaking", "module.py:adds_zip", forged, "--json").stdout
    assert [(each["breaks"].upper(), each["subject"]) for each in changed["breaking"]] == [
        (each["breaks"], each["subject"]) for each in json.loads(shown)
    ]
    assert changed["breaking"][-1]["subject"] == "bundle"


def test_components_are_approved_and_not_the_program(run: Run, forge: Forge, form: str) -> None:
    forged = forge(form)
    page = run("audit", forged, "--format", "html").stdout
    read = json.loads(run("audit", forged, "--format", "json").stdout)["program"]
    text = " ".join(re.sub(r"<[^>]*>", "", page.partition("Approval")[2]).split())
    assert f"approve the components that have the SHA-256 {read['digest']}." in text
    assert read["digests"]["computation"] not in text
    assert read["digests"]["computation"] in page
