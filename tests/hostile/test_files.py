"""Files that are not files: what is opened is regular, where it should be, and no larger."""

from __future__ import annotations

import os
import pathlib
import re
import socket
from collections.abc import Callable

import pytest

from tffc.support.files.reading import Identity, TooLargeError, open_regular, read_regular


def make_fifo(path: pathlib.Path) -> None:
    os.mkfifo(path)


def make_device(path: pathlib.Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def make_loop(path: pathlib.Path) -> None:
    path.symlink_to(path)


def make_folder(path: pathlib.Path) -> None:
    path.mkdir()


def make_dangling(path: pathlib.Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_fifo, "it is a FIFO, expected a regular file"),
        (make_device, "it is a device, expected a regular file"),
        (make_socket, "it is a socket, expected a regular file"),
        (make_loop, "Too many levels of symbolic links"),
        (make_folder, "Is a directory"),
        (make_dangling, "No such file or directory"),
    ],
)
def test_what_is_no_regular_file_is_refused(tmp_path, monkeypatch, make, said) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "what")
    with pytest.raises(OSError) as refusal:  # noqa: PT011  (the text is compared below)
        open_regular(tmp_path / "what")
    assert refusal.value.strerror == said


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="embedded null") as pythons:
        os.stat("a\0b")
    with pytest.raises(OSError, match=re.escape(f"this is not a path: {pythons.value}")):
        open_regular("a\0b")


def test_links_are_followed_within_a_folder_alone(tmp_path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_bytes(b"content")
    (inside / "near").symlink_to("file")
    (inside / "far").symlink_to(outside / "file")
    (inside / "folder").symlink_to(outside)
    (tmp_path / "link").symlink_to(inside)
    assert read_regular(inside / "near", 7, within=inside) == b"content"
    assert read_regular(inside / "near", 7, within=tmp_path / "link") == b"content"
    assert read_regular(inside / "far", 7) == b"content"
    for path in (inside / "far", inside / "folder" / "file", inside / ".." / "outside" / "file"):
        with pytest.raises(OSError, match="outside of its folder"):
            open_regular(path, within=inside)


def test_no_more_is_read_than_the_limit(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345678")
    assert read_regular(path, 8) == b"12345678"
    with pytest.raises(TooLargeError) as refusal:
        read_regular(path, 7)
    assert refusal.value.strerror == "it has more than 7 bytes"


def test_an_identity_tells_changed_and_replaced_files(
    tmp_path: pathlib.Path, move: Callable[[], None]
) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for each in (path, other):
        each.write_bytes(b"one")
        os.utime(each, ns=(0, 0))
    before = Identity.of(path.stat())
    assert before.is_of(path.stat())
    other.rename(path)
    sent = before.elsewhere()
    assert not before.is_of(path.stat())
    assert not sent.is_of(path.stat())
    move()
    assert sent.is_of(path.stat())
    os.utime(path, ns=(0, 1))
    assert not sent.is_of(path.stat())
    path.write_bytes(b"three")
    os.utime(path, ns=(0, 0))
    assert not sent.is_of(path.stat())
