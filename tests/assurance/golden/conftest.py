"""A shell for tests in a user's repository."""

from __future__ import annotations

import pytest

from tests.shell import Shell


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell that finds tffc, pytest with the plugin, git and pre-commit."""
    return Shell(tmp_path_factory.mktemp("user") / "home")
