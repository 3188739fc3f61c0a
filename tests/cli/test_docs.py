"""What the pages show is what the commands print."""

from __future__ import annotations

import shlex

from tests.cli.conftest import ROOT, Run


def test_verification(run: Run, monkeypatch) -> None:
    page = (ROOT / "docs" / "verification.md").read_text()
    command, shown = (
        page.split(f"```{kind}\n", 1)[1].split("```", 1)[0] for kind in ("sh", "text")
    )
    monkeypatch.chdir(ROOT)
    assert run(*shlex.split(command)[1:]).stdout == shown
