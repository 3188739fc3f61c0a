"""The extension of IPython, which is loaded by `%load_ext tffc`."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from tffc.api.progress import show_progress, silent
from tffc.notebook.cell_magic import CellMagic
from tffc.notebook.error_text import error_text
from tffc.notebook.progress_bar import progress_bar
from tffc.notebook.shell import Shell
from tffc.runtime.frameworks.tensorflow.load import quiet_import
from tffc.support.errors import TffcError
from tffc.tff.install import install_unless_loaded


def load_ipython_extension(shell: Shell) -> None:
    """Make a notebook ready for tffc: what `%load_ext tffc` calls.

    TensorFlow is quiet when it is imported, `import tensorflow_federated as tff` gives tffc, long
    work shows its progress, errors are shown as text that points into the cell, and cells may begin
    with `%%tffc`.
    """
    quiet_import()
    install_unless_loaded()
    if has_display(shell):
        show_progress(progress_bar)
    shell.register_magic_function(CellMagic(shell), "cell", "tffc")
    shell.set_custom_exc((TffcError,), show_error)


def unload_ipython_extension(shell: Shell) -> None:
    """Undo what shows things: what `%unload_ext tffc` calls."""
    show_progress(silent)
    shell.set_custom_exc((), None)


def has_display(shell: Shell) -> bool:
    """Return whether a shell can change what it has displayed, which a terminal cannot."""
    return type(shell).__name__ != "TerminalInteractiveShell"


def show_error(
    shell: Shell,
    kind: type[BaseException],
    error: TffcError,
    frames: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Print an error of ours, with the exception in the user's code that caused it."""
    if error.__cause__ is not None:
        sys.stderr.write("".join(traceback.format_exception(error.__cause__)))
    sys.stderr.write(error_text(error, shell.compile))
