"""Clients' data and states as `.npz` files: what is read, what is kept, and what is refused."""

from __future__ import annotations

import collections
import pathlib
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tffc.language import DType, SequenceType, StructType, TensorType, Type, to_type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.folder import NpzFolder
from tffc.runtime.data.location import open_source
from tffc.runtime.data.npz import encode_npz, read_arrays, read_text
from tffc.runtime.data.source import check_all
from tffc.runtime.engines.state import State, read_state, write_state
from tffc.support.errors import DataError

IMAGES = SequenceType(
    collections.OrderedDict(pixels=TensorType(np.uint8, [2]), label=TensorType(np.int32))
)
NESTED = StructType([("a", [np.int32, ("b/c", np.float64)]), np.bool_, ("s", IMAGES)])


def client(folder: pathlib.Path, type: Any, *args: Any, **arrays: Any) -> Any:
    """What a client holds whose file has these arrays."""
    np.savez(folder / "ada.npz", *args, **arrays)
    clients = open_source(folder, to_type(type))
    check_all(clients)
    return clients.read("ada")


def refusal(folder: pathlib.Path, type: Any, *args: Any, **arrays: Any) -> str:
    with pytest.raises(DataError) as caught:
        client(folder, type, *args, **arrays)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_folder_in_the_place_of_a_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run" / "state").mkdir(parents=True)
    file = tmp_path / "run" / "state" / "round-3.npz"
    file.write_bytes(b"")
    with pytest.raises(DataError) as caught:
        read_state(tmp_path / "run", TensorType(DType.INT32), "")
    assert caught.value.help == f"it is a folder; did you mean {file}?"


def test_a_tensor_needs_no_name(tmp_path: pathlib.Path) -> None:
    value = client(tmp_path, np.float32, np.float32(1.5))
    assert (value, type(value)) == (1.5, np.float32)


def test_the_elements_of_a_sequence_lie_along_the_first_axis(tmp_path: pathlib.Path) -> None:
    value = client(tmp_path, SequenceType(np.int64), np.arange(3))
    assert value == [0, 1, 2]


def test_structs_are_read_by_name(tmp_path: pathlib.Path) -> None:
    pixels, label = np.array([[1, 2], [3, 4]], np.uint8), np.array([7, 8], np.int32)
    first, second = client(tmp_path, IMAGES, label=label, pixels=pixels)
    assert (first[0].tolist(), first[1]) == ([1, 2], 7)
    assert (second[0].tolist(), second[1]) == ([3, 4], 8)


def test_structs_are_read_by_position(tmp_path: pathlib.Path) -> None:
    pixels, label = np.array([[1, 2]], np.uint8), np.array([7], np.int32)
    for arrays in ([pixels, label], {"0": pixels, "1": label}):
        read = client(tmp_path, IMAGES, *arrays) if isinstance(arrays, list) else None
        read = read or client(tmp_path, IMAGES, **dict(arrays))
        assert (read[0][0].tolist(), read[0][1]) == ([1, 2], 7)


def test_nested_structs_are_paths(tmp_path: pathlib.Path) -> None:
    value = client(
        tmp_path,
        NESTED,
        **{
            "a/0": np.int32(1),
            "a/b/c": 2.5,
            "1": np.True_,
            "s/pixels": np.zeros((0, 2), np.uint8),
            "s/label": np.zeros(0, np.int32),
        },
    )
    assert value == ((1, 2.5), True, [])


def test_a_batch_is_an_element(tmp_path: pathlib.Path) -> None:
    batches = SequenceType(TensorType(np.int32, [None, 2]))
    value = client(tmp_path, batches, np.arange(12, dtype=np.int32).reshape(2, 3, 2))
    assert [batch.shape for batch in value] == [(3, 2), (3, 2)]


def test_strings_are_bytes(tmp_path: pathlib.Path) -> None:
    words = SequenceType(np.str_)
    assert client(tmp_path, words, np.array(["né", ""])) == ["né".encode(), b""]
    assert client(tmp_path, words, np.array([b"a", b"bc"])) == [b"a", b"bc"]
    assert client(tmp_path, np.str_, np.array(b"word")) == b"word"


def test_the_byte_order_of_a_file_does_not_matter(tmp_path: pathlib.Path) -> None:
    value = client(tmp_path, np.int32, np.array(258, ">i4"))
    assert (value, value.dtype.isnative) == (258, True)


def test_arrays_that_no_field_needs_are_left_alone(tmp_path: pathlib.Path) -> None:
    assert client(tmp_path, {"x": np.int32}, x=np.int32(1), comment=np.array("hi")) == (1,)


def test_clients_are_sorted_by_name(tmp_path: pathlib.Path) -> None:
    for name in ("c2", "c10", "c1"):
        np.savez(tmp_path / f"{name}.npz", np.int32(0))
    (tmp_path / "notes.txt").write_text("")
    assert open_source(tmp_path, TensorType(np.int32)).clients == ("c1", "c10", "c2")


def test_another_element_type_is_refused(tmp_path: pathlib.Path) -> None:
    found = refusal(tmp_path, IMAGES, pixels=np.zeros((3, 2), "S3"), label=np.zeros(3, np.int32))
    assert found == (
        "ada.npz: the array 'pixels' is str[3,2], expected uint8[n,2] [E620]\n"
        "  help: convert it before saving, with .astype(np.uint8)"
    )


def test_another_shape_is_refused(tmp_path: pathlib.Path) -> None:
    pixels = np.zeros((3, 8, 8), np.uint8)
    assert refusal(tmp_path, IMAGES, pixels=pixels, label=np.zeros(3, np.int32)) == (
        "ada.npz: the array 'pixels' is uint8[3,8,8], expected uint8[n,2] [E620]"
    )


@pytest.mark.parametrize(
    ("type", "array", "text"),
    [
        (SequenceType(np.int32), np.int32(1), "int32, expected int32[n]"),
        (np.int32, np.zeros(1, np.int32), "int32[1], expected int32"),
        (
            TensorType(np.int32, [None, 2]),
            np.zeros((1, 3), np.int32),
            "int32[1,3], expected int32[?,2]",
        ),
        (
            SequenceType(TensorType(np.int32, None)),
            np.zeros(1, "U1"),
            "str[1], expected int32[n,...]",
        ),
        (np.str_, np.zeros((), np.int32), "int32, expected str"),
    ],
)
def test_what_is_found_and_expected(
    tmp_path: pathlib.Path, type: Any, array: Any, text: str
) -> None:
    message = refusal(tmp_path, type, array).splitlines()[0]
    assert message == f"ada.npz: the array 'arr_0' is {text} [E620]"


def test_sequences_of_unequal_length_are_refused(tmp_path: pathlib.Path) -> None:
    pixels = np.zeros((3, 2), np.uint8)
    assert refusal(tmp_path, IMAGES, pixels=pixels, label=np.zeros(4, np.int32)) == (
        "ada.npz: the array 'label' has 4 elements and 'pixels' has 3, expected the same number "
        "in all arrays of a sequence [E620]"
    )


def test_a_missing_array_is_refused(tmp_path: pathlib.Path) -> None:
    assert refusal(tmp_path, IMAGES, pixel=np.zeros((3, 2)), label=np.zeros(3)) == (
        "ada.npz: there is no array 'pixels', expected uint8[n,2] [E622]\n"
        "  note: the file holds 'pixel', 'label'\n"
        "  help: did you mean 'pixel'?"
    )


def test_pickled_objects_are_refused(tmp_path: pathlib.Path) -> None:
    assert refusal(tmp_path, SequenceType(np.str_), np.array(["a", None], object)) == (
        "ada.npz: the array 'arr_0' holds pickled Python objects, which are not read [E628]\n"
        "  help: save an array of numbers, or of NumPy byte strings with .astype(np.bytes_)"
    )


def test_a_file_that_is_no_npz_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ada.npz").write_text("x,y\n1,2\n")
    with pytest.raises(DataError) as caught:
        check_all(open_source(tmp_path, TensorType(np.int32)))
    assert str(caught.value) == (
        f"{tmp_path}/ada.npz is not an .npz file, or is damaged [E627]\n"
        "  note: reading it failed with: File is not a zip file\n"
        "  help: write it with numpy.savez or numpy.savez_compressed"
    )


def test_a_damaged_file_is_refused(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "ada.npz", np.arange(100, dtype=np.int32))
    content = bytearray((tmp_path / "ada.npz").read_bytes())
    content[300] ^= 1
    (tmp_path / "ada.npz").write_bytes(content)
    clients = open_source(tmp_path, SequenceType(np.int32))
    with pytest.raises(DataError, match="E627"):
        clients.read("ada")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ada.npz").mkdir()
    with pytest.raises(DataError) as caught:
        check_all(open_source(tmp_path, TensorType(np.int32)))
    assert str(caught.value) == f"cannot read {tmp_path}/ada.npz: Is a directory [E626]"


def test_a_file_of_nearly_that_name(tmp_path: pathlib.Path) -> None:
    (tmp_path / "state.npz").touch()
    with pytest.raises(DataError) as caught:
        read_text(tmp_path / "stat.npz", "round")
    assert str(caught.value) == (
        f"cannot read {tmp_path}/stat.npz: No such file or directory [E626]\n"
        f"  help: did you mean {tmp_path}/state.npz?"
    )


def test_a_type_that_no_arrays_can_hold_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        ArrayLayout(SequenceType(()))
    assert str(caught.value) == (
        "a value of type `<>` cannot be kept in a file [E624]"
        "\n  help: keep tensors, in structs and sequences whose elements hold some"
    )


def test_two_arrays_of_one_name_are_refused() -> None:
    layout = ArrayLayout(StructType([("a/b", np.int32), ("a", [("b", np.int32)])]))
    with pytest.raises(DataError) as caught:
        layout.encode((np.int32(1), (np.int32(2),)), "state.npz")
    assert str(caught.value) == (
        "state.npz: two arrays would be called 'a/b' [E623]"
        "\n  help: rename one of the two elements, so that no name has a slash"
    )


def test_a_sequence_of_unlike_elements_cannot_be_kept() -> None:
    layout = ArrayLayout(SequenceType(TensorType(np.int32, [None])))
    value = [np.zeros(2, np.int32), np.zeros(3, np.int32)]
    with pytest.raises(DataError) as caught:
        layout.encode(value, "state.npz")
    assert str(caught.value) == (
        "state.npz: a sequence of type `int32[?]*` cannot be kept in one array, for its elements "
        "are of shapes [2] and [3] [E624]"
        "\n  help: pad the elements to one shape"
    )


def scalars(dtype: str) -> st.SearchStrategy[Any]:
    if dtype == "str":
        return st.binary(max_size=4)
    return st.integers(0, 1).map(np.dtype(dtype).type)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Type, Any]:
    """A type of tensors, sequences and nested structs, and a value of it."""
    kind = draw(st.sampled_from(["scalar", "vector", "struct", "sequence"]))
    dtype = draw(st.sampled_from(["int32", "float64", "bool", "uint8", "str", "complex64"]))
    element = TensorType(np.str_ if dtype == "str" else np.dtype(dtype))
    if kind == "scalar":
        return element, draw(scalars(dtype))
    if kind == "sequence":
        return SequenceType(element), draw(st.lists(scalars(dtype)))
    if kind == "vector":
        items = draw(st.lists(scalars(dtype), max_size=3))
        array = np.empty(len(items), element.element_type.dtype)
        array[:] = items
        return TensorType(element.element_type, [len(items)]), array
    parts = draw(st.lists(typed_values(), max_size=3))
    named = draw(st.booleans())
    names = tuple(f"n{i}" if named else None for i in range(len(parts)))
    return StructType.of(names, tuple(t for t, _ in parts)), tuple(v for _, v in parts)


def plain(value: Any) -> Any:
    """A value as tuples, lists and scalars with their types, which == compares whole."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, np.generic):
        return str(value.dtype), value.item()
    if isinstance(value, bytes):
        return value
    return [plain(element) for element in value]


@given(typed_values())
def test_a_state_is_read_as_it_was_written(tmp_path_factory: Any, pair: tuple[Type, Any]) -> None:
    kind, value = pair
    path = tmp_path_factory.mktemp("state") / "state.npz"
    write_state(path, State(value, "digest", 3), kind)
    read = read_state(path, kind, "digest")
    assert plain(read.value) == plain(value)
    assert read.rounds == 3


def test_strings_keep_the_zeros_at_their_end(tmp_path: pathlib.Path) -> None:
    path, kind = tmp_path / "state.npz", SequenceType(np.str_)
    write_state(path, State([b"a\0", b"", b"\0\0"], "digest", 1), kind)
    assert read_state(path, kind, "digest").value == [b"a\0", b"", b"\0\0"]
    with np.load(path) as arrays:
        assert arrays["0.lengths"].tolist() == [2, 0, 2]
        assert arrays["0.bytes"].tobytes() == b"a\0\0\0"


def test_bfloat16_survives(tmp_path: pathlib.Path) -> None:
    dtype = DType.BFLOAT16.dtype
    kind = StructType([("w", TensorType(dtype, [2]))])
    value = (np.array([1.5, -2], dtype),)
    write_state(tmp_path / "state.npz", State(value, "digest", 1), kind)
    read = read_state(tmp_path / "state.npz", kind, "digest").value
    assert (read[0].dtype, read[0].tolist()) == (dtype, [1.5, -2])


def test_rounds_of_another_program_do_not_count(tmp_path: pathlib.Path) -> None:
    write_state(tmp_path / "s.npz", State(np.int32(1), "one", 5), TensorType(np.int32))
    assert read_state(tmp_path / "s.npz", TensorType(np.int32), "two").rounds == 0


def test_the_same_arrays_give_the_same_bytes(tmp_path: pathlib.Path) -> None:
    arrays = {"a": np.arange(3), "b": np.array(b"x")}
    content = encode_npz(arrays, {"note.txt": "hello"})
    assert content == encode_npz(arrays, {"note.txt": "hello"})
    (tmp_path / "x.npz").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.npz") as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with np.load(tmp_path / "x.npz") as loaded:
        assert loaded["a"].tolist() == [0, 1, 2]


def test_lengths_that_do_not_add_up_are_refused(tmp_path: pathlib.Path) -> None:
    arrays = {"0.bytes": np.zeros(3, np.uint8), "0.lengths": np.array([1, 1])}
    (tmp_path / "x.npz").write_bytes(encode_npz(arrays, {}))
    with pytest.raises(DataError) as caught:
        read_arrays(tmp_path / "x.npz", ArrayLayout(SequenceType(np.str_)))
    assert str(caught.value).splitlines()[1] == (
        "  note: reading it failed with: the lengths of the strings do not add up to their bytes"
    )


def test_what_a_folder_holds_is_told_of_all_clients(tmp_path: pathlib.Path) -> None:
    shapes = {"a": (3, 64), "b": (71, 64), "c": (8, 64)}
    for name, shape in shapes.items():
        kind = np.int32 if name == "b" else np.float32
        np.savez(
            tmp_path / f"{name}.npz", pixels=np.zeros(shape, np.uint8), label=np.zeros(2, kind)
        )
    assert NpzFolder(tmp_path).kinds() == {
        "pixels": "uint8[3..71,64]",
        "label": "float32[2] or int32[2]",
    }
