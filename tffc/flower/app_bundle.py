"""Reading the bundle of an app from the file beside the app's modules."""

from __future__ import annotations

import functools
import hashlib
import pathlib

from tffc.backends.bundle.bundle import Bundle, decode_bundle
from tffc.files.reading import read_regular
from tffc.flower.bundle_file import LIMIT, Fetch, decode_bundle_file, named_only


@functools.lru_cache(maxsize=4)
def read_app_bundle(path: pathlib.Path, fetch: Fetch | None = None) -> Bundle:
    """Return the bundle of an app, cached: Flower installs each app under its hash, so it never
    changes.

    Raises:
      BundleError: it is damaged, or a file of it is not in the app and there is no `fetch`.
    """
    content = read_regular(path, LIMIT)
    return decode_bundle(decode_bundle_file(content, str(path), fetch), path)


def named_files(path: pathlib.Path) -> dict[str, int]:
    """Return the sizes of the files that an app names but does not hold, by hash.

    Raises:
      BundleError: the file of the bundle is damaged.
    """
    return named_only(read_regular(path, LIMIT), str(path))


def fetch_from(folder: pathlib.Path | None) -> Fetch | None:
    """Return a function that finds files by hash in a bundle's folder; None without a folder."""
    if folder is None:
        return None

    def fetch(digest: str, size: int) -> bytes:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size == size:
                content = read_regular(path, size)
                if hashlib.sha256(content).hexdigest() == digest:
                    return content
        # Empty content does not have the hash either, so the caller refuses it.
        return b""

    return fetch
