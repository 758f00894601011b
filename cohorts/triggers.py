"""Database triggers that move the topology version, whoever changes what the gate answers from.

They count bulk operations, cascades and raw SQL of any process. An application registers its
tables with `watch` when it gets ready; `install_triggers` runs after every migrate, since SQLite
drops triggers in silence when a migration remakes their table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connections, transaction

if TYPE_CHECKING:
    from django.db import models
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

# Not read from the model: applications import this file before models can be loaded.
VERSION_TABLE = "cohorts_topologyversion"

# An upsert, because a flush removes the row.
_MOVE = (
    f"INSERT INTO {VERSION_TABLE} (id, version) VALUES (1, 1) ON CONFLICT (id)"
    f" DO UPDATE SET version = {VERSION_TABLE}.version + 1;"
)

# At most one move per transaction, remembered in a setting that a rollback, also one to a
# savepoint, takes back.
_POSTGRESQL_FUNCTION = f"""CREATE OR REPLACE FUNCTION move_topology_version()
RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('sim.topology_moved_in', true) = txid_current()::text THEN
        RETURN NULL;
    END IF;
    {_MOVE}
    PERFORM set_config('sim.topology_moved_in', txid_current()::text, true);
    RETURN NULL;
END $$"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A table whose inserts, deletes and updates count; updates of one column only if named."""

    table: str
    column: str | None = None

    def triggers(self, vendor: str) -> dict[str, str]:
        """Return the SQL of each trigger by its name."""
        return self._on_postgresql() if vendor == "postgresql" else self._on_sqlite()

    def _on_sqlite(self) -> dict[str, str]:
        when = f"WHEN OLD.{self.column} IS NOT NEW.{self.column} " if self.column else ""
        changes = {"insert": "INSERT", "delete": "DELETE", "update": "UPDATE"}
        guards = {"update": when}
        return {
            f"{self.table}_moves_on_{name}": (
                f"CREATE TRIGGER {self.table}_moves_on_{name} AFTER {event} ON {self.table} "
                f"FOR EACH ROW {guards.get(name, '')}BEGIN {_MOVE} END"
            )
            for name, event in changes.items()
        }

    def _on_postgresql(self) -> dict[str, str]:
        compared = self.column or "*"
        call = "EXECUTE FUNCTION move_topology_version()"
        deferred = f"ON {self.table} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
        changed = f"WHEN (OLD.{compared} IS DISTINCT FROM NEW.{compared})"
        name = f"{self.table}_moves_on"
        return {
            f"{name}_row": (
                f"CREATE CONSTRAINT TRIGGER {name}_row AFTER INSERT OR DELETE {deferred} {call}"
            ),
            f"{name}_update": (
                f"CREATE CONSTRAINT TRIGGER {name}_update AFTER UPDATE {deferred} {changed} {call}"
            ),
            f"{name}_truncate": (
                f"CREATE TRIGGER {name}_truncate AFTER TRUNCATE ON {self.table} "
                f"FOR EACH STATEMENT {call}"
            ),
        }


_watched: dict[str, Watch] = {}


def watch(model: type[models.Model], *, column: str | None = None) -> None:
    """Let changes of a model's table move the version: of one column only, if it is named."""
    table = model._meta.db_table
    _watched[table] = Watch(table=table, column=column)


def missing_triggers(using: str = "default") -> tuple[str, ...]:
    """Return the names of triggers that a migrated database lacks or has switched off, sorted."""
    return tuple(sorted(_missing(connections[using])))


def install_triggers(using: str = "default") -> None:
    """Put every missing trigger in place; does nothing where none is missing.

    What changed while a trigger was missing went uncounted, so the version moves then.
    """
    connection = connections[using]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL_FUNCTION)  # in place of one from an older release
    missing = _missing(connection)
    if not missing:
        return
    with transaction.atomic(using=using), connection.cursor() as cursor:
        for name, (table, sql) in sorted(missing.items()):
            _drop(cursor, connection.vendor, name, table)
            cursor.execute(sql)
        cursor.execute(f"UPDATE {VERSION_TABLE} SET version = version + 1")


def move_now(using: str = "default") -> None:
    """Move the version inside a transaction of our own, before its commit, so it can be named.

    On SQLite it has moved already. The row stays locked until the commit: call it late.
    """
    connection = connections[using]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _missing(connection: BaseDatabaseWrapper) -> dict[str, tuple[str, str]]:
    """Return (table, SQL) by name of each trigger that is wanted and not in force."""
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        in_force = _in_force(cursor, connection.vendor)
    wanted = {
        name: (one.table, sql)
        for one in _watched.values()
        if {one.table, VERSION_TABLE} <= tables
        for name, sql in one.triggers(connection.vendor).items()
    }
    return {
        name: (table, sql)
        for name, (table, sql) in wanted.items()
        if in_force.get(name) not in {sql, "enabled"}
    }


def _in_force(cursor: CursorWrapper, vendor: str) -> dict[str, str]:
    """Return the database's triggers: their SQL on SQLite, "enabled" on PostgreSQL."""
    if vendor == "postgresql":
        cursor.execute(
            "SELECT tgname, 'enabled' FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND pg_table_is_visible(tgrelid)"
        )
    else:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    return dict(cursor.fetchall())


def _drop(cursor: CursorWrapper, vendor: str, name: str, table: str) -> None:
    where = f" ON {table}" if vendor == "postgresql" else ""
    cursor.execute(f"DROP TRIGGER IF EXISTS {name}{where}")
