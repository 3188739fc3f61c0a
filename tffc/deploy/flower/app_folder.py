"""The folder of a Flower app that runs the rounds of a bundle."""

from __future__ import annotations

import json
import pathlib
import re
import string

from tffc.backends.bundle.bundle import Bundle
from tffc.deploy.export.kind import Exported
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.flower.bundle_file import encode_bundle_file
from tffc.support.version import VERSION

PACKAGE = "tffc_app"
"""The package of the app's two modules."""

PROJECT = "pyproject.toml"

TEMPLATES = pathlib.Path(__file__).with_name("app")
"""The folder of the templates for the app's files."""

FILES = re.compile(rf"{PROJECT}|README\.md|LICENSE|{PACKAGE}/(\w+\.(py|json)|__pycache__/.*)")
"""The files that the folder of an app may hold."""


def app_files(bundle: Bundle, name: str) -> dict[str, bytes]:
    """Return the files of the app of a bundle, by their paths in its folder.

    Raises:
      BundleError: the bundle has more files than an app can name.
    """
    usual = RunSettings()
    about = {field: json.dumps(getattr(usual, field)) for field in _SHOWN}
    about |= {"name": name, "package": PACKAGE, "version": VERSION, "form": bundle.form}

    def filled(template: str, **more: str) -> bytes:
        text = (TEMPLATES / f"{template}.in").read_text()
        return string.Template(text).substitute(about, **more).encode()

    does_server, does_node = "it asks nodes and merges their answers", "it folds its clients"
    files = {**bundle.encode(), **bundle.resource_files()}
    return {
        PROJECT: filled(PROJECT),
        "README.md": filled("README.md"),
        "LICENSE": filled("LICENSE"),
        f"{PACKAGE}/__init__.py": b'"""An app that tffc wrote."""\n',
        f"{PACKAGE}/server_app.py": filled(
            "side.py", side="server", does=does_server, function="server_app"
        ),
        f"{PACKAGE}/client_app.py": filled(
            "side.py", side="node", does=does_node, function="client_app"
        ),
        f"{PACKAGE}/bundle.json": encode_bundle_file(files),
    }


_SHOWN = ("rounds", "min_nodes", "min_replies", "fraction", "timeout", "pause", "attempts", "seed")


def project_name(path: pathlib.Path) -> str:
    """Return a project name for the app in a folder: the folder's name, reduced to allowed
    characters."""
    name = re.sub(r"[^a-z0-9]+", "-", path.resolve().name.lower()).strip("-")
    return name[:32].rstrip("-") or "tffc-app"


def export_app(bundle: Bundle, folder: pathlib.Path) -> Exported:
    """Return the app of a bundle, with the name of its folder."""
    return Exported(app_files(bundle, project_name(folder)), f"a Flower app of {bundle.form}")
