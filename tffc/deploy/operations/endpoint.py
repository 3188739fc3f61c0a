"""The server of metrics, health and readiness.

`/healthz` says that this process is well and that its counts can be read.  `/readyz` says that all
is there that the operator has named.  Both answer 200 or 503, with a line for each thing that is
missing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http
import http.server
import os
import pathlib
import re
import socket
from collections.abc import Iterator, Mapping

from tffc.deploy.operations.exposition import CONTENT_TYPE, openmetrics_text
from tffc.runtime.operations.counts import VARIABLE, read_counts
from tffc.support.errors import DataError, LanguageValueError

ADDRESS = "TFFC_METRICS_ADDRESS"
READY = "TFFC_READY"

DEFAULT = "127.0.0.1:9464"
"""The port is the one that exporters of OpenTelemetry have by default."""

PATIENCE = 3
"""The seconds in which somebody must have asked, or a server must have answered."""


@dataclasses.dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where to listen, the folder of the counts, and what must be there for readiness."""

    host: str
    port: int
    folder: pathlib.Path
    paths: tuple[pathlib.Path, ...] = ()
    servers: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> EndpointSettings:
        """Return what the environment says.

        Raises:
          LanguageValueError: it says nothing of the folder, or something is no address.
        """
        folder = environment.get(VARIABLE, "")
        if not folder:
            raise LanguageValueError(
                "E896",
                f"{VARIABLE} does not say where counts are",
                help=f"set {VARIABLE} to the folder that the node or the server has there too",
            )
        address = _address(environment.get(ADDRESS) or DEFAULT, ADDRESS)
        needed = environment.get(READY, "").split()
        paths = tuple(pathlib.Path(each) for each in needed if "/" in each)
        servers = tuple(_address(each, READY) for each in needed if "/" not in each)
        return cls(*address, pathlib.Path(folder), paths, servers)

    def missing(self) -> Iterator[str]:
        """Yield a line for everything that is not there for this machine to be ready."""
        for path in self.paths:
            # A folder that can be read but not entered is of no use.
            mode = os.R_OK | (os.X_OK if path.is_dir() else 0)
            if not os.access(path, mode):
                yield f"{path} cannot be read"
        for server in self.servers:
            try:
                socket.create_connection(server, PATIENCE).close()
            except OSError as error:
                yield f"{server[0]}:{server[1]} cannot be reached: {error.strerror or error}"

    def faults(self) -> Iterator[str]:
        """Yield a line if the counts cannot be read."""
        try:
            read_counts(self.folder)
        except DataError as error:
            yield error.message


class Endpoint(http.server.ThreadingHTTPServer):
    """A server of what one machine has counted."""

    daemon_threads = True

    def __init__(self, settings: EndpointSettings) -> None:
        self.settings = settings
        if ":" in settings.host:
            self.address_family = socket.AF_INET6
        super().__init__((settings.host, settings.port), _Handler)

    def answer(self, path: str) -> tuple[http.HTTPStatus, str, bytes]:
        """Return the status, the type and the content of the answer to a request."""
        match path:
            case "/metrics":
                try:
                    text = openmetrics_text(read_counts(self.settings.folder))
                except DataError as error:
                    return http.HTTPStatus.SERVICE_UNAVAILABLE, TEXT, f"{error.message}\n".encode()
                return http.HTTPStatus.OK, CONTENT_TYPE, text
            case "/healthz":
                lines = list(self.settings.faults())
            case "/readyz":
                lines = [*self.settings.faults(), *self.settings.missing()]
            case _:
                said = b"there are /metrics, /healthz and /readyz\n"
                return http.HTTPStatus.NOT_FOUND, TEXT, said
        status = http.HTTPStatus.SERVICE_UNAVAILABLE if lines else http.HTTPStatus.OK
        return status, TEXT, "".join(f"{line}\n" for line in lines or ["ok"]).encode()


TEXT = "text/plain; charset=utf-8"


def open_endpoint(settings: EndpointSettings) -> Endpoint:
    """Return a server that listens, for `serve_forever` in this thread or another.

    Raises:
      LanguageValueError: it cannot listen there.
      MissingExtraError: prometheus_client is not installed.
    """
    # Whoever asks for metrics would be told too late.
    openmetrics_text({})
    try:
        return Endpoint(settings)
    except OSError as error:
        raise LanguageValueError(
            "E896",
            f"cannot listen at {settings.host}:{settings.port}: {error.strerror or error}",
            help=f"set {ADDRESS} to HOST:PORT with a port that is free",
        ) from None


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version = "tffc"
    sys_version = ""

    def do_GET(self) -> None:
        assert isinstance(self.server, Endpoint)
        status, kind, content = self.server.answer(self.path.partition("?")[0])
        with contextlib.suppress(ConnectionError, TimeoutError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of what is asked every few seconds."""


def _address(text: str, variable: str) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(\d{1,5})", text, re.ASCII)
    if found is None or int(found[2]) >= 2**16:
        raise LanguageValueError(
            "E896",
            f"{text[:100]!r} in {variable} is no address",
            help="addresses are HOST:PORT, as in 127.0.0.1:9464; paths begin with / or ./",
        )
    return found[1].strip("[]"), int(found[2])
