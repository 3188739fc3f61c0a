"""Runs the tests of the messages under every major release of protobuf that tffc allows.

    python tests/graphs/proto/check_protobuf_versions.py [FOLDER]

Makes one virtual environment a release in FOLDER, or in a temporary folder, and so takes a minute
and needs a package index.  Ends with status 1 if a release fails.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import venv

from tests.processes import ROOT

RELEASES = ("5.29.*", "6.33.*", "7.*")


def run_under(release: str, folder: pathlib.Path) -> bool:
    """Whether the tests pass with this release of protobuf."""
    environment = folder / f"protobuf-{release.rstrip('.*')}"
    venv.create(environment, with_pip=True, clear=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", f"protobuf=={release}", "pytest>=8.2"]
    subprocess.run(install, check=True)
    tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "tests/graphs/proto"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(tests, cwd=ROOT, env=variables, check=False).returncode == 0


def main(folder: pathlib.Path) -> int:
    results = {release: run_under(release, folder) for release in RELEASES}
    for release, passed in results.items():
        # What the script is for.
        print(f"protobuf {release}: {'passed' if passed else 'FAILED'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(pathlib.Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(pathlib.Path(temporary)))
