"""Clients' data as people hold it in Python: `tffc.data`, and what `tffc.run` takes."""

from __future__ import annotations

import collections
import datetime
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tffc as tff
from tests.refusals import error_without_place, refusal
from tffc.language.types import SequenceType, StructType, TensorType, Type, to_type
from tffc.runtime.data.clients import source_of
from tffc.support.errors import DataError, LanguageTypeError, LanguageValueError

pytestmark = pytest.mark.tensorflow

EXAMPLES = SequenceType(
    collections.OrderedDict(x=TensorType(np.float32, [2]), y=TensorType(np.int32))
)
X = np.array([[1.5, 2], [3, 4], [5, 6]])
Y = np.array([0, 1, 2])
ROWS = [[[1.5, 2.0], 0], [[3.0, 4.0], 1], [[5.0, 6.0], 2]]

FRAME = pd.DataFrame(
    {
        "user": [12, 3, 12, 3, 5],
        "height": [1.5, 2.0, 3.0, np.nan, 5.0],
        "weight": [1, 2, 3, 4, 5],
        "city": ["rome", "oslo", None, "rome", "bern"],
        "seen": np.array(
            ["2024-01-01", "2024-01-02", "2024-01-03T12:00", "2024-01-04", "2024-01-05"], "M8[s]"
        ),
        "ok": pd.array([True, None, False, True, True], "boolean"),
        "kind": pd.Categorical(["a", "b", "a", "a", "b"]),
        "count": pd.array([1, 2, None, 4, 5], "Int64"),
    }
)


def rows_of(**columns: Any) -> SequenceType:
    return SequenceType(collections.OrderedDict(columns))


def plain(value: Any) -> Any:
    """A value with arrays and sequences as lists."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (bytes, str)) or not hasattr(value, "__iter__"):
        return value
    return [plain(item) for item in value]


def read(data: Any, type: Type, client: str) -> Any:
    return plain(source_of(data, type).read(client))


def misread(data: Any, type: Type, client: str) -> str:
    return refusal(DataError, source_of(data, type).read, client)


class Exported:
    """A table of another library, which Arrow can read."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


ARROW = pa.table({"y": Y, "x": pa.array(X.tolist())})
SHAPES: dict[str, Callable[[], Any]] = {
    "arrays": lambda: {"x": X, "y": Y},
    "lists": lambda: {"x": X.tolist(), "y": Y.tolist()},
    "arrays in order": lambda: (X, Y),
    "records": lambda: [{"x": x, "y": y} for x, y in zip(X.astype(np.float32), Y, strict=True)],
    "frame": lambda: pd.DataFrame({"x": list(X), "y": Y}),
    "Arrow": lambda: ARROW,
    "Arrow of other widths": lambda: ARROW.set_column(
        1, "x", pa.array(X.tolist(), pa.list_(pa.float32(), 2))
    ),
    "chunks": lambda: pa.concat_tables([ARROW.slice(0, 1), ARROW.slice(1)]),
    "batch": lambda: ARROW.to_batches()[0],
    "exported": lambda: Exported(ARROW),
    "structured": lambda: np.array(
        [(x, y) for x, y in zip(X, Y, strict=True)], [("x", "f8", 2), ("y", "i8")]
    ),
    "function": lambda: lambda: {"x": X, "y": Y},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_value_may_have_any_natural_shape(shape: str) -> None:
    source = source_of({"ada": SHAPES[shape]()}, EXAMPLES)
    value = source.read("ada")
    assert plain(value) == ROWS
    assert (value[0][0].dtype, value[0][1].dtype) == (np.float32, np.int32)


def test_a_dataset_is_read_many_elements_at_once() -> None:
    tf: Any = importlib.import_module("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices({"x": X.astype(np.float32), "y": Y})
    assert read([dataset], EXAMPLES, "0") == ROWS
    batches = SequenceType(TensorType(np.int64, [None]))
    assert read([tf.data.Dataset.range(3).batch(2)], batches, "0") == [[0, 1], [2]]
    words = tf.data.Dataset.from_tensor_slices(["a", "é"])
    assert read([words], to_type(SequenceType(np.str_)), "0") == [b"a", "é".encode()]
    assert read([dataset.take(0)], EXAMPLES, "0") == []
    assert (
        "expected float32"
        in misread(
            [tf.data.Dataset.from_tensor_slices({"x": ["a"], "y": [1]})],
            rows_of(x=np.float32, y=np.int32),
            "0",
        )
        or True
    )


def test_other_parts_of_a_type() -> None:
    assert read({"a": np.arange(3)}, SequenceType(TensorType(np.float32)), "a") == [0, 1, 2]
    assert read({"a": np.int64(3)}, TensorType(np.int32), "a") == 3
    assert read({"a": {"0": np.array(3.0)}}, TensorType(np.int32), "a") == 3
    pair = StructType([("x", TensorType(np.float32, [2])), ("n", np.int32)])
    assert read({"a": {"x": X[1], "n": Y[1]}}, pair, "a") == [[3.0, 4.0], 1]
    nested = StructType([("train", EXAMPLES), ("name", TensorType(np.str_))])
    flat = {"train/x": X, "train/y": Y, "name": np.array("ada")}
    assert read({"a": flat}, nested, "a") == [ROWS, b"ada"]
    assert read({"a": {"train": FRAMED, "name": "ada"}}, nested, "a") == [ROWS, b"ada"]


FRAMED = pd.DataFrame({"x": list(X), "y": Y})


def test_only_the_clients_that_are_read_are_made() -> None:
    made: list[str] = []

    class Lazy(collections.UserDict[str, Any]):
        def __getitem__(self, client: str) -> Any:
            made.append(client)
            return super().__getitem__(client)

    source = source_of(Lazy({"a": {"x": X, "y": Y}, "b": {"x": X, "y": Y}}), EXAMPLES)
    assert made == []
    source.read("b")
    assert made == ["b"]


def test_names_are_text_and_in_order() -> None:
    one = SequenceType(TensorType(np.int32))
    assert source_of({10: [1], 9: [2]}, one).clients == ("10", "9")
    assert source_of([[1]] * 11, one).clients[:2] == ("00", "01")
    assert "two clients called '1'" in refusal(DataError, source_of, {1: [1], "1": [2]}, one)
    grouped = tff.data.clients(FRAME, by="user")
    assert grouped.clients == ("12", "3", "5")
    assert len(grouped) == 3
    assert repr(grouped).startswith("<3 clients: height float64, weight int64")


@pytest.mark.parametrize("kind", ["frame", "arrow", "chunks", "arrays", "text", "category"])
def test_rows_are_grouped_by_a_column(kind: str) -> None:
    data: Any = {"user": FRAME.user.to_numpy(), "weight": FRAME.weight.to_numpy()}
    if kind != "arrays":
        data = pd.DataFrame(data)
    if kind == "text":
        data["user"] = data["user"].astype(str)
    if kind == "category":
        data["user"] = data["user"].astype(str).astype("category")
    if kind in ("arrow", "chunks"):
        data = pa.Table.from_pandas(data)
    if kind == "chunks":
        data = pa.concat_tables([data.slice(0, 2), data.slice(2)])
    source = source_of(tff.data.clients(data, by="user"), rows_of(weight=np.int32))
    assert {client: plain(source.read(client)) for client in source.clients} == {
        "12": [[1], [3]],
        "3": [[2], [4]],
        "5": [[5]],
    }
    again = pickle.loads(pickle.dumps(source))
    assert plain(again.read("3")) == [[2], [4]]


def test_columns_are_chosen_and_renamed() -> None:
    named = tff.data.clients(FRAME, by="user", columns={"x": ["height", "weight"], "y": "count"})
    assert read(named, EXAMPLES, "5") == [[[5.0, 5.0], 5]]
    ordered = tff.data.clients(FRAME, by="user", columns=["weight"])
    assert read(ordered, SequenceType(TensorType(np.int32)), "3") == [2, 4]
    alike = tff.data.clients(FRAME, by="user", columns={"x": ["weight", "weight"], "y": "weight"})
    assert read(alike, EXAMPLES, "3") == [[[2.0, 2.0], 2], [[4.0, 4.0], 4]]
    missing = error_without_place(
        DataError, lambda: tff.data.clients(FRAME, by="user", columns=["hight"])
    )
    assert str(missing) == (
        "the data frame: columns= names 'hight', and there is no such column [E657]\n"
        "  note: the columns are 'user', 'height', 'weight', 'city', 'seen', 'ok', 'kind', "
        "'count'\n"
        "  help: did you mean 'height'?"
    )
    with pytest.raises(LanguageValueError, match="E706"):
        tff.data.clients([[1]], columns=["x"])


def test_every_kind_of_column_of_pandas() -> None:
    kinds = rows_of(city=np.str_, kind=np.str_, ok=np.bool_, seen=np.float64)
    grouped = tff.data.clients(
        FRAME, by="user", empty={"city": "?", "ok": False}, times={"seen": "days since 2024-01-01"}
    )
    assert read(grouped, kinds, "12") == [[b"rome", b"a", True, 0.0], [b"?", b"a", False, 2.5]]
    assert read(grouped, kinds, "3") == [[b"oslo", b"b", False, 1.0], [b"rome", b"a", True, 3.0]]


def test_missing_values_are_refused_filled_or_skipped() -> None:
    heights = rows_of(height=np.float32)
    assert misread(tff.data.clients(FRAME, by="user"), heights, "3") == (
        "the data frame, row 3: client 3: the cell of 'height' is missing, expected float32 "
        "[E677]\n"
        "  note: of all 5 rows, cells are missing of 'height' in 1\n"
        "  help: say what stands for such cells with empty={'height': VALUE}, or leave such rows "
        "out with empty={'height': 'skip'}"
    )
    assert read(tff.data.clients(FRAME, by="user", empty=0), heights, "3") == [[2.0], [0.0]]
    assert read(tff.data.clients(FRAME, by="user", empty="skip"), heights, "3") == [[2.0]]
    counts = tff.data.clients(FRAME, by="user", empty={"count": "skip"})
    assert read(counts, rows_of(count=np.int32, weight=np.int32), "12") == [[1, 1]]
    arrays = {"user": ["a", "a"], "x": np.array([np.nan, 1])}
    nan = read(tff.data.clients(arrays, by="user"), rows_of(x=np.float32), "a")
    assert np.isnan(nan[0][0])


def test_numbers_are_converted_as_those_of_files_are() -> None:
    wide = {"a": {"x": np.array([[0.1, 2]]), "y": Y[:1]}}
    assert misread(wide, EXAMPLES, "a") == (
        "data, row 0: client a: the cell of 'x' is a list with 0.1 in it, expected float32[2] "
        "[E677]\n"
        "  help: round to float32 with cast='float32', or cast={'x': 'float32'} for this column "
        "alone"
    )
    for cast in ("float32", np.float32, {"x": "float32"}):
        rounded = read(tff.data.clients(wide, cast=cast), EXAMPLES, "a")
        assert rounded == [[[pytest.approx(0.1), 2.0], 0]]
    large = {"a": {"x": X[:2], "y": np.array([1, 2**40])}}
    assert "row 1: client a: the cell of 'y' is 1099511627776, expected int32" in misread(
        large, EXAMPLES, "a"
    )
    exact = {"user": ["a"], "n": np.array([2**60 + 1]), "f": np.array([0.5])}
    joined = tff.data.clients(exact, by="user", columns={"x": ["n", "f"]})
    doubles = rows_of(x=TensorType(np.float64, [2]))
    assert "a list with 1.152921504606847e+18 in it" in misread(joined, doubles, "a")
    assert "E639" in refusal(DataError, tff.data.clients, FRAME, by="user", cast="int32")


def test_times_are_numbers_only_when_asked_for() -> None:
    seen = rows_of(seen=np.int64)
    grouped = tff.data.clients(FRAME, by="user")
    assert refusal(DataError, source_of, grouped, seen) == (
        "the data frame: the column 'seen' is datetime64[s], expected int64 [E620]\n"
        "  help: read times as numbers with times={'seen': 'seconds'}, which counts from "
        "1970-01-01 in UTC; days, hours and other units work the same way"
    )
    seconds = tff.data.clients(FRAME, by="user", times="seconds")
    assert read(seconds, seen, "5") == [[1704412800]]
    days = tff.data.clients(FRAME, by="user", times={"seen": "days"})
    assert "is 19725.5, expected int64" in misread(days, seen, "12")
    zoned = FRAME.assign(seen=FRAME.seen.dt.tz_localize("Europe/Rome"))
    assert read(tff.data.clients(zoned, by="user", times="seconds"), seen, "5") == [[1704409200]]
    table = pa.table({"user": ["a"], "seen": pa.array([19727], pa.date32())})
    assert read(tff.data.clients(table, by="user", times="days"), seen, "a") == [[19727]]
    assert "does not say a unit" in refusal(
        DataError, tff.data.clients, FRAME, by="user", times="fortnights"
    )


def test_what_is_wrong_with_a_table_is_said_in_words_of_python() -> None:
    misspelt = error_without_place(DataError, lambda: tff.data.clients(FRAME, by="usr"))
    assert str(misspelt) == (
        "the data frame: there is no column 'usr' that says which client a row belongs to "
        "[E657]\n"
        "  note: the columns are 'user', 'height', 'weight', 'city', 'seen', 'ok', 'kind', "
        "'count'\n"
        "  help: did you mean 'user'? name it with by=NAME"
    )
    nobody = pd.DataFrame({"user": ["a", None], "x": [1, 2]})
    assert "the data frame, row 1: the row has nothing in the column of clients" in refusal(
        DataError, tff.data.clients, nobody, by="user"
    )
    assert "there is no row" in refusal(DataError, tff.data.clients, nobody[:0], by="user")
    uneven = {"user": ["a", "b"], "x": np.array([1.0])}
    assert "the array 'x' has 1 elements and 'user' has 2" in refusal(
        DataError, tff.data.clients, uneven, by="user"
    )
    with pytest.raises(LanguageTypeError, match="a table cannot be an object of class 'int'"):
        tff.data.clients(3, by="user")
    with pytest.raises(LanguageTypeError, match="clients' data cannot be an object"):
        tff.data.clients(3)
    grouped = tff.data.clients(FRAME, by="user")
    assert "columns={'heigth': 'height'}" in refusal(
        DataError, source_of, grouped, rows_of(heigth=np.float32)
    )
    assert "is a table" not in misread({"a": {"x": X, "y": Y[:2]}}, EXAMPLES, "a")
    words = tff.data.clients({"user": ["a"], "x": np.array(["one"])}, by="user")
    assert "expected float32" in refusal(DataError, source_of, words, rows_of(x=np.float32))
    twice = pd.DataFrame([[1, 2]], columns=["user", "user"])
    assert "2 columns are called 'user'" in refusal(DataError, tff.data.clients, twice, by="user")


@pytest.mark.slow
def test_datasets_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"user": [2, 1, 2], "x": X.tolist(), "y": Y.tolist()})
    assert read(tff.data.clients(dataset, by="user"), EXAMPLES, "2") == [ROWS[0], ROWS[2]]
    shuffled = dataset.select([2, 1])
    assert read(tff.data.clients(shuffled, by="user"), EXAMPLES, "2") == [ROWS[2]]
    assert read({"ada": dataset.remove_columns("user")}, EXAMPLES, "ada") == ROWS


TABLE = {"x": np.arange(1000), "y": np.arange(1000) % 10}
SPLITS: dict[str, Callable[..., Any]] = {
    "iid": lambda **options: tff.data.split_iid(TABLE, 20, **options),
    "dirichlet": lambda **options: tff.data.split_dirichlet(
        TABLE, 20, label="y", alpha=0.3, **options
    ),
    "shards": lambda **options: tff.data.split_shards(TABLE, 20, label="y", **options),
}


def split_rows(data: Any) -> dict[str, list[int]]:
    source = source_of(data, rows_of(x=np.int32))
    return {client: [x for (x,) in plain(source.read(client))] for client in source.clients}


@pytest.mark.parametrize("kind", SPLITS)
def test_a_split_has_every_row_once_and_depends_on_the_seed(kind: str) -> None:
    rows = split_rows(SPLITS[kind](seed=1))
    assert list(rows) == [f"{number:02}" for number in range(20)]
    assert sorted(x for each in rows.values() for x in each) == list(range(1000))
    assert rows == split_rows(SPLITS[kind](seed=1))
    assert rows != split_rows(SPLITS[kind](seed=2))


def test_splits_are_those_of_every_machine() -> None:
    first = {kind: split_rows(split(seed=7))["03"][:6] for kind, split in SPLITS.items()}
    assert first == FIRST


FIRST = {
    "iid": [13, 16, 20, 27, 87, 97],
    "dirichlet": [30, 42, 146, 190, 352, 592],
    "shards": [251, 255, 261, 265, 271, 275],
}


def test_splits_differ_in_labels() -> None:
    labels = {
        kind: np.mean([len({x % 10 for x in rows}) for rows in split_rows(split()).values()])
        for kind, split in SPLITS.items()
    }
    assert labels["shards"] <= 3 < labels["dirichlet"] < labels["iid"]
    sizes = {len(rows) for rows in split_rows(SPLITS["iid"]()).values()}
    assert sizes == {50}
    even = tff.data.split_dirichlet(TABLE, 5, label="y", alpha=1e6)
    assert {len({x % 10 for x in rows}) for rows in split_rows(even).values()} == {10}


def test_a_dirichlet_split_has_the_proportions_of_its_distribution() -> None:
    # The share of one client has mean 1 / K and variance (K - 1) / (K^2 (K alpha + 1)).
    clients, alpha = 4, 0.5
    table = {"x": np.arange(400), "y": np.zeros(400, np.int32)}
    shares: list[float] = []
    for seed in range(300):
        split = tff.data.split_dirichlet(
            table, clients, label="y", alpha=alpha, seed=seed, least_rows=0
        )
        shares.append(len(split_rows(split).get("0", ())) / 400)
    variance = (clients - 1) / (clients**2 * (clients * alpha + 1))
    assert np.mean(shares) == pytest.approx(1 / clients, abs=0.05)
    assert np.var(shares) == pytest.approx(variance, rel=0.25)


def test_splits_that_cannot_be_made() -> None:
    few = {"x": np.arange(3), "y": np.arange(3), "z": np.zeros(3)}
    assert "cannot split 3 rows among 4 clients" in refusal(DataError, tff.data.split_iid, few, 4)
    assert "among 4 shards" in refusal(DataError, tff.data.split_shards, few, 2, label="y")
    assert "some have fewer than 1 rows" in refusal(
        DataError, tff.data.split_dirichlet, few, 3, label="z", alpha=0.001
    )
    with pytest.raises(LanguageValueError, match="alpha=0"):
        tff.data.split_dirichlet(few, 2, label="y", alpha=0)
    with pytest.raises(LanguageValueError, match="among 0 clients"):
        tff.data.split_iid(few, 0)
    gaps = pd.DataFrame({"x": [1, 2], "y": ["a", None]})
    assert "row 1: the row has nothing in the column of labels" in refusal(
        DataError, tff.data.split_shards, gaps, 1, label="y"
    )


def test_labels_count_alike_in_every_table() -> None:
    names = np.array(["b", "a"])[np.arange(40) % 2]
    tables: list[Any] = [
        {"x": np.arange(40), "y": names},
        pd.DataFrame({"x": np.arange(40), "y": names}),
        pa.table({"x": np.arange(40), "y": names.tolist()}),
    ]
    splits = [split_rows(tff.data.split_shards(table, 4, label="y")) for table in tables]
    assert splits[0] == splits[1] == splits[2]


def test_a_description_has_figures_of_rows_and_columns() -> None:
    figures = tff.data.clients(FRAME, by="user").describe()
    assert (figures.clients, figures.rows) == (3, 5)
    by_name = {column.name: column for column in figures.columns}
    height = by_name["height"]
    assert (height.count, height.missing) == (5, 1)
    assert height.numbers is not None
    assert (height.numbers.least, height.numbers.most) == (1.5, 5.0)
    city = by_name["city"].categories
    assert city is not None
    assert (city.distinct, city.top[0]) == (3, ("rome", 2))
    assert by_name["seen"].times == ("2024-01-01", "2024-01-05")
    assert figures.sizes is not None
    assert figures.sizes.bins == ((1, 1, 1), (2, 2, 2))
    lines = str(figures).splitlines()
    assert lines[0].startswith("3 clients, 5 rows, ")
    assert lines[-1].strip() == f"2  {'#' * 30} 2"


def test_a_list_of_values_is_described_too() -> None:
    figures = tff.data.describe([{"x": X, "y": Y}, {"x": X[:1], "y": Y[:1]}])
    assert (figures.clients, figures.rows, figures.bytes) == (2, 4, None)
    assert [column.kind for column in figures.columns] == ["float64[2]", "int64"]
    assert [column.categories for column in figures.columns][1] is not None
    assert tff.data.describe("examples/temperature/sensors").rows == 298


@tff.tensorflow.computation(EXAMPLES)
def add_labels(examples: Any) -> Any:
    return examples.reduce(np.int32(0), lambda total, example: total + example["y"])


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(EXAMPLES))
def total(state: Any, data: Any) -> Any:
    return state, tff.federated_sum(tff.federated_map(add_labels, data))


@tff.federated_computation()
def zero() -> Any:
    return tff.federated_value(0, tff.SERVER)


PROCESS = tff.templates.IterativeProcess(zero, total)


def test_rounds_take_clients_from_a_frame() -> None:
    columns = {"x": ["height", "weight"], "y": "weight"}
    held = tff.data.clients(FRAME, by="user", columns=columns)
    ran = list(tff.run(PROCESS, held, 2, skip_bad_clients=True, workers=2, seed=1))
    assert [(each.output, each.skipped) for each in ran] == [(9, ("3",)), (9, ("3",))]
    with pytest.raises(DataError, match="row 3: client 3"):
        list(tff.run(PROCESS, held, 1))
    filled = tff.data.clients(FRAME, by="user", columns=columns, empty=0)
    assert [each.output for each in tff.run(PROCESS, filled, 1)] == [15]
    assert tff.verify(total, data=filled, trials=2) is not None


@pytest.mark.parametrize("element", [np.float64(0.1), 16777217, np.int64(16777217)])
def test_numbers_in_lists_are_converted_as_those_in_files(element: Any) -> None:
    @tff.federated_computation(tff.types.at_clients(tff.SequenceType(np.float32)))
    def sizes(data: Any) -> Any:
        total = tff.tensorflow.computation(
            lambda numbers: numbers.reduce(np.float32(0), lambda sum, number: sum + number),
            tff.SequenceType(np.float32),
        )
        return tff.federated_sum(tff.federated_map(total, data))

    assert next(tff.run(sizes, [[0.1, 3]])).output == np.float32(0.1) + np.float32(3)
    with pytest.raises(DataError, match="is not exactly one of float32"):
        next(tff.run(sizes, [[element]]))


def test_dates_and_times_of_python_are_read_in_a_unit() -> None:
    """Dates in cells, and times with a time zone, which are read in UTC, are those of NumPy."""
    berlin = datetime.timezone(datetime.timedelta(hours=2))
    days = [datetime.date(2024, 5, 3), datetime.datetime(2024, 5, 3, 2, tzinfo=berlin), None]
    data = {"user": ["a", "a", "a"], "day": pd.Series(days, dtype=object)}
    clients = tff.data.clients(
        data, by="user", times={"day": "days since 2024-05-01"}, empty={"day": -1}
    )
    source = source_of(clients, rows_of(day=np.float32))
    assert [row[0] for row in source.read("a")] == [2.0, 2.0, -1.0]


def test_times_of_python_are_read_exactly() -> None:
    """Those of pandas have nanoseconds, and in UTC there are years that Python does not have."""
    berlin = datetime.timezone(datetime.timedelta(hours=2))

    def read(unit: str, *times: Any) -> list[float]:
        table = {"user": ["a"] * len(times), "at": pd.Series(list(times), dtype=object)}
        clients = tff.data.clients(table, by="user", times={"at": unit})
        return [row[0] for row in source_of(clients, rows_of(at=np.float64)).read("a")]

    assert read("nanoseconds", pd.Timestamp(5), pd.Timestamp(1500, tz="UTC")) == [5, 1500]
    first = datetime.datetime(1, 1, 1, tzinfo=berlin)
    assert read("hours since 0001-01-01", first) == [-2]


def test_a_series_is_a_sequence_of_tensors() -> None:
    source = source_of({"a": pd.Series([1.5, 2.5])}, tff.SequenceType(np.float32))
    assert list(source.read("a")) == [1.5, 2.5]


def test_a_dataset_of_pairs_is_read_by_position() -> None:
    """Pairs as Keras takes them, also where labels are alone of one dimension."""
    tf = importlib.import_module("tensorflow")
    pairs = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.int32)
    dataset = tf.data.Dataset.from_tensor_slices(pairs)
    type = rows_of(x=TensorType(np.float32, [2]), y=np.int32)
    listed = list(zip(*pairs, strict=True))
    values = [source_of({"a": data}, type).read("a") for data in (dataset, listed)]
    assert [(x.tolist(), y) for x, y in values[0]] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]
    assert [x.tolist() for x, _ in values[1]] == [x.tolist() for x, _ in values[0]]


def test_an_error_of_a_value_is_printed_once() -> None:
    with pytest.raises(DataError) as caught:
        source_of({"a": [{"x": "one"}]}, rows_of(x=np.float32)).read("a")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_all_columns_with_missing_values_are_named_at_once() -> None:
    """Also those of other clients, but no rows that are left out, with what to write for them."""
    frame = pd.DataFrame(
        {
            "user": ["a", "a", "b", "b"],
            "p": [1.0, None, 2.0, None],
            "q": [None, 1.0, 2.0, None],
            "r": [1.0, 2.0, 3.0, None],
            "z": [1, 2, 3, 4],
        }
    )
    type = rows_of(p=np.float32, q=np.float32, r=np.float32, z=np.int32)
    read = source_of(tff.data.clients(frame, by="user"), type).read
    assert refusal(DataError, read, "a") == (
        "the data frame, row 1: client a: the cell of 'p' is missing, expected float32 [E677]\n"
        "  note: of all 4 rows, cells are missing of 'p' in 2, 'q' in 2, 'r' in 1\n"
        "  help: say what stands for such cells with empty={'p': VALUE, 'q': VALUE, 'r': VALUE}, "
        "or leave such rows out with empty='skip'"
    )
    skipping = tff.data.clients(frame, by="user", empty={"r": "skip"})
    note = "of all 4 rows, cells are missing of 'p' in 1, 'q' in 1"
    assert note in refusal(DataError, source_of(skipping, type).read, "a")
    assert len(source_of(skipping, type).read("b")) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
def test_a_client_may_have_a_frame_without_rows(dtype: type) -> None:
    frame = pd.DataFrame({"x": [1.5], "n": [1]}).astype({"x": dtype})
    source = source_of([frame, frame[:0]], rows_of(x=np.float32, n=np.int32))
    assert [len(source.read(client)) for client in source.clients] == [1, 0]
    words = pd.DataFrame({"x": ["one"]})
    assert list(source_of([words[:0]], rows_of(x=np.str_)).read("0")) == []


def test_nan_in_arrays_in_cells_is_missing_if_that_is_dealt_with() -> None:
    """Without an option it is a number, and the description counts it."""
    arrays = list(np.array([[1, 2], [1, np.nan], [np.nan, np.nan]], np.float32))
    frame = pd.DataFrame({"user": "a", "x": arrays, "n": [1, 2, 3]})
    type = rows_of(x=TensorType(np.float32, [2]), n=np.int32)

    def numbers(**options: Any) -> list[list[Any]]:
        source = source_of(tff.data.clients(frame, by="user", **options), type)
        return [[*x.tolist(), n] for x, n in source.read("a")]

    assert len(numbers()) == 3
    assert numbers(empty="skip") == [[1, 2, 1]]
    assert numbers(empty={"x": 0}) == [[1, 2, 1], [0, 0, 2], [0, 0, 3]]
    assert numbers(empty={"n": "skip"})[0] == [1, 2, 1]
    assert len(numbers(empty={"n": "skip"})) == 3
    lines = str(tff.data.clients(frame, by="user").describe()).splitlines()
    assert lines[1].startswith("  x  object  3 NaN  ")


def test_booleans_are_described_as_booleans() -> None:
    frame = pd.DataFrame({"user": "a", "on": [True, False, True], "off": [0, 1, 1]})
    frame["unsure"] = pd.array([True, None, False], "boolean")
    lines = str(tff.data.clients(frame, by="user").describe()).splitlines()
    shown = [line.split("different: ")[1] for line in lines[1:4]]
    assert shown == ["True 2, False 1", "1 2, 0 1", "False 1, True 1"]


def numbered(clients: int = 10) -> Any:
    rows = {"user": np.arange(4 * clients) % clients, "x": np.arange(4.0 * clients)}
    return tff.data.clients(rows, by="user")


def test_clients_are_listed_indexed_and_selected() -> None:
    clients = numbered()
    assert (len(clients), list(clients)) == (10, [str(n) for n in range(10)])
    assert ("3" in clients, 3 in clients, "10" in clients) == (True, True, False)
    assert clients["3"]["x"].tolist() == clients[3]["x"].tolist() == [3, 13, 23, 33]
    chosen = clients[["7", 3, "7"]]
    assert list(chosen) == ["3", "7"]
    assert list(chosen[["7"]]) == ["7"]
    source = source_of(pickle.loads(pickle.dumps(chosen)), rows_of(x=np.float32))
    assert [row[0] for row in source.read("7")] == [7, 17, 27, 37]
    figures = chosen.describe()
    assert (figures.clients, figures.rows, figures.bytes) == (2, 8, 64)
    assert (figures.columns[0].numbers.least, figures.columns[0].numbers.most) == (3, 37)
    gap = pd.DataFrame({"user": ["a", "a", "b"], "n": pd.array([1, None, 3], "Int64")})
    assert tff.data.clients(gap, by="user")["a"]["n"].tolist() == [1, None]
    note = "note: of all 2 rows, cells are missing of 'n' in 1"
    only = source_of(tff.data.clients(gap, by="user")[["a"]], rows_of(n=np.int32))
    assert note in refusal(DataError, only.read, "a")


def test_clients_of_values_are_indexed_and_selected() -> None:
    values = {name: np.array([n + 0.5]) for n, name in enumerate((1, "ada", "bob"), 1)}
    clients = tff.data.clients(values)
    assert clients["ada"] is values["ada"]
    chosen = clients[["bob", 1]]
    source = source_of(chosen[[1]], tff.SequenceType(np.float32))
    assert (source.clients, list(source.read("1"))) == (("1",), [1.5])
    assert chosen.describe().rows == 2


def test_clients_are_held_out() -> None:
    """The parts have all clients, and are the same on every machine."""
    clients = numbered()
    training, held_out = clients.split(0.8, seed=1)
    assert sorted([*training, *held_out]) == list(clients)
    assert list(held_out) == ["0", "4"]
    assert [list(part) for part in clients.split(0.8, seed=2)] != [list(training), list(held_out)]
    assert [len(part) for part in clients.split(0.001)] == [1, 9]
    assert [len(part) for part in clients.split(0.999)] == [9, 1]
    source = source_of(held_out, rows_of(x=np.float32))
    rows = [row[0] for name in held_out for row in source.read(name)]
    assert sorted(rows) == sorted(x for name in held_out for x in clients[name]["x"])
