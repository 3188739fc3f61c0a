"""`tffc passes`: list passes, or describe one."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from tffc.assurance.golden.cases import read_cases
from tffc.cli.completion import complete_pass
from tffc.cli.options import json_option
from tffc.cli.output import show_json
from tffc.passes import Pass
from tffc.passes.table import all_passes
from tffc.support.near import nearest
from tffc.support.printable import json_text


@click.command("passes")
@click.argument("name", required=False, shell_complete=complete_pass)
@json_option
def passes_command(name: str | None, as_json: bool) -> None:
    """List all passes, including those of installed packages.

    For each, shows what it does, the invariants that it requires, ensures and may break, and its
    options.

    With a NAME, prints the description of that pass, and a program before and after it.

    \b
    Examples:
      tffc passes
      tffc passes call-dominant
      tffc passes --json
    """
    known = all_passes()
    if name is not None and name not in known:
        raise click.UsageError(f"there is no pass {name!r}; {nearest(name, known)}")
    chosen = list(known.values()) if name is None else [known[name]]
    if as_json:
        show_json([_facts(each) for each in chosen])
    elif name is None:
        click.echo("\n".join(_entry(each) for each in chosen), nl=False)
    else:
        click.echo(_page(known[name]), nl=False)


def _facts(each: Pass) -> dict[str, Any]:
    return {
        "name": each.name,
        "summary": each.summary,
        "requires": list(each.requires),
        "ensures": list(each.ensures),
        "breaks": list(each.breaks),
        "options": {
            name: {"type": option.annotation.__name__, "default": option.default}
            for name, option in each.options.items()
        },
        "package": each.package,
    }


def _entry(each: Pass) -> str:
    lines = [each.name, f"  {each.summary}", *_attributes(each)]
    return "\n".join(lines) + "\n"


def _attributes(each: Pass) -> list[str]:
    options = [
        f"{name}: {option.annotation.__name__} = {json_text(option.default)}"
        for name, option in each.options.items()
    ]
    attributes = {
        "requires": each.requires,
        "ensures": each.ensures,
        "breaks": each.breaks,
        "options": options,
        "package": () if each.package == "tffc" else (each.package,),
    }
    return [f"  {label}: {', '.join(values)}" for label, values in attributes.items() if values]


def _page(each: Pass) -> str:
    parts = [_entry(each)]
    if each.details:
        parts += [textwrap.indent(each.details, "  "), ""]
    for case in read_cases(each.example or "", f"{each.name}.case", each.name):
        parts += ["before", textwrap.indent(case.program, "  "), ""]
        parts += ["after", textwrap.indent(case.expected, "  "), ""]
    return "\n".join(parts)
