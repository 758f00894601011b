"""Many rows of one table by one prepared statement.

A group is small and follows the last at once: building objects and statements anew for each would
cost several times what the database itself takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from engine.store.database.session import quick_cursor
from engine.store.database.times import sqlite_time

if TYPE_CHECKING:
    from django.db import models

#: The values of a row by column, every column but an automatic key.
Row = Mapping[str, object]
Adapter = Callable[[object], object]
#: So many rows one statement brings to PostgreSQL, which takes 65,535 values at once.
MOST_ROWS = 500


def insert(model: type[models.Model], rows: Sequence[Row]) -> None:
    """Insert rows."""
    _execute(model, rows, "")


def upsert(model: type[models.Model], rows: Sequence[Row], *, by: tuple[str, ...]) -> None:
    """Insert rows, or replace those that the unique columns `by` find."""
    _execute(model, rows, _replacement(model, by))


def _execute(model: type[models.Model], rows: Sequence[Row], ending: str) -> None:
    if not rows:
        return
    adapters = _adapters(model, connection.vendor)
    values: list[list[Any]] = [
        [
            row[column] if adapt is None or row[column] is None else adapt(row[column])
            for column, adapt in adapters
        ]
        for row in rows
    ]
    beginning, places = _insertion(model)
    if connection.vendor == "sqlite":
        with quick_cursor() as cursor:
            cursor.executemany(f"{beginning} {places} {ending}", values)
        return
    # Not by `executemany`: psycopg sends its rows as a pipeline, after which PostgreSQL (15) does
    # not end a session that is idle in its transaction, and nobody could ever take over from a
    # driver that was stopped there.
    for start in range(0, len(values), MOST_ROWS):
        chunk = values[start : start + MOST_ROWS]
        rows_of_places = ", ".join([places] * len(chunk))
        with quick_cursor() as cursor:
            cursor.execute(
                f"{beginning} {rows_of_places} {ending}", [one for row in chunk for one in row]
            )


@cache
def _columns(model: type[models.Model]) -> tuple[str, ...]:
    fields = [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]
    return tuple(str(field.column) for field in fields)


@cache
def _insertion(model: type[models.Model]) -> tuple[str, str]:
    """Return an insertion up to its values, and the places of one row."""
    columns = _columns(model)
    places = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) VALUES", f"({places})"


@cache
def _replacement(model: type[models.Model], by: tuple[str, ...]) -> str:
    changes = ", ".join(
        f"{column} = excluded.{column}" for column in _columns(model) if column not in by
    )
    return f"ON CONFLICT ({', '.join(by)}) DO UPDATE SET {changes}"


@cache
def _adapters(model: type[models.Model], _vendor: str) -> tuple[tuple[str, Adapter | None], ...]:
    """Return each column with what makes its values fit for the database, None if they are."""
    fields = {field.column: field for field in model._meta.concrete_fields}
    return tuple((column, _adapter(fields[column])) for column in _columns(model))


def _adapter(field: models.Field[object, object]) -> Adapter | None:
    """Return what Django's field would make of a value, without what it asks of every value anew."""
    kind = field.get_internal_type()
    if kind == "CharField":
        return str  # members of an enumeration become plain text
    if kind == "JSONField":
        return lambda value: connection.ops.adapt_json_value(value, None)
    if kind in {"DateTimeField", "DateField"} and connection.vendor == "sqlite":
        return sqlite_time if kind == "DateTimeField" else str
    return None
