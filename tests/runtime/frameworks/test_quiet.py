"""TensorFlow's native code is not heard, with a stand-in that speaks as some builds do."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from tests.processes import ENVIRONMENT, ROOT, run_python

NOISY = """\
import os, sys
os.write(2, b"Could not find cuda drivers\\n")
print("a warning of Python's", file=sys.stderr)
"""


@pytest.fixture
def noisy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a module called tensorflow that writes to stderr in both ways."""
    (tmp_path / "tensorflow.py").write_text(NOISY)
    return tmp_path


def run(folder: pathlib.Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}{os.pathsep}{ROOT}"
    return run_python("-c", code, env={**ENVIRONMENT, "PYTHONPATH": path, **environment})


def heard(folder: pathlib.Path, code: str, **environment: str) -> str:
    ran = run(folder, code, **environment)
    ran.check_returncode()
    return ran.stderr


QUIET = "from tffc.runtime.frameworks.tensorflow.load import quiet_import; quiet_import()\n"


def test_an_import_is_not_heard(noisy: pathlib.Path) -> None:
    code = QUIET + "import tensorflow, os; os.write(2, b'heard again\\n')"
    assert heard(noisy, code) == "a warning of Python's\nheard again\n"


def test_an_import_is_heard_where_nobody_asked_for_quiet(noisy: pathlib.Path) -> None:
    assert "cuda" in heard(noisy, "import tensorflow")


def test_a_level_that_tensorflow_sets_in_notebooks_changes_nothing(noisy: pathlib.Path) -> None:
    code = (
        QUIET + "import logging, tensorflow\n"
        "logger = logging.getLogger('tensorflow')\n"
        "logger.setLevel(logging.INFO)\n"
        "logger.warning('AutoGraph could not transform it')\n"
        "logger.error('an error')\n"
    )
    assert heard(noisy, code) == "a warning of Python's\nan error\n"


def test_debugging_lets_it_speak(noisy: pathlib.Path) -> None:
    assert "cuda" in heard(noisy, QUIET + "import tensorflow", TFFC_DEBUG="1")


def test_the_module_is_as_ever(noisy: pathlib.Path) -> None:
    code = (
        QUIET + "import sys, tensorflow\n"
        "assert type(tensorflow.__loader__).__name__ == 'SourceFileLoader'\n"
        "assert tensorflow.__spec__.loader is tensorflow.__loader__\n"
        "assert not [f for f in sys.meta_path if type(f).__module__.startswith('tffc.')]\n"
    )
    assert heard(noisy, code) == "a warning of Python's\n"


def test_an_end_in_native_code_is_told(noisy: pathlib.Path) -> None:
    (noisy / "tensorflow.py").write_text("import os\nos.abort()\n")
    ran = run(noisy, QUIET + "import tensorflow")
    assert ran.returncode == -6
    assert ran.stderr.startswith("Fatal Python error: Aborted\n")
    assert "tensorflow.py" in ran.stderr


def test_quiet_lasts_until_all_who_want_it_are_done(tmp_path: pathlib.Path) -> None:
    code = (
        "import os\nfrom tffc.runtime.frameworks.tensorflow.quiet import quiet\n"
        "one, two = quiet(), quiet()\n"
        "one.__enter__(); two.__enter__()\n"
        "one.__exit__(None, None, None); os.write(2, b'unheard')\n"
        "two.__exit__(None, None, None); os.write(2, b'heard')\n"
    )
    assert heard(tmp_path, code) == "heard"


def test_pythons_own_stderr_is_heard_where_it_has_a_number_of_its_own(
    noisy: pathlib.Path,
) -> None:
    code = (
        "from tffc.cli.streams import open_streams; open_streams()\n"
        "import sys; stderr = sys.stderr\n" + QUIET + "import tensorflow\n"
        "assert sys.stderr is stderr"
    )
    assert heard(noisy, code) == "a warning of Python's\n"


def test_a_level_that_jax_set_is_none_of_the_users(noisy: pathlib.Path) -> None:
    assert "cuda" not in heard(noisy, QUIET + "import tensorflow", TF_CPP_MIN_LOG_LEVEL="1")
    assert "cuda" in heard(noisy, QUIET + "import tensorflow", TF_CPP_MIN_LOG_LEVEL="0")
