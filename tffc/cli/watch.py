"""The option `--watch`: repeating a command whenever files of the program are saved.

TensorFlow stays loaded, so only tracing takes time.  Files are polled ten times a second, which
costs almost nothing, works on any file system and needs no package.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from time import sleep, time_ns
from typing import NoReturn

import click

from tffc.cli.interrupts import was_interrupted
from tffc.cli.output import say_briefly
from tffc.cli.progress import no_step
from tffc.cli.streams import OutputError, ReaderGone
from tffc.support.errors import TffcError
from tffc.support.printable import counted

INTERVAL = 0.1
"""The seconds between two checks of the files."""

SLACK = 50_000_000
"""The nanoseconds that the times of files may lag behind the clock."""

Stamps = dict[str, tuple[int, int, int] | None]
"""The change times, sizes and inodes of files; None for a file that does not exist."""


def watch(source: str, show: Callable[[], object]) -> NoReturn:
    """Call `show`, and again whenever files that `source` refers to are saved.

    Errors are reported, and watching continues.  It ends at an interruption, at wrong usage of the
    command, or if the output cannot be written.

    Raises:
      click.UsageError: the source is stdin.
      TffcError: the first call failed, and there is no file to watch.
    """
    if source == "-":
        raise click.UsageError("stdin cannot be watched: give a file or a module")
    _watch(_watched(source), show)


def watch_all(
    file: str, sources: Callable[[], Iterable[str]], show: Callable[[], object]
) -> NoReturn:
    """Call `show`, and again whenever a file is saved, or one that `sources` refer to.

    It ends as `watch` does.  Before each call of `show` the sources are asked for again.
    """
    _watch(_Together(file, sources), show)


def _watch(watched: _Files, show: Callable[[], object]) -> NoReturn:
    # Python's bytecode cache would be stale for a text of the same size saved within the same
    # second.
    sys.dont_write_bytecode = True
    is_first = True
    while True:
        begun = time_ns() - SLACK
        before = watched.stamps()
        if not is_first:
            watched.forget()
            if sys.stdout.isatty():
                click.clear()
        watched.learn(is_shown=_shown(show, is_first and not watched.is_there()))
        is_first = False
        known = {
            path: before[path] if path in before else stamp if _is_older(stamp, begun) else None
            for path, stamp in watched.stamps().items()
        }
        sys.stdout.flush()
        no_step()
        say_briefly(f"watching {counted(len(known), 'file')}; Ctrl-C ends it")
        while (now := watched.stamps()) == known:
            sleep(INTERVAL)
        settled: Stamps = {}
        while settled != now:
            # An editor may save a file in several steps, so wait until nothing changes.
            settled = now
            sleep(INTERVAL / 2)
            now = watched.stamps()


def _shown(show: Callable[[], object], is_hopeless: bool) -> bool:
    """Call `show` and report errors; return whether there was none."""
    try:
        show()
    except (click.ClickException, click.Abort, ReaderGone, OutputError):
        raise
    except click.exceptions.Exit as ended:
        return ended.exit_code == 0
    except Exception as error:
        if is_hopeless or was_interrupted():
            raise
        from tffc.cli.failures import report_failure

        no_step()
        report_failure(error, debug=bool(click.get_current_context().find_root().params["debug"]))
        return False
    return True


class _Files:
    """Files that are watched for changes."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    def is_there(self) -> bool:
        """Return whether there is anything to watch."""
        return any(map(os.path.exists, self.paths()))

    def paths(self) -> Iterable[str]:
        """Return the files to look at now."""
        return self._paths

    def stamps(self) -> Stamps:
        """Return the current state of the files."""
        return {path: _stamp(path) for path in self.paths()}

    def learn(self, *, is_shown: bool) -> None:
        """Update the set of watched files after a call of `show`."""

    def forget(self) -> None:
        """Discard what was read from the files, so that they are read again."""


class _Module(_Files):
    """The modules of a Python program, including those that an earlier version imported."""

    def __init__(self, source: str) -> None:
        from tffc.runtime.user_code.modules import split_target
        from tffc.runtime.user_code.own_modules import OwnModules, folder_of

        names_a_part = split_target(source)[1] is not None
        name = source.rpartition(":")[0] if names_a_part else source
        self._modules = OwnModules(folder_of(name))
        self._known: set[str] = set()
        self._has_failed = False
        self._is_path = name.endswith(".py")
        if self._is_path:
            self._known.add(os.path.abspath(name))

    def is_there(self) -> bool:
        return not self._is_path or super().is_there()

    def paths(self) -> Iterable[str]:
        # The module that could not be imported may be any of these, or be missing.
        return self._known | _sources_in(self._modules.folder) if self._has_failed else self._known

    def learn(self, *, is_shown: bool) -> None:
        self._known |= self._modules.files()
        self._has_failed = not is_shown

    def forget(self) -> None:
        self._modules.forget()


class _Together(_Files):
    """A file, and all files of the sources that it names."""

    def __init__(self, file: str, sources: Callable[[], Iterable[str]]) -> None:
        super().__init__(file)
        self._sources = sources
        self._parts: dict[str, _Files] = {}
        self._add_parts()

    def paths(self) -> Iterable[str]:
        return {*super().paths(), *(path for part in self._parts.values() for path in part.paths())}

    def learn(self, *, is_shown: bool) -> None:
        for part in self._parts.values():
            part.learn(is_shown=is_shown)

    def forget(self) -> None:
        for part in self._parts.values():
            part.forget()
        self._add_parts()

    def _add_parts(self) -> None:
        """Watch what the sources are now, before anything of it is loaded."""
        with contextlib.suppress(TffcError):  # `show` reports it
            for source in self._sources():
                self._parts.setdefault(source, _watched(source))


def _watched(source: str) -> _Files:
    # Imported late, because it takes long to load.
    from tffc.api.programs import TEXTS

    if source.endswith((".pb", *TEXTS)):
        return _Files(source)
    if os.path.isdir(source):
        return _Files(os.path.join(source, "manifest.json"))
    return _Module(source)


def _sources_in(folder: str) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            return {each.path for each in entries if each.name.endswith(".py")}
    except OSError:
        return set()


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _is_older(stamp: tuple[int, int, int] | None, moment: int) -> bool:
    return stamp is None or stamp[0] < moment
