"""The pages of the reference of the API: which names are public, by reading the stubs."""

from __future__ import annotations

import ast
import pathlib

TITLES = {
    "computations": ("Computations", ("computation", "conversion", "value", "install", "struct")),
    "operators": ("Operators", ("aggregations", "operators", "sequences")),
    "types": ("Types", ("types", "type_queries")),
    "running": (
        "Compiling, running and checking",
        (
            "audits",
            "bundles",
            "differences",
            "exports",
            "extension",
            "pages",
            "proofs",
            "running",
            "runs",
            "texts",
            "verification",
        ),
    ),
}
"""The pages of the names right in `tff`, and the modules that these are from."""

NAMESPACES = {
    "tff.data": "tffc.api.data",
    "tff.types": "tffc.tff.types",
    "tff.structure": "tffc.tff.structure",
    "tff.templates": "tffc.frontend.templates",
    "tff.tensorflow": "tffc.tff.tensorflow",
    "tff.jax": "tffc.tff.jax",
    "tff.framework": "tffc.tff.framework",
    "tff.test": "tffc.tff.test",
    "tff.backends": "tffc.backends",
    "tff.backends.mapreduce": "tffc.tff.backends.mapreduce",
    "tff.backends.native": "tffc.tff.backends.native",
    "tff.backends.test": "tffc.tff.backends.test",
}
"""The names that stand for modules, and the modules."""


def api_pages(root: pathlib.Path) -> dict[str, str]:
    """Return the pages in Markdown by their names, with a directive of mkdocstrings for each name.

    Raises:
      ValueError: a public name is on no page.
    """
    pages: dict[str, str] = {}
    top = _imported(root / "tffc" / "__init__.pyi")
    for page, (title, modules) in TITLES.items():
        names = {name: home for name, home in top.items() if home.split(".")[-1] in modules}
        lines = [f"{home}.{name}" for name, home in sorted(names.items())]
        about = f"What `import tffc as tff` gives right in `tff`: {page}."
        pages[page] = _page(title, about, lines)
        top = {name: home for name, home in top.items() if name not in names}
    left = {name for name in top if f"tff.{name}" not in NAMESPACES}
    if left:
        raise ValueError(f"put on a page of the API: {sorted(left)}")
    for shown, module in NAMESPACES.items():
        path = root.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        lines = [f"{module}.{name}" for name in sorted(_exported(path))]
        pages[shown] = _page(f"`{shown}`", _first_line(path), lines)
    return pages


def _imported(stub: pathlib.Path) -> dict[str, str]:
    """Return the names that a stub imports, with their modules."""
    nodes = ast.parse(stub.read_text(encoding="utf-8")).body
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def _exported(module: pathlib.Path) -> list[str]:
    """Return the names in the `__all__` of a module; without one, all public names that it defines,
    and those that it imports under their own names: `from module import name as name`."""
    found: list[str] = []
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name("__all__")]):
                return ast.literal_eval(node.value)
            case ast.ImportFrom():
                found += [each.name for each in node.names if each.name == each.asname]
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.Assign(targets=[ast.Name(name)]):
                found.append(name)
    return [name for name in found if not name.startswith("_")]


def _first_line(module: pathlib.Path) -> str:
    return (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").split("\n")[0]


def _page(title: str, about: str, names: list[str]) -> str:
    return "\n\n".join([f"# {title}", about, *(f"::: {name}" for name in names)]) + "\n"
