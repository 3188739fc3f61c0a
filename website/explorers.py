"""Pages of `tffc explore` in pages of the documentation.

The mark `<!-- explore: TARGET -->` stands in a page where the site shows the page of that round.
The target is an example of the repository, or in a file that the page itself has after the mark
`<!-- file: NAME -->`, as in `tests/cli/pages.py`.
"""

from __future__ import annotations

import functools
import pathlib
import re
import subprocess
import sys
import tempfile

MARK = re.compile(r"^<!-- explore: (?P<target>\S+) -->$", re.MULTILINE)
FILE = re.compile(
    r"^<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<content>.*?)^```$", re.DOTALL | re.MULTILINE
)


def explored(page: str, root: pathlib.Path) -> list[tuple[str, str]]:
    """Return the targets of the marks of a page in Markdown, each with its page in HTML.

    Raises:
      subprocess.CalledProcessError: a target cannot be explored.
    """
    files = tuple((match["name"], match["content"]) for match in FILE.finditer(page))
    return [(mark["target"], _explore(mark["target"], files, root)) for mark in MARK.finditer(page)]


@functools.cache
def _explore(target: str, files: tuple[tuple[str, str], ...], root: pathlib.Path) -> str:
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "examples").symlink_to(root / "examples")
        for name, content in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")
        command = [sys.executable, "-m", "tffc", "explore", target, "--out", "-"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.stderr.write(ended.stderr)
            ended.check_returncode()
        return ended.stdout
