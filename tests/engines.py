"""Engines that hold tables, for tests: a pandas frame as each of them has it."""

import functools
import itertools
import shutil
import warnings

import pytest

#: What makes a lazy data frame of a pandas frame, by the name of the engine.
ENGINES = ["polars", "duckdb", "dask", "pyspark"]

_NUMBERS = itertools.count()


def lazy_frame(engine, table):
    """Return a pandas frame as a lazy one, or skip where the engine is not there."""
    module = pytest.importorskip(engine)
    if engine == "polars":
        # column by column: its own conversion needs a library that need not be there
        columns = {c: _polars_cells(table[c]) for c in table}
        return module.DataFrame(columns).lazy()
    if engine == "duckdb":
        # one for all: relations of older versions do not keep theirs open
        connection, name = _duckdb(), f"kept_{next(_NUMBERS)}"
        connection.register("given", table)
        connection.execute(f"create table {name} as select * from given")
        connection.unregister("given")
        return connection.table(name)
    if engine == "dask":
        frames = pytest.importorskip("dask.dataframe")
        return frames.from_pandas(table, npartitions=min(3, len(table)))
    return spark(module).createDataFrame(
        [tuple(map(_plain, row)) for row in table.itertuples(index=False)],
        ", ".join(f"`{c}` {_spark_type(table[c])}" for c in table),
    )


@functools.cache
def _duckdb():
    return pytest.importorskip("duckdb").connect()


def _polars_cells(column):
    return [_plain(value) for value in column.tolist()]


def _plain(value):
    return value.item() if hasattr(value, "item") else value


def _spark_type(column):
    kinds = {"b": "boolean", "i": "bigint", "u": "bigint", "f": "double"}
    return kinds.get(getattr(column.dtype, "kind", "O"), "string")


def spark(module):
    """Return the session of a test run, or skip where there is no Java."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            module.sql.SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
