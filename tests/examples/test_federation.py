"""The files with which operators run a federation are what their programs take."""

from __future__ import annotations

import json
import pathlib
import re
import runpy
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.processes import ROOT
from tffc.assurance.audit.policy_reading import read_policy
from tffc.deploy.federation.settings import NodeSettings

HERE = ROOT / "examples" / "federation"
KUBERNETES = HERE / "kubernetes"
COMPOSE = HERE / "compose.yaml"
MANIFESTS = sorted(
    path
    for path in KUBERNETES.glob("*/*.yaml")
    if path.name not in ("kustomization.yaml", "policy.yaml")
)
UNITS = sorted((HERE / "systemd").glob("*.service"))


def interpolated() -> str:
    """What Compose makes of the file, where variables have their defaults, or a path."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", COMPOSE.read_text())
    return re.sub(r"\$\{\w+:\?[^}]*\}", "/srv", text)


def services() -> Mapping[str, Any]:
    return yaml.safe_load(COMPOSE.read_text())["services"]


def resources(path: pathlib.Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def pods() -> Iterator[Any]:
    for path in MANIFESTS:
        for each in resources(path):
            if each["kind"] == "Deployment":
                yield each["spec"]["template"]["spec"]


def node_config(text: str) -> dict[str, str]:
    """The entries of a node's configuration, which are all texts here."""
    return dict(re.findall(r'([\w-]+)="([^"]*)"', text))


def test_compose_is_by_its_specification() -> None:
    compose = pytest.importorskip("compose_spec", reason="needs the package compose-spec")
    checked = compose.PyCompose.from_json(json.dumps(yaml.safe_load(interpolated())))
    checked.validate()
    assert sorted(checked.service_names()) == sorted(services())


def test_services_have_no_rights_that_they_do_not_need() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["user"] == "10001:10001", name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        for volume in service["volumes"]:
            assert volume.endswith((":/state", ":ro")), name


def test_a_silo_has_only_its_own_keys_and_data() -> None:
    for silo in range(3):
        for name in (f"silo-{silo}", f"silo-{silo}-metrics"):
            volumes = services()[name]["volumes"]
            assert f"./keys/silo-{silo}:/keys:ro" in volumes
            assert f"silo-{silo}:/state" in volumes
            assert {*re.findall(r"DATA_(\d)", str(volumes))} == {str(silo)}


def test_nodes_do_not_reach_the_metrics_of_others() -> None:
    for silo in range(3):
        node, metrics = (services()[f"silo-{silo}{part}"]["networks"] for part in ("", "-metrics"))
        assert set(node).isdisjoint(metrics)


def test_all_services_that_stay_say_whether_they_are_well() -> None:
    stay = [each for each in services().values() if each["restart"] != "no"]
    assert len(stay) == 8
    assert all("healthcheck" in each for each in stay)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_manifests_are_by_the_schemas_of_kubernetes(path: pathlib.Path) -> None:
    kubernetes = pytest.importorskip(
        "kubernetes_validate", reason="needs the package kubernetes-validate"
    )
    for each in resources(path):
        kubernetes.validate(each, kubernetes.latest_version(), strict=True)


def test_kustomizations_name_all_files_beside_them() -> None:
    folders = sorted(path for path in KUBERNETES.iterdir() if path.is_dir())
    assert [folder.name for folder in folders] == [
        "silo",
        "silo-0",
        "silo-1",
        "silo-2",
        "superlink",
    ]
    for folder in folders:
        (content,) = resources(folder / "kustomization.yaml")
        named = {name for name in content["resources"] if not name.startswith("..")}
        for generator in content.get("configMapGenerator", ()):
            named.update(generator["files"])
        assert named == {path.name for path in folder.iterdir()} - {"kustomization.yaml"}
        assert all((folder / name).exists() for name in content["resources"])


@pytest.mark.parametrize("folder", ["superlink", "silo-0", "silo-1", "silo-2"])
def test_kustomize_builds_one_namespace(folder: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl")
    command = ("kubectl", "kustomize", KUBERNETES / folder)
    built = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    spaces = {
        each["metadata"].get("namespace", each["metadata"]["name"])
        for each in yaml.safe_load_all(built)
    }
    assert spaces == {"federation" if folder == "superlink" else folder}


def test_pods_have_no_rights_that_they_do_not_need() -> None:
    found = list(pods())
    assert len(found) == 2
    for pod in found:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"limits", "requests"} <= container["resources"].keys()
            assert {"livenessProbe", "readinessProbe"} <= container.keys()
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("name", ["compose", "kubernetes", "systemd"])
def test_nodes_are_configured_by_what_there_is(name: str) -> None:
    file = {
        "compose": COMPOSE,
        "kubernetes": KUBERNETES / "silo" / "node.yaml",
        "systemd": HERE / "systemd" / "node.env",
    }[name]
    (line,) = re.findall(r'data="(?:[^"]*"(?:\s+[\w-]+="))*[^"]*"', file.read_text())
    config = node_config(line)
    known = {field.replace("_", "-") for field in NodeSettings.__dataclass_fields__}
    assert config.keys() <= known
    assert {"data", "policy", "worker", "memory", "out"} <= config.keys()
    NodeSettings.read(config, {})


def test_servers_and_runs_are_those_of_tffc() -> None:
    """Flower's own leave processes behind, and end with status 0 however a run ends."""
    (superlink,) = [pod["containers"][0] for pod in pods() if len(pod["volumes"]) == 3]
    unit = (HERE / "systemd" / "tffc-superlink.service").read_text()
    (command,) = re.findall(r"^ExecStart=/opt/tffc/bin/(.*?) --host", unit, re.MULTILINE)
    expected = ["python", "-m", "tffc.deploy.flower.superlink"]
    for words in (services()["superlink"]["command"], superlink["command"], command.split()):
        assert words[:3] == expected
    assert services()["run"]["command"][:3] == ["python", "-m", "tffc.deploy.flower.run"]


def test_the_policies_can_be_read_and_are_one() -> None:
    one, other = HERE / "policy" / "policy.yaml", KUBERNETES / "silo" / "policy.yaml"
    assert read_policy(one).digest == read_policy(other).digest
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_takes_the_units(unit: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    # It asks for the programs, which are in /opt where the units belong.
    programs = tmp_path / "bin"
    programs.mkdir()
    for each in UNITS:
        text = each.read_text()
        for name in re.findall(r"^ExecStart=/opt/tffc/bin/([\w-]+)", text, re.MULTILINE):
            (programs / name).write_text("#!/bin/sh\n")
            (programs / name).chmod(0o755)
        (tmp_path / each.name).write_text(text.replace("/opt/tffc/bin", str(programs)))
    command = ("systemd-analyze", "verify", "--man=no", tmp_path / unit.name)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_finds_the_units_hardened(unit: pathlib.Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    # 10 is a service that may do anything; what systemd itself ships has 9 and more.
    command = ("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_image_has_no_base_by_default_and_wants_a_digest() -> None:
    lines = (HERE / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    assert lines.count("ARG BASE") == 2
    assert next(line for line in lines if line.startswith("FROM")) == "FROM ${BASE} AS base"
    (check,) = (line.removeprefix("RUN ") for line in lines if line.startswith("RUN case"))
    for base, code in (
        (f"python:3.12-slim@sha256:{'0' * 64}", 0),
        ("python:3.12-slim", 1),
        ("python@sha256:", 1),
        ("", 1),
    ):
        ran = subprocess.run(("sh", "-c", check), env={"BASE": base}, capture_output=True)
        assert ran.returncode == code, base
    assert any("--require-hashes" in line for line in lines)
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]


def test_requirements_are_what_pip_reports() -> None:
    script = runpy.run_path(str(HERE / "requirements.py"))

    def installed(name: str, version: str, digest: str) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "version": version},
            "download_info": {"archive_info": {"hashes": {"sha256": digest}}},
        }

    report = {"install": [installed("tffc", "0.1", "ab"), installed("PyYAML", "6.0", "cd")]}
    assert script["requirements"](report) == (
        "pyyaml==6.0 --hash=sha256:cd\ntffc==0.1 --hash=sha256:ab\n"
    )


def test_keys_are_made_for_each_host(tmp_path: pathlib.Path) -> None:
    if shutil.which("openssl") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs openssl and ssh-keygen")
    names = ("federation.example.org", "10.0.0.7", "fd00::7")
    subprocess.run(("sh", HERE / "keys.sh", *names), cwd=tmp_path, check=True)
    keys = tmp_path / "keys"
    assert sorted(path.name for path in (keys / "silo-0").iterdir()) == [
        *("ca.pem", "key", "key.pub", "local-ca.pem", "local.key", "local.pem"),
    ]
    assert sorted(path.name for path in (keys / "server").iterdir()) == [
        *("ca.pem", "server.key", "server.pem"),
    ]
    for folder, authority, certificate in (
        ("server", "ca", "server"),
        ("silo-2", "local-ca", "local"),
    ):
        check = ("openssl", "verify", "-CAfile", f"{authority}.pem", f"{certificate}.pem")
        subprocess.run(check, cwd=keys / folder, check=True, capture_output=True)
    text = ("openssl", "x509", "-in", keys / "server" / "server.pem", "-noout", "-text")
    shown = subprocess.run(text, check=True, capture_output=True, text=True).stdout
    assert "IP Address:127.0.0.1, DNS:federation.example.org, IP Address:10.0.0.7" in shown
    assert "IP Address:FD00:0:0:0:0:0:0:7" in shown
    assert all(
        not stat.S_IMODE(path.stat().st_mode) & 0o077
        for path in keys.rglob("*")
        if path.suffix == ".key" or path.name == "key"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("server", "keys is there already: to make others, move it away\n"),
        ("my server", "'my server' is neither a name nor an address\n"),
        ("server,IP:6.6.6.6", "'server,IP:6.6.6.6' is neither a name nor an address\n"),
        ("", "'' is neither a name nor an address\n"),
    ],
)
def test_keys_that_are_not_made(name: str, said: str, tmp_path: pathlib.Path) -> None:
    kept = tmp_path / "keys" / "ca.key"
    kept.parent.mkdir()
    kept.write_text("a key")
    command = ("sh", HERE / "keys.sh", name)
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, said)
    assert kept.read_text() == "a key"
    assert list(tmp_path.rglob("*")) == [kept.parent, kept]
