"""`tffc doctor`: show which packages are installed, fit or are missing."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
from collections.abc import Iterable

import click
from packaging.requirements import Requirement

from tffc.cli.options import json_option
from tffc.runtime.user_code.keras import LEGACY_KERAS
from tffc.support.extras import installation
from tffc.support.printable import json_text
from tffc.support.version import VERSION

DISTRIBUTIONS = ("tffc", "tffc-reader")
"""The distributions of tffc: complete, or without TensorFlow."""

FOR_DEVELOPERS = frozenset({"all", "benchmarks", "dev", "docs", "test"})
"""Extras for developers of tffc, and the one that combines several others."""


@dataclasses.dataclass(frozen=True, slots=True)
class Needed:
    """A package that tffc or an extra needs, the releases that fit, and the installed one."""

    name: str
    fitting: str
    installed: str | None
    fits: bool
    extra: str | None

    @property
    def finding(self) -> str:
        """The state of the package: "missing", "ok" or "does not fit"."""
        return "missing" if self.installed is None else "ok" if self.fits else "does not fit"


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> None:
    """Show which packages are installed, whether their versions fit, and what to install for each
    extra; which Keras a program gets, and what the name tensorflow_federated stands for.

    Imports nothing, not even TensorFlow. Exits with 1 if a package that tffc itself needs is
    missing or does not fit.

    \b
    Examples:
      tffc doctor
      tffc doctor --json
    """
    found = packages(_requirements())
    click.echo(_json(found) if as_json else "\n".join(_lines(found)))
    if any(each.extra is None and each.finding != "ok" for each in found):
        raise click.exceptions.Exit(1)


def _version(name: str) -> str | None:
    """Return the version of an installed distribution, or None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def keras() -> dict[str, str | bool | None]:
    """Return which Keras `tf.keras` is, and why: the switch of TensorFlow, and the packages."""
    is_legacy = os.environ.get(LEGACY_KERAS) in ("1", "true", "True")
    new, old = _version("keras"), _version("tf_keras")
    if is_legacy:
        finding = f"Keras 2, tf_keras {old}" if old else "missing: it needs tf_keras"
        finding += f", because {LEGACY_KERAS} is set"
    elif new is None:
        finding = "missing: it needs keras"
    else:
        finding = f"Keras {new.partition('.')[0]}, keras {new}"
        finding += f"; {LEGACY_KERAS}=1 makes it Keras 2, " + (
            f"tf_keras {old}" if old else "which needs tf_keras"
        )
    return {"keras": new, "tf_keras": old, "legacy": is_legacy, "finding": finding}


def federated() -> dict[str, str | bool | None]:
    """Return the release of TensorFlow Federated's wheel, whether its libraries run on tffc, and
    what its name gives."""
    # Imported late: with it come the names of TFF.
    from tffc.tff import releases

    installed = releases.installed()
    is_installed = installed is not None
    version = None if installed is None else installed.version
    if installed is None:
        libraries = "not installed: tff.learning and others need its files; tffc explain E181"
    elif installed.release is not None:
        shown = version or installed.release.title
        libraries = f"{shown}: its libraries, such as tff.learning, run on tffc"
    else:
        libraries = f"{version}: its libraries do not run on tffc; tffc explain E181"
    elsewhere = "the installed package" if is_installed else "nothing"
    name = (
        f"tffc in what tffc loads, and in scripts under `tffc python`; elsewhere {elsewhere}, "
        "unless tffc.install_as_tensorflow_federated() is called first"
    )
    return {"version": version, "installed": is_installed, "finding": libraries, "name": name}


def _requirements() -> list[str]:
    """Return the requirements of the installed distribution of tffc; none if it has no metadata."""
    for distribution in DISTRIBUTIONS:
        try:
            return importlib.metadata.requires(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            continue
    return []


def packages(requirements: Iterable[str]) -> list[Needed]:
    """Return the packages that requirements name: those of tffc itself, then those of extras."""
    found: list[Needed] = []
    for requirement in map(Requirement, requirements):
        marker = str(requirement.marker or "")
        _, is_extra, rest = marker.partition("extra == ")
        extra = rest.strip("\"' ") if is_extra else None
        if extra in FOR_DEVELOPERS:
            continue
        installed = _version(requirement.name)
        fits = installed is not None and requirement.specifier.contains(installed, prereleases=True)
        fitting = str(requirement.specifier)
        found.append(Needed(requirement.name, fitting, installed, fits, extra))
    return sorted(found, key=lambda each: (each.extra or "", each.name))


def _json(found: list[Needed]) -> str:
    rows = [{**dataclasses.asdict(each), "finding": each.finding} for each in found]
    more = {"keras": keras(), "tensorflow_federated": federated()}
    return json_text({**_system(), **more, "packages": rows}, indent=2)


def _system() -> dict[str, str | int]:
    return {
        "tffc": VERSION,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or 1,
    }


def _lines(found: list[Needed]) -> Iterable[str]:
    for name, value in _system().items():
        yield f"{name:<11} {value}"
    wheel = federated()
    yield ""
    yield "frameworks"
    yield f"  {'tf.keras':<27} {keras()['finding']}"
    yield f"  {'tensorflow-federated':<27} {wheel['finding']}"
    yield f"  {'import tensorflow_federated':<27} {wheel['name']}"
    for extra in dict.fromkeys(each.extra for each in found):
        rows = [each for each in found if each.extra == extra]
        yield ""
        yield f"tffc[{extra}]" if extra else "needed"
        for each in rows:
            given = each.installed or "-"
            line = f"  {each.name:<24} {given:<12} {each.finding:<14} {each.fitting}"
            yield line.rstrip()
        if any(each.finding != "ok" for each in rows):
            yield f"  to fix it: {installation(extra or '')}"
