"""Nothing tells users to install a name that anybody may register on the package index."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

from tests.processes import ROOT
from tffc.support.extras import installation

NAMES = re.compile(r"tffc([-_]reader)?(?![\w-])", re.IGNORECASE)
"""A name of ours; pip ignores case, and takes `_` for `-`."""

COMMANDS = re.compile(r"\b(?:pip3?|pipx|uv)(?: -\S+)* (?:install|download|wheel|add|run|sync)\b")
END = re.compile(r"`|&&|;|,\s|\||#(?= )|\n|\Z")

WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")

PINNED = re.compile(r"(\[[\w,]*\])? @ (file|https)://\S+#sha256=\w+")
"""The rest of a requirement that says where the package is and which hash it has."""


DEPENDENCIES = re.compile(r"^dependencies = \[(.*?)\]$", re.MULTILINE | re.DOTALL)
"""What a project of a page or an example depends on."""


def installed_by_name(text: str) -> list[str]:
    """Return the arguments of commands of pip and uv in a text that are only names of ours."""
    found: list[str] = []
    for command in COMMANDS.finditer(re.sub(r"\\\n\s*", " ", text)):
        rest = command.string[command.end() :]
        for word in WORD.findall(END.split(rest, maxsplit=1)[0]):
            bare = word.strip("'\",")
            name = NAMES.match(bare)
            if name is not None and not is_elsewhere(bare[name.end() :]):
                found.append(word)
    for listed in DEPENDENCIES.findall(text):
        found.extend(each for each in re.findall(r'"(.*?)"', listed) if NAMES.match(each))
    return found


def is_elsewhere(rest: str) -> bool:
    """Return whether what comes after a name makes it a path, or pins it."""
    return rest.startswith(("/", ".")) or PINNED.fullmatch(rest) is not None


def sources(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of the checkout that git does not ignore, with an index in a folder.

    A copy of the checkout without `.git` has them as well.
    """
    index = {"GIT_DIR": str(folder / "index"), "GIT_WORK_TREE": str(ROOT)}
    environment = {**os.environ, **index}
    subprocess.run(["git", "init", "--quiet"], cwd=ROOT, env=environment, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_nobody_is_told_to_install_a_name_of_ours(tmp_path: pathlib.Path) -> None:
    paths = sources(tmp_path)
    assert ROOT / "README.md" in paths
    found: dict[str, list[str]] = {}
    for path in paths:
        if path == pathlib.Path(__file__) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if words := installed_by_name(text):
            found[path.relative_to(ROOT).as_posix()] = words
    assert found == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pip install tffc", ["tffc"]),
        ("- run: pip install tffc pytest\n", ["tffc"]),
        ("`pip install 'tffc[masking]'` and", ["'tffc[masking]'"]),
        ("pip install -q --pre \\\n    tffc-reader", ["tffc-reader"]),
        ("python -m pip install TFFC_reader==1", ["TFFC_reader==1"]),
        ("RUN pip install tensorflow tffc>=0.1 && x", ["tffc>=0.1"]),
        ("uv add 'tffc @ https://example.org/tffc.whl'", ["'tffc @ https://example.org/tffc.whl'"]),
        ("pip install '.[masking]'  # in tffc's checkout", []),
        ("pip install ./reader", []),
        ("pip install ./tffc-0.1.0-py3-none-any.whl", []),
        ("pip install tffc-0.1.0-py3-none-any.whl", []),
        ("pip install 'tffc[jax] @ file:///w/tffc-0.1.0-py3-none-any.whl#sha256=ab'", []),
        ("pip install tffc_app", []),
        ("pip install . && tffc doctor", []),
        ("pip install tensorflow, or leave the choice to tffc", []),
        ('dependencies = ["flwr>=1.41,<2", "tffc[flower]>=0.1"]\n', ["tffc[flower]>=0.1"]),
        ('dependencies = [\n    "click",\n    "tffc",\n]\n', ["tffc"]),
        ('all = ["tffc[beam,flower]"]\n', []),
    ],
)
def test_what_is_found(text: str, names: list[str]) -> None:
    assert installed_by_name(text) == names


def test_the_words_of_a_help() -> None:
    assert installation("masking") == "in tffc's checkout: pip install '.[masking]'"
    assert installation() == "in tffc's checkout: pip install ."


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
def test_pip_refuses_a_wheel_of_another_hash(tmp_path: pathlib.Path, is_right: bool) -> None:
    wheel = tmp_path / "small_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        folder = "small_package-1.0.dist-info"
        about = "Metadata-Version: 2.1\nName: small-package\nVersion: 1.0\nProvides-Extra: more\n"
        archive.writestr(f"{folder}/METADATA", about)
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes() if is_right else b"").hexdigest()
    requirement = f"small-package[more] @ {wheel.as_uri()}#sha256={digest}"
    target = ("--no-index", "--target", str(tmp_path / "target"))
    ended = subprocess.run(
        [sys.executable, "-m", "pip", "install", *target, requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) == is_right, ended.stderr
    assert ("DO NOT MATCH THE HASHES" in ended.stderr) != is_right
