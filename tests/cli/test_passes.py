"""`tffc passes` and `tffc pipelines`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run

LISTING = """\
unique-names
  Give every binder a unique name that is not free.
  ensures: unique-names
  options: stem: str = ""

strip-containers
  Remove the Python containers from struct types.
  ensures: no-containers
  breaks: no-identity-maps

drop-identity-maps
  Replace a map of the identity with the value that it maps.
  ensures: no-identity-maps
  breaks: call-dominant

drop-unused-bindings
  Remove every binding of a block that its result does not need.
  ensures: no-unused-bindings
  breaks: no-identity-maps

call-dominant
  Bring a closed program into call-dominant form.
  requires: closed
  ensures: call-dominant, unique-names, no-unused-bindings
  breaks: no-identity-maps

share-equal-calls
  Bind equal calls of a block only once.
  requires: call-dominant

normalize-all-equal
  Replace functions applied to all-equal values with maps over the clients.
  requires: call-dominant
  breaks: no-identity-maps

desugar-means
  Rewrite every mean as a sum of values, a sum of weights and their quotient.
  requires: call-dominant
  ensures: no-means

lower-select
  Replace every selection of server slices with a broadcast and a local selection.
  requires: closed, call-dominant
  ensures: no-select
"""


def test_every_pass_is_listed_with_its_contract(run: Run) -> None:
    assert run("passes").stdout == LISTING


def test_listing_as_json(run: Run) -> None:
    found = {each["name"]: each for each in json.loads(run("passes", "--json").stdout)}
    assert list(found) == [line for line in LISTING.splitlines() if line[:1].strip()]
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
    assert run("pipelines").stdout == (
        "broadcast: drop-identity-maps,call-dominant,lower-select\n"
        "client-state: drop-identity-maps,call-dominant,lower-select\n"
        "distribute-aggregate: drop-identity-maps,call-dominant,lower-select\n"
        "mapreduce: drop-identity-maps,call-dominant,lower-select\n"
        "mergeable: drop-identity-maps,call-dominant,lower-select\n"
    )


@pytest.mark.parametrize("form", ["broadcast", "distribute-aggregate", "mapreduce", "mergeable"])
def test_a_pipeline_is_shown_as_its_file(run: Run, form: str) -> None:
    assert run("pipelines", "show", form).stdout == (
        "# What happens to a traced program before it is split into the components of a form.\n"
        "name: default\n"
        "passes:\n"
        "  - drop-identity-maps\n"
        "  - call-dominant\n"
        "  - lower-select\n"
    )


def test_unknown_pipeline(run: Run) -> None:
    ran = run("pipelines", "show", "mapreduces")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E361]: there is no pipeline 'mapreduces'\n = help: did you mean 'mapreduce'?\n",
    )
