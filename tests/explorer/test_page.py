"""The page: its data is only text, and only its own script runs."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.explorer.conftest import ROUND, Describe
from tests.processes import ROOT
from tffc.explorer.page import page

WEB = ROOT / "tffc" / "explorer" / "web"
BUILT = ROOT / "tffc" / "explorer" / "built"

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "&lt;b&gt;&amp;&#60;",
    "\u202e\u2028\u2029\x00\x1b[2J",
    "'--></style><style>*{display:none}",
)


class Reader(html.parser.HTMLParser):
    """The elements of a page in order, with their attributes and the content of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.contents.append("")

    def handle_data(self, data: str) -> None:
        if self.contents:
            self.contents[-1] += data

    def data(self, name: str) -> Any:
        """Return the content of the element with an id, parsed as JSON."""
        pairs = zip(self.elements, self.contents, strict=True)
        (text,) = (text for (_, given), text in pairs if given.get("id") == name)
        return json.loads(text)


def hostile(name: str) -> dict[str, Any]:
    """Return a description that has a name wherever a program can have names."""
    return {"title": name, "form": name, "texts": [{"title": name, name: [name]}], "graphs": [name]}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_gets_out_of_its_text(name: str) -> None:
    plain, found = Reader(page(hostile("x"))), Reader(page(hostile(name)))
    assert found.elements == plain.elements
    held = found.data("description")
    assert held["title"].isprintable()
    if name.isprintable():
        assert held["texts"] == [{"title": name, name: [name]}]
        assert found.data("graph-0") == name


def test_a_program_with_hostile_names_is_shown_as_it_is(described: Describe) -> None:
    name = '</script><script>alert("1")</script>'
    text = ROUND.replace(
        "DATA = collections.OrderedDict(",
        f"DATA = collections.OrderedDict(\n    **{{{name!r}: np.int32}},",
    )
    made = page(described(text).plain)
    assert made.count("<script") == page(described().plain).count("<script")
    assert name not in made
    assert name in Reader(made).data("description")["round"]["inputs"][1]["type"]


def test_the_policy_allows_the_own_script_and_style_only(described: Describe) -> None:
    made = page(described().plain)
    found = Reader(made)
    (policy,) = (a["content"] for _, a in found.elements if "http-equiv" in a)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'{digest(made, 'script')}'",
        "style-src": f"'{digest(made, 'style')}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def digest(made: str, tag: str) -> str:
    (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def test_nothing_is_loaded_and_no_element_has_a_handler(described: Describe) -> None:
    found = Reader(page(described().plain))
    names = {name for _, given in found.elements for name in given}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "type", "id"}


def test_the_script_makes_no_markup() -> None:
    script = "".join(path.read_text() for path in sorted((WEB / "src").glob("*.js")))
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(", script) == []
    assert re.findall(r"fetch\(|XMLHttpRequest|import\(|https?://(?!www\.w3\.org)", script) == []


def test_the_same_description_gives_the_same_page(described: Describe) -> None:
    first, second = (page(described().plain) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["explorer.js", "explorer.css"])
def test_what_is_built_is_built_of_these_sources(name: str) -> None:
    sources = ["package-lock.json", *sorted(f"src/{p.name}" for p in (WEB / "src").iterdir())]
    found = hashlib.sha256()
    for source in sources:
        found.update(f"{source}\n".encode())
        found.update((WEB / source).read_bytes())
    first = (BUILT / name).read_text().partition("\n")[0]
    assert found.hexdigest() in first, "run `npm ci && npm run build` in tffc/explorer/web"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not there: install Node")
def test_the_build_gives_the_same_bytes(tmp_path: pathlib.Path) -> None:
    ignored = shutil.ignore_patterns("node_modules")
    web = shutil.copytree(WEB, tmp_path / "web", ignore=ignored)
    for command in (("npm", "ci"), ("npm", "run", "build")):
        ran = subprocess.run(command, cwd=web, capture_output=True, text=True, check=False)
        if command[-1] == "ci" and "ENOTFOUND" in ran.stderr:
            pytest.skip("the registry of npm cannot be reached")
        assert ran.returncode == 0, ran.stderr
    made = {path.name: path.read_bytes() for path in (tmp_path / "built").iterdir()}
    assert made == {path.name: path.read_bytes() for path in BUILT.iterdir()}


def test_licences_are_there() -> None:
    text = (BUILT / "LICENSES.txt").read_text()
    lock = json.loads((WEB / "package-lock.json").read_text())["packages"]
    for name in ("dagre", "graphlib"):
        assert f"@dagrejs/{name} {lock[f'node_modules/@dagrejs/{name}']['version']}" in text
    assert text.count("Permission is hereby granted") == 2
