"""Writes down what federated_language 0.5.4 answers to the programs in `sessions`.

    python -m tests.tff.language.session

runs with the package itself; no part of tffc is imported here.  `tests.tff.core.session` describes
the files.
"""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Mapping
from typing import Any

from tests.tff.core.session import Case, Session, raised, read

FOLDER = pathlib.Path(__file__).parent / "sessions"


def namespace(session: Session) -> dict[str, Any]:
    """Run what every program of a session starts with."""
    names: dict[str, Any] = {"__name__": "session"}
    exec(session.start, names)
    return names


def answer(case: Case, start: Mapping[str, Any]) -> str:
    """Run a program and say what came of it, on one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(case.source, dict(start))
        except Exception as error:  # noqa: BLE001  # whatever is raised is the answer
            return f"raises {' < '.join(raised(error))}"
    return f"error {' < '.join(raised(value))}" if isinstance(value, Exception) else repr(value)


def main() -> None:
    for path in sorted(FOLDER.glob("*.txt")):
        session = read(path)
        start = namespace(session)
        for case in session.cases:
            case.answer = answer(case, start)
        path.write_text(session.text())


if __name__ == "__main__":
    main()
