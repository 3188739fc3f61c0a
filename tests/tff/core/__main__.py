"""Writes down what TFF 0.87 answers: `python -m tests.tff.core [NAME...]`, with its Python.

With `--tffc`, nothing is written: what tffc answers otherwise is printed.  `--accept` writes it
down; the kind of each new difference, a `?`, is to be filled in by hand.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from tests.tff.core import session

FOLDER = pathlib.Path(__file__).parent


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("names", nargs="*", help="sessions; without, all of them")
    arguments.add_argument("--tffc", action="store_true", help="compare with tffc's answers")
    arguments.add_argument("--new", action="store_true", help="only programs without an answer")
    arguments.add_argument("--accept", action="store_true", help="keep tffc's own answers")
    chosen = arguments.parse_args()
    if chosen.tffc:
        import tffc

        tffc.install_as_tensorflow_federated()
    for path in sorted(FOLDER.glob("*.txt")):
        if not chosen.names or path.stem in chosen.names:
            if chosen.tffc:
                compare(path, chosen.accept)
            else:
                record(path, chosen.new)


def record(path: pathlib.Path, only_new: bool) -> None:
    found = session.read(path)
    start = session.namespace(found)
    for case in found.cases:
        if not (only_new and case.answer):
            case.answer = session.answer(case.source, start)
            path.write_text(found.text())


def compare(path: pathlib.Path, accept: bool) -> None:
    found = session.read(path)
    start = session.namespace(found)
    differing = 0
    for case in found.cases:
        own = session.answer(case.source, start)
        if accept:
            case.own = None if session.agrees(own, case.answer) else own
            case.kind = case.kind or "?"
            differing += case.own is not None
            continue
        if not session.agrees(own, case.answer if case.own is None else case.own):
            differing += 1
            sys.stdout.write(f">>> {case.source}\n  TFF:  {case.answer}\n  tffc: {own}\n")
    if accept:
        path.write_text(found.text())
    sys.stdout.write(f"{path.stem}: {len(found.cases)} programs, {differing} differ\n")


if __name__ == "__main__":
    main()
