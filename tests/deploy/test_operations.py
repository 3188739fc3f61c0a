"""The endpoint of metrics, as those who scrape it see it."""

from __future__ import annotations

import http.client
import importlib
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tests.processes import ENVIRONMENT
from tffc.deploy.operations.endpoint import Endpoint, EndpointSettings, open_endpoint
from tffc.deploy.operations.exposition import openmetrics_text
from tffc.runtime.operations.counts import (
    BOUNDS,
    FAMILIES,
    FILE,
    VARIABLE,
    Counts,
    count_admission,
    count_bytes,
    count_refusal,
    count_round,
    read_counts,
)
from tffc.support.errors import LanguageValueError, MissingExtraError
from tffc.support.version import VERSION

COUNTS: Counts = {
    "rounds": {"finished": 3, "repeated": 1},
    "round_seconds": {
        **{str(bound): 1 if bound < 3 else 2 for bound in BOUNDS if bound > 0.3},
        "+Inf": 3,
        "sum": 3004.5,
    },
    "last_round": {"": 3},
    "refusals": {"E763": 2},
}


@pytest.fixture
def parser() -> None:
    pytest.importorskip("prometheus_client", reason="needs the package prometheus-client")


def samples(text: bytes) -> dict[tuple[str, ...], float]:
    """What a scraper makes of a text: values by names and the values of labels."""
    parser = importlib.import_module("prometheus_client.openmetrics.parser")

    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.mark.usefixtures("parser")
def test_the_text_is_openmetrics() -> None:
    found = samples(openmetrics_text(COUNTS))
    assert found.pop(("tffc_info", VERSION)) == 1
    buckets = {name: found.pop(name) for name in list(found) if name[0].endswith("_bucket")}
    assert list(buckets.values())[-1] == 3
    assert buckets["tffc_round_seconds_bucket", "3.0"] == 2
    assert found == {
        ("tffc_rounds_total", "finished"): 3,
        ("tffc_rounds_total", "repeated"): 1,
        ("tffc_round_seconds_count",): 3,
        ("tffc_round_seconds_sum",): 3004.5,
        ("tffc_last_round",): 3,
        ("tffc_refusals_total", "E763"): 2,
    }
    assert openmetrics_text(COUNTS).endswith(b"# EOF\n")


@pytest.mark.usefixtures("parser")
def test_all_that_is_counted_is_shown(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    count_round(1, 0.25, 3)
    count_bytes(sent=1, received=2)
    count_refusal("E763")
    count_admission(is_admitted=False)
    text = openmetrics_text(read_counts(tmp_path)).decode()
    for family in FAMILIES:
        assert f"# TYPE tffc_{family.name} {family.kind}\n" in text
        assert f"# HELP tffc_{family.name} {family.help}\n" in text


def test_without_prometheus_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError) as refused:
        openmetrics_text({})
    assert refused.value.message == "prometheus_client is not installed, and metrics need it"
    assert refused.value.help == "in tffc's checkout: pip install '.[metrics]'"


@pytest.fixture
def endpoint(tmp_path: pathlib.Path, parser: None) -> Iterator[Endpoint]:
    """An endpoint of a machine that needs a file `policy.yaml` and a server that is there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = EndpointSettings(
            "127.0.0.1", 0, tmp_path, (tmp_path / "policy.yaml",), (server.getsockname(),)
        )
        with open_endpoint(settings) as opened:
            thread = threading.Thread(target=opened.serve_forever, args=(0.01,))
            thread.start()
            yield opened
            opened.shutdown()
            thread.join()


def get(endpoint: Endpoint, path: str) -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.server_port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def test_metrics_are_served(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    status, kind, text = get(endpoint, "/metrics?name=tffc")
    assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert list(samples(text)) == [("tffc_info", VERSION)]
    monkeypatch.setenv(VARIABLE, str(endpoint.settings.folder))
    count_refusal("E774")
    assert samples(get(endpoint, "/metrics")[2])["tffc_refusals_total", "E774"] == 1


def test_a_machine_is_ready_once_all_is_there(endpoint: Endpoint) -> None:
    (policy,) = endpoint.settings.paths
    assert get(endpoint, "/healthz")[::2] == (200, b"ok\n")
    assert get(endpoint, "/readyz")[::2] == (503, f"{policy} cannot be read\n".encode())
    policy.touch()
    assert get(endpoint, "/readyz")[::2] == (200, b"ok\n")


def test_a_machine_without_its_server_is_not_ready(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    settings = EndpointSettings("127.0.0.1", 0, tmp_path, (), ((host, port),))
    assert list(settings.missing()) == [f"{host}:{port} cannot be reached: Connection refused"]


def test_a_machine_with_damaged_counts_is_not_well(endpoint: Endpoint) -> None:
    file = endpoint.settings.folder / FILE
    file.write_text("[]")
    said = f"{file} does not hold counts of tffc: it is no object\n".encode()
    for path in ("/metrics", "/healthz"):
        assert get(endpoint, path)[::2] == (503, said)


def test_there_is_nothing_else(endpoint: Endpoint) -> None:
    assert get(endpoint, "/../../etc/passwd")[::2] == (
        404,
        b"there are /metrics, /healthz and /readyz\n",
    )


def test_settings_are_in_the_environment() -> None:
    read = EndpointSettings.from_environment
    folder = pathlib.Path("counts")
    assert read({VARIABLE: "counts"}) == EndpointSettings("127.0.0.1", 9464, folder)
    environment = {
        VARIABLE: "counts",
        "TFFC_METRICS_ADDRESS": "[::1]:0",
        "TFFC_READY": "/data  ./policy.yaml federation.example.org:8000",
    }
    paths = (pathlib.Path("/data"), pathlib.Path("policy.yaml"))
    assert read(environment) == EndpointSettings(
        "::1", 0, folder, paths, (("federation.example.org", 8000),)
    )


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "TFFC_METRICS does not say where counts are"),
        ({"TFFC_METRICS_ADDRESS": "9464"}, "'9464' in TFFC_METRICS_ADDRESS is no address"),
        ({"TFFC_METRICS_ADDRESS": "h:65536"}, "'h:65536' in TFFC_METRICS_ADDRESS is no address"),
        ({"TFFC_READY": "data"}, "'data' in TFFC_READY is no address"),
    ],
)
def test_settings_that_are_none(environment: dict[str, str], message: str) -> None:
    folder = {VARIABLE: "counts"} if environment else {}
    with pytest.raises(LanguageValueError) as refused:
        EndpointSettings.from_environment({**folder, **environment})
    assert (refused.value.code, refused.value.message) == ("E896", message)


@pytest.mark.usefixtures("parser")
def test_a_port_that_is_taken(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(LanguageValueError) as refused:
            open_endpoint(EndpointSettings("127.0.0.1", port, tmp_path))
    message = f"cannot listen at 127.0.0.1:{port}: Address already in use"
    assert (refused.value.code, refused.value.message) == ("E896", message)


@pytest.mark.slow
@pytest.mark.usefixtures("parser")
def test_the_command_serves_until_it_is_ended(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = {VARIABLE: str(tmp_path), "TFFC_METRICS_ADDRESS": f"127.0.0.1:{port}"}
    command = (sys.executable, "-m", "tffc.deploy.operations")
    with subprocess.Popen(command, env={**ENVIRONMENT, **address}) as process:
        for _ in range(200):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("GET", "/healthz")
                assert connection.getresponse().read() == b"ok\n"
                break
            except ConnectionError:
                time.sleep(0.05)
        else:
            pytest.fail("it never answers")
        connection.close()
        process.terminate()
    assert process.returncode == -signal.SIGTERM


@pytest.mark.slow
def test_the_command_says_what_is_wrong() -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != VARIABLE}
    command = (sys.executable, "-m", "tffc.deploy.operations")
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "TFFC_METRICS does not say where counts are [E896]\n" in ran.stderr
    assert "Traceback" not in ran.stderr
