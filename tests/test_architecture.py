"""The architecture page says what the imports are, and rooms and functions stay small."""

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

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MODULES = sorted((ROOT / "tffc").rglob("*.py"))
ENTRY = ("__init__", "__main__")
"""What a user imports or runs: it hands names on from any room, each when it is first used."""


@functools.cache
def nodes(path: pathlib.Path) -> list[ast.AST]:
    """All nodes of the syntax tree of a file."""
    return list(ast.walk(ast.parse(path.read_text())))


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


def room(path: pathlib.Path) -> str:
    """The room that a file of the package belongs to."""
    return path.relative_to(ROOT / "tffc").with_suffix("").parts[0]


def imported_rooms() -> dict[str, set[str]]:
    """The other rooms that each room imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        if room(path) not in ENTRY:
            found[room(path)] |= {name.split(".")[1] for name in imports(path) if "tffc." in name}
    return {importer: imported - {importer} for importer, imported in found.items()}


def drawn_layers() -> list[list[str]]:
    """The rooms of each layer of the picture, from the top."""
    picture = PAGE.split("```text\n", 1)[1].split("```", 1)[0]
    lines = (line for line in picture.splitlines() if line.strip(" │"))
    return [re.split(r"\s{2,}", line.strip())[0].split(" · ") for line in lines]


def test_every_room_is_drawn_once() -> None:
    drawn = sorted(name for layer in drawn_layers() for name in layer)
    assert drawn == sorted({room(path) for path in MODULES} - set(ENTRY))


def test_rooms_import_only_from_layers_below() -> None:
    height = {name: -depth for depth, layer in enumerate(drawn_layers()) for name in layer}
    upward = [
        f"{importer} imports {imported}"
        for importer, rooms in imported_rooms().items()
        for imported in rooms
        if height[imported] >= height[importer]
    ]
    assert upward == []


def test_the_table_tells_who_imports_whom() -> None:
    order = [name for layer in drawn_layers() for name in layer]
    found = imported_rooms()
    rows = [
        f"| {name} | {', '.join(sorted(found.get(name, ()), key=order.index)) or 'nothing'} |"
        for name in order
    ]
    table = "\n".join(rows)
    assert table in PAGE, f"the page should say:\n{table}"


def test_the_walk_leads_through_files_that_there_are() -> None:
    walk = PAGE.split("## A walk through the files", 1)[1].split("\n## ", 1)[0]
    named = re.findall(r"`([\w/]+\.py)`", walk)
    assert named
    assert [file for file in named if not (ROOT / "tffc" / file).is_file()] == []


LATE = {
    ("tffc.ir.nodes", "tffc.ir.notation.structural_text"): "a node says itself how it is drawn",
    ("tffc.ir.nodes", "tffc.ir.wire"): "a node gives its message itself",
}
"""Imports inside functions that close a cycle, and why they do."""


def module_name(path: pathlib.Path) -> str:
    """The dotted name of a file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules() -> dict[str, set[str]]:
    """The modules of the package that each imports, also inside functions and for types only."""
    inner = {module_name(path): path for path in MODULES if room(path) not in ENTRY}
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
    for importer, imported in LATE:
        assert imported in graph[importer], "it is not imported any more"
        graph[importer].remove(imported)
    graphlib.TopologicalSorter(graph).prepare()


WORDS_OF_THEIR_OWN = {
    "audit": "it speaks of the same things to people who read no code",
    "proof": "it says again what others say, and shares no code with them",
}
"""Rooms whose classes may be called as those of others, and why."""


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and room(path) not in WORDS_OF_THEIR_OWN:
                homes[node.name].append(module_name(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("click", "cli/"),
        ("rich", "cli/"),
        ("pytest", "golden/"),
        ("cryptography", "masking/"),
        ("flwr", "flower/"),
        ("tensorflow", ""),
        ("jax", ""),
    ],
)
def test_libraries_stay_where_they_belong(library: str, homes: str) -> None:
    users = [
        path.relative_to(ROOT / "tffc").as_posix()
        for path in MODULES
        if any(name.split(".")[0] == library for name in imports(path))
    ]
    assert [user for user in users if not homes or not user.startswith(homes)] == []


OPTIONS_OF_OTHERS = {
    "audit/policy.py": "a whole command, tffc audit --help",
    "compat/finder.py": "pip's options",
    "export/keras.py": "still an option of tffc export",
    "engines/beam.py": "Beam's options",
    "engines/beam_transforms.py": "Beam's options",
    "engines/ray.py": "the options of the engine, given as text",
    "engines/table.py": "the options of engines, given as text",
    "flower/bundle_file.py": "a whole command, tffc export --to flower",
    "flower/node.py": "options of Flower's commands",
    "flower/settings.py": "options of Flower's commands",
    "golden/pytest_plugin.py": "pytest's options",
    "proto/generate.py": "protoc's options",
}
"""Modules outside of `cli` whose texts name options, and whose options these are."""


def test_the_library_names_no_option_of_the_command_line() -> None:
    found: set[str] = set()
    for path in MODULES:
        documented = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
        for node in nodes(path) if room(path) != "cli" else ():
            if isinstance(node, ast.Constant) and id(node) not in documented:
                if re.search(r"(?<![\w-])--[a-z]", str(node.value)):
                    found.add(path.relative_to(ROOT / "tffc").as_posix())
    assert found == set(OPTIONS_OF_OTHERS)


def test_every_code_belongs_to_one_module() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    # What the command line adds to errors is said by their codes.
    added = ROOT / "tffc" / "cli" / "flags.py"
    for path in MODULES:
        for node in nodes(path) if path != added else ():
            if isinstance(node, ast.Constant) and re.fullmatch(r"E\d{3}", str(node.value)):
                homes[str(node.value)].add(path.name)
    assert homes
    assert {code: found for code, found in homes.items() if len(found) > 1} == {}


CODE = {
    "audit": 3500,
    "backends": 2300,
    "cli": 4750,
    "compat": 434,
    "containers": 162,
    "data": 3500,
    "diff": 1030,
    "effects": 460,
    "engines": 6150,
    "explorer": 960,
    "export": 912,
    "files": 475,
    "flower": 2050,
    "frameworks": 1040,
    "frontend": 5340,
    "golden": 640,
    "graphdef": 770,
    "interpreter": 460,
    "ir": 4280,
    "linking": 1540,
    "masking": 860,
    "operations": 510,
    "passes": 1166,
    "proof": 3090,
    "proto": 412,
    "validation": 1750,
    "values": 505,
}
"""How many lines of code each room may have.  What is added to a full one takes something out,
but a new operator, form or engine raises its number; a change that makes one smaller lowers it."""

OTHER_ROOMS = 150

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


def test_no_room_has_more_code_than_it_may() -> None:
    found: dict[str, int] = defaultdict(int)
    for path in MODULES:
        found[room(path)] += len(code_lines(path))
    over = {name: n for name, n in found.items() if n > CODE.get(name, OTHER_ROOMS)}
    assert over == {}


def test_files_and_functions_are_short() -> None:
    files = {str(path): path.read_text().count("\n") for path in MODULES}
    assert {path: n for path, n in files.items() if n > LONGEST_FILE} == {}
    functions = {
        f"{path}:{node.lineno}": len(code_lines(path) & set(range(start, end + 1)))
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and (end := node.end_lineno)
        if (start := node.body[0].lineno)
    }
    assert {place: n for place, n in functions.items() if n > LONGEST_FUNCTION} == {}
