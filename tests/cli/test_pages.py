"""The pages of the documentation show the current output of commands."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import re

import pytest
from click.testing import CliRunner

from tests.cli import pages
from tests.cli.pages import (
    BEAM_PAGES,
    DOCS,
    JAX_PAGES,
    PAGES,
    RAY_PAGES,
    ROOT,
    TFF_PAGES,
    TORCH_PAGES,
    render_in,
    rendered,
    unheld,
)
from tests.deploy.test_beam import needs_beam
from tests.deploy.test_ray import needs_ray
from tests.large import LARGE
from tests.shell import Shell
from tests.tff.wheel import needs_wheel
from tffc.cli.application import application
from website import anchors

needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed: pip install 'tffc[jax]'"
)
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: pip install 'tffc[torch]'",
)
RAY_WARNS = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")
UPDATE = "write it again: python -m tests.cli.pages"


def is_large(name: str) -> bool:
    """Return whether a page is that of a large example."""
    return pathlib.PurePath(name).stem in LARGE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *PAGES,
        *(pytest.param(name, marks=needs_beam) for name in BEAM_PAGES),
        *(pytest.param(name, marks=(needs_ray, RAY_WARNS)) for name in RAY_PAGES),
        *(pytest.param(name, marks=needs_jax) for name in JAX_PAGES),
        *(
            pytest.param(name, marks=[needs_torch, *([pytest.mark.long] if is_large(name) else [])])
            for name in TORCH_PAGES
        ),
        *(pytest.param(name, marks=needs_wheel) for name in TFF_PAGES),
    ],
)
def test_page(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    try:
        found, shown = render_in(tmp_path, name), (DOCS / name).read_text(encoding="utf-8")
    finally:
        if name in RAY_PAGES:
            importlib.import_module("ray").shutdown()
    if name.startswith(("examples/", "tutorials/")):
        check_close(found, shown)
    else:
        assert DIGEST.sub("D", found) == DIGEST.sub("D", shown), UPDATE


FLOAT = re.compile(r"\d+\.\d+(?:e-?\d+)?")


DIGEST = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{64})\b")


def check_close(found: str, shown: str) -> None:
    """Checks that texts are the same but for digests of programs, whose names depend on what the
    process has traced before, and for the last digits of floats, which machines decide."""
    found, shown = DIGEST.sub("D", found), DIGEST.sub("D", shown)
    assert FLOAT.sub("F", found) == FLOAT.sub("F", shown), UPDATE
    for one, other in zip(FLOAT.findall(found), FLOAT.findall(shown), strict=True):
        assert float(one) == pytest.approx(float(other), rel=0.02, abs=0.02), UPDATE


ALL = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md"))
)


@pytest.mark.parametrize("name", ALL)
def test_every_block_is_run_or_says_why_not(name: str) -> None:
    assert unheld(name) == [], "list the page in tests/cli/pages.py, which says what a block may be"


def test_a_block_that_nothing_runs_is_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "one.py").write_text("def f():\n    return 1\n")

    def found(name: str, *blocks: str) -> list[int]:
        text = "\n".join(blocks)
        (tmp_path / "docs" / name).write_text(text)
        left = unheld(f"docs/{name}")
        return [number for number, block in enumerate(blocks) if block in left]

    sh, output = "```sh\ntffc print x\n```\n", "```text\n(x -> x)\n```\n"
    excerpt, other = "```python\nreturn 1\n```\n", "```python\nreturn 2\n```\n"
    why, none = "<!-- not run: it needs Docker -->\n", "<!-- not run:  -->\n"
    docker = "```dockerfile\nFROM x\n```\n"
    assert found("keras.md", sh, output, excerpt, why + docker) == []
    assert found("keras.md", output, other, docker, none + docker, f"  {docker}") == [0, 1, 2, 3, 4]
    assert found("new.md", sh, output, why + output) == [0, 1]
    assert unheld("docs/new.md")[:1] == [sh]
    (tmp_path / "docs" / "new.md").write_text("```text\n")
    assert unheld("docs/new.md") == ["a fence without its other end"]


def test_a_command_that_fails_unshown_is_found(tmp_path: pathlib.Path) -> None:
    shell = Shell(tmp_path)
    shown = "```sh\ntffc explain E000\n```\n\n```text\n```\n"
    assert "there is no error code E000" in rendered(shown, shell)
    with pytest.raises(AssertionError, match="there is no error code E000"):
        rendered("```sh\ntffc explain E000\n```\n", shell)


MODULE = "module.py"

NOT_IMPORTED = """\
raise SystemExit("imported")
LIMIT = float("1")
number = 1

@computation
def count(state, data): ...

def helper(): ...

temperature = make()
added = federated_computation(lambda state: state)
"""


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [
        ("tffc ver", 1, ["verify", "verify-signature"]),
        ("tffc compile --form m", 3, ["mapreduce", "mergeable"]),
        ("tffc explain --", 2, ["--help"]),
        ("tffc explain e92", 2, ["E920", "E921", "E922"]),
        ("tffc help tutorials", 2, [""]),
        ("tffc help avera", 2, ["averaging-by-hand"]),
        ("tffc help E92", 2, ["E920", "E921", "E922"]),
        ("tffc passes low", 2, ["lower-select"]),
        ("tffc opt x.pb --passes lower-select,call", 4, ["lower-select,call-dominant"]),
        ("tffc opt x.pb --print-after cha", 4, ["change"]),
        ("tffc pipelines show b", 3, ["broadcast"]),
        # Bash takes a colon as a word.
        (f"tffc print {MODULE} : tem", 4, ["temperature"]),
        (f"tffc print {MODULE} :", 3, ["count", "temperature", "added"]),
        (f"tffc run {MODULE} : temperature.", 4, ["temperature.initialize", "temperature.next"]),
        ("tffc run x --evaluate missing.py : x", 6, [""]),
    ],
)
def test_completion(
    words: str,
    position: int,
    expected: list[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / MODULE).write_text(NOT_IMPORTED)
    environment = {"_TFFC_COMPLETE": "bash_complete", "COMP_WORDS": words}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment, "COMP_CWORD": str(position)}.items():
            patch.setenv(name, value)
        result = CliRunner().invoke(application, prog_name="tffc")
    assert [line.partition(",")[2] for line in result.output.splitlines()] == expected


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached, todo = {ROOT / "README.md"}, [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        todo += [path for path in targets - reached if path.suffix == ".md" and path.is_file()]
        reached |= targets
    assert [str(path) for path in sorted(DOCS.rglob("*.md")) if path not in reached] == []


def links(page: pathlib.Path) -> list[str]:
    return anchors.links(page.read_text(encoding="utf-8"))
