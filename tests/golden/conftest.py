"""The shell in which a user's own repository is tried."""

from __future__ import annotations

import pytest

from tests.shell import Shell


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell that finds tffc, pytest with our plugin, git and pre-commit."""
    return Shell(tmp_path_factory.mktemp("user") / "home")
