"""The configurations of a run, in the job, and of the server and a site, in files that they have.

Unlike a job, these files are their own: who submits a job cannot change them.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from tffc.deploy.federation.settings import (
    Config,
    NodeSettings,
    RunSettings,
    ServerSettings,
    check_names,
)
from tffc.support.errors import LanguageValueError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, read_json
from tffc.support.guards import is_dict

SITE_FILE = "tffc.json"
"""The file of a site's configuration, in the folder `local` of its workspace."""

SERVER_FILE = "tffc-server.json"
"""The file of the server's configuration, in the same folder of its own workspace."""

LONGEST = 2**20
"""The most bytes of these files."""

TABLES = "docs/nvflare.md has tables of all entries"

WITHOUT_EFFECT: Mapping[type, Mapping[str, str]] = {
    RunSettings: {
        "bundle": "the job holds the whole bundle",
        "buffer": "rounds on NVFlare are not buffered",
        "in-flight": "rounds on NVFlare are not buffered",
        "max-age": "rounds on NVFlare are not buffered",
    },
    ServerSettings: {},
    NodeSettings: {
        "name": "NVFlare knows the site's name",
        "worker": "NVFlare keeps the site's process",
        "cache": "the job holds the whole bundle",
    },
}
"""The entries of each configuration that other federations have, and why not NVFlare."""


def read_run_settings(config: Config, out: pathlib.Path, folder: pathlib.Path) -> RunSettings:
    """Parse the configuration of a run; its folder is by default `out`.

    What it asks of the server must be what the server's configuration, in the folder, allows: who
    submits a job need not be one who may run code at the server.

    Raises:
      LanguageValueError: an entry is unknown, invalid, has no effect, or is not allowed.
    """
    _check_names(RunSettings, "the job's configuration", config)
    server = _read(folder / SERVER_FILE)
    _check_names(ServerSettings, SERVER_FILE, server)
    settings = ServerSettings.read(server).check(RunSettings.read(config))
    return settings if settings.out is not None else dataclasses.replace(settings, out=out)


def read_site_settings(folder: pathlib.Path, name: str, simulated: Sequence[str]) -> NodeSettings:
    """Parse the configuration of the site of a name, in the folder.

    In masked sums it takes part under this name alone.  `simulated` has the names of all sites of a
    simulation, which share one configuration: each has a part of the clients.

    Raises:
      LanguageValueError: it cannot be read, or an entry is unknown, invalid, or has no effect.
    """
    config = _read(folder / SITE_FILE)
    _check_names(NodeSettings, SITE_FILE, config)
    if name in simulated and "partition-id" not in config:
        place = sorted(simulated).index(name)
        config = {"num-partitions": len(simulated), "partition-id": place, **config}
    if not config.get("data"):
        raise LanguageValueError(
            "E766",
            "the site's configuration does not say where its clients' data is",
            help=f'write {{"data": "/path/to/data"}} to {folder / SITE_FILE}',
        )
    return NodeSettings.read({**config, "name": name}, {})


@reader("the configuration of a site", LanguageValueError)
def _read(path: pathlib.Path) -> Config:
    try:
        content = read_json(read_regular(path, LONGEST))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, str(error.strerror or error)) from None
    except NotJsonError as error:
        raise _unreadable(path, str(error)) from None
    if not is_dict(content):
        raise _unreadable(path, "it is not an object")
    return {str(name): value for name, value in content.items()}


def _unreadable(path: pathlib.Path, reason: str) -> LanguageValueError:
    return LanguageValueError("E766", f"{path} cannot be read: {reason}", help=TABLES)


def _check_names(kind: type, what: str, config: Config) -> None:
    for name, value in config.items():
        reason = WITHOUT_EFFECT[kind].get(name)
        if reason is not None and value != "":
            raise LanguageValueError(
                "E766", f"{name!r} in {what} has no effect: {reason}", help="leave it out"
            )
    check_names(kind, what, config)
