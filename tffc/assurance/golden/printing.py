"""The golden files of a program: its text, and the output of compiling it."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping

from tffc.assurance.audit.audit import audit
from tffc.assurance.audit.places import without_line
from tffc.assurance.audit.text import audit_text
from tffc.assurance.diff.outline.listing import section_listing
from tffc.assurance.diff.programs import section_places
from tffc.backends import compile_form, compile_initialize
from tffc.backends.bundle.bundle import Bundle, text
from tffc.backends.compiler import compile_discount, has_discount
from tffc.backends.forms.queries import as_round
from tffc.language.nodes import Compiled, Node
from tffc.language.notation.labels import section_label
from tffc.language.notation.lines import listing
from tffc.language.traverse import walk
from tffc.passes import Pipeline
from tffc.passes.instruments import verify_step
from tffc.passes.pipeline import Finished
from tffc.passes.table import read_pipeline
from tffc.support.errors import Span
from tffc.support.files.strict_json import encode_json

PROGRAM = "program.sexpr"
"""The file with the text of a program, which every program has."""

SECTIONS = "sections.txt"
"""The file with the listing of a program's compiled sections."""


class Files(dict[str, str]):
    """The output for an example: its files, by their paths in its folder.

    `places` are the places in the user's source where the sections of `SECTIONS` are called.
    `programs` are what was printed: the discount and the computation of the first state, if any,
    and the program.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__(files)
        self.places: Mapping[str, Span] = {}
        self.programs: tuple[Node, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """The forms to compile to, a pipeline file, and whether to add audits."""

    forms: tuple[str, ...] = ()
    pipeline: str | None = None
    allow_impure_duplicates: bool = False
    audit: bool = False


def print_program(
    program: Node, initialize: Node | None, recipe: Recipe, discount: Node | None = None
) -> Files:
    """Return the files of a program, of the computation of its first state, and of its discount if
    its rounds may be buffered, by their paths.

    Every pass is verified.  A path in the recipe is relative to the working directory.

    Raises:
      TffcError: the program cannot be compiled, or the result of a pass is not sound.
    """
    files = Files({PROGRAM: text(program)})
    first = None
    if initialize is not None:
        files["initialize.sexpr"] = text(initialize)
        first = compile_initialize(initialize) if recipe.forms else None
    programs = [program] if initialize is None else [program, initialize]
    if discount is not None:
        files["discount.sexpr"] = text(discount)
        programs.append(discount)
    files.programs = tuple(reversed(programs))
    if sections := print_sections(programs):
        files[SECTIONS] = sections
    places = (section_places(node).items() for node in programs)
    files.places = dict(itertools.chain.from_iterable(places))
    pipeline = None if recipe.pipeline is None else read_pipeline(pathlib.Path(recipe.pipeline))
    for form in recipe.forms:
        round_ = as_round(program, form)
        if recipe.audit:
            files[f"{form}/audit.txt"] = audit_text(audit(round_, form, discount), without_line)
        printed = _print_form(
            round_, first, discount, form, pipeline, recipe.allow_impure_duplicates
        )
        files.update({f"{form}/{path}": content for path, content in printed.items()})
    return files


def print_sections(programs: Iterable[Node]) -> str:
    """Return a listing of all compiled sections of the programs, each once."""
    nodes = itertools.chain.from_iterable(map(walk, programs))
    sections = dict.fromkeys(node for node in nodes if isinstance(node, Compiled))
    listings = {f"comp#{section_label(node)}": section_listing(node) for node in sections}
    return "\n".join(listings.values())


def _print_form(
    program: Node,
    first: Compiled | None,
    discount: Node | None,
    name: str,
    pipeline: Pipeline | None,
    allow_impure_duplicates: bool,
) -> dict[str, str]:
    files: dict[str, str] = {}

    def keep(finished: Finished) -> None:
        path = f"passes/{finished.position:02}-{finished.step.each.name}.sexpr"
        before, after = text(finished.before), text(finished.after)
        files[path] = after if after != before else "; as before\n"

    form = compile_form(
        program,
        name,
        pipeline,
        observers=(verify_step, keep),
        allow_impure_duplicates=allow_impure_duplicates,
    )
    weight = None
    if discount is not None and has_discount(name, discount):
        weight = compile_discount(discount)
    bundle = Bundle(name, program, form.components(), first, {}, discount=weight)
    beside = {"initialize": first, "discount": weight}
    known = {part: section for part, section in beside.items() if section is not None}
    programs = {**known, **bundle.components}
    files["summary.txt"] = form.summary() + "\n"
    files["components.sexpr"] = listing(programs)
    files["manifest.json"] = encode_json(bundle.manifest().lasting()).decode()
    return files
