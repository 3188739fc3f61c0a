"""The cell magic `%%tffc`: run a cell, and compile the round that it defines."""

from __future__ import annotations

import argparse
import ast
import importlib
import shlex
from typing import Any, NoReturn

from tffc.api.bundles import CompiledBundle, compile
from tffc.backends.forms.kinds import FORMS
from tffc.backends.forms.queries import rank_as_round
from tffc.frontend.load import loaded_object
from tffc.notebook.shell import Shell
from tffc.support.errors import LanguageValueError, LoadError, TffcError
from tffc.support.near import did_you_mean


class _Options(argparse.ArgumentParser):
    """Options of the magic; a mistake in them is an error of ours."""

    def error(self, message: str) -> NoReturn:
        raise LanguageValueError("E706", f"%%tffc: {message}", help=self.format_usage().strip())


def _options() -> _Options:
    options = _Options(prog="%%tffc", add_help=False, description="Compile the round of a cell.")
    options.add_argument("--form", choices=sorted(FORMS.own), help="the form")
    options.add_argument("--name", help="the round, if not the last one that the cell defines")
    options.add_argument("--out", metavar="VARIABLE", help="the variable that gets the bundle")
    options.add_argument("--verify", action="store_true", help="test it on arguments")
    options.add_argument("--prove", action="store_true", help="prove it")
    options.add_argument("--audit", action="store_true", help="say what leaves the clients")
    options.add_argument("--policy", metavar="FILE.yaml", help="judge the audit by a policy")
    return options


class CellMagic:
    """`%%tffc [--form FORM] [--name NAME] [--out VARIABLE] [--verify] [--prove] [--audit]
    [--policy FILE]`

    Runs the cell in the notebook, compiles the round that it defines, and shows the bundle and what
    else is asked for.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str) -> CompiledBundle | None:
        """Run a cell; the line has the options.

        Raises:
          LanguageValueError: an option is wrong.
          TffcError: the round is refused.
        """
        options = _options().parse_args(shlex.split(line))
        # A line in the place of the magic's, so that lines are those of the cell.
        result = self._shell.run_cell(f"# %%tffc\n{cell}", store_history=False)
        if not result.success:
            return None
        bundle = compile(self._round(options.name, cell), options.form)
        if options.out is not None:
            self._shell.user_ns[options.out] = bundle
        self._show_more(bundle, options)
        return bundle

    def _round(self, name: str | None, cell: str) -> Any:
        """Return the round that the cell defines last, or the one of a name.

        Raises:
          LoadError: there is none.
        """
        variables = self._shell.user_ns
        if name is not None:
            if name not in variables:
                raise LoadError(
                    "E439",
                    f"the notebook defines nothing named {name!r}",
                    help=did_you_mean(name, [key for key in variables if not key.startswith("_")]),
                )
            return variables[name]
        # Rounds first, and of those the last one.
        defined = [variables.get(name) for name in reversed(_defined_names(cell))]
        best = max(defined, key=_rank, default=None)
        if _rank(best):
            return best
        raise LoadError(
            "E465",
            "the cell defines no round and no iterative process",
            help="decorate a function with @tff.federated_computation(...), or name it: "
            "%%tffc --name process",
        )

    def _show_more(self, bundle: CompiledBundle, options: argparse.Namespace) -> None:
        display = importlib.import_module("IPython.display").display
        if options.verify:
            display(bundle.verify())
        if options.prove:
            display(bundle.prove())
        if options.audit or options.policy is not None:
            display(bundle.audit(policy=options.policy))


def _rank(value: object) -> int:
    """Return 2 for a round or a process, 1 for a program that means a round, and 0 otherwise."""
    try:
        loaded = loaded_object(value)
    except TffcError:
        return 0
    return 0 if loaded is None else rank_as_round(loaded.computation.node)


def _defined_names(cell: str) -> list[str]:
    """Return the variables that the statements of a cell set, in order."""
    names: list[str] = []
    try:
        tree = ast.parse(cell)
    except SyntaxError:
        # It has magics of its own in it.
        return names
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name):
                names.append(name)
            case ast.Assign(targets=targets):
                names += [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
            case _:
                pass
    return names
