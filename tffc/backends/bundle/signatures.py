"""The files with signatures in the folder of a bundle, which nothing here verifies."""

from __future__ import annotations

import itertools
import os
import pathlib
import re
from collections.abc import Iterable

from tffc.support.errors import BundleError
from tffc.support.files.reading import check_within, read_regular

FOLDER = "signatures"

SUFFIX = ".sigstore.json"

PATH = re.compile(rf"{FOLDER}/[A-Za-z0-9][A-Za-z0-9_.-]{{0,99}}{re.escape(SUFFIX)}")
"""The paths of signatures in a bundle."""

MOST = 64
"""The most signatures of a bundle."""

MAX_BYTES = 2**26
"""The most bytes of all of them; each lists the files of the bundle."""


def signature_path(name: str) -> str:
    """Return the path in a bundle of the signature of a name."""
    return f"{FOLDER}/{name}{SUFFIX}"


def signature_name(path: str) -> str:
    """Return the name in the path of a signature."""
    return path.removeprefix(f"{FOLDER}/").removesuffix(SUFFIX)


def signature_paths(paths: Iterable[str], source: str) -> list[str]:
    """Return those of some paths that are of signatures, sorted.

    Raises:
      BundleError: there are too many.
    """
    signatures = sorted(path for path in paths if PATH.fullmatch(path))
    if len(signatures) > MOST:
        raise BundleError(
            "E606",
            f"the bundle {source} has more than {MOST} signatures",
            help="remove those that nobody needs",
        )
    return signatures


def read_signatures(path: pathlib.Path) -> dict[str, bytes]:
    """Return the contents of the signatures of the bundle in a folder by their paths.

    Raises:
      BundleError: one cannot be read, or is not a regular file in the folder, or their own folder
        is not in it.
    """
    folder = path / FOLDER
    if not folder.is_dir():
        return {}
    try:
        # Whoever signs writes there.
        check_within(folder, path)
        with os.scandir(folder) as entries:
            # The folder may be anything: no more is listed than a bundle may have.
            names = [entry.name for entry in itertools.islice(entries, MOST + 1)]
        paths = signature_paths((f"{FOLDER}/{name}" for name in names), str(path))
        signatures: dict[str, bytes] = {}
        left = MAX_BYTES
        for each in paths:
            signatures[each] = read_regular(path / each, left, within=path)
            left -= len(signatures[each])
        return signatures
    except OSError as error:
        raise BundleError(
            "E606",
            f"cannot read a signature of the bundle {path}: {error.strerror}",
            help="remove it, or sign the bundle again",
        ) from error
