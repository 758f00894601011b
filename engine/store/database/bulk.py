"""Many rows of one table by one prepared statement.

A group is small and follows the last at once: building objects and statements anew for each would
cost several times what the database itself takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from engine.store.database.session import quick_cursor

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
    adapters = _adapters(model, connection.vendor)
    values: list[list[Any]] = [
        [
            row[column] if adapt is None or row[column] is None else adapt(row[column])
            for column, adapt in adapters
        ]
        for row in rows
    ]
    with quick_cursor() as cursor:
        cursor.executemany(f"{_insertion(model)} {ending}", values)


@cache
def _columns(model: type[models.Model]) -> tuple[str, ...]:
    fields = [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]
    return tuple(str(field.column) for field in fields)


@cache
def _insertion(model: type[models.Model]) -> str:
    columns = _columns(model)
    places = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) VALUES ({places})"


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
        return _sqlite_time if kind == "DateTimeField" else str
    return None


def _sqlite_time(moment: object) -> str:
    """Return a time as Django keeps it in SQLite: in UTC, without saying so."""
    assert isinstance(moment, datetime)
    return str(moment.astimezone(UTC).replace(tzinfo=None))
