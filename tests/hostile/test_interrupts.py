"""Ctrl-C and SIGTERM end a command, without a traceback, whenever one comes and whoever catches
it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys

import pytest

from tests.processes import ROOT, run_python

pytestmark = pytest.mark.slow

START = """
import os, signal, sys, time, weakref
import click
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores
from tffc.cli import interrupts, main
from tffc.cli.application import application

def ctrl_c():
    signal.raise_signal(signal.SIGINT)

def command(body):
    application.add_command(click.Command("it", callback=body))
    sys.argv = ["tffc", "it"]
    main()

def hang():
    ctrl_c_once = iter([ctrl_c])
    while True:
        try:
            next(ctrl_c_once, lambda: time.sleep(0.1))()
        except BaseException:
            pass
"""

SAID = "\ninterrupted\n"

CASES = {
    "before a command": ("interrupts.end_at_once(); hang()", SAID),
    "while a thread is started": (
        "interrupts.end_at_once()\nimport threading\nwith threading._active_limbo_lock: ctrl_c()",
        SAID,
    ),
    "in a command": ("command(ctrl_c)", SAID),
    "in a command that catches all": ("command(hang)", SAID),
    "in one that takes it for success": (
        """
def body():
    try:
        ctrl_c()
    except KeyboardInterrupt:
        sys.exit(0)
command(body)
""",
        SAID,
    ),
    "where Python can raise nothing": (
        """
def body():
    class Thing: pass
    thing = Thing()
    kept = weakref.ref(thing, lambda _: ctrl_c())
    del thing
    time.sleep(60)
command(body)
""",
        SAID,
    ),
    "while the words of the command are read": (
        """
class Late(click.ParamType):
    name = "late"
    def convert(self, value, param, ctx):
        ctrl_c()
application.params.append(click.Option(["--late"], type=Late()))
sys.argv = ["tffc", "--late", "1", "passes"]
main()
""",
        SAID,
    ),
    "while other threads go on": (
        """
import threading
def body():
    threading.Thread(target=time.sleep, args=(60,)).start()
    ctrl_c()
command(body)
""",
        SAID,
    ),
    "in a library that reports another error": (
        """
def body():
    try:
        ctrl_c()
    except KeyboardInterrupt:
        raise ImportError("it failed to import") from None
command(body)
""",
        SAID,
    ),
    "in a library that takes it for wrong usage": (
        """
def body():
    try:
        ctrl_c()
    except KeyboardInterrupt:
        raise click.UsageError("what was that") from None
command(body)
""",
        SAID,
    ),
    "in a question": ("command(lambda: click.prompt(str(ctrl_c())))", SAID),
    "while a library in C is loaded": (
        """
import importlib.machinery
class Loader(importlib.machinery.ExtensionFileLoader):
    def exec_module(self, module):
        try:
            ctrl_c()
            time.sleep(0.05)
        except KeyboardInterrupt:
            print("Traceback", file=sys.stderr)
importlib.machinery.ExtensionFileLoader.exec_module = Loader.exec_module
def body():
    import _testcapi
    time.sleep(60)
command(body)
""",
        SAID,
    ),
    "after a command": (
        "import atexit; atexit.register(ctrl_c); command(lambda: None)",
        SAID,
    ),
    "with stderr closed": ("command(lambda: (os.close(2), hang()))", ""),
    "with other streams": (
        "import io\ncommand(lambda: (setattr(sys, 'stderr', io.StringIO()), hang()))",
        SAID,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_interruption_ends_a_command(case: str) -> None:
    script, said = CASES[case]
    ran = run_python("-c", START + script, timeout=60)
    assert (ran.returncode, ran.stderr) == (130, said)


@pytest.mark.parametrize(
    ("number", "case"),
    [
        *itertools.product(("SIGTERM",), CASES),
        ("SIGHUP", "in a command"),
        ("SIGHUP", "in a command that catches all"),
    ],
)
def test_so_do_signals_that_ask_to_end(number: str, case: str) -> None:
    script, said = CASES[case]
    ran = run_python("-c", START.replace("SIGINT", number) + script, timeout=60)
    assert (ran.returncode, ran.stderr) == (128 + getattr(signal, number), said)


def test_one_with_a_handler_of_a_library() -> None:
    script = """
def body():
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.raise_signal(signal.SIGTERM)
    time.sleep(60)
command(body)
"""
    ran = run_python("-c", START + script, timeout=50)
    assert (ran.returncode, ran.stderr) == (143, SAID)


def test_the_package_loads_no_other_modules_before_the_command_line_begins() -> None:
    script = """
import sys
before = set(sys.modules)
import tffc.cli
print(sorted(set(sys.modules) - before - {"__future__"}))
"""
    ran = run_python("-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){script}")
    assert ran.stdout == "['tffc', 'tffc.cli', 'tffc.support', 'tffc.support.version']\n", (
        ran.stderr
    )


def test_nobody_has_to_read_stderr() -> None:
    reader, writer = os.pipe()
    script = """
os.set_blocking(2, False)
try:
    while True:
        os.write(2, bytes(4096))
except BlockingIOError:
    os.set_blocking(2, True)
command(hang)
"""
    ran = subprocess.run(
        [sys.executable, "-c", START + script], stderr=writer, timeout=60, check=False
    )
    os.close(reader)
    os.close(writer)
    assert ran.returncode == 130


def test_who_is_to_ignore_it_does() -> None:
    script = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
command(lambda: (ctrl_c(), click.echo("went on")))
"""
    ran = run_python("-c", START + script)
    assert (ran.returncode, ran.stdout) == (0, "went on\n")
