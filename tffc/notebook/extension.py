"""The extension of IPython, which is loaded by `%load_ext tffc`."""

from __future__ import annotations

import functools
import sys
import traceback
from types import TracebackType

from tffc.api.progress import show_progress, silent
from tffc.notebook.cell_magic import CellMagic
from tffc.notebook.error_text import cell_name, error_text
from tffc.notebook.progress_bar import progress_bar
from tffc.notebook.shell import Shell
from tffc.runtime.frameworks.tensorflow.load import quiet_import
from tffc.runtime.user_code.keras import legacy_keras
from tffc.support.errors import TffcError, names_of_files
from tffc.tff.install import install_unless_loaded


def load_ipython_extension(shell: Shell) -> None:
    """Make a notebook ready for tffc: what `%load_ext tffc` calls.

    TensorFlow is quiet when it is imported, `import tensorflow_federated as tff` gives tffc,
    `tf.keras` is Keras 2 where `tf_keras` is installed, as it was for TFF 0.87, long work shows its
    progress, errors are shown as text that points into the cell, and cells may begin with `%%tffc`.
    """
    quiet_import()
    legacy_keras()
    install_unless_loaded()
    if has_display(shell):
        show_progress(progress_bar)
    shell.register_magic_function(CellMagic(shell), "cell", "tffc")
    shell.set_custom_exc((TffcError,), show_error)
    names_of_files[:] = [functools.partial(cell_name, compiler=shell.compile)]


def unload_ipython_extension(shell: Shell) -> None:
    """Undo what shows things: what `%unload_ext tffc` calls."""
    show_progress(silent)
    shell.set_custom_exc((), None)
    names_of_files.clear()


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
