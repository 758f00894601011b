"""Rows that the database makes by itself, by one statement for a table; both databases alike."""

from __future__ import annotations

from datetime import datetime

#: SQL over a number `i`, or a value.
Column = str | int | float | datetime


def fill(model: str, n_rows: int, columns: dict[str, Column]) -> None:
    """Insert `n_rows` rows, for `i` from 0 on."""
    from django.apps import apps
    from django.db import connection

    table = apps.get_model("engine", model)._meta.db_table
    chosen = ", ".join(one if isinstance(one, str) else "%s" for one in columns.values())
    values = [
        connection.ops.adapt_datetimefield_value(one) if isinstance(one, datetime) else one
        for one in columns.values()
        if not isinstance(one, str)
    ]
    chosen = chosen.replace(" % ", " %% ") if values else chosen
    query = f"""
        INSERT INTO {table} ({", ".join(columns)})
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {n_rows - 1})
        SELECT {chosen} FROM n
    """  # noqa: S608 – nothing here comes from outside
    with connection.cursor() as cursor:
        cursor.execute(query, values)


def continue_numbers() -> None:
    """Let the database know that the numbers given by hand are taken."""
    from django.apps import apps
    from django.core.management.color import no_style
    from django.db import connection

    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(apps.get_models())):
            cursor.execute(statement)
