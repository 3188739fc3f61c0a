"""Writes down what TFF 0.87 makes of the programs: `python -m tests.tff.record`.

The answers are kept in `recorded/answers.json`, so that the comparison needs no TFF.  Programs that
have an answer are not run again, unless they are named.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

ANSWERS = pathlib.Path(__file__).parent / "recorded" / "answers.json"

UNANSWERED = {
    "analytics: histogram_distributed_dp": "TFF's process ends in TensorFlow's optimizer",
}
"""Programs of which TFF gave no answer, and why not."""


def parts(value: Any) -> Iterator[tuple[str, Any]] | None:
    """The parts of a container, by name or position; None for a leaf."""
    if hasattr(value, "element_spec"):
        return ((str(i), each) for i, each in enumerate(value))
    if isinstance(value, Mapping):
        return ((str(key), each) for key, each in value.items())
    if hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    if hasattr(type(value), "__attrs_attrs__") and type(value).__name__ != "Struct":
        return ((each.name, getattr(value, each.name)) for each in type(value).__attrs_attrs__)
    if isinstance(value, (list, tuple)):
        return ((str(i), each) for i, each in enumerate(value))
    if type(value).__name__ == "Struct":
        import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

        named = tff.structure.to_elements(value)
        return ((name or str(i), each) for i, (name, each) in enumerate(named))
    return None


def leaves(value: Any) -> dict[str, Any]:
    """What is in a value, by its path: a container's class, or a leaf's dtype, shape and values."""
    found: dict[str, Any] = {}
    waiting = [("", value)]
    while waiting:
        path, each = waiting.pop()
        inside = parts(each)
        if inside is None:
            found[path] = leaf(each)
            continue
        found[path] = "Dataset" if hasattr(each, "element_spec") else type(each).__name__
        waiting += [(f"{path}.{name}".lstrip("."), part) for name, part in inside]
    return dict(sorted(found.items()))


def leaf(value: Any) -> Any:
    if hasattr(value, "to_list"):
        return ["ragged", value.to_list()]
    array = np.asarray(value)
    kind = "str" if array.dtype.kind in "OSU" else array.dtype.name
    return [kind, list(array.shape), [plain(each) for each in array.reshape(-1).tolist()]]


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float):
        return float(f"{value:.8g}")
    return value


def answer(program: Any) -> dict[str, Any]:
    """The type of a program's round, and what came of each."""
    outputs = []
    state = None if program.initialize is None else program.initialize()
    first = None if program.initialize is None else leaves(state)
    for arguments in program.rounds:
        before = () if program.initialize is None else (state,)
        output = program.next(*before, *arguments)
        outputs.append(leaves(output))
        if program.initialize is not None:
            state = following(program, output)
    return {"type": str(program.next.type_signature), "first": first, "rounds": outputs}


def following(program: Any, output: Any) -> Any:
    """The state in what a round returns: all of it, or its first element."""
    type_ = program.next.type_signature
    state_type = type_.parameter[0] if len(program.rounds[0]) else type_.parameter
    return output if state_type.is_assignable_from(type_.result) else next(iter(values(output)))


def values(output: Any) -> Any:
    inside = parts(output)
    assert inside is not None
    return (each for _, each in inside)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*", help="programs to run again; without, all new ones")
    arguments.add_argument("--tffc", action="store_true", help="run over tffc, also as bundles")
    arguments.add_argument("--out", type=pathlib.Path, default=ANSWERS)
    chosen = arguments.parse_args()
    warnings.simplefilter("ignore")
    if chosen.tffc:
        import tffc

        tffc.install_as_tensorflow_federated()
    else:
        import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

        # TFF's own context has no secure sums.
        tff.backends.test.set_sync_test_cpp_execution_context()
    from tests.tff import programs

    known = programs.all_programs()
    answers = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
    for name in chosen.names or [name for name in known if name not in answers]:
        try:
            program = known[name]()
            answers[name] = answer(program)
            if chosen.tffc:
                # Not at the top, for it imports tffc.
                from tests.tff import rounds

                answers[name]["bundles"] = rounds.as_bundles(program)
        except Exception as error:  # noqa: BLE001  # whatever is raised is the answer
            answers[name] = {"refused": f"{type(error).__name__}: {error}"}
        sys.stderr.write(f"{name}: {answers[name].get('refused', 'done')}\n")
        kept = {each: answers[each] for each in known if each in answers}
        lines = (f"{json.dumps(each)}: {json.dumps(found)}" for each, found in kept.items())
        chosen.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
