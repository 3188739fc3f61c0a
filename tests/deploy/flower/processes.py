"""Processes of a federation on this machine: a SuperLink and SuperNodes, TLS and known nodes."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.processes import ROOT
from tffc.deploy.flower.owner import OWNER

WAIT = 240.0
"""So many seconds something may take that usually takes a few."""

CONFIG = """\
[superlink]
default = "here"

[superlink.here]
address = "127.0.0.1:{port}"
root-certificates = "{root}"
"""


SUPERNODE = (sys.executable, "-m", "tffc.deploy.flower.supernode")
"""The command for a node; Flower's own is flower-supernode."""

SUPERLINK = (sys.executable, "-m", "tffc.deploy.flower.superlink")
"""The command for the SuperLink; Flower's own is flower-superlink."""

NAMES = ("silo-0", "silo-1", "silo-2")

RUN = (sys.executable, "-m", "tffc.deploy.flower.run")
"""The command that runs an app and says how the run ended."""

LATE = """\
import time

def clients():
    time.sleep(60)
    return {"late": []}
"""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_for(what: str, holds: Callable[[], bool], seconds: float = WAIT) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited too long for {what}"
        time.sleep(0.5)


class Federation:
    """A SuperLink and nodes in a folder, which has the logs of all."""

    def __init__(
        self,
        folder: pathlib.Path,
        nodes: dict[str, dict[str, Any]],
        supernode: Sequence[str] = SUPERNODE,
        superlink: Sequence[str] = SUPERLINK,
    ) -> None:
        self.folder = folder
        self._superlink = superlink
        self._supernode = supernode
        self._nodes = nodes
        self._link_port, *ports = free_ports(1 + len(nodes))
        self._ports = dict(zip(nodes, ports, strict=True))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: list[subprocess.Popen[bytes]] = []
        home = folder / "home"
        (home / "flwr").mkdir(parents=True)
        config = CONFIG.format(port=self._link_port, root=folder / "ca.pem")
        (home / "flwr" / "config.toml").write_text(config)
        self.environment = {
            "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "FLWR_HOME": str(home / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PYTHONPATH": str(ROOT),
            # What the tests start ends with them.
            OWNER: str(os.getpid()),
        }
        write_certificates(folder)

    def start(self) -> None:
        """Start all, with the nodes registered."""
        self.start_link()
        for name in self._nodes:
            self._register(name)
        for name in self._nodes:
            self.start_node(name)

    def start_link(self) -> None:
        """Start the SuperLink, on the database of the one before."""
        self._start(
            "link",
            *self._superlink,
            *self._certificates(),
            "--enable-supernode-auth",
            "--disable-runtime-dependency-installation",
            "--host=127.0.0.1",
            f"--port={self._link_port}",
            f"--database={self.folder / 'link.db'}",
        )
        wait_for("the SuperLink", lambda: self._flwr("supernode", "list").returncode == 0)

    def start_node(self, name: str) -> None:
        """Start a node."""
        config = " ".join(f"{k}={json.dumps(v)}" for k, v in self._nodes[name].items())
        self._start(
            name,
            *self._supernode,
            f"--root-certificates={self.folder / 'ca.pem'}",
            f"--superlink=127.0.0.1:{self._link_port}",
            *self._certificates(),
            "--host=127.0.0.1",
            f"--port={self._ports[name]}",
            f"--auth-supernode-private-key={self.folder / name}",
            f"--node-config={config}",
        )

    def restart_node(self, name: str) -> None:
        """Start a killed node as a supervisor does: again and again, until it is let in.

        For the SuperLink the node is online until it has missed its heartbeats.
        """
        log = self.folder / f"{name}.log"
        before = log.stat().st_size
        end = time.monotonic() + WAIT
        while b"SuperNode ID: " not in log.read_bytes()[before:]:
            assert time.monotonic() < end, f"{name} was not let in"
            if name not in self._running or self._running[name].poll() is not None:
                self.start_node(name)
            time.sleep(1)

    def configure(self, name: str, **config: Any) -> None:
        """Give a node, when it is started again, other entries of its configuration."""
        self._nodes[name] = {**self._nodes[name], **config}

    def number(self, name: str) -> int:
        """The number of the process of the SuperLink, called link, or of a node."""
        return self._running[name].pid

    def stop(self, name: str, how: signal.Signals) -> None:
        """Send a signal to the SuperLink, called link, or a node, and to nothing else."""
        process = self._running.pop(name)
        process.send_signal(how)
        process.wait(WAIT)

    def kill(self, name: str) -> None:
        """Kill the SuperLink, called link, or a node, and what they have started."""
        process = self._running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def begin(self, app: pathlib.Path, **config: Any) -> subprocess.Popen[bytes]:
        """Begin a run, whose log is in run.log."""
        words = " ".join(f"{k.replace('_', '-')}={json.dumps(v)}" for k, v in config.items())
        with (self.folder / "run.log").open("ab") as log:
            begun = subprocess.Popen(
                [*RUN, str(app), "here", "-c", words],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._begun.append(begun)
        return begun

    def close(self) -> None:
        """Kill all that was started."""
        for name in list(self._running):
            self.kill(name)
        for process in self._begun:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def logs(self) -> str:
        """The ends of all logs."""
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{f.name}:\n{f.read_text(errors='replace')[-3000:]}" for f in files)

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def _register(self, name: str) -> None:
        private, public = node_keys()
        (self.folder / name).write_bytes(private)
        (self.folder / name).chmod(0o600)
        (self.folder / f"{name}.pub").write_bytes(public)
        ran = self._flwr(
            "supernode", "register", f"{self.folder / name}.pub", "here", "--name", name
        )
        assert ran.returncode == 0, ran.stdout

    def _flwr(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["flwr", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def _certificates(self) -> tuple[str, ...]:
        return (
            f"--ssl-certfile={self.folder / 'server.pem'}",
            f"--ssl-keyfile={self.folder / 'server.key'}",
            f"--ssl-ca-certfile={self.folder / 'ca.pem'}",
        )


def node_keys() -> tuple[bytes, bytes]:
    """The private and the public key of a node, as OpenSSH writes them."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private, public


def write_certificates(folder: pathlib.Path) -> None:
    """Write an authority of one's own, and what it says of the server on this machine."""
    root, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])

    def signed(name: x509.Name, key: Any, extension: Any, *, critical: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=critical)
            .sign(root, hashes.SHA256())
        )
        return built.public_bytes(serialization.Encoding.PEM)

    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    authority = x509.BasicConstraints(ca=True, path_length=None)
    (folder / "ca.pem").write_bytes(signed(issuer, root, authority, critical=True))
    (folder / "server.pem").write_bytes(signed(subject, server, here, critical=False))
    (folder / "server.key").write_bytes(
        server.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


@contextlib.contextmanager
def started(
    tmp_path: pathlib.Path,
    data: str,
    *,
    is_late: bool = False,
    names: Sequence[str] = NAMES,
    supernode: Sequence[str] = SUPERNODE,
    superlink: Sequence[str] = SUPERLINK,
) -> Iterator[Federation]:
    """A federation of nodes, by default three, that know one another and share the data."""
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        nodes: dict[str, dict[str, Any]] = {}
        for part, name in enumerate(names):
            worker = pathlib.Path(short, name)
            worker.mkdir(mode=0o700)
            nodes[name] = {
                "key": str(tmp_path / name),
                "known": str(tmp_path),
                "data": data,
                "partition-id": part,
                "num-partitions": len(names),
                "worker": str(worker),
                "out": str(tmp_path / "kept" / name),
            }
        (tmp_path / "late.py").write_text(LATE)
        if is_late:
            nodes["late"] = {
                "key": str(tmp_path / "late"),
                "known": str(tmp_path),
                "data": f"{tmp_path / 'late.py'}:clients",
            }
        made = Federation(tmp_path, nodes, supernode, superlink)
        try:
            made.start()
            yield made
        finally:
            made.close()
            end_workers(pathlib.Path(short))


def end_workers(folder: pathlib.Path) -> None:
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    for line in found.stdout.splitlines():
        if f"tffc.deploy.flower.worker {folder}/" in line:
            subprocess.run(["kill", line.split()[0]], check=False)


def rows(out: pathlib.Path) -> list[dict[str, Any]]:
    """The metrics of the rounds that are finished."""
    file = out / "metrics.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def arrays(out: pathlib.Path) -> dict[str, Any]:
    """The arrays of the state in the end."""
    found = np.load(out / "state.npz")
    return {name: found[name] for name in found.files if not name.endswith(".json")}


def check_alike(run: pathlib.Path, other: pathlib.Path) -> None:
    """Check that the states of two runs are equal to rounding."""
    found, expected = arrays(run), arrays(other)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)
