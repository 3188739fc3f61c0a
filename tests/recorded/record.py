"""Writes down what TFF 0.87 makes of the programs: `python -m tests.recorded.record`.

The answers are kept in answers.json, so that the comparison needs no TFF.
"""

from __future__ import annotations

import builtins
import json
import pathlib
import re
from typing import Any

from tests.recorded import forms_of_python, frameworks, operators, programs

ANSWERS = pathlib.Path(__file__).with_name("answers.json")

THEMES = {
    "decorators": programs.DECORATORS,
    "calls": programs.CALLS,
    "results": programs.RESULTS,
    "values": programs.VALUES,
    "placing": operators.PLACING,
    "aggregations": operators.AGGREGATIONS,
    "sequences": operators.SEQUENCES,
    "tensorflow": operators.TENSORFLOW,
    "types": forms_of_python.TYPES,
    "constants": forms_of_python.CONSTANTS,
    "structures": forms_of_python.STRUCTURES,
    "graphs": frameworks.GRAPHS,
    "jax": frameworks.JAX,
}


def all_programs() -> dict[str, programs.Program]:
    """Every program by its theme and name."""
    return {f"{theme}: {name}": p for theme, found in THEMES.items() for name, p in found.items()}


def answer(program: programs.Program, language: programs.Language) -> dict[str, Any]:
    """What is traced, or the builtin class of the exception that the program is refused with.

    The names of compiled sections are left out, for they depend on who wrote the graph.
    """
    try:
        computation = program(language)
    except Exception as error:  # noqa: BLE001  # whatever is raised is the answer
        kinds = [kind for kind in type(error).__mro__ if kind.__module__ == builtins.__name__]
        return {"refused": kinds[0].__name__}
    block = computation.to_building_block()
    return {
        "text": re.sub(r"comp#[0-9a-f]+", "comp#", str(block)),
        "type": str(computation.type_signature),
        "containers": repr(computation.type_signature).replace("np.bool_", "np.bool"),
    }


def main() -> None:
    # Only where it is installed.
    import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

    language = programs.Language(tff)
    answers = {name: answer(program, language) for name, program in all_programs().items()}
    ANSWERS.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
