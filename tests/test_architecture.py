"""The architecture page says what the imports are, and files and functions stay short."""

from __future__ import annotations

import ast
import functools
import graphlib
import io
import pathlib
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.package_source import MODULES, nodes
from tests.processes import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
ENTRY = ("__init__", "__main__")
"""What a user imports or runs: it hands names on from any package, each when it is first used."""


def imports(path: pathlib.Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it the import stands."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            if node.module == "tffc":
                yield from (f"tffc.{alias.name}" for alias in node.names)
            else:
                yield node.module


def package(path: pathlib.Path) -> str:
    """The package of tffc that a file belongs to."""
    return path.relative_to(ROOT / "tffc").with_suffix("").parts[0]


def drawn_packages() -> list[str]:
    """The packages of the picture, from the top."""
    picture = PAGE.split("```text\ncli", 1)[1].split("```", 1)[0]
    return [line.split()[0] for line in f"cli{picture}".splitlines() if line.strip()]


def test_every_package_is_drawn_once() -> None:
    assert sorted(drawn_packages()) == sorted({package(path) for path in MODULES} - set(ENTRY))


def test_packages_import_only_from_those_below() -> None:
    order = drawn_packages()
    upward = [
        f"{module} imports {target}"
        for module, targets in imported_modules().items()
        for target in targets
        if order.index(target.split(".")[1]) < order.index(module.split(".")[1])
    ]
    assert upward == []


JUDGES = {
    "tffc.assurance.proof": ("language", "graphs", "support"),
    "tffc.runtime.interpreter": ("runtime.frameworks", "language", "graphs", "support"),
    "tffc.runtime.frameworks": ("language", "graphs", "support"),
}
"""Packages that say what is right, and all that they may import."""


@pytest.mark.parametrize("judge", JUDGES)
def test_judges_share_little_with_the_judged(judge: str) -> None:
    allowed = (f"{judge}.", *(f"tffc.{name}." for name in JUDGES[judge]))
    shared = {
        target
        for module, targets in imported_modules().items()
        if module.startswith(judge)
        for target in targets
        if not f"{target}.".startswith(allowed) or target.startswith("tffc.graphs.rewrites")
    }
    assert shared == set()


def test_the_walk_leads_through_files_that_there_are() -> None:
    walk = PAGE.split("## A walk through the files", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"`([\w/]+\.py)`", walk)
    assert named
    assert [file for file in named if not (ROOT / "tffc" / file).is_file()] == []


def test_the_map_of_tests_names_every_folder_that_is_not_called_like_a_package() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    part = page.split("## Map of tests", 1)[1].split("\n## ", 1)[0]
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert {
        name for name in folders - {*drawn_packages()} if f"`tests/{name}`" not in part
    } == set()


def module_name(path: pathlib.Path) -> str:
    """The dotted name of a file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules() -> dict[str, set[str]]:
    """The modules of the package that each imports, also inside functions and for types only."""
    inner = {module_name(path): path for path in MODULES if package(path) not in ENTRY}
    found: dict[str, set[str]] = {}
    for name, path in inner.items():
        targets = set(imports(path))
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                parts = {f"{node.module}.{alias.name}" for alias in node.names} & inner.keys()
                targets |= parts
                if len(parts) == len(node.names):
                    targets.discard(node.module or "")
        found[name] = targets & inner.keys() - {name}
    return found


def test_modules_import_one_another_in_no_circle() -> None:
    graph = imported_modules()
    graphlib.TopologicalSorter(graph).prepare()


WORDS_OF_THEIR_OWN = {
    "tffc.assurance.audit": "it speaks of the same things to people who read no code",
    "tffc.assurance.proof": "it says again what others say, and shares no code with them",
}
"""Packages whose classes may be called as those of others, and why."""


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    own = tuple(WORDS_OF_THEIR_OWN)
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not module_name(path).startswith(own):
                homes[node.name].append(module_name(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("click", "cli/"),
        ("rich", "cli/"),
        ("pytest", "assurance/golden/"),
        ("cryptography", ("runtime/masking/", "assurance/trust/")),
        ("securesystemslib", "assurance/trust/"),
        ("flwr", "deploy/flower/"),
        ("nvflare", "deploy/nvflare/"),
        ("prometheus_client", "deploy/operations/"),
        ("tensorflow", ""),
        ("jax", ""),
    ],
)
def test_libraries_stay_where_they_belong(library: str, homes: str | tuple[str, ...]) -> None:
    users = [
        path.relative_to(ROOT / "tffc").as_posix()
        for path in MODULES
        if any(name.split(".")[0] == library for name in imports(path))
    ]
    assert [user for user in users if not homes or not user.startswith(homes)] == []


OPTIONS_OF_OTHERS = {
    "notebook/cell_magic.py": "the options of the magic",
    "assurance/audit/page.py": "a whole command, tffc approve",
    "assurance/audit/policy_reading.py": "a whole command, tffc audit --help",
    "tff/releases.py": "pip's options",
    "deploy/beam/__init__.py": "Beam's options",
    "deploy/beam/engine.py": "Beam's options",
    "deploy/beam/transforms.py": "Beam's options",
    "deploy/ray/__init__.py": "the options of the engine, given as text",
    "deploy/ray/options.py": "the options of the engine, given as text",
    "deploy/ray/pool.py": "the options of the engine, given as text",
    "deploy/flower/bundle_file.py": "a whole command, tffc export --to flower",
    "deploy/federation/node.py": "options of Flower's commands",
    "deploy/federation/settings.py": "options of Flower's commands",
    "deploy/flower/claims.py": "options of Flower's commands",
    "deploy/flower/run.py": "options of Flower's commands",
    "assurance/golden/pytest_plugin.py": "pytest's options",
    "graphs/proto/generate.py": "protoc's options",
}
"""Modules outside of `cli` whose texts name options, and whose options these are."""


def test_the_library_names_no_option_of_the_command_line() -> None:
    found: set[str] = set()
    for path in MODULES:
        documented = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
        for node in nodes(path) if package(path) != "cli" else ():
            if isinstance(node, ast.Constant) and id(node) not in documented:
                if re.search(r"(?<![\w-])--[a-z]", str(node.value)):
                    found.add(path.relative_to(ROOT / "tffc").as_posix())
    assert found == set(OPTIONS_OF_OTHERS)


LONGEST_FILE = 600
LONGEST_FUNCTION = 75
"""Lines of a file, and lines of code in the body of a function."""


@functools.cache
def code_lines(path: pathlib.Path) -> frozenset[int]:
    """The numbers of the lines of a file that are neither blank nor comments nor docstrings."""
    text = path.read_text()
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return frozenset(lines)


NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def test_files_and_functions_are_short() -> None:
    files = {str(path): path.read_text().count("\n") for path in MODULES}
    assert {path: n for path, n in files.items() if n > LONGEST_FILE} == {}
    functions = {
        f"{path}:{node.lineno}": len(code_lines(path) & set(range(start, end + 1)))
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and (end := node.end_lineno)
        if (end - (start := node.body[0].lineno)) >= LONGEST_FUNCTION
    }
    assert {place: n for place, n in functions.items() if n > LONGEST_FUNCTION} == {}
