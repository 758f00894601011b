"""Many rows of one table by one prepared statement.

A group is small and follows the last at once: building objects and statements anew for each would
cost several times what the database itself takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db import connection

from engine.store.database.session import quick_cursor
from engine.store.database.times import sqlite_time

if TYPE_CHECKING:
    from django.db import models

#: The values of a row by column, every column but an automatic key.
Row = Mapping[str, object]
Adapter = Callable[[object], object]


def insert(model: type[models.Model], rows: Sequence[Row]) -> None:
    """Insert rows."""
    _execute(model, rows, "")


def upsert(model: type[models.Model], rows: Sequence[Row], *, by: tuple[str, ...]) -> None:
    """Insert rows, or replace those that the unique columns `by` find."""
    _execute(model, rows, _replacement(model, by))


def _execute(model: type[models.Model], rows: Sequence[Row], ending: str) -> None:
    if not rows:
        return
    if connection.vendor == "sqlite":
        with quick_cursor() as cursor:
            cursor.executemany(f"{_row_by_row(model)} {ending}", _values(model, rows))
        return
    # As one value, whatever their number: so the server compiles one statement for each table. Not
    # by `executemany`: psycopg sends its rows as a pipeline, after which PostgreSQL (15) does not
    # end a session that is idle in its transaction, and nobody could ever take over from a driver
    # that was stopped there.
    with quick_cursor() as cursor:
        cursor.execute(f"{_all_at_once(model)} {ending}", [json.dumps(rows, default=_plain)])


def _values(model: type[models.Model], rows: Sequence[Row]) -> list[list[Any]]:
    """Return the rows' values as SQLite takes them, in the order of the columns."""
    in_order, adapters = itemgetter(*_columns(model)), _adapters(model)
    values = [list(in_order(row)) for row in rows]
    for row in values:
        for place, adapt in adapters:
            if row[place] is not None:
                row[place] = adapt(row[place])
    return values


def _plain(value: object) -> str:
    assert isinstance(value, date)  # or a datetime, which is one
    return value.isoformat()


@cache
def _columns(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(str(field.column) for field in _fields(model))


def _fields(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    return [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]


@cache
def _row_by_row(model: type[models.Model]) -> str:
    """Return SQLite's insertion of one row."""
    columns = _columns(model)
    places = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) VALUES ({places})"


@cache
def _all_at_once(model: type[models.Model]) -> str:
    """Return PostgreSQL's insertion of all rows of a JSON list."""
    columns = ", ".join(_columns(model))
    # Without a length: a text that is too long is refused by its column, not cut here.
    kinds = ", ".join(
        f"{field.column} {str(field.db_type(connection)).partition('(')[0]}"
        for field in _fields(model)
    )
    return (
        f"INSERT INTO {model._meta.db_table} ({columns})"
        f" SELECT {columns} FROM json_to_recordset(%s::json) AS given ({kinds})"
    )


@cache
def _replacement(model: type[models.Model], by: tuple[str, ...]) -> str:
    changes = ", ".join(
        f"{column} = excluded.{column}" for column in _columns(model) if column not in by
    )
    return f"ON CONFLICT ({', '.join(by)}) DO UPDATE SET {changes}"


@cache
def _adapters(model: type[models.Model]) -> tuple[tuple[int, Adapter], ...]:
    """Return the places of values that SQLite does not take as they are, with what adapts."""
    found = ((place, _adapter(field)) for place, field in enumerate(_fields(model)))
    return tuple((place, adapt) for place, adapt in found if adapt is not None)


def _adapter(field: models.Field[Any, Any]) -> Adapter | None:
    """Return what Django's field would make of a value, without what it asks of every value anew."""
    kinds: dict[str, Adapter] = {
        "CharField": str,  # members of an enumeration become plain text
        "JSONField": json.dumps,
        "DateTimeField": sqlite_time,
        "DateField": str,
    }
    return kinds.get(field.get_internal_type())
