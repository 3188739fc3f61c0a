"""The single file that holds a bundle in a Flower app, because apps allow only some kinds of files.

    {
      "format_version": "1.0",
      "files": {
        "manifest.json": {"sha256": "...", "bytes": 1234, "base64": "..."},
        "components/work.pb": {"sha256": "...", "bytes": 12345678}
      }
    }

It lists every file of the bundle's folder, also those of its resources.  If the app would exceed
Flower's limit, the largest files are only named, with their hashes; the server sends them to each
node once, and nodes keep them.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import pathlib
import re
from collections.abc import Mapping
from typing import NotRequired, TypedDict, TypeGuard

from tffc.backends.bundle.bundle import Bundle, decode_bundle
from tffc.backends.bundle.signatures import PATH as SIGNATURE
from tffc.deploy.federation.store import DIGEST, Content, Fetch
from tffc.language.values.resources import read_bytes
from tffc.support.errors import BundleError, reader
from tffc.support.files.reading import read_regular
from tffc.support.files.strict_json import NotJsonError, encode_json, is_count, read_json
from tffc.support.guards import is_dict

FORMAT = "1.0"

LIMIT = 10 * 2**20
"""Flower's limit on the bytes of an app."""

ROOM = 2**18
"""The part of the limit reserved for the app's other files and the archive's overhead."""

MOST = 2**31 - 1
"""The limit on the bytes of one file of a bundle, which is also that of a message."""

PATH = re.compile(
    rf"(components/)?[a-z][a-z0-9_]*\.[a-z]+|resources/[0-9a-f]{{64}}|{SIGNATURE.pattern}"
)


class BundledFile(TypedDict):
    """A file of a bundle, and its content if the app holds it."""

    sha256: str
    bytes: int
    base64: NotRequired[str]


def encode_bundle_file(files: Mapping[str, Content], limit: int = LIMIT - ROOM) -> bytes:
    """Return the file that holds a bundle's files, of at most `limit` bytes.

    Raises:
      BundleError: it exceeds the limit even without the contents of the files, or one is larger
        than Flower sends.
    """
    for path, content in files.items():
        if len(content) > MOST:
            raise BundleError(
                "E761",
                f"{path} has {len(content)} bytes, and Flower sends at most {MOST} at once",
                help="make it of several smaller arrays",
            )
    sizes = {path: -(-len(content) // 3) * 4 for path, content in files.items()}
    held = {path for path in files if sizes[path] <= limit}
    largest = sorted(files, key=lambda path: (-sizes[path], path))
    encoded = _encode(files, held)
    while len(encoded) > limit:
        if not held:
            raise BundleError(
                "E761",
                f"the bundle has {len(files)} files, too many to name them in a Flower app",
                help="write the program with fewer components",
            )
        over = len(encoded) - limit
        for path in [path for path in largest if path in held]:
            held.discard(path)
            over -= sizes[path]
            if over <= 0:
                break
        encoded = _encode(files, held)
    return encoded


def _encode(files: Mapping[str, Content], held: set[str]) -> bytes:
    entries: dict[str, BundledFile] = {}
    for path, content in files.items():
        entries[path] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        if path in held:
            entries[path]["base64"] = base64.b64encode(content).decode()
    return encode_json({"format_version": FORMAT, "files": entries})


@reader("a bundle in one file", BundleError)
def decode_bundle_file(content: bytes, name: str, fetch: Fetch | None = None) -> dict[str, Content]:
    """Return the files of a bundle, each checked against its hash; errors call the content `name`.

    Raises:
      BundleError: the content is damaged, or a file that is only named cannot be fetched.
    """
    entries = _entries(content, name)
    return {path: _content(path, entry, name, fetch) for path, entry in entries.items()}


def _entries(content: bytes, name: str) -> dict[str, BundledFile]:
    try:
        whole: object = read_json(content)
    except NotJsonError as error:
        raise _malformed(name, str(error)) from None
    if not is_dict(whole) or whole.get("format_version") != FORMAT:
        raise _malformed(name, f"it is not an object of format {FORMAT}")
    entries = whole.get("files", {})
    if not _are_entries(entries):
        raise _malformed(name, "its 'files' are not right")
    return entries


def _are_entries(entries: object) -> TypeGuard[dict[str, BundledFile]]:
    """Tell whether an object of JSON has entries by the paths of files."""
    if not is_dict(entries) or not all(map(_is_entry, entries.values())):
        return False
    return all(isinstance(path, str) and PATH.fullmatch(path) for path in entries)


def _is_entry(entry: object) -> bool:
    if not is_dict(entry) or not {"sha256", "bytes"} <= entry.keys():
        return False
    digest, size = entry["sha256"], entry["bytes"]
    is_named = isinstance(digest, str) and DIGEST.fullmatch(digest) is not None
    return (
        is_named
        and isinstance(size, int)
        and is_count(size)
        and size <= MOST
        and _holds_text(entry)
    )


def _holds_text(entry: Mapping[object, object]) -> bool:
    return len(entry) == 2 or (len(entry) == 3 and isinstance(entry.get("base64"), str))


def _content(path: str, entry: BundledFile, name: str, fetch: Fetch | None) -> Content:
    if "base64" in entry:
        try:
            content = base64.b64decode(entry["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise _malformed(name, f"the content of {path} is not in base64") from None
    elif fetch is None:
        raise BundleError(
            "E762",
            f"{name} names {path}, of {entry['bytes']} bytes, and does not hold it",
            help="say where the bundle is, with 'bundle' in the configuration",
        )
    else:
        content = fetch(entry["sha256"], entry["bytes"])
        if not len(content) and entry["bytes"]:
            raise BundleError(
                "E762",
                f"{name} names {path}, of {entry['bytes']} bytes, which is not here",
                help="begin a new run, in which the server sends what a node lacks; at the server, "
                "give the folder of the bundle itself",
            )
    if len(content) != entry["bytes"]:
        raise _malformed(name, f"{path} has {len(content)} bytes, not {entry['bytes']}")
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise _malformed(name, f"{path} does not have its hash")
    return content


@functools.lru_cache(maxsize=4)
@reader("a bundle in one file", BundleError)
def read_app_bundle(path: pathlib.Path, fetch: Fetch | None = None) -> Bundle:
    """Return the bundle of an app.

    It can be cached, because Flower installs each app under its hash, so the file never changes.

    Raises:
      BundleError: it is missing or damaged, or a file that is only named cannot be fetched.
    """
    return decode_bundle(decode_bundle_file(_read(path), str(path), fetch), path)


@reader("a bundle in one file", BundleError)
def named_files(path: pathlib.Path) -> dict[str, int]:
    """Return the sizes of the files that an app names but does not hold, by hash.

    Raises:
      BundleError: the file of the bundle is damaged.
    """
    entries = _entries(_read(path), str(path)).values()
    return {entry["sha256"]: entry["bytes"] for entry in entries if "base64" not in entry}


def _read(path: pathlib.Path) -> bytes:
    try:
        return read_regular(path, LIMIT)
    except OSError as error:
        raise _malformed(str(path), f"it cannot be read: {error.strerror or error}") from None


def fetch_from(folder: pathlib.Path | None) -> Fetch | None:
    """Return a function that finds files by hash in a bundle's folder; None without a folder."""
    if folder is None:
        return None

    def fetch(digest: str, size: int) -> Content:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size == size:
                content = read_bytes(path).data
                if hashlib.sha256(content).hexdigest() == digest:
                    return content
        # The caller refuses empty content, because its hash or size differs.
        return b""

    return fetch


def _malformed(name: str, reason: str) -> BundleError:
    return BundleError(
        "E760",
        f"{name} does not hold a bundle: {reason}",
        help="write the app again, with tffc export --to flower",
    )
