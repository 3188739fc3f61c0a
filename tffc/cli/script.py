"""Running a user's script as Python does, with tffc under the name of TensorFlow Federated.

`python -m tffc.cli.script` runs in a process of its own, where Python itself answers signals and
writes to the standard streams.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from types import ModuleType, TracebackType

from tffc.runtime.frameworks.tensorflow.load import quiet_import
from tffc.runtime.user_code.keras import legacy_keras
from tffc.runtime.user_code.own_modules import file_of
from tffc.runtime.user_code.source import keep_users_frames
from tffc.support.errors import LoadError, TffcError
from tffc.tff import releases
from tffc.tff.install import install_for

RUNNERS = (__file__, "<frozen ")
"""How the names of files begin that run scripts: this one, and Python's own."""


def command(words: list[str]) -> list[str]:
    """Return the command that runs a script, or `-m` and a module, with its arguments."""
    return [sys.executable, "-m", __name__, *words]


def run(words: list[str]) -> None:
    """Run a script, or `-m` and a module, as the main module of this process."""
    quiet_import()
    sys.excepthook = report_uncaught
    if words[0] == "-m":
        sys.argv[:] = words[1:]
        sys.path[0] = os.getcwd()
        _prepare(file_of(words[1]))
        _run_module(words[1])
    else:
        sys.argv[:] = words
        sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
        _prepare(words[0])
        _run_file(os.path.abspath(words[0]))


def _prepare(path: str | None) -> None:
    """Give tffc the names of TFF, and `tf.keras` what programs of the file's release have as it."""
    install_for(path)
    if releases.chosen() is not releases.HEAD:
        legacy_keras()


def _run_module(name: str) -> None:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise LoadError(
            "E434",
            f"there is no module named {name!r}",
            help="give a dotted name that Python can import from here",
        )
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_file(path: str) -> None:
    # Not by runpy, which clears the module at the end, when threads may still use it.
    module = ModuleType("__main__")
    module.__file__ = path
    vars(module)["__builtins__"] = __builtins__
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.modules["__main__"] = module
    exec(code, vars(module))


def report_uncaught(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Report what a script raised: an error of ours as commands do, any other as Python does."""
    # Imported late: only failures need them.
    from tffc.cli.diagnostics import report
    from tffc.runtime.user_code.import_failures import advice
    from tffc.support.debug import is_debugging

    # The outermost frames are those that run the script.
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(RUNNERS):
        frames = frames.tb_next
    error.__traceback__ = frames
    if isinstance(error, TffcError):
        report(error, debug=is_debugging())
        return
    keep_users_frames(error)
    sys.__excepthook__(kind, error, error.__traceback__)
    help = advice(sys.argv[0], error)
    if help is not None:
        sys.stderr.write(f"  = help: {help}\n")


if __name__ == "__main__":
    run(sys.argv[1:])
