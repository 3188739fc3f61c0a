"""The folder of a Flower app that runs the rounds of a bundle."""

from __future__ import annotations

import json
import pathlib
import re

from tffc.backends.bundle.bundle import Bundle
from tffc.flower.bundle_file import encode_bundle_file
from tffc.flower.settings import RunSettings
from tffc.version import VERSION

PACKAGE = "tffc_app"
"""The package of the app's two modules."""

PROJECT = "pyproject.toml"

MODULE = '''\
"""The {side}'s side of the app: {does}."""

from tffc.flower.apps import {function}

app = {function}(__file__)
'''

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
description = "Federated rounds that tffc compiled"
license = {{ file = "LICENSE" }}
dependencies = ["flwr>=1.41,<2", "tffc[flower]>={version}"]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]

[tool.flwr.app]
publisher = "tffc"

[tool.flwr.app.components]
serverapp = "{package}.server_app:app"
clientapp = "{package}.client_app:app"

[tool.flwr.app.config]
{config}"""

CONFIG = """\
# How many rounds there are in all, and the folder at the server that keeps the run.
rounds = {rounds}
out = ""
# Go on with the run in that folder.
resume = false
# A round begins with so many nodes, asks this fraction of them, and counts with so many replies
# within the seconds of the timeout; else it begins again after a pause, so many times in all.
min-nodes = {min_nodes}
min-replies = {min_replies}
fraction = {fraction}
timeout = {timeout}
pause = {pause}
attempts = {attempts}
# Decides which nodes are asked where that are not all.
seed = {seed}
# "open" lets the server see each node's part of a secure sum.
secure-sums = ""
# What the bundle may do at the server besides computing: files, network, python, unknown.
allow-effects = ""
# The folder of the bundle at the server, where bundle.json names files that it does not hold.
bundle = ""
# For nodes of a simulation alone: all clients' data, divided between them, and where what clients
# have in the end is kept.
data = ""
clients-out = ""
"""

README = """\
# {name}

A [Flower](https://flower.ai) app that runs the rounds of a compiled federated program.
`{package}/bundle.json` holds the bundle, of {form}, with the hash of each file; `tffc` runs it.

    pip install 'tffc[flower]'
    flwr run . CONNECTION --stream -c 'rounds=10 out="/path/to/run"'

`pyproject.toml` says what else there is to configure. Every node says where its clients' data is:

    flower-supernode ... --node-config 'data="/path/to/data" policy="/path/to/policy.yaml"'
"""

LICENSE = """\
The Python files in this folder were written by tffc and are under the Apache License 2.0,
https://www.apache.org/licenses/LICENSE-2.0

The program in bundle.json is under the license of whoever wrote it, who may replace this file.
"""

FILES = re.compile(rf"{PROJECT}|README\.md|LICENSE|{PACKAGE}/(\w+\.(py|json)|__pycache__/.*)")
"""The files that the folder of an app may hold."""


def app_files(bundle: Bundle, name: str) -> dict[str, bytes]:
    """Return the files of the app of a bundle, by their paths in its folder.

    Raises:
      BundleError: it has more files than an app can name.
    """
    usual = RunSettings()
    values = {field: json.dumps(getattr(usual, field)) for field in _SHOWN}
    config = CONFIG.format(**values)
    about = {"name": name, "package": PACKAGE, "version": VERSION, "form": bundle.form}
    texts = {
        PROJECT: PYPROJECT.format(**about, config=config),
        "README.md": README.format(**about),
        "LICENSE": LICENSE,
        f"{PACKAGE}/__init__.py": '"""An app that tffc wrote."""\n',
        f"{PACKAGE}/server_app.py": MODULE.format(
            side="server", does="it asks nodes and merges their answers", function="server_app"
        ),
        f"{PACKAGE}/client_app.py": MODULE.format(
            side="node", does="it folds its clients", function="client_app"
        ),
    }
    files = {path: text.encode() for path, text in texts.items()}
    return {**files, f"{PACKAGE}/bundle.json": encode_bundle_file(bundle.encode())}


_SHOWN = ("rounds", "min_nodes", "min_replies", "fraction", "timeout", "pause", "attempts", "seed")


def project_name(path: pathlib.Path) -> str:
    """Return a project name for the app in a folder: the folder's name, reduced to allowed
    characters."""
    found = re.sub(r"[^a-z0-9]+", "-", path.resolve().name.lower()).strip("-")
    return found[:32].rstrip("-") or "tffc-app"
