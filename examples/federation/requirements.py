"""Write `requirements.txt` beside this file: tffc's wheel, built of this checkout, and all that it
needs, each with its version and its SHA-256.

    python requirements.py [--python-version 3.12] [OPTION OF PIP...]

What pip resolves here is what `pip install --require-hashes` then installs, or nothing.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

HERE = pathlib.Path(__file__).parent
EXTRAS = "flower,masking,metrics,sign"


def requirements(report: dict[str, Any]) -> str:
    """Return the lines for what pip's report says it would install."""
    lines: list[str] = []
    for each in report["install"]:
        name, version = (each["metadata"][key] for key in ("name", "version"))
        digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name.lower()}=={version} --hash=sha256:{digest}\n")
    return "".join(sorted(lines))


def main() -> None:
    """Build the wheel, let pip resolve, and write the file."""
    pip = (sys.executable, "-m", "pip")
    for wheel in (HERE / "dist").glob("*.whl"):
        wheel.unlink()
    build = (*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", HERE / "dist", HERE.parents[1])
    subprocess.run(build, check=True)
    (wheel,) = (HERE / "dist").glob("tffc-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        resolve = ("install", "--quiet", "--dry-run", "--ignore-installed", "--report", report)
        # For another release of Python, pip wants a folder, into which nothing is installed.
        wanted = (
            "--target",
            pathlib.Path(folder, "none"),
            "--only-binary",
            ":all:",
            *sys.argv[1:],
            f"{wheel}[{EXTRAS}]",
        )
        subprocess.run((*pip, *resolve, *wanted), check=True)
        text = requirements(json.loads(report.read_bytes()))
    (HERE / "requirements.txt").write_text(text)


if __name__ == "__main__":
    main()
