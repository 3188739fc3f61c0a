"""`tffc passes` and `tffc pipelines`."""

from __future__ import annotations

import json

from tests.cli.conftest import Run
from tffc.backends.forms.kinds import FORMS
from tffc.passes.pipeline_text import DEFAULT
from tffc.passes.table import all_passes


def test_every_pass_is_listed_with_its_contract(run: Run) -> None:
    listing = run("passes").stdout
    for each in all_passes().values():
        assert f"{each.name}\n  {each.summary}\n" in listing
    assert (
        "call-dominant\n"
        "  Bring a closed program into call-dominant form.\n"
        "  requires: closed\n"
        "  ensures: call-dominant, unique-names, no-unused-bindings\n"
        "  breaks: no-identity-maps\n"
    ) in listing
    assert '  options: stem: str = ""\n' in listing


def test_listing_as_json(run: Run) -> None:
    found = {each["name"]: each for each in json.loads(run("passes", "--json").stdout)}
    assert list(found) == list(all_passes())
    assert found["unique-names"] == {
        "name": "unique-names",
        "summary": "Give every binder a unique name that is not free.",
        "requires": [],
        "ensures": ["unique-names"],
        "breaks": [],
        "options": {"stem": {"type": "str", "default": ""}},
        "package": "tffc",
    }


def test_one_pass_is_shown_with_its_example(run: Run) -> None:
    assert run("passes", "drop-identity-maps").stdout == (
        "drop-identity-maps\n"
        "  Replace a map of the identity with the value that it maps.\n"
        "  ensures: no-identity-maps\n"
        "  breaks: call-dominant\n"
        "\n"
        "  A map that changes the type of its value, such as from an all-equal value to one that "
        "may\n"
        "  differ, stays.\n"
        "\n"
        "      federated_map(<(x -> x),v>)   becomes   v\n"
        "\n"
        "before\n"
        "  (v: {int32}@CLIENTS -> federated_map:(<(int32 -> int32),{int32}@CLIENTS> -> "
        "{int32}@CLIENTS)(<\n"
        "    (x: int32 -> x),\n"
        "    v\n"
        "  >))\n"
        "\n"
        "after\n"
        "  (v: {int32}@CLIENTS -> v)\n"
    )


def test_unknown_pass(run: Run) -> None:
    ran = run("passes", "call-dominat")
    assert ran.code == 2
    assert ran.stderr.endswith(
        "Error: there is no pass 'call-dominat'; did you mean 'call-dominant'?\n"
    )


def test_pipelines(run: Run) -> None:
    assert run("pipelines").stdout == "".join(
        f"{form}: drop-identity-maps,call-dominant,lower-select\n" for form in sorted(FORMS)
    )


def test_a_pipeline_is_shown_as_its_file(run: Run) -> None:
    for form in FORMS:
        assert run("pipelines", "show", form).stdout == DEFAULT.read_text(encoding="utf-8")


def test_unknown_pipeline(run: Run) -> None:
    ran = run("pipelines", "show", "mapreduces")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E361]: there is no pipeline 'mapreduces'\n = help: did you mean 'mapreduce'?\n",
    )
